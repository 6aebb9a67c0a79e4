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
enum { CANDIDATES_KEPT = 1 << 16 };

#define VERDICT_COLUMNS                                                                                                \
	"change_id, accelerator, test_id, status, attribution, message, job_id, is_late, file, line, reason,"          \
	" evidence_job, evidence_url, needs"
#define COUNTED_PARTS                                                                                                  \
	"SELECT j.accelerator, j.id, j.is_late, p.first, p.n_rows, p.n, p.list_id, p.cells FROM job j"                 \
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

struct stored_cell {
	size_t accelerator; /* the number of the walk's accelerator */
	int64_t test_id;
};

/* First the rows, then accelerator by accelerator the cells that have none. */
struct cell_cursor {
	struct packed_cursor c;
	sqlite3_stmt *rows, *parts, *result;
	int64_t change_id, test_id; /* test_id 0: all */
	bool is_row;                /* the current cell is a row */
	/* the rows that were read, in their order */
	struct stored_cell *stored;
	size_t n_stored;
	char **accelerators; /* of the rows */
	size_t n_accelerators;
	/* the jobs of one accelerator */
	bool has_part; /* the statement has read a row that is not taken yet */
	char *accelerator;
	struct packed_part *at;
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

/* Keeps the worst result of each test; of equal ones that of the oldest job. */
static void keep_worst(struct cell_cursor *v)
{
	size_t n = 0;

	if (v->n_candidates)
		qsort(v->candidates, v->n_candidates, sizeof(*v->candidates), compare_candidates);
	for (size_t i = 0; i < v->n_candidates; i++)
		if (n == 0 || v->candidates[n - 1].test_id != v->candidates[i].test_id)
			v->candidates[n++] = v->candidates[i];
	v->n_candidates = n;
}

static void add_candidates(struct cell_cursor *v, uint32_t number)
{
	const struct packed_part *p = &v->at[number];
	size_t i = v->test_id ? test_list_find(p->list, v->test_id, 0) : 0;

	while (i < p->list->n) {
		*ARRAY_PUSH(v->candidates, v->n_candidates) = (struct candidate){
		    .test_id = p->list->ids[i], .part = number, .i = (uint32_t)i, .status = p->statuses[i]};
		i = v->test_id ? test_list_find(p->list, v->test_id, i + 1) : i + 1;
	}
}

static void parts_release(struct cell_cursor *v)
{
	for (size_t i = 0; i < v->n_parts; i++)
		packed_part_release(&v->at[i]);
	free(v->at);
	free(v->candidates);
	free(v->accelerator);
	v->at = NULL;
	v->candidates = NULL;
	v->accelerator = NULL;
	v->n_parts = v->n_candidates = v->next = 0;
	v->cell = NULL;
}

/* Reads all parts of the next accelerator. False in *ret_has: there is none. */
static int read_accelerator(struct cell_cursor *v, bool *ret_has)
{
	bool must_compare = false;
	size_t n_kept = 0;

	parts_release(v);
	*ret_has = v->has_part;
	if (!v->has_part)
		return SQLITE_OK;
	v->accelerator = xstrdup((const char *)sqlite3_column_text(v->parts, 0));
	do {
		struct packed_part *p = ARRAY_PUSH(v->at, v->n_parts);
		int rc;

		*p = (struct packed_part){.job_id = sqlite3_column_int64(v->parts, 1),
		    .is_late = sqlite3_column_int(v->parts, 2) != 0,
		    .first = sqlite3_column_int64(v->parts, 3),
		    .has_rows = sqlite3_column_int64(v->parts, 4) > 0};
		rc = packed_part_read(&v->c, v->parts, 5, false, p);
		if (rc != SQLITE_OK)
			return rc;
		must_compare |= v->n_parts > 1 || !p->list->is_distinct;
		add_candidates(v, (uint32_t)(v->n_parts - 1));
		/* a vendor may repeat the same tests in many jobs */
		if (v->n_candidates > CANDIDATES_KEPT && v->n_candidates > 2 * n_kept) {
			keep_worst(v);
			n_kept = v->n_candidates;
		}
		rc = packed_statement_step(&v->c, v->parts, &v->has_part);
		if (rc != SQLITE_OK)
			return rc;
	} while (v->has_part && strcmp((const char *)sqlite3_column_text(v->parts, 0), v->accelerator) == 0);
	if (must_compare)
		keep_worst(v);
	return SQLITE_OK;
}

static int compare_stored(const void *x, const void *y)
{
	const struct stored_cell *a = x, *b = y;

	if (a->accelerator != b->accelerator)
		return a->accelerator < b->accelerator ? -1 : 1;
	return (a->test_id > b->test_id) - (a->test_id < b->test_id);
}

static bool is_stored(const struct cell_cursor *v, int64_t test_id)
{
	for (size_t i = 0; i < v->n_accelerators; i++)
		if (strcmp(v->accelerators[i], v->accelerator) == 0)
			return bsearch(&(struct stored_cell){i, test_id}, v->stored, v->n_stored, sizeof(*v->stored),
				   compare_stored) != NULL;
	return false;
}

/* Moves to the next cell without a row. */
static int find_cell(struct cell_cursor *v)
{
	bool has = true;

	for (;;) {
		int rc;

		while (v->next < v->n_candidates) {
			v->cell = &v->candidates[v->next++];
			if (!is_stored(v, v->cell->test_id))
				return SQLITE_OK;
		}
		rc = read_accelerator(v, &has);
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
	*ARRAY_PUSH(v->stored, v->n_stored) =
	    (struct stored_cell){v->n_accelerators - 1, sqlite3_column_int64(v->rows, CELL_TEST)};
	return SQLITE_OK;
}

static void cells_release(struct cell_cursor *v)
{
	parts_release(v);
	for (size_t i = 0; i < v->n_accelerators; i++)
		free(v->accelerators[i]);
	free(v->accelerators);
	free(v->stored);
	v->accelerators = NULL;
	v->stored = NULL;
	v->n_accelerators = v->n_stored = 0;
}

/* Reads the result that says more about the current cell, once. */
static int read_result(struct cell_cursor *v, bool *ret_has)
{
	const struct packed_part *p = &v->at[v->cell->part];
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
	v->has_result = v->is_row = v->has_part = false;
	if (plan & OF_ACCELERATOR && !accelerator) /* NULL is equal to nothing */
		return SQLITE_OK;
	v->change_id = sqlite3_value_int64(argv[0]);
	v->test_id = plan & OF_TEST ? sqlite3_value_int64(argv[plan & OF_ACCELERATOR ? 2 : 1]) : 0;
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
