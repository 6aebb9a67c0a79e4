/* Compares aggregates with their runs after random histories; checks what retention deletes and what stays. */
#include "days_rig.h"
#include "history/days.h"
#include "history/run_note.h"

/* ---- the oracle: one naive statement for each aggregate ---- */

#define BROKEN "v.attribution NOT IN ('FLAKY', 'KNOWN')"

/* The column is the number of its run's cells of which this is true. */
static void assert_counts(const char *table, const char *column, const char *what)
{
	char *sql = xasprintf("SELECT 1 FROM %s x WHERE %s <> (SELECT COUNT(*) FROM cell v JOIN test t"
			      " ON t.id = v.test_id WHERE v.change_id = x.change_id AND v.accelerator ="
			      " x.accelerator AND %s)",
	    table, column, what);

	assert_no_row(sql);
	free(sql);
}

static void assert_runs_are_right(void)
{
	assert_true(number_of("SELECT COUNT(*) FROM run WHERE is_push = 1") > N_PUSHES);
	assert_true(number_of("SELECT SUM(n_fail) * SUM(n_pass) FROM run") > 0);
	assert_counts("run", "n_fail", "v.status = 'FAIL'");
	assert_counts("run", "n_error", "v.status = 'ERROR'");
	assert_counts("run", "n_miss", "v.status = 'MISS'");
	assert_counts("run", "n_pass", "v.status = 'PASS'");
	assert_counts("run", "n_done", "v.status = 'DONE'");
	assert_counts("run", "n_skip", "v.status = 'SKIP'");
	assert_counts("run", "n_flaky", "v.attribution = 'FLAKY'");
	assert_counts("run_suite", "n_fail", "t.suite = x.suite AND v.status = 'FAIL'");
	assert_counts("run_suite", "n_pass", "t.suite = x.suite AND v.status = 'PASS'");
	assert_counts("run_suite", "n_skip", "t.suite = x.suite AND v.status = 'SKIP'");
	assert_counts("run_suite", "n_broken", "t.suite = x.suite AND " BROKEN);
	assert_no_row("SELECT 1 FROM run x WHERE (SELECT COUNT(*) FROM run_suite s WHERE s.change_id ="
		      " x.change_id AND s.accelerator = x.accelerator) <> (SELECT COUNT(DISTINCT t.suite)"
		      " FROM cell v JOIN test t ON t.id = v.test_id WHERE v.change_id = x.change_id"
		      " AND v.accelerator = x.accelerator)");
	/* The summary is as bad as the suite, and broken if anything in it is. */
	assert_no_row("SELECT 1 FROM run_suite x WHERE job_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM"
		      " cell v JOIN test t ON t.id = v.test_id WHERE v.change_id = x.change_id AND"
		      " v.accelerator = x.accelerator AND t.suite = x.suite AND v.job_id = x.job_id AND"
		      " v.status = x.status AND (x.n_broken = 0 OR " BROKEN "))");
}

#define OF_DAY "FROM run r WHERE r.accelerator = d.accelerator AND r.ended_ms / 86400000 = d.day"
/* True if the stored value is not the smallest one that this percentage of the runs does not exceed, or not NULL
 * although there are no values. */
#define NOT_RANK(of_day, column, percent)                                                                              \
	"(SELECT COUNT(r." column ") > 0 AND (" of_day " IS NULL OR 100 * SUM(r." column " <= " of_day                 \
	") < COUNT(r." column ") * " percent " OR 100 * SUM(r." column " < " of_day ") >= COUNT(r." column             \
	") * " percent ") OR (COUNT(r." column ") = 0 AND " of_day " IS NOT NULL) " OF_DAY ")"

static void assert_days_are_right(void)
{
	assert_int_equal(number_of("SELECT COUNT(*) FROM day"),
	    number_of("SELECT COUNT(DISTINCT accelerator || (ended_ms / 86400000)) FROM run"));
	assert_true(number_of("SELECT COUNT(*) FROM day") > 6);
	assert_no_row("SELECT 1 FROM day d WHERE n_runs <> (SELECT COUNT(*) " OF_DAY
		      " AND is_push = 1 AND outcome <> 'nothing') OR n_green <> (SELECT COUNT(*) " OF_DAY
		      " AND is_push = 1 AND outcome = 'green') OR n_fail <> (SELECT SUM(n_fail) " OF_DAY
		      ") OR n_error <> (SELECT SUM(n_error) " OF_DAY ") OR n_miss <> (SELECT SUM(n_miss) " OF_DAY
		      ") OR n_pass <> (SELECT SUM(n_pass) " OF_DAY ") OR n_done <> (SELECT SUM(n_done) " OF_DAY
		      ") OR n_skip <> (SELECT SUM(n_skip) " OF_DAY ") OR n_flaky <> (SELECT SUM(n_flaky) " OF_DAY ")");
	assert_no_row("SELECT 1 FROM day d WHERE " NOT_RANK("d.queue_p50_ms", "queue_ms", "50"));
	assert_no_row("SELECT 1 FROM day d WHERE " NOT_RANK("d.queue_p90_ms", "queue_ms", "90"));
	assert_no_row("SELECT 1 FROM day d WHERE " NOT_RANK("d.run_p50_ms", "run_ms", "50"));
	assert_no_row("SELECT 1 FROM day d WHERE " NOT_RANK("d.run_p90_ms", "run_ms", "90"));
	assert_true(number_of("SELECT COUNT(run_p90_ms) FROM day") > 3);
}

/* The newest result of a day is that of the job that reported last; within that job, the last row. If one job
 * reported at two times, the later report counts. */
static void assert_numbers_are_right(void)
{
	assert_true(number_of("SELECT COUNT(*) FROM number_day") > 20);
	assert_no_row("SELECT 1 FROM number_day n WHERE NOT EXISTS (SELECT 1 FROM result r JOIN job j"
		      " ON j.id = r.job_id JOIN change c ON c.id = j.change_id WHERE r.job_id = n.job_id"
		      " AND r.test_id = n.test_id AND COALESCE(r.unit, '') = n.unit AND r.number = n.value"
		      " AND c.head_sha = n.head_sha AND c.id = n.change_id AND j.accelerator ="
		      " n.accelerator)");
	/* Every number of the newest job of its day is stored, except those that a later job of the day replaced. */
	assert_no_row("SELECT 1 FROM result r JOIN job j ON j.id = r.job_id WHERE r.number IS NOT NULL"
		      " AND j.is_current = 1 AND NOT EXISTS (SELECT 1 FROM number_day n WHERE"
		      " n.accelerator = j.accelerator AND n.test_id = r.test_id AND n.unit ="
		      " COALESCE(r.unit, '') AND n.at_ms >= j.reported_ms)");
	assert_no_row("SELECT 1 FROM number_day WHERE day <> at_ms / 86400000");
}

static void assert_jobs_are_right(void)
{
	assert_no_row("SELECT 1 FROM job j WHERE status = 'completed' AND (n_tests_fail <> (SELECT COUNT(*)"
		      " FROM job_test WHERE job_id = j.id AND status = 'FAIL') OR n_tests_pass IS DISTINCT FROM (SELECT"
		      " COUNT(*) FROM job_test WHERE job_id = j.id AND status = 'PASS') OR n_tests_fail +"
		      " n_tests_error + n_tests_miss <> n_red)");
	assert_true(number_of("SELECT SUM(n_tests_skip) FROM job") > 0);
}

static void aggregates_agree_with_their_runs(void **state)
{
	(void)state;
	for (uint32_t from = 1; from <= 3; from++) {
		mirror(LEVEL_1);
		random_history(from * 7919);
		open_handle();
		assert_runs_are_right();
		assert_days_are_right();
		assert_numbers_are_right();
		assert_jobs_are_right();
		assert_no_row("SELECT 1 FROM run WHERE accelerator = 'quiet'");
		db_close(reader);
		rig_teardown(NULL);
		rig_setup(NULL);
	}
}

/* ---- deleted and remaining rows ---- */

static void days_outlive_their_runs(void **state)
{
	struct apply_retention r = {.deliveries_before_ms = T0 + 300 * DAY,
	    .results_before_ms = T0 + 300 * DAY,
	    .failures_before_ms = T0 + 300 * DAY};
	int64_t n_days, sum, n_numbers;

	(void)state;
	mirror(LEVEL_1);
	random_history(5);
	open_handle();
	n_days = number_of("SELECT COUNT(*) FROM day");
	sum = number_of("SELECT SUM(n_runs + n_pass) FROM day");
	n_numbers = number_of("SELECT COUNT(*) FROM number_day");
	free(rig_send(T0 + 299 * DAY));
	do
		DO_OK(store_apply_retention, &r);
	while (r.has_more);
	assert_true(number_of("SELECT COUNT(*) FROM run") < 10); /* a change with something to send stays */
	assert_no_row("SELECT 1 FROM run_suite s WHERE NOT EXISTS (SELECT 1 FROM run r WHERE r.change_id ="
		      " s.change_id)");
	assert_int_equal(number_of("SELECT COUNT(*) FROM day"), n_days);
	assert_int_equal(number_of("SELECT SUM(n_runs + n_pass) FROM day"), sum);
	assert_int_equal(number_of("SELECT COUNT(*) FROM number_day"), n_numbers);
	assert_no_row("SELECT 1 FROM number_day n WHERE job_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM job"
		      " WHERE id = n.job_id)");
	db_close(reader);
}

static void a_day_that_lost_a_run_is_final(void **state)
{
	struct db *d = writer();
	struct txn *txn = db_txn(d);

	(void)state;
	db_exec(txn, "INSERT INTO run (accelerator, ended_ms, change_id, is_push, outcome, "
		     "n_dispatches, n_met)"
		     " VALUES ('npu', 1000, 1, 1, 'green', 1, 1), ('npu', 2000, 2, 1, 'red', 1, 1)");
	day_note(txn, "npu", 1000);
	days_close(txn, 1);
	db_exec(txn, "DELETE FROM run WHERE change_id = 1");
	day_note(txn, "npu", 2000);
	assert_int_equal(db_int(d, 0, "SELECT n_runs FROM day WHERE accelerator = 'npu' AND day = 0"), 2);
	/* otherwise it is deleted, and with its last run the row itself */
	db_exec(txn, "UPDATE day SET is_closed = 0");
	day_note(txn, "npu", 2000);
	assert_int_equal(db_int(d, 0, "SELECT n_runs FROM day"), 1);
	db_exec(txn, "DELETE FROM run");
	day_note(txn, "npu", 2000);
	assert_false(db_has(d, "SELECT 1 FROM day"));
	assert_int_equal(day_of(-1), -1);
	assert_int_equal(day_of(DAY_MS), 1);
	db_close(d);
}

static void old_days_are_deleted_in_pieces(void **state)
{
	struct db *d = writer();
	struct txn *txn = db_txn(d);

	(void)state;
	for (int64_t day = 0; day < 5; day++) {
		db_exec(txn,
		    "INSERT INTO run (accelerator, ended_ms, change_id, is_push, outcome, "
		    "n_dispatches, n_met)"
		    " VALUES ('npu', ?1, ?1, 1, 'green', 1, 1)",
		    V_INT(day * DAY_MS));
		day_note(txn, "npu", day * DAY_MS);
		db_exec(txn,
		    "INSERT INTO number_day (accelerator, test_id, unit, day, at_ms, value, "
		    "change_id, head_sha)"
		    " VALUES ('npu', 1, '', ?1, 1, 1, 1, '')",
		    V_INT(day));
	}
	assert_true(days_drop(txn, 3 * DAY_MS + 5, 2));
	assert_int_equal(db_int(d, 0, "SELECT COUNT(*) FROM day"), 3);
	assert_true(days_drop(txn, 3 * DAY_MS + 5, 2));
	assert_false(days_drop(txn, 3 * DAY_MS + 5, 2));
	assert_int_equal(db_int(d, 0, "SELECT MIN(day) * 10 + COUNT(*) FROM day"), 32);
	assert_int_equal(db_int(d, 0, "SELECT MIN(day) * 10 + COUNT(*) FROM number_day"), 32);
	db_close(d);
}

static void thousands_of_suites_are_folded(void **state)
{
	struct db *d = writer();
	struct txn *txn = db_txn(d);
	struct cell_counts c;
	char name[32];

	(void)state;
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "file_%03d.py", i);
		db_exec(txn, "INSERT INTO test (id, suite, name, dtype) VALUES (?1, ?2, 't', '')", V_INT(i + 1),
		    V_TEXT(i == 250   ? "unit"
			   : i == 251 ? RUN_SUITES_OTHERS
				      : name));
		db_exec(txn,
		    "INSERT INTO verdict (change_id, accelerator, test_id, status, attribution, "
		    "job_id, is_late)"
		    " VALUES (1, 'npu', ?1, ?2, ?3, ?1, 0)",
		    V_INT(i + 1),
		    V_TEXT(i == 499   ? "FAIL"
			   : i == 498 ? "ERROR"
				      : "PASS"),
		    i == 499   ? V_TEXT("NEW")
		    : i == 498 ? V_TEXT("FLAKY")
			       : V_NULL);
	}
	c = run_suites_put(txn, 1, "npu");
	assert_int_equal(c.by_status[TEST_PASS], 498);
	assert_int_equal(c.n_broken, 1);
	assert_int_equal(c.n_flaky, 1);
	assert_int_equal(db_int(d, 0, "SELECT COUNT(*) FROM run_suite"), RUN_SUITES_MAX);
	assert_int_equal(db_int(d, 0, "SELECT SUM(n_pass) FROM run_suite"), 498);
	assert_true(db_has(d, "SELECT 1 FROM run_suite WHERE suite = 'unit'"));
	assert_true(db_has(d, "SELECT 1 FROM run_suite WHERE suite = 'file_499.py' AND n_broken = 1"));
	assert_true(db_has(d, "SELECT 1 FROM run_suite WHERE suite = 'file_498.py' AND n_broken = 0"
			      " AND status = 'ERROR'"));
	assert_true(db_has(d, "SELECT 1 FROM run_suite WHERE suite = 'other suites'"));
	assert_int_equal(db_status(d), 0);
	db_close(d);
}

/* ---- records of older versions ---- */

static void days_are_filled_from_existing_runs(void **state)
{
	struct error e = {0};
	struct db *d;
	struct txn *txn;

	(void)state;
	mirror(LEVEL_1);
	random_history(31);
	d = writer();
	txn = db_txn(d);
	db_exec(txn, "UPDATE run SET n_fail = 0, n_error = 0, n_miss = 0, n_pass = 0, n_done = 0, "
		     "n_skip = 0,"
		     " n_flaky = 0");
	db_exec(txn, "UPDATE job SET n_tests_fail = NULL, n_tests_error = NULL, n_tests_miss = NULL,"
		     " n_tests_pass = NULL, n_tests_done = NULL, n_tests_skip = NULL");
	db_exec(txn, "DELETE FROM run_suite");
	db_exec(txn, "DELETE FROM day");
	db_exec(txn, "DELETE FROM number_day");
	db_exec(txn, "DELETE FROM setting WHERE key = 'days.filled'");
	assert_int_equal(db_commit(d), 0);
	assert_int_equal(days_fill(d, &e), 0);
	db_exec(txn, "DELETE FROM run_suite");
	assert_int_equal(days_fill(d, &e), 0); /* only once */
	assert_false(db_has(d, "SELECT 1 FROM run_suite"));
	db_exec(txn, "DELETE FROM setting WHERE key = 'days.filled'");
	assert_int_equal(days_fill(d, &e), 0);
	db_close(d);
	rig_open();
	open_handle();
	assert_runs_are_right();
	assert_days_are_right();
	assert_numbers_are_right();
	assert_jobs_are_right();
	db_close(reader);
}

static void percentiles_ignore_missing_values(void **state)
{
	struct times t = times_new(3);

	(void)state;
	assert_int_equal(percentile(&t, 50), -1);
	t.ms = xcalloc(1, sizeof(*t.ms));
	t.ms[0] = 7;
	t.n = 1;
	assert_int_equal(percentile(&t, 1), 7);
	assert_int_equal(percentile(&t, 100), 7);
	times_release(&t);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(aggregates_agree_with_their_runs),
	    TEST(days_outlive_their_runs),
	    TEST(a_day_that_lost_a_run_is_final),
	    TEST(old_days_are_deleted_in_pieces),
	    TEST(thousands_of_suites_are_folded),
	    TEST(days_are_filled_from_existing_runs),
	    TEST(percentiles_ignore_missing_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
