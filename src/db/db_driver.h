/* An engine behind db.h: db_sqlite*.c or db_postgres*.c. db.c has what both share, and calls an engine through its table of
 * functions. Private to db/.
 *
 * Thread: the connection's. Ownership: an engine's connection begins with a struct db, its statements with a struct rows; db.c
 * keeps the statements until db_close(). A function that fails leaves its reason in db->why, unless it has an argument for it. */
#pragma once

#include "db/bodies.h"
#include "db/counters.h"
#include "db/db.h"
#include "db/touched.h"

enum { STATEMENT_BUCKETS = 128 };

struct rows {
	struct db *db;
	const char *sql;          /* the key: its address */
	bool is_open, is_awaited; /* see rows_are_awaited() */
	int column;               /* the next one for rows_next_column() */
	struct rows *next;        /* in the bucket */
};

struct view {
	struct db *db;
};

struct db {
	struct view view;
	struct txn txn;
	const struct db_driver *driver;
	enum db_use use;
	int64_t epoch;
	int silence_max_ms; /* 0: none */
	char *path;         /* for explanations: never a secret */
	struct rows *buckets[STATEMENT_BUCKETS];
	struct rows *no_rows; /* the empty walk of a failed statement */
	struct error why;
	unsigned topics;
	struct store_touched touched;
	int64_t counts[N_COUNTERS];
	struct compressor *compressor;
	struct body_bases *bases;
	struct test_lists *lists; /* packed_lists.c */
	struct buf scratch;
};

struct db_driver {
	/* Sets *ret as soon as there is something to close, also when it fails. password: NULL: none. */
	int (*open)(const char *path, const struct secret *password, enum db_use use, struct db **ret, struct error *e);
	void (*close)(struct db *d); /* after finalize() of each statement; frees d */

	/* ---- statements ---- */
	struct rows *(*prepare)(struct db *d, const char *sql); /* NULL: it failed */
	/* Begins a walk. is_static: the texts live until the walk ends. False: it failed. */
	bool (*bind)(struct rows *r, const struct value *values, bool is_static);
	/* Runs a statement, and leaves its answer to wait(); a failure may stick later. NULL: bind() and step()
	 * do it. */
	void (*send)(struct rows *r, const struct value *values);
	void (*wait)(struct db *d);
	/* See DB_PIPELINE(). NULL: each statement has its answer at once. */
	void (*pipeline_begin)(struct db *d);
	bool (*pipeline_again)(struct db *d);
	bool (*step)(struct rows *r);
	void (*reset)(struct rows *r);
	void (*finalize)(struct rows *r); /* frees it */
	bool (*may_write)(const struct rows *r);
	int64_t (*changes)(struct db *d); /* of the last statement */
	int64_t (*total_changes)(const struct db *d);
	int64_t (*last_id)(
	    struct txn *t); /* that the database gave to the row of the last INSERT; NULL: RETURNING does it */
	int (*n_columns)(const struct rows *r);
	int64_t (*column_int)(const struct rows *r, int column);
	double (*column_real)(const struct rows *r, int column);
	const char *(*column_text)(const struct rows *r, int column); /* NULL for NULL */
	const void *(*column_blob)(const struct rows *r, int column, size_t *ret_bytes);
	bool (*is_null)(const struct rows *r, int column);
	bool (*is_blob)(const struct rows *r, int column);

	/* ---- transactions: each is one statement or more without values ---- */
	const char *begin[DB_LISTENER + 1]; /* by enum db_use */
	void (*run)(struct db *d, const char *sql);
	int (*script)(struct db *d, const char *sql, struct error *e);
	bool (*is_in_transaction)(const struct db *d);
	/* One writer at a time: see db_lock(). */
	int (*lock)(struct db *d, bool with_others, struct error *e);
	/* See db_turn() and db_may_repeat(). NULL: no other daemon uses the database. */
	int64_t (*turn)(struct db *d);
	int64_t (*now_ms)(const struct view *v);
	enum db_repeat (*may_repeat)(const struct db *d);
	/* Notes between daemons; NULL: there is one. */
	void (*note)(struct txn *t, const char *text);
	int (*listen)(struct db *d);
	int (*wait_notes)(
	    struct db *d, int wake_fd, int64_t ms, void (*on_note)(const char *text, void *owner), void *owner);
	int (*migrate)(struct db *d, struct error *e);
	int (*check_version)(struct db *d, struct error *e); /* NULL: one program at a time uses the database */
	/* After a failure the rest of the transaction still runs. */
	bool survives_failure;
	int batch_max_ops;

	int64_t (*version)(struct db *d);                    /* of the schema; 0: none */
	int (*set_sequences)(struct db *d, struct error *e); /* NULL: they follow the rows */
	int64_t (*sequence)(struct db *d, const char *table);
	void (*set_sequence)(struct txn *t, const char *table, int64_t last_id);

	/* ---- the space ---- */
	int64_t (*file_bytes)(const struct view *v);
	int64_t (*free_bytes)(const struct view *v);
	bool (*can_shrink)(const struct view *v);
	bool (*shrink)(struct txn *t);
	int (*measure)(const struct view *v, bool (*go_on)(void *owner), void *owner, struct table_bytes **ret,
	    size_t *ret_n, struct error *e);
	int (*check)(struct db *d, struct error *e);
	int (*backup)(const struct view *v, const char *path, bool (*go_on)(void *owner), void *owner,
	    int64_t *ret_bytes, struct error *e);

	/* ---- packed results: NULL where the engine reads the packed bytes ---- */
	void (*unpack_list)(struct txn *t, int64_t list_id, const int64_t *ids, size_t n);
	void (*unpack_job)(struct txn *t, int64_t job_id, int64_t first, const struct test_result *tests, size_t n);
};

extern const struct db_driver sqlite_driver, postgres_driver;

/* For open(): the members that are the same for each engine. */
void db_init(struct db *d, const struct db_driver *driver, const char *path);
