/* Reads rows into records (model/record.h). The SELECT list and the reader follow from the same list, so that no code
 * counts columns:
 *
 *   struct rows *r = db_rows(d, RECORD_SELECT(RUN_RECORD) " FROM schedule_run x WHERE …", …);
 *   while (rows_next(r))
 *       record_read(r, &run_record, &runs[n++]);
 *
 * A statement that reads two records names both, RECORD_SELECT(A) RECORD_COLUMNS(B), and reads them in this order.
 *
 * Thread: the connection's. */
#pragma once

#include "db/db.h"
#include "model/record.h"

#define RECORD_COLUMN(S, type, member, name, column, description) ", " column
#define RECORD_COLUMNS(R)                                         R(RECORD_COLUMN, )
#define RECORD_SELECT(R)                                          RECORD_SELECT_BY("0", R)
/* The same with a key in front: an expression that says to which object of the page the row belongs. */
#define RECORD_SELECT_BY(key, R)                                  "SELECT " key RECORD_COLUMNS(R)
/* The whole statement, also with a key or of two records; `from` is a literal: "FROM run WHERE …". */
#define RECORD_QUERY(R, from)                                     RECORD_SELECT(R) " " from
#define RECORD_QUERY_BY(key, R, from)                             RECORD_SELECT_BY(key, R) " " from
#define RECORD_QUERY_BOTH(A, B, from)                             RECORD_SELECT(A) RECORD_COLUMNS(B) " " from
#define RECORD_QUERY_DISTINCT(R, from)                            RECORD_QUERY_BY("DISTINCT 0", R, from)

/* The key, or the only column of a statement without a record. */
const char *rows_key(const struct rows *r); /* never NULL; borrowed until the next step */
int64_t rows_key_number(const struct rows *r);
/* The same of all rows, as an array: for a loop whose body writes to the table that the statement reads. free() */
int64_t *rows_key_numbers(struct rows *r, size_t *ret_n);
char **rows_keys(struct rows *r); /* the same as texts; strv_free() */
/* The same of the first row, as a value of an enum, and ends the statement; words->n: it has no row, or another text. */
int rows_first_word(struct rows *r, const struct words *words);

/* Fills `ret` from the columns that follow the last record that was read from this row. Its texts are owned:
 * record_release(). */
void record_read(struct rows *r, const struct record *record, void *ret);
/* The first row of a statement, and ends the statement. False: it has no row, and `ret` stays as it was. */
bool record_read_first(struct rows *r, const struct record *record, void *ret);
/* The same of the record S, whose list is R; `from` is a literal: "FROM run WHERE …". */
#define RECORD_READ_FIRST(d, S, R, ret, from, ...)                                                                     \
	record_read_first(db_rows(d, RECORD_QUERY(R, from), __VA_ARGS__), &S##_record, ret)
/* Adds a struct S for each row to the end of an array (ARRAY_PUSH() in base/alloc.h); its members outside the record
 * are zero. After a failure the array is empty. */
#define RECORDS_READ(r, S, array, n)                                                                                   \
	do {                                                                                                           \
		struct rows *rows_ = (r);                                                                              \
                                                                                                                       \
		while (rows_next(rows_)) {                                                                             \
			struct S *at_ = ARRAY_PUSH(array, n);                                                          \
                                                                                                                       \
			*at_ = (struct S){0};                                                                          \
			record_read(rows_, &S##_record, at_);                                                          \
		}                                                                                                      \
		if (rows_have_failed(rows_))                                                                           \
			RECORDS_RELEASE(S, array, n);                                                                  \
	} while (0)
