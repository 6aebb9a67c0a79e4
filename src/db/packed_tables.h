/* The tables job_test and cell of SQLite, which exist only while they are read: they unpack what store/jobs.c packs. A
 * statement has to say job_id = …, and for cells change_id = …. With test_id = … they decode one test of each list. Each
 * table has a file of its own, and packed_tables.c has what both do.
 *
 * Thread: the connection's. Ownership: the connection has the tables and their cursors; a closed cursor waits for the next
 * use, with its statements. Functions return SQLite's codes. */
#pragma once

#include "db/db_sqlite.h"
#include "db/packed_lists.h"

/* ---- a table and its cursors ---- */

enum { N_STATEMENTS_MAX = 6 };

struct packed_table {
	sqlite3_vtab base;
	struct sqlite *db;
	struct packed_cursor *idle; /* closed ones */
};

struct packed_cursor {
	sqlite3_vtab_cursor base;
	struct packed_cursor *next_idle;
	sqlite3_stmt *statements[N_STATEMENTS_MAX];
};

/* `columns`: the text of CREATE TABLE x. */
int packed_connect(sqlite3 *handle, void *db, const char *columns, sqlite3_vtab **ret);
int packed_disconnect(sqlite3_vtab *table);
/* `bytes`: of the table's own cursor, which begins with a struct packed_cursor. */
int packed_cursor_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret, size_t bytes);
void packed_cursor_close(struct packed_cursor *c);

/* Prepares texts[which] once for a cursor, and binds its numbers (id_2 < 0: it has one) and its accelerator (NULL: it has
 * none). */
int packed_statement_open(struct packed_cursor *c, const char *const *texts, int which, int64_t id,
    const char *accelerator, int64_t id_2, sqlite3_stmt **ret);
/* Takes the next row. *ret_has: whether there is one. */
int packed_statement_step(struct packed_cursor *c, sqlite3_stmt *s, bool *ret_has);

/* The place of a usable constraint with this operator on the column, or -1. */
int packed_plan_find(const sqlite3_index_info *info, int column, int op);
/* Passes the value to the filter; SQLite still checks the constraint itself. */
void packed_plan_use(sqlite3_index_info *info, int i, int *n);

/* ---- the packed results of one part of a job ---- */

struct packed_part {
	struct packed_place place;
	struct test_list *list;
	uint8_t *statuses;
	int64_t *durations; /* or NULL: not wanted */
};

/* Unpacks n results of the place, and takes over the list (NULL: it is damaged). False: they are damaged. packed_part_release() either
 * way. */
bool packed_part_get(struct test_list *list, const struct packed_place *place, int64_t n, const void *cells,
    size_t bytes, bool has_durations, struct packed_part *ret);
/* The same from the columns first, n, list_id and cells of the statement, which begin at `at`. */
int packed_part_read(
    struct packed_cursor *c, sqlite3_stmt *s, int at, int64_t job_id, bool has_durations, struct packed_part *ret);
void packed_part_release(struct packed_part *p);

/* The name of the status as a column of SQLite. */
void packed_status_result(sqlite3_context *out, uint8_t status);

/* How many tests of one accelerator a cursor of `cell` keeps in memory. */
size_t packed_cells_at_once(void);

extern const sqlite3_module packed_job_test, packed_cell;
