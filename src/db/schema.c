/* Brings a database file to the version of this program. It never goes backwards, and it changes nothing in a file that is
 * not Outpost's. */
#include "db/schema.h"

enum {
	APPLICATION_ID = 0x4f757470,
	SMALL_FILE_BYTES = 8 << 20, /* checked whole at each start: some 10 ms */
};

static int refuse_newer(const char *path, int64_t version, struct error *e)
{
	return error_set(e, ERR_TOO_NEW,
	    "%s: has schema version %d, this program knows up to %d: run the newer outpostd", path, (int)version,
	    SCHEMA_VERSION);
}

int schema_examine(const char *path, struct error *e)
{
	int64_t version, owner;
	struct stat st;
	struct db *d;
	bool is_empty;
	int rc;

	if (stat(path, &st) || st.st_size == 0)
		return 0;
	rc = db_open(path, DB_READER, &d, e);
	if (rc)
		return rc;
	version = db_user_version(d);
	owner = db_application_id(d);
	is_empty = db_is_empty(d);
	if (db_status(d))
		rc = error_set(e, db_status(d), "%s", db_why(d)->text);
	else if (!is_empty && owner != APPLICATION_ID)
		rc = error_set(e, ERR_CORRUPT, "%s: is not a database of Outpost", path);
	else if (version > SCHEMA_VERSION)
		rc = refuse_newer(path, version, e);
	else if (version < 0)
		rc = error_set(e, ERR_CORRUPT, "%s: has no valid schema version", path);
	else if (db_file_bytes(db_view(d)) <= SMALL_FILE_BYTES)
		rc = db_check(d, e);
	db_close(d);
	return rc;
}

int schema_apply(struct db *d, const char *path, struct error *e)
{
	int64_t version = db_user_version(d);
	int rc = db_status(d);

	if (rc)
		return error_set(e, rc, "%s", db_why(d)->text);
	if (version > SCHEMA_VERSION)
		return refuse_newer(path, version, e);
	for (; !rc && version < SCHEMA_VERSION; version++) {
		if (db_begin(d, DB_WRITER) == 0)
			rc = db_script(d, SCHEMA_STEPS[version], e);
		if (!rc && !db_status(d))
			rc = db_set_user_version(d, version + 1, e);
		if (!rc && (db_status(d) || db_commit(d)))
			rc = error_set(e, db_status(d), "%s", db_why(d)->text);
		if (rc)
			db_rollback(d);
		db_forget_failure(d);
	}
	return rc;
}
