/* One job: in full, or only where it belongs. */
#include "base/alloc.h"
#include "store/db.h"
#include "store/jobs.h"
#include "store/key.h"

enum { STATUSES_MAX_BYTES = 64 };

static struct job_detail *read_job(struct db *d, int64_t id)
{
	struct rows *r = db_rows(d,
	    "SELECT j.workflow, j.name, j.run_id, j.run_attempt, j.status, j.conclusion, j.url,"
	    " j.artifact_url, j.is_late, j.n_passed, j.n_failed, j.n_skipped, j.n_total,"
	    " j.started_ms, j.completed_ms, j.dispatch_id, j.accelerator, c.kind, c.repository,"
	    " c.head_sha, (SELECT MAX(p.number) FROM pull_head p WHERE p.change_id = c.id),"
	    " j.message, j.environment, (SELECT l.machine FROM lease l"
	    "  WHERE l.dispatch_id = j.dispatch_id AND l.job_id = j.id),"
	    " j.log_bytes, j.is_log_complete, j.n_cut, j.is_current,"
	    " (SELECT n.id FROM job n WHERE n.change_id = j.change_id"
	    "  AND n.accelerator = j.accelerator AND n.workflow = j.workflow AND n.name = j.name"
	    "  AND n.is_current = 1 AND n.id <> j.id LIMIT 1), j.triage"
	    " FROM job j JOIN change c ON c.id = j.change_id WHERE j.id = ?1",
	    V_INT(id));
	struct job_detail *v;

	if (!rows_next(r))
		return NULL;
	v = xcalloc(1, sizeof(*v));
	v->job = (struct job_view){
	    .id = id,
	    .workflow = rows_dup(r, 0),
	    .name = rows_dup(r, 1),
	    .run_id = rows_dup(r, 2),
	    .run_attempt = rows_int(r, 3),
	    .status = job_status_parse(rows_text(r, 4)),
	    .conclusion = rows_dup(r, 5),
	    .url = rows_dup(r, 6),
	    .artifact_url = rows_dup(r, 7),
	    .is_late = rows_int(r, 8) != 0,
	    .has_counts = !rows_is_null(r, 12),
	    .n_passed = rows_int(r, 9),
	    .n_failed = rows_int(r, 10),
	    .n_skipped = rows_int(r, 11),
	    .n_total = rows_int(r, 12),
	    .started_ms = rows_int(r, 13),
	    .completed_ms = rows_int(r, 14),
	    .n_cut = rows_int(r, 26),
	};
	v->dispatch_id = rows_dup(r, 15);
	v->accelerator = rows_dup(r, 16);
	v->kind = change_kind_parse(rows_text(r, 17));
	v->repository = rows_dup(r, 18);
	v->head_sha = commit_dup(r, 19);
	v->number = rows_int(r, 20);
	v->message = rows_dup(r, 21);
	v->environment = rows_dup(r, 22);
	v->machine = rows_dup(r, 23);
	v->log_bytes = rows_is_null(r, 24) ? -1 : rows_int(r, 24);
	v->is_log_complete = rows_int(r, 25);
	v->is_current = rows_int(r, 27);
	v->superseded_by = v->is_current ? 0 : rows_int(r, 28);
	v->triage = rows_dup(r, 29);
	rows_end(r);
	return v;
}

static void read_experiment(struct db *d, struct job_detail *v)
{
	struct rows *r = db_rows(d,
	    "SELECT e.id, e.round, e.side, e.cause, e.state, e.reason, x.head_sha,"
	    " (SELECT MAX(p.number) FROM pull_head p WHERE p.change_id = x.id)"
	    " FROM job j JOIN experiment e ON e.run_change_id = j.change_id"
	    " JOIN change x ON x.id = e.change_id WHERE j.id = ?1",
	    V_INT(v->job.id));

	if (rows_next(r)) {
		v->experiment = (struct job_experiment){
		    .id = rows_int(r, 0),
		    .round = rows_int(r, 1),
		    .side = experiment_side_parse(rows_text(r, 2)),
		    .cause = rows_dup(r, 3),
		    .state = rows_dup(r, 4),
		    .reason = rows_dup(r, 5),
		    .explained_sha = rows_dup(r, 6),
		};
		v->number = rows_int(r, 7);
	}
	rows_end(r);
}

static void add_test(struct job_detail *v, const struct rows *r)
{
	/* A report has at most REPORT_TESTS_MAX: doubling from one is no concern. */
	if ((v->n_tests & (v->n_tests - 1)) == 0) {
		size_t room = v->n_tests ? 2 * v->n_tests : 1;

		v->tests = xrealloc(v->tests, room * sizeof(*v->tests));
		v->attributions = xrealloc(v->attributions, room * sizeof(*v->attributions));
	}
	v->attributions[v->n_tests] = attribution_parse(rows_text(r, 13));
	v->tests[v->n_tests++] = (struct test_result){
	    .suite = rows_dup(r, 0),
	    .name = rows_dup(r, 1),
	    .status = test_status_parse(rows_text(r, 2)),
	    .duration_ms = rows_is_null(r, 3) ? -1 : rows_int(r, 3),
	    .dtype = rows_dup(r, 4),
	    .message = rows_dup(r, 5),
	    .has_number = !rows_is_null(r, 6),
	    .number = rows_real(r, 6),
	    .unit = rows_dup(r, 7),
	    .log_url = rows_dup(r, 8),
	    .trace = rows_dup(r, 9),
	    .file = rows_dup(r, 10),
	    .line = rows_int(r, 11),
	};
}

/* ",FAIL,ERROR," for a search by the status' name between commas; any: "". */
static void list_statuses(struct buf *out, unsigned statuses)
{
	for (int i = 0; i < N_TEST_STATUSES; i++)
		if (statuses >> i & 1)
			buf_appendf(out, "%s%s,", out->len ? "" : ",",
			    test_status_name((enum test_status)i));
}

static void read_tests(struct db *d, const struct get_job *g, struct job_detail *v)
{
	struct buf statuses = BUF_INIT(STATUSES_MAX_BYTES);
	int64_t max = g->max_tests ? g->max_tests : INT32_MAX;
	struct rows *r;

	list_statuses(&statuses, g->statuses);
	r = db_rows(d,
	    "SELECT t.suite, t.name, x.status, x.duration_ms, x.dtype, x.message, x.number, x.unit,"
	    " x.log_url, x.trace, x.file, x.line, x.ordinal, v.attribution"
	    " FROM result x JOIN test t ON t.id = x.test_id"
	    " LEFT JOIN job j ON j.id = x.job_id AND j.is_current = 1 AND ?5"
	    " AND x.status IN ('FAIL', 'ERROR', 'MISS')"
	    " LEFT JOIN verdict v ON v.change_id = j.change_id AND v.accelerator = j.accelerator"
	    " AND v.test_id = x.test_id AND (x.status <> 'MISS' OR v.status = 'MISS')"
	    " WHERE x.job_id = ?1 AND x.ordinal >= ?2"
	    " AND (?3 = '' OR instr(?3, ',' || x.status || ',') > 0)"
	    " ORDER BY x.ordinal LIMIT ?4",
	    V_INT(v->job.id), V_INT(g->from), V_TEXT(buf_str(&statuses)), V_INT(max + 1),
	    V_INT(v->kind != CHANGE_EXPERIMENT)); /* its results are evidence, and have no cause */
	while (rows_next(r)) {
		if ((int64_t)v->n_tests == max)
			v->next = rows_int(r, 12);
		else
			add_test(v, r);
	}
	v->n_tests_total = g->from || v->next
			       ? db_int(d, 0,
				     "SELECT COUNT(*) FROM result x WHERE x.job_id = ?1 AND"
				     " (?2 = '' OR instr(?2, ',' || x.status || ',') > 0)",
				     V_INT(v->job.id), V_TEXT(buf_str(&statuses)))
			       : (int64_t)v->n_tests;
	buf_release(&statuses);
}

static int job_run(struct store_query *q, struct db *d)
{
	struct get_job *g = CONTAINER_OF(q, struct get_job, q);

	g->job = read_job(d, g->id);
	if (!g->job)
		return db_status(d) ? db_status(d) : ERR_NOT_FOUND;
	if (g->job->kind == CHANGE_EXPERIMENT)
		read_experiment(d, g->job);
	read_tests(d, g, g->job);
	return 0;
}

int store_get_job(struct store *s, struct get_job *q)
{
	q->job = NULL;
	q->q.run = job_run;
	return store_query(s, &q->q);
}

/* ---- where it belongs ---- */

static int find_run(struct store_query *q, struct db *d)
{
	struct find_job *f = CONTAINER_OF(q, struct find_job, q);
	struct rows *r = db_rows(d,
	    "SELECT j.dispatch_id, j.accelerator, j.status, j.report_digest IS NOT NULL,"
	    " CASE WHEN j.dispatch_id = '' THEN j.runner"
	    "  WHEN x.kind IN ('github', 'infra') THEN x.target END,"
	    " (SELECT l.machine FROM lease l"
	    "  WHERE l.dispatch_id = j.dispatch_id AND l.job_id = j.id)"
	    " FROM job j LEFT JOIN dispatch x ON x.id = j.dispatch_id"
	    " AND x.accelerator = j.accelerator AND x.runner = j.runner WHERE j.id = ?1",
	    V_INT(f->id));

	if (!rows_next(r))
		return db_status(d) ? db_status(d) : ERR_NOT_FOUND;
	f->dispatch_id = rows_dup(r, 0);
	f->accelerator = rows_dup(r, 1);
	f->status = job_status_parse(rows_text(r, 2));
	f->has_report = rows_int(r, 3);
	f->repository = rows_dup(r, 4);
	f->machine = rows_dup(r, 5);
	rows_end(r);
	return 0;
}

int store_find_job(struct store *s, struct find_job *q)
{
	q->dispatch_id = q->accelerator = q->repository = q->machine = NULL;
	q->has_report = false;
	q->q.run = find_run;
	return store_query(s, &q->q);
}

void find_job_release(struct find_job *q)
{
	FREE_AND_NULL(q->dispatch_id);
	FREE_AND_NULL(q->accelerator);
	FREE_AND_NULL(q->repository);
	FREE_AND_NULL(q->machine);
}
