#include "views/job.h"

#include "db/db.h"
#include "db/record_rows.h"
#include "views/record_json.h"

enum { STATUSES_MAX_BYTES = 64 };

/* `result` as x, and its `test` as t. */
#define TEST_RESULT_RECORD(F, S)                                                                                       \
	F(S, TEXT, suite, "suite", "t.suite", "")                                                                      \
	F(S, TEXT, name, "name", "t.name", "")                                                                         \
	F(S, TEST_STATUS, status, "status", "x.status", "")                                                            \
	F(S, SECONDS, duration_ms, "duration", "x.duration_ms", "")                                                    \
	F(S, TEXT, dtype, "dtype", "COALESCE(x.dtype, NULLIF(t.dtype, ''))", "")                                       \
	F(S, TEXT, message, "message", "x.message", "")                                                                \
	F(S, TEXT, trace, "trace", "x.trace", "")                                                                      \
	F(S, TEXT, log_url, "log_url", "x.log_url", "")                                                                \
	F(S, TEXT, file, "file", "x.file", "")                                                                         \
	F(S, ID, line, "line", "x.line", "")                                                                           \
	F(S, BOOL, has_number, NULL, "x.number IS NOT NULL", "")                                                       \
	F(S, NUMBER, number, NULL, "x.number", "")                                                                     \
	F(S, TEXT, unit, NULL, "x.unit", "")
RECORD_DEFINE(test_result, TEST_RESULT_RECORD)

/* Its cell as v. */
#define TEST_CAUSE_RECORD(F, S) F(S, ATTRIBUTION, attribution, "attribution", "v.attribution", "")
RECORD_LOCAL(test_cause, TEST_CAUSE_RECORD)
#define RESULT_AND_CAUSE(F, S) TEST_RESULT_RECORD(F, S) TEST_CAUSE_RECORD(F, S)

/* ---- a job in full ---- */

static void read_results(const struct view *d, const struct get_job *g, struct job_detail *v)
{
	struct buf statuses = BUF_INIT(STATUSES_MAX_BYTES); /* ",FAIL,ERROR,"; "": any */
	int64_t max = g->max_tests ? g->max_tests : INT32_MAX;
	int64_t end; /* of the ordinals that the answer may have, so that PostgreSQL joins no others */

	for (int i = 0; i < N_TEST_STATUSES; i++)
		if (g->statuses >> i & 1)
			buf_appendf(&statuses, "%s%s,", statuses.len ? "" : ",", test_status_name((enum test_status)i));
	end = statuses.len || g->from > INT64_MAX - max - 1 ? INT64_MAX : g->from + max + 1;
	struct rows *r = db_rows(d,
	    RECORD_QUERY_BY("x.ordinal", RESULT_AND_CAUSE,
		"FROM job_test x CROSS JOIN test t ON t.id = x.test_id LEFT JOIN job j ON j.id = x.job_id "
		"AND j.is_current = 1 AND ?5 <> 0 AND x.status IN ('FAIL', 'ERROR', 'MISS') LEFT "
		"JOIN verdict v ON v.change_id = j.change_id AND v.accelerator = j.accelerator AND "
		"v.test_id = x.test_id AND (x.status <> 'MISS' OR v.status = 'MISS') WHERE "
		"x.job_id = ?1 AND x.ordinal >= ?2 AND x.ordinal < ?6 AND (?3 = '' OR instr(?3, ',' || x.status || "
		"',') > 0) ORDER BY x.ordinal LIMIT ?4"),
	    V_INT(v->job.id), V_INT(g->from), V_TEXT(buf_str(&statuses)), V_INT(max + 1),
	    V_INT(v->kind != CHANGE_EXPERIMENT), /* its results are evidence, and have no cause */
	    V_INT(end));
	while (rows_next(r)) {
		size_t n = v->n_tests;

		if ((int64_t)n == max) {
			v->next = rows_key_number(r);
			continue;
		}
		struct test_result *t = ARRAY_PUSH(v->tests, n);

		*t = (struct test_result){.is_borrowed = false};
		record_read(r, &test_result_record, t);
		record_read(r, &test_cause_record, ARRAY_PUSH(v->attributions, v->n_tests));
	}
	v->n_tests_total = g->from || v->next ? db_int(d, 0,
						    "SELECT COUNT(*) FROM job_test x WHERE x.job_id = ?1 AND"
						    " (?2 = '' OR instr(?2, ',' || x.status || ',') > 0)",
						    V_INT(v->job.id), V_TEXT(buf_str(&statuses)))
					      : (int64_t)v->n_tests;
	buf_release(&statuses);
}

static int get_job_run(struct store_query *q, const struct view *d)
{
	struct get_job *g = CONTAINER_OF(q, struct get_job, q);
	struct rows *r = db_rows(d,
	    RECORD_QUERY_BOTH(
		JOB_VIEW_RECORD, JOB_DETAIL_RECORD, "FROM job j JOIN change c ON c.id = j.change_id WHERE j.id = ?1"),
	    V_INT(g->id));
	struct job_detail *v;

	g->job = NULL;
	if (!rows_next(r))
		return db_status(d) ? db_status(d) : ERR_NOT_FOUND;
	v = g->job = xcalloc(1, sizeof(*v));
	record_read(r, &job_view_record, &v->job);
	record_read(r, &job_detail_record, v);
	rows_end(r);
	if (v->kind == CHANGE_EXPERIMENT &&
	    record_read_first(db_rows(d,
				  RECORD_QUERY(JOB_EXPERIMENT_RECORD,
				      "FROM job j JOIN experiment e ON e.run_change_id = j.change_id JOIN change "
				      "x ON x.id = e.change_id WHERE j.id = ?1"),
				  V_INT(g->id)),
		&job_experiment_record, &v->experiment))
		v->number = v->experiment.explained_number;
	read_results(d, g, v);
	return 0;
}

STORE_QUERY(get_job)

/* ---- where it belongs ---- */

RECORD_DEFINE(find_job, FIND_JOB_RECORD)

static int find_job_run(struct store_query *q, const struct view *d)
{
	struct find_job *f = CONTAINER_OF(q, struct find_job, q);
	struct rows *r = db_rows(d,
	    RECORD_QUERY(FIND_JOB_RECORD, "FROM job j LEFT JOIN dispatch x ON x.id = j.dispatch_id AND x.accelerator = "
					  "j.accelerator AND x.runner = j.runner WHERE j.id = ?1"),
	    V_INT(f->id));

	if (!record_read_first(r, &find_job_record, f))
		return db_status(d) ? db_status(d) : ERR_NOT_FOUND;
	return 0;
}

STORE_QUERY(find_job)

void find_job_release(struct find_job *q) { record_release(&find_job_record, q); }

/* ---- the JSON ---- */

void job_view_out(struct buf *out, const struct job_view *j)
{
	json_t *counts = json_null();

	record_out(out, &job_view_record, j);
	if (j->has_counts)
		counts = json_pack("{s:I, s:I, s:I, s:I}", "passed", (json_int_t)j->n_passed, "failed",
		    (json_int_t)j->n_failed, "skipped", (json_int_t)j->n_skipped, "total", (json_int_t)j->n_total);
	json_out_value(out, "test_results", counts);
}

static void test_out(struct buf *out, const struct test_result *t, enum attribution attribution)
{
	json_out_open(out, NULL, '{');
	record_out(out, &test_result_record, t);
	if (t->has_number) {
		json_out_open(out, "number", '{');
		json_out_real(out, "value", t->number);
		json_out_text(out, "unit", t->unit);
		json_out_close(out, '}');
	} else {
		json_out_raw(out, "number", "null");
	}
	record_out(out, &test_cause_record, &(struct test_cause){attribution});
	json_out_close(out, '}');
}

char *job_detail_json(const struct job_detail *d, const char *public_url)
{
	const struct job_experiment *e = d->experiment.id ? &d->experiment : NULL;
	struct buf out = BUF_INIT(SIZE_MAX / 2);
	json_t *log = json_null();

	if (d->log_bytes >= 0)
		log = json_pack("{s:I, s:b, s:o}", "bytes", (json_int_t)d->log_bytes, "complete", d->is_log_complete,
		    "url", json_sprintf("%s/api/v1/jobs/%lld/log", public_url, (long long)d->job.id));
	json_out_open(&out, NULL, '{');
	job_view_out(&out, &d->job);
	record_out(&out, &job_detail_record, d);
	json_out_members(&out, json_pack("{s:o, s:o, s:o, s:I, s:o}", "change_url",
				   change_url_json(public_url, d->kind, d->number, e ? e->explained_sha : d->head_sha),
				   "experiment", e ? record_json(&job_experiment_record, e) : json_null(), "log", log,
				   "tests_total", (json_int_t)d->n_tests_total, "next",
				   d->next ? json_sprintf("%lld", (long long)d->next) : json_null()));
	json_out_open(&out, "tests", '[');
	for (size_t i = 0; i < d->n_tests; i++)
		test_out(&out, &d->tests[i], d->attributions[i]);
	json_out_close(&out, ']');
	json_out_close(&out, '}');
	return buf_detach(&out);
}
