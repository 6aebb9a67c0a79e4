/* A file that version 1 wrote, with data: it is migrated, still reads, and goes on. */
#include <sqlite3.h>

#include "base/file.h"
#include "lease_rig.h"
#include "store/db.h"
#include "store/schema.h"

static const char DUMP[] = "tests/data/store-v1.sql";

static int setup_v1(void **state)
{
	struct buf sql = BUF_INIT(1 << 20);
	struct error e = {0};
	sqlite3 *h;
	char *path, *text;

	rig_setup_folder(state);
	path = path_join(rig_dir, "outpost.db");
	if (file_read(DUMP, &sql, &e))
		fail_msg("%s", e.text);
	text = buf_take(&sql);
	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(sqlite3_exec(h, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(h);
	free(text);
	free(path);
	rig_open();
	return 0;
}

static bool file_has(const char *name)
{
	char *path = path_join(rig_dir, "outpost.db");
	struct db *d;
	bool has;

	assert_int_equal(db_open(path, DB_READER, &d, NULL), 0);
	has = db_has(d, "SELECT 1 FROM sqlite_schema WHERE name = ?1", V_TEXT(name));
	db_close(d);
	free(path);
	return has;
}

static void what_was_there_still_reads(void **state)
{
	struct get_totals t = {0};
	struct get_setting g = {.key = "reconcile.cursor"};
	struct job_detail *j;

	(void)state;
	ASSERT_DISPATCHES(HEAD_A, "ascend-npu done*, farmed queued*, gaudi running*");
	ASSERT_CELLS(HEAD_A, "ascend-npu model/Qwen FAIL, ascend-npu model/llama3 PASS");
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.n_jobs, 2);
	assert_int_equal(t.n_results, 2);
	assert_int_equal(t.n_leases_active, 0);
	ASK_OK(store_get_setting, &g);
	assert_string_equal(g.value, "42");
	free(g.value);
	j = job_of(1);
	assert_int_equal(j->n_tests, 2);
	assert_string_equal(j->tests[1].message, "it differs");
	assert_null(j->tests[1].trace);
	assert_null(j->message);
	assert_null(j->environment);
	assert_null(j->machine);
	assert_int_equal(j->log_bytes, -1);
	assert_false(j->is_log_complete);
	job_detail_free(j);
}

static void it_goes_on_from_there(void **state)
{
	static const struct claim_choice farm = {"farm", 1};
	struct test_result tests[] = {
	    {.suite = (char *)"unit", .name = (char *)"t", .status = TEST_PASS, .duration_ms = 1}};
	struct put_report p = {.job_id = 2, .tests = tests, .n_tests = 1, .now_ms = T0 + HOUR};
	struct claim_dispatch c = {
	    .accelerator = "farmed", .choices = &farm, .n_choices = 1, .is_silent = false};

	(void)state;
	ASSERT_SENT(T0 + HOUR, "github_dispatch Ascend/pytorch[ascend-npu] opened");
	c = claim_with(&c, "m-1", "c1", HOUR);
	assert_true(c.is_found);
	assert_string_equal(c.offer.head_sha, HEAD_A);
	DO_OK(store_put_report, &p);
	assert_int_equal(p.outcome, REPORT_RECORDED);
	ASSERT_DISPATCHES(HEAD_A, "ascend-npu done*, farmed running*, gaudi running*");
	lease_offer_release(&c.offer);
	rig_reopen();
	ASSERT_DISPATCHES(HEAD_A, "ascend-npu done*, farmed running*, gaudi running*");
}

static void a_useless_index_is_gone(void **state)
{
	(void)state;
	assert_false(file_has("verdict_red"));
	assert_true(file_has("dispatch_pull_queue"));
	assert_true(file_has("lease_one_active"));
}

/* The plans that the indices are for: found by SQLite, whatever it has counted. */
static void assert_plan(const char *sql, const char *part)
{
	char *path = path_join(rig_dir, "outpost.db");
	struct buf text = BUF_INIT(4096);
	sqlite3_stmt *s;
	sqlite3 *h;
	char *plan;

	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(h, sql, -1, &s, NULL), SQLITE_OK);
	while (sqlite3_step(s) == SQLITE_ROW)
		buf_appendf(&text, "%s\n", (const char *)sqlite3_column_text(s, 3));
	plan = buf_take(&text);
	if (!strstr(plan, part))
		fail_msg("%s: %s", sql, plan);
	assert_null(strstr(plan, "SCAN"));
	assert_null(strstr(plan, "TEMP B-TREE"));
	free(plan);
	sqlite3_finalize(s);
	sqlite3_close(h);
	free(path);
}

static void every_question_has_its_index(void **state)
{
	(void)state;
	assert_plan("EXPLAIN QUERY PLAN SELECT id FROM dispatch WHERE accelerator = ?1 AND"
		    " runner = ?2 AND kind = 'pull' AND state = 'queued' AND is_current = 1"
		    " ORDER BY created_ms DESC, id DESC LIMIT 1",
	    "dispatch_pull_queue");
	assert_plan("EXPLAIN QUERY PLAN SELECT COUNT(*) FROM lease WHERE accelerator = ?1"
		    " AND runner = ?2 AND state = 'active'",
	    "lease_of_runner");
	assert_plan("EXPLAIN QUERY PLAN SELECT id FROM lease WHERE state = 'active'"
		    " AND until_ms <= ?1 ORDER BY until_ms, id LIMIT 1",
	    "lease_until");
	assert_plan("EXPLAIN QUERY PLAN SELECT MIN(until_ms) FROM lease WHERE state = 'active'",
	    "lease_until");
	assert_plan("EXPLAIN QUERY PLAN UPDATE lease SET until_ms = ?4 WHERE accelerator = ?1"
		    " AND machine = ?2 AND claim_id = ?3 AND state = 'active'",
	    "lease_of_claim");
	assert_plan("EXPLAIN QUERY PLAN UPDATE lease SET until_ms = ?4 WHERE id = ?1"
		    " AND accelerator = ?2 AND machine = ?3 AND state = 'active'",
	    "PRIMARY KEY");
	assert_plan("EXPLAIN QUERY PLAN SELECT 1 FROM lease WHERE dispatch_id = ?1"
		    " AND attempt > ?2 AND state IN ('active', 'done') LIMIT 1",
	    "lease_of_dispatch");
	assert_plan("EXPLAIN QUERY PLAN SELECT l.machine FROM lease l"
		    " WHERE l.dispatch_id = ?1 AND l.job_id = ?2",
	    "lease_of_dispatch");
	assert_plan("EXPLAIN QUERY PLAN SELECT id FROM lease WHERE dispatch_id = ?1"
		    " AND state = 'active'",
	    "lease_one_active");
	assert_plan("EXPLAIN QUERY PLAN SELECT v.accelerator FROM verdict v WHERE"
		    " v.change_id = ?1 AND v.attribution IS NOT NULL LIMIT ?2",
	    "PRIMARY KEY");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_v1, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(what_was_there_still_reads),
	    TEST(it_goes_on_from_there),
	    TEST(a_useless_index_is_gone),
	    TEST(every_question_has_its_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
