/* Replaces numbers, ids and dates in a word. Digits within a name stay, because float16 is not float32, unless they
 * count something (npu3) or are an id. */
#include "model/failure_text.h"

enum {
	HEX_MIN_CHARS = 7,      /* git's short SHAs */
	HEX_PART_MIN_CHARS = 8, /* between underscores */
	DIGITS_MIN_CHARS = 5,   /* of an id within a name */
	RUNS_OF_ID = 6,         /* of letters and of digits, in turn */
	TEMPORARY_CHARS = 11,   /* tmpk3x9a0qz, as Python's tempfile makes them */
	UUID_CHARS = 36,
};

bool failure_is_digit(char c) { return c >= '0' && c <= '9'; }

bool failure_is_word(char c)
{
	return failure_is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

size_t failure_span(const char *p, bool (*is_part)(char c))
{
	size_t n = 0;

	while (is_part(p[n]))
		n++;
	return n;
}

bool failure_is_listed(const char *p, size_t n, const char *const *list)
{
	for (; *list; list++)
		if (strlen(*list) == n && strncasecmp(p, *list, n) == 0)
			return true;
	return false;
}

/* ---- ids ---- */

static bool is_hex(const char *p, size_t n, size_t min)
{
	bool has_digit = false, has_lower = false, has_upper = false;

	for (size_t i = 0; i < n; i++) {
		if (!isxdigit((unsigned char)p[i]))
			return false;
		has_digit |= failure_is_digit(p[i]);
		has_lower |= p[i] >= 'a';
		has_upper |= p[i] >= 'A' && p[i] <= 'F';
	}
	return n >= min && has_digit && !(has_lower && has_upper);
}

static bool is_uuid(const char *p)
{
	for (size_t i = 0; i < UUID_CHARS; i++) {
		bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (is_dash ? p[i] != '-' : !isxdigit((unsigned char)p[i]))
			return false;
	}
	return !failure_is_word(p[UUID_CHARS]);
}

static bool is_shuffled(const char *p, size_t n)
{
	size_t n_runs = 1;

	for (size_t i = 1; i < n; i++)
		n_runs += failure_is_digit(p[i]) != failure_is_digit(p[i - 1]);
	return n_runs >= RUNS_OF_ID && !memchr(p, '_', n);
}

bool failure_has_digit(const char *p, size_t n)
{
	while (n && !failure_is_digit(p[n - 1]))
		n--;
	return n > 0;
}

static bool is_temporary(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] >= 'A' && p[i] <= 'Z')
			return false;
	return n == TEMPORARY_CHARS && strncmp(p, "tmp", 3) == 0 && failure_has_digit(p, n);
}

/* ---- numbers, with their units ---- */

static bool is_integer(const char *p, size_t n)
{
	while (n && (failure_is_digit(p[n - 1]) || p[n - 1] == '_'))
		n--;
	return n == 0;
}

static bool is_unit(const char *p, size_t n)
{
	static const char *const UNITS[] = {"ns", "us", "ms", "s", "sec", "secs", "second", "seconds", "m", "min",
	    "mins", "minute", "minutes", "h", "hr", "hrs", "hour", "hours", "d", "day", "days", "b", "byte", "bytes",
	    "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib", NULL};

	return failure_is_listed(p, n, UNITS);
}

/* 12, 1e5, 5ms, 5f: the digits, then a suffix. */
static bool is_number(const char *p, size_t n)
{
	static const char *const SUFFIXES[] = {"e", "f", "j", "l", "u", "ul", "st", "nd", "rd", "th", "z", NULL};
	size_t m = 0;

	while (m < n && (failure_is_digit(p[m]) || p[m] == '_'))
		m++;
	if (m == 0 || m == n || failure_is_listed(p + m, n - m, SUFFIXES) || is_unit(p + m, n - m))
		return m > 0;
	return n > m + 1 && (p[m] == 'e' || p[m] == 'E') && is_integer(p + m + 1, n - m - 1);
}

/* An exponent may have a suffix or a unit. Other letters after it would join the placeholder, so it is not skipped then. */
static const char *skip_exponent(const char *start, const char *p)
{
	if (p > start && (p[-1] == 'e' || p[-1] == 'E') && (*p == '-' || *p == '+') && failure_is_digit(p[1])) {
		size_t n = failure_span(p + 1, failure_is_word);

		p += is_number(p + 1, n) ? 1 + n : 0;
	}
	return p;
}

static bool is_address(const char *p, size_t n)
{
	if (n < 3 || strncasecmp(p, "0x", 2) != 0)
		return false;
	return strspn(p + 2, "0123456789abcdefABCDEF") >= n - 2;
}

/* ---- dates ---- */

static const char *skip_blanks(const char *p)
{
	while (*p == ' ')
		p++;
	return p;
}

static bool is_month(const char *p, size_t n)
{
	static const char *const MONTHS[] = {
	    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", NULL};

	return p[n] == ' ' && failure_is_digit(*skip_blanks(p + n)) && failure_is_listed(p, n, MONTHS);
}

static bool is_weekday(const char *p, size_t n)
{
	static const char *const DAYS[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", NULL};
	const char *end = p + n + (p[n] == ','), *next = skip_blanks(end);

	return next > end && failure_is_listed(p, n, DAYS) &&
	       (failure_is_digit(*next) || is_month(next, failure_span(next, failure_is_word)));
}

/* ---- names: digits belong to them, unless they count something or are an id ---- */

static bool counts_something(const char *p, size_t n)
{
	static const char *const WORDS[] = {"attempt", "batch", "card", "chip", "core", "cpu", "cuda", "dev", "device",
	    "die", "epoch", "gpu", "gw", "host", "hpu", "iter", "iteration", "job", "line", "machine", "mps", "node",
	    "npu", "pid", "port", "proc", "process", "rank", "retry", "run", "runner", "seed", "shard", "step",
	    "stream", "task", "thread", "tid", "tpu", "try", "worker", "xpu", NULL};

	return failure_is_listed(p, n, WORDS);
}

static void word_add(struct failure_word *w, const char *p, size_t n)
{
	memcpy(w->text + w->len, p, n); /* the result is never longer than the word */
	w->len += n;
}

static void word_add_placeholder(struct failure_word *w) { word_add(w, (const char[]){FAILURE_PLACEHOLDER}, 1); }

/* It looks at the text written so far, because a placeholder may begin a name that counts: x_99999ode5 would become x_Node5, from which a
 * second pass makes x_NodeN. */
static void word_add_runs(struct failure_word *w, const char *p, size_t n, size_t min_digits)
{
	size_t from = w->len;

	while (n) {
		bool is_number = failure_is_digit(*p);
		size_t m = 1;

		while (m < n && failure_is_digit(p[m]) == is_number)
			m++;
		if (is_number && (m >= min_digits || (m == n && counts_something(w->text + from, w->len - from))))
			word_add_placeholder(w);
		else
			word_add(w, p, m);
		p += m;
		n -= m;
	}
}

/* Adds the part between two underscores; `before` is the part before it, as it is written. */
static void word_add_part(struct failure_word *w, const char *p, size_t n, const char *before, size_t n_before)
{
	bool is_count = n && strspn(p, "0123456789") >= n && counts_something(before, n_before);

	if (is_count || is_hex(p, n, HEX_PART_MIN_CHARS))
		word_add_placeholder(w);
	else
		word_add_runs(w, p, n, DIGITS_MIN_CHARS);
}

/* ---- all of them ---- */

static bool is_id(const char *p, size_t n)
{
	return n > FAILURE_WORD_MAX_BYTES || is_hex(p, n, HEX_MIN_CHARS) || is_address(p, n) || is_shuffled(p, n) ||
	       is_month(p, n) || is_weekday(p, n);
}

size_t failure_word_read(const char *p, size_t n, struct failure_word *ret)
{
	size_t taken = n;

	ret->len = 0;
	if (is_uuid(p)) {
		taken = UUID_CHARS;
		word_add_placeholder(ret);
	} else if (is_temporary(p, n)) {
		word_add(ret, p, 3);
		word_add_placeholder(ret);
	} else if (is_id(p, n)) {
		word_add_placeholder(ret);
	} else if (!failure_is_digit(*p)) {
		const char *end = p + n, *part = p;
		size_t before = 0, n_before = 0; /* in the text */

		for (;;) {
			const char *stop = memchr(part, '_', (size_t)(end - part));
			size_t written = ret->len;

			stop = stop ? stop : end;
			word_add_part(ret, part, (size_t)(stop - part), ret->text + before, n_before);
			if (stop == end)
				break;
			before = written;
			n_before = ret->len - written;
			word_add(ret, "_", 1);
			part = stop + 1;
		}
	} else if (is_number(p, n)) {
		const char *end = skip_exponent(p, p + n);

		while (*end == '.' && failure_is_digit(end[1]) &&
		       is_number(end + 1, failure_span(end + 1, failure_is_word))) {
			const char *part = end + 1;

			end = skip_exponent(part, part + failure_span(part, failure_is_word));
		}
		const char *unit = skip_blanks(end);
		size_t unit_bytes = failure_span(unit, failure_is_word);

		taken = (size_t)((unit > end && is_unit(unit, unit_bytes) ? unit + unit_bytes : end) - p);
		word_add_placeholder(ret);
	} else {
		word_add_runs(ret, p, n, 1);
	}
	return taken;
}
