/* When the circuit breaker trips and recovers; when a level is proposed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/health.h"
#include "model/promotion.h"

/* Newest first: r red, g green, n red by its own fault. */
static bool unhealthy(const char *text, bool was)
{
	struct health_sample samples[HEALTH_LOOKS_AT] = {{0}};
	size_t n = strlen(text);

	assert_in_range(n, 0, HEALTH_LOOKS_AT);
	for (size_t i = 0; i < n; i++)
		samples[i] = (struct health_sample){text[i] != 'g', text[i] == 'n'};
	return health_is_unhealthy(samples, n, was);
}

static void the_breaker_trips_and_recovers(void **state)
{
	static const struct {
		const char *samples;
		bool was, is;
	} cases[] = {
	    {"", false, false},
	    {"", true, true}, /* nothing was heard of it since */
	    {"rrrrrrr", false, false},
	    {"rrrrrrrr", false, true},
	    {"rrrrrrrrgg", false, true},
	    {"ggrrrrrrrr", false, true},
	    {"rrrrrrrggg", false, false},
	    {"gggrrrrrrrr", false, false}, /* seven of the newest ten */
	    {"grgrrrrrrrrr", false, true},
	    /* what a change broke itself says nothing of the accelerator */
	    {"nnnnnnnnnn", false, false},
	    {"rnrnrnrnrnrnrnr", false, true},
	    {"rnrnrnrnrnrnrg", false, false},
	    {"nnnnnnnnnnnnrrrrrrrr", false, true},
	    /* recovery */
	    {"ggrrrrrrrr", true, true},
	    {"gggrrrrrrr", true, false},
	    {"gnggrrrrrr", true, false},
	    {"rgggrrrrrr", true, true}, /* not any more in a row */
	    {"rgrgrgrgrg", true, true}, /* half is not less than half */
	    {"rggrggrggr", true, false},
	    {"grrggrggrg", true, false},
	    {"rg", true, true}, /* too few to call it less than half */
	    {"ggg", true, false},
	    {"nnnnnnnn", true, true},
	    /* between the two it stays what it was */
	    {"rrrrrrgggg", false, false},
	    {"rrrrrrgggg", true, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (unhealthy(cases[i].samples, cases[i].was) != cases[i].is)
			fail_msg("%s after %d", cases[i].samples, cases[i].was);
}

static const struct level_thresholds L3 = {80, 90, 20, 3600000, 4 * 3600000, 3 * 86400000};
static const struct level_thresholds L4 = {95, 98, 100, 1800000, 2 * 3600000, 86400000};

static struct level_numbers good(void)
{
	return (struct level_numbers){.n_push_runs = 100,
	    .n_push_green = 95,
	    .n_dispatches = 1000,
	    .n_deadlines_met = 980,
	    .queue_p90_ms = 1800000,
	    .run_p90_ms = 2 * 3600000,
	    .n_episodes = 1,
	    .reaction_ms = 86400000};
}

static void a_level_is_proposed_by_its_numbers(void **state)
{
	struct level_numbers n = good(),
			     none = {.queue_p90_ms = -1, .run_p90_ms = -1, .reaction_ms = -1};
	struct level_proposal p;

	(void)state;
	assert_int_equal(level_propose(LEVEL_1, &n, &L3, &L4).level, LEVEL_1);
	p = level_propose(LEVEL_2, &n, &L3, &L4);
	assert_int_equal(p.level, LEVEL_3); /* one step, although L4's are met as well */
	assert_int_equal(p.unmet_next, 0);
	assert_int_equal(level_propose(LEVEL_3, &n, &L3, &L4).level, LEVEL_4);
	assert_int_equal(level_propose(LEVEL_4, &n, &L3, &L4).level, LEVEL_4);

	p = level_propose(LEVEL_2, &none, &L3, &L4);
	assert_int_equal(p.level, LEVEL_2);
	assert_int_equal(p.unmet_now, 0); /* L2 demands nothing */
	assert_int_equal(p.unmet_next, 1 << CRITERION_RUNS | 1 << CRITERION_PASS |
					   1 << CRITERION_DEADLINES | 1 << CRITERION_QUEUE |
					   1 << CRITERION_RUN);
	p = level_propose(LEVEL_4, &none, &L3, &L4);
	assert_int_equal(p.level, LEVEL_3); /* one step down */
	assert_int_equal(p.unmet_next, 0);
}

static void each_criterion_counts(void **state)
{
	static const struct {
		enum level_criterion c;
		const char *name;
		size_t member;
		int64_t bad;
	} cases[] = {
	    {CRITERION_RUNS, "push_runs", offsetof(struct level_numbers, n_push_runs), 99},
	    {CRITERION_PASS, "pass_rate", offsetof(struct level_numbers, n_push_green), 94},
	    {CRITERION_DEADLINES, "deadlines_met", offsetof(struct level_numbers, n_deadlines_met),
		979},
	    {CRITERION_QUEUE, "queue_time", offsetof(struct level_numbers, queue_p90_ms), 1800001},
	    {CRITERION_RUN, "run_time", offsetof(struct level_numbers, run_p90_ms), 7200001},
	    {CRITERION_REACTION, "reaction_time", offsetof(struct level_numbers, reaction_ms),
		86400001},
	};
	struct level_numbers n = good();
	struct level_proposal p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		n = good();
		*(int64_t *)((char *)&n + cases[i].member) = cases[i].bad;
		p = level_propose(LEVEL_3, &n, &L3, &L4);
		assert_int_equal(p.level, LEVEL_3);
		assert_int_equal(p.unmet_next, 1 << cases[i].c);
		assert_int_equal(p.unmet_now, 0);
		assert_int_equal(level_propose(LEVEL_4, &n, &L3, &L4).level, LEVEL_3);
		assert_string_equal(level_criterion_name(cases[i].c), cases[i].name);
	}
	n = good();
	n.is_overdue = true;
	p = level_propose(LEVEL_3, &n, &L3, &L4);
	assert_int_equal(p.level, LEVEL_2);
	assert_int_equal(p.unmet_now, 1 << CRITERION_OVERDUE);
	assert_string_equal(level_criterion_name(CRITERION_OVERDUE), "overdue");
	assert_null(level_criterion_name(N_CRITERIA));
}

static void zero_demands_nothing(void **state)
{
	static const struct level_thresholds any = {0};
	struct level_numbers none = {.queue_p90_ms = -1, .run_p90_ms = -1, .reaction_ms = -1};

	(void)state;
	assert_int_equal(level_propose(LEVEL_3, &none, &any, &any).level, LEVEL_4);
	none.reaction_ms = INT64_C(1) << 40;
	assert_int_equal(level_propose(LEVEL_3, &none, &any, &any).level, LEVEL_4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_breaker_trips_and_recovers),
	    cmocka_unit_test(a_level_is_proposed_by_its_numbers),
	    cmocka_unit_test(each_criterion_counts),
	    cmocka_unit_test(zero_demands_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
