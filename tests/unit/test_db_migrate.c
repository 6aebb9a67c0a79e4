/* Files with data from older versions: they are migrated, remain readable, and accept new rows. */
#include <sqlite3.h>

#include "db/db.h"
#include "db/schema.h"
#include "db/settings.h"
#include "lease_rig.h"
#include "verdict/attribution.h"
#include "views/nightly.h"

/* `more`: SQL for the old file; NULL: none. */
static int open_dump_with(void **state, const char *dump, const char *more)
{
	struct buf sql = BUF_INIT(1 << 20);
	struct error e = {0};
	sqlite3 *h;
	char *path, *text;

	rig_setup_folder(state);
	path = path_join(rig_dir, "outpost.db");
	if (file_read(dump, &sql, &e))
		fail_msg("%s", e.text);
	text = buf_detach(&sql);
	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(sqlite3_exec(h, text, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(h, more ? more : "", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(h);
	free(text);
	free(path);
	rig_open();
	return 0;
}

static int open_dump(void **state, const char *dump) { return open_dump_with(state, dump, NULL); }

static int setup_v1(void **state) { return open_dump(state, "tests/data/store-v1.sql"); }

static int setup_v2(void **state) { return open_dump(state, "tests/data/store-v2.sql"); }

static int setup_v3(void **state) { return open_dump(state, "tests/data/store-v3.sql"); }

static int setup_v4(void **state) { return open_dump(state, "tests/data/store-v4.sql"); }

/* Dispatches as versions up to 6 left them: two that a person ended, two that end with an error like it. */
static int setup_v4_with_ended_dispatches(void **state)
{
	return open_dump_with(state, "tests/data/store-v4.sql",
	    "UPDATE dispatch SET state = 'cancelled', held_reason = 'first-time contributor',"
	    " last_error = 'declined by alice' WHERE accelerator = 'gaudi';"
	    "UPDATE dispatch SET state = 'cancelled', last_error = 'cancelled by bob'"
	    " WHERE accelerator = 'farmed';"
	    "UPDATE dispatch SET state = 'failed', last_error = 'cancelled by its vendor'"
	    " WHERE accelerator = 'npu' AND is_current = 1;"
	    "UPDATE dispatch SET state = 'cancelled', held_reason = NULL,"
	    " last_error = 'declined by its vendor' WHERE accelerator = 'npu' AND is_current = 0;");
}

/* An experiment that a person cancelled in version 6, and one that Outpost cancelled. */
static int setup_v6_with_cancelled_experiments(void **state)
{
	char *more =
	    xasprintf("%s%sPRAGMA user_version = 6;"
		      "INSERT INTO experiment (change_id, accelerator, runner, dispatch_id, cause, round, side, sha,"
		      " state, reason, created_ms, ended_ms, expires_ms) VALUES"
		      " (1, 'npu', 'ci', 'd', 'auto', 1, 'head', 'a', 'cancelled', 'cancelled by bob', 1, 2, 3),"
		      " (1, 'npu', 'ci', 'd', 'auto', 1, 'base', 'b', 'cancelled', 'it is not needed', 1, 2, 3);",
		SCHEMA_STEPS[4], SCHEMA_STEPS[5]);
	int rc = open_dump_with(state, "tests/data/store-v4.sql", more);

	free(more);
	return rc;
}

/* Two deliveries as versions up to 7 stored their GUIDs, of version 1 and 4; the first was asked for again. */
static int setup_v7_with_deliveries(void **state)
{
	char *more = xasprintf(
	    "%s%s%sPRAGMA user_version = 7;"
	    "INSERT INTO delivery (guid, event, action, repository, received_ms, state, n_attempts,"
	    " is_synthetic, body_bytes) VALUES (x'72d3162ecc7811e381ab4c9367dc0958', 'push', '', 'a/b', 1,"
	    " 'accepted', 0, 0, 2), (x'72d3162ecc7841e381ab4c9367dc0958', 'push', '', 'a/b', 1, 'accepted', 0, 0, 2);"
	    "INSERT INTO redelivery (guid, n, last_ms) VALUES (x'72d3162ecc7811e381ab4c9367dc0958', 2, 1),"
	    " (x'72d3162ecc7841e381ab4c9367dc0958', 3, 1), ('other', 4, 1);"
	    "INSERT INTO counter (name, n) VALUES ('delivery.accepted', 70) ON CONFLICT (name) DO UPDATE SET n = 70;",
	    SCHEMA_STEPS[4], SCHEMA_STEPS[5], SCHEMA_STEPS[6]);
	int rc = open_dump_with(state, "tests/data/store-v4.sql", more);

	free(more);
	return rc;
}

/* A job of version 7 in which llama3 was skipped and bert was only measured. */
static int setup_v7_with_mild_cells(void **state)
{
	char *more = xasprintf(
	    "%s%s%sPRAGMA user_version = 7;"
	    "INSERT INTO test (id, suite, name, dtype) VALUES (900, 'model', 'gemma', '');"
	    "UPDATE result SET status = 'SKIP' WHERE test_id = (SELECT id FROM test WHERE name = 'llama3');"
	    "UPDATE verdict SET status = 'SKIP' WHERE accelerator = 'npu'"
	    " AND test_id = (SELECT id FROM test WHERE name = 'llama3');"
	    "INSERT INTO result (job_id, ordinal, test_id, status) SELECT j.id, j.n_tests, 900, 'DONE' FROM verdict v"
	    " JOIN job j ON j.id = v.job_id WHERE v.change_id = 1 AND v.accelerator = 'npu' AND v.status = 'SKIP';"
	    "UPDATE job SET n_tests = n_tests + 1 WHERE id IN (SELECT job_id FROM result WHERE test_id = 900);"
	    "INSERT INTO verdict (change_id, accelerator, test_id, status, job_id, is_late) SELECT 1, 'npu', 900,"
	    " 'DONE', job_id, 0 FROM result WHERE test_id = 900;",
	    SCHEMA_STEPS[4], SCHEMA_STEPS[5], SCHEMA_STEPS[6]);
	int rc = open_dump_with(state, "tests/data/store-v4.sql", more);

	free(more);
	return rc;
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

static int64_t number_in_file(const char *sql)
{
	char *path = path_join(rig_dir, "outpost.db");
	struct db *d;
	int64_t n;

	assert_int_equal(db_open(path, DB_READER, &d, NULL), 0);
	n = db_int_values(db_view(d), -1, sql, VALUES());
	assert_int_equal(db_status(d), 0);
	db_close(d);
	free(path);
	return n;
}

/* The rules of version 6 excuse less: they look at each open pull request with a red test. */
static void red_changes_of_older_versions_are_due_for_attribution(void **state)
{
	(void)state;
	assert_int_equal(number_in_file("SELECT group_concat(change_id) = '1' FROM attribution_due"
					" WHERE next_ms = 0"),
	    1);
}

static void a_file_of_version_1_still_reads(void **state)
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

static void a_file_of_version_1_accepts_new_rows(void **state)
{
	static const struct claim_choice farm = {"farm", 1};
	struct test_result tests[] = {
	    {.suite = (char *)"unit", .name = (char *)"t", .status = TEST_PASS, .duration_ms = 1}};
	struct put_report p = {.job_id = 2, .tests = tests, .n_tests = 1, .now_ms = T0 + HOUR};
	struct claim_dispatch c = {.accelerator = "farmed", .choices = &farm, .n_choices = 1, .is_silent = false};

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

static void a_file_of_version_2_still_reads(void **state)
{
	struct get_totals t = {0};
	struct change_view *v;
	struct job_detail *j;

	(void)state;
	ASSERT_DISPATCHES(HEAD_A, "ascend-npu done*, farmed done*, gaudi running*");
	ASSERT_CELLS(HEAD_A, "ascend-npu model/Qwen FAIL, farmed model/bert FAIL,"
			     " farmed model/gpt2 PASS, ascend-npu model/llama3 PASS");
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.n_jobs, 3);
	assert_int_equal(t.n_results, 5);
	j = job_of(3);
	assert_string_equal(j->machine, "m-1");
	assert_string_equal(j->message, "2 of 3 steps");
	assert_string_equal(j->tests[0].message, "HCCL timeout on device 3");
	assert_string_equal(j->tests[0].trace, "at line 1\nat line 2");
	assert_string_equal(j->tests[0].dtype, "bf16");
	assert_null(j->tests[0].file);
	job_detail_free(j);
	v = rig_view_of(0, HEAD_A);
	for (size_t i = 0; i < v->n_verdicts; i++) {
		assert_null(v->verdicts[i].dtype); /* the recorded test */
		assert_null(v->verdicts[i].reason);
	}
	change_view_free(v);
}

/* Red cells of the old version are attributed like new ones. */
static void a_file_of_version_2_accepts_new_rows(void **state)
{
	struct put_merge_base m = {.change_id = 1, .sha = HEAD_C, .now_ms = T0};
	struct attribute_change a = {.change_id = 1, .now_ms = T0 + DAY};
	struct change_view *v;

	(void)state;
	DO_OK(store_put_merge_base, &m);
	DO_OK(store_attribute_change, &a);
	assert_true(a.has_moved);
	v = rig_view_of(0, HEAD_A);
	for (size_t i = 0; i < v->n_verdicts; i++)
		if (test_status_is_red(v->verdicts[i].status))
			assert_string_equal(v->verdicts[i].reason, "not tested on the merge base");
	change_view_free(v);
	rig_reopen();
	ASSERT_DISPATCHES(HEAD_A, "ascend-npu done*, farmed done*, gaudi running*");
}

/* 2026-12-03, the third of the days on which that file was written. */
static const int64_t THIRD_DAY = 20790;

static void assert_old_nightlies(void)
{
	static const enum history_state states[] = {HISTORY_REGRESSION, HISTORY_FIXED, HISTORY_PASSING};
	static const char *const names[] = {"llama3", "bert", "calm"};
	struct get_nightly g = {.last_day = THIRD_DAY, .n_days = 4, .limit = 10, .state = HISTORY_NONE};
	const struct nightly_commits *commits;

	ASK_OK(store_get_nightly, &g);
	assert_int_equal(g.view->n_accelerators, 1);
	assert_int_equal(g.view->accelerators[0].runs[0].id, 0);
	assert_string_equal(g.view->accelerators[0].runs[1].outcome, "green");
	assert_string_equal(g.view->accelerators[0].runs[2].outcome, "red");
	assert_string_equal(g.view->accelerators[0].runs[3].cause, "self_report");
	assert_int_equal(g.view->n_tests, 3);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(g.view->tests[i].name, names[i]);
		assert_int_equal(g.view->tests[i].cells[0].state, states[i]);
		assert_int_equal(g.view->tests[i].cells[0].days[0], 0);
		assert_int_equal(g.view->outcomes[g.view->tests[i].cells[0].days[1] - 1].status, TEST_PASS);
	}
	assert_int_equal(g.view->tests[0].cells[0].first_bad.job, 6);
	assert_int_equal(g.view->tests[0].cells[0].last_good.job, 4);
	commits = &g.view->commits[g.view->tests[0].cells[0].commits];
	assert_int_equal(commits->n, 1);
	assert_string_equal(commits->list[0].title, "Commit 3");
	nightly_view_free(g.view);
}

/* Version 3 kept jobs and cells of self-reports, but no days. */
static void nightlies_of_version_3_become_days(void **state)
{
	struct job_detail *j;

	(void)state;
	assert_old_nightlies();
	rig_reopen();
	assert_old_nightlies();
	j = job_of(5);
	assert_string_equal(j->tests[0].message, "expected 1, got 2");
	job_detail_free(j);
}

/* Two pull requests with one head, and a machine that runs a third. */
static void a_file_of_version_4_still_reads(void **state)
{
	static const struct claim_choice farm = {"farm", 2};
	struct claim_dispatch c = {.accelerator = "farmed", .choices = &farm, .n_choices = 1, .is_silent = false};
	struct get_totals t = {0};
	struct get_nightly g = {.last_day = 20780, .n_days = 1, .limit = 10, .state = HISTORY_NONE};
	struct change_view *v;

	(void)state;
	for (int i = 0; i < 2; i++) {
		ASSERT_DISPATCHES(HEAD_A, "farmed done*, gaudi held*, npu done*, npu done");
		ASSERT_CELLS(HEAD_A, "npu model/Qwen FAIL, farmed model/bert FAIL,"
				     " farmed model/llama3 PASS, npu model/llama3 PASS");
		v = rig_view_of(41, NULL);
		assert_string_equal(v->head_sha, HEAD_A);
		change_view_free(v);
		ASK_OK(store_get_totals, &t);
		assert_int_equal(t.n_jobs, 9);
		assert_int_equal(t.n_leases_active, 1);
		rig_reopen();
	}
	ASK_OK(store_get_nightly, &g);
	assert_int_equal(g.view->n_tests, 1);
	assert_string_equal(g.view->tests[0].name, "llama3");
	nightly_view_free(g.view);
	c = claim_with(&c, "m-2", "2863cfe9-4e1e-4b61-b957-8e6ca10f5010", 0);
	assert_true(c.is_found); /* the same claim gets the same lease again */
	assert_string_equal(c.offer.lease_id, "dwuunehsq4g7no7hb6cn427dda");
	lease_offer_release(&c.offer);
}

static void the_person_who_ended_a_dispatch_becomes_columns(void **state)
{
	static const char *const errors[] = {
	    "cancelled by bob", "declined by alice", "cancelled by its vendor", "declined by its vendor"};
	struct change_view *v = rig_view_of(0, HEAD_A);
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < v->n_accelerators; i++)
		for (size_t j = 0; j < v->accelerators[i].n_dispatches; j++, n++) {
			const struct dispatch_view *x = &v->accelerators[i].dispatches[j];

			assert_string_equal(x->last_error, errors[n]);
			assert_int_equal(x->is_ended_by_person, n < 2);
		}
	assert_int_equal(n, ARRAY_LEN(errors));
	change_view_free(v);
	assert_int_equal(number_in_file("SELECT COUNT(DISTINCT accelerator) FROM dispatch WHERE ended_how = 'declined'"
					" AND ended_by = 'alice' AND last_error IS NULL"),
	    1);
	assert_int_equal(number_in_file("SELECT COUNT(DISTINCT accelerator) FROM dispatch WHERE ended_how = 'cancelled'"
					" AND ended_by = 'bob' AND last_error IS NULL"),
	    1);
}

static void the_person_who_cancelled_an_experiment_becomes_a_column(void **state)
{
	(void)state;
	assert_int_equal(
	    number_in_file("SELECT group_concat(side || ':' || COALESCE(cancelled_by, '-') || ':' ||"
			   " COALESCE(reason, '-')) = 'head:bob:-,base:-:it is not needed' FROM experiment"),
	    1);
}

static void the_indices_equal_those_of_a_new_file(void **state)
{
	(void)state;
	assert_false(file_has("verdict_attributed"));
	assert_true(file_has("verdict_flaky"));
	assert_false(file_has("failure_at"));
	assert_false(file_has("verdict_red"));
	assert_false(file_has("test_3"));
	assert_true(file_has("dispatch_pull_queue"));
	assert_true(file_has("lease_one_active"));
}

/* The query plans for which the indices exist: SQLite finds them with any statistics. */
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
	plan = buf_detach(&text);
	if (!strstr(plan, part))
		fail_msg("%s: %s", sql, plan);
	assert_null(strstr(plan, "SCAN"));
	assert_null(strstr(plan, "TEMP B-TREE"));
	free(plan);
	sqlite3_finalize(s);
	sqlite3_close(h);
	free(path);
}

static void every_query_uses_its_index(void **state)
{
	(void)state;
	assert_plan("EXPLAIN QUERY PLAN SELECT id FROM dispatch WHERE accelerator = ?1 AND"
		    " runner = ?2 AND kind = 'pull' AND state = 'queued' AND is_current = 1"
		    " ORDER BY created_ms DESC, id DESC LIMIT 1",
	    "dispatch_pull_queue");
	/* the conditions of the indexes of the outbox */
	assert_plan("EXPLAIN QUERY PLAN SELECT 1 FROM outbox WHERE lane = ?1 AND " OUTBOX_IS_UNSENT("") " LIMIT 1",
	    "outbox_lane");
	assert_plan(
	    "EXPLAIN QUERY PLAN SELECT 1 FROM outbox b WHERE b.lane = ?1 AND b.id < ?2 AND " OUTBOX_IS_UNSENT("b."),
	    "outbox_lane");
	assert_plan("EXPLAIN QUERY PLAN SELECT 1 FROM outbox WHERE delivery_guid = ?1 AND " OUTBOX_IS_UNSENT(""),
	    "outbox_unsent");
	assert_plan("EXPLAIN QUERY PLAN SELECT COUNT(*) FROM outbox WHERE state = 'dead' AND " OUTBOX_IS_COUNTED,
	    "outbox_state");
	assert_plan("EXPLAIN QUERY PLAN SELECT COUNT(*) FROM lease WHERE accelerator = ?1"
		    " AND runner = ?2 AND state = 'active'",
	    "lease_of_runner");
	assert_plan("EXPLAIN QUERY PLAN SELECT id FROM lease WHERE state = 'active'"
		    " AND until_ms <= ?1 ORDER BY until_ms, id LIMIT 1",
	    "lease_until");
	assert_plan("EXPLAIN QUERY PLAN SELECT MIN(until_ms) FROM lease WHERE state = 'active'", "lease_until");
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
	    "PRIMARY KEY (change_id=?)");
	assert_plan("EXPLAIN QUERY PLAN SELECT v.job_id FROM verdict v WHERE v.change_id = ?1 AND v.accelerator = ?2"
		    " AND v.attribution = 'NEW'",
	    "PRIMARY KEY (change_id=? AND accelerator=?)");
	assert_plan("EXPLAIN QUERY PLAN SELECT v.change_id FROM verdict v WHERE v.accelerator = ?1"
		    " AND v.test_id = ?2 AND v.attribution = 'FLAKY'",
	    "verdict_flaky");
	assert_plan("EXPLAIN QUERY PLAN SELECT m.max_parallel FROM lease m WHERE m.accelerator = ?1"
		    " AND m.machine = ?2 AND m.runner = ?3 ORDER BY m.granted_ms DESC LIMIT 1",
	    "lease_of_machine");
	assert_plan(
	    "EXPLAIN QUERY PLAN SELECT MIN(x.sent_ms) FROM dispatch x WHERE"
	    " x.accelerator = ?1 AND x.runner = ?2 AND x.is_current = 1 AND"
	    " " DISPATCH_IS_AT_WORK("x.") " AND x.state <> 'running' AND x.event_type <> 'experiment' AND NOT EXISTS"
					  " (SELECT 1 FROM dispatch y WHERE y.accelerator = x.accelerator"
					  "  AND y.runner = x.runner AND y.created_ms > x.created_ms"
					  "  AND y.state IN ('running', 'done') AND y.event_type <> 'experiment')",
	    "dispatch_of_runner");
	/* however many tests the job has */
	assert_plan("EXPLAIN QUERY PLAN SELECT status, message FROM result INDEXED BY"
		    " result_of_test WHERE job_id = ?1 AND test_id = ?2",
	    "result_of_test (job_id=? AND test_id=?)");
	/* however many experiments have ended */
	assert_plan("EXPLAIN QUERY PLAN SELECT SUM(e.ended_ms) FROM experiment e"
		    " WHERE e.accelerator = ?1 AND e.started_ms > ?2 AND e.cause = ?4",
	    "experiment_started");
	assert_plan("EXPLAIN QUERY PLAN SELECT SUM(state = 'done') FROM experiment"
		    " WHERE accelerator = ?1 AND ended_ms > ?2 AND started_ms IS NOT NULL",
	    "experiment_ended");
	assert_plan("EXPLAIN QUERY PLAN SELECT SUM(completed_ms - started_ms) FROM job"
		    " WHERE accelerator = ?1 AND completed_ms > 0 AND completed_ms > ?2",
	    "COVERING INDEX job_completed");
}

static void attribution_queries_use_an_index(void **state)
{
	(void)state;
	assert_plan("EXPLAIN QUERY PLAN SELECT b.position, b.sha, x.id FROM branch_commit b"
		    " CROSS JOIN change x ON x.repository_key = b.repository_key"
		    " AND x.head_sha = b.sha AND x.kind = 'push' WHERE b.repository_key = ?1"
		    " AND b.ref = ?2 AND b.position > ?3 AND b.position <= ?4 AND EXISTS"
		    " (SELECT 1 FROM verdict v WHERE v.change_id = x.id AND v.accelerator = ?5)"
		    " ORDER BY b.position DESC LIMIT ?6",
	    "change_identity");
	assert_plan("EXPLAIN QUERY PLAN SELECT change_id, job_id, at_ms FROM failure"
		    " WHERE accelerator = ?1 AND test_id = ?2 AND key = ?3 AND at_ms >= ?4"
		    " AND status = ?5 ORDER BY at_ms DESC LIMIT ?6",
	    "PRIMARY KEY (accelerator=? AND test_id=? AND key=? AND at_ms>?)");
	assert_plan("EXPLAIN QUERY PLAN SELECT x.author FROM failure f JOIN change x"
		    " ON x.id = f.change_id WHERE f.accelerator = ?1 AND f.test_id = ?2"
		    " AND f.key = ?3 ORDER BY f.at_ms LIMIT 1",
	    "PRIMARY KEY (accelerator=? AND test_id=? AND key=?)");
	assert_plan("EXPLAIN QUERY PLAN SELECT v.status FROM branch_commit b CROSS JOIN change x"
		    " ON x.repository_key = b.repository_key AND x.head_sha = b.sha"
		    " AND x.kind = 'push' CROSS JOIN verdict v ON v.change_id = x.id"
		    " AND v.accelerator = ?5 AND v.test_id = ?6 WHERE b.repository_key = ?1"
		    " AND b.ref = ?2 AND b.position >= ?3 AND b.position <= ?4"
		    " ORDER BY b.position DESC LIMIT 1",
	    "PRIMARY KEY (change_id=? AND accelerator=? AND test_id=?)");
	assert_plan("EXPLAIN QUERY PLAN SELECT c.id FROM branch_commit b CROSS JOIN change c"
		    " ON c.repository_key = b.repository_key AND c.merge_base_sha = b.sha"
		    " WHERE b.repository_key = ?1 AND b.ref = ?2 AND b.position >= ?3 - ?5"
		    " AND b.position <= ?3 + ?5 ORDER BY b.position LIMIT ?6",
	    "change_merge_base");
	assert_plan("EXPLAIN QUERY PLAN SELECT c.id FROM attribution_due u CROSS JOIN change c"
		    " ON c.id = u.change_id WHERE u.next_ms <= ?1 ORDER BY u.next_ms LIMIT ?2",
	    "attribution_due_next");
	assert_plan("EXPLAIN QUERY PLAN SELECT id, workflow, name FROM job WHERE change_id = ?1"
		    " AND accelerator = ?2 AND is_current = 0 AND status = 'completed'"
		    " AND digest IS NOT NULL AND completed_ms >= ?3",
	    "job_identity");
	/* of the failures that are dropped */
	assert_plan("EXPLAIN QUERY PLAN SELECT (SELECT MIN(f.change_id) FROM failure f WHERE f.change_id > c.id)"
		    " FROM change c WHERE c.id = ?1 AND c.created_ms < ?2",
	    "COVERING INDEX failure_of_change (change_id>?)");
	assert_plan(
	    "EXPLAIN QUERY PLAN SELECT f.job_id FROM failure f WHERE f.change_id = ?1 AND f.at_ms < ?2 LIMIT ?3",
	    "failure_of_change (change_id=?)");
}

/* Otherwise SQLite 3.40's check of the file, which runs at every start, reports a row as damaged. */
static void primary_keys_come_first_and_in_order(void **state)
{
	char *path = path_join(rig_dir, "outpost.db"), *wrong;
	struct db *d;

	(void)state;
	assert_int_equal(db_open(path, DB_READER, &d, NULL), 0);
	assert_true(db_int(d, 0, "SELECT COUNT(*) FROM sqlite_schema WHERE sql LIKE '%WITHOUT ROWID%'") > 10);
	wrong = db_text(d, "SELECT m.name || '.' || c.name FROM sqlite_schema m,"
			   " pragma_table_info(m.name) c WHERE m.sql LIKE '%WITHOUT ROWID%'"
			   " AND c.pk > 0 AND c.pk <> c.cid + 1 LIMIT 1");
	if (wrong)
		fail_msg("%s", wrong);
	db_close(d);
	free(path);
}

#define TEST(f)    cmocka_unit_test_setup_teardown(f, setup_v1, rig_teardown)
#define TEST_V4(f) cmocka_unit_test_setup_teardown(f, setup_v4, rig_teardown)
#define TEST_V3(f) cmocka_unit_test_setup_teardown(f, setup_v3, rig_teardown)
#define TEST_V2(f) cmocka_unit_test_setup_teardown(f, setup_v2, rig_teardown)

static void guids_of_version_7_are_recognised(void **state)
{
	static const char *const guids[] = {
	    "72d3162e-cc78-11e3-81ab-4c9367dc0958", "72d3162e-cc78-41e3-81ab-4c9367dc0958", "other"};
	struct list_deliveries list = {.limit = 2};
	struct get_totals t = {.now_ms = T0};

	(void)state;
	ASK_OK(store_list_deliveries, &list);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(list.list[1 - i].guid, guids[i]);
		assert_false(rig_put(guids[i], "{}"));
	}
	list_deliveries_release(&list);
	for (int i = 0; i < 3; i++) {
		struct count_redelivery c = {.guid = guids[i], .now_ms = T0};

		DO_OK(store_count_redelivery, &c);
		assert_int_equal(c.n_before, 2 + i);
	}
	ASK_OK(store_get_totals, &t);
	assert_int_equal(
	    t.n_deliveries_accepted, number_in_file("SELECT count(*) FROM delivery WHERE state = 'accepted'"));
	get_totals_release(&t);
	assert_int_equal(number_in_file("SELECT count(*) FROM counter WHERE name = 'delivery.accepted'"), 0);
}

static void report_packed(const char *job, int64_t attempt, enum test_status llama3, enum test_status gemma)
{
	char *id = rig_dispatch_id(HEAD_A, "npu");
	struct test_result tests[] = {{.suite = (char *)"model", .name = (char *)"llama3", .status = llama3},
	    {.suite = (char *)"model", .name = (char *)"gemma", .status = gemma}};
	struct job_report j = {.status = JOB_COMPLETED,
	    .conclusion = (char *)"success",
	    .workflow = (char *)"CI",
	    .name = (char *)job,
	    .run_id = (char *)"new",
	    .run_attempt = attempt,
	    .tests = tests,
	    .n_tests = 2,
	    .digest = {(uint8_t)attempt}};
	struct report_job op = {.dispatch_id = id, .accelerator = "npu", .report = &j, .now_ms = T0 + DAY};

	DO_OK(store_report_job, &op);
	assert_int_equal(op.outcome, REPORT_RECORDED);
	free(id);
}

#define MILD_CELLS(llama3, gemma)                                                                                      \
	ASSERT_CELLS(HEAD_A, "npu model/Qwen FAIL, farmed model/bert FAIL, npu model/gemma " gemma                     \
			     ", farmed model/llama3 PASS, npu model/llama3 " llama3)

/* A cell is the worst result of its jobs, where PASS is worse than DONE and both are worse than SKIP. */
static void a_packed_result_wins_over_a_milder_cell_of_version_7(void **state)
{
	(void)state;
	MILD_CELLS("SKIP", "DONE");
	report_packed("a", 1, TEST_SKIP, TEST_SKIP);
	MILD_CELLS("SKIP", "DONE");
	report_packed("b", 1, TEST_DONE, TEST_DONE); /* added to the cells */
	MILD_CELLS("DONE", "DONE");
	report_packed("c", 1, TEST_PASS, TEST_PASS);
	MILD_CELLS("PASS", "PASS");
	report_packed("c", 2, TEST_DONE, TEST_SKIP); /* another attempt: all cells are derived again */
	MILD_CELLS("DONE", "DONE");
	report_packed("c", 3, TEST_PASS, TEST_PASS);
	MILD_CELLS("PASS", "PASS");
	rig_reopen();
	MILD_CELLS("PASS", "PASS");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_file_of_version_1_still_reads),
	    TEST(a_file_of_version_1_accepts_new_rows),
	    TEST(the_indices_equal_those_of_a_new_file),
	    TEST(every_query_uses_its_index),
	    TEST(attribution_queries_use_an_index),
	    TEST(primary_keys_come_first_and_in_order),
	    TEST_V2(a_file_of_version_2_still_reads),
	    TEST_V2(a_file_of_version_2_accepts_new_rows),
	    TEST_V2(red_changes_of_older_versions_are_due_for_attribution),
	    TEST_V2(the_indices_equal_those_of_a_new_file),
	    TEST_V3(nightlies_of_version_3_become_days),
	    TEST_V3(the_indices_equal_those_of_a_new_file),
	    TEST_V4(a_file_of_version_4_still_reads),
	    TEST_V4(the_indices_equal_those_of_a_new_file),
	    cmocka_unit_test_setup_teardown(
		the_person_who_ended_a_dispatch_becomes_columns, setup_v4_with_ended_dispatches, rig_teardown),
	    cmocka_unit_test_setup_teardown(the_person_who_cancelled_an_experiment_becomes_a_column,
		setup_v6_with_cancelled_experiments, rig_teardown),
	    cmocka_unit_test_setup_teardown(guids_of_version_7_are_recognised, setup_v7_with_deliveries, rig_teardown),
	    cmocka_unit_test_setup_teardown(
		a_packed_result_wins_over_a_milder_cell_of_version_7, setup_v7_with_mild_cells, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
