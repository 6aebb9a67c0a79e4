/* The two other forms of a change: JSON as the contract defines it, and a table for terminals. */
#include <setjmp.h>

#include <cmocka.h>

#include "rendering.h"
#include "text/check_output.h"
#include "view_builder.h"
#include "views/change.h"

static struct change_view *make_view(void)
{
	struct change_view *v = view_new();
	size_t npu = view_add_accelerator(v, "npu", "Ascend NPU", LEVEL_3, DISPATCH_DONE);
	size_t hpu = view_add_accelerator(v, "hpu", "Gaudi", LEVEL_2, DISPATCH_HELD);
	size_t lab = view_add_accelerator(v, "lab", "Silent Lab", LEVEL_1, DISPATCH_DONE);

	v->accelerators[hpu].dispatches[0].held_reason = xstrdup("a first-time contributor");
	view_add_job(v, npu, 12, "test", "failure")->completed_ms = VIEW_NOW_MS;
	view_add_verdict(v, npu, "model", "llama3", TEST_FAIL, 12)->message = xstrdup("bo\xFFom");
	view_add_verdict(v, npu, "model", "Qwen", TEST_PASS, 12);
	view_add_verdict(v, lab, "model", "Qwen", TEST_FAIL, 13);
	return v;
}

static json_t *json_of(const struct change_view *v)
{
	char *text = change_json(v, "https://outpost.example.org", &(struct verdict_choice){0});
	json_t *obj;

	assert_int_equal(json_parse(text, strlen(text), &obj, NULL), 0);
	free(text);
	return obj;
}

static void test_json_has_the_contract_s_fields(void **state)
{
	struct change_view *v = make_view();
	json_t *obj = json_of(v);
	json_t *accelerators = json_object_get(obj, "accelerators");
	json_t *verdicts = json_object_get(obj, "verdicts");
	json_t *npu = json_array_get(accelerators, 0), *red = json_array_get(verdicts, 0);
	json_t *job = json_array_get(json_object_get(npu, "jobs"), 0);
	json_t *held;

	(void)state;
	assert_string_equal(json_get_str(obj, "repository"), "pytorch/pytorch");
	assert_int_equal(json_get_int(obj, "number", 0), 4711);
	assert_string_equal(json_get_str(obj, "head_sha"), VIEW_HEAD_SHA);
	assert_true(json_is_null(json_object_get(obj, "merge_base_sha")));
	assert_string_equal(json_get_str(obj, "state"), "open");
	assert_int_equal(json_array_size(accelerators), 2);
	assert_string_equal(json_get_str(npu, "name"), "npu");
	assert_string_equal(json_get_str(npu, "level"), "L3");
	assert_string_equal(json_get_str(job, "status"), "completed");
	assert_string_equal(json_get_str(job, "run_id"), "77");
	assert_string_equal(json_get_str(job, "completed_at"), "2026-11-20T12:00:00Z");
	assert_true(json_is_null(json_object_get(job, "started_at")));
	held = json_array_get(json_object_get(json_array_get(accelerators, 1), "dispatches"), 0);
	assert_string_equal(json_get_str(held, "state"), "held");
	assert_string_equal(json_get_str(held, "held_reason"), "a first-time contributor");
	assert_int_equal(json_array_size(verdicts), 2);
	assert_string_equal(json_get_str(red, "accelerator"), "npu");
	assert_string_equal(json_get_str(red, "status"), "FAIL");
	assert_string_equal(json_get_str(red, "attribution"), "UNCLASSIFIED");
	assert_string_equal(json_get_str(red, "message"), "bo\xEF\xBF\xBDom");
	assert_int_equal(json_get_int(red, "job", 0), 12);
	/* B3: the cell's own job is no evidence for its attribution */
	assert_true(json_is_null(json_object_get(red, "evidence_url")));
	assert_true(json_is_null(json_object_get(json_array_get(verdicts, 1), "attribution")));
	json_decref(obj);
	change_view_free(v);
}

/* A failure of each kind on one accelerator, and one that does not count. */
static struct change_view *make_attributed(void)
{
	static const enum attribution kinds[] = {
	    ATTRIBUTION_NEW, ATTRIBUTION_UNCLASSIFIED, ATTRIBUTION_KNOWN, ATTRIBUTION_BASE, ATTRIBUTION_FLAKY};
	static const char *const names[] = {"a", "b", "c", "d", "e"};
	struct change_view *v = view_new();
	size_t npu = view_add_accelerator(v, "npu", "NPU", LEVEL_3, DISPATCH_DONE);
	size_t sick = view_add_accelerator(v, "sick", "Sick", LEVEL_2, DISPATCH_DONE);
	size_t mute = view_add_accelerator(v, "mute", "Mute", LEVEL_2, DISPATCH_EXPIRED);
	struct accelerator_view *a = &v->accelerators[npu];

	v->accelerators[sick].is_unhealthy = true;
	v->accelerators[mute].dispatches[0].last_error = xstrdup("did not start within 2h");
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct verdict_view *w = view_add_verdict(v, npu, "unit", names[i], TEST_FAIL, 12);

		w->attribution = kinds[i];
		w->reason = xstrdup("we looked");
		w->evidence_job = i > 1 ? 70 + (int64_t)i : 0;
	}
	v->verdicts[2].evidence_url = xstrdup("https://github.com/pytorch/pytorch/issues/7");
	v->verdicts[3].dtype = xstrdup("bf16");
	view_add_verdict(v, npu, "unit", "f", TEST_PASS, 12);
	view_add_verdict(v, npu, "unit", "g", TEST_MISS, 12);
	view_add_verdict(v, sick, "unit", "a", TEST_FAIL, 13);
	strv_add(&v->labels, "ciflow/crcr/npu");
	strv_add(&a->required_suites, "unit");
	strv_add(&a->required_suites, "mo\xFF");
	strv_add(&a->must_pass, "unit/f");
	strv_add(&a->must_pass, "unit/d");
	a->delta.base_sha = xstrdup(VIEW_BASE_SHA);
	a->delta.distance = 3;
	a->delta.n_disappeared = 1;
	strv_add(&a->delta.disappeared, "unit/z");
	a->at.facts.red_since_ms = VIEW_NOW_MS;
	a->at.state.is_overdue = true;
	return v;
}

static void check_cell(json_t *verdicts, size_t i, const char *attribution, const char *url)
{
	json_t *cell = json_array_get(verdicts, i);

	assert_string_equal(json_get_str(cell, "attribution"), attribution);
	assert_string_equal(json_get_str(cell, "reason"), "we looked");
	if (url)
		assert_string_equal(json_get_str(cell, "evidence_url"), url);
	else
		assert_true(json_is_null(json_object_get(cell, "evidence_url")));
}

static void check_required(json_t *npu)
{
	static const struct {
		const char *key, *name, *state;
	} expected[] = {{"suite", "unit", "met"}, {"suite", "mo\xEF\xBF\xBD", "not_reported"},
	    {"test", "unit/f", "met"}, {"test", "unit/d", "failed"}};
	json_t *list = json_object_get(npu, "required");

	assert_int_equal(json_array_size(list), ARRAY_LEN(expected));
	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		json_t *item = json_array_get(list, i);

		assert_string_equal(json_get_str(item, expected[i].key), expected[i].name);
		assert_string_equal(json_get_str(item, "state"), expected[i].state);
	}
}

static void test_json_says_why(void **state)
{
	struct change_view *v = make_attributed();
	json_t *obj = json_of(v);
	json_t *verdicts = json_object_get(obj, "verdicts");
	json_t *npu = json_array_get(json_object_get(obj, "accelerators"), 0);
	json_t *delta = json_object_get(npu, "delta");

	(void)state;
	check_cell(verdicts, 0, "NEW", NULL);
	check_cell(verdicts, 2, "KNOWN", "https://github.com/pytorch/pytorch/issues/7");
	check_cell(verdicts, 3, "BASE", "https://outpost.example.org/jobs/73");
	assert_string_equal(json_get_str(json_array_get(verdicts, 3), "dtype"), "bf16");
	assert_int_equal(json_get_int(json_array_get(verdicts, 3), "evidence_job", 0), 73);
	assert_true(json_is_null(json_object_get(json_array_get(verdicts, 0), "evidence_job")));
	assert_string_equal(json_string_value(json_array_get(json_object_get(obj, "labels"), 0)), "ciflow/crcr/npu");
	check_required(npu);
	assert_int_equal(json_get_int(delta, "distance", 0), 3);
	assert_int_equal(json_get_int(delta, "disappeared", 0), 1);
	assert_string_equal(
	    json_string_value(json_array_get(json_object_get(delta, "disappeared_tests"), 0)), "unit/z");
	assert_string_equal(json_get_str(npu, "red_since"), "2026-11-20T12:00:00Z");
	assert_string_equal(json_get_str(npu, "red_by"), "tests");
	assert_true(json_get_bool(npu, "overdue", false));
	assert_false(json_get_bool(npu, "unhealthy", true));
	assert_string_equal(json_get_str(json_object_get(obj, "summary"), "verdict"), "fail");
	json_decref(obj);
	change_view_free(v);
}

static void check_counts(json_t *obj, const char *keys, int64_t each)
{
	char *list = xstrdup(keys), *rest = list, *key;

	while ((key = strsep(&rest, " ")))
		assert_int_equal(json_get_int(obj, key, -1), each);
	free(list);
}

static void test_verdict_counts(void **state)
{
	struct change_view *v = make_attributed();
	json_t *obj = view_verdict(v), *list = json_object_get(obj, "accelerators"), *npu;

	(void)state;
	assert_string_equal(json_get_str(obj, "verdict"), "fail");
	assert_true(json_get_bool(obj, "complete", false));
	check_counts(obj, "new unclassified known base flaky not_counted", 1);
	check_counts(obj, "missing", 2); /* the cell, and the rerun without a result */
	assert_int_equal(json_array_size(list), 3);
	npu = json_array_get(list, 0);
	assert_string_equal(json_get_str(npu, "name"), "npu");
	assert_string_equal(json_get_str(npu, "outcome"), "new");
	check_counts(npu, "new unclassified known base flaky missing passed lacking", 1);
	assert_string_equal(json_get_str(json_array_get(list, 1), "outcome"), "missing");
	assert_string_equal(json_get_str(json_array_get(list, 2), "outcome"), "not_counted");
	check_counts(json_array_get(list, 2), "new", 0);
	json_decref(obj);
	v->state = CHANGE_SUPERSEDED;
	obj = view_verdict(v);
	assert_string_equal(json_get_str(obj, "verdict"), "unknown");
	assert_null(json_object_get(obj, "new"));
	json_decref(obj);
	change_view_free(v);
}

/* One accelerator with one cell, in each attribution and state, and the verdict that a merge bot may use. */
static void test_verdicts(void **state)
{
	static const struct {
		enum dispatch_state state;
		enum test_status status; /* of the second cell; the first one passed */
		enum attribution attribution;
		const char *verdict;
	} cases[] = {
	    {DISPATCH_DONE, TEST_PASS, N_ATTRIBUTIONS, "pass"},
	    {DISPATCH_DONE, TEST_SKIP, N_ATTRIBUTIONS, "pass"},
	    {DISPATCH_DONE, TEST_FAIL, ATTRIBUTION_NEW, "fail"},
	    {DISPATCH_RUNNING, TEST_FAIL, ATTRIBUTION_NEW, "fail"},
	    {DISPATCH_DONE, TEST_FAIL, ATTRIBUTION_UNCLASSIFIED, "unknown"},
	    {DISPATCH_DONE, TEST_ERROR, N_ATTRIBUTIONS, "unknown"},
	    {DISPATCH_DONE, TEST_FAIL, ATTRIBUTION_KNOWN, "pass"},
	    {DISPATCH_DONE, TEST_ERROR, ATTRIBUTION_BASE, "pass"},
	    {DISPATCH_DONE, TEST_FAIL, ATTRIBUTION_FLAKY, "pass"},
	    {DISPATCH_RUNNING, TEST_FAIL, ATTRIBUTION_BASE, "pending"},
	    {DISPATCH_RUNNING, TEST_FAIL, ATTRIBUTION_UNCLASSIFIED, "pending"},
	    {DISPATCH_QUEUED, TEST_MISS, ATTRIBUTION_UNCLASSIFIED, "pending"},
	    {DISPATCH_HELD, TEST_FAIL, ATTRIBUTION_UNCLASSIFIED, "pending"},
	    {DISPATCH_HELD, TEST_PASS, N_ATTRIBUTIONS, "pending"},
	    {DISPATCH_DONE, TEST_MISS, ATTRIBUTION_UNCLASSIFIED, "unknown"},
	    {DISPATCH_DONE, TEST_MISS, ATTRIBUTION_NEW, "unknown"},
	    {DISPATCH_EXPIRED, TEST_PASS, N_ATTRIBUTIONS, "unknown"},
	    {DISPATCH_CANCELLED, TEST_PASS, N_ATTRIBUTIONS, "unknown"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct change_view *v = view_new();
		size_t a = view_add_accelerator(v, "a", "A", LEVEL_2, cases[i].state);
		json_t *obj;

		view_add_verdict(v, a, "s", "t", TEST_PASS, 1);
		view_add_verdict(v, a, "s", "u", cases[i].status, 1)->attribution = cases[i].attribution;
		obj = view_verdict(v);
		if (strcmp(json_get_str(obj, "verdict"), cases[i].verdict) != 0)
			fail_msg("case %zu is %s", i, json_get_str(obj, "verdict"));
		json_decref(obj);
		change_view_free(v);
	}
}

/* While an experiment runs a failure again, the failure counts as it is: the verdict is never pass, and the
 * change is not complete. */
static void test_a_rerun_failure_counts_until_the_rerun_ends(void **state)
{
	static const struct {
		enum attribution attribution;
		const char *verdict, *first_line;
	} cases[] = {
	    {ATTRIBUTION_NEW, "fail", "1 new failure on A; re-running 1 failure."},
	    {ATTRIBUTION_UNCLASSIFIED, "pending", "1 failure on A, not classified yet; re-running 1 failure."},
	    {ATTRIBUTION_KNOWN, "pending",
		"Nothing new is red so far: 1 failure not caused by this change (known);"
		" re-running 1 failure."},
	    {ATTRIBUTION_BASE, "pending",
		"Nothing new is red so far: 1 failure not caused by this change (on the base);"
		" re-running 1 failure."},
	    {ATTRIBUTION_FLAKY, "pending",
		"Nothing new is red so far: 1 failure not caused by this change (flaky);"
		" re-running 1 failure."},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct change_view *v = view_new();
		size_t a = view_add_accelerator(v, "a", "A", LEVEL_2, DISPATCH_DONE);
		struct verdict_view *w;
		json_t *obj, *summary;

		view_add_verdict(v, a, "s", "t", TEST_PASS, 1);
		w = view_add_verdict(v, a, "s", "u", TEST_FAIL, 1);
		w->attribution = cases[i].attribution;
		w->rerun = RERUN_PENDING;
		obj = json_of(v);
		summary = json_object_get(obj, "summary");
		assert_string_equal(json_get_str(summary, "verdict"), cases[i].verdict);
		assert_string_equal(json_get_str(summary, "text"), cases[i].first_line);
		assert_int_equal(json_get_int(summary, "rerunning", -1), 1);
		assert_false(json_get_bool(summary, "complete", true));
		assert_false(view_is_complete(v));
		json_decref(obj);
		v->verdicts[1].rerun = RERUN_NONE;
		assert_true(view_is_complete(v));
		v->verdicts[1].rerun = RERUN_PENDING;
		v->accelerators[a].is_unhealthy = true; /* a run that does not count is not waited for */
		assert_true(view_is_complete(v));
		change_view_free(v);
	}
}

/* Comment, check run and API show the outcome of a rerun; if a job shows it, they link to that job. */
static void test_each_surface_shows_the_outcome_of_a_rerun(void **state)
{
	static const struct comment_options comment_how = {.public_url = "https://outpost.example.org",
	    .github_url = "https://github.com",
	    .now_wall_ms = VIEW_NOW_MS};
	static const struct check_options check_how = {.public_url = "https://outpost.example.org"};

	(void)state;
	for (int s = 0; s < N_RERUN_STATES; s++) {
		struct change_view *v = view_new();
		size_t a = view_add_accelerator(v, "a", "A", LEVEL_4, DISPATCH_DONE);
		struct verdict_view *w;
		struct check_output check;
		struct comment comment;
		const char *name = rerun_state_name(s), *words = rerun_state_text(s);
		char *said = words ? s == RERUN_VOID ? xasprintf("[%s](https://outpost.example.org/jobs/77)", words)
						     : xstrdup(words)
				   : NULL;
		json_t *obj, *cell;

		view_add_job(v, a, 1, "test", "failure");
		w = view_add_verdict(v, a, "s", "u", TEST_FAIL, 1);
		w->attribution = ATTRIBUTION_UNCLASSIFIED;
		w->rerun = (enum rerun_state)s;
		w->rerun_job = s == RERUN_VOID ? 77 : 0;
		view_comment(v, &comment_how, &comment);
		check_output_of_job(v, a, 0, &check_how, &check);
		obj = json_of(v);
		cell = json_array_get(json_object_get(obj, "verdicts"), 0);
		if (said) {
			char *part = xasprintf(" · %s", said);

			assert_non_null(strstr(comment.markdown, part));
			assert_non_null(strstr(check.summary, part));
			assert_string_equal(json_get_str(cell, "rerun"), name);
			free(part);
		} else {
			assert_null(strstr(comment.markdown, "rerun"));
			assert_null(strstr(check.summary, "rerun"));
			assert_true(json_is_null(json_object_get(cell, "rerun")));
		}
		assert_int_equal(json_get_int(cell, "rerun_job", 0), w->rerun_job);
		assert_int_equal(view_is_complete(v), s != RERUN_PENDING);
		json_decref(obj);
		check_output_release(&check);
		comment_release(&comment);
		free(said);
		change_view_free(v);
	}
}

static void add_experiment(struct change_view *v, size_t accelerator)
{
	struct accelerator_view *a = &v->accelerators[accelerator];
	struct experiment_view *e = VIEW_PUSH(a->experiments, a->n_experiments);
	struct experiment_result *r;

	*e = (struct experiment_view){.id = 9,
	    .side = EXPERIMENT_BASE,
	    .sha = xstrdup(VIEW_BASE_SHA),
	    .round = 2,
	    .cause = xstrdup("stress"),
	    .state = xstrdup("void"),
	    .reason = xstrdup("another\xFF commit"),
	    .runner = xstrdup("ci"),
	    .n_tests = 3,
	    .job = 77,
	    .created_ms = VIEW_NOW_MS,
	    .not_before_ms = VIEW_NOW_MS + 3600000};
	r = VIEW_PUSH(e->results, e->n_results);
	*r = (struct experiment_result){xstrdup("model"), xstrdup("llama3"), NULL, TEST_PASS, 77};
	r = VIEW_PUSH(e->results, e->n_results);
	*r = (struct experiment_result){xstrdup("unit"), xstrdup("op"), xstrdup("bf16"), N_TEST_STATUSES, 0};
}

static void test_json_lists_experiments(void **state)
{
	struct change_view *v = make_view();
	json_t *obj, *npu, *e, *r;

	(void)state;
	add_experiment(v, 0);
	obj = json_of(v);
	npu = json_array_get(json_object_get(obj, "accelerators"), 0);
	e = json_array_get(json_object_get(npu, "experiments"), 0);
	assert_int_equal(json_get_int(e, "id", 0), 9);
	assert_string_equal(json_get_str(e, "side"), "base");
	assert_string_equal(json_get_str(e, "sha"), VIEW_BASE_SHA);
	assert_int_equal(json_get_int(e, "round", 0), 2);
	assert_string_equal(json_get_str(e, "cause"), "stress");
	assert_string_equal(json_get_str(e, "state"), "void");
	assert_string_equal(json_get_str(e, "reason"), "another\xEF\xBF\xBD commit");
	assert_int_equal(json_get_int(e, "tests", 0), 3);
	assert_int_equal(json_get_int(e, "job", 0), 77);
	assert_string_equal(json_get_str(e, "created_at"), "2026-11-20T12:00:00Z");
	assert_true(json_is_null(json_object_get(e, "started_at")));
	assert_string_equal(json_get_str(e, "not_before_at"), "2026-11-20T13:00:00Z");
	r = json_array_get(json_object_get(e, "results"), 0);
	assert_string_equal(json_get_str(r, "status"), "PASS");
	assert_int_equal(json_get_int(r, "job", 0), 77);
	r = json_array_get(json_object_get(e, "results"), 1);
	assert_true(json_is_null(json_object_get(r, "status")));
	assert_true(json_is_null(json_object_get(r, "job")));
	assert_string_equal(json_get_str(r, "dtype"), "bf16");
	json_decref(obj);
	change_view_free(v);
}

/* ---- the first line, for every pair of accelerators ---- */

static const struct seen {
	enum test_status status; /* N_TEST_STATUSES: no cell */
	enum attribution attribution;
} SEEN[] = {
    {N_TEST_STATUSES, N_ATTRIBUTIONS},
    {TEST_PASS, N_ATTRIBUTIONS},
    {TEST_SKIP, N_ATTRIBUTIONS},
    {TEST_DONE, N_ATTRIBUTIONS},
    {TEST_FAIL, ATTRIBUTION_NEW},
    {TEST_ERROR, ATTRIBUTION_UNCLASSIFIED},
    {TEST_FAIL, ATTRIBUTION_KNOWN},
    {TEST_FAIL, ATTRIBUTION_FLAKY},
    {TEST_MISS, ATTRIBUTION_UNCLASSIFIED},
};
enum { N_SEEN = sizeof(SEEN) / sizeof(SEEN[0]) };

/* One accelerator: its dispatch state, its result, whether it is unhealthy. */
struct situation {
	enum dispatch_state state;
	struct seen seen;
	bool is_unhealthy;
};

static struct situation situation_of(size_t i)
{
	return (struct situation){(enum dispatch_state)(i % N_DISPATCH_STATES), SEEN[i / N_DISPATCH_STATES % N_SEEN],
	    i / N_DISPATCH_STATES / N_SEEN};
}
enum { N_SITUATIONS = 2 * N_DISPATCH_STATES * N_SEEN };

static void add_situation(struct change_view *v, const char *name, const struct situation *s)
{
	size_t a = view_add_accelerator(v, name, name, LEVEL_2, s->state);

	v->accelerators[a].is_unhealthy = s->is_unhealthy;
	view_add_job(v, a, (int64_t)a + 1, "all", "success");
	if (s->seen.status != N_TEST_STATUSES)
		view_add_verdict(v, a, "s", "t", s->seen.status, (int64_t)a + 1)->attribution = s->seen.attribution;
}

/* The rule of docs/comment.md, written independently of the product's table. */
static const char *sign_of(const struct situation *all, size_t n)
{
	bool has_new = false, is_at_work = false, has_gap = false, has_pass = false;

	for (size_t i = 0; i < n; i++) {
		const struct situation *s = &all[i];

		if (s->is_unhealthy)
			continue;
		has_new |= s->seen.attribution == ATTRIBUTION_NEW;
		is_at_work |= dispatch_is_unfinished(s->state);
		has_gap |= s->seen.attribution == ATTRIBUTION_UNCLASSIFIED ||
			   (s->state != DISPATCH_DONE && !dispatch_is_unfinished(s->state));
		has_pass |= s->seen.status == TEST_PASS;
	}
	if (has_new)
		return "✗ ";
	if (is_at_work)
		return "… ";
	return has_gap || !has_pass ? "? " : "✓ ";
}

static void check_first_line(const struct situation *all, size_t n)
{
	struct comment_options o = {.public_url = "https://outpost.example.org", .github_url = "https://github.com"};
	static const char *const names[] = {"a", "b"};
	const char *expected = sign_of(all, n), *line;
	struct change_view *v = view_new();
	struct comment c;

	for (size_t i = 0; i < n; i++)
		add_situation(v, names[i], &all[i]);
	view_comment(v, &o, &c);
	line = strchr(c.markdown, '\n') + 1;
	if (strncmp(line, expected, strlen(expected)) != 0)
		fail_msg("%s expected for %s/%s and %s/%s: %.200s", expected, dispatch_state_name(all[0].state),
		    attribution_name(all[0].seen.attribution), n > 1 ? dispatch_state_name(all[1].state) : "",
		    n > 1 ? attribution_name(all[1].seen.attribution) : "", line);
	comment_release(&c);
	change_view_free(v);
}

static void test_first_line_of_every_situation(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_SITUATIONS; i++) {
		struct situation two[2] = {situation_of(i)};

		check_first_line(two, 1);
		for (size_t j = i; j < N_SITUATIONS; j++) {
			two[1] = situation_of(j);
			check_first_line(two, 2);
		}
	}
}

static void test_nothing_is_green_without_a_pass(void **state)
{
	static const enum attribution kinds[] = {ATTRIBUTION_KNOWN, ATTRIBUTION_BASE, ATTRIBUTION_FLAKY};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct change_view *v = view_new();
		size_t a = view_add_accelerator(v, "a", "A", LEVEL_2, DISPATCH_DONE);
		json_t *obj;

		view_add_verdict(v, a, "s", "t", TEST_FAIL, 1)->attribution = kinds[i];
		obj = view_verdict(v);
		assert_string_equal(json_get_str(obj, "verdict"), "unknown");
		json_decref(obj);
		change_view_free(v);
	}
}

static void test_terminal_is_aligned(void **state)
{
	struct terminal_options o = {
	    .width = 60, .public_url = "https://outpost.example.org", .now_wall_ms = VIEW_NOW_MS};
	struct change_view *v = make_view();
	struct buf out = BUF_INIT(1 << 20);

	(void)state;
	view_terminal(v, &o, &out);
	assert_string_equal(buf_str(&out),
	    "… 1 failure on Ascend NPU, not classified: this change may have caused it; 1 "
	    "accelerator is held.\n\n"
	    "pytorch/pytorch#4711 at 1111111111\n\n"
	    "Test          Ascend NPU\n"
	    "model/llama3      ✗     \n"
	    "model/Qwen        ✓     \n\n"
	    "Not classified\n"
	    "✗ model/llama3 on Ascend NPU\n"
	    "    bo\xEF\xBF\xBDom\n"
	    "    https://outpost.example.org/jobs/12\n\n"
	    "held  Gaudi: a first-time contributor\n\n"
	    "✓ passed  ✗ failed  ! test broke  ? no report  – skipped  • measured  … running\n"
	    "2026-11-20T12:00:00Z\n");
	buf_release(&out);
	change_view_free(v);
}

static void test_terminal_shows_the_attribution(void **state)
{
	struct terminal_options o = {
	    .width = 60, .public_url = "https://outpost.example.org", .now_wall_ms = VIEW_NOW_MS};
	struct change_view *v = make_attributed();
	struct buf out = BUF_INIT(1 << 20);

	(void)state;
	view_terminal(v, &o, &out);
	assert_non_null(strstr(buf_str(&out), "Test           Mute  NPU      Sick         \n"
					      "unit/a          ?     ✗ new   ✗ not counted\n"
					      "unit/b          ?       ✗                  \n"
					      "unit/c          ?    ✗ known               \n"
					      "unit/d (bf16)   ?    ✗ base                \n"));
	assert_non_null(strstr(buf_str(&out), "Known, with an issue\n✗ unit/c on NPU\n    no message\n    we looked\n"
					      "    https://github.com/pytorch/pytorch/issues/7\n"));
	assert_non_null(strstr(buf_str(&out), "required  NPU: not all is there\nunhealthy  Sick: not counted\n"));
	buf_clear(&out);
	v->state = CHANGE_SUPERSEDED;
	view_terminal(v, &o, &out);
	assert_null(strstr(buf_str(&out), "unit/"));
	buf_release(&out);
	change_view_free(v);
}

static void test_terminal_breaks_into_blocks_and_lets_no_escape_through(void **state)
{
	struct terminal_options o = {
	    .width = 50, .public_url = "https://outpost.example.org", .now_wall_ms = VIEW_NOW_MS};
	struct change_view *v = view_new();
	struct buf out = BUF_INIT(1 << 20);

	(void)state;
	for (int i = 0; i < 10; i++) {
		char name[32];

		snprintf(name, sizeof(name), "Accelerator %d", i);
		view_add_accelerator(v, name, name, LEVEL_2, DISPATCH_DONE);
		view_add_verdict(v, (size_t)i, "s", "日本語\x1b[31m", TEST_PASS, 1);
	}
	view_terminal(v, &o, &out);
	assert_null(strchr(buf_str(&out), '\x1b'));
	assert_non_null(strstr(buf_str(&out), "Test           Accelerator 0  Accelerator 1\n"));
	assert_non_null(strstr(buf_str(&out), "s/日本語 [31m        ✓              ✓      \n"));
	buf_release(&out);
	change_view_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_json_has_the_contract_s_fields),
	    cmocka_unit_test(test_json_says_why),
	    cmocka_unit_test(test_verdict_counts),
	    cmocka_unit_test(test_verdicts),
	    cmocka_unit_test(test_a_rerun_failure_counts_until_the_rerun_ends),
	    cmocka_unit_test(test_each_surface_shows_the_outcome_of_a_rerun),
	    cmocka_unit_test(test_json_lists_experiments),
	    cmocka_unit_test(test_first_line_of_every_situation),
	    cmocka_unit_test(test_nothing_is_green_without_a_pass),
	    cmocka_unit_test(test_terminal_is_aligned),
	    cmocka_unit_test(test_terminal_shows_the_attribution),
	    cmocka_unit_test(test_terminal_breaks_into_blocks_and_lets_no_escape_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
