#include <stdatomic.h>

static int64_t clock_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static _Atomic int64_t ahead_of_mono; /* 0: this machine's wall clock counts */

int64_t clock_wall_ms(void)
{
	int64_t ahead_ms = atomic_load_explicit(&ahead_of_mono, memory_order_relaxed);

	return ahead_ms ? clock_mono_ms() + ahead_ms : clock_ms(CLOCK_REALTIME);
}

int64_t clock_mono_ms(void) { return clock_ms(CLOCK_BOOTTIME); }

void clock_follow(int64_t ahead_of_mono_ms)
{
	atomic_store_explicit(&ahead_of_mono, ahead_of_mono_ms, memory_order_relaxed);
}

static void put_digits(char *out, unsigned v, int n)
{
	while (n-- > 0) {
		out[n] = (char)('0' + v % 10);
		v /= 10;
	}
}

/* Without the C library, because a page has thousands of times and strftime() takes a third of a microsecond. The year begins in March
 * here, so that the leap day is its last one. */
const char *rfc3339_format(int64_t wall_ms, char *out)
{
	static const int64_t LAST_MS = INT64_C(253402300799999); /* of the year 9999 */
	static const char FORM[] = "0000-00-00T00:00:00Z";
	int64_t at_ms = wall_ms < 0 || wall_ms > LAST_MS ? 0 : wall_ms;
	unsigned second = (unsigned)(at_ms / 1000 % 86400), day = (unsigned)(at_ms / 86400000) + 719468;
	unsigned era = day / 146097, of_era = day % 146097;
	unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	unsigned of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;

	memcpy(out, FORM, sizeof(FORM));
	put_digits(out, era * 400 + year + (month >= 10), 4);
	put_digits(out + 5, month < 10 ? month + 3 : month - 9, 2);
	put_digits(out + 8, of_year - (153 * month + 2) / 5 + 1, 2);
	put_digits(out + 11, second / 3600, 2);
	put_digits(out + 14, second / 60 % 60, 2);
	put_digits(out + 17, second % 60, 2);
	return out;
}

static int parse_digits(const char *s, int n)
{
	int value = 0;

	for (int i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -1;
		value = value * 10 + (s[i] - '0');
	}
	return value;
}

static int parse_offset(const char *s, int *ret_minutes)
{
	if ((s[0] == 'Z' || s[0] == 'z') && s[1] == '\0') {
		*ret_minutes = 0;
		return 0;
	}
	if (s[0] != '+' && s[0] != '-')
		return ERR_INVALID;
	int h = parse_digits(s + 1, 2);
	if (h < 0 || h > 23 || s[3] != ':')
		return ERR_INVALID;
	int m = parse_digits(s + 4, 2);
	if (m < 0 || m > 59 || s[6] != '\0')
		return ERR_INVALID;
	*ret_minutes = (s[0] == '-' ? -1 : 1) * (h * 60 + m);
	return 0;
}

int rfc3339_parse(const char *s, int64_t *ret_wall_ms)
{
	int offset, fraction_ms = 0;

	if (strnlen(s, 40) < 20 || strnlen(s, 40) == 40 || s[4] != '-' || s[7] != '-' ||
	    (s[10] != 'T' && s[10] != 't' && s[10] != ' ') || s[13] != ':' || s[16] != ':')
		return ERR_INVALID;
	int year = parse_digits(s, 4), month = parse_digits(s + 5, 2), day = parse_digits(s + 8, 2);
	int hour = parse_digits(s + 11, 2), min = parse_digits(s + 14, 2), sec = parse_digits(s + 17, 2);
	if (year < 0 || month < 0 || day < 0 || hour < 0 || hour > 23 || min < 0 || min > 59 || sec < 0 || sec > 60)
		return ERR_INVALID;
	s += 19;
	if (*s == '.') {
		int scale = 100;

		if (s[1] < '0' || s[1] > '9')
			return ERR_INVALID;
		for (s++; *s >= '0' && *s <= '9'; s++, scale /= 10)
			fraction_ms += (*s - '0') * scale;
	}
	if (parse_offset(s, &offset))
		return ERR_INVALID;
	struct tm date = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
	int64_t day_s = timegm(&date);
	if (date.tm_mon != month - 1 || date.tm_mday != day)
		return ERR_INVALID; /* timegm() made another date of it, as of 30 February */
	*ret_wall_ms = (day_s + (hour * 60 + min - offset) * 60 + sec) * 1000 + fraction_ms;
	return 0;
}

/* ---- durations ---- */

static const struct {
	int64_t us;
	const char *seconds;
} BOUNDS[HISTOGRAM_BUCKETS] = {{500, "0.0005"}, {1000, "0.001"}, {2500, "0.0025"}, {5000, "0.005"}, {10000, "0.01"},
    {25000, "0.025"}, {50000, "0.05"}, {100000, "0.1"}, {250000, "0.25"}, {1000000, "1"}, {2500000, "2.5"},
    {10000000, "10"}, {30000000, "30"}, {60000000, "60"}};

void histogram_add(struct histogram *h, int64_t us)
{
	int i = 0;

	if (us < 0)
		us = 0;
	while (i < HISTOGRAM_BUCKETS && us > BOUNDS[i].us)
		i++;
	h->counts[i]++;
	h->sum_us += us;
}

void histogram_merge(struct histogram *h, const struct histogram *more)
{
	for (int i = 0; i <= HISTOGRAM_BUCKETS; i++)
		h->counts[i] += more->counts[i];
	h->sum_us += more->sum_us;
}

void metric_head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_appendf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metric_gauge(struct buf *out, const char *name, const char *help, int64_t value)
{
	metric_head(out, name, "gauge", help);
	buf_appendf(out, "%s %lld\n", name, (long long)value);
}

void metric_counter(struct buf *out, const char *name, const char *help, int64_t value)
{
	metric_head(out, name, "counter", help);
	buf_appendf(out, "%s %lld\n", name, (long long)value);
}

void histogram_write(struct buf *out, const struct histogram *h, const char *name, const char *labels)
{
	const char *comma = *labels ? "," : "", *open = *labels ? "{" : "", *close = *labels ? "}" : "";
	int64_t n = 0;

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		n += h->counts[i];
		buf_appendf(
		    out, "%s_bucket{%s%sle=\"%s\"} %lld\n", name, labels, comma, BOUNDS[i].seconds, (long long)n);
	}
	n += h->counts[HISTOGRAM_BUCKETS];
	buf_appendf(out, "%s_bucket{%s%sle=\"+Inf\"} %lld\n", name, labels, comma, (long long)n);
	buf_appendf(out, "%s_sum%s%s%s %.6f\n", name, open, labels, close, (double)h->sum_us / 1e6);
	buf_appendf(out, "%s_count%s%s%s %lld\n", name, open, labels, close, (long long)n);
}
