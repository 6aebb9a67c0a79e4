/* The state of an accelerator: the worst one that applies, and green only with a PASS on the branch. */
#include <setjmp.h>

#include <cmocka.h>

#include "model/accelerator_state.h"

#define HOUR INT64_C(3600000)
#define DAY  (24 * HOUR)
static const int64_t NOW = 1795176000000;

static const struct accelerator_facts GREEN = {.level = LEVEL_2,
    .newest = BRANCH_PASSED,
    .tested_ms = 1795176000000 - HOUR,
    .last_report_ms = 1795176000000 - HOUR};

/* "text since [notes]" with since as hours ago. */
static void assert_state(const struct accelerator_facts *f, enum accelerator_status status, const char *text,
    int64_t since_hours, const char *notes, int line)
{
	struct accelerator_state s = accelerator_state_of(f, NOW);
	char is[64];

	snprintf(
	    is, sizeof(is), "%s%s%s", s.is_overdue ? "o" : "", s.has_no_report ? "r" : "", s.is_not_counted ? "c" : "");
	if (s.status != status || strcmp(accelerator_state_text(&s), text) != 0 ||
	    s.since_ms != (since_hours ? NOW - since_hours * HOUR : 0) || strcmp(is, notes) != 0)
		fail_msg("line %d: %s, \"%s\" since %lld h, notes %s", line, accelerator_words(s.status)->name,
		    accelerator_state_text(&s), (long long)((NOW - s.since_ms) / HOUR), is);
}
#define ASSERT_STATE(f, status, text, since, notes) assert_state(&(f), status, text, since, notes, __LINE__)

/* B1: a job of a pull request counts as a report, but makes nothing green. */
static void nothing_is_green_without_a_test_of_the_branch(void **state)
{
	struct accelerator_facts f = {.level = LEVEL_2, .last_report_ms = NOW - HOUR};

	(void)state;
	ASSERT_STATE(f, ACCELERATOR_UNTESTED, "not tested yet", 0, "");
	f.last_report_ms = 0;
	ASSERT_STATE(f, ACCELERATOR_UNTESTED, "not tested yet", 0, "");
	f = GREEN;
	f.newest = BRANCH_NO_PASS;
	ASSERT_STATE(f, ACCELERATOR_NO_PASS, "nothing passed", 0, "");
	f = GREEN;
	f.tested_ms = NOW - 8 * DAY; /* pull requests since then */
	ASSERT_STATE(f, ACCELERATOR_STALE, "not tested", 8 * 24, "");
}

static void each_state_of_a_tested_branch(void **state)
{
	struct accelerator_facts f = GREEN;

	(void)state;
	ASSERT_STATE(f, ACCELERATOR_GREEN, "green", 0, "");
	f.newest = BRANCH_EXPLAINED;
	ASSERT_STATE(f, ACCELERATOR_EXPLAINED, "all red is explained", 0, "");
	f.level = LEVEL_1;
	ASSERT_STATE(f, ACCELERATOR_OFF, "not shown", 0, "");
}

static void the_worst_applicable_state_counts(void **state)
{
	struct accelerator_facts f = GREEN;

	(void)state;
	f.no_report_ms = NOW - 2 * HOUR;
	ASSERT_STATE(f, ACCELERATOR_NO_REPORT, "no report", 2, "");
	f.red_since_ms = NOW - 3 * HOUR;
	f.is_red_in_silence = true;
	ASSERT_STATE(f, ACCELERATOR_NO_REPORT, "no report", 3, "");
	f.red_since_ms = NOW - 90 * HOUR;
	ASSERT_STATE(f, ACCELERATOR_NO_REPORT, "no report", 90, "o");
	f.last_report_ms = NOW - 8 * DAY;
	ASSERT_STATE(f, ACCELERATOR_SILENT, "silent", 8 * 24, "o");
	f.is_unhealthy = true;
	ASSERT_STATE(f, ACCELERATOR_NOT_COUNTED, "unhealthy, not counted", 0, "o");
	f.is_red_in_silence = false;
	ASSERT_STATE(f, ACCELERATOR_OVERDUE, "red", 90, "orc");
	f.red_since_ms = NOW - 5 * HOUR;
	ASSERT_STATE(f, ACCELERATOR_RED, "red", 5, "rc");
	f.is_unhealthy = false;
	f.no_report_ms = 0;
	ASSERT_STATE(f, ACCELERATOR_RED, "red", 5, "");
	f.red_since_ms = 0;
	f.newest = BRANCH_RED;
	ASSERT_STATE(f, ACCELERATOR_RED, "red", 1, "");
	f = GREEN;
	f.newest = BRANCH_NO_REPORT; /* one of its runners */
	ASSERT_STATE(f, ACCELERATOR_NO_REPORT, "no report", 1, "");
}

/* docs/levels.md promises the first state of the table that applies. The rows have facts that make a state true, in
 * the table's order; an accelerator with the facts of two states has the first one. */
static void the_first_of_two_states_counts(void **state)
{
	static const struct accelerator_facts of[] = {
	    [ACCELERATOR_OFF] = {.level = LEVEL_1},
	    [ACCELERATOR_OVERDUE] = {.red_since_ms = 1795176000000 - 80 * HOUR},
	    [ACCELERATOR_RED] = {.red_since_ms = 1795176000000 - HOUR},
	    [ACCELERATOR_NOT_COUNTED] = {.is_unhealthy = true},
	    [ACCELERATOR_SILENT] = {.last_report_ms = 1795176000000 - 8 * DAY},
	    [ACCELERATOR_NO_REPORT] = {.no_report_ms = 1795176000000 - HOUR},
	    [ACCELERATOR_NO_PASS] = {.newest = BRANCH_NO_PASS},
	    [ACCELERATOR_STALE] = {.tested_ms = 1795176000000 - 8 * DAY},
	    [ACCELERATOR_EXPLAINED] = {.newest = BRANCH_EXPLAINED},
	    [ACCELERATOR_GREEN] = {.newest = BRANCH_PASSED},
	};

	(void)state;
	for (int a = 0; a <= ACCELERATOR_GREEN; a++)
		for (int b = a; b <= ACCELERATOR_GREEN; b++) {
			struct accelerator_facts f = of[b];

			if (of[a].level == LEVEL_1 || of[b].level == LEVEL_1)
				f.level = LEVEL_1;
			else
				f.level = LEVEL_2;
			if (of[a].red_since_ms)
				f.red_since_ms = of[a].red_since_ms;
			if (of[a].no_report_ms)
				f.no_report_ms = of[a].no_report_ms;
			if (of[a].newest)
				f.newest = of[a].newest;
			else if (!f.newest)
				f.newest = BRANCH_PASSED;
			f.is_unhealthy |= of[a].is_unhealthy;
			f.last_report_ms = of[a].last_report_ms   ? of[a].last_report_ms
					   : of[b].last_report_ms ? of[b].last_report_ms
								  : NOW - HOUR;
			f.tested_ms = of[a].tested_ms   ? of[a].tested_ms
				      : of[b].tested_ms ? of[b].tested_ms
							: NOW - HOUR;
			assert_int_equal(accelerator_state_of(&f, NOW).status, a);
		}
}

static void assert_order_in(const char *path, const char *from, const char *before, const char *behind)
{
	char *text = xcalloc(1, 1 << 20), name[64];
	FILE *f = fopen(path, "re");
	const char *at;

	assert_non_null(f);
	assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	at = strstr(text, from);
	for (int i = 0; i < N_ACCELERATOR_STATUSES; i++) {
		const struct accelerator_words *w = accelerator_words((enum accelerator_status)i);

		snprintf(name, sizeof(name), "%s%s%s", before, w->name, behind);
		at = at ? strstr(at, name) : NULL;
		if (!at)
			fail_msg("%s: %s is not where it belongs", path, w->name);
	}
	free(text);
}

static void the_documents_have_the_same_order(void **state)
{
	(void)state;
	assert_order_in("docs/levels.md", "## The state", "\n| `", "` | ");
	assert_order_in("docs/openapi.json", "\"enum\": [\"off\"", "\"", "\"");
}

static void each_status_has_its_own_name(void **state)
{
	(void)state;
	for (int i = 0; i < N_ACCELERATOR_STATUSES; i++) {
		const struct accelerator_words *w = accelerator_words((enum accelerator_status)i);

		assert_true(w->name && w->word && w->symbol && w->tone);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(w->name, accelerator_words((enum accelerator_status)k)->name);
		/* only a passing accelerator has the tick */
		assert_int_equal(strcmp(w->symbol, "✓") == 0, accelerator_status_is_green((enum accelerator_status)i));
	}
}

static void the_72_hour_rule(void **state)
{
	(void)state;
	assert_false(red_is_overdue(0, NOW));
	assert_false(red_is_overdue(NOW - 72 * HOUR + 1, NOW));
	assert_true(red_is_overdue(NOW - 72 * HOUR, NOW));
	assert_null(red_by_name(0, true));
	assert_string_equal(red_by_name(1, true), "silence");
	assert_string_equal(red_by_name(1, false), "tests");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nothing_is_green_without_a_test_of_the_branch),
	    cmocka_unit_test(each_state_of_a_tested_branch),
	    cmocka_unit_test(the_worst_applicable_state_counts),
	    cmocka_unit_test(the_first_of_two_states_counts),
	    cmocka_unit_test(the_documents_have_the_same_order),
	    cmocka_unit_test(each_status_has_its_own_name),
	    cmocka_unit_test(the_72_hour_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
