#include "model/schedule.h"

/* 29 February falls on a given weekday again within 40 years. */
enum { DAYS_AHEAD_MAX = 41 * 366, TEXT_MAX = 200 };
#define DAY_MS    (INT64_C(24) * 60 * 60 * 1000)
#define MINUTE_MS INT64_C(60000)
#define SECOND_MS INT64_C(1000)

struct unit {
	const char *name;
	int min, max;
	const char *const *names; /* names[0] stands for first_name */
	int first_name;
};

static const char *const MONTHS[] = {
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const WEEKDAYS[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, N_UNITS };
static const struct unit UNITS[N_UNITS] = {[MINUTE] = {.name = "minute", .min = 0, .max = 59},
    [HOUR] = {.name = "hour", .min = 0, .max = 23},
    [DAY] = {.name = "day of month", .min = 1, .max = 31},
    [MONTH] = {.name = "month", .min = 1, .max = 12, .names = MONTHS, .first_name = 1},
    [WEEKDAY] = {.name = "day of week", .min = 0, .max = 7, .names = WEEKDAYS, .first_name = 0}};

static const struct {
	const char *word, *fields;
} WORDS[] = {{"@hourly", "0 * * * *"}, {"@daily", "0 0 * * *"}, {"@midnight", "0 0 * * *"}, {"@weekly", "0 0 * * 0"},
    {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}};

static int digits(const char **at, int *ret)
{
	int value = 0, n = 0;

	for (; isdigit((unsigned char)**at) && n < 4; (*at)++, n++)
		value = value * 10 + (**at - '0');
	*ret = value;
	return n > 0 ? 0 : ERR_INVALID;
}

static int parse_value(const char **at, const struct unit *u, int *ret, struct error *e)
{
	const char *start = *at;

	for (int i = 0; u->names && u->names[i]; i++)
		if (strncasecmp(start, u->names[i], 3) == 0 && !isalnum((unsigned char)start[3])) {
			*at += 3;
			*ret = u->first_name + i;
			return 0;
		}
	if (digits(at, ret))
		return error_set(e, ERR_INVALID,
		    u->names ? "the %s is neither a number nor a name such as %s" : "the %s is not a number", u->name,
		    u->names ? u->names[1] : "");
	if (*ret < u->min || *ret > u->max)
		return error_set(e, ERR_INVALID, "the %s goes from %d to %d", u->name, u->min, u->max);
	return 0;
}

static int parse_field(const char **at, const struct unit *u, uint64_t *bits, struct error *e)
{
	*bits = 0;
	for (;;) {
		/* one element of a list: *, a, a-b; * and a-b may have a /step */
		int from = u->min, to = u->max, step = 1, rc;
		bool is_range = true;

		if (**at == '*') {
			(*at)++;
		} else {
			rc = parse_value(at, u, &from, e);
			if (rc)
				return rc;
			is_range = **at == '-';
			to = from;
			if (is_range) {
				(*at)++;
				rc = parse_value(at, u, &to, e);
				if (rc)
					return rc;
			}
		}
		if (to < from)
			return error_set(e, ERR_INVALID, "the %s's range runs backwards", u->name);
		if (**at == '/') {
			(*at)++;
			if (!is_range || digits(at, &step) || step < 1 || step > u->max)
				return error_set(
				    e, ERR_INVALID, "a step is written */n or a-b/n with n from 1 to %d", u->max);
		}
		for (int v = from; v <= to; v += step)
			*bits |= UINT64_C(1) << v;
		if (**at != ',')
			break;
		(*at)++;
	}
	if (**at != '\0' && **at != ' ' && **at != '\t')
		return error_set(e, ERR_INVALID, "the %s is not understood", u->name);
	return 0;
}

static bool day_matches(const struct cron *c, int64_t days)
{
	time_t seconds = (time_t)(days * 86400);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	bool by_day = c->days >> tm.tm_mday & 1, by_weekday = c->weekdays >> tm.tm_wday & 1;
	if (!(c->months >> (tm.tm_mon + 1) & 1))
		return false;
	return c->is_any_day || c->is_any_weekday ? by_day && by_weekday : by_day || by_weekday;
}

/* The first matching day from `days` on, or -1. */
static int64_t next_day(const struct cron *c, int64_t days)
{
	for (int64_t end = days + DAYS_AHEAD_MAX; days < end; days++)
		if (day_matches(c, days))
			return days;
	return -1;
}

/* The first matching minute of a day from `minute` on, or -1. */
static int next_minute(const struct cron *c, int minute)
{
	for (; minute < 24 * 60; minute++)
		if ((c->hours >> (minute / 60) & 1) && (c->minutes >> (minute % 60) & 1))
			return minute;
	return -1;
}

int cron_parse(const char *text, struct cron *ret, struct error *e)
{
	uint64_t bits[N_UNITS];
	bool is_star[N_UNITS];

	if (text[0] == '@') {
		const char *fields = NULL;

		for (size_t i = 0; i < ARRAY_LEN(WORDS); i++)
			if (strcasecmp(text, WORDS[i].word) == 0)
				fields = WORDS[i].fields;
		if (!fields)
			return error_set(e, ERR_INVALID,
			    "only @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually are known");
		text = fields;
	}
	if (strnlen(text, TEXT_MAX + 1) > TEXT_MAX)
		return error_set(e, ERR_INVALID, "longer than %d characters", TEXT_MAX);
	for (int i = 0; i < N_UNITS; i++) {
		int rc;

		text += strspn(text, " \t");
		if (*text == '\0')
			return error_set(
			    e, ERR_INVALID, "five fields are needed: minute hour day-of-month month day-of-week");
		is_star[i] = *text == '*';
		rc = parse_field(&text, &UNITS[i], &bits[i], e);
		if (rc)
			return rc;
	}
	if (text[strspn(text, " \t")] != '\0')
		return error_set(e, ERR_INVALID, "text follows the fifth field");
	*ret = (struct cron){
	    .minutes = bits[MINUTE],
	    .hours = (uint32_t)bits[HOUR],
	    .days = (uint32_t)bits[DAY],
	    .months = (uint32_t)bits[MONTH],
	    .weekdays = (uint32_t)((bits[WEEKDAY] | bits[WEEKDAY] >> 7) & 0x7f), /* 7 is Sunday */
	    .is_any_day = is_star[DAY],
	    .is_any_weekday = is_star[WEEKDAY],
	};
	if (next_day(ret, 0) < 0)
		return error_set(e, ERR_INVALID, "that day never comes");
	return 0;
}

int64_t cron_next(const struct cron *c, int64_t after_ms)
{
	int64_t from = after_ms / MINUTE_MS + 1; /* the next whole minute since 1970 */
	int64_t today = from / (24 * 60), days = next_day(c, today);
	int minute = -1;

	if (days == today)
		minute = next_minute(c, (int)(from % (24 * 60)));
	if (minute < 0) {
		if (days == today)
			days = next_day(c, today + 1);
		minute = next_minute(c, 0);
	}
	return days * DAY_MS + minute * MINUTE_MS;
}

enum { GAP_PARTS = 4 };

void schedule_init(struct schedule *s, const char *name, const char *const *texts, int64_t jitter_ms)
{
	uint8_t digest[SHA256_BYTES];
	uint32_t n = 0;

	/* the share: the first 32 bits of the name's SHA-256 */
	sha256(name, strlen(name), digest);
	for (int i = 0; i < 4; i++)
		n = n << 8 | digest[i];
	*s = (struct schedule){.jitter_ms = jitter_ms, .share = ((double)n / 4294967296.0)};
	for (; texts && *texts; texts++) {
		s->crons = xrealloc(s->crons, (s->n + 1) * sizeof(*s->crons));
		if (cron_parse(*texts, &s->crons[s->n], NULL) == 0)
			s->n++;
	}
}

void schedule_release(struct schedule *s)
{
	free(s->crons);
	*s = (struct schedule){0};
}

/* The first due time after after_ms; 0: there is none. */
static int64_t next_due_of_schedule(const struct schedule *s, int64_t after_ms)
{
	int64_t first = 0;

	if (after_ms < 0)
		after_ms = 0;
	for (size_t i = 0; i < s->n; i++) {
		int64_t due = cron_next(&s->crons[i], after_ms);

		if (!first || due < first)
			first = due;
	}
	return first;
}

int64_t schedule_start_ms(const struct schedule *s, int64_t due_ms)
{
	int64_t most = (next_due_of_schedule(s, due_ms) - due_ms) / GAP_PARTS;

	if (most > s->jitter_ms)
		most = s->jitter_ms;
	int64_t delay = (int64_t)((double)most * s->share);
	return due_ms + delay / SECOND_MS * SECOND_MS;
}

/* The last due time in (after_ms, until_ms]; 0: none. A binary search by whole minutes for the last minute that a due
 * time follows within the span. */
static int64_t last_due(const struct schedule *s, int64_t after_ms, int64_t until_ms)
{
	int64_t low = after_ms / MINUTE_MS, high = until_ms / MINUTE_MS + 1;
	int64_t first = next_due_of_schedule(s, after_ms);

	if (!first || first > until_ms)
		return 0;
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;

		if (next_due_of_schedule(s, middle * MINUTE_MS) <= until_ms)
			low = middle;
		else
			high = middle;
	}
	return next_due_of_schedule(s, low * MINUTE_MS > after_ms ? low * MINUTE_MS : after_ms);
}

struct schedule_look schedule_look(const struct schedule *s, int64_t last_ms, int64_t now_ms)
{
	struct schedule_look l = {0};

	if (last_ms > now_ms)
		last_ms = now_ms;
	l.due_ms = last_due(s, last_ms, now_ms);
	/* The delay of this one is not over, but the delay of the one before it is. */
	if (l.due_ms && schedule_start_ms(s, l.due_ms) > now_ms)
		l.due_ms = last_due(s, last_ms, l.due_ms - 1);
	if (l.due_ms)
		l.is_missed =
		    next_due_of_schedule(s, last_ms) != l.due_ms || now_ms - schedule_start_ms(s, l.due_ms) > MINUTE_MS;
	l.last_ms = l.due_ms ? l.due_ms : last_ms;
	l.next_due_ms = next_due_of_schedule(s, l.last_ms);
	if (l.next_due_ms)
		l.next_ms = schedule_start_ms(s, l.next_due_ms);
	return l;
}

struct schedule_look schedule_look_at_other(
    const struct schedule *s, const struct schedule *before, int64_t last_ms, int64_t now_ms)
{
	struct schedule_look old = schedule_look(before, last_ms, now_ms);
	int64_t since_ms = now_ms;

	/* Both have this due time, and its delay is not over. */
	if (old.next_due_ms && old.next_due_ms <= now_ms &&
	    next_due_of_schedule(s, old.next_due_ms - 1) == old.next_due_ms)
		since_ms = old.next_due_ms - 1;
	struct schedule_look l = schedule_look(s, since_ms, now_ms);
	if (old.due_ms && !l.due_ms) {
		l.due_ms = old.due_ms;
		l.is_missed = old.is_missed;
	}
	return l;
}

int64_t backoff_delay_ms(int n_attempts, int64_t retry_after_ms, double random01)
{
	int64_t ceiling = BACKOFF_FIRST_MS;

	for (int i = 0; i < n_attempts && ceiling < BACKOFF_LONGEST_MS; i++)
		ceiling *= 2;
	if (ceiling > BACKOFF_LONGEST_MS)
		ceiling = BACKOFF_LONGEST_MS;
	/* Between half and all of the ceiling, so that retries spread out but do not follow immediately. */
	int64_t delay = ceiling / 2 + (int64_t)((double)(ceiling - ceiling / 2) * random01);
	if (delay < BACKOFF_FIRST_MS)
		delay = BACKOFF_FIRST_MS;
	return delay > retry_after_ms ? delay : retry_after_ms;
}

bool backoff_is_over(int64_t first_ms, int64_t next_ms) { return next_ms - first_ms > BACKOFF_GIVE_UP_MS; }

/* ---- the records of pages ---- */

RECORD_DEFINE(schedule_run_view, SCHEDULE_RUN_RECORD)
RECORD_DEFINE(schedule_view, SCHEDULE_VIEW_RECORD)
