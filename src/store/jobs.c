#include "store/jobs.h"

#include "db/counters.h"
#include "db/record_rows.h"
#include "history/days.h"
#include "model/attribution.h"
#include "model/packed_tests.h"
#include "store/changes.h"
#include "store/job_results.h"
#include "verdict/cells_moved.h"
#include "verdict/verdicts.h"

#define KNOWN_JOB_RECORD(F, S)                                                                                         \
	F(S, ID, id, NULL, "id", "0: none.")                                                                           \
	F(S, JOB_STATUS, status, NULL, "status", "")                                                                   \
	F(S, BOOL, has_digest, NULL, "digest IS NOT NULL", "")                                                         \
	F(S, BOOL, is_same, NULL, "digest = ?8", "The stored report and this one are equal.")                          \
	F(S, BOOL, is_current, NULL, "is_current", "")                                                                 \
	F(S, INT, n_tests, NULL, "n_tests", "")
RECORD_LOCAL(known_job, KNOWN_JOB_RECORD)

bool jobs_notify(struct txn *d, struct rows *ids)
{
	bool has_any = false;

	while (rows_next(ids)) {
		db_notify_job(d, rows_key_number(ids));
		has_any = true;
	}
	return has_any;
}

struct job_place job_place_of(const struct view *d, const struct stored_dispatch *s)
{
	return (struct job_place){
	    .change_id = s->change_id,
	    .dispatch_id = s->id,
	    .accelerator = s->accelerator,
	    .runner = s->runner,
	    .is_shown = true,
	    .is_late = s->is_late,
	    .is_push = db_has(d, "SELECT 1 FROM change WHERE id = ?1 AND kind = 'push'", V_INT(s->change_id)),
	};
}

#define DISPATCH_JOBS_RECORD(F, S)                                                                                     \
	F(S, INT, n_jobs, NULL, "COUNT(*)", "")                                                                        \
	F(S, INT, n_results, NULL, "SUM(n_tests)", "")
RECORD_LOCAL(dispatch_jobs, DISPATCH_JOBS_RECORD)

/* RECORDED: the dispatch, which has these, has room for so many more jobs and results of the accelerator. */
static enum report_outcome check_room(const struct dispatch_jobs *has, int64_t n_jobs, size_t n_results)
{
	return has->n_jobs + n_jobs > JOBS_PER_DISPATCH_MAX                                  ? REPORT_TOO_MANY_JOBS
	       : has->n_results + (int64_t)n_results > RESULTS_PER_DISPATCH_MAX && n_results ? REPORT_TOO_MANY_RESULTS
											     : REPORT_RECORDED;
}

/* The newest attempt of a job is current; a cancelled one does not count. Returns whether p is the current one, and makes the
 * one before it not current. */
static bool become_current(
    struct txn *d, const struct job_place *at, const struct job_report *p, bool *ret_has_replaced)
{
	struct rows *replaced;

	if (!at->is_shown ||
	    db_has(d,
		"SELECT 1 FROM job WHERE change_id = ?1 AND accelerator = ?2 AND workflow = ?3 AND name = ?4"
		" AND is_current = 1 AND dispatch_id = ?5 AND run_attempt > ?6"
		" AND (status = 'in_progress' OR digest IS NOT NULL) LIMIT 1",
		V_INT(at->change_id), V_TEXT(at->accelerator), V_TEXT(p->workflow), V_TEXT(p->name),
		V_TEXT(at->dispatch_id), V_INT(p->run_attempt)))
		return false;
	replaced = db_exec_rows(d,
	    "UPDATE job SET is_current = 0 WHERE change_id = ?1 AND accelerator = ?2 AND workflow = ?3 AND name = ?4"
	    " AND is_current = 1 AND dispatch_id = ?5 RETURNING id",
	    V_INT(at->change_id), V_TEXT(at->accelerator), V_TEXT(p->workflow), V_TEXT(p->name),
	    V_TEXT(at->dispatch_id));
	*ret_has_replaced = jobs_notify(d, replaced);
	return true;
}

/* id 0: a new one. */
static int64_t insert_job(
    struct txn *d, int64_t id, const struct job_place *at, const struct job_report *p, bool is_current, int64_t now_ms)
{
	counter_add(d, COUNT_JOBS, 1);
	return db_exec_int(d, 0,
	    "INSERT INTO job (id, change_id, dispatch_id, accelerator, runner, workflow, name, run_id,"
	    " run_attempt, status, is_current, is_late, is_push, url, check_run_id, n_tests, n_red,"
	    " started_ms, reported_ms, vendor_started_ms)"
	    " VALUES (COALESCE(?18, " NEW_JOB_ID "), ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?17, ?9, ?10, ?11, ?12, ?13, 0, 0,"
	    " ?14, ?15, ?16) RETURNING id",
	    V_INT(at->change_id), V_TEXT(at->dispatch_id), V_TEXT(at->accelerator), V_TEXT(at->runner),
	    V_TEXT(p->workflow), V_TEXT(p->name), V_TEXT(p->run_id), V_INT(p->run_attempt), V_INT(is_current),
	    V_INT(at->is_late), V_INT(at->is_push), V_TEXT(p->url), V_TEXT(p->check_run_id),
	    V_INT_OR_NULL(p->status == JOB_IN_PROGRESS ? now_ms : 0), V_INT(now_ms), V_INT_OR_NULL(p->started_ms),
	    V_TEXT(job_status_name(JOB_IN_PROGRESS)), V_INT_OR_NULL(id));
}

bool job_enter(struct txn *d, int64_t job_id, enum job_status to)
{
	enum job_status from = (enum job_status)rows_first_word(
	    db_rows(d, "SELECT status FROM job WHERE id = ?1 AND digest IS NULL", V_INT(job_id)), &job_status_words);

	if (from == N_JOB_STATUSES || from == to) /* it was reported, or is there already */
		return false;
	db_exec(d, "UPDATE job SET status = ?2 WHERE id = ?1", V_INT(job_id), V_TEXT(job_status_name(to)));
	return true;
}

/* ---- results ---- */

static struct value count_value(const struct job_report *p, int64_t n) { return p->has_counts ? V_INT(n) : V_NULL; }

/* The verdict that figures count is the worst of the job's conclusion, its tests, and the tests of an earlier report
 * document. */
static void complete_job(struct txn *d, int64_t id, const struct job_place *at, const struct job_report *p,
    struct packed_tests *tests, int64_t now_ms)
{
	int64_t n_reported = db_int(d, 0, "SELECT n_tests FROM job WHERE id = ?1", V_INT(id));
	struct failure_place place = {at->change_id, id, now_ms, at->accelerator};
	enum test_status conclusion = test_status_of_conclusion(p->conclusion);
	enum test_status worst = packed_tests_worst(tests, conclusion);
	struct rows *r = NULL;

	job_results_put(d, id, n_reported, tests);
	if (n_reported)
		r = db_rows(d, "SELECT DISTINCT status FROM job_test WHERE job_id = ?1", V_INT(id));
	while (r && rows_next(r)) {
		enum test_status s = test_status_parse(rows_key(r));

		worst = s < worst ? s : worst;
	}
	if (at->dispatch_id[0]) { /* a self-report is not evidence */
		failures_put(d, &place, tests);
		if (!n_reported && !p->n_tests && p->message)
			failure_put_job(d, &place, p->workflow, p->name, conclusion, p->message);
	}
	job_enter(d, id, JOB_COMPLETED);
	db_exec(d,
	    "UPDATE job SET conclusion = ?2, verdict = ?3, digest = ?4,"
	    " url = COALESCE(?5, url), artifact_url = ?6, n_tests = n_tests + ?7,"
	    " n_red = n_red + ?8, n_cut = n_cut + ?19, n_passed = ?9,"
	    " n_failed = ?10, n_skipped = ?11, n_total = ?12, completed_ms = ?13,"
	    " reported_ms = ?13, is_late = CASE WHEN ?14 <> 0 THEN 1 ELSE is_late END,"
	    " vendor_started_ms = COALESCE(?15, vendor_started_ms), vendor_completed_ms = ?16,"
	    " check_run_id = COALESCE(?17, check_run_id), triage = ?20,"
	    /* the reason why a machine was stopped stays */
	    " message = CASE WHEN ?18 IS NULL AND ?2 = 'cancelled' THEN message ELSE ?18 END WHERE id = ?1",
	    V_INT(id), V_TEXT(p->conclusion), V_TEXT(test_status_name(worst)), V_BLOB(p->digest, sizeof(p->digest)),
	    V_TEXT(p->url), V_TEXT(p->artifact_url), V_INT((int64_t)p->n_tests), V_INT(packed_tests_n_red(tests)),
	    count_value(p, p->n_passed), count_value(p, p->n_failed), count_value(p, p->n_skipped),
	    count_value(p, p->n_total), V_INT(now_ms), V_INT(at->is_late), V_INT_OR_NULL(p->started_ms),
	    V_INT_OR_NULL(p->completed_ms), V_TEXT(p->check_run_id), V_TEXT(p->message), V_INT((int64_t)p->n_cut),
	    V_TEXT(p->triage));
	if (tests->has_numbers)
		number_days_note(d, id, p->tests, p->n_tests, now_ms);
}

struct job_record job_put(struct txn *d, const struct job_place *at, const struct job_report *report, int64_t now_ms)
{
	struct known_job known = {0};
	struct job_record ret = {.outcome = REPORT_RECORDED};
	bool is_completed;

	RECORD_READ_FIRST(d, known_job, KNOWN_JOB_RECORD, &known,
	    "FROM job WHERE change_id = ?1 AND dispatch_id = ?2 AND accelerator = ?3 AND workflow = ?4 AND name = ?5"
	    " AND run_id = ?6 AND run_attempt = ?7",
	    V_INT(at->change_id), V_TEXT(at->dispatch_id), V_TEXT(at->accelerator), V_TEXT(report->workflow),
	    V_TEXT(report->name), V_TEXT(report->run_id), V_INT(report->run_attempt),
	    V_BLOB(report->digest, sizeof(report->digest)));
	ret.job_id = known.id;
	ret.is_current = known.is_current;
	is_completed = known.id && known.status == JOB_COMPLETED;
	if (!known.id || (report->status == JOB_COMPLETED && report->n_tests && !(is_completed && known.has_digest))) {
		struct dispatch_jobs has = {0};

		RECORD_READ_FIRST(d, dispatch_jobs, DISPATCH_JOBS_RECORD, &has,
		    "FROM job WHERE change_id = ?1 AND dispatch_id = ?2 AND accelerator = ?3", V_INT(at->change_id),
		    V_TEXT(at->dispatch_id), V_TEXT(at->accelerator));
		ret.outcome = check_room(&has, known.id == 0, report->status == JOB_COMPLETED ? report->n_tests : 0);
	}
	if (ret.outcome == REPORT_RECORDED && report->status == JOB_COMPLETED && !(is_completed && known.has_digest) &&
	    job_results_put_part(d, known.id, known.n_tests, report->packed, now_ms))
		ret.outcome = REPORT_IN_PARTS;
	if (ret.outcome != REPORT_RECORDED)
		return ret;
	if (!known.id) {
		ret.is_current = become_current(d, at, report, &ret.has_replaced);
		ret.job_id =
		    insert_job(d, report->packed ? report->packed->staged_job : 0, at, report, ret.is_current, now_ms);
	} else if (report->status == JOB_IN_PROGRESS || (is_completed && known.is_same)) {
		ret.outcome = REPORT_UNCHANGED;
	} else if (is_completed && !known.has_digest) {
		/* job_give_up() completed it, and it is reported after all: it is current again unless a later attempt is,
		 * and Outpost's own message goes. */
		if (!known.is_current)
			ret.is_current = become_current(d, at, report, &ret.has_replaced);
		ret.has_replaced = true;
		if (ret.is_current)
			db_exec(d, "UPDATE job SET is_current = 1 WHERE id = ?1", V_INT(known.id));
	} else if (is_completed) {
		ret.outcome = REPORT_CONFLICT;
	}
	/* The analysis may come after the report, and the newest one counts. It is not part of the report's digest. */
	if (ret.outcome == REPORT_UNCHANGED && known.is_same && report->triage &&
	    db_exec_count(d, "UPDATE job SET triage = ?2 WHERE id = ?1 AND (triage IS NULL OR triage <> ?2)",
		V_INT(known.id), V_TEXT(report->triage)))
		db_notify_job(d, known.id);
	if (ret.outcome != REPORT_RECORDED || !ret.job_id)
		return ret;
	db_notify_job(d, ret.job_id);
	if (report->status == JOB_COMPLETED) {
		struct packed_tests own = {.n = 0};

		if (!report->packed)
			packed_tests_make(&own, report->tests, report->n_tests);
		complete_job(d, ret.job_id, at, report, report->packed ? report->packed : &own, now_ms);
		packed_tests_release(&own);
	}
	db_exec(
	    d, "UPDATE accelerator SET last_report_ms = ?2 WHERE name = ?1", V_TEXT(at->accelerator), V_INT(now_ms));
	return ret;
}

bool job_is_red(const struct view *d, int64_t job_id)
{
	return db_has(
	    d, "SELECT 1 FROM job WHERE id = ?1 AND status = 'completed' AND n_red > 0 LIMIT 1", V_INT(job_id));
}

void job_give_up(
    struct txn *d, int64_t job_id, const char *conclusion, const char *message, bool is_still_shown, int64_t now_ms)
{
	if (!job_id)
		return;
	db_notify_job(d, job_id);
	if (!job_enter(d, job_id, JOB_COMPLETED))
		return;
	db_exec(d,
	    "UPDATE job SET conclusion = ?2, message = ?3, completed_ms = ?4,"
	    " is_current = CASE WHEN ?5 <> 0 THEN is_current ELSE 0 END WHERE id = ?1",
	    V_INT(job_id), V_TEXT(conclusion), V_TEXT(message), V_INT(now_ms), V_INT(is_still_shown));
}

void job_resume(struct txn *d, int64_t job_id)
{
	if (!job_id)
		return;
	db_notify_job(d, job_id);
	if (job_enter(d, job_id, JOB_IN_PROGRESS))
		db_exec(d,
		    "UPDATE job SET conclusion = NULL, message = NULL, completed_ms = NULL,"
		    " is_current = 1 WHERE id = ?1",
		    V_INT(job_id));
}

/* ---- report documents and logs ---- */

#define DOCUMENT_JOB_RECORD(F, S)                                                                                      \
	F(S, INT, change_id, NULL, "change_id", "")                                                                    \
	F(S, TEXT, accelerator, NULL, "accelerator", "")                                                               \
	F(S, JOB_STATUS, status, NULL, "status", "")                                                                   \
	F(S, BOOL, has_digest, NULL, "digest IS NOT NULL", "Its runner reported it.")                                  \
	F(S, TEXT, dispatch_id, NULL, "dispatch_id", "'': a self-report.")                                             \
	F(S, BOOL, is_current, NULL, "is_current", "")                                                                 \
	F(S, BOOL, is_of_this_round, NULL,                                                                             \
	    "EXISTS (SELECT 1 FROM dispatch x WHERE x.id = dispatch_id AND x.accelerator = job.accelerator"            \
	    " AND x.is_current = 1 AND x.state NOT IN ('superseded', 'cancelled'))",                                   \
	    "")                                                                                                        \
	F(S, INT, n_tests, NULL, "n_tests", "")                                                                        \
	F(S, INT, n_results, NULL,                                                                                     \
	    "(SELECT SUM(o.n_tests) FROM job o WHERE o.change_id = job.change_id AND o.dispatch_id = job.dispatch_id"  \
	    " AND o.accelerator = job.accelerator)",                                                                   \
	    "Of all jobs of the dispatch.")                                                                            \
	F(S, TEXT, verdict, NULL, "verdict", "Of a reported job.")                                                     \
	F(S, BOOL, has_document, NULL, "length(report_digest) > 0", "")                                                \
	F(S, BOOL, is_same, NULL, "report_digest = ?2", "")
RECORD_LOCAL(document_job, DOCUMENT_JOB_RECORD)

static int put_report_run(struct store_op *op, struct txn *d)
{
	struct put_report *o = CONTAINER_OF(op, struct put_report, op);
	struct document_job job;
	struct packed_tests own = {.n = 0}, *tests = o->packed ? o->packed : &own;
	bool is_reported, is_self_report;
	const char *verdict = NULL;

	o->outcome = REPORT_NO_DISPATCH;
	if (!RECORD_READ_FIRST(d, document_job, DOCUMENT_JOB_RECORD, &job, "FROM job WHERE id = ?1", V_INT(o->job_id),
		V_BLOB(o->digest, sizeof(o->digest))))
		return 0;
	is_self_report = !job.dispatch_id[0];
	o->outcome = job.is_same ? REPORT_UNCHANGED
		     : job.has_document
			 ? REPORT_CONFLICT
			 : check_room(&(struct dispatch_jobs){.n_results = job.n_results}, 0, o->n_tests);
	job_results_go_on(o->packed, op->n_parts);
	if (o->outcome == REPORT_RECORDED && job_results_put_part(d, o->job_id, job.n_tests, o->packed, o->now_ms))
		o->outcome = REPORT_IN_PARTS;
	op->is_unfinished = o->outcome == REPORT_IN_PARTS;
	if (o->outcome != REPORT_RECORDED) {
		if (!op->is_unfinished)
			job_results_give_up(d, o->packed);
		record_release(&document_job_record, &job);
		return 0;
	}
	if (!o->packed)
		packed_tests_make(&own, o->tests, o->n_tests);
	is_reported = job.status == JOB_COMPLETED && job.has_digest;
	if (is_reported)
		verdict = test_status_name(packed_tests_worst(tests, test_status_parse(job.verdict)));
	job_results_put(d, o->job_id, job.n_tests, tests);
	db_exec(d,
	    "UPDATE job SET report_digest = ?2, environment = ?3, n_tests = n_tests + ?4,"
	    " n_red = n_red + ?5, verdict = COALESCE(?6, verdict), n_cut = n_cut + ?7 WHERE id = ?1",
	    V_INT(o->job_id), V_BLOB(o->digest, sizeof(o->digest)), V_TEXT(o->environment), V_INT((int64_t)tests->n),
	    V_INT(packed_tests_n_red(tests)), V_TEXT(verdict), V_INT((int64_t)o->n_cut));
	if (!is_self_report)
		failures_put(d, &(struct failure_place){job.change_id, o->job_id, o->now_ms, job.accelerator}, tests);
	if (tests->has_numbers)
		number_days_note(d, o->job_id, tests->tests, tests->n, o->now_ms);
	change_touch(d, job.change_id, o->now_ms);
	db_notify_change(d, job.change_id);
	db_notify_job(d, o->job_id);
	/* An attempt that was retried is evidence for the newest one. Earlier rounds and cancelled runs are not. */
	if (is_reported && (job.is_current || (is_self_report ? packed_tests_n_red(tests) > 0 : job.is_of_this_round)))
		cells_moved(d, job.change_id, job.accelerator,
		    is_self_report ? CELLS_SELF_REPORTED : CELLS_REPORT_ADDED, o->now_ms);
	packed_tests_release(&own);
	record_release(&document_job_record, &job);
	return 0;
}
STORE_HEAVY_OPERATION(put_report, op->n_tests * sizeof(*op->tests))

static int note_log_run(struct store_op *op, struct txn *d)
{
	struct note_log *o = CONTAINER_OF(op, struct note_log, op);

	if (db_exec_count(d,
		"UPDATE job SET log_bytes = ?2, is_log_complete = ?3 WHERE id = ?1"
		" AND is_log_complete = 0 AND (?3 = 1 OR COALESCE(log_bytes, 0) <= ?2)",
		V_INT(o->job_id), V_INT(o->bytes), V_INT(o->is_complete)))
		db_notify_job(d, o->job_id);
	else if (!db_has(d, "SELECT 1 FROM job WHERE id = ?1", V_INT(o->job_id)))
		return db_status(d) ? db_status(d) : ERR_NOT_FOUND;
	return 0;
}
STORE_INDEPENDENT(note_log)
