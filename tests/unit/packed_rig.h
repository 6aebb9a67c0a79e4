/* Packed results on top of store_rig.h: work inside the writer, and what holds after each of its transactions. */
#pragma once

#include "store/jobs.h"
#include "store_rig.h"
#include "verdict/cells_moved.h"
#include "views/job.h"

/* ---- work in the writer ---- */

struct writer_work {
	struct store_op op;
	int (*work)(struct txn *d, void *with);
	void *with;
};

static inline int writer_work_run(struct store_op *op, struct txn *d)
{
	struct writer_work *o = CONTAINER_OF(op, struct writer_work, op);

	return o->work(d, o->with);
}

static inline int submit_work(struct store *s, struct writer_work *o)
{
	o->op.run = writer_work_run;
	return store_submit(s, &o->op);
}

/* Returns the operation's error. */
static inline int in_writer(int (*work)(struct txn *d, void *with), void *with)
{
	struct writer_work o = {.work = work, .with = with};

	return DO(submit_work, &o);
}

/* ---- what holds ---- */

#define PACKED_OF_JOB          "(SELECT COALESCE(SUM(p.n), 0) FROM packed_job p WHERE p.job_id = j.id)"
#define ROWS_OF_JOB(is_packed) "(SELECT COUNT(*) FROM result r WHERE r.job_id = j.id AND r.is_packed = " is_packed ")"

static const struct {
	const char *what, *count; /* of the rows that may not be there */
} PACKED_RULES[] = {
    {"packed results without their list", "SELECT COUNT(*) FROM packed_job p LEFT JOIN test_list l ON l.id = p.list_id"
					  " WHERE l.id IS NULL OR l.n <> p.n"},
    {"packed results without their job",
	"SELECT COUNT(*) FROM packed_job p WHERE NOT EXISTS (SELECT 1 FROM job j WHERE j.id = p.job_id)"},
    {"rows without their job",
	"SELECT COUNT(*) FROM result r WHERE NOT EXISTS (SELECT 1 FROM job j WHERE j.id = r.job_id)"},
    {"lists without the one that they resemble",
	"SELECT COUNT(*) FROM test_list l WHERE l.base_id IS NOT NULL AND NOT EXISTS"
	" (SELECT 1 FROM test_list b WHERE b.id = l.base_id AND b.base_id IS NULL)"},
    {"lists that nobody uses",
	"SELECT COUNT(*) FROM test_list l WHERE NOT EXISTS (SELECT 1 FROM packed_job p WHERE p.list_id = l.id)"
	" AND NOT EXISTS (SELECT 1 FROM test_list o WHERE o.base_id = l.id)"},
    {"jobs with a part of their results",
	"SELECT COUNT(*) FROM job j WHERE j.n_tests <> " PACKED_OF_JOB " + " ROWS_OF_JOB("0")},
    {"jobs with a part of their rows",
	"SELECT COUNT(*) FROM job j WHERE (SELECT COALESCE(SUM(p.n_rows), 0) FROM packed_job p WHERE p.job_id = j.id)"
	" <> " ROWS_OF_JOB("1")},
};

/* Another connection reads the file, so that it sees what is committed. */
static inline void assert_packed_rules(void)
{
	char *path = rig_path();
	struct error e = {0};
	struct db *d;

	assert_int_equal(db_open(path, DB_READER, &d, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(PACKED_RULES); i++) {
		int64_t n = db_int_values(db_view(d), -1, PACKED_RULES[i].count, VALUES());

		if (n != 0 || db_status(d))
			fail_msg("%d %s %s", (int)n, PACKED_RULES[i].what, db_status(d) ? db_why(d)->text : "");
	}
	if (db_check(d, &e))
		fail_msg("%s", e.text);
	db_close(d);
	free(path);
}

static inline int64_t count_in_file(const char *sql)
{
	char *path = rig_path();
	struct db *d;
	int64_t n;

	assert_int_equal(db_open(path, DB_READER, &d, NULL), 0);
	n = db_int_values(db_view(d), -1, sql, VALUES());
	assert_int_equal(db_status(d), 0);
	db_close(d);
	free(path);
	return n;
}

/* ---- a push and its jobs ---- */

static inline int add_push(struct txn *d, void *with)
{
	int64_t *id = with; /* in: active_ms; out: the change */
	static int n;
	char *sha = xasprintf("%040d", ++n);

	*id = db_exec_int(d, 0,
	    "INSERT INTO change (kind, repository, repository_key, head_sha, state, created_ms, active_ms)"
	    " VALUES ('push', 'a/b', 'a/b', ?1, 'open', 1, ?2) RETURNING id",
	    V_TEXT(sha), V_INT(*id));
	free(sha);
	return 0;
}

static inline int64_t new_push(int64_t active_ms)
{
	int64_t id = active_ms;

	assert_int_equal(in_writer(add_push, &id), 0);
	return id;
}

/* A report of the accelerator npu. */
struct push_report {
	struct writer_work work;
	int64_t change_id;
	const char *job; /* its name */
	struct test_result *tests;
	size_t n;
	int64_t job_id; /* out */
};

static inline int put_push_report(struct txn *d, void *with)
{
	struct push_report *p = with;
	bool is_red = false;
	struct job_report r = {.status = JOB_COMPLETED,
	    .workflow = (char *)"CI",
	    .name = (char *)p->job,
	    .run_id = (char *)"1",
	    .run_attempt = 1,
	    .tests = p->tests,
	    .n_tests = p->n,
	    .digest = {1}};
	struct job_place at = {.change_id = p->change_id,
	    .dispatch_id = "d",
	    .accelerator = "npu",
	    .runner = "ci",
	    .is_shown = true,
	    .is_push = true};

	for (size_t i = 0; i < p->n; i++)
		is_red |= test_status_is_red(p->tests[i].status);
	r.conclusion = (char *)(is_red ? "failure" : "success");
	p->job_id = job_put(d, &at, &r, T0).job_id;
	cells_job_added(d, p->change_id, "npu", CELLS_JOB_COMPLETED, p->job_id, T0);
	return 0;
}

static inline int64_t report_push(int64_t change_id, const char *job, struct test_result *tests, size_t n)
{
	struct push_report p = {.change_id = change_id, .job = job, .tests = tests, .n = n};

	assert_int_equal(in_writer(put_push_report, &p), 0);
	assert_true(p.job_id > 0);
	return p.job_id;
}

/* The job shows exactly these tests. */
static inline void assert_job(int64_t id, const struct test_result *tests, size_t n)
{
	struct get_job g = {.id = id};

	ASK_OK(store_get_job, &g);
	assert_non_null(g.job);
	assert_int_equal(g.job->n_tests, n);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(g.job->tests[i].suite, tests[i].suite);
		assert_string_equal(g.job->tests[i].name, tests[i].name);
		assert_string_equal(
		    g.job->tests[i].dtype ? g.job->tests[i].dtype : "", tests[i].dtype ? tests[i].dtype : "");
		assert_int_equal(g.job->tests[i].status, tests[i].status);
	}
	job_detail_free(g.job);
}
