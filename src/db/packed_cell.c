/* The table cell: each cell of a change. The rows of `verdict`, and for each other test the worst result of the jobs that
 * count. */
#include "db/packed_tables.h"

enum {
	CELL_ROWS,
	CELL_ROWS_OF_ACCELERATOR,
	CELL_ROW_OF_TEST,
	CELL_PARTS,
	CELL_PARTS_OF_ACCELERATOR,
	CELL_RESULT,
	N_CELL_STATEMENTS
};
enum {
	CELL_CHANGE,
	CELL_ACCELERATOR,
	CELL_TEST,
	CELL_STATUS,
	CELL_ATTRIBUTION,
	CELL_MESSAGE,
	CELL_JOB,
	CELL_IS_LATE,
	CELL_FILE,
	CELL_LINE,
	CELL_NEEDS = 13
};
enum { OF_ACCELERATOR = 1, OF_TEST = 2 };

#define VERDICT_COLUMNS                                                                                                \
	"change_id, accelerator, test_id, status, attribution, message, job_id, is_late, file, line, reason,"          \
	" evidence_job, evidence_url, needs"
#define COUNTED_PARTS                                                                                                  \
	"SELECT j.accelerator, j.id, j.is_late, p.n_rows, p.first, p.n, p.list_id, p.cells FROM job j"                 \
	" CROSS JOIN packed_job p ON p.job_id = j.id WHERE j.change_id = ?1 AND j.is_counted = 1"

static const char *const CELL_STATEMENTS[N_CELL_STATEMENTS] = {
    [CELL_ROWS] = "SELECT " VERDICT_COLUMNS " FROM verdict WHERE change_id = ?1 ORDER BY accelerator, test_id",
    [CELL_ROWS_OF_ACCELERATOR] = "SELECT " VERDICT_COLUMNS " FROM verdict WHERE change_id = ?1 AND accelerator = ?2"
				 " ORDER BY test_id",
    [CELL_ROW_OF_TEST] = "SELECT " VERDICT_COLUMNS " FROM verdict WHERE change_id = ?1 AND accelerator = ?2"
			 " AND test_id = ?3",
    [CELL_PARTS] = COUNTED_PARTS " ORDER BY j.accelerator, j.id, p.first",
    [CELL_PARTS_OF_ACCELERATOR] = COUNTED_PARTS " AND j.accelerator = ?2 ORDER BY j.id, p.first",
    [CELL_RESULT] = "SELECT message, file, line FROM result WHERE job_id = ?1 AND ordinal = ?2",
};

/* A result that may be its test's cell. */
struct candidate {
	int64_t test_id;
	uint32_t part, i;
	uint8_t status;
};

struct counted_part {
	int64_t job_id, first;
	bool is_late, has_rows;
};

struct stored_cell {
	size_t accelerator; /* the number of the walk's accelerator */
	int64_t test_id;
};

/* First the rows, then accelerator by accelerator the cells that have none. A vendor may report any number of tests, so the
 * memory has a limit: of an accelerator with more tests the cursor shows the first ones, in the order of their ids, and reads
 * its jobs again for the next ones. */
struct cell_cursor {
	struct packed_cursor c;
	sqlite3_stmt *rows, *parts, *result;
	int64_t change_id, test_id; /* test_id 0: all */
	bool is_row;                /* the current cell is a row */
	bool is_single;             /* one accelerator and one test: a row is the only cell */
	/* the rows that were read, in their order */
	struct stored_cell *stored;
	size_t n_stored;
	bool has_more_stored; /* and there are others */
	char **accelerators;  /* of the rows */
	size_t n_accelerators;
	/* the jobs of one accelerator, and its tests with ids over `after` and up to `until` */
	int64_t after, until; /* until INT64_MAX: all the others */
	bool has_part;        /* the statement has read a row that is not taken yet */
	char *accelerator;
	struct counted_part *at;
	size_t n_parts;
	struct candidate *candidates;
	size_t n_candidates, next;
	const struct candidate *cell; /* the current one; NULL: none is left */
	bool has_result;              /* its row of `result` is read */
};

static int compare_candidates(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;

	if (a->test_id != b->test_id)
		return a->test_id < b->test_id ? -1 : 1;
	if (a->status != b->status)
		return a->status < b->status ? -1 : 1;
	if (a->part != b->part)
		return a->part < b->part ? -1 : 1;
	return (a->i > b->i) - (a->i < b->i);
}

/* Keeps the worst result of each test, of equal ones that of the oldest job, and of too many tests the first ones. */
static void keep_worst(struct cell_cursor *v)
{
	size_t n = 0;

	if (v->n_candidates)
		qsort(v->candidates, v->n_candidates, sizeof(*v->candidates), compare_candidates);
	for (size_t i = 0; i < v->n_candidates; i++)
		if (n == 0 || v->candidates[n - 1].test_id != v->candidates[i].test_id)
			v->candidates[n++] = v->candidates[i];
	v->n_candidates = n;
	if (n > packed_cells_at_once()) {
		v->n_candidates = packed_cells_at_once();
		v->until = v->candidates[v->n_candidates - 1].test_id;
	}
}

static void add_candidates(struct cell_cursor *v, const struct packed_part *p)
{
	uint32_t number = (uint32_t)(v->n_parts - 1);
	size_t i = v->test_id ? test_list_find(p->list, v->test_id, 0) : 0;

	while (i < p->list->n) {
		int64_t id = p->list->ids[i];

		if (id > v->after && id <= v->until)
			*ARRAY_PUSH(v->candidates, v->n_candidates) = (struct candidate){
			    .test_id = id, .part = number, .i = (uint32_t)i, .status = p->statuses[i]};
		i = v->test_id ? test_list_find(p->list, v->test_id, i + 1) : i + 1;
	}
}

static void parts_release(struct cell_cursor *v)
{
	free(v->at);
	free(v->candidates);
	v->at = NULL;
	v->candidates = NULL;
	v->n_parts = v->n_candidates = v->next = 0;
	v->cell = NULL;
}

/* Reads the parts of v->accelerator, from the row that the statement has read. *ret_has: the row behind them. */
static int read_parts(struct cell_cursor *v, sqlite3_stmt *s, bool *ret_has)
{
	bool must_compare = false;
	size_t n_kept = 0;

	v->until = INT64_MAX;
	do {
		struct packed_part p;
		int rc = packed_part_read(&v->c, s, 4, sqlite3_column_int64(s, 1), false, &p);

		*ARRAY_PUSH(v->at, v->n_parts) = (struct counted_part){.job_id = p.place.job_id,
		    .first = p.place.first,
		    .is_late = sqlite3_column_int(s, 2) != 0,
		    .has_rows = sqlite3_column_int64(s, 3) > 0};
		if (rc == SQLITE_OK) {
			must_compare |= v->n_parts > 1 || !p.list->is_distinct;
			add_candidates(v, &p);
		}
		packed_part_release(&p);
		if (rc != SQLITE_OK)
			return rc;
		/* a vendor may repeat the same tests in many jobs */
		if (v->n_candidates > packed_cells_at_once() / 8 && v->n_candidates > 2 * n_kept) {
			keep_worst(v);
			n_kept = v->n_candidates;
		}
		rc = packed_statement_step(&v->c, s, ret_has);
		if (rc != SQLITE_OK)
			return rc;
	} while (*ret_has && strcmp((const char *)sqlite3_column_text(s, 0), v->accelerator) == 0);
	if (must_compare || v->n_candidates > packed_cells_at_once())
		keep_worst(v);
	return SQLITE_OK;
}

/* Reads the next tests of the accelerator, or the first ones of the next one. False in *ret_has: there are none. */
static int read_candidates(struct cell_cursor *v, bool *ret_has)
{
	sqlite3_stmt *again;
	int rc;

	parts_release(v);
	if (v->accelerator && v->until < INT64_MAX) {
		v->after = v->until;
		rc = packed_statement_open(
		    &v->c, CELL_STATEMENTS, CELL_PARTS_OF_ACCELERATOR, v->change_id, v->accelerator, -1, &again);
		if (rc == SQLITE_OK)
			rc = packed_statement_step(&v->c, again, ret_has);
		return rc != SQLITE_OK || !*ret_has ? rc : read_parts(v, again, &(bool){false});
	}
	free(v->accelerator);
	v->accelerator = NULL;
	*ret_has = v->has_part;
	if (!v->has_part)
		return SQLITE_OK;
	v->accelerator = xstrdup((const char *)sqlite3_column_text(v->parts, 0));
	v->after = 0;
	return read_parts(v, v->parts, &v->has_part);
}

static int compare_stored(const void *x, const void *y)
{
	const struct stored_cell *a = x, *b = y;

	if (a->accelerator != b->accelerator)
		return a->accelerator < b->accelerator ? -1 : 1;
	return (a->test_id > b->test_id) - (a->test_id < b->test_id);
}

static int find_stored(struct cell_cursor *v, int64_t test_id, bool *ret_is_stored)
{
	sqlite3_stmt *s;
	size_t i = 0;
	int rc;

	while (i < v->n_accelerators && strcmp(v->accelerators[i], v->accelerator) != 0)
		i++;
	*ret_is_stored = i < v->n_accelerators && bsearch(&(struct stored_cell){i, test_id}, v->stored, v->n_stored,
						      sizeof(*v->stored), compare_stored) != NULL;
	if (*ret_is_stored || !v->has_more_stored)
		return SQLITE_OK;
	rc = packed_statement_open(&v->c, CELL_STATEMENTS, CELL_ROW_OF_TEST, v->change_id, v->accelerator, test_id, &s);
	return rc != SQLITE_OK ? rc : packed_statement_step(&v->c, s, ret_is_stored);
}

/* Moves to the next cell without a row. */
static int find_cell(struct cell_cursor *v)
{
	bool has = true, is_stored;
	int rc;

	for (;;) {
		while (v->next < v->n_candidates) {
			v->cell = &v->candidates[v->next++];
			rc = find_stored(v, v->cell->test_id, &is_stored);
			if (rc != SQLITE_OK || !is_stored)
				return rc;
		}
		rc = read_candidates(v, &has);
		if (rc != SQLITE_OK || !has)
			return rc;
	}
}

/* Moves to the next row, or behind the last one to the first cell without a row. */
static int find_row(struct cell_cursor *v)
{
	const char *accelerator;
	int rc = packed_statement_step(&v->c, v->rows, &v->is_row);

	if (rc != SQLITE_OK)
		return rc;
	if (!v->is_row)
		return find_cell(v);
	accelerator = (const char *)sqlite3_column_text(v->rows, CELL_ACCELERATOR);
	if (v->n_accelerators == 0 || strcmp(v->accelerators[v->n_accelerators - 1], accelerator) != 0)
		*ARRAY_PUSH(v->accelerators, v->n_accelerators) = xstrdup(accelerator);
	v->has_more_stored = v->n_stored >= packed_cells_at_once();
	if (!v->has_more_stored)
		*ARRAY_PUSH(v->stored, v->n_stored) =
		    (struct stored_cell){v->n_accelerators - 1, sqlite3_column_int64(v->rows, CELL_TEST)};
	return SQLITE_OK;
}

static void cells_release(struct cell_cursor *v)
{
	parts_release(v);
	free(v->accelerator);
	for (size_t i = 0; i < v->n_accelerators; i++)
		free(v->accelerators[i]);
	free(v->accelerators);
	free(v->stored);
	v->accelerator = NULL;
	v->accelerators = NULL;
	v->stored = NULL;
	v->n_accelerators = v->n_stored = 0;
}

/* Reads the result that says more about the current cell, once. */
static int read_result(struct cell_cursor *v, bool *ret_has)
{
	const struct counted_part *p = &v->at[v->cell->part];
	int rc = SQLITE_OK;

	if (!v->has_result && p->has_rows) {
		rc = packed_statement_open(
		    &v->c, CELL_STATEMENTS, CELL_RESULT, p->job_id, NULL, p->first + v->cell->i, &v->result);
		if (rc == SQLITE_OK)
			rc = packed_statement_step(&v->c, v->result, &v->has_result);
	}
	*ret_has = v->has_result;
	return rc;
}

static int cell_next(sqlite3_vtab_cursor *cursor)
{
	struct cell_cursor *v = (struct cell_cursor *)cursor;

	v->has_result = false;
	if (v->is_row && v->is_single) { /* the packed results need not be read */
		v->is_row = false;
		return SQLITE_OK;
	}
	return v->is_row ? find_row(v) : find_cell(v);
}

static int cell_filter(sqlite3_vtab_cursor *cursor, int plan, const char *text, int argc, sqlite3_value **argv)
{
	struct cell_cursor *v = (struct cell_cursor *)cursor;
	const char *accelerator = plan & OF_ACCELERATOR ? (const char *)sqlite3_value_text(argv[1]) : NULL;
	int rc;

	(void)text;
	(void)argc;
	cells_release(v);
	v->has_result = v->is_row = v->has_part = v->has_more_stored = false;
	if (plan & OF_ACCELERATOR && !accelerator) /* NULL is equal to nothing */
		return SQLITE_OK;
	v->change_id = sqlite3_value_int64(argv[0]);
	v->test_id = plan & OF_TEST ? sqlite3_value_int64(argv[plan & OF_ACCELERATOR ? 2 : 1]) : 0;
	v->is_single = accelerator && plan & OF_TEST;
	rc = packed_statement_open(&v->c, CELL_STATEMENTS,
	    !accelerator     ? CELL_ROWS
	    : plan & OF_TEST ? CELL_ROW_OF_TEST
			     : CELL_ROWS_OF_ACCELERATOR,
	    v->change_id, accelerator, accelerator && plan & OF_TEST ? v->test_id : -1, &v->rows);
	if (rc == SQLITE_OK)
		rc = packed_statement_open(&v->c, CELL_STATEMENTS, accelerator ? CELL_PARTS_OF_ACCELERATOR : CELL_PARTS,
		    v->change_id, accelerator, -1, &v->parts);
	if (rc == SQLITE_OK)
		rc = packed_statement_step(&v->c, v->parts, &v->has_part);
	if (rc == SQLITE_OK)
		rc = find_row(v);
	return rc;
}

static int cell_eof(sqlite3_vtab_cursor *cursor)
{
	struct cell_cursor *v = (struct cell_cursor *)cursor;

	return !v->is_row && !v->cell;
}

static int cell_column(sqlite3_vtab_cursor *cursor, sqlite3_context *out, int column)
{
	struct cell_cursor *v = (struct cell_cursor *)cursor;
	const struct candidate *of = v->cell;
	bool has = false;
	int rc = SQLITE_OK;

	if (v->is_row) {
		sqlite3_result_value(out, sqlite3_column_value(v->rows, column));
		return SQLITE_OK;
	}
	if (column == CELL_CHANGE)
		sqlite3_result_int64(out, v->change_id);
	else if (column == CELL_ACCELERATOR)
		sqlite3_result_text(out, v->accelerator, -1, SQLITE_TRANSIENT);
	else if (column == CELL_TEST)
		sqlite3_result_int64(out, of->test_id);
	else if (column == CELL_STATUS)
		packed_status_result(out, of->status);
	else if (column == CELL_JOB)
		sqlite3_result_int64(out, v->at[of->part].job_id);
	else if (column == CELL_IS_LATE)
		sqlite3_result_int(out, v->at[of->part].is_late);
	else if (column == CELL_NEEDS)
		sqlite3_result_int(out, 0);
	else if (column == CELL_MESSAGE || column == CELL_FILE || column == CELL_LINE)
		rc = read_result(v, &has);
	if (has)
		sqlite3_result_value(out, sqlite3_column_value(v->result, column == CELL_MESSAGE ? 0
									  : column == CELL_FILE  ? 1
												 : 2));
	return rc; /* other columns are NULL */
}

static int cell_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret)
{
	struct cell_cursor *v = (struct cell_cursor *)cursor;

	*ret = v->is_row ? sqlite3_column_int64(v->rows, CELL_TEST) : v->cell->test_id;
	return SQLITE_OK;
}

static int cell_plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
	int change = packed_plan_find(info, CELL_CHANGE, SQLITE_INDEX_CONSTRAINT_EQ), n = 0;
	int accelerator = packed_plan_find(info, CELL_ACCELERATOR, SQLITE_INDEX_CONSTRAINT_EQ);
	int test = packed_plan_find(info, CELL_TEST, SQLITE_INDEX_CONSTRAINT_EQ);

	(void)table;
	if (change < 0)
		return SQLITE_CONSTRAINT; /* not in this order of the tables */
	packed_plan_use(info, change, &n);
	if (accelerator >= 0)
		packed_plan_use(info, accelerator, &n);
	if (test >= 0)
		packed_plan_use(info, test, &n);
	info->idxNum = (accelerator >= 0 ? OF_ACCELERATOR : 0) | (test >= 0 ? OF_TEST : 0);
	info->estimatedRows = (test >= 0 ? 1 : 1000) * (accelerator >= 0 ? 1 : 10);
	info->estimatedCost = (test >= 0 ? 20 : 2000) * (accelerator >= 0 ? 1 : 10);
	return SQLITE_OK;
}

static int cell_connect(sqlite3 *handle, void *db, int argc, const char *const *argv, sqlite3_vtab **ret, char **why)
{
	(void)argc;
	(void)argv;
	(void)why;
	return packed_connect(handle, db,
	    "CREATE TABLE x(change_id INTEGER, accelerator TEXT, test_id INTEGER, status TEXT, attribution TEXT,"
	    " message TEXT, job_id INTEGER, is_late INTEGER, file TEXT, line INTEGER, reason TEXT, evidence_job "
	    "INTEGER,"
	    " evidence_url TEXT, needs INTEGER)",
	    ret);
}

static int cell_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret)
{
	return packed_cursor_open(table, ret, sizeof(struct cell_cursor));
}

static int cell_close(sqlite3_vtab_cursor *cursor)
{
	struct cell_cursor *v = (struct cell_cursor *)cursor;

	cells_release(v);
	packed_cursor_close(&v->c);
	return SQLITE_OK;
}

const sqlite3_module packed_cell = {
    .xConnect = cell_connect,
    .xDisconnect = packed_disconnect,
    .xBestIndex = cell_plan,
    .xOpen = cell_open,
    .xClose = cell_close,
    .xFilter = cell_filter,
    .xNext = cell_next,
    .xEof = cell_eof,
    .xColumn = cell_column,
    .xRowid = cell_rowid,
};
