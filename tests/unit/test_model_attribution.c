/* Each rule with its table of cases, and the stories in which a change's own breakage looks like
 * somebody else's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "model/attribution.h"
#include "model/experiment.h"

enum { DISTANCE = 20, K = 1, L = 2 };

/* The branch, newest first: "-2g 0r 3R 5e": distance, then g green, r red with K, o red with another
 * key, x red with a generic message, y with another generic one, e ERROR with K. */
static size_t branch(const char *text, struct base_run *runs)
{
	size_t n = 0;

	while (*text) {
		char *end;
		long distance = strtol(text, &end, 10);

		runs[n] = (struct base_run){.is_green = *end == 'g',
		    .mark = {*end == 'e' ? TEST_ERROR : TEST_FAIL,
			*end == 'o'                  ? L
			: *end == 'x' || *end == 'y' ? 0
						     : K,
			*end == 'y' ? 1 : 0},
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
	f.base = runs;
	f.n_base = base ? branch(base, runs) : 0;
	return attribute(&f, DISTANCE);
}

static const struct attribution_facts SPECIFIC = {.mark = {TEST_FAIL, K}, .n_in_row = 1},
				      GENERIC = {.mark = {TEST_FAIL, 0}, .n_in_row = 1};

#define ASSERT_JUDGED(result, a)                                                                   \
	do {                                                                                       \
		struct attribution_result r_ = (result);                                           \
		assert_string_equal(attribution_name(r_.attribution), #a);                         \
		assert_true(r_.reason[0]);                                                         \
	} while (0)

static void known_comes_first(void **state)
{
	struct attribution_facts f = SPECIFIC;
	struct attribution_result r;

	(void)state;
	f.known_url = "https://example.org/1";
	r = judge("0r", f);
	ASSERT_JUDGED(r, KNOWN);
	assert_string_equal(r.known_url, f.known_url);
	ASSERT_JUDGED(judge("0g", f), KNOWN);
	ASSERT_JUDGED(judge(NULL, f), KNOWN);
}

struct base_case {
	const char *base, *expected;
};

static void assert_cases(
    const struct base_case *cases, size_t n, const struct attribution_facts *facts)
{
	for (size_t i = 0; i < n; i++) {
		struct attribution_result r = judge(cases[i].base, *facts);

		if (strcmp(attribution_name(r.attribution), cases[i].expected) != 0)
			fail_msg("%s: %s (%s), not %s", cases[i].base,
			    attribution_name(r.attribution), r.reason, cases[i].expected);
		assert_true(r.reason[0]);
	}
}

static void base_needs_the_same_failure(void **state)
{
	static const struct base_case CASES[] = {
	    {"0r", "BASE"},
	    {"3r", "BASE"},
	    {"20r", "BASE"},
	    {"21r", "UNCLASSIFIED"}, /* too far */
	    {"-1r", "UNCLASSIFIED"}, /* only newer ones: it may have come after the merge base */
	    {"-1r 0g", "NEW"},
	    {"1g 3r", "UNCLASSIFIED"}, /* green between */
	    {"0o", "UNCLASSIFIED"},    /* a PR that breaks what was broken otherwise */
	    {"0e", "UNCLASSIFIED"},    /* another status */
	    {"-1g 0r 1g", "BASE"},     /* broken for a moment: nothing else speaks for a flake */
	    {"-1g 2r 3g", "BASE"},
	    {"-1r 0r 1g", "BASE"},
	    {"-1g 0r 1r 2g", "BASE"},
	    {"-1g 0r", "BASE"},
	    {"0r 1g", "BASE"},
	    {"0x", "UNCLASSIFIED"},
	    {"", "UNCLASSIFIED"},
	};

	(void)state;
	assert_cases(CASES, ARRAY_LEN(CASES), &SPECIFIC);
	ASSERT_JUDGED(judge(NULL, SPECIFIC), UNCLASSIFIED);
	assert_int_equal(judge("3r", SPECIFIC).evidence_job, 103);
}

static void a_general_message_needs_a_clear_step(void **state)
{
	static const struct base_case CASES[] = {
	    {"0x", "BASE"},         /* all that is known: it never worked there */
	    {"1x", "UNCLASSIFIED"}, /* a single red, and not on the merge base */
	    {"0r", "UNCLASSIFIED"},
	    {"0x 1g", "UNCLASSIFIED"}, /* a single red beside a green one may be a flake */
	    {"0x 1x", "BASE"},
	    {"0x 1x 2g 3g", "BASE"},
	    {"-1x 0x 1g", "BASE"},
	    {"2x 3x 4g", "BASE"},
	    {"0x 1x 2g 3x 4g", "UNCLASSIFIED"}, /* a flake's pattern */
	    {"-1g 0x 1x 2g", "UNCLASSIFIED"},   /* two flakes in a row */
	    {"-4g -3g -2g -1g 0x 1x 2g 3g 4g 5g", "BASE"},
	    {"-3g -2g -1x 1x 2g 3g 4g 5g 6g 7g", "BASE"},
	    {"-4g -3g -2g -1g 0x 1x 2g 3g 4g 5x", "UNCLASSIFIED"},
	    {"-4g -3g -2g -1g 0x 2g 3g 4g 5g 6g", "UNCLASSIFIED"},
	    {"-1g 0x 1x 2x 3g", "BASE"},
	    {"-1g 1x 2x 3x 4g", "UNCLASSIFIED"}, /* mended before the merge base, perhaps */
	    {"-2x -1g 0x 1x 2x 3g", "UNCLASSIFIED"},
	    {"-3g -2x -1x 1x 2g", "BASE"}, /* the merge base is within */
	    {"-3g -2x 1x 2x 3g", "BASE"},
	    {"-3g -2y 1x 2x 3x 4g", "UNCLASSIFIED"}, /* mended, and then no machine */
	    {"0x 1y 2x 3g", "BASE"},                 /* a machine that was down between */
	    {"0x 1x 2g 3y 4g", "BASE"},
	    {"0y 1y 2g", "UNCLASSIFIED"}, /* general words, but others */
	    {"0e 1e 2g", "UNCLASSIFIED"},
	    {"0x 1e 2g", "UNCLASSIFIED"},
	    {"0g", "NEW"},
	    {"1g", "UNCLASSIFIED"},
	};

	(void)state;
	assert_cases(CASES, ARRAY_LEN(CASES), &GENERIC);
}

/* B8 */
static void a_test_without_a_result_has_no_attribution(void **state)
{
	struct base_run runs[] = {{.mark = {TEST_MISS, 0}, .distance = 0},
	    {.mark = {TEST_MISS, 0}, .distance = 1}, {.is_green = true, .distance = 2}};
	struct attribution_facts f = {.mark = {TEST_FAIL, 0},
	    .is_base_known = true,
	    .base = runs,
	    .n_base = 3,
	    .n_in_row = 1};

	(void)state;
	for (int s = 0; s < N_TEST_STATUSES; s++)
		assert_int_equal(
		    attribution_applies((enum test_status)s), s == TEST_FAIL || s == TEST_ERROR);
	/* nor does an outage on the base excuse a failure here */
	ASSERT_JUDGED(attribute(&f, DISTANCE), UNCLASSIFIED);
}

/* Two jobs have the test, or one has it twice: what is known of the one failure is not known of the
 * other. */
static void a_second_failure_is_not_excused_by_what_excuses_the_first(void **state)
{
	struct similar_failure s = {
	    .job = 9, .change_id = 5, .is_other_author = true, .has_other_files = true};
	struct attribution_facts f = SPECIFIC, g = GENERIC;

	(void)state;
	f.has_other_failure = g.has_other_failure = true;
	ASSERT_JUDGED(judge("0r", f), UNCLASSIFIED);
	assert_non_null(strstr(judge("0r", f).reason, "not in all the ways"));
	ASSERT_JUDGED(judge("0x 1x 2x", g), UNCLASSIFIED);
	f.similar = &s;
	f.n_similar = 1;
	ASSERT_JUDGED(judge("0g", f), NEW);
	f.mixed_elsewhere_job = 8;
	ASSERT_JUDGED(judge("0g", f), NEW);
	f.are_all_on_base = true;
	ASSERT_JUDGED(judge("0r", f), BASE);
	f.passed_here_job = 7; /* each of its jobs passed */
	ASSERT_JUDGED(judge("0g", f), FLAKY);
}

static void both_outcomes_on_one_commit(void **state)
{
	struct attribution_facts f = SPECIFIC, g = GENERIC;

	(void)state;
	f.passed_here_job = g.passed_here_job = 7;
	ASSERT_JUDGED(judge("0g", f), FLAKY);
	ASSERT_JUDGED(judge("0g", g), FLAKY);
	ASSERT_JUDGED(judge(NULL, g), FLAKY);
	assert_int_equal(judge(NULL, g).evidence_job, 7);
	ASSERT_JUDGED(judge("0r", f), BASE); /* that comes first */
}

static void both_outcomes_on_another_commit(void **state)
{
	struct attribution_facts f = SPECIFIC, g = GENERIC;

	(void)state;
	f.mixed_elsewhere_job = g.mixed_elsewhere_job = 8;
	ASSERT_JUDGED(judge("0g", f), FLAKY);
	ASSERT_JUDGED(judge("0g", g), NEW); /* what it says would fit anything */
	f.is_first_seen_on_own = true;      /* a race of the author's own, landed before */
	ASSERT_JUDGED(judge("0g", f), NEW);
	f.is_first_seen_on_own = false;
	f.n_in_row = 3;
	ASSERT_JUDGED(judge("0g", f), NEW);
}

static struct similar_failure other(void)
{
	return (struct similar_failure){
	    .job = 9, .change_id = 5, .is_other_author = true, .has_other_files = true};
}

static void the_same_on_a_change_that_has_nothing_to_do_with_it(void **state)
{
	struct similar_failure s[2] = {other(), other()};
	struct attribution_facts f = SPECIFIC;

	(void)state;
	f.similar = s;
	f.n_similar = 1;
	ASSERT_JUDGED(judge("0g", f), FLAKY);
	ASSERT_JUDGED(judge(NULL, f), FLAKY);
	ASSERT_JUDGED(judge("-1g 2r 3g", f), FLAKY); /* and a flake before the base */
	ASSERT_JUDGED(judge("-1g 0r 1g", f), BASE);  /* on it: the first rule that fits */
	assert_int_equal(judge("0g", f).evidence_job, 9);
	f.mark.key = 0;
	ASSERT_JUDGED(judge("0g", f), NEW);
	f.mark.key = K;
	s[0].is_other_author = false; /* another head of the PR, another PR of the author */
	ASSERT_JUDGED(judge("0g", f), NEW);
	s[0] = other();
	s[0].has_other_files = false; /* a reland by another hand, a fork of the branch, unknown */
	ASSERT_JUDGED(judge("0g", f), NEW);
	s[0] = other();
	s[0].is_on_broken_base = true; /* merged first, then others were based on it */
	ASSERT_JUDGED(judge("0g", f), NEW);
	f.n_similar = 2;
	ASSERT_JUDGED(judge("0g", f), FLAKY); /* the second one counts */
	f.n_in_row = 3;                       /* the third head that fails so */
	ASSERT_JUDGED(judge("0g", f), NEW);
}

static void what_came_after_ones_own_is_no_excuse(void **state)
{
	struct similar_failure s = other();
	struct attribution_facts f = SPECIFIC;

	(void)state;
	f.similar = &s;
	f.n_similar = 1;
	f.is_first_seen_on_own = true; /* landed, reverted, and here it is again */
	ASSERT_JUDGED(judge("0g", f), NEW);
	ASSERT_JUDGED(judge("2r", f), UNCLASSIFIED); /* red before the revert */
	ASSERT_JUDGED(judge("-1g 2r", f), UNCLASSIFIED);
	ASSERT_JUDGED(judge("0r", f), BASE); /* it is still there */
	ASSERT_JUDGED(judge("-1r 2r", f), BASE);
	s.is_base_green = true; /* their base has nothing of it */
	ASSERT_JUDGED(judge("0g", f), FLAKY);
}

static void what_is_missing_is_said(void **state)
{
	(void)state;
	assert_string_equal(judge(NULL, SPECIFIC).reason, "the merge base is not known");
	assert_string_equal(
	    judge("", SPECIFIC).reason, "not tested on the merge base, nor shortly before it");
	assert_string_equal(judge("3g", SPECIFIC).reason,
	    "not tested on the merge base; green on abc1234, 3 commits before it");
	assert_string_equal(
	    judge("0o", SPECIFIC).reason, "red on the merge base, but with another message");
	assert_string_equal(judge("0x 1g", GENERIC).reason,
	    "red on the merge base, but its message is too general to compare");
	assert_string_equal(judge("0e", SPECIFIC).reason, "red on the merge base, but as ERROR");
	assert_string_equal(
	    judge("1r", SPECIFIC).reason, "red on abc1234, 1 commit before the merge base");
	assert_string_equal(judge("0g", SPECIFIC).reason, "green on the merge base abc1234");
}

static void a_push_is_compared_with_its_parent(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	f.is_push = true;
	assert_string_equal(judge("0g", f).reason, "green on the parent abc1234");
	assert_string_equal(judge(NULL, f).reason, "its parent is not known");
}

/* Which experiments would help to decide the cell. */
static void undecided_cells_name_the_experiments_that_they_need(void **state)
{
	struct attribution_facts f = SPECIFIC;

	(void)state;
	assert_int_equal(judge("0r", f).needs, 0);
	assert_int_equal(judge("0g", f).needs, NEEDS_HEAD);
	assert_int_equal(judge("", f).needs, NEEDS_HEAD | NEEDS_BASE);
	assert_int_equal(judge(NULL, f).needs, NEEDS_HEAD); /* there is no commit to test */
	f.passed_here_job = 7;
	assert_int_equal(judge("0g", f).needs, 0);
	f.known_url = "https://example.org/1";
	assert_int_equal(judge("", f).needs, 0);
}

static void names(void **state)
{
	(void)state;
	assert_int_equal(attribution_parse("FLAKY"), ATTRIBUTION_FLAKY);
	assert_int_equal(attribution_parse("flaky"), N_ATTRIBUTIONS);
	assert_int_equal(attribution_parse(NULL), N_ATTRIBUTIONS);
	assert_null(attribution_name(N_ATTRIBUTIONS));
	assert_true(attribution_counts_against_change(ATTRIBUTION_UNCLASSIFIED));
	assert_false(attribution_counts_against_change(ATTRIBUTION_BASE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(known_comes_first),
	    cmocka_unit_test(base_needs_the_same_failure),
	    cmocka_unit_test(a_general_message_needs_a_clear_step),
	    cmocka_unit_test(a_test_without_a_result_has_no_attribution),
	    cmocka_unit_test(a_second_failure_is_not_excused_by_what_excuses_the_first),
	    cmocka_unit_test(both_outcomes_on_one_commit),
	    cmocka_unit_test(both_outcomes_on_another_commit),
	    cmocka_unit_test(the_same_on_a_change_that_has_nothing_to_do_with_it),
	    cmocka_unit_test(what_came_after_ones_own_is_no_excuse),
	    cmocka_unit_test(what_is_missing_is_said),
	    cmocka_unit_test(a_push_is_compared_with_its_parent),
	    cmocka_unit_test(undecided_cells_name_the_experiments_that_they_need),
	    cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
