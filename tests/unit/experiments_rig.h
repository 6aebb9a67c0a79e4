/* Experiments on top of lease_rig.h: npu's runners are `ci` (a repository), `lab` (a webhook) and `farm` (machines).
 * Pull requests have red tests, and verdict.needs names the sides of an experiment that would help. */
#pragma once

#include "db/db.h"
#include "experiments/experiments.h"
#include "experiments/stress.h"
#include "lease_rig.h"
#include "verdict/attribution.h"
#include "verdict/cells_moved.h"

static struct db *look; /* a reader's connection */

/* ---- the registry ---- */

static enum reruns reruns = RERUNS_TESTS;

static enum runner_kind ci_kind = RUNNER_GITHUB;
static const char *ci_repository = "Ascend/pytorch";

/* Another accelerator with a runner `ci` of its own, in the same repository. */
static bool has_second;

static inline void mirror_npu(int n_tests, int n_rounds, int share, bool is_gone)
{
	static char *none[] = {NULL};
	struct runner runners[] = {
	    {.name = (char *)"ci", .kind = ci_kind, .repository = (char *)ci_repository},
	    {.name = (char *)"lab", .kind = RUNNER_WEBHOOK},
	    {.name = (char *)"farm", .kind = RUNNER_PULL, .labels = none},
	};
	struct accelerator list[] = {{.name = (char *)"npu",
					 .title = (char *)"NPU",
					 .level = LEVEL_2,
					 .oncall = none,
					 .must_pass = none,
					 .skip = none,
					 .experiments = {n_tests, n_rounds, share},
					 .runners = runners,
					 .n_runners = ARRAY_LEN(runners)},
	    {.name = (char *)"second",
		.title = (char *)"Second",
		.level = LEVEL_2,
		.oncall = none,
		.must_pass = none,
		.skip = none,
		.runners = runners,
		.n_runners = 1}};
	struct mirror_registry m = {.list = list, .n = is_gone ? 0 : 1 + (size_t)has_second, .now_ms = T0};

	for (size_t i = 0; i < ARRAY_LEN(runners); i++)
		runners[i].reruns = reruns;
	DO_OK(store_mirror_registry, &m);
}

static inline int experiments_setup(void **state)
{
	char *path;

	rig_setup(state);
	rig_n_guids = 0;
	reruns = RERUNS_TESTS;
	has_second = false;
	ci_kind = RUNNER_GITHUB;
	ci_repository = "Ascend/pytorch";
	path = rig_path();
	assert_int_equal(db_open(path, DB_READER, &look, NULL), 0);
	free(path);
	mirror_npu(50, 2, 100, false);
	return 0;
}

static inline int experiments_teardown(void **state)
{
	db_close(look);
	return rig_teardown(state);
}

static inline int64_t number(const char *sql)
{
	int64_t n = db_int_values(db_view(look), -1, sql, VALUES());

	if (db_status(look))
		fail_msg("%s: %s", sql, db_why(look)->text);
	return n;
}

/* free() */
static inline char *text_of(const char *sql)
{
	char *text = db_text_values(db_view(look), sql, VALUES());

	if (db_status(look))
		fail_msg("%s: %s", sql, db_why(look)->text);
	return text ? text : xstrdup("");
}

#define ASSERT_TEXT(sql, expected)                                                                                     \
	do {                                                                                                           \
		char *text_ = text_of(sql);                                                                            \
		assert_string_equal(text_, expected);                                                                  \
		free(text_);                                                                                           \
	} while (0)

/* All of them: "RUNNER SIDE rROUND STATE [TEST …]; …". */
#define EXPERIMENTS                                                                                                    \
	"SELECT group_concat(x, '; ') FROM (SELECT runner || ' ' || side || ' r' || round || ' '"                      \
	" || state || ' [' || COALESCE((SELECT group_concat(s.name, ' ') FROM experiment_test t"                       \
	" JOIN test s ON s.id = t.test_id WHERE t.experiment_id = e.id), '') || ']' AS x"                              \
	" FROM experiment e ORDER BY id) listed"
#define ASSERT_EXPERIMENTS(expected) ASSERT_TEXT(EXPERIMENTS, expected)

/* ---- an operation of one's own ---- */

struct own_op {
	struct store_op op;
	const char *sql;          /* a literal, because the store keeps its statement; NULL: none */
	const struct value *with; /* its values; NULL: none */
	const char *head;         /* the head whose cells move; NULL: none */
	enum cells_cause cause;
	const struct stress *stress; /* NULL: none */
	const char *call_off;        /* the person who cancels it; NULL: no cancel */
	int result;
	int64_t now_ms;
};

static inline int own_run(struct store_op *op, struct txn *d)
{
	struct own_op *o = CONTAINER_OF(op, struct own_op, op);
	int64_t id = 0;

	if (o->sql)
		db_exec_values(d, o->sql, o->with ? o->with : VALUES());
	if (o->head)
		id = db_int(
		    d, 0, "SELECT id FROM change WHERE head_sha = ?1 AND kind = 'pull_request'", V_TEXT(o->head));
	if (o->stress)
		o->result = stress_plan(d, o->stress);
	else if (o->call_off)
		o->result = experiments_call_off(d, id, NULL, o->call_off, o->now_ms);
	else if (o->head)
		cells_moved(d, id, "npu", o->cause, o->now_ms);
	return 0;
}

static inline int own_submit(struct store *s, struct own_op *o)
{
	o->op.run = own_run;
	o->op.bytes = sizeof(*o);
	return store_submit(s, &o->op);
}

static inline void change_sql(const char *sql)
{
	struct own_op o = {.sql = sql, .now_ms = T0};

	DO_OK(own_submit, &o);
}

/* Sets the needs of a head's red cells (the tests' names: LIKE), `at` after T0. */
static inline void need(const char *head, const char *tests, int bits, int64_t at)
{
	struct own_op o = {.sql = "UPDATE verdict SET needs = ?1 WHERE attribution IS NOT NULL AND"
				  " change_id IN (SELECT id FROM change WHERE head_sha = ?2)"
				  " AND test_id IN (SELECT id FROM test WHERE name LIKE ?3)",
	    .with = VALUES(V_INT(bits), V_TEXT(head), V_TEXT(tests)),
	    .head = head,
	    .cause = CELLS_CHANGE_SETTLED,
	    .now_ms = T0 + at};

	DO_OK(own_submit, &o);
}

/* ---- pull requests and their first runs ---- */

enum { TESTS_MAX = 60 };

static inline void open_head(int64_t number, const char *head, const char *runner, const char *held_reason, int64_t at)
{
	struct plan_want wants[] = {
	    GITHUB_WANT("npu", "Ascend/pytorch"), WEBHOOK_WANT("npu"), PULL_WANT("npu", "farm")};
	struct plan_want *w = wants;

	while (strcmp(w->runner, runner) != 0)
		w++;
	w->held_reason = (char *)held_reason;
	rig_apply(&(struct rig_plan){
	    .kind = PLAN_START, .number = number, .head = head, .event_ms = T0 + at, .wants = w, .n_wants = 1});
}

static inline char *first_run_of(const char *head)
{
	return db_text(look,
	    "SELECT x.id FROM dispatch x JOIN change c ON c.id = x.change_id WHERE c.head_sha = ?1"
	    " AND c.kind = 'pull_request' AND x.is_current = 1",
	    V_TEXT(head));
}

/* One job of a dispatch ends. The names in `red` fail, those in `green` pass. */
struct job_end {
	const char *dispatch, *run_id, *workflow, *name, *artifact;
	const char *const *red, *const *green;
	int attempt;
	const char *environment; /* a document that arrives before the job's end; NULL: none */
	int64_t at;
};

static inline int64_t end_job(const struct job_end *x)
{
	struct test_result tests[TESTS_MAX];
	size_t n = 0;
	struct job_report j = {.status = JOB_IN_PROGRESS,
	    .workflow = (char *)(x->workflow ? x->workflow : "CI"),
	    .name = (char *)(x->name ? x->name : "test"),
	    .run_id = (char *)(x->run_id ? x->run_id : x->dispatch),
	    .run_attempt = x->attempt ? x->attempt : 1};
	struct report_job op = {.dispatch_id = x->dispatch, .report = &j, .now_ms = T0 + x->at};

	for (const char *const *t = x->red; t && *t; t++)
		tests[n++] = (struct test_result){.suite = (char *)"unit",
		    .name = (char *)*t,
		    .status = TEST_FAIL,
		    .duration_ms = -1,
		    .message = (char *)"AssertionError: 1 != 2"};
	for (const char *const *t = x->green; t && *t; t++)
		tests[n++] = (struct test_result){
		    .suite = (char *)"unit", .name = (char *)*t, .status = TEST_PASS, .duration_ms = -1};
	DO_OK(store_report_job, &op);
	if (x->environment) {
		struct put_report doc = {.job_id = op.job_id, .environment = x->environment, .now_ms = T0 + x->at};

		doc.digest[0] = (uint8_t)op.job_id;
		DO_OK(store_put_report, &doc);
	}
	j.status = JOB_COMPLETED;
	j.conclusion = (char *)(x->red && *x->red ? "failure" : "success");
	j.artifact_url = (char *)x->artifact;
	j.tests = tests;
	j.n_tests = n;
	j.digest[0] = (uint8_t)(op.job_id + 7 * j.run_attempt);
	DO_OK(store_report_job, &op);
	assert_int_equal(op.outcome, REPORT_RECORDED);
	return op.job_id;
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* `runner` has tested PR `number` at `head`, and these tests failed. Nothing is planned before need(). */
static inline void a_red_head(int64_t number, const char *head, const char *runner, const char *const *red, int64_t at)
{
	char *id;

	open_head(number, head, runner, NULL, at);
	free(rig_send(T0 + at));
	id = first_run_of(head);
	change_sql("UPDATE accelerator SET experiment_share = -experiment_share");
	end_job(&(struct job_end){.dispatch = id, .red = red, .at = at + SECOND});
	change_sql("UPDATE accelerator SET experiment_share = -experiment_share");
	change_sql("UPDATE verdict SET needs = 0");
	free(id);
}

static inline void base_is(const char *head, const char *base)
{
	struct put_merge_base m = {.sha = base, .now_ms = T0};

	m.change_id =
	    db_int(look, 0, "SELECT id FROM change WHERE head_sha = ?1 AND kind = 'pull_request'", V_TEXT(head));
	DO_OK(store_put_merge_base, &m);
}

/* The dispatch of the n-th experiment, from 1. free(). */
static inline char *run_of(int64_t n)
{
	return db_text(look,
	    "SELECT x.id FROM dispatch x JOIN experiment e ON e.run_change_id = x.change_id"
	    " WHERE e.id = ?1",
	    V_INT(n));
}

/* The n-th experiment's run ends. */
static inline void end_run(int64_t n, const char *const *red, const char *const *green, int64_t at)
{
	char *id = run_of(n);

	assert_non_null(id);
	end_job(&(struct job_end){.dispatch = id, .red = red, .green = green, .at = at});
	free(id);
}

/* Attributes the due changes again. */
static inline void due_pass(int64_t at)
{
	struct claim_due_changes q = {.limit = 100, .now_ms = T0 + at};

	ASK_OK(store_claim_due_changes, &q);
	for (size_t i = 0; i < q.n; i++) {
		struct attribute_change a = {
		    .change_id = q.list[i].change_id, .generation = q.list[i].generation, .now_ms = T0 + at};

		DO_OK(store_attribute_change, &a);
	}
	claim_due_changes_release(&q);
}

static inline void deadlines_pass(int64_t at)
{
	struct expire_dispatches e = {.now_ms = T0 + at};

	DO_OK(store_expire_dispatches, &e);
}
