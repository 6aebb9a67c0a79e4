/* When the circuit breaker trips and recovers; when a level is proposed. */
#include <setjmp.h>

#include <cmocka.h>

#include "model/accelerator.h"

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
	    {"", true, true}, /* no report since */
	    {"rrrrrrr", false, false},
	    {"rrrrrrrr", false, true},
	    {"rrrrrrrrgg", false, true},
	    {"ggrrrrrrrr", false, true},
	    {"rrrrrrrggg", false, false},
	    {"gggrrrrrrrr", false, false}, /* seven of the newest ten */
	    {"grgrrrrrrrrr", false, true},
	    /* failures that a change caused do not count against the accelerator */
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
	    /* between the two limits the state does not change */
	    {"rrrrrrgggg", false, false},
	    {"rrrrrrgggg", true, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (unhealthy(cases[i].samples, cases[i].was) != cases[i].is)
			fail_msg("%s after %d", cases[i].samples, cases[i].was);
}

#define HOUR (INT64_C(3600) * 1000)
#define DAY  (24 * HOUR)

static const struct level_thresholds L3 = {30 * DAY, 14 * DAY, 3 * HOUR, HOUR / 2, 1, 1, 90, 0, 0, true};
static const struct level_thresholds L4 = {30 * DAY, 14 * DAY, 3 * HOUR, HOUR / 2, 1, 1, 90, 0, 0, false};

/* All numbers just meet CRCR's criteria. */
static struct level_numbers good(void)
{
	struct level_window w = {.n_jobs = 1000,
	    .n_passed = 900,
	    .n_timed_out = 9,
	    .n_overrun = 9,
	    .end_to_end_ms = 3 * HOUR - 1,
	    .queue_ms = HOUR / 2 - 1};

	return (struct level_numbers){
	    .promotion = w, .demotion = w, .tenure_ms = 30 * DAY, .data_ms = 14 * DAY, .reaction_ms = -1};
}

static struct level_numbers no_numbers(void)
{
	struct level_window w = {.end_to_end_ms = -1, .queue_ms = -1};

	return (struct level_numbers){.promotion = w, .demotion = w, .tenure_ms = -1, .data_ms = -1, .reaction_ms = -1};
}

static void a_level_is_proposed_by_its_numbers(void **state)
{
	struct level_numbers n = good(), none = no_numbers();
	struct level_thresholds by_numbers = L4;
	struct level_proposal p;

	(void)state;
	by_numbers.is_proposed = true;
	assert_int_equal(level_propose(LEVEL_1, &n, &L3, &L4).level, LEVEL_1);
	p = level_propose(LEVEL_2, &n, &L3, &by_numbers);
	assert_int_equal(p.level, LEVEL_3); /* one step, although L4's are met as well */
	assert_int_equal(p.unmet_next, 0);
	assert_int_equal(level_propose(LEVEL_3, &n, &L3, &by_numbers).level, LEVEL_4);

	/* CRCR leaves L4 to the core maintainers: the best numbers propose nothing. */
	p = level_propose(LEVEL_3, &n, &L3, &L4);
	assert_int_equal(p.level, LEVEL_3);
	assert_int_equal(p.unmet_next, 1 << CRITERION_MAINTAINERS);
	assert_int_equal(level_propose(LEVEL_4, &n, &L3, &L4).level, LEVEL_4);

	p = level_propose(LEVEL_2, &none, &L3, &L4);
	assert_int_equal(p.level, LEVEL_2);
	assert_int_equal(p.unmet_now, 0); /* L2 has no criteria */
	assert_int_equal(p.unmet_next, 1 << CRITERION_TENURE | 1 << CRITERION_DATA | 1 << CRITERION_END_TO_END |
					   1 << CRITERION_OVERRUN | 1 << CRITERION_QUEUE | 1 << CRITERION_TIMEOUT |
					   1 << CRITERION_PASS);
	assert_false(p.is_silent);

	/* Missing reports are listed, and nothing is proposed. */
	p = level_propose(LEVEL_3, &none, &L3, &L4);
	assert_int_equal(p.level, LEVEL_3);
	assert_int_equal(p.unmet_now, 0);
	assert_true(p.is_silent);
}

/* Each number just misses CRCR's criteria; three of them count for a demotion as well. */
static void each_criterion_counts(void **state)
{
	static const struct {
		enum level_criterion c;
		const char *name;
		size_t member; /* of a window, or of the numbers */
		int64_t bad;
		bool is_of_window, demotes;
	} cases[] = {
	    {CRITERION_TENURE, "tenure", offsetof(struct level_numbers, tenure_ms), 30 * DAY - 1, false, false},
	    {CRITERION_DATA, "data", offsetof(struct level_numbers, data_ms), 14 * DAY - 1, false, false},
	    {CRITERION_END_TO_END, "end_to_end_time", offsetof(struct level_window, end_to_end_ms), 3 * HOUR, true,
		true},
	    {CRITERION_OVERRUN, "overrun_rate", offsetof(struct level_window, n_overrun), 10, true, false},
	    {CRITERION_QUEUE, "queue_time", offsetof(struct level_window, queue_ms), HOUR / 2, true, false},
	    {CRITERION_TIMEOUT, "timeout_rate", offsetof(struct level_window, n_timed_out), 10, true, true},
	    {CRITERION_PASS, "pass_rate", offsetof(struct level_window, n_passed), 899, true, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct level_numbers n = good();
		char *base = cases[i].is_of_window ? (char *)&n.promotion : (char *)&n;
		struct level_proposal p;

		*(int64_t *)(base + cases[i].member) = cases[i].bad;
		p = level_propose(LEVEL_2, &n, &L3, &L4);
		assert_int_equal(p.level, LEVEL_2);
		assert_int_equal(p.unmet_next, 1 << cases[i].c);
		assert_int_equal(level_propose(LEVEL_3, &n, &L3, &L4).level, LEVEL_3);
		assert_string_equal(level_criterion_name(cases[i].c), cases[i].name);
		if (!cases[i].is_of_window)
			continue;
		n = good();
		*(int64_t *)((char *)&n.demotion + cases[i].member) = cases[i].bad;
		p = level_propose(LEVEL_3, &n, &L3, &L4);
		assert_int_equal(p.level, cases[i].demotes ? LEVEL_2 : LEVEL_3);
		assert_int_equal(p.unmet_now, cases[i].demotes ? 1 << cases[i].c : 0);
		assert_int_equal(level_propose(LEVEL_4, &n, &L3, &L4).level, cases[i].demotes ? LEVEL_3 : LEVEL_4);
	}
	assert_null(level_criterion_name(N_CRITERIA));
}

/* test-infra#8673: a vendor is not demoted for a failure of upstream, and both numbers are shown. */
static void failures_of_upstream_are_counted_apart(void **state)
{
	struct level_numbers n = good();
	struct level_finding list[N_CRITERIA];
	struct level_proposal p;
	size_t n_findings;

	(void)state;
	n.demotion.n_passed = 800;
	assert_int_equal(level_propose(LEVEL_3, &n, &L3, &L4).level, LEVEL_2);
	n.demotion.n_upstream = 150;
	p = level_propose(LEVEL_3, &n, &L3, &L4);
	assert_int_equal(p.level, LEVEL_3);
	n_findings = level_findings(&n, &L3, STEP_DOWN, list);
	assert_int_equal(n_findings, 3);
	assert_int_equal(list[2].criterion, CRITERION_PASS);
	assert_true(list[2].measured > 0.941 && list[2].measured < 0.942);
	assert_true(list[2].with_upstream > 0.799 && list[2].with_upstream < 0.801);
	assert_int_equal(list[2].met, MET_YES);

	/* Upstream broke all of them, so no result counts. */
	n.demotion.n_passed = 0;
	n.demotion.n_upstream = 1000;
	p = level_propose(LEVEL_3, &n, &L3, &L4);
	assert_int_equal(p.level, LEVEL_3);
	assert_int_equal(p.unmet_now, 0);
}

static void operators_can_add_criteria_that_crcr_lacks(void **state)
{
	struct level_thresholds more = L3;
	struct level_finding list[N_CRITERIA];
	struct level_numbers n = good();

	(void)state;
	n.n_dispatches = 100;
	n.n_deadlines_met = 89;
	n.reaction_ms = 3 * DAY + 1;
	assert_int_equal(level_propose(LEVEL_2, &n, &L3, &L4).level, LEVEL_3);
	more.deadlines_percent = 90;
	more.reaction_ms = 3 * DAY;
	assert_int_equal(
	    level_propose(LEVEL_2, &n, &more, &L4).unmet_next, 1 << CRITERION_DEADLINES | 1 << CRITERION_REACTION);
	n.n_deadlines_met = 90;
	n.reaction_ms = 3 * DAY;
	assert_int_equal(level_propose(LEVEL_2, &n, &more, &L4).level, LEVEL_3);
	for (size_t i = 0, k = level_findings(&n, &more, STEP_UP, list); i < k; i++)
		if (list[i].criterion == CRITERION_REACTION)
			assert_true(list[i].target == 3 * DAY / 1000);
	n.reaction_ms = -1; /* it was never red */
	assert_int_equal(level_propose(LEVEL_2, &n, &more, &L4).level, LEVEL_3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_breaker_trips_and_recovers),
	    cmocka_unit_test(a_level_is_proposed_by_its_numbers),
	    cmocka_unit_test(each_criterion_counts),
	    cmocka_unit_test(failures_of_upstream_are_counted_apart),
	    cmocka_unit_test(operators_can_add_criteria_that_crcr_lacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
