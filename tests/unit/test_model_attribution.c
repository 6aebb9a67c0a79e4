/* A table of cases for each rule, named after the scenario in docs/attribution.md that requires it. */
#include <setjmp.h>

#include <cmocka.h>

#include "model/attribution.h"
#include "model/experiment.h"

enum { DISTANCE = 20, K = 1, L = 2 };

/* The branch, newest first: "-2g 0r 3o 5e": distance, then g green, r red with K, o red with another key, e ERROR with
 * K, m red with K and green, x red with another key and green, s skipped; R and G: the same by an experiment, D red in two of them; v red with K on another device. */
static size_t branch(const char *text, struct base_run *runs)
{
	size_t n = 0;

	while (*text) {
		char *end;
		long distance = strtol(text, &end, 10);

		runs[n] = (struct base_run){.outcome = *end == 'g' || *end == 'G'   ? BASE_GREEN
						       : *end == 'm' || *end == 'x' ? BASE_MIXED
						       : *end == 's'                ? BASE_SKIPPED
										    : BASE_RED,
		    .is_experiment = *end && strchr("RGDT", *end),
		    .experiment_ended_ms = *end == 'G' ? 5 : 0,
		    .is_other_build = *end == 'v',
		    .n_red = *end == 'T'   ? 3
			     : *end == 'D' ? 2
					   : 1,
		    .n_red_alike = *end == 'T'   ? 3
				   : *end == 'D' ? 2
						 : 1,
		    .mark = {.status = *end == 'e' ? TEST_ERROR : TEST_FAIL, .key = *end == 'o' || *end == 'x' ? L : K},
		    .distance = (int)distance,
		    .job = 100 + (int)distance,
		    .sha = "abc1234def"};
		n++;
		text = end + 1;
		text += strspn(text, " ");
	}
	return n;
}

static struct attribution_result judge(const char *base, struct attribution_facts f)
{
	struct base_run runs[32];

	f.is_base_known = base != NULL;
	f.max_distance = DISTANCE;
	f.base = runs;
	f.n_base = base ? branch(base, runs) : 0;
	return attribute(&f);
}

static const struct attribution_facts
    SPECIFIC = {.mark = {.status = TEST_FAIL, .key = K}, .is_specific = true, .here = {1, 1}},
    GENERAL = {.mark = {.status = TEST_FAIL, .key = K, .is_general = true}, .here = {1, 1}},
    MACHINE = {.mark = {.status = TEST_FAIL, .key = K, .is_infrastructure = true}, .is_specific = true, .here = {1, 1}};

#define ASSERT_JUDGED(result, a)                                                                                       \
	do {                                                                                                           \
		struct attribution_result r_ = (result);                                                               \
		assert_string_equal(attribution_name(r_.attribution), #a);                                             \
		assert_true(r_.reason[0]);                                                                             \
	} while (0)

struct base_case {
	const char *base, *expected;
};

static void assert_cases(const struct base_case *cases, size_t n, const struct attribution_facts *facts)
{
	for (size_t i = 0; i < n; i++) {
		struct attribution_result r = judge(cases[i].base, *facts);

		if (strcmp(attribution_name(r.attribution), cases[i].expected) != 0)
			fail_msg("%s: %s (%s), not %s", cases[i].base, attribution_name(r.attribution), r.reason,
			    cases[i].expected);
	}
}
#define ASSERT_CASES(facts, ...)                                                                                       \
	do {                                                                                                           \
		static const struct base_case CASES_[] = {__VA_ARGS__};                                                \
		assert_cases(CASES_, ARRAY_LEN(CASES_), facts);                                                        \
	} while (0)

static void known_issue(void **state)
{
	struct attribution_facts f = SPECIFIC;
	struct attribution_result r;

	(void)state;
	f.known_url = "https://example.org/1";
	r = judge("0r", f);
	ASSERT_JUDGED(r, KNOWN);
	assert_string_equal(r.known_url, f.known_url);
	assert_int_equal(r.needs, 0);
	ASSERT_JUDGED(judge("0g", f), KNOWN);
	ASSERT_JUDGED(judge(NULL, f), KNOWN);
}

static void red_on_the_merge_base(void **state)
{
	(void)state;
	ASSERT_CASES(&SPECIFIC, {"0r", "BASE"}, {"-1r 0r 1g", "BASE"}, {"-1g 0r 1r 2g", "BASE"}, {"-1g 0r", "BASE"},
	    {"0r 1g", "BASE"}, {"0o", "UNCLASSIFIED"} /* another breakage in the same test */,
	    {"0e", "UNCLASSIFIED"} /* another status */, {"0s", "UNCLASSIFIED"}, {"", "UNCLASSIFIED"});
	assert_int_equal(judge("0r", SPECIFIC).evidence_job, 100);
	assert_string_equal(judge("0r", SPECIFIC).reason, "red on the merge base abc1234, too");
	assert_int_equal(judge("0r", SPECIFIC).needs, 0);
}

/* The truncated part may show another cause. Finding 9 */
static void a_truncated_message_is_no_evidence(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	f.mark.is_cut = true;
	ASSERT_CASES(&f, {"0r", "UNCLASSIFIED"}, {"0R", "UNCLASSIFIED"}, {"-1r 0r 1r", "UNCLASSIFIED"},
	    {"-1r 1r", "UNCLASSIFIED"}, {"0g", "NEW"});
	assert_string_equal(judge("0R", f).reason, "red on the merge base, but the message was cut");
}

/* Findings 3, 4: its own first landing may be the cause of the failure there */
static void own_and_related_commits_on_the_branch(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	f.has_own_landing = true;
	ASSERT_CASES(&f, {"0r", "UNCLASSIFIED"}, {"0R", "UNCLASSIFIED"}, {"-1r 1r", "UNCLASSIFIED"}, {"0g", "NEW"});
	f.has_own_landing = false;
	f.has_own_commit = true; /* the merge base is red without the change, whichever commit broke it */
	ASSERT_CASES(&f, {"0r", "BASE"}, {"0R", "BASE"}, {"-1r 1r", "UNCLASSIFIED"}, {"0g", "NEW"});
	assert_non_null(strstr(judge("-1r 1r", f).reason, "but the author may have broken it"));
	f.has_own_commit = false;
	f.has_related_commit = true;
	ASSERT_CASES(&f, {"0r", "BASE"}, {"-1r 1r", "UNCLASSIFIED"});
}

static void flake_on_the_merge_base(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	/* it passed there as well */
	ASSERT_CASES(&SPECIFIC, {"0m", "UNCLASSIFIED"}, {"-1r 0m 1r", "UNCLASSIFIED"}, {"-1g 0r 1g", "UNCLASSIFIED"},
	    {"0r 1g", "BASE"}, {"-1g 0r", "BASE"});
	assert_int_equal(judge("0m", SPECIFIC).needs, NEEDS_HEAD);
	/* another flake of the same test is no evidence against that pass */
	ASSERT_JUDGED(judge("0x", SPECIFIC), NEW);
	assert_int_equal(judge("0o", SPECIFIC).needs, NEEDS_HEAD | NEEDS_BASE);
	f.n_proved = 1; /* red there once, and known to be flaky */
	ASSERT_CASES(&f, {"-1g 0r 1g", "UNCLASSIFIED"}, {"-1g 0r 1r 2g", "UNCLASSIFIED"}, {"-1g 0r 1r 2r 3g", "BASE"},
	    {"0r", "UNCLASSIFIED"}, {"0r 1g", "UNCLASSIFIED"}, {"0R", "UNCLASSIFIED"});
	assert_non_null(strstr(judge("0r 1g", f).reason, "once, and flaky elsewhere"));
	f = SPECIFIC;
	f.accepts_experiments = true; /* the base can be tested again */
	ASSERT_CASES(&f, {"0r", "UNCLASSIFIED"}, {"0r 1r", "UNCLASSIFIED"} /* it may be flaky */,
	    {"0R", "UNCLASSIFIED"}, {"0R 1r", "UNCLASSIFIED"}, {"-1r 0R 1r 2r", "UNCLASSIFIED"}, {"0D", "BASE"},
	    {"0D 1r", "BASE"}, {"-2r -1r 0r 1r 2r 3r", "BASE"} /* hardly chance */);
	assert_non_null(strstr(judge("0R 1r", f).reason, "once, which may be chance"));
	assert_int_equal(judge("0r 1r", f).needs, NEEDS_BASE);
	assert_int_equal(judge("0R 1r", f).needs, NEEDS_BASE);
	f.elsewhere = (struct rate){0, 20}; /* it is not */
	ASSERT_CASES(&f, {"-1g 0r 1g", "UNCLASSIFIED"}, {"0r 1g", "UNCLASSIFIED"}, {"0r", "UNCLASSIFIED"},
	    {"0r 1o", "UNCLASSIFIED"}, {"0r 1r", "BASE"}, {"0R", "BASE"},
	    {"0R 1g", "UNCLASSIFIED"} /* the first red one */, {"0D 1g", "BASE"}, {"-1g 0R", "BASE"});
	assert_non_null(strstr(judge("0R 1g", f).reason, "once, and green before it"));
	assert_int_equal(judge("-1g 0r 1g", f).needs, NEEDS_BASE);
	f.n_seen = 2; /* likely flaky: one red run of the base may be chance */
	ASSERT_CASES(&f, {"0R 1g", "UNCLASSIFIED"}, {"0R", "UNCLASSIFIED"}, {"0D 1g", "BASE"},
	    {"0R 1r", "UNCLASSIFIED"} /* neighbours may be chance, too */, {"0D 1r", "BASE"});
	assert_int_equal(judge("0R 1g", f).needs, NEEDS_BASE);
	assert_non_null(strstr(judge("0R 1g", f).reason, "once, and elsewhere"));
	assert_int_equal(judge("0D 1g", f).needs, 0);
	assert_int_equal(judge("0D 1r", f).needs, 0);
	f.is_specific = false; /* others may have seen another failure with this message */
	ASSERT_CASES(&f, {"0D 1g", "UNCLASSIFIED"}, {"0T 1g", "BASE"},
	    {"0R 1r", "UNCLASSIFIED"} /* a neighbouring run replaces one run there, not two */, {"0D 1r", "BASE"},
	    {"-1r 0D 1g", "BASE"}, {"0D 1g 2r", "UNCLASSIFIED"}, {"0D 1x", "UNCLASSIFIED"});
	assert_non_null(strstr(judge("0D 1g", f).reason, "twice, and elsewhere"));
	f.is_specific = true;
	f.passed_here_job = 7; /* it passes and fails on this commit */
	ASSERT_CASES(&f, {"0R 1g", "FLAKY"}, {"0D 1g", "FLAKY"}, {"0R 1r", "FLAKY"});
}

/* The test is flaky on the branch, and the change breaks it permanently, with its usual message. */
static void a_failure_that_comes_and_goes_on_the_branch(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	ASSERT_CASES(&f, {"-8r -7g -2r -1r 0r 1r 2g 8r", "UNCLASSIFIED"}, {"-2r -1r 0r 1r 2g 8r", "BASE"},
	    {"-8r -7r -2r -1r 0r 1r 2g 8r", "BASE"});
	assert_non_null(strstr(
	    judge("-8r -7g 0r 1r 2g 8r", f).reason, "red on the merge base, but the failure comes and goes there"));
	assert_int_equal(judge("-8r -7g 0r 1r 2g 8r", f).needs, NEEDS_BASE);
	f.accepts_experiments = true;
	ASSERT_CASES(&f, {"-8r -7g 0D 1r 2g 8r", "UNCLASSIFIED"},
	    {"-8r -7g 0T 2g 5r 6g 8r", "UNCLASSIFIED"} /* alone it is too little */, {"-8r -7g 0T 1r 2g 8r", "BASE"});
}

/* Another device or version of the extension may be why the branch was red. */
static void red_on_another_machine(void **state)
{
	(void)state;
	ASSERT_CASES(&SPECIFIC, {"0v", "UNCLASSIFIED"}, {"-1v 1v", "UNCLASSIFIED"}, {"-1r 1v", "UNCLASSIFIED"},
	    {"0r 1v", "BASE"});
	assert_string_equal(
	    judge("0v", SPECIFIC).reason, "red on the merge base, but on another device or version of the extension");
	assert_int_equal(judge("0v", SPECIFIC).needs, NEEDS_HEAD | NEEDS_BASE);
}

/* Numbers that differ from run to run do not distinguish breakages; constant numbers do. */
static void numbers_that_vary(void **state)
{
	struct attribution_facts f = SPECIFIC;
	struct base_run runs[] = {
	    {.outcome = BASE_RED, .mark = {TEST_FAIL, K, 1}, .sha = "a"},
	    {.outcome = BASE_RED, .mark = {TEST_FAIL, K, 2}, .distance = 1, .sha = "b"},
	    {.outcome = BASE_RED, .mark = {TEST_FAIL, K, 3}, .distance = 2, .sha = "c"},
	};

	(void)state;
	f.is_base_known = true;
	f.base = runs;
	f.n_base = 2;
	f.mark.numbers = 9;
	ASSERT_JUDGED(attribute(&f), UNCLASSIFIED);
	f.n_base = 3; /* three runs of the branch, three numbers */
	ASSERT_JUDGED(attribute(&f), BASE);
	f.n_base = 1;
	f.numbers_vary = true; /* two runs of this commit, two numbers */
	ASSERT_JUDGED(attribute(&f), BASE);
	f.n_base = 2;
	runs[1].mark.numbers = runs[0].mark.numbers; /* they vary here alone */
	ASSERT_JUDGED(attribute(&f), UNCLASSIFIED);
}

static void fixed_before_the_merge_base(void **state)
{
	(void)state;
	ASSERT_CASES(&SPECIFIC, {"-1g 2r", "UNCLASSIFIED"}, {"-1g 2r 3r 4r", "UNCLASSIFIED"}, {"1g 3r", "UNCLASSIFIED"},
	    {"-1r 1g", "UNCLASSIFIED"} /* it may have come after the merge base */, {"-1r 0g", "NEW"});
}

static void untested_stretch(void **state)
{
	(void)state;
	ASSERT_CASES(&SPECIFIC, {"3r", "UNCLASSIFIED"}, {"-1r", "UNCLASSIFIED"}, {"-2r -1r 3r 4r", "BASE"},
	    {"-22r -21r -20r 20r", "BASE"}, {"-2r -1r 21r 22r", "UNCLASSIFIED"} /* too far */,
	    {"-22r -21r 1r 2r", "UNCLASSIFIED"}, {"-2o -1o 3r 4r", "UNCLASSIFIED"});
	assert_string_equal(
	    judge("-2r -1r 3r 4r", SPECIFIC).reason, "red before and after the merge base: on abc1234 and abc1234");
}

/* Two flakes, one on each side, do not make a breakage: pull requests that are based there show it. */
static void few_red_runs_around(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	ASSERT_CASES(
	    &f, {"-1r 3r", "UNCLASSIFIED"}, {"-2r -1r 3r", "UNCLASSIFIED"}, {"-3r -2g -1r 3r 4r", "UNCLASSIFIED"});
	assert_non_null(strstr(judge("-1r 3r", f).reason, "that may be chance"));
	f.n_red_near = 1;
	ASSERT_CASES(&f, {"-1r 3r", "UNCLASSIFIED"}, {"-2r -1r 3r", "BASE"});
	f.n_red_near = 2;
	ASSERT_CASES(&f, {"-1r 3r", "BASE"});
	f.n_passed_near = 1;
	ASSERT_CASES(&f, {"-1r 3r", "UNCLASSIFIED"}, {"-2r -1r 3r", "UNCLASSIFIED"},
	    {"-2r -1r 3r 4r", "BASE"} /* that change may be the fix */);
}

static void skipped_stretch(void **state)
{
	(void)state;
	ASSERT_CASES(
	    &SPECIFIC, {"-1r 0s 1r", "UNCLASSIFIED"}, {"-1r 1s 2r", "UNCLASSIFIED"}, {"-2r -1s 1r", "UNCLASSIFIED"});
}

static void skipped_on_the_merge_base(void **state)
{
	(void)state;
	assert_int_equal(judge("0s 1r", SPECIFIC).needs, NEEDS_HEAD | NEEDS_BASE);
}

static void revert_and_reland(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	f.may_be_own = true; /* landed, reverted, and now proposed again */
	ASSERT_CASES(&f, {"-1r 2r", "UNCLASSIFIED"}, {"0r", "BASE"} /* it is still there */, {"0g", "NEW"});
	f = SPECIFIC;
	f.has_revert_near = true; /* another author landed it, or the fix was reverted after the merge base */
	ASSERT_CASES(&f, {"-1r 2r", "UNCLASSIFIED"}, {"0r", "BASE"});
}

static void general_message(void **state)
{
	(void)state;
	ASSERT_CASES(&GENERAL, {"0r", "UNCLASSIFIED"}, {"0r 1g", "UNCLASSIFIED"} /* it may be a flake */,
	    {"0r 1r", "BASE"}, {"0r 1r 2g 3g", "BASE"}, {"-1r 0r 1g", "BASE"},
	    {"0r 1r 2g 3r 4g", "UNCLASSIFIED"} /* a flake's pattern */,
	    {"-1g 0r 1r 2g", "UNCLASSIFIED"} /* two flakes in a row */, {"-4g -3g -2g -1g 0r 1r 2g 3g 4g 5g", "BASE"},
	    {"-1g 0r 1r 2r 3g", "BASE"}, {"-3r -2r -1r 1r 2g", "BASE"}, {"-2r -1g 0r 1r 2r 3g", "UNCLASSIFIED"},
	    {"0o 1o 2g", "UNCLASSIFIED"}, {"0g", "NEW"}, {"1g", "UNCLASSIFIED"});
	assert_string_equal(
	    judge("0r 1g", GENERAL).reason, "red on the merge base, but many failures have this message");
}

/* B8 */
static void a_test_without_a_result_has_no_attribution(void **state)
{
	(void)state;
	for (int s = 0; s < N_TEST_STATUSES; s++)
		assert_int_equal(attribution_applies((enum test_status)s), s == TEST_FAIL || s == TEST_ERROR);
}

static void passed_on_this_commit(void **state)
{
	struct attribution_facts f = SPECIFIC, g = GENERAL;

	(void)state;
	f.passed_here_job = g.passed_here_job = 7;
	ASSERT_JUDGED(judge("0g", f), FLAKY);
	ASSERT_JUDGED(judge("0g", g), FLAKY);
	ASSERT_JUDGED(judge(NULL, g), FLAKY);
	assert_int_equal(judge(NULL, g).evidence_job, 7);
	assert_int_equal(judge(NULL, g).needs, 0);
	ASSERT_JUDGED(judge("0r", f), FLAKY); /* a breakage never passes */
}

static void intermittent_by_the_change(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	f.passed_here_job = 7;
	f.here = (struct rate){3, 4};
	f.elsewhere = (struct rate){0, 100};
	ASSERT_JUDGED(judge("0g", f), UNCLASSIFIED);
	assert_string_equal(judge("0g", f).reason, "passes now and then, but fails more often here "
						   "(3 of 4 runs) than elsewhere (0 of 100)");
	assert_int_equal(judge("0g", f).needs, 0);
	f.elsewhere = (struct rate){20, 100}; /* a real flake may do that */
	ASSERT_JUDGED(judge("0g", f), FLAKY);
	f.here = (struct rate){1, 2}; /* a single failure shows nothing */
	f.elsewhere = (struct rate){0, 100};
	ASSERT_JUDGED(judge("0g", f), FLAKY);
	f.here = (struct rate){2, 3}; /* nor do two if few other tests ran */
	f.elsewhere = (struct rate){0, 10};
	ASSERT_JUDGED(judge("0g", f), FLAKY);
	f.mark.is_infrastructure = true; /* a bad machine is bad for hours */
	f.here = (struct rate){3, 4};
	f.elsewhere = (struct rate){0, 100};
	ASSERT_JUDGED(judge("0g", f), FLAKY);
	f.here = (struct rate){4, 6};
	ASSERT_JUDGED(judge("0g", f), UNCLASSIFIED);
}

/* A change may break a flaky test permanently, with its usual message. */
static void flakes_of_others_are_a_hint(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	f.n_seen = 3;
	ASSERT_JUDGED(judge("0g", f), NEW);
	assert_string_equal(
	    judge("0g", f).reason, "green on the merge base abc1234; likely flaky: seen on 3 other changes");
	f.n_proved = 2;
	f.elsewhere = (struct rate){50, 100};
	ASSERT_JUDGED(judge("0g", f), NEW);
	assert_string_equal(judge("0g", f).reason, "green on the merge base abc1234; likely flaky: "
						   "seen on 3 other changes, and passed again on 2 of them");
	ASSERT_JUDGED(judge("", f), UNCLASSIFIED);
	ASSERT_JUDGED(judge(NULL, f), UNCLASSIFIED);
	f.accepts_experiments = true;
	ASSERT_JUDGED(judge("0g", f), NEW);
	assert_int_equal(judge("0g", f).needs, NEEDS_HEAD);
}

static void infrastructure_is_never_new(void **state)
{
	struct attribution_facts f = MACHINE, g = SPECIFIC;

	(void)state;
	ASSERT_CASES(&MACHINE, {"0g", "UNCLASSIFIED"}, {"0r", "UNCLASSIFIED"}, {"0r 1r 2r", "UNCLASSIFIED"},
	    {"-1r 1r", "UNCLASSIFIED"}, {"0R", "UNCLASSIFIED"} /* that machine may have been bad, too */);
	assert_string_equal(judge("0g", MACHINE).reason, "looks like infrastructure; green on the merge base");
	/* the next machine may be a good one; the merge base cannot decide it */
	for (f.n_failed_again = 0; f.n_failed_again < 5; f.n_failed_again++) {
		ASSERT_CASES(&f, {"0g", "UNCLASSIFIED"}, {"0G", "UNCLASSIFIED"});
		assert_int_equal(judge("0G", f).needs, NEEDS_HEAD | NEEDS_GOOD_MACHINE);
		assert_int_equal(judge("", f).needs, NEEDS_HEAD | NEEDS_GOOD_MACHINE);
	}
	g.is_outage = true;
	ASSERT_CASES(&g, {"0g", "UNCLASSIFIED"}, {"0r", "BASE"}, {"0G", "UNCLASSIFIED"});
	assert_int_equal(judge("0g", g).needs, NEEDS_HEAD | NEEDS_BASE | NEEDS_GOOD_MACHINE);
	g.is_job_outage = true; /* a good machine for the head may decide it without the merge base */
	assert_int_equal(judge("0g", g).needs, NEEDS_HEAD | NEEDS_GOOD_MACHINE);
	g.n_failed_again = 1;
	assert_int_equal(judge("0g", g).needs, NEEDS_HEAD | NEEDS_BASE | NEEDS_GOOD_MACHINE);
	g.n_failed_again = 0;
	g.is_alike_settled = true; /* other failures with this message are caused by the change */
	ASSERT_JUDGED(judge("0g", g), NEW);
	assert_string_equal(
	    judge("0g", g).reason, "green on the merge base abc1234; other tests with this message failed again");
	assert_int_equal(judge("0g", g).needs, 0);
	g.is_alike_settled = false;
	g.n_failed_again = 3; /* on each machine, also after the base passed on one of them */
	g.experiment_failed_ms = 4;
	ASSERT_JUDGED(judge("0G", g), UNCLASSIFIED);
	g.experiment_failed_ms = 6;
	assert_int_equal(judge("0g", g).needs, NEEDS_HEAD | NEEDS_BASE | NEEDS_GOOD_MACHINE);
	ASSERT_CASES(&g, {"0g", "UNCLASSIFIED"}, {"0G", "NEW"});
	g.is_alike_green = true; /* but some of them passed here, as on a good machine */
	ASSERT_CASES(&g, {"0G", "UNCLASSIFIED"});
	g.is_alike_green = false;
	assert_int_equal(judge("0G", g).needs, 0);
	ASSERT_CASES(
	    &g, {"0g", "UNCLASSIFIED"}, {"0r", "UNCLASSIFIED"}, {"0R", "UNCLASSIFIED"}, {"-1r 1r", "UNCLASSIFIED"});
}

static void experiments_on_the_base_decide(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	f.accepts_experiments = true;
	ASSERT_CASES(&f, {"-1r 1r", "UNCLASSIFIED"} /* the base itself can be tested */, {"-1r 0D 1r", "BASE"},
	    {"-1g 0R 1g", "UNCLASSIFIED"}, {"-1g 0D 1g", "BASE"}, {"-1g 0D", "BASE"}, {"0G", "NEW"},
	    {"-1r 0G 1r", "NEW"}, {"0o", "UNCLASSIFIED"});
	assert_int_equal(judge("-1r 1r", f).needs, NEEDS_BASE);
	ASSERT_CASES(&GENERAL, {"0R", "BASE"});
}

static void new_is_proved_by_another_failure(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	assert_int_equal(judge("0g", f).needs, NEEDS_HEAD);
	assert_string_equal(judge("0g", f).reason, "green on the merge base abc1234");
	f.n_failed_again = 1;
	assert_int_equal(judge("0g", f).needs, 0);
	assert_string_equal(judge("0g", f).reason, "green on the merge base abc1234, and red twice here");
	f.n_seen = 1; /* elsewhere: it may be a flake, and one flake of three fails twice */
	assert_int_equal(judge("0g", f).needs, NEEDS_HEAD);
	f.n_failed_so_again = f.n_alike_again = 1;
	assert_int_equal(judge("0g", f).needs, NEEDS_HEAD);
	f.n_alike_again = 2;                                /* so did another test, which is rare for a flake */
	assert_int_equal(judge("0g", f).needs, NEEDS_HEAD); /* but a bad machine may do that */
	assert_int_equal(judge("0G", f).needs, 0);
	f.n_failed_so_again = f.n_alike_again = 0;
	f.n_failed_again = 2;
	assert_int_equal(judge("0g", f).needs, 0);
	f.n_proved = 1;
	assert_int_equal(judge("0g", f).needs, NEEDS_HEAD);
	f.n_failed_again = 3;
	assert_int_equal(judge("0g", f).needs, 0);
	assert_string_equal(judge("0g", f).reason, "green on the merge base abc1234, and red 4 times here");
}

static void green_on_both_sides(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	ASSERT_CASES(&SPECIFIC, {"-1g 2g", "NEW"}, {"2g", "UNCLASSIFIED"}, {"-1g", "UNCLASSIFIED"},
	    {"-1g 0s 1g", "UNCLASSIFIED"}, {"-1g 21g", "UNCLASSIFIED"});
	ASSERT_CASES(&MACHINE, {"-1g 2g", "UNCLASSIFIED"});
	assert_string_equal(
	    judge("-1g 2g", SPECIFIC).reason, "green before and after the merge base: on abc1234 and abc1234");
	assert_int_equal(judge("-1g 2g", SPECIFIC).needs, NEEDS_HEAD | NEEDS_BASE);
	f.accepts_experiments = true; /* which can test it itself */
	ASSERT_JUDGED(judge("-1g 2g", f), UNCLASSIFIED);
}

static void undecided_cells_name_the_experiments_that_they_need(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	assert_int_equal(judge("", f).needs, NEEDS_HEAD | NEEDS_BASE);
	assert_int_equal(judge(NULL, f).needs, NEEDS_HEAD); /* there is no commit to test */
	assert_int_equal(judge("0o", f).needs, NEEDS_HEAD | NEEDS_BASE);
	/* if the branch is red in the same way, the merge base usually decides it without the head, unless the test
	 * is flaky */
	f.accepts_experiments = true;
	assert_int_equal(judge("-1r", f).needs, NEEDS_BASE);
	assert_int_equal(judge("1r", f).needs, NEEDS_BASE);
	assert_int_equal(judge("0r", f).needs, NEEDS_BASE);
	f.n_proved = 1;
	assert_int_equal(judge("-1r", f).needs, NEEDS_HEAD | NEEDS_BASE);
	f = SPECIFIC;
	f.n_failed_again = 2;
	assert_int_equal(judge("", f).needs, NEEDS_BASE);
	assert_int_equal(judge(NULL, f).needs, 0); /* nothing can decide it */
}

static void excused_only_if_each_failure_is(void **state)
{
	struct attribution_result base = judge("0r", SPECIFIC), fresh = judge("0g", SPECIFIC),
				  open = judge("", SPECIFIC), flaky;
	struct attribution_facts f = SPECIFIC;

	(void)state;
	f.passed_here_job = 7;
	flaky = judge("0g", f);
	ASSERT_JUDGED(attribution_worse(&base, &fresh), NEW);
	ASSERT_JUDGED(attribution_worse(&fresh, &base), NEW);
	ASSERT_JUDGED(attribution_worse(&base, &open), UNCLASSIFIED);
	ASSERT_JUDGED(attribution_worse(&flaky, &open), UNCLASSIFIED);
	ASSERT_JUDGED(attribution_worse(&open, &fresh), NEW);
	ASSERT_JUDGED(attribution_worse(&flaky, &base), BASE);
	assert_int_equal(attribution_worse(&fresh, &open).needs, NEEDS_HEAD | NEEDS_BASE);
	/* it waits for a good machine if each remaining failure does */
	open = judge("", MACHINE);
	assert_int_equal(attribution_worse(&base, &open).needs, NEEDS_HEAD | NEEDS_GOOD_MACHINE);
	assert_int_equal(attribution_worse(&fresh, &open).needs, NEEDS_HEAD);
}

static void the_reason_says_what_is_missing(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	assert_string_equal(judge(NULL, SPECIFIC).reason, "the merge base is not known");
	assert_string_equal(judge("", SPECIFIC).reason, "not tested on the merge base");
	assert_string_equal(
	    judge("3g", SPECIFIC).reason, "not tested on the merge base; green on abc1234, 3 commits before it");
	assert_string_equal(
	    judge("1r", SPECIFIC).reason, "not tested on the merge base; red on abc1234, 1 commit before it");
	assert_string_equal(judge("-1g 1r", SPECIFIC).reason,
	    "not tested on the merge base; red before it, but it may have been fixed since");
	assert_string_equal(judge("0o", SPECIFIC).reason, "red on the merge base, but with another message");
	assert_string_equal(judge("0e", SPECIFIC).reason, "red on the merge base, but as ERROR");
	assert_string_equal(judge("0m", SPECIFIC).reason, "red and green on the merge base");
	f.accepts_experiments = true;
	assert_string_equal(judge("-1g 0r 1g", f).reason, "red on the merge base once, and green before and after it");
}

static void a_push_is_compared_with_its_parent(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	f.is_push = true;
	assert_string_equal(judge("0g", f).reason, "green on the parent abc1234");
	assert_string_equal(judge(NULL, f).reason, "the parent is not known");
	ASSERT_CASES(&f, {"0r", "BASE"}, {"3r", "BASE"} /* it is the newer side itself */, {"1s 2r", "UNCLASSIFIED"});
	assert_string_equal(judge("1r", f).reason, "red on abc1234, 1 commit before the parent, too");
}

static void attributions_have_names(void **state)
{
	(void)state;
	assert_int_equal(attribution_parse("FLAKY"), ATTRIBUTION_FLAKY);
	assert_int_equal(attribution_parse("flaky"), N_ATTRIBUTIONS);
	assert_int_equal(attribution_parse(NULL), N_ATTRIBUTIONS);
	assert_null(attribution_name(N_ATTRIBUTIONS));
	assert_true(attribution_counts_against_change(ATTRIBUTION_UNCLASSIFIED));
	assert_false(attribution_counts_against_change(ATTRIBUTION_BASE));
	ASSERT_JUDGED(attribution_without_facts("nothing is known"), UNCLASSIFIED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(known_issue),
	    cmocka_unit_test(red_on_the_merge_base),
	    cmocka_unit_test(a_truncated_message_is_no_evidence),
	    cmocka_unit_test(own_and_related_commits_on_the_branch),
	    cmocka_unit_test(flake_on_the_merge_base),
	    cmocka_unit_test(a_failure_that_comes_and_goes_on_the_branch),
	    cmocka_unit_test(red_on_another_machine),
	    cmocka_unit_test(numbers_that_vary),
	    cmocka_unit_test(fixed_before_the_merge_base),
	    cmocka_unit_test(untested_stretch),
	    cmocka_unit_test(few_red_runs_around),
	    cmocka_unit_test(skipped_stretch),
	    cmocka_unit_test(skipped_on_the_merge_base),
	    cmocka_unit_test(revert_and_reland),
	    cmocka_unit_test(general_message),
	    cmocka_unit_test(a_test_without_a_result_has_no_attribution),
	    cmocka_unit_test(passed_on_this_commit),
	    cmocka_unit_test(intermittent_by_the_change),
	    cmocka_unit_test(flakes_of_others_are_a_hint),
	    cmocka_unit_test(infrastructure_is_never_new),
	    cmocka_unit_test(experiments_on_the_base_decide),
	    cmocka_unit_test(new_is_proved_by_another_failure),
	    cmocka_unit_test(green_on_both_sides),
	    cmocka_unit_test(undecided_cells_name_the_experiments_that_they_need),
	    cmocka_unit_test(excused_only_if_each_failure_is),
	    cmocka_unit_test(the_reason_says_what_is_missing),
	    cmocka_unit_test(a_push_is_compared_with_its_parent),
	    cmocka_unit_test(attributions_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
