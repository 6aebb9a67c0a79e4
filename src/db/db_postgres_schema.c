/* Checks a database of PostgreSQL, and creates or upgrades its tables. */
#include "db/db_postgres.h"
#include "db/nodes.h"
#include "db/schema.h"

enum { OLDEST_SERVER = 150000 };

/* Daemons that start at the same time migrate one after the other. The number is "Outs". */
#define LOCK_SCHEMA "SELECT pg_advisory_xact_lock(1333097587)"

/* Comparisons of names must be the same as in SQLite and in C: by bytes. */
static int check_settings(struct db *d, struct error *e)
{
	struct rows *r =
	    db_rows(d, "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),"
		       " 'B' < 'a' AND 'Z' < '_' AND lower('Ä') = 'Ä', current_setting('fsync') = 'on'"
		       " AND current_setting('full_page_writes') = 'on',"
		       " COALESCE(current_setting('outpost.may_lose_rows', true), '') = 'on', current_database(),"
		       " COALESCE(current_schema(), 'no schema')");
	char *name = NULL;
	int rc = 0;

	if (rows_next(r)) {
		name = rows_dup(r, 5);
		if (rows_int(r, 0) < OLDEST_SERVER)
			rc = error_set(e, ERR_INVALID, "%s: the server has version %lld, and Outpost needs 15 or later",
			    d->path, (long long)rows_int(r, 0) / 10000);
		else if (strcmp(rows_text(r, 1), "UTF8") != 0)
			rc = error_set(e, ERR_INVALID,
			    "%s: database %s has the encoding %s: create it with ENCODING 'UTF8'", d->path, name,
			    rows_text(r, 1));
		else if (!rows_int(r, 2))
			rc = error_set(e, ERR_INVALID,
			    "%s: database %s compares text by the rules of a language: create it with LOCALE 'C' and "
			    "TEMPLATE template0",
			    d->path, name);
		else if (strcmp(rows_text(r, 6), "public") != 0)
			rc = error_set(e, ERR_INVALID,
			    "%s: new tables would be in %s instead of the schema public: see search_path of the role "
			    "and of database %s",
			    d->path, rows_text(r, 6), name);
		else if (!rows_int(r, 3) && !rows_int(r, 4))
			rc = error_set(e, ERR_INVALID,
			    "%s: the server may lose rows that it acknowledged: turn fsync and full_page_writes on",
			    d->path);
	}
	rows_end(r);
	free(name);
	return rc ? rc : db_status(d) ? error_set(e, db_status(d), "%s", db_why(d)->text) : 0;
}

static bool has_version(struct db *d)
{
	return db_has(
	    d, "SELECT 1 FROM pg_class WHERE relname = 'outpost_schema' AND relnamespace = 'public'::regnamespace");
}

int64_t postgres_version(struct db *d)
{
	return has_version(d) ? db_int(d, 0, "SELECT version FROM outpost_schema") : 0;
}

int postgres_set_sequences(struct db *d, struct error *e)
{
	return db_script(d,
	    "DO $$ DECLARE c record; BEGIN"
	    " FOR c IN SELECT r.oid::regclass::text AS t, a.attname::text AS a FROM pg_attribute a JOIN pg_class r ON "
	    "r.oid = a.attrelid"
	    " WHERE a.attidentity <> '' AND r.relnamespace = 'public'::regnamespace LOOP"
	    " EXECUTE format('SELECT setval(pg_get_serial_sequence(%L, %L), (SELECT COALESCE(MAX(%I), 0) + 1 FROM %s), "
	    "false)',"
	    " c.t, c.a, c.a, c.t); END LOOP; END $$",
	    e);
}

int64_t postgres_sequence(struct db *d, const char *table)
{
	return db_int(d, 0,
	    "SELECT last_value FROM pg_sequences WHERE schemaname = 'public' AND sequencename = ?1 || '_id_seq'",
	    V_TEXT(table));
}

void postgres_set_sequence(struct txn *t, const char *table, int64_t last_id)
{
	db_exec_int(t, 0, "SELECT setval(pg_get_serial_sequence(?1, 'id'), ?2)", V_TEXT(table), V_INT(last_id));
}

/* A standby that takes over lacks the commits that it has not confirmed. */
static void warn_of_standby(struct db *d)
{
	if (db_has(
		d, "SELECT 1 FROM pg_stat_replication WHERE current_setting('synchronous_standby_names') = '' LIMIT 1"))
		log_event(LOG_WARN, "standby_asynchronous", LOG_S("database", d->path),
		    LOG_S("why",
			"the last webhooks may be lost when the standby takes over: set synchronous_standby_names"));
}

/* Before the tables are created: the database must be empty, and the role must have the right to create them. */
static int check_is_ours(struct db *d, struct error *e)
{
	struct rows *r = db_rows(d,
	    "SELECT current_database(), current_user, has_schema_privilege('public', 'CREATE'),"
	    " EXISTS (SELECT 1 FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace)");
	int rc = 0;

	if (rows_next(r) && rows_int(r, 3))
		rc = error_set(e, ERR_CORRUPT,
		    "%s: database %s has tables of another program: give Outpost a database of its own", d->path,
		    rows_text(r, 0));
	else if (!db_status(d) && !rows_int(r, 2))
		rc = error_set(e, ERR_DENIED,
		    "%s: the role %s may not create tables in database %s: make it the owner of the database", d->path,
		    rows_text(r, 1), rows_text(r, 0));
	rows_end(r);
	return db_status(d) ? error_set(e, db_status(d), "%s", db_why(d)->text) : rc;
}

/* In a transaction. The version of the tables, 0: there are none. */
static int read_version(struct db *d, int64_t *ret, struct error *e)
{
	struct rows *r;
	int64_t readable_from = 0;

	*ret = 0;
	if (!has_version(d))
		return db_status(d) ? error_set(e, db_status(d), "%s", db_why(d)->text) : check_is_ours(d, e);
	r = db_rows(d, "SELECT version, readable_from FROM outpost_schema");
	if (rows_next(r)) {
		*ret = rows_int(r, 0);
		readable_from = rows_int(r, 1);
	}
	rows_end(r);
	if (db_status(d))
		return error_set(e, db_status(d), "%s", db_why(d)->text);
	if (readable_from > SCHEMA_VERSION)
		return error_set(e, ERR_TOO_NEW,
		    "%s: has schema version %d, which programs from version %d on know, and this one knows %d: run the "
		    "newer outpostd",
		    d->path, (int)*ret, (int)readable_from, SCHEMA_VERSION);
	if (*ret < POSTGRES_FIRST_VERSION)
		return error_set(e, ERR_CORRUPT, "%s: has no valid schema version", d->path);
	return 0;
}

int postgres_check_version(struct db *d, struct error *e)
{
	int64_t version;

	return read_version(d, &version, e);
}

static int write_version(struct db *d, struct error *e)
{
	db_exec(db_txn(d), "DELETE FROM outpost_schema");
	db_exec(db_txn(d), "INSERT INTO outpost_schema (version, readable_from) VALUES (?1, ?2)", V_INT(SCHEMA_VERSION),
	    V_INT(POSTGRES_READABLE_FROM));
	nodes_give_up_older(db_txn(d), POSTGRES_READABLE_FROM);
	return db_status(d) ? error_set(e, db_status(d), "%s", db_why(d)->text) : 0;
}

static int migrate_locked(struct db *d, struct error *e)
{
	int64_t version;
	int rc;

	/* Daemons that start together wait for the one that makes or changes the tables. */
	rc = db_script(d, "SET LOCAL lock_timeout = '60s'", e);
	if (rc)
		return rc;
	db_int(d, 0, LOCK_SCHEMA);
	rc = read_version(d, &version, e);
	if (rc || version >= SCHEMA_VERSION)
		return rc;
	db_turn(d); /* no transaction of another daemon has used some tables, and waits for others */
	if (version == 0)
		rc = db_script(d, POSTGRES_SCHEMA, e);
	for (int64_t to = version + 1; !rc && version && to <= SCHEMA_VERSION; to++)
		if (POSTGRES_STEPS[to])
			rc = db_script(d, POSTGRES_STEPS[to], e);
	return rc ? rc : write_version(d, e);
}

int postgres_migrate(struct db *d, struct error *e)
{
	int rc = check_settings(d, e);

	if (!rc && db_begin(d, DB_WRITER) == 0)
		rc = migrate_locked(d, e);
	if (!rc && (db_status(d) || db_commit(d)))
		rc = error_set(e, db_status(d), "%s", db_why(d)->text);
	if (rc)
		db_rollback(d);
	if (!rc)
		warn_of_standby(d);
	db_forget_failure(d);
	return rc;
}
