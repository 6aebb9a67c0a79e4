/* Which tests ran on a platform: read from reports in any order. */
#include "db/db.h"
#include "history/run_note.h"
#include "store_rig.h"
#include "verdict/verdicts.h"
#include "views/platforms.h"

static struct db *db;
static struct txn *txn;

static void open_db(void)
{
	struct error e = {0};
	char *path = rig_path();

	assert_int_equal(db_open(path, DB_WRITER, &db, &e), 0);
	free(path);
	assert_int_equal(db_begin(db, DB_WRITER), 0);
	txn = db_txn(db);
}

static void close_db(void)
{
	if (db)
		assert_int_equal(db_commit(db), 0);
	db_close(db);
	db = NULL;
}

static void set_tests(const char *must_pass, const char *skip)
{
	db_exec(txn,
	    "INSERT INTO accelerator (name, title, level, oncall, is_gone, first_ms, must_pass, "
	    "skip)"
	    " VALUES ('npu', 'NPU', 2, '[]', 0, 0, ?1, ?2)"
	    " ON CONFLICT (name) DO UPDATE SET must_pass = ?1, skip = ?2",
	    V_TEXT(must_pass), V_TEXT(skip));
}

static int setup(void **state)
{
	rig_setup(state);
	rig_close(); /* the tables are there */
	open_db();
	set_tests("[\"model/llama3\",\"unit/a/b\"]", "[]");
	return 0;
}

static int teardown(void **state)
{
	close_db();
	return rig_teardown(state);
}

static int64_t put_change(const char *kind)
{
	static int n;
	char sha[41];

	snprintf(sha, sizeof(sha), "%040d", ++n);
	return db_exec_int(txn, 0,
	    "INSERT INTO change (kind, repository, repository_key, head_sha, state, created_ms,"
	    " active_ms) VALUES (?1, 'o/r', 'o/r', ?2, 'open', ?3, ?3) RETURNING id",
	    V_TEXT(kind), V_TEXT(sha), V_INT(T0));
}

#define ENVIRONMENT(torch, os)                                                                                         \
	"{\"torch\":\"" torch "\",\"os\":\"" os "\",\"extension\":{\"name\":\"x\",\"version\":"                        \
	"\"1.2\"}}"
#define NIGHTLY ENVIRONMENT("2.10.0a0+gitabc", "Ubuntu 22.04")
#define STABLE  ENVIRONMENT("2.9.1+cpu", "Ubuntu 22.04")

static int64_t put_job(int64_t change_id, const char *environment, int64_t at)
{
	static int n;
	char run[16];

	snprintf(run, sizeof(run), "%d", ++n);
	return db_exec_int(txn, 0,
	    "INSERT INTO job (change_id, dispatch_id, accelerator, runner, workflow, name, run_id,"
	    " run_attempt, status, conclusion, is_current, is_late, is_push, digest, n_tests, "
	    "n_red,"
	    " completed_ms, reported_ms, environment) VALUES (?1, '', 'npu', 'r', 'CI', ?2, ?2, 1,"
	    " 'completed', 'success', 1, 0, 0, x'00', 1, 0, ?3, ?3, ?4) RETURNING id",
	    V_INT(change_id), V_TEXT(run), V_INT(T0 + at), V_TEXT(environment));
}

static void put_result(int64_t job_id, const char *suite, const char *name, const char *status)
{
	db_exec(txn,
	    "INSERT INTO result (job_id, ordinal, test_id, status) SELECT ?1, COUNT(*), ?2, ?3"
	    " FROM result WHERE job_id = ?1",
	    V_INT(job_id), V_INT(test_id_of(txn, suite, name, NULL)), V_TEXT(status));
	db_exec(txn, "UPDATE job SET n_tests = (SELECT COUNT(*) FROM result WHERE job_id = ?1) WHERE id = ?1",
	    V_INT(job_id));
}

/* Both must-pass tests with these statuses; NULL: not reported. */
static int64_t put_both(int64_t change_id, const char *environment, const char *first, const char *second, int64_t at)
{
	int64_t job_id = put_job(change_id, environment, at);

	if (first)
		put_result(job_id, "model", "llama3", first);
	if (second)
		put_result(job_id, "unit", "a/b", second);
	return job_id;
}

static void note(int64_t change_id)
{
	verdicts_rebuild(txn, change_id, "npu");
	platform_tests_note(txn, change_id, "npu");
	assert_int_equal(db_status(db), 0);
}

/* "TORCH on OS: passed/failed/missing @hours [red @hours]; …", newest first. */
static char *tests_text(void)
{
	struct get_platform_tests g = {0};
	struct buf text = BUF_INIT(65536);

	close_db();
	rig_open();
	ASK_OK(store_get_platform_tests, &g);
	for (size_t i = 0; i < g.n; i++) {
		const struct platform_test *t = &g.list[i];

		buf_appendf(&text, "%s%s on %s: %d/%d/%d @%d", i ? "; " : "", t->torch, t->os, (int)t->n_passed,
		    (int)t->n_failed, (int)t->n_missing, (int)((t->at_ms - T0) / HOUR));
		if (t->red_since_ms)
			buf_appendf(&text, " red @%d", (int)((t->red_since_ms - T0) / HOUR));
		if (!t->job_id)
			buf_append_str(&text, " kept");
	}
	get_platform_tests_release(&g);
	rig_close();
	open_db();
	return buf_detach(&text);
}

#define ASSERT_TESTS(expected)                                                                                         \
	do {                                                                                                           \
		char *got_ = tests_text();                                                                             \
		assert_string_equal(got_, expected);                                                                   \
		free(got_);                                                                                            \
	} while (0)

static void a_platform_is_green_only_with_every_must_pass_test(void **state)
{
	int64_t c = put_change("nightly");

	(void)state;
	put_both(c, NIGHTLY, "PASS", "PASS", HOUR);
	note(c);
	ASSERT_TESTS("2.10.0a0+gitabc on Ubuntu 22.04: 2/0/0 @1");
	c = put_change("push");
	put_both(c, NIGHTLY, "PASS", NULL, 2 * HOUR);
	note(c);
	ASSERT_TESTS("2.10.0a0+gitabc on Ubuntu 22.04: 1/0/1 @2 red @2");
	c = put_change("push");
	put_both(c, NIGHTLY, "SKIP", "ERROR", 3 * HOUR);
	note(c);
	ASSERT_TESTS("2.10.0a0+gitabc on Ubuntu 22.04: 0/1/1 @3 red @2");
	c = put_change("push");
	put_both(c, NIGHTLY, "PASS", "PASS", 4 * HOUR);
	note(c);
	ASSERT_TESTS("2.10.0a0+gitabc on Ubuntu 22.04: 2/0/0 @4");
}

static void a_must_pass_test_that_is_not_supported_is_missing(void **state)
{
	int64_t c = put_change("push");

	(void)state;
	set_tests("[\"model/llama3\",\"unit/a/b\"]", "[\"model/llama3\"]");
	put_both(c, NIGHTLY, "PASS", "PASS", HOUR);
	note(c);
	ASSERT_TESTS("2.10.0a0+gitabc on Ubuntu 22.04: 1/0/1 @1 red @1");
}

static void pull_requests_and_silent_levels_record_nothing(void **state)
{
	int64_t c = put_change("pull_request");

	(void)state;
	put_both(c, NIGHTLY, "PASS", "PASS", HOUR);
	note(c);
	c = put_change("push");
	put_both(c, NULL, "PASS", "PASS", HOUR); /* does not name its platform */
	note(c);
	c = put_change("push");
	put_both(c, "{\"os\":\"Ubuntu\"}", "PASS", "PASS", HOUR);
	note(c);
	db_exec(txn, "UPDATE accelerator SET level = 1");
	c = put_change("push");
	put_both(c, NIGHTLY, "PASS", "PASS", HOUR);
	note(c);
	ASSERT_TESTS("");
}

static void an_older_change_does_not_replace_a_newer_one(void **state)
{
	int64_t older = put_change("push"), newer = put_change("push");

	(void)state;
	put_both(newer, NIGHTLY, "PASS", "PASS", HOUR);
	note(newer);
	put_both(older, NIGHTLY, "FAIL", "PASS", 2 * HOUR);
	note(older);
	ASSERT_TESTS("2.10.0a0+gitabc on Ubuntu 22.04: 2/0/0 @1");
}

static void a_corrected_report_replaces_the_first(void **state)
{
	int64_t c = put_change("push"), first = put_both(c, NIGHTLY, "FAIL", "PASS", HOUR);

	(void)state;
	note(c);
	ASSERT_TESTS("2.10.0a0+gitabc on Ubuntu 22.04: 1/1/0 @1 red @1");
	db_exec(txn, "UPDATE job SET is_current = 0 WHERE id = ?1", V_INT(first));
	put_both(c, STABLE, "PASS", "PASS", 2 * HOUR);
	note(c);
	/* its first report was of another version, which is withdrawn */
	ASSERT_TESTS("2.9.1+cpu on Ubuntu 22.04: 2/0/0 @2");
}

static void a_withdrawn_report_uncovers_the_previous_one(void **state)
{
	int64_t oldest = put_change("nightly"), older = put_change("nightly"), c, wrong;

	(void)state;
	put_both(oldest, NIGHTLY, "PASS", "PASS", 0);
	note(oldest);
	put_both(older, ENVIRONMENT("2.10.0.dev20261121", "Ubuntu 22.04"), "FAIL", "PASS", HOUR);
	put_both(older, ENVIRONMENT("2.9.0", "Ubuntu 22.04"), "PASS", "PASS", HOUR);
	note(older);
	c = put_change("nightly");
	wrong = put_both(c, NIGHTLY, "PASS", "PASS", 2 * HOUR);
	note(c);
	db_exec(txn, "UPDATE job SET is_current = 0 WHERE id = ?1", V_INT(wrong));
	put_both(c, STABLE, "PASS", "PASS", 3 * HOUR);
	note(c);
	ASSERT_TESTS("2.9.1+cpu on Ubuntu 22.04: 2/0/0 @3; 2.10.0.dev20261121 on Ubuntu 22.04:"
		     " 1/1/0 @1 red @1; 2.9.0 on Ubuntu 22.04: 2/0/0 @1");
}

/* Each version is judged by its own jobs: a pass on the nightly is no evidence for the release. */
static void versions_are_judged_separately(void **state)
{
	int64_t c = put_change("nightly"), build;

	(void)state;
	put_both(c, NIGHTLY, "FAIL", "PASS", HOUR);
	put_both(c, STABLE, "PASS", "PASS", 2 * HOUR);
	put_both(c, ENVIRONMENT("2.9.1+cpu", "Windows 11"), "PASS", NULL, 3 * HOUR);
	note(c);
	ASSERT_TESTS("2.9.1+cpu on Windows 11: 1/0/1 @3 red @3; 2.9.1+cpu on Ubuntu 22.04: 2/0/0 @2;"
		     " 2.10.0a0+gitabc on Ubuntu 22.04: 1/1/0 @1 red @1");
	/* A job without versions counts for each of them. */
	build = put_job(c, NULL, 4 * HOUR);
	put_result(build, "model", "llama3", "ERROR");
	note(c);
	ASSERT_TESTS("2.9.1+cpu on Windows 11: 0/1/1 @3 red @3; 2.9.1+cpu on Ubuntu 22.04: 1/1/0 @2"
		     " red @2; 2.10.0a0+gitabc on Ubuntu 22.04: 1/1/0 @1 red @1");
}

/* Only the newest nightly counts, but each release does. */
static void nightlies_replace_each_other(void **state)
{
	int64_t c = put_change("nightly");

	(void)state;
	put_both(c, ENVIRONMENT("2.9.0", "Ubuntu 22.04"), "PASS", "PASS", 0);
	note(c);
	c = put_change("nightly");
	put_both(c, STABLE, "PASS", "PASS", HOUR);
	note(c);
	c = put_change("nightly");
	put_both(c, NIGHTLY, "PASS", "PASS", 2 * HOUR);
	note(c);
	c = put_change("nightly");
	put_both(c, ENVIRONMENT("2.10.0.dev20261121", "Ubuntu 22.04"), "PASS", "PASS", 3 * HOUR);
	note(c);
	ASSERT_TESTS("2.10.0.dev20261121 on Ubuntu 22.04: 2/0/0 @3; 2.9.1+cpu on Ubuntu 22.04: 2/0/0"
		     " @1; 2.9.0 on Ubuntu 22.04: 2/0/0 @0");
}

/* The second shard is still running: missing tests are not red yet, failed ones are. */
static void no_test_is_missing_while_a_job_is_running(void **state)
{
	int64_t c = put_change("push"), running;

	(void)state;
	put_both(c, NIGHTLY, "PASS", NULL, HOUR);
	running = put_job(c, NULL, HOUR);
	db_exec(txn, "UPDATE job SET status = 'in_progress', digest = NULL WHERE id = ?1", V_INT(running));
	note(c);
	ASSERT_TESTS("");
	put_both(c, NIGHTLY, "FAIL", NULL, 2 * HOUR);
	note(c);
	ASSERT_TESTS("2.10.0a0+gitabc on Ubuntu 22.04: 0/1/1 @2 red @2");
	db_exec(txn, "UPDATE job SET status = 'completed', digest = x'00' WHERE id = ?1", V_INT(running));
	put_result(running, "unit", "a/b", "PASS");
	note(c);
	ASSERT_TESTS("2.10.0a0+gitabc on Ubuntu 22.04: 1/1/0 @2 red @2");
}

static void a_new_list_of_must_pass_tests_is_applied_to_old_runs(void **state)
{
	int64_t c = put_change("push");

	(void)state;
	put_both(c, NIGHTLY, "PASS", "FAIL", HOUR);
	note(c);
	set_tests("[\"model/llama3\"]", "[]");
	platform_tests_changed(txn, "npu");
	ASSERT_TESTS("2.10.0a0+gitabc on Ubuntu 22.04: 1/0/0 @1");
	set_tests("[]", "[]");
	platform_tests_changed(txn, "npu");
	ASSERT_TESTS("2.10.0a0+gitabc on Ubuntu 22.04: 0/0/0 @1");
	set_tests("[\"model/never\",\"unit/a/b\"]", "[]");
	platform_tests_changed(txn, "npu");
	ASSERT_TESTS("2.10.0a0+gitabc on Ubuntu 22.04: 0/1/1 @1 red @1");
}

static void the_record_outlives_the_change(void **state)
{
	int64_t c = put_change("push");

	(void)state;
	put_both(c, NIGHTLY, "PASS", "PASS", HOUR);
	note(c);
	platform_tests_forget(txn, c);
	platform_tests_changed(txn, "npu");
	ASSERT_TESTS("2.10.0a0+gitabc on Ubuntu 22.04: 2/0/0 @1 kept");
	put_both(c, NIGHTLY, "FAIL", "PASS", 2 * HOUR);
	note(c); /* ids may restart in an empty table, so any id counts as newer */
	ASSERT_TESTS("2.10.0a0+gitabc on Ubuntu 22.04: 1/1/0 @2 red @2");
}

static void existing_runs_are_filled_in_once(void **state)
{
	int64_t first = put_change("push"), second = put_change("nightly");

	(void)state;
	put_both(first, NIGHTLY, "FAIL", "PASS", HOUR);
	put_both(second, NIGHTLY, "FAIL", "PASS", 2 * HOUR);
	verdicts_rebuild(txn, first, "npu");
	verdicts_rebuild(txn, second, "npu");
	platform_tests_fill(txn);
	ASSERT_TESTS("2.10.0a0+gitabc on Ubuntu 22.04: 1/1/0 @2 red @1");
	db_exec(txn, "DELETE FROM platform_test");
	platform_tests_fill(txn);
	ASSERT_TESTS("");
}

static void the_number_of_versions_is_bounded(void **state)
{
	(void)state;
	for (int i = 0; i < 150; i++) {
		char *environment = xasprintf("{\"torch\":\"1.%d\",\"os\":\"Debian\"}", i);
		int64_t c = put_change("nightly");

		put_both(c, environment, "PASS", "PASS", i * HOUR);
		note(c);
		free(environment);
	}
	assert_int_equal(db_int(db, 0, "SELECT COUNT(*) FROM platform_test"), 100);
	assert_int_equal(db_int(db, 0, "SELECT MIN(at_ms) FROM platform_test"), T0 + 50 * HOUR);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_platform_is_green_only_with_every_must_pass_test),
	    TEST(a_must_pass_test_that_is_not_supported_is_missing),
	    TEST(pull_requests_and_silent_levels_record_nothing),
	    TEST(an_older_change_does_not_replace_a_newer_one),
	    TEST(a_corrected_report_replaces_the_first),
	    TEST(a_withdrawn_report_uncovers_the_previous_one),
	    TEST(versions_are_judged_separately),
	    TEST(nightlies_replace_each_other),
	    TEST(no_test_is_missing_while_a_job_is_running),
	    TEST(a_new_list_of_must_pass_tests_is_applied_to_old_runs),
	    TEST(the_record_outlives_the_change),
	    TEST(existing_runs_are_filled_in_once),
	    TEST(the_number_of_versions_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
