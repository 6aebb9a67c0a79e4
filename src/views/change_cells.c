#include "views/change.h"

#include "db/key.h"
#include "db/record_rows.h"
#include "experiments/experiment_rows.h"
#include "store/branch_commits.h"
#include "text/table.h"
#include "verdict/attribution.h"
#include "views/record_json.h"

enum { KEY_PARTS = 4, KEY_MAX_BYTES = 1024 };

/* ---- the cells ---- */

/* Of an experiment e that is open. */
#define WAITS_FOR_GOOD_MACHINE "(e.state = 'planned' AND e.not_before_ms > 0)"
#define IS_RED_IN_RUNNER                                                                                               \
	"EXISTS (SELECT 1 FROM job j WHERE j.change_id = v.change_id"                                                  \
	" AND j.accelerator = v.accelerator AND j.runner = e.runner AND j.is_current = 1"                              \
	" AND " TEST_IS_RED_IN_JOB("v.test_id", "v.job_id") ")"
/* An open experiment e of the cell's own change waits for a good machine (1) or not (0), and has a test x. */
#define OWN_EXPERIMENT(waits, condition)                                                                               \
	"EXISTS (SELECT 1 FROM experiment e JOIN experiment_test x ON x.experiment_id = e.id"                          \
	" WHERE e.change_id = v.change_id AND e.accelerator = v.accelerator AND e.cause = 'auto'"                      \
	" AND e." EXPERIMENT_IS_OPEN " AND CASE WHEN " WAITS_FOR_GOOD_MACHINE " THEN 1 ELSE 0 END = " waits            \
	" AND " condition ")"
#define IS_BEHIND_SAMPLE                                                                                               \
	"x.waits = 1 AND (v.needs & CASE e.side WHEN 'head' THEN 1 ELSE 2 END) <> 0 "                                  \
	"AND " IS_RED_IN_RUNNER
/* A sample stands for all tests that need a good machine: they follow where it passes, and wait where it waits. */
#define OWN_RERUN(waits)                                                                                               \
	"(" OWN_EXPERIMENT(waits, "x.test_id = v.test_id") " OR ((v.needs & 4) <> 0"                                   \
							   " AND " OWN_EXPERIMENT(waits, IS_BEHIND_SAMPLE) "))"
#define RERUN_OF_ANOTHER                                                                                               \
	ANOTHER_RUNS_ON_BASE("v.change_id", "v.accelerator", "c.merge_base_sha", "v.test_id", IS_RED_IN_RUNNER)
/* An enum rerun_state of a cell v of change c. An experiment of another change on the same merge base decides it, too. */
#define RERUN_OF_CELL                                                                                                  \
	"CASE WHEN v.attribution IS NULL THEN 0 WHEN " OWN_RERUN(                                                      \
	    "0") " THEN 1"                                                                                             \
		 " WHEN (v.needs & 2) <> 0 AND c.state = 'open' AND " RERUN_OF_ANOTHER " THEN 1"                       \
		 " WHEN " OWN_RERUN("1") " THEN 2 ELSE 0 END"
_Static_assert(NEEDS_GOOD_MACHINE == 4, "OWN_RERUN has its number");
_Static_assert(RERUN_PENDING == 1 && RERUN_LATER == 2, "RERUN_OF_CELL has their numbers");

static void add_cells(struct change_view *v, struct rows *r)
{
	while (rows_next(r)) {
		struct accelerator_view *a = change_view_accelerator(v, rows_key(r));

		if (!a)
			continue;
		struct verdict_view *w = ARRAY_PUSH(v->verdicts, v->n_verdicts);
		w->accelerator = (size_t)(a - v->accelerators);
		record_read(r, &verdict_view_record, w);
	}
}

static int by_test(const void *x, const void *y)
{
	const struct verdict_view *a = x, *b = y;
	int order = strcmp(a->suite, b->suite);

	if (!order)
		order = strcmp(a->test, b->test);
	if (!order)
		order = strcmp(a->dtype ? a->dtype : "", b->dtype ? b->dtype : "");
	if (!order)
		order = (a->accelerator > b->accelerator) - (a->accelerator < b->accelerator);
	return order;
}

/* ---- why a rerun that would help brought nothing ---- */

/* The cells of one runner that are not decided (c), each with its newest experiment (e) on a side that would help. ?6: the
 * merge base. If another change's run of it has just ended, Outpost attributes this change again in a moment. */
#define UNSETTLED                                                                                                      \
	"WITH c AS (SELECT v.test_id, t.suite, t.name, t.dtype, v.needs, (SELECT e.id"                                 \
	"  FROM experiment e JOIN experiment_test x ON x.experiment_id = e.id"                                         \
	"  AND x.test_id = v.test_id WHERE e.change_id = v.change_id"                                                  \
	"  AND e.accelerator = v.accelerator AND e.runner = ?4 AND e.cause = 'auto'"                                   \
	"  AND (v.needs & CASE e.side WHEN 'head' THEN 1 ELSE 2 END) <> 0"                                             \
	"  ORDER BY e.id DESC LIMIT 1) AS newest" UNDECIDED ") "
#define RERUN_ENDED_RECORD(F, S)                                                                                       \
	F(S, TEXT, suite, NULL, "c.suite", "")                                                                         \
	F(S, TEXT, test, NULL, "c.name", "")                                                                           \
	F(S, TEXT, dtype, NULL, "NULLIF(c.dtype, '')", "")                                                             \
	F(S, TEXT, state, NULL, "COALESCE(e.state, '')", "")                                                           \
	F(S, BOOL, has_begun, NULL, "e.started_ms IS NOT NULL", "")                                                    \
	F(S, INT, job, NULL, "(SELECT MIN(j.id) FROM job j WHERE j.change_id = e.run_change_id)", "")                  \
	F(S, BOOL, has_result, NULL,                                                                                   \
	    "EXISTS (SELECT 1 FROM cell f WHERE f.change_id = e.run_change_id"                                         \
	    " AND f.accelerator = ?2 AND f.test_id = c.test_id"                                                        \
	    " AND f.status IN ('PASS', 'FAIL', 'ERROR', 'DONE'))",                                                     \
	    "")                                                                                                        \
	F(S, BOOL, could_run, NULL,                                                                                    \
	    "(c.needs & 1) <> 0 OR (?6 IS NOT NULL AND NOT EXISTS (SELECT 1 FROM experiment o"                         \
	    " JOIN experiment_test x ON x.experiment_id = o.id AND x.test_id = c.test_id"                              \
	    " WHERE o.accelerator = ?2 AND o.sha = ?6 AND o.side = 'base' AND o.state = 'done'"                        \
	    " AND o.change_id <> ?1))",                                                                                \
	    "")
RECORD_LOCAL(rerun_ended, RERUN_ENDED_RECORD)

/* Of a runner without an open experiment. */
static enum rerun_state rerun_state_of(const struct rerun_ended *e, bool is_cancelled)
{
	if (strcmp(e->state, "expired") == 0)
		return e->has_begun ? RERUN_NO_ANSWER : RERUN_NO_ROOM;
	if (strcmp(e->state, "void") == 0)
		return RERUN_VOID;
	if (strcmp(e->state, "done") == 0 && !e->has_result)
		return RERUN_NO_RESULT;
	if (is_cancelled)
		return RERUN_CALLED_OFF;
	return e->could_run ? RERUN_OVER_LIMIT : RERUN_NONE;
}

static void read_reruns_of(const struct view *d, struct change_view *v, size_t accelerator, const struct rerunner *u)
{
	const char *name = v->accelerators[accelerator].name;
	bool is_cancelled = db_has(d,
	    "SELECT 1 FROM experiment WHERE change_id = ?1 AND accelerator = ?2 AND runner = ?3"
	    " AND dispatch_id = ?4 AND cause = 'auto' AND cancelled_by IS NOT NULL LIMIT 1",
	    V_INT(v->change_id), V_TEXT(name), V_TEXT(u->runner), V_TEXT(u->dispatch_id));
	struct rows *r =
	    db_rows(d, UNSETTLED RECORD_QUERY(RERUN_ENDED_RECORD, "FROM c LEFT JOIN experiment e ON e.id = c.newest"),
		V_INT(v->change_id), V_TEXT(name), V_TEXT(u->dispatch_id), V_TEXT(u->runner), V_INT(u->is_by_test),
		V_TEXT(u->sha[EXPERIMENT_BASE]));

	while (rows_next(r)) {
		struct rerun_ended e;

		record_read(r, &rerun_ended_record, &e);
		struct verdict_view *w = bsearch(
		    &(struct verdict_view){
			.accelerator = accelerator, .suite = e.suite, .test = e.test, .dtype = e.dtype},
		    v->verdicts, v->n_verdicts, sizeof(*w), by_test);
		if (w && w->rerun != RERUN_PENDING && w->rerun != RERUN_LATER) {
			w->rerun = rerun_state_of(&e, is_cancelled);
			w->rerun_job = w->rerun == RERUN_VOID || w->rerun == RERUN_NO_RESULT ? e.job : 0;
		}
		record_release(&rerun_ended_record, &e);
	}
}

/* As long as an experiment of a runner is open, another round may follow, so its other cells get no note. One that waits
 * for a good machine is no such round: other tests do not wait for it. */
static void read_reruns(const struct view *d, struct change_view *v, size_t accelerator)
{
	const char *name = v->accelerators[accelerator].name;
	size_t n;

	if (!db_has(d,
		"SELECT 1 FROM verdict WHERE change_id = ?1 AND accelerator = ?2"
		" AND attribution IS NOT NULL AND needs <> 0 LIMIT 1",
		V_INT(v->change_id), V_TEXT(name)))
		return;
	struct rerunner *list = rerunners_of(d, v->change_id, name, &n);
	for (size_t i = 0; i < n; i++)
		if (list[i].has_ended && !db_has(d,
					     "SELECT 1 FROM experiment e WHERE change_id = ?1 AND accelerator = ?2"
					     " AND runner = ?3 AND cause = 'auto' AND " EXPERIMENT_IS_OPEN
					     " AND NOT " WAITS_FOR_GOOD_MACHINE " LIMIT 1",
					     V_INT(v->change_id), V_TEXT(name), V_TEXT(list[i].runner)))
			read_reruns_of(d, v, accelerator, &list[i]);
	rerunners_release(list, n);
}

/* ---- all of them ---- */

#define STATUS_COUNT_RECORD(F, S)                                                                                      \
	F(S, TEST_STATUS, status, NULL, "status", "")                                                                  \
	F(S, INT, n, NULL, "COUNT(*)", "")
RECORD_LOCAL(status_count, STATUS_COUNT_RECORD)

/* So that a cut view knows which accelerators passed, although it has not read their tests. */
static void count_cells(const struct view *d, struct change_view *v)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY_BY("accelerator", STATUS_COUNT_RECORD,
		"FROM cell WHERE change_id = ?1 AND job_id IS NOT NULL GROUP BY accelerator, status"),
	    V_INT(v->change_id));

	while (rows_next(r)) {
		struct accelerator_view *a = change_view_accelerator(v, rows_key(r));
		struct status_count c;

		record_read(r, &status_count_record, &c);
		if (a && c.status < N_TEST_STATUSES)
			a->n_verdicts[c.status] = (size_t)c.n;
	}
	v->n_tests_total =
	    db_int(d, 0, "SELECT COUNT(DISTINCT test_id) FROM cell WHERE change_id = ?1 AND job_id IS NOT NULL",
		V_INT(v->change_id));
}

#define CELLS_OF_CHANGE(cells)                                                                                         \
	RECORD_SELECT_BY("v.accelerator", VERDICT_VIEW_RECORD)                                                         \
	" FROM " cells " v CROSS JOIN test t ON t.id = v.test_id CROSS JOIN change c ON c.id = v.change_id"            \
	" WHERE v.change_id = ?1 AND v.attribution IS "

void change_cells_read(const struct view *d, struct change_view *v, size_t max)
{
	int64_t limit = max ? (int64_t)max : INT64_MAX;

	v->n_verdicts_total = db_int(d, 0, "SELECT COUNT(*) FROM cell WHERE change_id = ?1", V_INT(v->change_id));
	add_cells(v, db_rows(d, CELLS_OF_CHANGE("verdict") "NOT NULL LIMIT ?2", V_INT(v->change_id), V_INT(limit)));
	add_cells(v, db_rows(d, CELLS_OF_CHANGE("cell") "NULL LIMIT ?2", V_INT(v->change_id),
			 V_INT(limit - (int64_t)v->n_verdicts)));
	v->is_cut = (int64_t)v->n_verdicts < v->n_verdicts_total;
	if (v->is_cut)
		count_cells(d, v);
	if (v->n_verdicts)
		qsort(v->verdicts, v->n_verdicts, sizeof(*v->verdicts), by_test);
	for (size_t i = 0; i < v->n_accelerators; i++)
		read_reruns(d, v, i);
}

/* ---- the cells against those of the base ---- */

#define TESTED_BASE_RECORD(F, S)                                                                                       \
	F(S, INT, change_id, NULL, "x.id", "")                                                                         \
	F(S, TEXT, sha, NULL, "b.sha", "")                                                                             \
	F(S, INT, distance, NULL, "?4 - b.position", "")
RECORD_LOCAL(tested_base, TESTED_BASE_RECORD)

/* The nearest commit with a report of the accelerator. */
static bool find_tested_base(
    const struct view *d, const struct change_view *v, const char *ref, int64_t position, struct accelerator_view *a)
{
	struct tested_base base;

	if (!record_read_first(db_rows(d,
				   RECORD_QUERY(TESTED_BASE_RECORD,
				       "FROM branch_commit b CROSS JOIN change x ON x.repository_key = "
				       "b.repository_key AND x.head_sha = b.sha AND x.kind = 'push' WHERE "
				       "b.repository_key = ?1 AND b.ref = ?2 AND b.position >= ?3 AND b.position "
				       "<= ?4 AND EXISTS (SELECT 1 FROM job j WHERE j.change_id = x.id AND "
				       "j.accelerator = ?5 AND j.is_current = 1 AND j.status = 'completed' AND "
				       "j.digest IS NOT NULL) ORDER BY b.position DESC LIMIT 1"),
				   V_TEXT(repository_key(v->repository).text), V_TEXT(ref),
				   V_INT(position - attribution_distance(d)), V_INT(position), V_TEXT(a->name)),
		&tested_base_record, &base))
		return false;
	a->delta.base_change_id = base.change_id;
	a->delta.base_sha = base.sha;
	a->delta.distance = base.distance;
	return true;
}

static bool has_ended(const struct accelerator_view *a)
{
	for (size_t i = 0; i < a->n_dispatches; i++)
		if (a->dispatches[i].is_current && dispatch_is_unfinished(a->dispatches[i].state))
			return false;
	for (size_t i = 0; i < a->n_jobs; i++)
		if (a->jobs[i].status != JOB_COMPLETED)
			return false;
	return a->n_jobs > 0;
}

/* A test whose status differs between the base (b) and the change (v). */
#define DIFFERENCE_RECORD(F, S)                                                                                        \
	F(S, TEST_STATUS, before, NULL, "b.status", "")                                                                \
	F(S, TEST_STATUS, now, NULL, "v.status", "")                                                                   \
	F(S, TEXT, name, NULL, "t.suite || '/' || t.name", "")
RECORD_LOCAL(difference, DIFFERENCE_RECORD)

static void add_difference(struct base_delta *b, const struct difference *c, bool is_ended)
{
	bool was_red = test_status_is_red(c->before);
	char ***names;
	int64_t *n;

	if (c->now == N_TEST_STATUSES && is_ended) {
		n = &b->n_disappeared;
		names = &b->disappeared;
	} else if (c->now == TEST_PASS && was_red) {
		n = &b->n_fixed;
		names = &b->fixed;
	} else if (c->now == TEST_SKIP && (c->before == TEST_PASS || was_red) && is_ended) {
		n = &b->n_newly_skipped;
		names = &b->newly_skipped;
	} else {
		b->n_newly_failing += test_status_is_red(c->now) && c->before == TEST_PASS;
		return;
	}
	if (++*n <= DELTA_NAMES_MAX)
		strv_add(names, c->name);
}

void change_deltas_read(const struct view *d, struct change_view *v)
{
	char *ref = v->base_ref ? xstrdup(v->base_ref)
				: db_text(d, "SELECT ref FROM change WHERE id = ?1", V_INT(v->change_id));
	const char *sha = v->kind == CHANGE_PUSH ? v->head_sha : v->merge_base_sha;
	int64_t position = -1; /* of the merge base, or of a push's parent; -1: not known */

	if (ref && sha && v->kind != CHANGE_NIGHTLY)
		position = branch_position(d, repository_key(v->repository).text, branch_name(ref), sha);
	if (v->kind == CHANGE_PUSH && position >= 0)
		position--;
	for (size_t i = 0; position >= 0 && i < v->n_accelerators; i++) {
		struct accelerator_view *a = &v->accelerators[i];
		struct difference c;

		if (!a->n_jobs || !find_tested_base(d, v, branch_name(ref), position, a))
			continue;
		struct rows *r = db_rows(d,
		    RECORD_QUERY(DIFFERENCE_RECORD,
			"FROM cell b LEFT JOIN cell v ON v.change_id = ?1 AND v.accelerator "
			"= b.accelerator AND v.test_id = b.test_id JOIN test t ON t.id = b.test_id "
			"WHERE b.change_id = ?2 AND b.accelerator = ?3 AND b.job_id IS NOT NULL "
			"AND b.status IS DISTINCT FROM v.status"),
		    V_INT(v->change_id), V_INT(a->delta.base_change_id), V_TEXT(a->name));
		while (rows_next(r)) {
			record_read(r, &difference_record, &c);
			add_difference(&a->delta, &c, has_ended(a));
			record_release(&difference_record, &c);
		}
	}
	free(ref);
}

/* ---- the JSON ---- */

static json_t *cell_json(const struct change_view *v, const struct verdict_view *w, const char *public_url)
{
	const struct accelerator_view *a = &v->accelerators[w->accelerator];
	struct verdict_evidence e = verdict_evidence_of(w);
	json_t *obj = record_json(&verdict_view_record, w);

	json_set_str(obj, "accelerator", a->name);
	json_set_str(
	    obj, "group", test_status_is_red(w->status) ? failure_group_name(table_failure_group(a, w)) : NULL);
	json_object_set_new(obj, "evidence_job", e.job ? json_integer(e.job) : json_null());
	json_object_set_new(
	    obj, "evidence_url", e.issue_url ? json_foreign_text(e.issue_url) : job_url_json(public_url, e.job));
	return obj;
}

/* A cell's place in the order: suite, test, dtype, accelerator. */
struct cell_key {
	const char *part[KEY_PARTS];
};

static int key_compare(const struct cell_key *a, const struct cell_key *b)
{
	int order = 0;

	for (int i = 0; i < KEY_PARTS && !order; i++)
		order = strcmp(a->part[i], b->part[i]);
	return order;
}

void change_cells_add_json(
    json_t *obj, const struct change_view *v, const struct verdict_choice *choice, const char *public_url)
{
	const char *at = choice->after, *end = at + choice->after_bytes;
	struct cell_key after, last;
	json_t *list = json_array(), *next = json_null();
	struct buf bytes = BUF_INIT(KEY_MAX_BYTES);
	bool is_more = false;
	int64_t n_total = 0;

	/* Bytes that came from outside: a missing part is empty. They end with a NUL. */
	for (int i = 0; i < KEY_PARTS; i++) {
		after.part[i] = at < end ? at : "";
		if (at < end)
			at += strlen(at) + 1;
	}
	last = after;
	for (size_t i = 0; i < v->n_verdicts; i++) {
		const struct verdict_view *w = &v->verdicts[i];
		const struct accelerator_view *a = &v->accelerators[w->accelerator];
		struct cell_key k = {
		    {w->suite ? w->suite : "", w->test ? w->test : "", w->dtype ? w->dtype : "", a->name}};

		if (a->level <= LEVEL_1 || (choice->statuses && !(choice->statuses >> w->status & 1)) ||
		    (choice->attributions && !(choice->attributions >> w->attribution & 1)))
			continue;
		n_total++;
		if (is_more || (choice->after_bytes && key_compare(&k, &after) <= 0))
			continue;
		is_more = choice->limit && json_array_size(list) == choice->limit;
		if (is_more)
			continue;
		json_array_append_new(list, cell_json(v, w, public_url));
		last = k;
	}
	if (is_more) {
		for (int i = 0; i < KEY_PARTS; i++)
			buf_append(&bytes, last.part[i], strlen(last.part[i]) + (i < KEY_PARTS - 1));
		next = cursor_json(buf_str(&bytes), bytes.len);
	}
	buf_release(&bytes);
	json_object_update_new(
	    obj, json_pack("{s:o, s:I, s:o}", "verdicts", list, "verdicts_total", (json_int_t)n_total, "next", next));
}
