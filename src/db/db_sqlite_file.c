/* SQLite's file: its log, checkpoints, checks, space, backup. */

#include "db/db_sqlite.h"

enum {
	BACKUP_STEP_PAGES = 128,
	FREE_PAGES_KEPT = 8, /* one page of so many */
	FREE_BYTES_KEPT = 8 << 20,
	MEASURE_STEP_PAGES = 512,
	MEASURE_PAUSE_US = 1000, /* so that the disk has time for others */
};

int64_t db_user_version(struct db *d) { return db_int(d, 0, "PRAGMA user_version"); }

int db_set_user_version(struct db *d, int64_t version, struct error *e)
{
	char sql[96];

	/* 0x4f757470 is "Outp": this file is ours. */
	snprintf(sql, sizeof(sql), "PRAGMA application_id = 0x4f757470; PRAGMA user_version = %d", (int)version);
	return db_script(d, sql, e);
}

int64_t db_application_id(struct db *d) { return db_int(d, 0, "PRAGMA application_id"); }

bool db_is_empty(struct db *d) { return !db_has(d, "SELECT 1 FROM sqlite_schema LIMIT 1"); }

int64_t sqlite_file_bytes(const struct view *v)
{
	return db_int(v, 0, "PRAGMA page_count") * sqlite_of(v->db)->page_bytes;
}

/* ---- its size ---- */

int64_t sqlite_free_bytes(const struct view *v)
{
	return db_int(v, 0, "PRAGMA freelist_count") * sqlite_of(v->db)->page_bytes;
}

bool sqlite_can_shrink(const struct view *v)
{
	enum { INCREMENTAL = 2 };

	return db_int(v, 0, "PRAGMA auto_vacuum") == INCREMENTAL;
}

bool sqlite_shrink(struct txn *t)
{
	int64_t n_free = db_int(t, 0, "PRAGMA freelist_count"), n_pages = db_int(t, 0, "PRAGMA page_count");

	if (n_free * sqlite_of(t->view->db)->page_bytes < FREE_BYTES_KEPT || n_free < n_pages / FREE_PAGES_KEPT ||
	    !sqlite_can_shrink(t->view))
		return false;
	db_exec(t, "PRAGMA incremental_vacuum(32)");
	return !t->view->db->why.code;
}

static struct table_bytes *table_bytes_of(struct table_bytes **list, size_t *n, const char *name)
{
	for (size_t i = *n; i-- > 0;)
		if (strcmp((*list)[i].name, name) == 0)
			return &(*list)[i];
	struct table_bytes *t = ARRAY_PUSH(*list, *n);
	*t = (struct table_bytes){.name = xstrdup(name)};
	return t;
}

int sqlite_measure(const struct view *v, bool (*go_on)(void *owner), void *owner, struct table_bytes **ret,
    size_t *ret_n, struct error *e)
{
	struct table_bytes *trees = NULL;
	size_t n_trees = 0, n_pages = 0;
	struct rows *r = db_rows(v, "SELECT name, pgsize FROM dbstat");
	bool goes_on = true;

	while (goes_on && rows_next(r)) {
		table_bytes_of(&trees, &n_trees, rows_text(r, 0))->bytes += rows_int(r, 1);
		if (++n_pages % MEASURE_STEP_PAGES == 0) {
			usleep(MEASURE_PAUSE_US);
			goes_on = go_on(owner);
		}
	}
	rows_end(r);
	for (size_t i = 0; i < n_trees; i++) {
		char *table = db_text(v, "SELECT tbl_name FROM sqlite_schema WHERE name = ?1", V_TEXT(trees[i].name));

		table_bytes_of(ret, ret_n, table ? table : trees[i].name)->bytes += trees[i].bytes;
		FREE_ALL(table, trees[i].name);
	}
	free(trees);
	if (!goes_on)
		return error_set(e, ERR_CANCELLED, "the measurement was interrupted");
	return db_status(v);
}

int sqlite_check(struct db *d, struct error *e)
{
	char *result = db_text(d, "PRAGMA quick_check(1)");
	int rc = 0;

	if (d->why.code)
		rc = error_set(e, d->why.code, "%s", d->why.text);
	else if (!str_eq(result, "ok"))
		rc = error_set(e, ERR_CORRUPT, "%s: %s", d->path, result ? result : "unreadable");
	free(result);
	return rc;
}

/* ---- its tables ---- */

static int column_type(const char *declared)
{
	static const struct {
		const char *name;
		int type;
	} types[] = {{"INTEGER", DB_INTEGER}, {"REAL", DB_REAL}, {"TEXT", DB_TEXT}, {"BLOB", DB_BLOB}, {"", DB_GUID}};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_eq(types[i].name, declared))
			return types[i].type;
	return -1;
}

static void read_columns(struct db *d, struct db_table *t)
{
	struct rows *r = db_rows(d, "SELECT name, type, pk FROM pragma_table_info(?1) ORDER BY cid", V_TEXT(t->name));

	while (rows_next(r)) {
		struct db_column *c = ARRAY_PUSH(t->columns, t->n_columns);
		int type = column_type(rows_text(r, 1));

		*c = (struct db_column){.name = rows_dup(r, 0), .key_place = (int)rows_int(r, 2)};
		c->type = type;
		if (type < 0)
			db_fail(d, ERR_INVALID, "%s.%s has the type %s", t->name, c->name, rows_text(r, 1));
	}
	rows_end(r);
}

int db_tables(struct db *d, struct db_table **ret, size_t *ret_n, struct error *e)
{
	struct rows *r = db_rows(d,
	    "SELECT name, sql LIKE '%AUTOINCREMENT%' FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE "
	    "'sqlite\\_%' ESCAPE '\\' ORDER BY name");
	struct db_table *list = NULL;
	size_t n = 0;

	while (rows_next(r)) {
		struct db_table *t = ARRAY_PUSH(list, n);

		*t = (struct db_table){.name = rows_dup(r, 0), .has_sequence = rows_int(r, 1) != 0};
		read_columns(d, t);
	}
	rows_end(r);
	*ret_n = n;
	*ARRAY_PUSH(list, n) = (struct db_table){.name = NULL};
	*ret = list;
	return d->why.code ? error_set(e, d->why.code, "%s", d->why.text) : 0;
}

int64_t sqlite_sequence(struct db *d, const char *table)
{
	return db_int(d, 0, "SELECT seq FROM sqlite_sequence WHERE name = ?1", V_TEXT(table));
}

void sqlite_set_sequence(struct txn *t, const char *table, int64_t last_id)
{
	if (!db_exec_count(t, "UPDATE sqlite_sequence SET seq = ?2 WHERE name = ?1", V_TEXT(table), V_INT(last_id)))
		db_exec(t, "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", V_TEXT(table), V_INT(last_id));
}

void db_tables_free(struct db_table *tables)
{
	for (struct db_table *t = tables; t && t->name; t++) {
		for (size_t i = 0; i < t->n_columns; i++)
			free(t->columns[i].name);
		FREE_ALL(t->columns, t->name);
	}
	free(tables);
}

int64_t db_wal_bytes(const struct db *d) { return sqlite_of(d)->wal_pages * sqlite_of(d)->page_bytes; }

int db_checkpoint(struct db *d, enum db_checkpoint mode, int64_t *ret_left_bytes)
{
	int how = mode == CHECKPOINT_PASSIVE ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE;
	int n_log = 0, n_moved = 0;
	int rc = sqlite3_wal_checkpoint_v2(sqlite_of(d)->handle, NULL, how, &n_log, &n_moved);

	*ret_left_bytes = n_log > n_moved ? (n_log - n_moved) * sqlite_of(d)->page_bytes : 0;
	return db_code_of_sqlite(rc);
}

/* ---- backup ---- */

static int write_copy(struct db *d, const char *path, bool (*go_on)(void *owner), void *owner, struct error *e)
{
	sqlite3 *to = NULL;
	sqlite3_backup *b;
	int rc = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

	if (rc != SQLITE_OK) {
		rc = error_set(e, db_code_of_sqlite(rc), "%s: %s", path, sqlite3_errstr(rc));
	} else {
		/* No other connection opens the copy before it is complete. */
		sqlite3_exec(to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = FULL", NULL, NULL, NULL);
		b = sqlite3_backup_init(to, "main", sqlite_of(d)->handle, "main");
		rc = b ? SQLITE_OK : sqlite3_errcode(to);
		while (rc == SQLITE_OK && go_on(owner))
			rc = sqlite3_backup_step(b, BACKUP_STEP_PAGES);
		sqlite3_backup_finish(b);
		if (rc == SQLITE_OK)
			rc = error_set(e, ERR_CANCELLED, "the backup was interrupted");
		else if (rc == SQLITE_DONE)
			rc = 0;
		else
			rc = error_set(e, db_code_of_sqlite(rc), "%s", sqlite3_errmsg(to));
	}
	if (sqlite3_close(to) != SQLITE_OK && !rc)
		rc = error_set(e, ERR_IO, "%s: cannot be closed", path);
	return rc;
}

/* Gives the complete copy its name, and never replaces an existing file. */
static int publish_copy(const char *part, const char *path, struct error *e)
{
	char *folder = path_folder(path);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (link(part, path) || fd < 0 || fsync(fd))
		rc = error_set(e, access(path, F_OK) ? ERR_IO : ERR_EXISTS, "%s: %m", path);
	if (fd >= 0)
		close(fd);
	free(folder);
	return rc;
}

int sqlite_backup(const struct view *v, const char *path, bool (*go_on)(void *owner), void *owner, int64_t *ret_bytes,
    struct error *e)
{
	char *part = xasprintf("%s.part", path);
	struct stat st;
	int fd, rc = 0;

	unlink(part);
	fd = access(path, F_OK) == 0 ? -1 : open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (access(path, F_OK) == 0)
		rc = error_set(e, ERR_EXISTS, "%s: exists already", path);
	else if (fd < 0)
		rc = error_set(e, ERR_IO, "%s: %m", part);
	if (!rc)
		rc = write_copy(v->db, part, go_on, owner, e);
	if (!rc && (fsync(fd) || fstat(fd, &st)))
		rc = error_set(e, ERR_IO, "%s: %m", part);
	if (!rc) {
		*ret_bytes = st.st_size;
		rc = publish_copy(part, path, e);
	}
	if (fd >= 0)
		close(fd);
	unlink(part);
	free(part);
	return rc;
}
