/* Connections and statements on SQLite. Only this file, db_sqlite_file.c and packed_*.c know SQLite's API and its result codes. */
#include "db/db_sqlite.h"

#include <pthread.h>

#include "db/key.h"
#include "db/schema.h"

enum { BUSY_TIMEOUT_MS = 2000 };

int db_code_of_sqlite(int result)
{
	static const struct {
		int sqlite, err;
	} codes[] = {
	    {SQLITE_OK, 0}, {SQLITE_FULL, ERR_FULL}, {SQLITE_CORRUPT, ERR_CORRUPT}, {SQLITE_NOTADB, ERR_CORRUPT},
	    {SQLITE_BUSY, ERR_BUSY}, {SQLITE_LOCKED, ERR_BUSY}, {SQLITE_TOOBIG, ERR_TOO_BIG},
	    {SQLITE_CONSTRAINT, ERR_CONFLICT}, {SQLITE_INTERRUPT, ERR_CANCELLED}, {SQLITE_CANTOPEN, ERR_DENIED},
	    {SQLITE_READONLY, ERR_DENIED}, {SQLITE_PERM, ERR_DENIED},
	    {SQLITE_FORMAT, ERR_INVALID}, /* packed_tables.c: the bytes of one row */
	};

	if ((result & 0xff) == SQLITE_NOMEM)
		abort(); /* as everywhere else */
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (codes[i].sqlite == (result & 0xff))
			return codes[i].err;
	return ERR_IO;
}

int sqlite_stick(struct db *d, int result)
{
	sqlite3 *handle = sqlite_of(d)->handle;
	sqlite3_file *log = NULL;
	int err;

	if ((result & 0xff) != SQLITE_IOERR)
		return error_set(&d->why, db_code_of_sqlite(result), "%s: %s", d->path, sqlite3_errmsg(handle));
	/* The system's code for the file, or for the log beside it, says more than "disk I/O error". A quota or a limit on
	 * the size of files counts as a full disk. */
	err = sqlite3_system_errno(handle);
	if (!err)
		sqlite3_file_control(handle, "main", SQLITE_FCNTL_LAST_ERRNO, &err);
	if (!err)
		sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
	if (log && log->pMethods)
		log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &err);
	return error_set(&d->why, err == EDQUOT || err == EFBIG || err == ENOSPC ? ERR_FULL : ERR_IO, "%s: %s (%s)",
	    d->path, sqlite3_errmsg(handle), strerror(err));
}

static int on_commit_to_log(void *owner, sqlite3 *handle, const char *name, int n_pages)
{
	struct sqlite *d = owner;

	(void)handle;
	(void)name;
	d->wal_pages = n_pages;
	return SQLITE_OK;
}

/* ---- SQLite's memory ----
 *
 * A savepoint keeps a copy of each page that changes, in pieces of 1 KiB. Each operation of the writer allocates and frees
 * hundreds of them, more than the C library keeps for a thread, so they are kept here. */

enum { PIECE_LEAST = 512, PIECE_BYTES = 1040, PIECES_MAX = 256 };

static sqlite3_mem_methods library_memory;
static int piece_size; /* the size that library_memory allocates for PIECE_BYTES */
static _Thread_local struct kept_pieces {
	struct kept_piece {
		struct kept_piece *next;
	} * first;
	int n;
} kept_pieces;

static bool is_piece(int bytes) { return bytes > PIECE_LEAST && bytes <= PIECE_BYTES; }

static void *sqlite_malloc(int bytes)
{
	struct kept_piece *piece = kept_pieces.first;

	if (!is_piece(bytes))
		return library_memory.xMalloc(bytes);
	if (!piece)
		return library_memory.xMalloc(PIECE_BYTES);
	kept_pieces.first = piece->next;
	kept_pieces.n--;
	return piece;
}

static void sqlite_free(void *p)
{
	struct kept_piece *piece = p;

	if (!p || kept_pieces.n >= PIECES_MAX || library_memory.xSize(p) != piece_size) {
		library_memory.xFree(p);
		return;
	}
	piece->next = kept_pieces.first;
	kept_pieces.first = piece;
	kept_pieces.n++;
}

static void *sqlite_realloc(void *p, int bytes)
{
	return library_memory.xRealloc(p, is_piece(bytes) ? PIECE_BYTES : bytes);
}

static int sqlite_roundup(int bytes) { return is_piece(bytes) ? PIECE_BYTES : library_memory.xRoundup(bytes); }

/* Before the thread ends. */
static void free_kept_pieces(void)
{
	struct kept_piece *piece;

	while ((piece = kept_pieces.first) != NULL) {
		kept_pieces.first = piece->next;
		library_memory.xFree(piece);
	}
	kept_pieces.n = 0;
}

static void configure_sqlite(void)
{
	sqlite3_mem_methods memory;
	void *piece;

	/* Saves a mutex for each allocation; the figures are not used. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &library_memory) != SQLITE_OK)
		return; /* a test has used SQLite before */
	piece = library_memory.xMalloc(PIECE_BYTES);
	piece_size = piece ? library_memory.xSize(piece) : 0;
	library_memory.xFree(piece);
	memory = library_memory;
	memory.xMalloc = sqlite_malloc;
	memory.xFree = sqlite_free;
	memory.xRealloc = sqlite_realloc;
	memory.xRoundup = sqlite_roundup;
	sqlite3_config(SQLITE_CONFIG_MALLOC, &memory);
}

/* page_size: for a new file. A commit writes each changed page to the log, so a webhook that comes alone costs one page for
 * each b-tree that it touches. cache_size: KiB. A reader keeps the pages of the file that one answer needs, because some
 * answers would read 2,500 times otherwise, and each read copies a page from the system's cache. */
static const char *const SETTINGS[] = {
    [DB_WRITER] = ("PRAGMA page_size = 8192;PRAGMA journal_mode = WAL;PRAGMA synchronous = FULL;"
		   "PRAGMA wal_autocheckpoint = 0;PRAGMA journal_size_limit = 16777216;PRAGMA cache_size = -4096;"
		   "PRAGMA temp_store = MEMORY;PRAGMA trusted_schema = OFF;"),
    [DB_CHECKPOINTER] = "PRAGMA synchronous = FULL;PRAGMA wal_autocheckpoint = 0;PRAGMA cache_size = -64;",
    [DB_READER] = ("PRAGMA query_only = ON;PRAGMA cache_size = -4096;PRAGMA temp_store = MEMORY;"
		   "PRAGMA trusted_schema = OFF;"),
};

static int sqlite_open(
    const char *path, const struct secret *password, enum db_use use, struct db **ret, struct error *e)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
		    (use == DB_READER ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
	struct sqlite *d;
	struct stat st = {.st_size = 1};
	int rc, fd;

	(void)password;
	if (use == DB_WRITER) {
		/* SQLite would create it with another mode; only the owner may read it. */
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || fstat(fd, &st)) {
			rc = error_set(e, ERR_IO, "%s: %m", path);
			if (fd >= 0)
				close(fd);
			return rc;
		}
		close(fd);
	}
	pthread_once(&once, configure_sqlite);
	d = xcalloc(1, sizeof(*d));
	db_init(&d->db, &sqlite_driver, path);
	d->no_rows.rows.db = &d->db;
	d->db.no_rows = &d->no_rows.rows;
	*ret = &d->db;
	rc = sqlite3_open_v2(path, &d->handle, flags, NULL);
	if (rc != SQLITE_OK)
		return error_set(e, db_code_of_sqlite(rc), "%s: %s", path, sqlite3_errstr(rc));
	sqlite3_busy_timeout(d->handle, BUSY_TIMEOUT_MS);
	/* A plan never depends on the bound values. Otherwise SQLite plans some statements again for every new value, which took a
	 * fifth of the writer's time. */
	sqlite3_db_config(d->handle, SQLITE_DBCONFIG_ENABLE_QPSG, 1, NULL);
	/* A new file can shrink (db_shrink()). It has to be known before its first page is written. */
	rc = st.st_size == 0 ? db_script(&d->db, "PRAGMA auto_vacuum = INCREMENTAL", e) : 0;
	if (!rc)
		rc = db_script(&d->db, SETTINGS[use], e);
	if (!rc)
		rc = packed_tables_add(d, e);
	if (use == DB_WRITER) /* after the settings: wal_autocheckpoint takes the hook away */
		sqlite3_wal_hook(d->handle, on_commit_to_log, d);
	if (!rc) {
		d->page_bytes = db_int(&d->db, 0, "PRAGMA page_size");
		rc = d->db.why.code ? error_set(e, d->db.why.code, "%s", d->db.why.text) : 0;
	}
	return rc;
}

static void sqlite_close(struct db *db)
{
	struct sqlite *d = sqlite_of(db);

	sqlite3_close(d->handle);
	free_kept_pieces();
	free(d);
}

/* ---- statements ---- */

static struct sqlite_rows *statement_of(struct rows *r) { return CONTAINER_OF(r, struct sqlite_rows, rows); }

static sqlite3_stmt *stmt_of(const struct rows *r) { return ((const struct sqlite_rows *)r)->stmt; }

static struct rows *sqlite_prepare(struct db *d, const char *sql)
{
	struct sqlite_rows *r;
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v3(sqlite_of(d)->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL);

	if (rc != SQLITE_OK) {
		sqlite_stick(d, rc);
		return NULL;
	}
	r = xcalloc(1, sizeof(*r));
	r->stmt = stmt;
	return &r->rows;
}

/* text_life: SQLITE_STATIC when the values live until the statement ends; otherwise SQLite copies them. */
static int bind_value(sqlite3_stmt *stmt, int at, const struct value *v, sqlite3_destructor_type text_life)
{
	switch (v->type) {
	case VALUE_INT:
		return sqlite3_bind_int64(stmt, at, v->number);
	case VALUE_REAL:
		return sqlite3_bind_double(stmt, at, v->real);
	case VALUE_TEXT:
		return sqlite3_bind_text(stmt, at, v->p, -1, text_life);
	case VALUE_BLOB:
		return sqlite3_bind_blob64(stmt, at, v->p, v->n, SQLITE_STATIC);
	case VALUE_GUID: {
		const struct guid_key *k = v->p;

		return k->n ? sqlite3_bind_blob(stmt, at, k->bytes, k->n, text_life)
			    : sqlite3_bind_text(stmt, at, k->text, -1, text_life);
	}
	case VALUE_NULL:
	case VALUE_NULL_INT:
	case VALUE_NULL_TEXT:
	case VALUE_ARRAY:
	case VALUE_END:
		break;
	}
	return sqlite3_bind_null(stmt, at);
}

static bool sqlite_bind(struct rows *r, const struct value *values, bool is_static)
{
	sqlite3_stmt *stmt = stmt_of(r);
	int n = 0;

	assert(strcmp(sqlite3_sql(stmt), r->sql) == 0); /* it outlives the connection */
	for (; values[n].type != VALUE_END; n++) {
		int rc = bind_value(stmt, n + 1, &values[n], is_static ? SQLITE_STATIC : SQLITE_TRANSIENT);

		if (rc != SQLITE_OK) {
			sqlite_stick(r->db, rc);
			return false;
		}
	}
	assert(n == sqlite3_bind_parameter_count(stmt));
	return true;
}

static bool sqlite_step(struct rows *r)
{
	int rc = sqlite3_step(stmt_of(r));

	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		sqlite_stick(r->db, rc);
	return rc == SQLITE_ROW;
}

static void sqlite_reset(struct rows *r) { sqlite3_reset(stmt_of(r)); }

static void sqlite_finalize(struct rows *r)
{
	sqlite3_finalize(stmt_of(r));
	free(statement_of(r));
}

static bool sqlite_may_write(const struct rows *r) { return !sqlite3_stmt_readonly(stmt_of(r)); }

static int64_t sqlite_last_id(struct txn *t) { return sqlite3_last_insert_rowid(sqlite_of(t->view->db)->handle); }

static int64_t sqlite_changes(struct db *d) { return sqlite3_changes64(sqlite_of(d)->handle); }

static int64_t sqlite_total_changes(const struct db *d) { return sqlite3_total_changes64(sqlite_of(d)->handle); }

static int sqlite_n_columns(const struct rows *r) { return stmt_of(r) ? sqlite3_column_count(stmt_of(r)) : 0; }

static int64_t sqlite_int(const struct rows *r, int column) { return sqlite3_column_int64(stmt_of(r), column); }

static double sqlite_real(const struct rows *r, int column) { return sqlite3_column_double(stmt_of(r), column); }

static const char *sqlite_text(const struct rows *r, int column)
{
	return (const char *)sqlite3_column_text(stmt_of(r), column);
}

static const void *sqlite_blob(const struct rows *r, int column, size_t *ret_bytes)
{
	const void *p = sqlite3_column_blob(stmt_of(r), column);

	*ret_bytes = (size_t)sqlite3_column_bytes(stmt_of(r), column);
	return p;
}

static bool sqlite_is_null(const struct rows *r, int column)
{
	return sqlite3_column_type(stmt_of(r), column) == SQLITE_NULL;
}

static bool sqlite_is_blob(const struct rows *r, int column)
{
	return sqlite3_column_type(stmt_of(r), column) == SQLITE_BLOB;
}

/* ---- transactions ---- */

static void sqlite_run(struct db *d, const char *sql) { db_exec_count_values(&d->txn, sql, VALUES()); }

static int sqlite_script(struct db *d, const char *sql, struct error *e)
{
	int rc = sqlite3_exec(sqlite_of(d)->handle, sql, NULL, NULL, NULL);

	if (rc == SQLITE_OK)
		return 0;
	return error_set(e, db_code_of_sqlite(rc), "%s: %s", d->path, sqlite3_errmsg(sqlite_of(d)->handle));
}

static bool sqlite_is_in_transaction(const struct db *d) { return !sqlite3_get_autocommit(sqlite_of(d)->handle); }

/* The lock of the state directory keeps a second daemon out (store.c). */
static int sqlite_lock(struct db *d, bool with_others, struct error *e)
{
	(void)with_others;
	(void)d;
	(void)e;
	return 0;
}

static int sqlite_migrate(struct db *d, struct error *e) { return schema_apply(d, d->path, e); }

const struct db_driver sqlite_driver = {
    .open = sqlite_open,
    .close = sqlite_close,
    .prepare = sqlite_prepare,
    .bind = sqlite_bind,
    .step = sqlite_step,
    .reset = sqlite_reset,
    .finalize = sqlite_finalize,
    .may_write = sqlite_may_write,
    .changes = sqlite_changes,
    .total_changes = sqlite_total_changes,
    .last_id = sqlite_last_id,
    .n_columns = sqlite_n_columns,
    .column_int = sqlite_int,
    .column_real = sqlite_real,
    .column_text = sqlite_text,
    .column_blob = sqlite_blob,
    .is_null = sqlite_is_null,
    .is_blob = sqlite_is_blob,
    .begin = {[DB_WRITER] = "BEGIN IMMEDIATE", [DB_CHECKPOINTER] = "BEGIN", [DB_READER] = "BEGIN"},
    .run = sqlite_run,
    .script = sqlite_script,
    .is_in_transaction = sqlite_is_in_transaction,
    .lock = sqlite_lock,
    .migrate = sqlite_migrate,
    .survives_failure = true,
    .batch_max_ops = 512,
    .file_bytes = sqlite_file_bytes,
    .free_bytes = sqlite_free_bytes,
    .can_shrink = sqlite_can_shrink,
    .shrink = sqlite_shrink,
    .measure = sqlite_measure,
    .version = db_user_version,
    .sequence = sqlite_sequence,
    .set_sequence = sqlite_set_sequence,
    .check = sqlite_check,
    .backup = sqlite_backup,
};
