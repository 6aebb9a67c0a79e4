/* The state of a test in a row of runs: each state, and a walk compared with an oracle that reads the whole row. */
#include <setjmp.h>

#include <cmocka.h>

#include "model/history.h"

/* One letter a run, the oldest first: F E red, P D green, M S silent, . absent. */
static bool add_run(struct history_walk *w, char c, int64_t tag)
{
	static const char letters[] = "FEMPDS";
	const char *at = strchr(letters, c);

	if (c == '.')
		history_walk_absent(w);
	else
		history_walk_add(w, (enum test_status)(at - letters), tag);
	return history_walk_wants_more(w);
}

/* Runs count from the newest; tags are places in `row`. */
static struct history_verdict walk(const char *row, bool is_to_the_end)
{
	struct history_walk w = {0};

	for (size_t i = strlen(row); i > 0; i--)
		if (!add_run(&w, row[i - 1], (int64_t)i - 1) && !is_to_the_end)
			break;
	return history_walk_end(&w);
}

static void check(const char *row, enum history_state state, int since, int bad, int good)
{
	struct history_verdict v = walk(row, false);

	if (v.state != state || v.since != since || v.first_bad.run != bad || v.last_good.run != good)
		fail_msg("%s: %s since %d, bad %d, good %d", row,
		    v.state == HISTORY_NONE ? "none" : history_state_name(v.state), v.since, v.first_bad.run,
		    v.last_good.run);
	if (bad >= 0)
		assert_int_equal(v.first_bad.tag, (int)strlen(row) - 1 - bad);
	if (good >= 0)
		assert_int_equal(v.last_good.tag, (int)strlen(row) - 1 - good);
}

static void each_state(void **state)
{
	(void)state;
	check("PPPPF", HISTORY_REGRESSION, 0, 0, 1);
	check("PPFE", HISTORY_STILL_FAILING, 1, 1, 2);
	check("PPFEP", HISTORY_FIXED, 0, 2, 3);
	check("FFP", HISTORY_FIXED, 0, 2, -1);
	check("PFPPP", HISTORY_PASSING, 2, -1, -1);
	check("PPPP", HISTORY_PASSING, -1, -1, -1);
	check("PFPF", HISTORY_UNSTABLE, 2, 0, 1);
	check("PFPFPP", HISTORY_UNSTABLE, 4, 2, 3);
	check("PPP.", HISTORY_DISAPPEARED, 0, -1, -1);
	check("PPF..", HISTORY_DISAPPEARED, 1, 2, 3);
	check("PPS", HISTORY_SKIPPED, -1, -1, -1);
	check("S", HISTORY_SKIPPED, -1, -1, -1);
	check("D", HISTORY_PASSING, -1, -1, -1);
	check("", HISTORY_NONE, -1, -1, -1);
}

static void runs_without_results_are_skipped(void **state)
{
	(void)state;
	check("PPFM", HISTORY_REGRESSION, 1, 1, 2);
	check("PMSF", HISTORY_REGRESSION, 0, 0, 3);
	check("P..F", HISTORY_REGRESSION, 0, 0, 3);
	check("PFMMF", HISTORY_STILL_FAILING, 3, 3, 4);
	check("MM", HISTORY_SKIPPED, -1, -1, -1);
	check("MM.", HISTORY_NONE, -1, -1, -1);
	check("SS.", HISTORY_NONE, -1, -1, -1);
	check("PFSPM", HISTORY_FIXED, 1, 3, 4);
}

/* The test is red from its first run on and never passed. */
static void a_new_red_test_is_not_a_regression(void **state)
{
	(void)state;
	check("...F", HISTORY_STILL_FAILING, 0, 0, -1);
	check("FFFFFFFFFFFFFF", HISTORY_STILL_FAILING, 13, 13, -1);
}

static void changes_count_within_ten_runs(void **state)
{
	(void)state;
	check("PFPFPPPPPP", HISTORY_UNSTABLE, 8, 6, 7);
	check("PFPFPPPPPPP", HISTORY_UNSTABLE, 8, 7, 8);
	check("PFPFPPPPPPPP", HISTORY_PASSING, 7, -1, -1);
	check("PFPFFFFFFFFF", HISTORY_STILL_FAILING, 8, 8, 9);
}

static void tests_that_disappeared_long_ago_are_forgotten(void **state)
{
	char row[64] = "PPP";

	(void)state;
	memset(row + 3, '.', HISTORY_FORGET - 1);
	check(row, HISTORY_DISAPPEARED, HISTORY_FORGET - 2, -1, -1);
	row[3 + HISTORY_FORGET - 1] = '.';
	check(row, HISTORY_NONE, -1, -1, -1);
}

static void an_unfinished_run_removes_no_tests(void **state)
{
	struct history_walk w = {0};

	(void)state;
	history_walk_absent(&w);
	history_walk_unfinished(&w);
	add_run(&w, 'F', 1);
	add_run(&w, 'P', 2);
	assert_int_equal(history_walk_end(&w).state, HISTORY_REGRESSION);
	assert_int_equal(history_walk_end(&w).first_bad.run, 1);
}

static void names_are_the_words_of_the_api(void **state)
{
	(void)state;
	for (int s = 0; s < N_HISTORY_STATES; s++)
		assert_int_equal(history_state_parse(history_state_name((enum history_state)s)), s);
	assert_int_equal(history_state_parse("broken"), N_HISTORY_STATES);
}

/* ---- the oracle: the definitions, applied to the whole row ---- */

static bool is_red(char c) { return c == 'F' || c == 'E'; }

static bool is_judged(char c) { return is_red(c) || c == 'P' || c == 'D'; }

static char at(const char *row, int run) { return row[(int)strlen(row) - 1 - run]; }

/* The judged run next older than `run` (-1: the newest); -1: none. */
static int older(const char *row, int run)
{
	for (int i = run + 1; i < (int)strlen(row); i++)
		if (is_judged(at(row, i)))
			return i;
	return -1;
}

static int newest_there(const char *row)
{
	for (int i = 0; i < (int)strlen(row); i++)
		if (at(row, i) != '.')
			return i;
	return -1;
}

static int count_changes(const char *row)
{
	int n = 0;

	for (int i = older(row, -1); i >= 0; i = older(row, i)) {
		int next = older(row, i);

		if (next < 0 || next >= HISTORY_WINDOW)
			break;
		n += is_red(at(row, i)) != is_red(at(row, next));
	}
	return n;
}

static enum history_state oracle_state(const char *row)
{
	int there = newest_there(row), first = older(row, -1), second;

	if (first < 0)
		return there == 0 ? HISTORY_SKIPPED : HISTORY_NONE;
	if (there > 0)
		return there < HISTORY_FORGET ? HISTORY_DISAPPEARED : HISTORY_NONE;
	if (at(row, 0) == 'S')
		return HISTORY_SKIPPED;
	if (count_changes(row) >= HISTORY_CHANGES)
		return HISTORY_UNSTABLE;
	second = older(row, first);
	if (second < 0)
		return is_red(at(row, first)) ? HISTORY_STILL_FAILING : HISTORY_PASSING;
	if (is_red(at(row, first)))
		return is_red(at(row, second)) ? HISTORY_STILL_FAILING : HISTORY_REGRESSION;
	return is_red(at(row, second)) ? HISTORY_FIXED : HISTORY_PASSING;
}

/* Of the newest red streak: the oldest red of it and the green before. */
static void oracle_streak(const char *row, int *ret_bad, int *ret_good)
{
	int i = older(row, -1);

	while (i >= 0 && !is_red(at(row, i)))
		i = older(row, i);
	*ret_bad = -1;
	while (i >= 0 && is_red(at(row, i))) {
		*ret_bad = i;
		i = older(row, i);
	}
	*ret_good = *ret_bad < 0 ? -1 : i;
}

static bool is_about_red(const char *row, enum history_state s)
{
	int first = older(row, -1), second = first < 0 ? -1 : older(row, first);

	if (s == HISTORY_DISAPPEARED)
		return is_red(at(row, first)) || (second >= 0 && is_red(at(row, second))) ||
		       count_changes(row) >= HISTORY_CHANGES;
	return s != HISTORY_PASSING && s != HISTORY_SKIPPED && s != HISTORY_NONE;
}

static void a_walk_agrees_with_the_oracle(void **state)
{
	static const char calm[] = "PPPPPPPPPPPF", wild[] = "FEMPDS.PPFF", gone[] = "P........F";
	static const char *const kinds[] = {calm, wild, gone};
	unsigned seed = 20261122;

	(void)state;
	for (int n = 0; n < 60000; n++) {
		const char *kind = kinds[n % 3];
		int len = 1 + rand_r(&seed) % 60, bad, good;
		struct history_verdict v, whole;
		char row[64] = "";

		for (int i = 0; i < len; i++)
			row[i] = kind[(size_t)rand_r(&seed) % strlen(kind)];
		v = walk(row, false);
		whole = walk(row, true);
		assert_memory_equal(&v, &whole, sizeof(v));
		if (v.state != oracle_state(row))
			fail_msg("%s: %d, not %d", row, v.state, oracle_state(row));
		oracle_streak(row, &bad, &good);
		if (!is_about_red(row, v.state))
			bad = good = -1;
		if (v.first_bad.run != bad || v.last_good.run != good)
			fail_msg("%s: bad %d good %d, not %d %d", row, v.first_bad.run, v.last_good.run, bad, good);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_state),
	    cmocka_unit_test(runs_without_results_are_skipped),
	    cmocka_unit_test(a_new_red_test_is_not_a_regression),
	    cmocka_unit_test(changes_count_within_ten_runs),
	    cmocka_unit_test(tests_that_disappeared_long_ago_are_forgotten),
	    cmocka_unit_test(an_unfinished_run_removes_no_tests),
	    cmocka_unit_test(names_are_the_words_of_the_api),
	    cmocka_unit_test(a_walk_agrees_with_the_oracle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
