/* Connections and statements on SQLite. Only this file and db_sqlite_file.c know SQLite's API and its result codes. */
#include "db/db_sqlite.h"

#include <pthread.h>

enum { BUSY_TIMEOUT_MS = 2000, BODY_MAX_BYTES = 64 << 20 };

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

int db_stick(struct db *d, int result)
{
	sqlite3_file *log = NULL;
	int err;

	if ((result & 0xff) != SQLITE_IOERR)
		return error_set(&d->why, db_code_of_sqlite(result), "%s: %s", d->path, sqlite3_errmsg(d->handle));
	/* The system's code for the file, or for the log beside it, says more than "disk I/O error". A quota or a limit on
	 * the size of files counts as a full disk. */
	err = sqlite3_system_errno(d->handle);
	if (!err)
		sqlite3_file_control(d->handle, "main", SQLITE_FCNTL_LAST_ERRNO, &err);
	if (!err)
		sqlite3_file_control(d->handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
	if (log && log->pMethods)
		log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &err);
	return error_set(&d->why, err == EDQUOT || err == EFBIG || err == ENOSPC ? ERR_FULL : ERR_IO, "%s: %s (%s)",
	    d->path, sqlite3_errmsg(d->handle), strerror(err));
}

static int on_commit_to_log(void *owner, sqlite3 *handle, const char *name, int n_pages)
{
	struct db *d = owner;

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
 * each b-tree that it touches. cache_size: KiB, small because the file is in the system's cache anyway. */
static const char *const SETTINGS[] = {
    [DB_WRITER] = ("PRAGMA page_size = 8192;PRAGMA journal_mode = WAL;PRAGMA synchronous = FULL;"
		   "PRAGMA wal_autocheckpoint = 0;PRAGMA journal_size_limit = 16777216;PRAGMA cache_size = -4096;"
		   "PRAGMA temp_store = MEMORY;PRAGMA trusted_schema = OFF;"),
    [DB_CHECKPOINTER] = "PRAGMA synchronous = FULL;PRAGMA wal_autocheckpoint = 0;PRAGMA cache_size = -64;",
    [DB_READER] = ("PRAGMA query_only = ON;PRAGMA cache_size = -512;PRAGMA temp_store = MEMORY;"
		   "PRAGMA trusted_schema = OFF;"),
};

int db_open(const char *path, enum db_use use, struct db **ret, struct error *e)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
		    (use == DB_READER ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
	struct db *d;
	struct stat st = {.st_size = 1};
	int rc, fd;

	*ret = NULL;
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
	d->path = xstrdup(path);
	d->view.db = d->no_rows.db = d;
	d->txn.view = &d->view;
	buf_init(&d->scratch, BODY_MAX_BYTES);
	rc = sqlite3_open_v2(path, &d->handle, flags, NULL);
	if (rc != SQLITE_OK) {
		rc = error_set(e, db_code_of_sqlite(rc), "%s: %s", path, sqlite3_errstr(rc));
		db_close(d);
		return rc;
	}
	sqlite3_busy_timeout(d->handle, BUSY_TIMEOUT_MS);
	/* A plan never depends on the bound values. Otherwise SQLite plans some statements again for every new value, which took a
	 * fifth of the writer's time. */
	sqlite3_db_config(d->handle, SQLITE_DBCONFIG_ENABLE_QPSG, 1, NULL);
	/* A new file can shrink (db_shrink()). It has to be known before its first page is written. */
	rc = st.st_size == 0 ? db_script(d, "PRAGMA auto_vacuum = INCREMENTAL", e) : 0;
	if (!rc)
		rc = db_script(d, SETTINGS[use], e);
	if (!rc)
		rc = packed_tables_add(d, e);
	if (use == DB_WRITER) /* after the settings: wal_autocheckpoint takes the hook away */
		sqlite3_wal_hook(d->handle, on_commit_to_log, d);
	if (!rc) {
		d->page_bytes = db_int(d, 0, "PRAGMA page_size");
		rc = d->why.code ? error_set(e, d->why.code, "%s", d->why.text) : 0;
	}
	if (rc) {
		db_close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

void db_close(struct db *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < STATEMENT_BUCKETS; i++) {
		while (d->buckets[i]) {
			struct rows *r = d->buckets[i];

			d->buckets[i] = r->next;
			sqlite3_finalize(r->stmt);
			free(r);
		}
	}
	sqlite3_close(d->handle);
	free_kept_pieces();
	test_lists_free(d->lists);
	compressor_free(d->compressor);
	body_bases_free(d->bases);
	buf_release(&d->scratch);
	free(d->path);
	free(d);
}

const struct view *db_view(struct db *d) { return &d->view; }

struct txn *db_txn(struct db *d) { return &d->txn; }

/* ---- statements ---- */

struct value value_text(const char *s) { return (struct value){.type = s ? VALUE_TEXT : VALUE_NULL, .p = s}; }

static struct rows *prepare_once(struct db *d, const char *sql)
{
	struct rows **bucket = &d->buckets[((uintptr_t)sql >> 3) * UINT64_C(0x9E3779B97F4A7C15) >> 57];
	struct rows *r;
	sqlite3_stmt *stmt;
	int rc;

	for (r = *bucket; r; r = r->next)
		if (r->sql == sql) {
			assert(strcmp(sqlite3_sql(r->stmt), sql) == 0); /* it outlives d */
			return r;
		}
	rc = sqlite3_prepare_v3(d->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL);
	if (rc != SQLITE_OK) {
		db_stick(d, rc);
		return &d->no_rows;
	}
	r = xcalloc(1, sizeof(*r));
	*r = (struct rows){.db = d, .sql = sql, .stmt = stmt, .next = *bucket};
	*bucket = r;
	return r;
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
	case VALUE_NULL:
	case VALUE_END:
		break;
	}
	return sqlite3_bind_null(stmt, at);
}

static struct rows *open_rows(
    struct db *d, const char *sql, const struct value *values, sqlite3_destructor_type text_life)
{
	struct rows *r;
	int n = 0;

	if (d->why.code)
		return &d->no_rows;
	r = prepare_once(d, sql);
	if (!r->stmt)
		return r;
	assert(!r->is_open);
	for (; values[n].type != VALUE_END; n++) {
		int rc = bind_value(r->stmt, n + 1, &values[n], text_life);

		if (rc != SQLITE_OK) {
			db_stick(d, rc);
			return &d->no_rows;
		}
	}
	assert(n == sqlite3_bind_parameter_count(r->stmt));
	r->is_open = true;
	return r;
}

/* A statement that changes rows needs a struct txn. */
static struct rows *open_read(
    const struct view *v, const char *sql, const struct value *values, sqlite3_destructor_type text_life)
{
	struct rows *r = open_rows(v->db, sql, values, text_life);

	assert(!r->stmt || sqlite3_stmt_readonly(r->stmt));
	return r;
}

struct rows *db_rows_values(const struct view *v, const char *sql, const struct value *values)
{
	return open_read(v, sql, values, SQLITE_TRANSIENT);
}

struct rows *db_exec_rows_values(struct txn *t, const char *sql, const struct value *values)
{
	return open_rows(t->view->db, sql, values, SQLITE_TRANSIENT);
}

bool rows_next(struct rows *r)
{
	int rc;

	if (!r->is_open)
		return false;
	rc = sqlite3_step(r->stmt);
	if (rc == SQLITE_ROW) {
		r->column = 1;
		return true;
	}
	if (rc != SQLITE_DONE)
		db_stick(r->db, rc);
	rows_end(r);
	return false;
}

bool rows_have_failed(const struct rows *r) { return r->db->why.code != 0; }

int rows_next_column(struct rows *r) { return r->column++; }

void rows_end(struct rows *r)
{
	if (!r->is_open)
		return;
	sqlite3_reset(r->stmt);
	r->is_open = false;
}

int64_t db_exec_values(struct txn *t, const char *sql, const struct value *values)
{
	struct db *d = t->view->db;
	struct rows *r = open_rows(d, sql, values, SQLITE_STATIC);

	while (rows_next(r))
		continue;
	return d->why.code ? 0 : sqlite3_changes64(d->handle);
}

int64_t db_insert_values(struct txn *t, const char *sql, const struct value *values)
{
	return db_exec_values(t, sql, values) ? sqlite3_last_insert_rowid(t->view->db->handle) : 0;
}

static int64_t first_int(struct rows *r, int64_t fallback)
{
	int64_t got = fallback;

	if (rows_next(r) && !rows_is_null(r, 0))
		got = rows_int(r, 0);
	rows_end(r);
	return got;
}

int64_t db_int_values(const struct view *v, int64_t fallback, const char *sql, const struct value *values)
{
	return first_int(open_read(v, sql, values, SQLITE_STATIC), fallback);
}

int64_t db_exec_int_values(struct txn *t, int64_t fallback, const char *sql, const struct value *values)
{
	return first_int(open_rows(t->view->db, sql, values, SQLITE_STATIC), fallback);
}

char *db_text_values(const struct view *v, const char *sql, const struct value *values)
{
	struct rows *r = db_rows_values(v, sql, values);
	char *got = rows_next(r) ? rows_dup(r, 0) : NULL;

	rows_end(r);
	return got;
}

int64_t rows_int(const struct rows *r, int column) { return sqlite3_column_int64(r->stmt, column); }

double rows_real(const struct rows *r, int column) { return sqlite3_column_double(r->stmt, column); }

int rows_n_columns(const struct rows *r) { return r->stmt ? sqlite3_column_count(r->stmt) : 0; }

bool rows_is_null(const struct rows *r, int column) { return sqlite3_column_type(r->stmt, column) == SQLITE_NULL; }

bool rows_is_blob(const struct rows *r, int column) { return sqlite3_column_type(r->stmt, column) == SQLITE_BLOB; }

const char *rows_text(const struct rows *r, int column)
{
	const char *s = (const char *)sqlite3_column_text(r->stmt, column);

	return s ? s : "";
}

char *rows_dup(const struct rows *r, int column)
{
	return xstrdup_or_null((const char *)sqlite3_column_text(r->stmt, column));
}

const void *rows_blob(const struct rows *r, int column, size_t *ret_bytes)
{
	const void *p = sqlite3_column_blob(r->stmt, column);

	*ret_bytes = (size_t)sqlite3_column_bytes(r->stmt, column);
	return p;
}

/* ---- failures ---- */

int view_status(const struct view *v) { return v->db->why.code; }

const struct error *view_why(const struct view *v) { return &v->db->why; }

int view_fail(const struct view *v, int code, const char *fmt, ...)
{
	struct db *d = v->db;
	char text[sizeof(d->why.text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	error_set(&d->why, code, "%s", text);
	return d->why.code;
}

void db_forget_failure(struct db *d)
{
	d->why = (struct error){0};
	for (size_t i = 0; i < STATEMENT_BUCKETS; i++)
		for (struct rows *r = d->buckets[i]; r; r = r->next)
			rows_end(r);
}
