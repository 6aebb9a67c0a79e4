/* The jobs that decide a level: CRCR's denominators, failures of upstream, days and windows, and figures that follow
 * a repository to its new name. */
#include "db/db.h"
#include "history/days.h"
#include "history/run_note.h"
#include "store_rig.h"

static struct db *db;
static struct txn *txn;
static int64_t n_changes, n_jobs;

static int setup(void **state)
{
	struct error e = {0};
	char *path;

	rig_setup(state);
	rig_close(); /* the tables are there */
	path = rig_path();
	assert_int_equal(db_open(path, DB_WRITER, &db, &e), 0);
	free(path);
	assert_int_equal(db_begin(db, DB_WRITER), 0);
	txn = db_txn(db);
	n_changes = n_jobs = 0;
	return 0;
}

static int teardown(void **state)
{
	db_close(db);
	return rig_teardown(state);
}

static int64_t put_change(
    const char *accelerator, const char *runner, const char *kind, const char *state, int64_t sent_ms)
{
	char sha[41], id[32];

	snprintf(sha, sizeof(sha), "%040lld", (long long)++n_changes);
	snprintf(id, sizeof(id), "d%lld", (long long)n_changes);
	db_exec(txn,
	    "INSERT INTO change (id, kind, repository, repository_key, head_sha, state, created_ms,"
	    " active_ms) VALUES (?1, ?2, 'O/R', 'o/r', ?3, 'open', ?4, ?4)",
	    V_INT(n_changes), V_TEXT(kind), V_TEXT(sha), V_INT(sent_ms));
	db_exec(txn,
	    "INSERT INTO dispatch (id, accelerator, runner, change_id, kind, target, target_key, "
	    "round,"
	    " round_ms, is_current, state, is_held_for_good, number, delivery_guid, event_type,"
	    " sent_action, original_action, acknowledge_ms, start_ms, finish_ms, created_ms, "
	    "sent_ms)"
	    " VALUES (?1, ?2, ?3, ?4, 'github', 'v/r', 'v/r', 1, 0, 1, ?5, 0, 0, ?1, "
	    "'pull_request',"
	    " '', '', 0, 0, 0, ?6, ?6)",
	    V_TEXT(id), V_TEXT(accelerator), V_TEXT(runner), V_INT(n_changes), V_TEXT(state), V_INT(sent_ms));
	assert_int_equal(db_status(db), 0);
	return n_changes;
}

struct one_job {
	const char *run_id, *conclusion;
	int64_t started_ms, completed_ms; /* after the dispatch */
	bool is_replaced, is_given_up;
};

static int64_t put_job(
    int64_t change_id, const char *accelerator, const char *runner, int64_t sent_ms, const struct one_job *j)
{
	char name[32], id[32];

	snprintf(name, sizeof(name), "job %lld", (long long)++n_jobs);
	snprintf(id, sizeof(id), "d%lld", (long long)change_id);
	db_exec(txn,
	    "INSERT INTO job (id, change_id, dispatch_id, accelerator, runner, workflow, name, "
	    "run_id,"
	    " run_attempt, status, conclusion, is_current, is_late, is_push, digest, n_tests, "
	    "n_red,"
	    " started_ms, completed_ms, reported_ms) VALUES (?1, ?2, ?3, ?4, ?5, 'ci', ?6, ?7, 1,"
	    " 'completed', ?8, ?9, 0, 0, ?10, 0, 0, ?11, ?12, ?12)",
	    V_INT(n_jobs), V_INT(change_id), V_TEXT(id), V_TEXT(accelerator), V_TEXT(runner), V_TEXT(name),
	    V_TEXT(j->run_id), V_TEXT(j->conclusion), V_INT(!j->is_replaced), j->is_given_up ? V_NULL : V_BLOB("x", 1),
	    j->started_ms < 0 ? V_NULL : V_INT(sent_ms + j->started_ms), V_INT(sent_ms + j->completed_ms));
	assert_int_equal(db_status(db), 0);
	return n_jobs;
}

static void put_red(int64_t change_id, const char *accelerator, int64_t job, int64_t test, const char *attribution,
    int64_t evidence_job, const char *url)
{
	db_exec(txn,
	    "INSERT INTO verdict (change_id, accelerator, test_id, status, attribution, job_id,"
	    " is_late, evidence_job, evidence_url) VALUES (?1, ?2, ?3, 'FAIL', ?4, ?5, 0, ?6, ?7)",
	    V_INT(change_id), V_TEXT(accelerator), V_INT(test), V_TEXT(attribution), V_INT(job),
	    V_INT_OR_NULL(evidence_job), V_TEXT(url));
	db_exec(txn,
	    "INSERT INTO accelerator (name, title, level, oncall, is_gone, first_ms)"
	    " VALUES (?1, ?1, 2, '[]', 0, 0) ON CONFLICT (name) DO NOTHING",
	    V_TEXT(accelerator));
	assert_int_equal(db_status(db), 0);
}

static struct level_numbers numbers(const char *accelerator, const char *runner)
{
	struct level_numbers n;

	level_read(db_view(db), accelerator, runner, T0, &n);
	assert_int_equal(db_status(db), 0);
	return n;
}

static void jobs_are_counted_as_crcr_does(void **state)
{
	static const struct one_job jobs[] = {
	    {"1", "success", HOUR / 2, HOUR, false, false},
	    {"1", "failure", HOUR, 2 * HOUR, false, false}, /* the run: 30 min + 90 min */
	    {"1", "failure", 0, HOUR, true, false},         /* an earlier attempt */
	    {"2", "success", 0, 4 * HOUR, false, false},    /* too long; the run: 4 h */
	    {"3", "timed_out", HOUR, 6 * HOUR, false, false},
	    {"4", "success", -1, HOUR, false, false}, /* its start is not known */
	    {"5", "cancelled", 0, HOUR, false, false},
	    {"6", "cancelled", 0, HOUR, false, true}, /* Outpost cancelled it */
	};
	int64_t sent_ms = T0 - DAY, change = put_change("npu", "ci", "pull_request", "done", sent_ms);
	struct level_window w;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		put_job(change, "npu", "ci", sent_ms, &jobs[i]);
	run_jobs_note(txn, change, "npu", sent_ms + 6 * HOUR);
	run_jobs_note(txn, change, "npu", sent_ms + 6 * HOUR); /* a repetition does not count twice */
	w = numbers("npu", NULL).demotion;
	assert_int_equal(w.n_jobs, 6);
	assert_int_equal(w.n_passed, 3);
	assert_int_equal(w.n_timed_out, 1);
	assert_int_equal(w.n_overrun, 1);
	assert_int_equal(w.n_upstream, 0);
	/* of 2 h, 4 h, 6 h and 1 h, which is a run that was cancelled */
	assert_int_equal(w.end_to_end_ms, 2 * HOUR);
	/* 30 min for each of two jobs, 0, 1 h and 0 */
	assert_int_equal(w.queue_ms, 2 * HOUR / 5);
	assert_int_equal(numbers("npu", "other").demotion.n_jobs, 0);
	assert_int_equal(numbers("tpu", NULL).demotion.n_jobs, 0);
}

static void failures_of_upstream_are_counted_separately(void **state)
{
	static const struct one_job failed = {"1", "failure", 0, HOUR, false, false};
	static const struct {
		const char *attribution, *url;
		bool is_red_elsewhere, is_upstream;
	} cases[] = {
	    {"NEW", NULL, false, true},
	    {"KNOWN", "https://github.com/O/r/issues/1", false, true},
	    {"KNOWN", "https://github.com/O/r2/issues/1", false, false},
	    {"KNOWN", "https://github.com/vendor/r/issues/1", false, false},
	    {"BASE", NULL, true, true},
	    {"BASE", NULL, false, false}, /* its own break */
	    {"FLAKY", NULL, true, false},
	    {"UNCLASSIFIED", NULL, true, false},
	};
	int64_t sent_ms = T0 - DAY;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t test = (int64_t)i + 1;
		int64_t base = put_change("npu", "ci", "push", "done", sent_ms);
		int64_t evidence = put_job(base, "npu", "ci", sent_ms, &failed);
		int64_t change = put_change("npu", "ci", "pull_request", "done", sent_ms);
		int64_t job = put_job(change, "npu", "ci", sent_ms, &failed);
		int64_t before = numbers("npu", NULL).promotion.n_upstream;

		if (cases[i].is_red_elsewhere)
			put_red(base, "tpu", 0, test, "UNCLASSIFIED", 0, NULL);
		put_red(change, "npu", job, test, cases[i].attribution, evidence, cases[i].url);
		run_jobs_note(txn, change, "npu", sent_ms);
		assert_int_equal(numbers("npu", NULL).promotion.n_upstream - before, cases[i].is_upstream);
		/* One red test that counts for the vendor makes the job count for the vendor. */
		put_red(change, "npu", job, 100, "UNCLASSIFIED", 0, NULL);
		run_jobs_note(txn, change, "npu", sent_ms);
		assert_int_equal(numbers("npu", NULL).promotion.n_upstream, before);
		db_exec(txn, "DELETE FROM verdict WHERE test_id = 100");
		run_jobs_note(txn, change, "npu", sent_ms);
	}
	/* A job that failed without a red test counts for the vendor. */
	{
		int64_t change = put_change("npu", "ci", "pull_request", "done", sent_ms);
		int64_t before = numbers("npu", NULL).promotion.n_upstream;

		put_job(change, "npu", "ci", sent_ms, &failed);
		run_jobs_note(txn, change, "npu", sent_ms);
		assert_int_equal(numbers("npu", NULL).promotion.n_upstream, before);
	}
}

/* Another accelerator ran the tests again on the merge base: only a valid outcome shows that upstream broke it. */
static void an_experiment_elsewhere_shows_an_upstream_failure(void **state)
{
	static const struct one_job failed = {"1", "failure", 0, HOUR, false, false};
	static const struct {
		const char *state, *side;
		int64_t asked; /* the test; 1 is red */
		bool is_upstream;
	} cases[] = {{"done", "base", 1, true}, {"void", "base", 1, false}, {"cancelled", "base", 1, false},
	    {"done", "head", 1, false}, {"done", "base", 2, false}};
	int64_t sent_ms = T0 - DAY;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t base = put_change("npu", "ci", "push", "done", sent_ms);
		int64_t evidence = put_job(base, "npu", "ci", sent_ms, &failed);
		int64_t change = put_change("npu", "ci", "pull_request", "done", sent_ms);
		int64_t job = put_job(change, "npu", "ci", sent_ms, &failed);
		int64_t run = put_change("tpu", "ci", "experiment", "done", sent_ms);
		int64_t before = numbers("npu", NULL).promotion.n_upstream, e;

		e = db_exec_int(txn, 0,
		    "INSERT INTO experiment (change_id, accelerator, runner, dispatch_id, cause,"
		    " round, side, sha, state, run_change_id, created_ms, expires_ms)"
		    " SELECT ?1, 'tpu', 'ci', 'x', 'auto', 1, ?2, head_sha, ?3, ?4, 1, 2"
		    " FROM change WHERE id = ?5 RETURNING id",
		    V_INT(change), V_TEXT(cases[i].side), V_TEXT(cases[i].state), V_INT(run), V_INT(base));
		db_exec(txn, "INSERT INTO experiment_test (experiment_id, test_id) VALUES (?1, ?2)", V_INT(e),
		    V_INT(cases[i].asked));
		db_exec(txn,
		    "UPDATE change SET experiment_id = ?2, head_sha ="
		    " (SELECT head_sha FROM change WHERE id = ?3) WHERE id = ?1",
		    V_INT(run), V_INT(e), V_INT(base));
		put_red(run, "tpu", 0, 1, "UNCLASSIFIED", 0, NULL);
		put_red(change, "npu", job, 1, "BASE", evidence, NULL);
		run_jobs_note(txn, change, "npu", sent_ms);
		assert_int_equal(numbers("npu", NULL).promotion.n_upstream - before, cases[i].is_upstream);
	}
}

static void windows_of_one_and_two_weeks_are_exact_to_the_millisecond(void **state)
{
	static const struct one_job passed = {"1", "success", 0, HOUR, false, false};
	const struct {
		int64_t ended_ms;
		int n_promotion, n_demotion;
	} ends[] = {{T0 - 14 * DAY - 1, 0, 0}, {T0 - 14 * DAY, 1, 0}, {T0 - 7 * DAY - 1, 2, 0}, {T0 - 7 * DAY, 3, 1},
	    {T0, 4, 2}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		int64_t change = put_change("npu", "ci", "pull_request", "done", ends[i].ended_ms);
		struct level_numbers n;

		put_job(change, "npu", "ci", ends[i].ended_ms, &passed);
		run_jobs_note(txn, change, "npu", ends[i].ended_ms);
		n = numbers("npu", NULL);
		assert_int_equal(n.promotion.n_jobs, ends[i].n_promotion);
		assert_int_equal(n.demotion.n_jobs, ends[i].n_demotion);
	}
	assert_true(numbers("npu", NULL).data_ms >= 14 * DAY);
	/* Retention deletes the changes; the sums of their days stay, and the window's first day counts only in part. */
	for (int64_t change = 1; change <= n_changes; change++)
		run_jobs_drop_change(txn, change);
	assert_int_equal(numbers("npu", NULL).demotion.n_jobs, 1);
	assert_true(run_jobs_drop_days(txn, day_of(T0) + 1, 100) > 0);
	assert_int_equal(numbers("npu", NULL).demotion.n_jobs, 0);
	assert_int_equal(numbers("npu", NULL).data_ms, -1);
}

static void figures_follow_a_repository(void **state)
{
	static const struct one_job passed = {"1", "success", 0, HOUR, false, false};
	int64_t change = put_change("npu", "v-r", "pull_request", "done", T0 - HOUR);

	(void)state;
	put_job(change, "npu", "v-r", T0 - HOUR, &passed);
	run_jobs_note(txn, change, "npu", T0 - HOUR);
	run_jobs_move(txn, "npu", "v-r", "v-r", "v-r");
	assert_int_equal(numbers("npu", NULL).promotion.n_jobs, 0);
	assert_int_equal(numbers("v-r", NULL).promotion.n_jobs, 1);
	assert_int_equal(numbers("v-r", "v-r").promotion.n_passed, 1);
}

/* Two rounds of one change, under both names: only a run with the same key takes another's place. */
static void a_move_replaces_no_other_run_of_the_change(void **state)
{
	static const struct one_job passed = {"1", "success", 0, HOUR, false, false};
	int64_t change = put_change("npu", "v-r", "pull_request", "done", T0 - HOUR);

	(void)state;
	put_job(change, "npu", "v-r", T0 - HOUR, &passed);
	run_jobs_note(txn, change, "npu", T0 - HOUR);
	db_exec(txn, "INSERT INTO run_jobs SELECT 'v-r', ended_ms - 60000, runner, change_id, n_jobs, n_passed,"
		     " n_timed_out, n_overrun, n_upstream, queue_ms, n_queued, end_to_end FROM run_jobs");
	run_jobs_move(txn, "npu", "v-r", "v-r", "v-r");
	assert_int_equal(db_int(txn, 0, "SELECT COUNT(*) FROM run_jobs WHERE accelerator = 'v-r'"), 2);
}

static void a_run_that_kept_its_name_does_not_sum_its_day(void **state)
{
	static const struct one_job passed = {"1", "success", 0, HOUR, false, false};
	int64_t change = put_change("npu", "ci", "pull_request", "done", T0 - HOUR);

	(void)state;
	put_job(change, "npu", "ci", T0 - HOUR, &passed);
	run_jobs_note(txn, change, "npu", T0 - HOUR);
	db_exec(txn, "UPDATE day_jobs SET n_passed = 77"); /* a marker that shows whether the day was summed again */
	run_jobs_note(txn, change, "npu", T0 - HOUR);
	assert_int_equal(numbers("npu", NULL).promotion.n_passed, 77);
	put_job(change, "npu", "ci", T0 - HOUR, &passed);
	run_jobs_note(txn, change, "npu", T0 - HOUR);
	assert_int_equal(numbers("npu", NULL).promotion.n_passed, 2);
}

/* The accelerator whose runs are checked again after the move: the day has more runs than this one. */
static void figures_of_a_day_are_not_replaced_by_partial_sums(void **state)
{
	static const struct one_job passed = {"1", "success", 0, HOUR, false, false};
	int64_t changes[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		const char *name = i < 2 ? "npu" : "v-r"; /* the last one comes after the move */

		if (i == 2)
			run_jobs_move(txn, "npu", "v-r", "v-r", "v-r");
		changes[i] = put_change(name, "v-r", "pull_request", "done", T0 - HOUR);
		put_job(changes[i], name, "v-r", T0 - HOUR, &passed);
		run_jobs_note(txn, changes[i], name, T0 - HOUR);
	}
	assert_int_equal(numbers("v-r", NULL).promotion.n_jobs, 3);
	/* A cell of the first change is attributed again, so its run is written again, by its old name. */
	run_jobs_note(txn, changes[0], "npu", T0 - HOUR);
	run_jobs_move(txn, "npu", "v-r", "v-r", "v-r");
	assert_int_equal(numbers("v-r", NULL).promotion.n_jobs, 3);
	assert_int_equal(numbers("npu", NULL).promotion.n_jobs, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	    T(jobs_are_counted_as_crcr_does),
	    T(failures_of_upstream_are_counted_separately),
	    T(an_experiment_elsewhere_shows_an_upstream_failure),
	    T(windows_of_one_and_two_weeks_are_exact_to_the_millisecond),
	    T(a_run_that_kept_its_name_does_not_sum_its_day),
	    T(figures_follow_a_repository),
	    T(figures_of_a_day_are_not_replaced_by_partial_sums),
	    T(a_move_replaces_no_other_run_of_the_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
