/* The table job_test: each test of a job, from the packed results and from the rows of `result`, which say more of some. */
#include "db/packed_tables.h"

enum { JOB_PARTS, JOB_ROWS, JOB_ROWS_OF_TEST, N_JOB_STATEMENTS };
enum { COLUMN_JOB, COLUMN_ORDINAL, COLUMN_TEST, COLUMN_STATUS, COLUMN_DURATION };
enum { BY_TEST = 1, FROM_ORDINAL = 2, WITH_DURATIONS = 4 };

#define RESULT_COLUMNS                                                                                                 \
	"job_id, ordinal, test_id, status, duration_ms, dtype, message, number, unit, log_url, trace, file, line, "    \
	"mark"

/* Rows behind these belong to a report that is being written. */
#define IS_COMPLETE " AND ordinal < (SELECT n_tests FROM job WHERE id = ?1)"

static const char *const JOB_STATEMENTS[N_JOB_STATEMENTS] = {
    [JOB_PARTS] = "SELECT first, n, list_id, cells FROM packed_job WHERE job_id = ?1 ORDER BY first",
    [JOB_ROWS] =
	"SELECT " RESULT_COLUMNS " FROM result WHERE job_id = ?1 AND ordinal >= ?2" IS_COMPLETE " ORDER BY ordinal",
    [JOB_ROWS_OF_TEST] = "SELECT " RESULT_COLUMNS " FROM result INDEXED BY result_of_test"
			 " WHERE job_id = ?1 AND test_id = ?2" IS_COMPLETE " ORDER BY ordinal",
};

/* Two walks by ordinal: of the packed results and of the rows. Where both have one, the row says more. */
struct job_cursor {
	struct packed_cursor c;
	sqlite3_stmt *parts, *rows;
	int64_t job_id, test_id, from; /* test_id 0: all; from: the first ordinal */
	bool has_durations;
	struct packed_part part; /* no list: there is none left */
	size_t i;                /* its next result */
	bool has_row, is_row, is_packed;
};

static int64_t packed_ordinal(const struct job_cursor *j)
{
	return j->part.list ? j->part.place.first + (int64_t)j->i : INT64_MAX;
}

/* Moves to the next packed result from j->i on, in this part or a later one. */
static int find_packed(struct job_cursor *j)
{
	for (;;) {
		bool has;
		int rc;

		if (j->part.list) {
			if (packed_ordinal(j) < j->from)
				j->i = (size_t)(j->from - j->part.place.first);
			if (j->test_id)
				j->i = test_list_find(j->part.list, j->test_id, j->i);
			if (j->i < j->part.list->n)
				return SQLITE_OK;
		}
		packed_part_release(&j->part);
		rc = packed_statement_step(&j->c, j->parts, &has);
		if (rc != SQLITE_OK || !has)
			return rc;
		j->i = 0;
		rc = packed_part_read(&j->c, j->parts, 0, j->job_id, j->has_durations, &j->part);
		if (rc != SQLITE_OK)
			return rc;
	}
}

static void choose_result(struct job_cursor *j)
{
	int64_t packed = packed_ordinal(j), row = j->has_row ? sqlite3_column_int64(j->rows, 1) : INT64_MAX;

	j->is_packed = packed != INT64_MAX && packed <= row;
	j->is_row = j->has_row && row <= packed;
}

static int job_next(sqlite3_vtab_cursor *cursor)
{
	struct job_cursor *j = (struct job_cursor *)cursor;
	int rc = SQLITE_OK;

	if (j->is_packed) {
		j->i++;
		rc = find_packed(j);
	}
	if (rc == SQLITE_OK && j->is_row)
		rc = packed_statement_step(&j->c, j->rows, &j->has_row);
	choose_result(j);
	return rc;
}

static int job_filter(sqlite3_vtab_cursor *cursor, int plan, const char *text, int argc, sqlite3_value **argv)
{
	struct job_cursor *j = (struct job_cursor *)cursor;
	int rc, at = 1;

	(void)text;
	(void)argc;
	packed_part_release(&j->part);
	j->job_id = sqlite3_value_int64(argv[0]);
	j->test_id = plan & BY_TEST ? sqlite3_value_int64(argv[at++]) : 0;
	j->from = plan & FROM_ORDINAL ? sqlite3_value_int64(argv[at]) : INT64_MIN;
	j->has_durations = plan & WITH_DURATIONS;
	rc = packed_statement_open(&j->c, JOB_STATEMENTS, JOB_PARTS, j->job_id, NULL, -1, &j->parts);
	if (rc == SQLITE_OK)
		rc = plan & BY_TEST ? packed_statement_open(&j->c, JOB_STATEMENTS, JOB_ROWS_OF_TEST, j->job_id, NULL,
					  j->test_id, &j->rows)
				    : packed_statement_open(&j->c, JOB_STATEMENTS, JOB_ROWS, j->job_id, NULL,
					  j->from < 0 ? 0 : j->from, &j->rows);
	if (rc == SQLITE_OK)
		rc = find_packed(j);
	if (rc == SQLITE_OK)
		rc = packed_statement_step(&j->c, j->rows, &j->has_row);
	choose_result(j);
	return rc;
}

static int job_eof(sqlite3_vtab_cursor *cursor)
{
	struct job_cursor *j = (struct job_cursor *)cursor;

	return !j->is_packed && !j->is_row;
}

static int job_column(sqlite3_vtab_cursor *cursor, sqlite3_context *out, int column)
{
	struct job_cursor *j = (struct job_cursor *)cursor;

	if (j->is_row)
		sqlite3_result_value(out, sqlite3_column_value(j->rows, column));
	else if (column == COLUMN_JOB)
		sqlite3_result_int64(out, j->job_id);
	else if (column == COLUMN_ORDINAL)
		sqlite3_result_int64(out, packed_ordinal(j));
	else if (column == COLUMN_TEST)
		sqlite3_result_int64(out, j->part.list->ids[j->i]);
	else if (column == COLUMN_STATUS)
		packed_status_result(out, j->part.statuses[j->i]);
	else if (column == COLUMN_DURATION && j->part.durations && j->part.durations[j->i] >= 0)
		sqlite3_result_int64(out, j->part.durations[j->i]);
	return SQLITE_OK; /* otherwise NULL */
}

static int job_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret)
{
	struct job_cursor *j = (struct job_cursor *)cursor;

	*ret = j->is_row ? sqlite3_column_int64(j->rows, 1) : packed_ordinal(j);
	return SQLITE_OK;
}

static int job_plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
	int job = packed_plan_find(info, COLUMN_JOB, SQLITE_INDEX_CONSTRAINT_EQ), n = 0;
	int test = packed_plan_find(info, COLUMN_TEST, SQLITE_INDEX_CONSTRAINT_EQ);
	int from = packed_plan_find(info, COLUMN_ORDINAL, SQLITE_INDEX_CONSTRAINT_GE);

	(void)table;
	if (job < 0)
		return SQLITE_CONSTRAINT; /* not in this order of the tables */
	packed_plan_use(info, job, &n);
	if (test >= 0)
		packed_plan_use(info, test, &n);
	if (from >= 0)
		packed_plan_use(info, from, &n);
	info->idxNum = (test >= 0 ? BY_TEST : 0) | (from >= 0 ? FROM_ORDINAL : 0) |
		       (info->colUsed >> COLUMN_DURATION & 1 ? WITH_DURATIONS : 0);
	info->estimatedRows = test >= 0 ? 1 : 1000;
	info->estimatedCost = test >= 0 ? 10 : 1000;
	info->orderByConsumed =
	    info->nOrderBy == 1 && info->aOrderBy[0].iColumn == COLUMN_ORDINAL && !info->aOrderBy[0].desc;
	return SQLITE_OK;
}

static int job_connect(sqlite3 *handle, void *db, int argc, const char *const *argv, sqlite3_vtab **ret, char **why)
{
	(void)argc;
	(void)argv;
	(void)why;
	return packed_connect(handle, db,
	    "CREATE TABLE x(job_id INTEGER, ordinal INTEGER, test_id INTEGER, status TEXT, duration_ms INTEGER,"
	    " dtype TEXT, message TEXT, number REAL, unit TEXT, log_url TEXT, trace TEXT, file TEXT, line INTEGER,"
	    " mark BLOB)",
	    ret);
}

static int job_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret)
{
	return packed_cursor_open(table, ret, sizeof(struct job_cursor));
}

static int job_close(sqlite3_vtab_cursor *cursor)
{
	struct job_cursor *j = (struct job_cursor *)cursor;

	packed_part_release(&j->part);
	packed_cursor_close(&j->c);
	return SQLITE_OK;
}

const sqlite3_module packed_job_test = {
    .xConnect = job_connect,
    .xDisconnect = packed_disconnect,
    .xBestIndex = job_plan,
    .xOpen = job_open,
    .xClose = job_close,
    .xFilter = job_filter,
    .xNext = job_next,
    .xEof = job_eof,
    .xColumn = job_column,
    .xRowid = job_rowid,
};
