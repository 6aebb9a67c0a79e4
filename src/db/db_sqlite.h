/* The connection to SQLite. Private to db_sqlite.c and db_sqlite_file.c.
 *
 * Thread: the connection's. It owns its statements until db_close(). */
#pragma once

#include <sqlite3.h>

#include "db/bodies.h"
#include "db/counters.h"
#include "db/db.h"
#include "db/touched.h"

enum { STATEMENT_BUCKETS = 128 };

struct rows {
	struct db *db;
	const char *sql; /* the key: its address */
	sqlite3_stmt *stmt;
	bool is_open;
	int column;        /* the next one for rows_next_column() */
	struct rows *next; /* in the bucket */
};

struct view {
	struct db *db;
};

struct db {
	struct view view;
	struct txn txn;
	sqlite3 *handle;
	char *path;
	struct rows *buckets[STATEMENT_BUCKETS];
	struct rows no_rows; /* the empty walk of a failed statement */
	struct error why;
	unsigned topics;
	struct store_touched touched;
	int64_t counts[N_COUNTERS];
	int64_t page_bytes, wal_pages;
	struct compressor *compressor;
	struct body_bases *bases;
	struct buf scratch;
	struct test_lists *lists; /* packed_lists.c */
};

int db_code_of_sqlite(int result);
/* Records SQLite's explanation of a failure, and returns the code. */
int db_stick(struct db *d, int result);

/* Adds the tables job_test and cell, which packed_tables.h describes, to the connection. */
int packed_tables_add(struct db *d, struct error *e) MUST_CHECK;
struct test_lists;
struct test_lists *test_lists_new(void);
void test_lists_free(struct test_lists *l); /* NULL is fine; after sqlite3_close() */
/* The writer undid changes: forgets the lists, because their tests may get other ids now. */
void test_lists_undone(struct test_lists *l);
