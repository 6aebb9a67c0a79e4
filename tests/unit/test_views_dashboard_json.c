/* The dashboard's JSON: the links of its changes, and its headlines. */
#include <setjmp.h>

#include <cmocka.h>

#include "views/dashboard.h"
#include "views/record_json.h"

static void check(enum change_kind kind, int64_t number, const char *expected)
{
	json_t *obj = json_object();

	json_object_set_new(obj, "url", change_url_json("https://o", kind, number, "abc"));
	assert_string_equal(json_get_str(obj, "url"), expected);
	json_decref(obj);
}

/* One commit may have both a push and a periodic run. */
static void a_change_has_an_address(void **state)
{
	(void)state;
	check(CHANGE_PULL_REQUEST, 7, "https://o/pulls/7");
	check(CHANGE_PUSH, 0, "https://o/commits/abc");
	check(CHANGE_NIGHTLY, 0, "https://o/commits/abc?kind=nightly");
}

/* ---- the headline ---- */

#define NOW  INT64_C(1795176000000)
#define HOUR INT64_C(3600000)

struct one {
	const char *name;
	enum accelerator_status status;
	bool is_overdue, is_unhealthy;
	enum day_outcome night;
};

static void assert_said(const struct one *list, size_t n, const char *tone, const char *text, const char *rest)
{
	struct dashboard *d = xcalloc(1, sizeof(*d));
	json_t *obj, *headline;
	char *answer;

	d->rows = xcalloc(n, sizeof(*d->rows));
	d->n_rows = n;
	for (size_t i = 0; i < n; i++) {
		struct dashboard_row *r = &d->rows[i];

		r->name = xstrdup(list[i].name);
		r->at.facts = (struct accelerator_facts){.level = LEVEL_2, .is_unhealthy = list[i].is_unhealthy};
		r->at.state = (struct accelerator_state){.status = list[i].status, .is_overdue = list[i].is_overdue};
		r->nightly[DASHBOARD_DAYS - 1] = list[i].night;
	}
	answer = dashboard_json(d, "pytorch/pytorch", "main", "https://o");
	assert_int_equal(json_parse(answer, strlen(answer), &obj, NULL), 0);
	free(answer);
	headline = json_object_get(obj, "headline");
	assert_string_equal(json_get_str(headline, "tone"), tone);
	assert_string_equal(json_get_str(headline, "text"), text);
	assert_string_equal(json_get_str(headline, "rest"), rest);
	json_decref(obj);
	dashboard_free(d);
}
#define SAID(tone, text, rest, ...)                                                                                    \
	assert_said((const struct one[]){__VA_ARGS__}, sizeof((const struct one[]){__VA_ARGS__}) / sizeof(struct one), \
	    tone, text, rest)

#define IS_GREEN                                                                                                       \
	{                                                                                                              \
		.name = "green", .status = ACCELERATOR_GREEN                                                           \
	}

static void one_sentence_summarizes_the_state(void **state)
{
	(void)state;
	SAID("fail", "2 of 3 accelerators are red on main", "a is overdue (more than 72 hours).",
	    {.name = "b", .status = ACCELERATOR_RED}, {.name = "a", .status = ACCELERATOR_OVERDUE, .is_overdue = true},
	    IS_GREEN);
	SAID("fail", "1 of 1 accelerator is red on main", "", {.name = "a", .status = ACCELERATOR_RED});
	SAID("fail", "1 of 2 accelerators is red on main",
	    "a is overdue (more than 72 hours) and is unhealthy, so not counted.",
	    {.name = "a", .status = ACCELERATOR_OVERDUE, .is_overdue = true, .is_unhealthy = true}, IS_GREEN);
	SAID("pass", "All 2 accelerators are green on main", "", IS_GREEN, IS_GREEN);
	SAID("pass", "The one accelerator is green on main", "", IS_GREEN);
	SAID("pass", "Nothing is known to be red on main", "b is silent; a is not tested yet.", IS_GREEN,
	    {.name = "b", .status = ACCELERATOR_SILENT}, {.name = "a", .status = ACCELERATOR_UNTESTED});
	SAID("pass", "Nothing is known to be red on main", "a passes but for flaky tests or known issues.",
	    {.name = "a", .status = ACCELERATOR_EXPLAINED}, IS_GREEN);
	SAID("pass", "All 2 accelerators are green on main", "n is green, but its newest periodic run is not.",
	    IS_GREEN, {.name = "n", .status = ACCELERATOR_GREEN, .night = DAY_RED});
	SAID("pass", "All 4 accelerators are green on main",
	    "4 accelerators are green, but their newest periodic runs are not.",
	    {.name = "a", .status = ACCELERATOR_GREEN, .night = DAY_RED},
	    {.name = "b", .status = ACCELERATOR_GREEN, .night = DAY_RED},
	    {.name = "c", .status = ACCELERATOR_GREEN, .night = DAY_RED},
	    {.name = "d", .status = ACCELERATOR_GREEN, .night = DAY_MISSED});
}

/* B1 */
static void an_untested_commit_is_not_green(void **state)
{
	(void)state;
	SAID("miss", "Nothing has been tested on main yet", "", {.name = "a", .status = ACCELERATOR_UNTESTED},
	    {.name = "b", .status = ACCELERATOR_UNTESTED});
	SAID("miss", "No accelerator is known to be green on main",
	    "b is unhealthy, so not counted; a is not tested yet.", {.name = "a", .status = ACCELERATOR_UNTESTED},
	    {.name = "b", .status = ACCELERATOR_NOT_COUNTED, .is_unhealthy = true});
	SAID("miss", "No accelerator is known to be green on main",
	    "a let a deadline pass without a report; b ended its newest test without a pass.",
	    {.name = "a", .status = ACCELERATOR_NO_REPORT}, {.name = "b", .status = ACCELERATOR_NO_PASS});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_change_has_an_address),
	    cmocka_unit_test(one_sentence_summarizes_the_state),
	    cmocka_unit_test(an_untested_commit_is_not_green),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
