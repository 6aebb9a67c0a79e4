#include "store/job_row.h"

#include "base/alloc.h"
#include "store/counters.h"
#include "store/experiments.h"
#include "store/failures.h"
#include "store/number_days.h"
#include "store/verdicts.h"

/* More than any CI has jobs for one change; a vendor that invents run ids ends here. */
enum { JOBS_PER_DISPATCH_MAX = 1000 };

struct known_job {
	int64_t id; /* 0: none */
	bool is_completed, is_same, is_current;
	bool is_given_up; /* completed by job_give_up() */
};

static struct known_job find(struct db *d, const struct job_place *at, const struct job_report *p)
{
	struct known_job k = {0};
	struct rows *r = db_rows(d,
	    "SELECT id, status, digest, is_current FROM job WHERE change_id = ?1 AND dispatch_id = "
	    "?2"
	    " AND accelerator = ?3 AND workflow = ?4 AND name = ?5 AND run_id = ?6"
	    " AND run_attempt = ?7",
	    V_INT(at->change_id), V_TEXT(at->dispatch_id), V_TEXT(at->accelerator),
	    V_TEXT(p->workflow), V_TEXT(p->name), V_TEXT(p->run_id), V_INT(p->run_attempt));

	if (rows_next(r)) {
		size_t n;
		const void *digest = rows_blob(r, 2, &n);

		k.id = rows_int(r, 0);
		k.is_completed = strcmp(rows_text(r, 1), "completed") == 0;
		k.is_given_up = k.is_completed && rows_is_null(r, 2);
		k.is_current = rows_int(r, 3);
		k.is_same = n == sizeof(p->digest) && memcmp(digest, p->digest, n) == 0;
	}
	rows_end(r);
	return k;
}

static bool has_room(struct db *d, const struct job_place *at)
{
	if (db_int(d, 0,
		"SELECT COUNT(*) FROM job WHERE change_id = ?1 AND dispatch_id = ?2"
		" AND accelerator = ?3",
		V_INT(at->change_id), V_TEXT(at->dispatch_id),
		V_TEXT(at->accelerator)) < JOBS_PER_DISPATCH_MAX)
		return true;
	db_fail(d, ERR_TOO_BIG, "this dispatch has %d jobs already", JOBS_PER_DISPATCH_MAX);
	return false;
}

bool jobs_tell(struct db *d, struct rows *ids)
{
	bool has_any = false;

	while (rows_next(ids)) {
		db_tell_job(d, rows_int(ids, 0));
		has_any = true;
	}
	return has_any;
}

/* The newest attempt of a job is the one that is shown; one that was given up stands in
 * nobody's way. Returns whether p is it; the one that was is dethroned. */
static bool take_place(
    struct db *d, const struct job_place *at, const struct job_report *p, bool *ret_has_replaced)
{
	int64_t current;

	if (!at->is_shown)
		return false;
	current = db_int(d, 0,
	    "SELECT id FROM job WHERE change_id = ?1 AND accelerator = ?2 AND workflow = ?3"
	    " AND name = ?4 AND is_current = 1 AND dispatch_id = ?5 AND run_attempt > ?6"
	    " AND (status = 'in_progress' OR digest IS NOT NULL) LIMIT 1",
	    V_INT(at->change_id), V_TEXT(at->accelerator), V_TEXT(p->workflow), V_TEXT(p->name),
	    V_TEXT(at->dispatch_id), V_INT(p->run_attempt));
	if (current)
		return false;
	*ret_has_replaced =
	    jobs_tell(d, db_rows(d,
			     "UPDATE job SET is_current = 0 WHERE change_id = ?1"
			     " AND accelerator = ?2 AND workflow = ?3 AND name = ?4"
			     " AND is_current = 1 AND dispatch_id = ?5 RETURNING id",
			     V_INT(at->change_id), V_TEXT(at->accelerator), V_TEXT(p->workflow),
			     V_TEXT(p->name), V_TEXT(at->dispatch_id)));
	return true;
}

static int64_t insert(struct db *d, const struct job_place *at, const struct job_report *p,
    bool is_current, int64_t now_ms)
{
	counter_add(d, COUNT_JOBS, 1);
	return db_int(d, 0,
	    "INSERT INTO job (change_id, dispatch_id, accelerator, runner, workflow, name, run_id,"
	    " run_attempt, status, is_current, is_late, is_push, url, check_run_id, n_tests, n_red,"
	    " started_ms, reported_ms, vendor_started_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'in_progress', ?9, ?10, ?11, ?12, ?13, 0, 0,"
	    " ?14, ?15, ?16) RETURNING id",
	    V_INT(at->change_id), V_TEXT(at->dispatch_id), V_TEXT(at->accelerator),
	    V_TEXT(at->runner), V_TEXT(p->workflow), V_TEXT(p->name), V_TEXT(p->run_id),
	    V_INT(p->run_attempt), V_INT(is_current), V_INT(at->is_late), V_INT(at->is_push),
	    V_TEXT(p->url), V_TEXT(p->check_run_id),
	    V_INT_OR_NULL(p->status == JOB_IN_PROGRESS ? now_ms : 0), V_INT(now_ms),
	    V_INT_OR_NULL(p->started_ms));
}

static void put_result(struct db *d, int64_t job_id, int64_t ordinal, const struct test_result *t)
{
	db_exec(d,
	    "INSERT INTO result (job_id, ordinal, test_id, status, duration_ms, dtype, message,"
	    " number, unit, log_url, trace, file, line)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
	    V_INT(job_id), V_INT(ordinal), V_INT(test_id_of(d, t->suite, t->name, t->dtype)),
	    V_TEXT(test_status_name(t->status)),
	    t->duration_ms < 0 ? V_NULL : V_INT(t->duration_ms), V_TEXT(t->dtype),
	    V_TEXT(t->message), t->has_number ? V_REAL(t->number) : V_NULL, V_TEXT(t->unit),
	    V_TEXT(t->log_url), V_TEXT(t->trace), V_TEXT(t->file), V_INT_OR_NULL(t->line));
}

enum test_status worst_status(enum test_status worst, const struct test_result *tests, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (tests[i].status < worst)
			worst = tests[i].status;
	return worst;
}

/* The worst of the job's conclusion, its tests and those of a report that came before: what
 * figures count. */
static enum test_status roll_up(
    struct db *d, int64_t id, const struct job_report *p, int64_t n_reported)
{
	enum test_status worst =
	    worst_status(test_status_of_conclusion(p->conclusion), p->tests, p->n_tests);
	struct rows *r;

	if (!n_reported)
		return worst;
	r = db_rows(d, "SELECT DISTINCT status FROM result WHERE job_id = ?1", V_INT(id));
	while (rows_next(r)) {
		enum test_status s = test_status_parse(rows_text(r, 0));

		worst = s < worst ? s : worst;
	}
	return worst;
}

int64_t job_add_results(
    struct db *d, int64_t job_id, int64_t first, const struct test_result *tests, size_t n)
{
	int64_t by_status[N_TEST_STATUSES] = {0};

	for (size_t i = 0; i < n; i++) {
		put_result(d, job_id, first + (int64_t)i, &tests[i]);
		by_status[tests[i].status]++;
	}
	db_exec(d,
	    "UPDATE job SET n_tests_fail = COALESCE(n_tests_fail, 0) + ?2,"
	    " n_tests_error = COALESCE(n_tests_error, 0) + ?3,"
	    " n_tests_miss = COALESCE(n_tests_miss, 0) + ?4,"
	    " n_tests_pass = COALESCE(n_tests_pass, 0) + ?5,"
	    " n_tests_done = COALESCE(n_tests_done, 0) + ?6,"
	    " n_tests_skip = COALESCE(n_tests_skip, 0) + ?7 WHERE id = ?1",
	    V_INT(job_id), V_INT(by_status[TEST_FAIL]), V_INT(by_status[TEST_ERROR]),
	    V_INT(by_status[TEST_MISS]), V_INT(by_status[TEST_PASS]), V_INT(by_status[TEST_DONE]),
	    V_INT(by_status[TEST_SKIP]));
	counter_add(d, COUNT_RESULTS, (int64_t)n);
	return by_status[TEST_FAIL] + by_status[TEST_ERROR] + by_status[TEST_MISS];
}

static struct value count_value(const struct job_report *p, int64_t n)
{
	return p->has_counts ? V_INT(n) : V_NULL;
}

/* A self-report is evidence for nothing, and an experiment for nothing but what it explains. */
static void put_failures(struct db *d, int64_t id, const struct job_place *at,
    const struct job_report *p, int64_t n_tests, int64_t now_ms)
{
	struct failure_place place = {at->change_id, id, now_ms, at->accelerator};

	if (!at->dispatch_id[0] || experiment_is_run(d, at->change_id))
		return;
	failures_put(d, &place, p->tests, p->n_tests);
	if (!n_tests && p->message)
		failure_put_job(d, &place, p->workflow, p->name,
		    test_status_of_conclusion(p->conclusion), p->message);
}

static void complete(struct db *d, int64_t id, const struct job_place *at,
    const struct job_report *p, int64_t now_ms)
{
	int64_t n_reported = db_int(d, 0, "SELECT n_tests FROM job WHERE id = ?1", V_INT(id));
	int64_t n_red = job_add_results(d, id, n_reported, p->tests, p->n_tests);

	put_failures(d, id, at, p, n_reported + (int64_t)p->n_tests, now_ms);
	db_exec(d,
	    "UPDATE job SET status = 'completed', conclusion = ?2, verdict = ?3, digest = ?4,"
	    " url = COALESCE(?5, url), artifact_url = ?6, n_tests = n_tests + ?7,"
	    " n_red = n_red + ?8, n_cut = n_cut + ?19, n_passed = ?9,"
	    " n_failed = ?10, n_skipped = ?11, n_total = ?12, completed_ms = ?13,"
	    " reported_ms = ?13, is_late = is_late OR ?14,"
	    " vendor_started_ms = COALESCE(?15, vendor_started_ms), vendor_completed_ms = ?16,"
	    " check_run_id = COALESCE(?17, check_run_id),"
	    " triage = ?20,"
	    /* a machine that was told to stop need not say why once more */
	    " message = CASE WHEN ?18 IS NULL AND ?2 = 'cancelled' THEN message ELSE ?18 END"
	    " WHERE id = ?1",
	    V_INT(id), V_TEXT(p->conclusion),
	    V_TEXT(test_status_name(roll_up(d, id, p, n_reported))),
	    V_BLOB(p->digest, sizeof(p->digest)), V_TEXT(p->url), V_TEXT(p->artifact_url),
	    V_INT((int64_t)p->n_tests), V_INT(n_red), count_value(p, p->n_passed),
	    count_value(p, p->n_failed), count_value(p, p->n_skipped), count_value(p, p->n_total),
	    V_INT(now_ms), V_INT(at->is_late), V_INT_OR_NULL(p->started_ms),
	    V_INT_OR_NULL(p->completed_ms), V_TEXT(p->check_run_id), V_TEXT(p->message),
	    V_INT((int64_t)p->n_cut), V_TEXT(p->triage));
	number_days_note(d, id, p->tests, p->n_tests, now_ms);
}

/* What was given up is reported after all: it is shown again unless a later attempt is, and
 * whatever was said in its stead goes. */
static void put_back(struct db *d, const struct job_place *at, const struct job_report *p,
    const struct known_job *known, struct job_record *ret)
{
	if (!known->is_current)
		ret->is_current = take_place(d, at, p, &ret->has_replaced);
	ret->has_replaced = true;
	if (ret->is_current)
		db_exec(d, "UPDATE job SET is_current = 1 WHERE id = ?1", V_INT(known->id));
}

/* The analysis may come after the report: the newest claim stands. It is no part of what a report says. */
static void note_triage(struct db *d, int64_t id, const char *triage)
{
	if (triage && db_exec(d,
			  "UPDATE job SET triage = ?2 WHERE id = ?1"
			  " AND (triage IS NULL OR triage <> ?2)",
			  V_INT(id), V_TEXT(triage)))
		db_tell_job(d, id);
}

struct job_record job_put(
    struct db *d, const struct job_place *at, const struct job_report *report, int64_t now_ms)
{
	struct known_job known = find(d, at, report);
	struct job_record ret = {.outcome = REPORT_RECORDED, .job_id = known.id};

	if (known.id) {
		ret.is_current = known.is_current;
		if (report->status == JOB_IN_PROGRESS || (known.is_completed && known.is_same))
			ret.outcome = REPORT_UNCHANGED;
		else if (known.is_given_up)
			put_back(d, at, report, &known, &ret);
		else if (known.is_completed)
			ret.outcome = REPORT_CONFLICT;
	} else if (has_room(d, at)) {
		ret.is_current = take_place(d, at, report, &ret.has_replaced);
		ret.job_id = insert(d, at, report, ret.is_current, now_ms);
	}
	if (ret.outcome == REPORT_UNCHANGED && known.is_same)
		note_triage(d, known.id, report->triage);
	if (ret.outcome != REPORT_RECORDED || !ret.job_id)
		return ret;
	db_tell_job(d, ret.job_id);
	if (report->status == JOB_COMPLETED)
		complete(d, ret.job_id, at, report, now_ms);
	db_exec(d, "UPDATE accelerator SET last_report_ms = ?2 WHERE name = ?1",
	    V_TEXT(at->accelerator), V_INT(now_ms));
	return ret;
}

void job_give_up(struct db *d, int64_t job_id, const char *conclusion, const char *message,
    bool is_still_shown, int64_t now_ms)
{
	if (!job_id)
		return;
	db_tell_job(d, job_id);
	db_exec(d,
	    "UPDATE job SET status = 'completed', conclusion = ?2, message = ?3,"
	    " completed_ms = ?4, is_current = is_current AND ?5"
	    " WHERE id = ?1 AND status = 'in_progress'",
	    V_INT(job_id), V_TEXT(conclusion), V_TEXT(message), V_INT(now_ms),
	    V_INT(is_still_shown));
}

void job_take_up(struct db *d, int64_t job_id)
{
	if (!job_id)
		return;
	db_tell_job(d, job_id);
	db_exec(d,
	    "UPDATE job SET status = 'in_progress', conclusion = NULL, message = NULL,"
	    " completed_ms = NULL, is_current = 1"
	    " WHERE id = ?1 AND status = 'completed' AND digest IS NULL",
	    V_INT(job_id));
}
