/* What comes for a job besides its end: a report document, and how far its log has come. */
#include "base/alloc.h"
#include "store/cells_moved.h"
#include "store/db.h"
#include "store/experiments.h"
#include "store/failures.h"
#include "store/job_row.h"
#include "store/jobs.h"
#include "store/number_days.h"
#include "store/stored_change.h"
#include "store/verdicts.h"

struct target {
	int64_t change_id;
	char *accelerator;
	bool is_reported; /* completed, and not only given up */
	bool is_current, is_self_report;
	bool has_report, is_same;
	int64_t n_tests;
	enum test_status verdict; /* of a reported one */
};

static bool find_target(struct db *d, const struct put_report *o, struct target *ret)
{
	struct rows *r = db_rows(d,
	    "SELECT change_id, accelerator, status = 'completed' AND digest IS NOT NULL,"
	    " is_current, dispatch_id = '', n_tests, verdict, report_digest"
	    " FROM job WHERE id = ?1",
	    V_INT(o->job_id));
	bool is_found = rows_next(r);

	if (is_found) {
		size_t n = 0;
		const void *digest = rows_blob(r, 7, &n);

		*ret = (struct target){
		    .change_id = rows_int(r, 0),
		    .accelerator = rows_dup(r, 1),
		    .is_reported = rows_int(r, 2),
		    .is_current = rows_int(r, 3),
		    .is_self_report = rows_int(r, 4),
		    .n_tests = rows_int(r, 5),
		    .verdict = test_status_parse(rows_text(r, 6)),
		    .has_report = n > 0,
		    .is_same = n == sizeof(o->digest) && memcmp(digest, o->digest, n) == 0,
		};
	}
	rows_end(r);
	return is_found;
}

static void record(struct db *d, const struct put_report *o, const struct target *t)
{
	int64_t n_red = job_add_results(d, o->job_id, t->n_tests, o->tests, o->n_tests);
	struct failure_place at = {t->change_id, o->job_id, o->now_ms, t->accelerator};
	const char *verdict = t->is_reported
				  ? test_status_name(worst_status(t->verdict, o->tests, o->n_tests))
				  : NULL;

	db_exec(d,
	    "UPDATE job SET report_digest = ?2, environment = ?3, n_tests = n_tests + ?4,"
	    " n_red = n_red + ?5, verdict = COALESCE(?6, verdict), n_cut = n_cut + ?7 WHERE id = "
	    "?1",
	    V_INT(o->job_id), V_BLOB(o->digest, sizeof(o->digest)), V_TEXT(o->environment),
	    V_INT((int64_t)o->n_tests), V_INT(n_red), V_TEXT(verdict), V_INT((int64_t)o->n_cut));
	if (!t->is_self_report && !experiment_is_run(d, t->change_id))
		failures_put(d, &at, o->tests, o->n_tests);
	number_days_note(d, o->job_id, o->tests, o->n_tests, o->now_ms);
	change_touch(d, t->change_id, o->now_ms);
	db_tell_change(d, t->change_id);
	db_tell_job(d, o->job_id);
	if (!t->is_reported)
		return;
	if (!t->is_current && !(n_red && verdicts_are_of_retries(d, t->change_id, t->accelerator)))
		return;
	cells_moved(d, t->change_id, t->accelerator,
	    t->is_self_report ? CELLS_SELF_REPORTED : CELLS_REPORT_ADDED, o->now_ms);
}

static int put_report_run(struct store_op *op, struct db *d)
{
	struct put_report *o = CONTAINER_OF(op, struct put_report, op);
	struct target t = {0};

	o->outcome = REPORT_NO_DISPATCH;
	if (!find_target(d, o, &t))
		return 0;
	o->outcome = REPORT_RECORDED;
	if (t.has_report)
		o->outcome = t.is_same ? REPORT_UNCHANGED : REPORT_CONFLICT;
	else
		record(d, o, &t);
	free(t.accelerator);
	return 0;
}

int store_put_report(struct store *s, struct put_report *op)
{
	op->op.run = put_report_run;
	op->op.bytes = sizeof(*op) + op->n_tests * sizeof(*op->tests);
	return store_submit(s, &op->op);
}

static int note_log_run(struct store_op *op, struct db *d)
{
	struct note_log *o = CONTAINER_OF(op, struct note_log, op);

	if (!db_exec(d, "UPDATE job SET log_bytes = ?2, is_log_complete = ?3 WHERE id = ?1",
		V_INT(o->job_id), V_INT(o->bytes), V_INT(o->is_complete)))
		return db_status(d) ? db_status(d) : ERR_NOT_FOUND;
	db_tell_job(d, o->job_id);
	return 0;
}

int store_note_log(struct store *s, struct note_log *op)
{
	op->op.run = note_log_run;
	op->op.bytes = sizeof(*op);
	op->op.is_one_statement = true;
	return store_submit(s, &op->op);
}
