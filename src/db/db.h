/* One connection to the database, owned by one thread, and the statements on it. Only db_sqlite*.c and db_postgres*.c know
 * which database it is. Three types say what a function may do with the connection, and the compiler checks this:
 *   const struct view *  reads. A query of a reader has it.
 *   struct txn *         also writes. An operation has it, inside the writer's transaction; `->view` reads what it wrote.
 *   struct db *          opens, begins, commits, migrates. Only db/ and the repairs at the start have it.
 *
 * Thread: the connection's.
 *
 * The first failure sticks to the connection: later statements do nothing (no rows, no changes), so an operation checks
 * once, at its end, and is rolled back then.
 *
 * SQL texts are string literals: their address is the key of the prepared statement. Values are bound, never printed into
 * the text. */
#pragma once

struct db;
struct view;
struct txn {
	const struct view *view;
};
struct rows;

/* They live as long as the connection. For the threads of the store, the repairs at the start, and tests. */
const struct view *db_view(struct db *d);
struct txn *db_txn(struct db *d);
/* The macros that read accept each of the three types. */
#define DB_VIEW(d) _Generic((d), const struct view * : view_itself, struct txn * : txn_view, struct db * : db_view)(d)
static inline const struct view *view_itself(const struct view *v) { return v; }
static inline const struct view *txn_view(const struct txn *t) { return t->view; }

enum db_use { DB_WRITER, DB_CHECKPOINTER, DB_READER, DB_LISTENER };

/* Opens SQLite's file, which DB_WRITER creates when it is missing, or the database of PostgreSQL with this URL. The explanation
 * names the file or the server. password: for a server; NULL: none, or the URL names a file with it. */
int db_open(const char *path, enum db_use use, struct db **ret, struct error *e) MUST_CHECK;
int db_open_with_password(
    const char *path, const struct secret *password, enum db_use use, struct db **ret, struct error *e) MUST_CHECK;
void db_close(struct db *d); /* NULL is fine */
/* From now on a server that sends nothing for so long while a statement waits for it has lost the connection (ERR_TIMEOUT). Without this
 * a statement waits for as long as it takes, which a migration or a copy may need. Does nothing with a file. */
void db_limit_silence(struct db *d, int max_ms);
/* Whether it is the URL of a server, and not a file. */
bool db_is_server(const char *path);
/* Whether libpq understands the URL of a server and each of its parameters. Reaches no server, unless PGHOSTADDR names one; 0 for a file.
 * ERR_INVALID; ERR_NOT_FOUND: there is no libpq. Thread: any. */
int db_check_url(const char *path, struct error *e) MUST_CHECK;
/* Whether the server with this URL does not answer, or accepts no connections yet. If it does accept them, a failure to open it has another
 * reason, which a repetition does not change. Blocks for some seconds. Thread: any. */
bool db_server_is_away(const char *path);
/* Keeps other daemons away from a server's database as long as this connection lives; the state directory's lock does so for a
 * file. with_others: only those that do so without. ERR_EXISTS: one uses it. */
int db_lock(struct db *d, bool with_others, struct error *e) MUST_CHECK;
/* Creates the tables, or brings them to the version of this program. ERR_TOO_NEW, ERR_CORRUPT, ERR_INVALID: not the server's
 * settings that Outpost needs; ERR_DENIED. */
int db_migrate(struct db *d, struct error *e) MUST_CHECK;
/* In a transaction that has its turn. ERR_TOO_NEW: another program has since changed the tables so that this one cannot use them. */
int db_check_version(struct db *d, struct error *e) MUST_CHECK;

/* ---- values ---- */
/* PostgreSQL has to know the type of a NULL before the statement runs. A GUID is stored as key.h says in SQLite, and as its text in
 * PostgreSQL. */
enum value_type {
	VALUE_END,
	VALUE_NULL,
	VALUE_NULL_INT,
	VALUE_NULL_TEXT,
	VALUE_INT,
	VALUE_REAL,
	VALUE_TEXT,
	VALUE_BLOB,
	VALUE_GUID,  /* p: a struct guid_key */
	VALUE_ARRAY, /* of numbers; db_postgres.c makes it */
};
struct value {
	enum value_type type;
	int64_t number;
	double real;
	const void *p; /* texts are copied; a blob must live until its statement ends */
	size_t n;
};
struct value value_text(const char *s); /* NULL is SQL's NULL */
#define V_INT(v)         ((struct value){.type = VALUE_INT, .number = (v)})
#define V_REAL(v)        ((struct value){.type = VALUE_REAL, .real = (v)})
#define V_TEXT(s)        value_text(s)
#define V_BLOB(ptr, b)   ((struct value){.type = VALUE_BLOB, .p = (ptr), .n = (b)})
#define V_NULL           ((struct value){.type = VALUE_NULL})
/* A time or an id of which 0 means none. */
#define V_INT_OR_NULL(v) ((struct value){.type = (v) ? VALUE_INT : VALUE_NULL_INT, .number = (v)})
#define VALUES(...)      ((const struct value[]){__VA_ARGS__ __VA_OPT__(, ){.type = VALUE_END}})

/* ---- statements that read ---- */
/* First column of the first row, or fallback when there is no row. */
#define db_int(d, fallback, sql, ...) db_int_values(DB_VIEW(d), fallback, "" sql, VALUES(__VA_ARGS__))
int64_t db_int_values(const struct view *v, int64_t fallback, const char *sql, const struct value *values);
/* Whether there is a row. */
#define db_has(d, sql, ...)  (db_int(d, -1, sql, __VA_ARGS__) != -1)
/* The first column of the first row as text; NULL: there is no row, or it is NULL. free(). */
#define db_text(d, sql, ...) db_text_values(DB_VIEW(d), "" sql, VALUES(__VA_ARGS__))
char *db_text_values(const struct view *v, const char *sql, const struct value *values);
/* Walks over rows: `while (rows_next(r))`; one walk at a time for one SQL text. End a walk with rows_end() if you leave it
 * early. */
#define db_rows(d, sql, ...) db_rows_values(DB_VIEW(d), "" sql, VALUES(__VA_ARGS__))
struct rows *db_rows_values(const struct view *v, const char *sql, const struct value *values);

/* Reads with many statements in few round trips to a server:
 *
 *   DB_PIPELINE (d)
 *       for (size_t i = 0; i < n; i++)
 *           thing_read(d, &list[i]);
 *
 * The body runs again until each of its statements has its answer: one without has no rows yet, and is sent with the others of this
 * pass. So the body replaces everything that it wrote before, and no `break` or `return` leaves it. For a file it runs once.
 * rows_are_awaited(): the walk has no rows only because their answer has not come, so that statements which depend on it may wait, too. */
#define DB_PIPELINE(d)                                                                                                 \
	for (bool again_ = view_pipeline_begin(DB_VIEW(d)); again_; again_ = view_pipeline_again(DB_VIEW(d)))
bool view_pipeline_begin(const struct view *v);
bool view_pipeline_again(const struct view *v);
bool rows_are_awaited(const struct rows *r);

/* ---- statements that write ---- */
/* Runs to its end. PostgreSQL gets it with the next statement that has an answer, so it costs no round trip; if it fails, that
 * statement does nothing. db_status() and the end of the transaction wait for such statements. */
#define db_exec(t, sql, ...) db_exec_values(t, "" sql, VALUES(__VA_ARGS__))
void db_exec_values(struct txn *t, const char *sql, const struct value *values);
/* Runs to its end; the number of rows changed. */
#define db_exec_count(t, sql, ...) db_exec_count_values(t, "" sql, VALUES(__VA_ARGS__))
int64_t db_exec_count_values(struct txn *t, const char *sql, const struct value *values);
/* Runs an INSERT of one row into a table with an `id`: the id of the new row; 0: a conflict, or a failure. SQLite gets it without
 * RETURNING, which would make a table of its own for each statement. */
#define db_insert(t, sql, ...) db_insert_values(t, "" sql, sql " RETURNING id", VALUES(__VA_ARGS__))
int64_t db_insert_values(struct txn *t, const char *sql, const char *returning, const struct value *values);
/* A statement with RETURNING: the first number, or a walk, as above. */
#define db_exec_int(t, fallback, sql, ...) db_exec_int_values(t, fallback, "" sql, VALUES(__VA_ARGS__))
int64_t db_exec_int_values(struct txn *t, int64_t fallback, const char *sql, const struct value *values);
#define db_exec_rows(t, sql, ...) db_exec_rows_values(t, "" sql, VALUES(__VA_ARGS__))
struct rows *db_exec_rows_values(struct txn *t, const char *sql, const struct value *values);

/* ---- rows ---- */
bool rows_next(struct rows *r);
void rows_end(struct rows *r);
bool rows_have_failed(const struct rows *r); /* a statement of the connection has failed */
/* For db/record_rows.h: the columns of this row one after the other, from 1. */
int rows_next_column(struct rows *r);
/* Columns of the row that rows_next() found, from 0. Borrowed until the next step. */
int64_t rows_int(const struct rows *r, int column);
double rows_real(const struct rows *r, int column);
bool rows_is_null(const struct rows *r, int column);
int rows_n_columns(const struct rows *r);
bool rows_is_blob(const struct rows *r, int column);
const char *rows_text(const struct rows *r, int column); /* never NULL: "" for NULL */
char *rows_dup(const struct rows *r, int column);        /* NULL for NULL; free() */
const void *rows_blob(const struct rows *r, int column, size_t *ret_bytes);

/* The remaining rows as one text, for a comparison: equal texts mean equal rows. free() */
char *rows_fingerprint(struct rows *r);
/* The same for each group of rows with an equal first column. The first column and a newline come first. strv_free() */
char **rows_fingerprints(struct rows *r);

/* ---- failures ---- */
#define db_status(d)    view_status(DB_VIEW(d)) /* 0, or the code that stuck; waits for what db_exec() sent */
#define db_why(d)       view_why(DB_VIEW(d))    /* its explanation */
#define db_fail(d, ...) view_fail(DB_VIEW(d), __VA_ARGS__) /* sticks too */
int view_status(const struct view *v) MUST_CHECK;
const struct error *view_why(const struct view *v);
int view_fail(const struct view *v, int code, const char *fmt, ...) PRINTF(3, 4);
void db_forget_failure(struct db *d); /* also ends every walk left open */
/* False when a failure ended the transaction by itself. */
bool db_is_in_transaction(const struct db *d);

/* ---- transactions; texts without values, outside the statements above ---- */
int db_script(struct db *d, const char *sql, struct error *e) MUST_CHECK;
int db_begin(struct db *d, enum db_use use) MUST_CHECK;
int db_commit(struct db *d) MUST_CHECK;
void db_rollback(struct db *d);
/* Calls work() in a writer's transaction of its own, in which no other daemon decides. After a failure nothing is changed, and *e
 * says why. */
int db_transaction(struct db *d, void (*work)(struct txn *d), struct error *e) MUST_CHECK;
void db_savepoint(struct db *d);
void db_savepoint_release(struct db *d);
void db_savepoint_undo(struct db *d);

/* ---- several daemons on one database (db/nodes.h) ---- */
/* Whether others may use it at the same time. */
#define db_is_shared(d) view_is_shared(DB_VIEW(d))
bool view_is_shared(const struct view *v);
/* In a writer's transaction: waits until no other daemon decides, up to the transaction's end. Returns db_now_ms(). */
int64_t db_turn(struct db *d);
/* The time of all daemons: the server's; of a file, this machine's wall clock. */
#define db_now_ms(d) view_now_ms(DB_VIEW(d))
int64_t view_now_ms(const struct view *v);
/* The number of this node, whose transactions these are. 0: it is not registered yet. */
#define db_epoch(d) view_epoch(DB_VIEW(d))
int64_t view_epoch(const struct view *v);
void db_set_epoch(struct db *d, int64_t epoch);
/* Whether the transaction that failed may succeed when it is repeated. */
enum db_repeat {
	DB_FINAL,   /* no */
	DB_REFUSED, /* no: the server rejected this statement, but it can run others */
	DB_AGAIN,   /* the server rolled it back because of another transaction */
	DB_LOST,    /* the connection ended: nothing of it happened, unless this was its COMMIT */
};
enum db_repeat db_may_repeat(const struct db *d);

/* How many operations are worth one transaction. */
int db_batch_max_ops(const struct db *d);
/* Whether the rest of a transaction runs after a statement that failed. Otherwise each operation needs a savepoint. */
bool db_survives_failure(const struct db *d);

/* ---- notes between the daemons (db/notes.h) ---- */
/* Sends a text to all connections that listen, with the commit; at once outside a transaction. Nothing happens with a file. */
void db_note(struct txn *t, const char *text);
/* This connection listens from now on; of a server only. The failure sticks. */
int db_listen(struct db *d) MUST_CHECK;
/* Waits until a text arrives or wake_fd is readable, for ms at most, and passes on the texts that are there. A failure sticks: the
 * connection is lost. */
int db_wait_notes(
    struct db *d, int wake_fd, int64_t ms, void (*on_note)(const char *text, void *owner), void *owner) MUST_CHECK;

/* ---- the space ---- */
int64_t db_file_bytes(const struct view *v);
/* Pages without content, which later rows fill. */
int64_t db_free_bytes(const struct view *v);
/* False: an older version created the file, and its free pages stay in it. */
bool db_can_shrink(const struct view *v);
/* Moves a few pages from the end of the file into free ones, and cuts the file off behind them. It leaves an eighth of the file
 * free, because the next days fill that. True: there may be more to move. */
bool db_shrink(struct txn *t);
/* The bytes of each table with its indices. It reads every page once, and pauses between them. Calls go_on() now and then; false
 * ends it with ERR_CANCELLED. The caller frees the names and the array. */
struct table_bytes {
	char *name;
	int64_t bytes;
};
int db_measure(const struct view *v, bool (*go_on)(void *owner), void *owner, struct table_bytes **ret, size_t *ret_n,
    struct error *e) MUST_CHECK;
/* Reads every page once and checks its form. Slow on a large file. */
int db_check(struct db *d, struct error *e) MUST_CHECK;
int64_t db_total_changes(const struct db *d);
/* Copies the snapshot that this connection reads into a new file. Calls go_on() between steps; false ends the backup with
 * ERR_CANCELLED. */
int db_backup(const struct view *v, const char *path, bool (*go_on)(void *owner), void *owner, int64_t *ret_bytes,
    struct error *e) MUST_CHECK;

/* ---- for a copy to the other engine (db/copy.h) ---- */
int64_t db_version(struct db *d); /* of the schema; 0: there is none */
/* Sequences go on behind the rows that were inserted with their ids. */
int db_set_sequences(struct db *d, struct error *e) MUST_CHECK;
/* The last id that a table with a sequence gave to a row, which may be deleted since. */
int64_t db_sequence(struct db *d, const char *table);
void db_set_sequence(struct txn *t, const char *table, int64_t last_id);
/* The tables of a file, in the order of their names. */
struct db_table {
	char *name; /* NULL ends the list */
	struct db_column {
		char *name;
		enum { DB_INTEGER, DB_REAL, DB_TEXT, DB_BLOB, DB_GUID } type;
		int key_place; /* in the primary key, from 1; 0: none */
	} * columns;
	size_t n_columns;
	bool has_sequence; /* ids of deleted rows are not used again */
};
int db_tables(struct db *d, struct db_table **ret, size_t *ret_n, struct error *e) MUST_CHECK;
void db_tables_free(struct db_table *tables); /* NULL is fine */

/* ---- SQLite's file: only for a connection to a file ---- */
int64_t db_user_version(struct db *d);
int db_set_user_version(struct db *d, int64_t version, struct error *e) MUST_CHECK;
int64_t db_application_id(struct db *d);
bool db_is_empty(struct db *d); /* no table at all */
/* Bytes in the write-ahead log after the last commit of this connection. */
int64_t db_wal_bytes(const struct db *d);
enum db_checkpoint { CHECKPOINT_PASSIVE, CHECKPOINT_TRUNCATE };
/* Moves the log's content into the file: PASSIVE waits for no other connection, TRUNCATE waits for readers and leaves the
 * log empty. *ret_left_bytes: the rest of the log. */
int db_checkpoint(struct db *d, enum db_checkpoint mode, int64_t *ret_left_bytes) MUST_CHECK;

/* ---- packed results ---- */
/* PostgreSQL cannot read the packed bytes of a list, or of a part of a job: it gets the same as arrays, which its views job_test and
 * cell read. Nothing happens on SQLite. Call it after the row is written. */
struct test_result;
void db_unpack_list(struct txn *t, int64_t list_id, const int64_t *ids, size_t n);
void db_unpack_job(struct txn *t, int64_t job_id, int64_t first, const struct test_result *tests, size_t n);

/* ---- notifications and totals, which an operation adds to its connection ---- */
/* Topics (store.h) whose subscribers are notified after the commit. */
void db_notify(struct txn *t, unsigned topics);
unsigned db_drain_topics(struct db *d);
/* STORE_CHANGES; this change, job (or its log) or accelerator looks different. */
void db_notify_change(struct txn *t, int64_t change_id);
void db_notify_job(struct txn *t, int64_t job_id);
void db_notify_accelerator(struct txn *t, const char *name);
struct store_touched *db_touched(struct db *d); /* of the current batch so far */
int64_t *db_counts(struct txn *t);              /* N_COUNTERS pending differences, see db/counters.h */
struct compressor *db_compressor(struct txn *t);
struct body_bases **db_body_bases(const struct view *v); /* db/bodies.h */
struct buf *db_scratch(struct txn *t);                   /* the writer's, for one body at a time */
