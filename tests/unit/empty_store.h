/* An empty database for each test. SQLite: each process makes a file once and copies it, because the migrations take four fifths of
 * the time that a new database needs. PostgreSQL, if OUTPOST_TEST_DATABASE is the URL of a server's database (tests/postgres.mjs): each
 * process makes a database of its own there, empties it for each test, and drops it at its end. */
#pragma once

#include <ftw.h>

#include "db/db.h"
#include "db/store.h"
#include "loop/loop.h"

/* ---- PostgreSQL ---- */

static pid_t empty_store_pid; /* of the process that made the database: not a child that a test forks */
static char *empty_store_url; /* of the database */

/* Runs a script on a server's database. */
static inline void server_script(const char *url, const char *sql)
{
	struct error e = {0};
	struct db *d;

	if (db_open(url, DB_WRITER, &d, &e) || db_script(d, sql, &e))
		fail_msg("%s: %s", sql, e.text);
	db_close(d);
}

static inline void server_drop(void);

/* NULL: the tests run on SQLite. */
static inline const char *server_database(void)
{
	const char *base = getenv("OUTPOST_TEST_DATABASE"), *name = base ? strstr(base, "/postgres?") : NULL;
	char sql[200];

	if (!base || empty_store_url)
		return empty_store_url;
	assert_non_null(name);
	empty_store_pid = getpid();
	empty_store_url =
	    xasprintf("%.*s/test_%d?%s", (int)(name - base), base, (int)empty_store_pid, name + strlen("/postgres?"));
	snprintf(sql, sizeof(sql), "CREATE DATABASE test_%d TEMPLATE template0 LOCALE 'C'", (int)empty_store_pid);
	server_script(base, sql);
	/* functions that only tests use */
	server_script(empty_store_url,
	    "CREATE FUNCTION list_add(text, anyelement, text) RETURNS text LANGUAGE sql AS"
	    " $$SELECT CASE WHEN $2 IS NULL THEN $1 ELSE COALESCE($1 || $3, '') || $2::text END$$;"
	    "CREATE FUNCTION list_add(text, anyelement) RETURNS text LANGUAGE sql AS"
	    " $$SELECT list_add($1, $2, ',')$$;"
	    "CREATE AGGREGATE group_concat(anyelement, text) (SFUNC = list_add, STYPE = text);"
	    "CREATE AGGREGATE group_concat(anyelement) (SFUNC = list_add, STYPE = text);"
	    "CREATE FUNCTION json_array(VARIADIC \"any\") RETURNS json LANGUAGE internal STABLE AS 'json_build_array';"
	    "CREATE FUNCTION hex(bytea) RETURNS text LANGUAGE sql RETURN encode($1, 'hex');"
	    "CREATE FUNCTION printf(text, bigint) RETURNS text LANGUAGE sql RETURN"
	    " lpad($2::text, substring($1 FROM '[0-9]+')::int, '0')");
	atexit(server_drop);
	return empty_store_url;
}

static inline void server_drop(void)
{
	char sql[80];

	if (getpid() != empty_store_pid)
		return;
	snprintf(sql, sizeof(sql), "DROP DATABASE IF EXISTS test_%d WITH (FORCE)", (int)getpid());
	server_script(getenv("OUTPOST_TEST_DATABASE"), sql);
	FREE_AND_NULL(empty_store_url);
}

static inline void server_empty(void)
{
	server_script(server_database(),
	    "DO $$ DECLARE t regclass; bytes bigint; BEGIN"
	    " FOR t, bytes IN SELECT oid, pg_relation_size(oid) FROM pg_class WHERE relkind = 'r'"
	    "  AND relnamespace = 'public'::regnamespace AND relname <> 'outpost_schema' AND pg_relation_size(oid) > 0 "
	    "LOOP"
	    /* new files take longer than a few rows, and dead rows make each test slower than the last one */
	    "  EXECUTE CASE WHEN bytes > 200000 THEN 'TRUNCATE ' ELSE 'DELETE FROM ' END || t; END LOOP;"
	    " PERFORM setval(oid, 1, false) FROM pg_class WHERE relkind = 'S' AND relnamespace = "
	    "'public'::regnamespace; END $$");
}

/* ---- SQLite ---- */

static char empty_store_dir[64];

static inline int empty_store_remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)type;
	(void)f;
	return remove(path);
}

static inline void empty_store_remove(void)
{
	if (getpid() == empty_store_pid)
		nftw(empty_store_dir, empty_store_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void empty_store_on_closed(void *owner) { *(bool *)owner = true; }

static inline void empty_store_make(void)
{
	struct loop *l = loop_new();
	struct error e = {0};
	struct store *s;
	bool is_closed = false;

	snprintf(empty_store_dir, sizeof(empty_store_dir), "/tmp/outpost-empty-XXXXXX");
	assert_non_null(mkdtemp(empty_store_dir));
	empty_store_pid = getpid();
	atexit(empty_store_remove);
	if (store_open(l, &(struct store_options){.state_dir = empty_store_dir}, &s, &e))
		fail_msg("store_open: %s", e.text);
	store_close(s, empty_store_on_closed, &is_closed);
	loop_run_until(l, &is_closed);
	loop_free(l);
}

/* Puts the empty database into the folder of a store, which is created. A file that is there stays. */
static inline void empty_store_put(const char *state_dir)
{
	char from[128], to[PATH_MAX], bytes[1 << 16];
	ssize_t n;

	if (server_database()) {
		server_empty();
		return;
	}
	if (!empty_store_dir[0])
		empty_store_make();
	snprintf(from, sizeof(from), "%s/outpost.db", empty_store_dir);
	snprintf(to, sizeof(to), "%s/outpost.db", state_dir);
	mkdir(state_dir, 0700);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return;
	int in = open(from, O_RDONLY | O_CLOEXEC);
	assert_true(in >= 0);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(out, bytes, (size_t)n), n);
	assert_int_equal(n, 0);
	close(in);
	close(out);
}
