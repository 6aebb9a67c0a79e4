/* When periodic runs are due: over years of a fake clock, with restarts, steps of the clock and
 * several crons, against a walk over every due time. */
#include <setjmp.h>

#include <cmocka.h>

#include "model/schedule.h"

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define JITTER (15 * MINUTE)

static int64_t at(const char *text)
{
	int64_t ms;

	assert_int_equal(rfc3339_parse(text, &ms), 0);
	return ms;
}

static const char *const *crons(const char *a, const char *b, const char *c)
{
	static const char *list[4];

	list[0] = a;
	list[1] = b;
	list[2] = b ? c : NULL;
	list[3] = NULL;
	return list;
}

static struct schedule make(const char *name, const char *const *texts, int64_t jitter_ms)
{
	struct schedule s;

	schedule_init(&s, name, texts, jitter_ms);
	return s;
}

/* ---- every due time, one after the other ---- */

struct expected {
	int64_t due_ms, next_due_ms;
	bool is_missed;
};

static int64_t step(const struct schedule *s, int64_t after_ms)
{
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < s->n; i++) {
		int64_t due = cron_next(&s->crons[i], after_ms);

		first = due < first ? due : first;
	}
	return first;
}

static struct expected walk(const struct schedule *s, int64_t last_ms, int64_t now_ms)
{
	struct expected e = {0};
	int n = 0;

	for (int64_t due = step(s, last_ms); schedule_start_ms(s, due) <= now_ms; n++) {
		e.due_ms = due;
		due = step(s, due);
	}
	e.next_due_ms = step(s, e.due_ms ? e.due_ms : last_ms);
	e.is_missed = n > 1 || (n && now_ms - schedule_start_ms(s, e.due_ms) > MINUTE);
	return e;
}

/* From time to time a day of looks, with restarts after minutes or weeks. */
static int64_t random_pause(void)
{
	switch (rand() % 8) {
	case 0:
		return rand() % (int)(3 * HOUR);
	case 1:
		return rand() % 40 * DAY + rand() % (int)DAY;
	default:
		return 1 + rand() % (int)(2 * MINUTE);
	}
}

static void play(const struct schedule *s, int64_t from_ms, int n_looks)
{
	int64_t now_ms = from_ms, last_ms = from_ms;

	for (int i = 0; i < n_looks; i++) {
		struct schedule_look look = schedule_look(s, last_ms, now_ms);
		struct expected e = walk(s, last_ms, now_ms);

		assert_int_equal(look.due_ms, e.due_ms);
		assert_int_equal(look.next_due_ms, e.next_due_ms);
		assert_int_equal(look.is_missed, e.is_missed);
		assert_int_equal(look.next_ms, schedule_start_ms(s, e.next_due_ms));
		assert_true(look.next_ms > now_ms);
		assert_int_equal(look.last_ms, look.due_ms ? look.due_ms : last_ms);
		last_ms = look.last_ms;
		/* A second look at once finds nothing due; the first moment of the next period does. */
		assert_int_equal(schedule_look(s, last_ms, now_ms).due_ms, 0);
		assert_int_equal(schedule_look(s, last_ms, look.next_ms).due_ms, look.next_due_ms);
		now_ms += random_pause();
	}
}

static void test_years(void **state)
{
	static const char *const sets[][3] = {
	    {"0 2 * * *"},
	    {"* * * * *"},
	    {"*/7 * * * *"},
	    {"0 0 29 2 *"},
	    {"59 23 31 * *"},
	    {"0 0 31 12 *", "0 0 1 1 *"},
	    {"0 2 * * mon-fri", "30 14 * * sat", "@monthly"},
	    {"0 0 13 * fri"},
	    {"@hourly", "*/20 3 * * *"},
	};
	static const char *const names[] = {"ascend-npu", "spyre", "a", "habana-gaudi-hpu"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		for (size_t k = 0; k < ARRAY_LEN(names); k++) {
			struct schedule s = make(names[k], crons(sets[i][0], sets[i][1], sets[i][2]), JITTER);

			play(&s, at("2026-11-20T12:00:00Z"), 60);
			schedule_release(&s);
		}
}

/* ---- the calendar ---- */

static void check_dues(const char *cron, const char *from, const char *const *dues)
{
	struct schedule s = make("x", crons(cron, NULL, NULL), JITTER);
	struct schedule_look look = schedule_look(&s, at(from), at(from));
	char text[RFC3339_BYTES];

	for (; *dues; dues++) {
		assert_string_equal(rfc3339_format(look.next_due_ms, text), *dues);
		look = schedule_look(&s, look.last_ms, look.next_ms);
		assert_string_equal(rfc3339_format(look.due_ms, text), *dues);
		assert_false(look.is_missed);
	}
	schedule_release(&s);
}

static void test_calendar(void **state)
{
	(void)state;
	check_dues("0 0 29 2 *", "2026-11-20T12:00:00Z",
	    (const char *const[]){"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z", "2036-02-29T00:00:00Z", NULL});
	check_dues("0 0 29 2 *", "2096-03-01T00:00:00Z", (const char *const[]){"2104-02-29T00:00:00Z", NULL});
	check_dues("0 4 31 * *", "2026-11-20T12:00:00Z",
	    (const char *const[]){
		"2026-12-31T04:00:00Z", "2027-01-31T04:00:00Z", "2027-03-31T04:00:00Z", "2027-05-31T04:00:00Z", NULL});
	check_dues("30 23 28-31 2 *", "2028-02-28T00:00:00Z",
	    (const char *const[]){"2028-02-28T23:30:00Z", "2028-02-29T23:30:00Z", "2029-02-28T23:30:00Z", NULL});
	check_dues("59 23 31 12 *", "2026-12-31T23:58:00Z",
	    (const char *const[]){"2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z", NULL});
}

/* UTC has no summer time, for any time zone of this machine. */
static void test_summer_time(void **state)
{
	struct schedule s;
	int64_t now_ms, last_due_ms = 0;

	(void)state;
	setenv("TZ", "Europe/Berlin", 1);
	tzset();
	s = make("x", crons("30 2 * * *", NULL, NULL), JITTER);
	now_ms = at("2027-03-01T00:00:00Z");
	for (int64_t last_ms = now_ms; now_ms < at("2027-11-30T00:00:00Z"); now_ms += MINUTE) {
		struct schedule_look look = schedule_look(&s, last_ms, now_ms);

		last_ms = look.last_ms;
		if (!look.due_ms)
			continue;
		assert_true(!last_due_ms || look.due_ms - last_due_ms == DAY);
		last_due_ms = look.due_ms;
	}
	assert_int_equal(last_due_ms, at("2027-11-29T02:30:00Z"));
	schedule_release(&s);
	unsetenv("TZ");
	tzset();
}

/* ---- jitter ---- */

static void test_jitter(void **state)
{
	int64_t due_ms = at("2026-11-21T02:00:00Z"), least = INT64_MAX, most = 0;
	char name[32];

	(void)state;
	for (int i = 0; i < 300; i++) {
		struct schedule s, again, none, minutely;
		int64_t delay;

		snprintf(name, sizeof(name), "chip-%d", i);
		s = make(name, crons("0 2 * * *", NULL, NULL), JITTER);
		again = make(name, crons("0 2 * * *", NULL, NULL), JITTER);
		none = make(name, crons("0 2 * * *", NULL, NULL), 0);
		minutely = make(name, crons("* * * * *", NULL, NULL), JITTER);
		delay = schedule_start_ms(&s, due_ms) - due_ms;
		assert_in_range(delay, 0, JITTER - 1);
		assert_int_equal(schedule_start_ms(&again, due_ms), due_ms + delay);
		assert_int_equal(schedule_start_ms(&none, due_ms), due_ms);
		assert_in_range(schedule_start_ms(&minutely, due_ms) - due_ms, 0, 15 * SECOND - 1);
		least = delay < least ? delay : least;
		most = delay > most ? delay : most;
		schedule_release(&s);
		schedule_release(&again);
		schedule_release(&none);
		schedule_release(&minutely);
	}
	assert_true(least < MINUTE && most > 14 * MINUTE);
}

/* No minute is left out, and none comes twice. */
static void test_every_minute(void **state)
{
	struct schedule s = make("busy", crons("* * * * *", NULL, NULL), JITTER);
	int64_t from_ms = at("2026-12-31T22:00:00Z"), last_ms = from_ms;
	int n = 0;

	(void)state;
	for (int64_t now_ms = from_ms; now_ms <= from_ms + 4 * HOUR; now_ms += 5 * SECOND) {
		struct schedule_look look = schedule_look(&s, last_ms, now_ms);

		last_ms = look.last_ms;
		if (!look.due_ms)
			continue;
		assert_false(look.is_missed);
		assert_int_equal(look.due_ms, from_ms + ++n * MINUTE);
	}
	assert_in_range(n, 239, 240);
	schedule_release(&s);
}

/* ---- the clock is put ---- */

/* For any clock change, a look returns at most one due time. The caller, like the store, distinguishes repeated times
 * from new ones. */
static void test_steps(void **state)
{
	static const int64_t steps[] = {
	    -30 * SECOND, 5 * MINUTE, -3 * HOUR, 400 * DAY, -400 * DAY, 3650 * DAY, -3700 * DAY};
	enum { LOOKS = 4000 };
	int64_t *acted = xcalloc(LOOKS, sizeof(*acted)), now_ms = at("2026-11-20T12:00:00Z");
	struct schedule s = make("x", crons("*/30 * * * *", "0 2 * * *", NULL), JITTER);
	int64_t last_ms = now_ms;
	size_t n = 0;

	(void)state;
	for (int i = 0; i < LOOKS; i++) {
		struct schedule_look look = schedule_look(&s, last_ms, now_ms);
		bool is_known = false;

		assert_true(look.next_ms > now_ms && look.next_ms <= now_ms + 2 * HOUR);
		assert_true(look.last_ms <= now_ms);
		last_ms = look.last_ms;
		for (size_t k = 0; k < n; k++)
			is_known |= acted[k] == look.due_ms;
		if (look.due_ms && !is_known) {
			assert_true(schedule_start_ms(&s, look.due_ms) <= now_ms);
			acted[n++] = look.due_ms;
		}
		now_ms += 5 * MINUTE;
		if (i % 500 == 499)
			now_ms += steps[i / 500 % (int)ARRAY_LEN(steps)];
	}
	/* Half-hourly, looked at each 5 min: every due time of the quiet stretches is there. */
	assert_in_range(n, LOOKS / 6 - 60, LOOKS / 6 + 60);
	free(acted);
	schedule_release(&s);
}

/* A clock that was set back from the year 2036 does not stop runs for ten years. */
static void test_clock_set_far_back(void **state)
{
	struct schedule s = make("x", crons("0 2 * * *", NULL, NULL), 0);
	int64_t now_ms = at("2026-11-20T12:00:00Z");
	struct schedule_look look = schedule_look(&s, at("2036-01-01T02:00:00Z"), now_ms);

	(void)state;
	assert_int_equal(look.due_ms, 0);
	assert_int_equal(look.last_ms, now_ms);
	assert_int_equal(look.next_due_ms, at("2026-11-21T02:00:00Z"));
	schedule_release(&s);
}

/* "due/next" of the first look at another schedule, by the clock of that day; - for no due time. */
static char *edited(const char *before, const char *after, const char *last, const char *now)
{
	struct schedule old = make("x", crons(before, NULL, NULL), JITTER);
	struct schedule s = make("x", crons(after, NULL, NULL), JITTER);
	struct schedule_look look = schedule_look_at_other(&s, &old, at(last), at(now));
	char due[RFC3339_BYTES] = "", next[RFC3339_BYTES];

	if (look.due_ms)
		rfc3339_format(look.due_ms, due);
	rfc3339_format(look.next_due_ms, next);
	assert_true(look.last_ms <= at(now));
	schedule_release(&old);
	schedule_release(&s);
	return xasprintf("%.5s %.5s%s", look.due_ms ? due + 11 : "-", next + 11, look.is_missed ? " missed" : "");
}

#define ASSERT_EDITED(before, after, last, now, expected)                                                              \
	do {                                                                                                           \
		char *got_ = edited(before, after, "2026-11-20T" last "Z", "2026-11-20T" now "Z");                     \
		assert_string_equal(got_, expected);                                                                   \
		free(got_);                                                                                            \
	} while (0)

static void test_edited(void **state)
{
	struct schedule s = make("x", crons("0 2 * * *", NULL, NULL), JITTER);
	int64_t delay_ms = schedule_start_ms(&s, at("2026-11-20T02:00:00Z")) - at("2026-11-20T02:00:00Z");

	(void)state;
	assert_in_range(delay_ms, MINUTE, JITTER); /* of this name: the steps below need a record */
	schedule_release(&s);
	ASSERT_EDITED("0 2 * * *", "0 11 * * *", "01:00:00", "01:30:00", "- 11:00");
	/* 02:00 was missed while Outpost was down, and the file was edited meanwhile. */
	ASSERT_EDITED("0 2 * * *", "0 11 * * *", "01:00:00", "05:00:00", "02:00 11:00 missed");
	ASSERT_EDITED("0 2 * * *", "0 11 * * *", "02:00:00", "05:00:00", "- 11:00");
	/* Past times of the new schedule do not count as missed, and a run is not repeated. */
	ASSERT_EDITED("0 2 * * *", "0 3 * * *", "02:00:00", "05:00:00", "- 03:00");
	/* During the delay: a time that both schedules have stays, a time that the new one lacks is dropped. */
	ASSERT_EDITED("0 2 * * *", "0 2,14 * * *", "01:00:00", "02:00:01", "- 02:00");
	ASSERT_EDITED("0 2 * * *", "0 14 * * *", "01:00:00", "02:00:01", "- 14:00");
	/* The clock was put back. */
	ASSERT_EDITED("0 2 * * *", "0 14 * * *", "05:00:00", "01:00:00", "- 14:00");
}

static void test_never(void **state)
{
	struct schedule s = make("x", NULL, JITTER);
	struct schedule_look look = schedule_look(&s, 0, at("2026-11-20T12:00:00Z"));

	(void)state;
	assert_int_equal(look.due_ms, 0);
	assert_int_equal(look.next_ms, 0);
	schedule_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_years),
	    cmocka_unit_test(test_calendar),
	    cmocka_unit_test(test_summer_time),
	    cmocka_unit_test(test_jitter),
	    cmocka_unit_test(test_every_minute),
	    cmocka_unit_test(test_steps),
	    cmocka_unit_test(test_clock_set_far_back),
	    cmocka_unit_test(test_edited),
	    cmocka_unit_test(test_never),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
