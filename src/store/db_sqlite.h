/* What db_sqlite*.c share; nobody else includes it. */
#ifndef STORE_DB_SQLITE_H
#define STORE_DB_SQLITE_H

#include <sqlite3.h>

#include "store/counters.h"
#include "store/db.h"
#include "store/touched.h"

enum { DB_PAGE_BYTES = 16384, STATEMENT_BUCKETS = 128 };

struct rows {
	struct db *db;
	const char *sql; /* the key: its address */
	sqlite3_stmt *stmt;
	bool is_open;
	struct rows *next; /* in the bucket */
};

struct db {
	sqlite3 *handle;
	char *path;
	struct rows *buckets[STATEMENT_BUCKETS];
	struct rows no_rows; /* what a failed statement walks over */
	struct error why;
	unsigned topics;
	struct store_touched touched;
	int64_t counts[N_COUNTERS];
	int64_t wal_pages;
	struct compressor *compressor;
	struct buf scratch;
};

int db_code_of_sqlite(int result);
/* Records what SQLite says went wrong. Returns the code. */
int db_stick(struct db *d, int result);

#endif
