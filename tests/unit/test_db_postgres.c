/* The driver for PostgreSQL: values, failures and a lost connection, and databases that Outpost refuses. It needs a server:
 * tests/postgres.mjs. */
#include "db/db.h"
#include "db/postgres_text.h"
#include "db/schema.h"
#include "model/states.h"
#include "store_rig.h"

static struct db *open_server(enum db_use use)
{
	struct error e = {0};
	struct db *d;

	if (db_open(server_database(), use, &d, &e))
		fail_msg("%s", e.text);
	return d;
}

/* ---- statements ---- */

/* More of them than are sent at once; each asks for the answer to another one. */
static void a_pipeline_needs_as_many_passes_as_statements_wait_for_each_other(void **state)
{
	enum { N = 700 };
	struct db *d = open_server(DB_READER);
	int64_t got[N];
	int n_passes = 0;

	(void)state;
	assert_int_equal(db_begin(d, DB_READER), 0);
	DB_PIPELINE (d) {
		n_passes++;
		for (int i = 0; i < N; i++) {
			struct rows *r = db_rows(d, "SELECT ?1 + 1", V_INT(i));
			int64_t next = rows_next(r) ? rows_int(r, 0) : 0;

			rows_end(r);
			assert_int_equal(rows_are_awaited(r), next == 0);
			got[i] = next ? db_int(d, 0, "SELECT 10 * ?1", V_INT(next)) : 0;
		}
	}
	assert_int_equal(db_status(d), 0);
	assert_int_equal(n_passes, 3);
	for (int i = 0; i < N; i++)
		assert_int_equal(got[i], 10 * (i + 1));
	assert_int_equal(db_int(d, 0, "SELECT ?1 + 1", V_INT(0)), 1);
	db_close(d);
}

static void a_pipeline_tells_values_apart(void **state)
{
	struct db *d = open_server(DB_READER);
	char *text = NULL, *empty = NULL, *null = NULL;
	int64_t n = 0;

	(void)state;
	assert_int_equal(db_begin(d, DB_READER), 0);
	DB_PIPELINE (d) {
		FREE_ALL(text, empty, null);
		text = db_text(d, "SELECT ?1 || ',' || ?2", V_TEXT("1:2"), V_TEXT("3"));
		empty = db_text(d, "SELECT ?1 || ',' || ?2", V_TEXT("1"), V_TEXT("2:3"));
		null = db_text(d, "SELECT ?1 || ',' || ?2", V_TEXT("1"), V_TEXT(NULL));
		n = db_int(d, 0, "SELECT 7");
	}
	assert_string_equal(text, "1:2,3");
	assert_string_equal(empty, "1,2:3");
	assert_null(null);
	assert_int_equal(n, 7);
	FREE_ALL(text, empty, null);
	db_close(d);
}

static void a_pipeline_ends_after_a_failure_and_when_its_values_never_repeat(void **state)
{
	struct db *d = open_server(DB_READER);
	int64_t value = 0, got = 0;

	(void)state;
	assert_int_equal(db_begin(d, DB_READER), 0);
	DB_PIPELINE (d) {
		value++;
		got = db_int(d, 0, "SELECT ?1 + 0", V_INT(value));
	}
	assert_int_equal(got, value);
	DB_PIPELINE (d)
		db_int(d, 0, "SELECT 1 / ?1", V_INT(0));
	assert_int_equal(db_status(d), ERR_INVALID);
	db_rollback(d);
	db_forget_failure(d);
	assert_int_equal(db_begin(d, DB_READER), 0);
	assert_int_equal(db_int(d, 0, "SELECT 1 / ?1", V_INT(1)), 1);
	db_close(d);
}

static void texts_are_rewritten(void **state)
{
	static const struct {
		const char *sqlite, *postgres;
	} texts[] = {
	    {"SELECT a FROM t WHERE b = ?1 AND c = ?12", "SELECT a FROM t WHERE b = $1 AND c = $12"},
	    {"SELECT '?1 CROSS JOIN ' FROM a CROSS JOIN b ON b.x = a.x",
		"SELECT '?1 CROSS JOIN ' FROM a JOIN b ON b.x = a.x"},
	    {"SELECT 1 FROM (SELECT 1 FROM t INDEXED BY i) x", "SELECT 1 FROM (SELECT 1 FROM t) x"},
	    {"SELECT 'it''s ?', CAST(a AS INTEGER)", "SELECT 'it''s ?', integer_of(a)"},
	    {"SELECT 1 FROM job j CROSS JOIN job_test r ON r.job_id = j.id AND r.test_id = ?1",
		"SELECT 1 FROM job j JOIN LATERAL (SELECT * FROM job_test WHERE job_id = j.id OFFSET 0) r ON r.job_id "
		"= j.id"
		" AND r.test_id = $1"},
	    {"SELECT 1 FROM job_test r WHERE r.job_id = ?1", "SELECT 1 FROM job_test r WHERE r.job_id = $1"},
	    {"SELECT x'00ff'", "SELECT '\\x00ff'::bytea"},
	    {"SELECT 'open", "SELECT 'open"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		char *got = postgres_text(texts[i].sqlite);

		assert_string_equal(got, texts[i].postgres);
		free(got);
	}
}

static void values_come_back(void **state)
{
	static const char blob[] = "a\0\xff";
	struct db *d = open_server(DB_READER);
	struct rows *r = db_rows(d,
	    "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?1 > 0, ?1 IS NULL, SUM(n), CAST('12) x' AS INTEGER), CAST('x' AS INTEGER)"
	    " FROM (SELECT 40 AS n UNION ALL SELECT 2) numbers",
	    V_INT(INT64_MAX), V_REAL(0.1), V_TEXT("Ä'\n"), V_BLOB(blob, sizeof(blob)), V_TEXT(NULL), V_INT_OR_NULL(0));
	const void *p;
	size_t n;

	(void)state;
	assert_true(rows_next(r));
	assert_int_equal(rows_n_columns(r), 11);
	assert_int_equal(rows_int(r, 0), INT64_MAX);
	assert_true(rows_real(r, 1) == 0.1);
	assert_string_equal(rows_text(r, 2), "Ä'\n");
	assert_false(rows_is_blob(r, 2));
	assert_true(rows_is_blob(r, 3));
	p = rows_blob(r, 3, &n);
	assert_int_equal(n, sizeof(blob));
	assert_memory_equal(p, blob, n);
	assert_true(rows_is_null(r, 4) && rows_is_null(r, 5));
	assert_string_equal(rows_text(r, 4), "");
	assert_int_equal(rows_int(r, 6), 1);
	assert_string_equal(rows_text(r, 7), "0");
	assert_int_equal(rows_int(r, 8), 42);
	assert_int_equal(rows_int(r, 9), 12);
	assert_int_equal(rows_int(r, 10), 0);
	assert_false(rows_next(r));
	db_close(d);
}

/* SQLite takes any bytes. */
static void a_text_that_is_not_utf8_is_repaired(void **state)
{
	struct db *d = open_server(DB_WRITER);
	char *text = db_text(d, "SELECT ?1 || ?2", V_TEXT("a\xff"), V_TEXT("\xe2\x82"));

	(void)state;
	assert_int_equal(db_status(d), 0);
	assert_string_equal(text, "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	free(text);
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	db_exec(db_txn(d), "INSERT INTO setting (key, value) VALUES ('not UTF-8', ?1)", V_TEXT("\xc0"));
	assert_true(db_has(d, "SELECT 1 FROM setting WHERE value = ?1", V_TEXT("\xef\xbf\xbd")));
	db_rollback(d);
	db_close(d);
}

/* The first value has no type, and the next ones have. */
static void a_statement_is_prepared_for_other_types(void **state)
{
	struct db *d = open_server(DB_READER);

	(void)state;
	for (int i = 0; i < 3; i++) {
		char *text = db_text(d, "SELECT COALESCE(?1, 'none')", i == 1 ? V_TEXT("some") : V_NULL);

		assert_int_equal(db_status(d), 0);
		assert_string_equal(text, i == 1 ? "some" : "none");
		free(text);
	}
	db_close(d);
}

static void the_first_failure_sticks(void **state)
{
	struct db *d = open_server(DB_WRITER);

	(void)state;
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	db_exec(db_txn(d), "INSERT INTO setting (key, value) VALUES ('a', '1')");
	db_savepoint(d);
	db_exec(db_txn(d), "INSERT INTO setting (key, value) VALUES ('b', '1')");
	db_exec(db_txn(d), "INSERT INTO setting (key, value) VALUES ('a', '2')");
	assert_int_equal(db_status(d), ERR_CONFLICT);
	assert_non_null(strstr(db_why(d)->text, "duplicate key"));
	assert_int_equal(db_exec_count(db_txn(d), "DELETE FROM setting"), 0); /* nothing is run */
	assert_false(db_has(d, "SELECT 1"));
	db_forget_failure(d);
	db_savepoint_undo(d);
	assert_int_equal(db_exec_count(db_txn(d), "UPDATE setting SET value = '3' WHERE key IN ('a', 'b')"), 1);
	assert_int_equal(db_commit(d), 0);
	assert_true(db_has(d, "SELECT 1 FROM setting WHERE key = 'a' AND value = '3'"));
	assert_false(db_has(d, "SELECT 1 FROM setting WHERE key = 'b'"));
	/* the server answers ROLLBACK to the COMMIT of a transaction that failed */
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	db_exec(db_txn(d), "INSERT INTO setting (key, value) VALUES ('a', '2')");
	assert_int_equal(db_status(d), ERR_CONFLICT);
	db_forget_failure(d);
	assert_int_equal(db_commit(d), ERR_IO);
	db_rollback(d);
	db_close(d);
}

/* db_exec() waits for no answer, and the next statement sees the rows of all before it. */
static void statements_without_an_answer_go_together(void **state)
{
	struct db *d = open_server(DB_WRITER);
	int64_t changes = db_total_changes(d);

	(void)state;
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	for (int i = 0; i < 1200; i++)
		db_exec(db_txn(d), "INSERT INTO setting (key, value) VALUES ('together' || ?1::text, 'v')", V_INT(i));
	assert_int_equal(db_int(d, 0, "SELECT COUNT(*) FROM setting WHERE key LIKE 'together%'"), 1200);
	assert_int_equal(
	    db_exec_count(db_txn(d), "DELETE FROM setting WHERE key LIKE 'together%' AND key <> 'together7'"), 1199);
	db_exec(db_txn(d), "INSERT INTO setting (key, value) VALUES ('last', '1')");
	assert_int_equal(db_commit(d), 0);
	assert_true(db_has(d, "SELECT 1 FROM setting WHERE key = 'last'"));
	assert_true(db_total_changes(d) >= changes + 2400);
	db_close(d);
}

/* The failure of such a statement sticks at the next answer. What was sent behind it did not run, and the savepoint holds. */
static void a_failure_may_arrive_later(void **state)
{
	struct db *d = open_server(DB_WRITER);

	(void)state;
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	db_exec(db_txn(d), "INSERT INTO setting (key, value) VALUES ('a', '1')");
	db_savepoint(d);
	db_exec(db_txn(d), "UPDATE setting SET value = '2'");
	db_exec(db_txn(d), "INSERT INTO setting (key, value) VALUES ('a', '3')");
	db_exec(db_txn(d), "DELETE FROM setting");
	assert_int_equal(db_int(d, -1, "SELECT COUNT(*) FROM setting"), -1);
	assert_int_equal(db_status(d), ERR_CONFLICT);
	assert_non_null(strstr(db_why(d)->text, "duplicate key"));
	db_forget_failure(d);
	db_savepoint_undo(d);
	assert_true(db_has(d, "SELECT 1 FROM setting WHERE key = 'a' AND value = '1'"));
	db_exec(db_txn(d), "INSERT INTO setting (key, value) VALUES ('a', '4')");
	assert_int_equal(db_commit(d), ERR_CONFLICT);
	db_rollback(d);
	db_forget_failure(d);
	assert_false(db_has(d, "SELECT 1 FROM setting WHERE key = 'a'"));
	db_close(d);
}

static void an_insert_returns_its_id(void **state)
{
	struct db *d = open_server(DB_WRITER);
	int64_t first, second;

	(void)state;
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	for (int i = 0; i < 2; i++) {
		int64_t *id = i ? &second : &first;

		*id = db_insert(
		    db_txn(d), "INSERT INTO test (suite, name, dtype) VALUES ('unit', 'a', '') ON CONFLICT DO NOTHING");
	}
	assert_true(first > 0 && second == 0);
	assert_true(db_has(d, "SELECT 1 FROM test WHERE id = ?1", V_INT(first)));
	db_rollback(d);
	db_close(d);
}

static void a_reader_does_not_write(void **state)
{
	struct db *d = open_server(DB_READER);

	(void)state;
	db_exec(db_txn(d), "DELETE FROM setting");
	assert_int_equal(db_status(d), ERR_READ_ONLY);
	db_close(d);
}

/* The transaction during which the connection ends fails, and the next one has another connection. state: not NULL: while a statement
 * without an answer waits. */
static void a_lost_connection_is_replaced(void **state)
{
	struct db *d = open_server(DB_WRITER), *other = open_server(DB_WRITER);

	assert_int_equal(db_begin(d, DB_WRITER), 0);
	db_exec(db_txn(d), "INSERT INTO setting (key, value) VALUES ('lost', '1')");
	assert_int_equal(db_status(d), 0);
	db_exec_int(
	    db_txn(other), 0, "SELECT pg_terminate_backend(?1::int)", V_INT(db_int(d, 0, "SELECT pg_backend_pid()")));
	if (*state) /* it waits for the next answer */
		db_exec(db_txn(d), "DELETE FROM setting");
	db_int(d, 0, "SELECT 1 FROM setting");
	assert_int_equal(db_status(d), ERR_IO);
	assert_non_null(strstr(db_why(d)->text, "the connection was lost"));
	assert_false(db_is_in_transaction(d));
	db_rollback(d);
	db_forget_failure(d);
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	assert_true(db_has(d, "SELECT 1"));
	assert_false(db_has(d, "SELECT 1 FROM setting WHERE key = 'lost'"));
	assert_int_equal(db_commit(d), 0);
	db_close(other);
	db_close(d);
}

/* ---- what the views show ---- */

static void statuses_have_the_names_of_the_program(void **state)
{
	struct db *d = open_server(DB_READER);

	(void)state;
	for (int i = 0; i <= N_TEST_STATUSES; i++) {
		char *name = db_text(d, "SELECT test_status_name(?1::smallint)", V_INT(i));

		if (i == N_TEST_STATUSES)
			assert_null(name);
		else
			assert_string_equal(name, test_status_name((enum test_status)i));
		free(name);
	}
	db_close(d);
}

/* ---- databases that are refused ---- */

/* The URL of the database with another name, other options or another user. free() */
static char *url_with(const char *database, const char *user, const char *options)
{
	const char *base = getenv("OUTPOST_TEST_DATABASE"), *host = strstr(base, "host="), *end = strchr(host, '&');

	return xasprintf("postgresql:///%s?%.*s&user=%s&options=%s", database, (int)(end - host), host, user, options);
}

static const char MAY_LOSE[] = "-c%20outpost.may_lose_rows%3Don";

static void assert_refused(char *url, int code, const char *part)
{
	/* The start does not wait for a server that answers. */
	bool is_there = !strstr(url, "/nowhere");
	struct store_options o = {.database = url,
	    .state_dir = rig_dir,
	    .recover = store_recover,
	    .patience_ms = is_there ? 24 * 3600 * 1000 : 0};
	struct error e = {0};
	struct store *s;
	int rc = store_open(rig_loop, &o, &s, &e);

	if (rc != code || !strstr(e.text, part))
		fail_msg("%d %s, and not %d %s", rc, e.text, code, part);
	free(url);
}

static void in_base(const char *sql) { server_script(getenv("OUTPOST_TEST_DATABASE"), sql); }

static void wrong_places_are_refused(void **state)
{
	(void)state;
	assert_refused(xstrdup("postgresql:///outpost?host=/nowhere"), ERR_AWAY, "No such file or directory");
	assert_refused(url_with("nowhere", "outpost", MAY_LOSE), ERR_AWAY, "database \"nowhere\" does not exist");
	assert_refused(url_with("postgres", "nobody", MAY_LOSE), ERR_LOGIN, "role \"nobody\" does not exist");
}

static void a_url_is_checked_without_a_server(void **state)
{
	static const struct {
		const char *url, *part; /* NULL: it is right */
	} cases[] = {
	    {"sqlite", NULL},
	    {"postgresql://outpost@10.0.0.11,10.0.0.12:5433/outpost?target_session_attrs=read-write&sslmode=require",
		NULL},
	    {"postgres:///outpost?host=/run/postgresql&connect_timeout=5", NULL},
	    {"postgresql://outpost@db/outpost?sslmod=require", "\"sslmod\""},
	    {"postgresql://outpost@db/outpost?sslmode=requre", "invalid sslmode value: \"requre\""},
	    {"postgresql://outpost@db/outpost?target_session_attrs=writable", "target_session_attrs"},
	    {"postgresql://outpost@[::1/outpost", "]"},
	    {"postgresql://outpost@db:99999/outpost", "invalid port number: \"99999\""},
	    {"postgresql://outpost@db,db2:5x/outpost", "invalid port number: \"5x\""},
	    {"postgresql://outpost@db/outpost?connect_timeout=soon", "\"soon\" for \"connect_timeout\""},
	    {"postgresql://outpost@db/outpost?keepalives_idle=99999999999", "for \"keepalives_idle\""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct error e = {0};

		assert_int_equal(db_check_url(cases[i].url, &e), cases[i].part ? ERR_INVALID : 0);
		if (cases[i].part && !strstr(e.text, cases[i].part))
			fail_msg("%s: %s", cases[i].url, e.text);
	}
}

/* The server asks the role `secured` for its password. */
static void the_password_is_the_files(void **state)
{
	char name[40], *url;
	struct store_options o = {.state_dir = rig_dir, .recover = store_recover};
	struct error e = {0};
	struct store *s;

	(void)state;
	in_base("DROP ROLE IF EXISTS secured");
	in_base("CREATE ROLE secured LOGIN SUPERUSER PASSWORD 'right'");
	snprintf(name, sizeof(name), "test_%d", (int)getpid());
	url = url_with(name, "secured", MAY_LOSE);
	o.database = url;
	assert_refused(xstrdup(url), ERR_LOGIN, "no password supplied; give its file");
	assert_int_equal(secret_new("wrong", 5, &o.password, &e), 0);
	assert_int_equal(store_open(rig_loop, &o, &s, &e), ERR_LOGIN);
	assert_non_null(strstr(e.text, "password authentication failed for user \"secured\""));
	assert_null(strstr(e.text, "wrong"));
	secret_unref(o.password);
	assert_int_equal(secret_new("right", 5, &o.password, &e), 0);
	assert_int_equal(store_open(rig_loop, &o, &rig_store, &e), 0);
	rig_close();
	secret_unref(o.password);
	free(url);
	in_base("DROP ROLE secured");
}

static void unsafe_servers_are_refused(void **state)
{
	char name[40];

	(void)state;
	snprintf(name, sizeof(name), "test_%d", (int)getpid());
	assert_refused(url_with(name, "outpost", ""), ERR_INVALID, "turn fsync and full_page_writes on");
}

static void wrong_databases_are_refused(void **state)
{
	char *url;

	(void)state;
	in_base("DROP DATABASE IF EXISTS latin");
	in_base("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
	assert_refused(url_with("latin", "outpost", MAY_LOSE), ERR_INVALID, "create it with ENCODING 'UTF8'");
	in_base("DROP DATABASE latin");
	in_base("DROP DATABASE IF EXISTS language");
	in_base("CREATE DATABASE language TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'");
	assert_refused(url_with("language", "outpost", MAY_LOSE), ERR_INVALID, "create it with LOCALE 'C'");
	in_base("DROP DATABASE language");
	in_base("DROP DATABASE IF EXISTS theirs");
	in_base("CREATE DATABASE theirs TEMPLATE template0 LOCALE 'C'");
	url = url_with("theirs", "outpost", MAY_LOSE);
	server_script(url, "CREATE TABLE theirs (a INT)");
	free(url);
	assert_refused(
	    url_with("theirs", "outpost", MAY_LOSE), ERR_CORRUPT, "database theirs has tables of another program");
	in_base("DROP DATABASE theirs");
	in_base("DROP DATABASE IF EXISTS elsewhere");
	in_base("CREATE DATABASE elsewhere TEMPLATE template0 LOCALE 'C'");
	url = url_with("elsewhere", "outpost", MAY_LOSE);
	server_script(url, "CREATE SCHEMA mine; ALTER DATABASE elsewhere SET search_path = mine");
	free(url);
	assert_refused(url_with("elsewhere", "outpost", MAY_LOSE), ERR_INVALID, "in mine instead of the schema public");
	in_base("DROP DATABASE elsewhere");
}

static void missing_privileges_are_named(void **state)
{
	(void)state;
	in_base("DROP DATABASE IF EXISTS bare");
	in_base("CREATE DATABASE bare TEMPLATE template0 LOCALE 'C'");
	in_base("DROP ROLE IF EXISTS guest");
	in_base("CREATE ROLE guest LOGIN");
	assert_refused(url_with("bare", "guest", MAY_LOSE), ERR_DENIED,
	    "guest may not create tables in database bare: make it the owner");
	in_base("DROP DATABASE bare");
	in_base("DROP ROLE guest");
}

static void another_schema_is_refused_or_accepted(void **state)
{
	static const struct {
		const char *version; /* of the table */
		int code;
		const char *part;
	} cases[] = {
	    {"UPDATE outpost_schema SET version = 99, readable_from = 98", ERR_TOO_NEW, "run the newer outpostd"},
	    {"UPDATE outpost_schema SET version = 1, readable_from = 1", ERR_CORRUPT, "no valid schema version"},
	    {"DELETE FROM outpost_schema", ERR_CORRUPT, "no valid schema version"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		server_script(server_database(), cases[i].version);
		assert_refused(xstrdup(server_database()), cases[i].code, cases[i].part);
	}
	/* a newer release that this one can work beside */
	server_script(server_database(), "INSERT INTO outpost_schema (version, readable_from) VALUES (99, 11)");
	rig_open();
	rig_close();
	server_script(server_database(), "UPDATE outpost_schema SET version = 14");
}

static void an_older_schema_is_migrated(void **state)
{
	(void)state;
	server_script(server_database(), "DROP TABLE node, node_independent, seat, content_write, log, log_piece, "
					 "log_object, unfinished_copy, github_limit;"
					 " ALTER TABLE outbox DROP COLUMN epoch; ALTER TABLE staged DROP COLUMN epoch;"
					 " ALTER TABLE redelivery DROP COLUMN attempt_id, DROP COLUMN failed_ms;"
					 " DROP INDEX verdict_flaky;"
					 " CREATE INDEX verdict_red ON verdict (change_id, accelerator, attribution)"
					 "  WHERE attribution IS NOT NULL;"
					 " CREATE INDEX failure_at ON failure (at_ms);"
					 " CREATE INDEX verdict_attributed ON verdict (accelerator, test_id, change_id)"
					 "  WHERE attribution IS NOT NULL;"
					 " UPDATE outpost_schema SET version = 10, readable_from = 10");
	rig_open();
	assert_true(rig_put("a", "{}"));
}

static void a_second_daemon_is_refused(void **state)
{
	char dir[] = "/tmp/outpost-second-XXXXXX";
	struct store_options o = {.database = server_database(), .state_dir = dir, .recover = store_recover};
	struct error e = {0};
	struct store *s;

	(void)state;
	assert_non_null(mkdtemp(dir));
	rig_open();
	assert_int_equal(store_open(rig_loop, &o, &s, &e), ERR_EXISTS);
	assert_non_null(strstr(e.text, "another outpostd uses this database"));
	nftw(dir, rig_remove, 8, FTW_DEPTH | FTW_PHYS);
}

static int setup_tables(void **state)
{
	rig_setup(state);
	rig_close();
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_tables, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_pipeline_needs_as_many_passes_as_statements_wait_for_each_other),
	    TEST(a_pipeline_tells_values_apart),
	    TEST(a_pipeline_ends_after_a_failure_and_when_its_values_never_repeat),
	    TEST(values_come_back),
	    TEST(a_text_that_is_not_utf8_is_repaired),
	    TEST(a_statement_is_prepared_for_other_types),
	    TEST(the_first_failure_sticks),
	    TEST(a_reader_does_not_write),
	    TEST(a_lost_connection_is_replaced),
	    {"a_lost_connection_is_replaced", a_lost_connection_is_replaced, setup_tables, rig_teardown, (void *)1},
	    TEST(statements_without_an_answer_go_together),
	    TEST(a_failure_may_arrive_later),
	    TEST(an_insert_returns_its_id),
	    TEST(statuses_have_the_names_of_the_program),
	    TEST(wrong_places_are_refused),
	    TEST(a_url_is_checked_without_a_server),
	    TEST(the_password_is_the_files),
	    TEST(unsafe_servers_are_refused),
	    TEST(wrong_databases_are_refused),
	    TEST(missing_privileges_are_named),
	    TEST(another_schema_is_refused_or_accepted),
	    TEST(an_older_schema_is_migrated),
	    TEST(a_second_daemon_is_refused),
	};

	const struct CMUnitTest without_server[] = {cmocka_unit_test(texts_are_rewritten)};

	/* make run-unit has no server, and make check-postgres has one */
	return getenv("OUTPOST_TEST_DATABASE") ? cmocka_run_group_tests(tests, NULL, NULL)
					       : cmocka_run_group_tests(without_server, NULL, NULL);
}
