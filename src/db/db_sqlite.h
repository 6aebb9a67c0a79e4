/* The connection to SQLite. Private to db_sqlite.c, db_sqlite_file.c and packed_*.c.
 *
 * Thread: the connection's. */
#pragma once

#include <sqlite3.h>

#include "db/db_driver.h"

struct sqlite_rows {
	struct rows rows;
	sqlite3_stmt *stmt;
};

struct sqlite {
	struct db db;
	sqlite3 *handle;
	struct sqlite_rows no_rows;
	int64_t page_bytes, wal_pages;
};

static inline struct sqlite *sqlite_of(const struct db *d) { return (struct sqlite *)d; }

int db_code_of_sqlite(int result);
/* Records SQLite's explanation of a failure, and returns the code. */
int sqlite_stick(struct db *d, int result);

/* ---- db_sqlite_file.c, for the driver ---- */
int64_t sqlite_file_bytes(const struct view *v);
int64_t sqlite_free_bytes(const struct view *v);
bool sqlite_can_shrink(const struct view *v);
bool sqlite_shrink(struct txn *t);
int sqlite_measure(const struct view *v, bool (*go_on)(void *owner), void *owner, struct table_bytes **ret,
    size_t *ret_n, struct error *e);
int sqlite_check(struct db *d, struct error *e);
int64_t sqlite_sequence(struct db *d, const char *table);
void sqlite_set_sequence(struct txn *t, const char *table, int64_t last_id);
int sqlite_backup(const struct view *v, const char *path, bool (*go_on)(void *owner), void *owner, int64_t *ret_bytes,
    struct error *e);

/* Adds the tables job_test and cell, which packed_tables.h describes, to the connection. */
int packed_tables_add(struct sqlite *d, struct error *e) MUST_CHECK;
