/* Opening and surviving: the lock, refused files, migrations, death by SIGKILL, a full disk, damage, backup. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <sqlite3.h>

#include "db/db_sqlite.h"
#include "db/schema.h"
#include "store_rig.h"

static char *file_in_dir(const char *name) { return path_join(rig_dir, name); }

/* Runs SQL on the closed file, as an operator or a newer program might. */
static void sql(const char *name, const char *text)
{
	char *path = file_in_dir(name);
	sqlite3 *h;

	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(sqlite3_exec(h, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(h);
	free(path);
}

static void assert_refused(int code, const char *part)
{
	struct error e = {0};

	assert_int_equal(rig_open_with(&(struct store_options){0}, &e), code);
	rig_store = NULL;
	assert_non_null(strstr(e.text, "outpost.db"));
	assert_non_null(strstr(e.text, part));
}

/* ---- the folder and the lock ---- */

static void the_folder_is_made_for_its_owner_alone(void **state)
{
	char *inner = file_in_dir("state"), *file;
	struct stat st;
	struct error e = {0};

	(void)state;
	assert_int_equal(
	    store_open(rig_loop, &(struct store_options){.state_dir = inner, .recover = store_recover}, &rig_store, &e),
	    0);
	rig_close();
	assert_int_equal(stat(inner, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	file = path_join(inner, "outpost.db");
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	free(file);
	free(inner);
}

static void a_missing_parent_is_named(void **state)
{
	char *inner = file_in_dir("no/state");
	struct error e = {0};

	(void)state;
	assert_int_equal(
	    store_open(rig_loop, &(struct store_options){.state_dir = inner, .recover = store_recover}, &rig_store, &e),
	    ERR_IO);
	assert_non_null(strstr(e.text, inner));
	free(inner);
}

static void a_second_daemon_is_refused(void **state)
{
	struct store *second;
	struct error e = {0};
	char pid[32];

	(void)state;
	rig_open();
	assert_int_equal(
	    store_open(rig_loop, &(struct store_options){.state_dir = rig_dir, .recover = store_recover}, &second, &e),
	    ERR_EXISTS);
	snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
	assert_non_null(strstr(e.text, pid));
	rig_put("a", "{}"); /* the first daemon is not affected */
	rig_reopen();       /* closing releases the lock */
}

/* ---- versions ---- */

static void a_newer_file_is_refused_untouched(void **state)
{
	char *known = xasprintf("%d", SCHEMA_VERSION);
	char *back = xasprintf("PRAGMA user_version = %d", SCHEMA_VERSION);

	(void)state;
	rig_open();
	rig_close();
	sql("outpost.db", "PRAGMA user_version = 99");
	assert_refused(ERR_TOO_NEW, "99");
	assert_refused(ERR_TOO_NEW, known);
	sql("outpost.db", back);
	rig_open();
	free(known);
	free(back);
}

static void a_database_of_another_application_is_refused(void **state)
{
	(void)state;
	sql("outpost.db", "CREATE TABLE theirs (a)");
	assert_refused(ERR_CORRUPT, "not a database of Outpost");
}

static char *schema_of(const char *name)
{
	char *path = file_in_dir(name), *text;
	struct db *d;

	assert_int_equal(db_open(path, DB_READER, &d, NULL), 0);
	text = db_text(d, "SELECT group_concat(sql, ';') FROM"
			  " (SELECT sql FROM sqlite_schema ORDER BY name)");
	db_close(d);
	free(path);
	return text;
}

/* A migrated file of each older version equals a new file. */
/* A statement whose rows come from a partial index would be planned again for each new value. */
static void a_statement_is_planned_once(void **state)
{
	static const char *const KINDS[] = {"comment", "checks", "reply"};
	char *path = file_in_dir("outpost.db");
	sqlite3_stmt *s = NULL;
	struct db *d;

	(void)state;
	rig_open();
	rig_close();
	assert_int_equal(db_open(path, DB_WRITER, &d, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
		assert_false(db_has(
		    d, "SELECT 1 FROM outbox WHERE kind = ?1 AND state IN ('due', 'waiting')", V_TEXT(KINDS[i])));
	while ((s = sqlite3_next_stmt(sqlite_of(d)->handle, s)))
		assert_int_equal(sqlite3_stmt_status(s, SQLITE_STMTSTATUS_REPREPARE, 0), 0);
	db_close(d);
	free(path);
}

static void every_older_version_is_migrated(void **state)
{
	char *fresh;

	(void)state;
	rig_open();
	rig_close();
	fresh = schema_of("outpost.db");
	assert_non_null(fresh);
	for (int64_t version = 0; version < SCHEMA_VERSION; version++) {
		char *path = file_in_dir("outpost.db"), *migrated;
		struct db *d;
		struct error e = {0};

		unlink(path);
		assert_int_equal(db_open(path, DB_WRITER, &d, &e), 0);
		for (int64_t v = 0; v < version; v++)
			assert_int_equal(db_script(d, SCHEMA_STEPS[v], &e), 0);
		if (version)
			assert_int_equal(db_set_user_version(d, version, &e), 0);
		db_close(d);
		rig_open();
		rig_put("a", "{}");
		rig_close();
		migrated = schema_of("outpost.db");
		assert_string_equal(migrated, fresh);
		free(migrated);
		free(path);
	}
	free(fresh);
}

/* ---- damage ---- */

static void overwrite(const char *name, off_t at, const char *with, size_t n)
{
	char *path = file_in_dir(name);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, with, n, at), n);
	close(fd);
	free(path);
}

static void a_file_of_another_format_is_refused(void **state)
{
	(void)state;
	overwrite("outpost.db", 0, "this is a text file, not a database", 35);
	assert_refused(ERR_CORRUPT, "not a database");
}

static void a_damaged_file_is_refused(void **state)
{
	char junk[4096];

	(void)state;
	rig_open();
	rig_put("a", "{}");
	rig_close();
	memset(junk, 0x5a, sizeof(junk));
	for (int page = 1; page < 20; page++)
		overwrite("outpost.db", page * 8192, junk, sizeof(junk));
	assert_refused(ERR_CORRUPT, "");
}

static void a_truncated_file_is_refused(void **state)
{
	char *path = file_in_dir("outpost.db");

	(void)state;
	rig_open();
	rig_put("a", "{}");
	rig_close();
	assert_int_equal(truncate(path, 3 * 8192), 0);
	assert_refused(ERR_CORRUPT, "");
	free(path);
}

/* ---- death ---- */

/* Writes deliveries and prints the committed ones, until it is killed. */
static void write_until_killed(int out)
{
	for (int i = 0;; i++) {
		char guid[32];

		snprintf(guid, sizeof(guid), "g%d", i);
		if (rig_put(guid, "{\"some\":\"body\"}") && write(out, &i, sizeof(i)) != sizeof(i))
			_exit(1);
	}
}

static int64_t count_lost(int n_promised)
{
	int64_t n_lost = 0;

	for (int i = 0; i < n_promised; i++) {
		char guid[32];
		struct get_delivery g = {.guid = guid};

		snprintf(guid, sizeof(guid), "g%d", i);
		n_lost += ASK(store_get_delivery, &g) != 0;
		delivery_release(&g.delivery);
	}
	return n_lost;
}

static void committed_rows_survive_a_kill(void **state)
{
	int pipes[2], i, n_promised = 0;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (child == 0) {
		close(pipes[0]);
		rig_loop = loop_new();
		rig_open();
		write_until_killed(pipes[1]);
	}
	close(pipes[1]);
	while (n_promised < 150 && read(pipes[0], &i, sizeof(i)) == sizeof(i))
		n_promised = i + 1;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	while (read(pipes[0], &i, sizeof(i)) == sizeof(i))
		n_promised = i + 1;
	close(pipes[0]);
	assert_true(n_promised >= 150);
	rig_open();
	assert_int_equal(count_lost(n_promised), 0);
	rig_put("after", "{}");
}

/* Claims a request and dies before it records the end, again and again. */
static void a_claimed_request_survives_a_kill(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct claim_outbox c;

	(void)state;
	rig_open();
	rig_start("opened", HEAD_A, 0, wants, 1);
	rig_close();
	for (int round = 0; round < 3; round++) {
		int status;
		pid_t child = fork();

		if (child == 0) {
			rig_loop = loop_new();
			rig_open();
			c = rig_claim(REQUESTS, T0 + DAY);
			if (c.n == 1)
				raise(SIGKILL);
			_exit(1);
		}
		waitpid(child, &status, 0);
		assert_true(WIFSIGNALED(status));
	}
	rig_open();
	c = rig_claim(REQUESTS, T0 + DAY);
	assert_int_equal(c.n, 1);
	assert_true(c.rows[0].is_uncertain);
	assert_int_equal(c.rows[0].n_attempts, 1); /* a crash of Outpost does not count as a failure of GitHub */
	claim_outbox_release(&c);
}

/* ---- a full disk ---- */

static int put_code(int i)
{
	static char body[60000];
	char guid[32];
	struct put_delivery p = {.guid = guid,
	    .event = "push",
	    .action = "",
	    .repository = UPSTREAM,
	    .body = body,
	    .body_bytes = sizeof(body),
	    .now_ms = T0};

	random_bytes(body, sizeof(body)); /* nothing to compress */
	snprintf(guid, sizeof(guid), "full-%d", i);
	return DO(store_put_delivery, &p);
}

static void a_full_disk_refuses_and_recovers(void **state)
{
	struct rlimit before, small;
	struct store_stats stats;
	struct get_totals t = {.now_ms = T0};
	int i = 0, rc = 0;

	(void)state;
	rig_open();
	rig_put("first", "{}");
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	small = before;
	small.rlim_cur = 2 << 20;
	setrlimit(RLIMIT_FSIZE, &small);
	while (i < 100 && rc == 0)
		rc = put_code(i++);
	assert_int_equal(rc, ERR_FULL);
	store_stats(rig_store, &stats);
	assert_false(stats.is_writable);
	assert_true(stats.n_failed_commits > 0);
	assert_string_equal(stats.why_not_writable, "the disk is full");
	ASK_OK(store_get_totals, &t); /* reading still works */
	assert_int_equal(t.n_deliveries_accepted, i);

	setrlimit(RLIMIT_FSIZE, &before);
	store_probe(rig_store);
	store_probe(rig_store); /* one is enough */
	assert_int_equal(put_code(i), 0);
	store_stats(rig_store, &stats);
	assert_true(stats.is_writable && !stats.why_not_writable);
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.n_deliveries_accepted, i + 1);
	rig_reopen();
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.n_deliveries_accepted, i + 1);
}

static void a_probe_notices_free_space(void **state)
{
	struct rlimit before, small;
	struct store_stats stats;
	struct claim_outbox behind;
	int rc = 0;

	(void)state;
	rig_open();
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	small = before;
	small.rlim_cur = 2 << 20;
	setrlimit(RLIMIT_FSIZE, &small);
	for (int i = 0; i < 100 && rc == 0; i++)
		rc = put_code(i);
	assert_true(rc != 0);
	setrlimit(RLIMIT_FSIZE, &before);
	store_probe(rig_store);
	behind = rig_claim(REQUESTS, T0); /* writes nothing itself */
	claim_outbox_release(&behind);
	store_stats(rig_store, &stats);
	assert_true(stats.is_writable);
}

/* Another process holds the file for longer than the store waits. */
static void a_locked_database_is_busy(void **state)
{
	char *path = file_in_dir("outpost.db");
	sqlite3 *other;

	(void)state;
	rig_open();
	assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(put_code(1), ERR_BUSY);
	assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(other);
	assert_int_equal(put_code(1), 0);
	free(path);
}

/* ---- backup ---- */

static void a_backup_is_the_whole_store(void **state)
{
	char *path = file_in_dir("copy.db"), *part = file_in_dir("copy.db.part");
	struct backup_store b = {.path = path}, relative = {.path = "copy.db"};
	struct get_totals t = {.now_ms = T0};
	struct stat st;

	(void)state;
	rig_open();
	for (int i = 0; i < 20; i++)
		assert_int_equal(put_code(i), 0);
	ASK_OK(store_backup, &b);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(b.n_bytes, st.st_size);
	assert_int_equal(access(part, F_OK), -1);
	assert_int_equal(ASK(store_backup, &b), ERR_EXISTS);
	relative.q.done = rig_query_done;
	assert_int_equal(store_backup(rig_store, &relative), ERR_INVALID);
	rig_put("later", "{}");
	rig_close();

	free(part);
	part = file_in_dir("outpost.db");
	assert_int_equal(rename(path, part), 0);
	rig_open();
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.n_deliveries_accepted, 20);
	free(part);
	free(path);
}

static void a_backup_to_a_missing_folder_fails(void **state)
{
	struct backup_store b = {.path = "/nonexistent/folder/copy.db"};

	(void)state;
	rig_open();
	assert_true(ASK(store_backup, &b) != 0);
	assert_non_null(strstr(b.q.why.text, "/nonexistent/folder/copy.db"));
}

/* ---- closing ---- */

static void closing_leaves_one_file(void **state)
{
	char *wal = file_in_dir("outpost.db-wal");

	(void)state;
	rig_open();
	for (int i = 0; i < 20; i++)
		assert_int_equal(put_code(i), 0);
	assert_int_equal(access(wal, F_OK), 0);
	rig_close();
	assert_int_equal(access(wal, F_OK), -1);
	free(wal);
}

static void the_log_stays_small(void **state)
{
	char *wal = file_in_dir("outpost.db-wal");
	struct stat st;

	(void)state;
	rig_open();
	for (int i = 0; i < 600; i++) /* 48 MB of log without checkpoints */
		assert_int_equal(put_code(i), 0);
	assert_int_equal(stat(wal, &st), 0);
	assert_true(st.st_size < 24 << 20);
	free(wal);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup_folder, rig_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(the_folder_is_made_for_its_owner_alone),
	    TEST(a_missing_parent_is_named),
	    TEST(a_second_daemon_is_refused),
	    TEST(a_newer_file_is_refused_untouched),
	    TEST(a_database_of_another_application_is_refused),
	    TEST(a_statement_is_planned_once),
	    TEST(every_older_version_is_migrated),
	    TEST(a_file_of_another_format_is_refused),
	    TEST(a_damaged_file_is_refused),
	    TEST(a_truncated_file_is_refused),
	    TEST(committed_rows_survive_a_kill),
	    TEST(a_claimed_request_survives_a_kill),
	    TEST(a_full_disk_refuses_and_recovers),
	    TEST(a_probe_notices_free_space),
	    TEST(a_locked_database_is_busy),
	    TEST(a_backup_is_the_whole_store),
	    TEST(a_backup_to_a_missing_folder_fails),
	    TEST(closing_leaves_one_file),
	    TEST(the_log_stays_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
