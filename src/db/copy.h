/* Copies all rows of a database to an empty one of the other engine, and proves that they are the same. Each transaction of the target also says
 * how far the copy is (unfinished_copy), so a copy that was killed goes on where it stopped, and no daemon starts on an incomplete one. At
 * the end every table of both databases is read once more: a table that changed meanwhile is copied again.
 *
 * The rows of log, log_piece and log_object are not copied: logs/copy_logs.h does that, because with SQLite logs are files.
 *
 * Thread: the caller's, which owns both connections; blocking. The caller holds the locks that keep daemons away from both databases. */
#pragma once

#include "db/db.h"

/* The sum of the SHA-256 of each row: the engines have different orders. */
struct copy_digest {
	int64_t n_rows;
	uint64_t sum[4];
};
enum { COPY_DIGEST_CHARS = 16 };
/* The first digits of the sum. Returns out. */
const char *copy_digest_text(const struct copy_digest *d, char out[COPY_DIGEST_CHARS + 1]);

struct copy_step {
	const char *table;
	int64_t n, total; /* rows */
	enum { COPY_WRITES, COPY_COMPARES, COPY_AGAIN, COPY_IS_EQUAL } what;
	struct copy_digest digest; /* COPY_IS_EQUAL */
};

struct db_copy {
	struct db *from, *to; /* opened as writers */
	void (*on_step)(const struct copy_step *step, void *owner);
	void *owner;
	/* out */
	bool goes_on;             /* an earlier copy was interrupted */
	int64_t n_tables, n_rows; /* that are equal */
	/* private */
	struct db_table *tables;
	struct copied_table *copied;
	struct copied_row *row;
	size_t n;
};
/* Checks both, and marks the target as an incomplete copy. ERR_INVALID: the source has another version of the schema; ERR_EXISTS: the target has
 * rows. */
int db_copy_begin(struct db_copy *c, struct error *e) MUST_CHECK;
int db_copy_tables(struct db_copy *c, struct error *e) MUST_CHECK;
/* The target is complete from now on. */
int db_copy_end(struct db_copy *c, struct error *e) MUST_CHECK;
/* After both connections are closed. */
void db_copy_release(struct db_copy *c);
/* Whether the database is an incomplete copy, on which no daemon may start. */
bool db_copy_is_unfinished(const struct view *d);
