/* Two tables of SQLite that exist only while they are read. They unpack what store/jobs.c packs:
 *
 *   job_test  each test of a job: the packed results, and the rows of `result`, which say more of some
 *   cell      each cell of a change: the rows of `verdict`, and for each other test the worst result of the jobs that count
 *
 * A statement has to say job_id = …, and for cells change_id = …. With test_id = … it decodes one test of each list.
 *
 * Thread: the connection's. Ownership: the connection has the tables and their cursors; a closed cursor waits for the next
 * use, with its statements. */
#include "db/db_sqlite.h"
#include "model/packed_tests.h"

/* ==== lists of tests ==== */

enum {
	LISTS_KEPT = 4,
	LIST_MAX_BYTES = REPORT_TESTS_MAX * 8,
};

struct test_list {
	int64_t id;
	uint8_t digest[SHA256_BYTES]; /* an id may mean another list after a rollback */
	int n_users;
	size_t n;
	bool is_distinct; /* no test is in it twice */
	int64_t ids[];
};

/* The lists that this connection used last, the newest first. */
struct test_lists {
	struct test_list *kept[LISTS_KEPT];
	sqlite3_stmt *find;
};

static void test_list_release(struct test_list *l)
{
	if (l && --l->n_users == 0)
		free(l);
}

void test_lists_free(struct test_lists *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < LISTS_KEPT; i++)
		test_list_release(l->kept[i]);
	free(l);
}

/* Finds the row; SQLITE_ROW, or another code. The row stays until the statement is reset. */
static int find_list_row(struct db *d, int64_t id)
{
	sqlite3_stmt **find = &d->lists->find;

	if (!*find) {
		int rc = sqlite3_prepare_v3(d->handle,
		    "SELECT digest, n, is_distinct, base_id, tests FROM test_list WHERE id = ?1", -1,
		    SQLITE_PREPARE_PERSISTENT, find, NULL);

		if (rc != SQLITE_OK)
			return rc;
	}
	sqlite3_reset(*find);
	sqlite3_bind_int64(*find, 1, id);
	return sqlite3_step(*find);
}

/* The bytes of the list itself. A list that resembles another one (base_id) is stored as the difference; that one is not. */
static bool read_list_bytes(struct db *d, int64_t id, bool may_have_base, struct buf *out)
{
	struct buf base = BUF_INIT(LIST_MAX_BYTES), packed = BUF_INIT(LIST_MAX_BYTES * 2);
	bool is_read = find_list_row(d, id) == SQLITE_ROW;
	int64_t base_id = is_read ? sqlite3_column_int64(d->lists->find, 3) : 0;

	if (is_read)
		is_read = buf_append(&packed, sqlite3_column_blob(d->lists->find, 4),
			      (size_t)sqlite3_column_bytes(d->lists->find, 4)) == 0;
	if (is_read && base_id)
		is_read = may_have_base && read_list_bytes(d, base_id, false, &base);
	if (is_read)
		is_read = decompress_like(base.data, base.len, packed.data, packed.len, out) == 0;
	buf_release(&base);
	buf_release(&packed);
	return is_read;
}

/* From the row that find_list_row() found. */
static struct test_list *read_list(struct db *d, int64_t id)
{
	struct buf bytes = BUF_INIT(LIST_MAX_BYTES);
	int64_t n = sqlite3_column_int64(d->lists->find, 1);
	struct test_list *l;

	if (n <= 0 || n > REPORT_TESTS_MAX)
		return NULL;
	l = xmalloc(sizeof(*l) + (size_t)n * sizeof(l->ids[0]));
	*l = (struct test_list){
	    .id = id, .n_users = 1, .n = (size_t)n, .is_distinct = sqlite3_column_int(d->lists->find, 2) != 0};
	memcpy(l->digest, sqlite3_column_blob(d->lists->find, 0), SHA256_BYTES);
	if (!read_list_bytes(d, id, true, &bytes) || !test_list_get(bytes.data, bytes.len, l->ids, l->n)) {
		free(l);
		l = NULL;
	}
	buf_release(&bytes);
	return l;
}

/* test_list_release(). NULL: it is missing or damaged. */
static struct test_list *test_list_of(struct db *d, int64_t id)
{
	struct test_list **kept = d->lists->kept, *l = NULL;
	size_t i = 0;

	if (find_list_row(d, id) == SQLITE_ROW && sqlite3_column_bytes(d->lists->find, 0) == SHA256_BYTES) {
		while (i < LISTS_KEPT - 1 && kept[i] && kept[i]->id != id)
			i++;
		l = kept[i];
		if (!l || l->id != id || memcmp(l->digest, sqlite3_column_blob(d->lists->find, 0), SHA256_BYTES) != 0) {
			l = read_list(d, id);
			test_list_release(kept[i]);
		}
		memmove(kept + 1, kept, i * sizeof(*kept));
		kept[0] = l;
		if (l)
			l->n_users++;
	}
	sqlite3_reset(d->lists->find);
	return l;
}

/* ==== a table and its cursors ==== */

enum { JOB_PARTS, JOB_ROWS, JOB_ROWS_OF_TEST, N_JOB_STATEMENTS };
enum {
	CELL_ROWS,
	CELL_ROWS_OF_ACCELERATOR,
	CELL_ROW_OF_TEST,
	CELL_PARTS,
	CELL_PARTS_OF_ACCELERATOR,
	CELL_RESULT,
	N_CELL_STATEMENTS
};
enum { N_STATEMENTS_MAX = 6 };

struct packed_table {
	sqlite3_vtab base;
	struct db *db;
	struct packed_cursor *idle; /* closed ones */
};

struct packed_cursor {
	sqlite3_vtab_cursor base;
	struct packed_cursor *next_idle;
	sqlite3_stmt *statements[N_STATEMENTS_MAX];
};

static struct packed_table *table_of(const struct packed_cursor *c) { return (struct packed_table *)c->base.pVtab; }

static int table_fail(struct packed_cursor *c, int rc)
{
	struct packed_table *t = table_of(c);

	sqlite3_free(t->base.zErrMsg);
	t->base.zErrMsg = sqlite3_mprintf("%s", sqlite3_errmsg(t->db->handle));
	return rc;
}

static int table_fail_damaged(struct packed_cursor *c, int64_t job_id)
{
	struct packed_table *t = table_of(c);

	sqlite3_free(t->base.zErrMsg);
	t->base.zErrMsg = sqlite3_mprintf("the packed results of job %lld are damaged", (long long)job_id);
	return SQLITE_FORMAT;
}

static int table_connect(sqlite3 *handle, void *db, const char *columns, sqlite3_vtab **ret)
{
	struct packed_table *t;
	int rc = sqlite3_declare_vtab(handle, columns);

	if (rc != SQLITE_OK)
		return rc;
	sqlite3_vtab_config(handle, SQLITE_VTAB_INNOCUOUS);
	t = xcalloc(1, sizeof(*t));
	t->db = db;
	*ret = &t->base;
	return SQLITE_OK;
}

/* Prepares it once for a cursor, and binds its numbers and its accelerator; NULL: it has none. */
static int statement_open(struct packed_cursor *c, const char *const *texts, int which, int64_t id,
    const char *accelerator, int64_t id_2, sqlite3_stmt **ret)
{
	sqlite3_stmt **s = &c->statements[which];
	int at = 1;

	if (!*s) {
		int rc =
		    sqlite3_prepare_v3(table_of(c)->db->handle, texts[which], -1, SQLITE_PREPARE_PERSISTENT, s, NULL);

		if (rc != SQLITE_OK)
			return table_fail(c, rc);
	}
	sqlite3_reset(*s);
	sqlite3_bind_int64(*s, at++, id);
	if (accelerator)
		sqlite3_bind_text(*s, at++, accelerator, -1, SQLITE_TRANSIENT);
	if (id_2 >= 0)
		sqlite3_bind_int64(*s, at, id_2);
	*ret = *s;
	return SQLITE_OK;
}

/* Takes the next row. *ret_has: whether there is one. */
static int statement_step(struct packed_cursor *c, sqlite3_stmt *s, bool *ret_has)
{
	int rc = sqlite3_step(s);

	*ret_has = rc == SQLITE_ROW;
	if (rc == SQLITE_ROW)
		return SQLITE_OK;
	sqlite3_reset(s);
	return rc == SQLITE_DONE ? SQLITE_OK : table_fail(c, rc);
}

static int cursor_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret, size_t bytes)
{
	struct packed_table *t = (struct packed_table *)table;
	struct packed_cursor *c = t->idle;

	if (c)
		t->idle = c->next_idle;
	else
		c = xcalloc(1, bytes);
	*ret = &c->base;
	return SQLITE_OK;
}

static void cursor_close(struct packed_cursor *c)
{
	struct packed_table *t = table_of(c);

	for (size_t i = 0; i < N_STATEMENTS_MAX; i++)
		sqlite3_reset(c->statements[i]);
	c->next_idle = t->idle;
	t->idle = c;
}

static int table_disconnect(sqlite3_vtab *table)
{
	struct packed_table *t = (struct packed_table *)table;

	for (struct packed_cursor *c = t->idle, *next; c; c = next) {
		next = c->next_idle;
		for (size_t i = 0; i < N_STATEMENTS_MAX; i++)
			sqlite3_finalize(c->statements[i]);
		free(c);
	}
	/* the last table to go ends the statement that they share */
	sqlite3_finalize(t->db->lists->find);
	t->db->lists->find = NULL;
	free(t);
	return SQLITE_OK;
}

/* ---- the packed results of one part of a job ---- */

struct part {
	struct test_list *list;
	uint8_t *statuses;
	int64_t *durations; /* or NULL: not wanted */
	int64_t job_id, first;
	bool is_late, has_rows;
};

static void part_release(struct part *p)
{
	test_list_release(p->list);
	free(p->statuses);
	free(p->durations);
	*p = (struct part){.list = NULL};
}

/* From the columns n, list_id and cells of the statement, which begin at `at`. */
static int part_read(struct packed_cursor *c, sqlite3_stmt *s, int at, bool has_durations, struct part *p)
{
	size_t n = (size_t)sqlite3_column_int64(s, at);

	p->list = test_list_of(table_of(c)->db, sqlite3_column_int64(s, at + 1));
	if (!p->list || p->list->n != n)
		return table_fail_damaged(c, p->job_id);
	p->statuses = xmalloc(n);
	if (has_durations)
		p->durations = xcalloc(n, sizeof(*p->durations));
	if (!packed_cells_get(sqlite3_column_blob(s, at + 2), (size_t)sqlite3_column_bytes(s, at + 2), p->job_id,
		p->statuses, p->durations, n))
		return table_fail_damaged(c, p->job_id);
	return SQLITE_OK;
}

/* The next place of the test in the list, from `i`. */
static size_t list_find(const struct test_list *l, int64_t test_id, size_t i)
{
	while (i < l->n && l->ids[i] != test_id)
		i++;
	return i;
}

static void result_status(sqlite3_context *out, uint8_t status)
{
	sqlite3_result_text(out, test_status_name((enum test_status)status), -1, SQLITE_STATIC);
}

/* ==== job_test ==== */

enum { COLUMN_JOB, COLUMN_ORDINAL, COLUMN_TEST, COLUMN_STATUS, COLUMN_DURATION };
enum { BY_TEST = 1, FROM_ORDINAL = 2, WITH_DURATIONS = 4 };

#define RESULT_COLUMNS                                                                                                 \
	"job_id, ordinal, test_id, status, duration_ms, dtype, message, number, unit, log_url, trace, file, line"

static const char *const JOB_STATEMENTS[N_JOB_STATEMENTS] = {
    [JOB_PARTS] = "SELECT first, n, list_id, cells FROM packed_job WHERE job_id = ?1 ORDER BY first",
    [JOB_ROWS] = "SELECT " RESULT_COLUMNS " FROM result WHERE job_id = ?1 AND ordinal >= ?2 ORDER BY ordinal",
    [JOB_ROWS_OF_TEST] = "SELECT " RESULT_COLUMNS " FROM result INDEXED BY result_of_test"
			 " WHERE job_id = ?1 AND test_id = ?2 ORDER BY ordinal",
};

/* Two walks by ordinal: of the packed results and of the rows. Where both have one, the row says more. */
struct job_cursor {
	struct packed_cursor c;
	sqlite3_stmt *parts, *rows;
	int64_t job_id, test_id, from; /* test_id 0: all; from: the first ordinal */
	bool has_durations;
	struct part part; /* no list: there is none left */
	size_t i;         /* its next result */
	bool has_row, is_row, is_packed;
};

static int64_t packed_ordinal(const struct job_cursor *j)
{
	return j->part.list ? j->part.first + (int64_t)j->i : INT64_MAX;
}

/* Moves to the next packed result from j->i on, in this part or a later one. */
static int find_packed(struct job_cursor *j)
{
	for (;;) {
		bool has;
		int rc;

		if (j->part.list) {
			if (j->part.first + (int64_t)j->i < j->from)
				j->i = (size_t)(j->from - j->part.first);
			if (j->test_id)
				j->i = list_find(j->part.list, j->test_id, j->i);
			if (j->i < j->part.list->n)
				return SQLITE_OK;
		}
		part_release(&j->part);
		rc = statement_step(&j->c, j->parts, &has);
		if (rc != SQLITE_OK || !has)
			return rc;
		j->i = 0;
		j->part.job_id = j->job_id;
		j->part.first = sqlite3_column_int64(j->parts, 0);
		rc = part_read(&j->c, j->parts, 1, j->has_durations, &j->part);
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
		rc = statement_step(&j->c, j->rows, &j->has_row);
	choose_result(j);
	return rc;
}

static int job_filter(sqlite3_vtab_cursor *cursor, int plan, const char *text, int argc, sqlite3_value **argv)
{
	struct job_cursor *j = (struct job_cursor *)cursor;
	int rc, at = 1;

	(void)text;
	(void)argc;
	part_release(&j->part);
	j->job_id = sqlite3_value_int64(argv[0]);
	j->test_id = plan & BY_TEST ? sqlite3_value_int64(argv[at++]) : 0;
	j->from = plan & FROM_ORDINAL ? sqlite3_value_int64(argv[at]) : INT64_MIN;
	j->has_durations = plan & WITH_DURATIONS;
	rc = statement_open(&j->c, JOB_STATEMENTS, JOB_PARTS, j->job_id, NULL, -1, &j->parts);
	if (rc == SQLITE_OK)
		rc = plan & BY_TEST ? statement_open(&j->c, JOB_STATEMENTS, JOB_ROWS_OF_TEST, j->job_id, NULL,
					  j->test_id, &j->rows)
				    : statement_open(&j->c, JOB_STATEMENTS, JOB_ROWS, j->job_id, NULL,
					  j->from < 0 ? 0 : j->from, &j->rows);
	if (rc == SQLITE_OK)
		rc = find_packed(j);
	if (rc == SQLITE_OK)
		rc = statement_step(&j->c, j->rows, &j->has_row);
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
		result_status(out, j->part.statuses[j->i]);
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

/* The place of a constraint with this operator on the column, or -1. */
static int find_constraint(const sqlite3_index_info *info, int column, int op)
{
	for (int i = 0; i < info->nConstraint; i++) {
		const struct sqlite3_index_constraint *c = &info->aConstraint[i];

		if (c->iColumn == column && c->op == op && c->usable)
			return i;
	}
	return -1;
}

/* Passes the value to the filter; SQLite still checks the constraint itself. */
static void use_constraint(sqlite3_index_info *info, int i, int *n) { info->aConstraintUsage[i].argvIndex = ++*n; }

static int job_plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
	int job = find_constraint(info, COLUMN_JOB, SQLITE_INDEX_CONSTRAINT_EQ), n = 0;
	int test = find_constraint(info, COLUMN_TEST, SQLITE_INDEX_CONSTRAINT_EQ);
	int from = find_constraint(info, COLUMN_ORDINAL, SQLITE_INDEX_CONSTRAINT_GE);

	(void)table;
	if (job < 0)
		return SQLITE_CONSTRAINT; /* not in this order of the tables */
	use_constraint(info, job, &n);
	if (test >= 0)
		use_constraint(info, test, &n);
	if (from >= 0)
		use_constraint(info, from, &n);
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
	return table_connect(handle, db,
	    "CREATE TABLE x(job_id INTEGER, ordinal INTEGER, test_id INTEGER, status TEXT, duration_ms INTEGER,"
	    " dtype TEXT, message TEXT, number REAL, unit TEXT, log_url TEXT, trace TEXT, file TEXT, line INTEGER)",
	    ret);
}

static int job_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret)
{
	return cursor_open(table, ret, sizeof(struct job_cursor));
}

static int job_close(sqlite3_vtab_cursor *cursor)
{
	struct job_cursor *j = (struct job_cursor *)cursor;

	part_release(&j->part);
	cursor_close(&j->c);
	return SQLITE_OK;
}

static const sqlite3_module JOB_TEST = {
    .xConnect = job_connect,
    .xDisconnect = table_disconnect,
    .xBestIndex = job_plan,
    .xOpen = job_open,
    .xClose = job_close,
    .xFilter = job_filter,
    .xNext = job_next,
    .xEof = job_eof,
    .xColumn = job_column,
    .xRowid = job_rowid,
};

/* ==== cell ==== */

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
	struct part *at;
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
	const struct part *p = &v->at[number];
	size_t i = v->test_id ? list_find(p->list, v->test_id, 0) : 0;

	while (i < p->list->n) {
		*ARRAY_PUSH(v->candidates, v->n_candidates) = (struct candidate){
		    .test_id = p->list->ids[i], .part = number, .i = (uint32_t)i, .status = p->statuses[i]};
		i = v->test_id ? list_find(p->list, v->test_id, i + 1) : i + 1;
	}
}

static void parts_release(struct cell_cursor *v)
{
	for (size_t i = 0; i < v->n_parts; i++)
		part_release(&v->at[i]);
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
		struct part *p = ARRAY_PUSH(v->at, v->n_parts);
		int rc;

		*p = (struct part){.job_id = sqlite3_column_int64(v->parts, 1),
		    .is_late = sqlite3_column_int(v->parts, 2) != 0,
		    .first = sqlite3_column_int64(v->parts, 3),
		    .has_rows = sqlite3_column_int64(v->parts, 4) > 0};
		rc = part_read(&v->c, v->parts, 5, false, p);
		if (rc != SQLITE_OK)
			return rc;
		must_compare |= v->n_parts > 1 || !p->list->is_distinct;
		add_candidates(v, (uint32_t)(v->n_parts - 1));
		/* a vendor may repeat the same tests in many jobs */
		if (v->n_candidates > CANDIDATES_KEPT && v->n_candidates > 2 * n_kept) {
			keep_worst(v);
			n_kept = v->n_candidates;
		}
		rc = statement_step(&v->c, v->parts, &v->has_part);
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
	int rc = statement_step(&v->c, v->rows, &v->is_row);

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
	const struct part *p = &v->at[v->cell->part];
	int rc = SQLITE_OK;

	if (!v->has_result && p->has_rows) {
		rc = statement_open(
		    &v->c, CELL_STATEMENTS, CELL_RESULT, p->job_id, NULL, p->first + v->cell->i, &v->result);
		if (rc == SQLITE_OK)
			rc = statement_step(&v->c, v->result, &v->has_result);
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
	rc = statement_open(&v->c, CELL_STATEMENTS,
	    !accelerator     ? CELL_ROWS
	    : plan & OF_TEST ? CELL_ROW_OF_TEST
			     : CELL_ROWS_OF_ACCELERATOR,
	    v->change_id, accelerator, accelerator && plan & OF_TEST ? v->test_id : -1, &v->rows);
	if (rc == SQLITE_OK)
		rc = statement_open(&v->c, CELL_STATEMENTS, accelerator ? CELL_PARTS_OF_ACCELERATOR : CELL_PARTS,
		    v->change_id, accelerator, -1, &v->parts);
	if (rc == SQLITE_OK)
		rc = statement_step(&v->c, v->parts, &v->has_part);
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
		result_status(out, of->status);
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
	int change = find_constraint(info, CELL_CHANGE, SQLITE_INDEX_CONSTRAINT_EQ), n = 0;
	int accelerator = find_constraint(info, CELL_ACCELERATOR, SQLITE_INDEX_CONSTRAINT_EQ);
	int test = find_constraint(info, CELL_TEST, SQLITE_INDEX_CONSTRAINT_EQ);

	(void)table;
	if (change < 0)
		return SQLITE_CONSTRAINT; /* not in this order of the tables */
	use_constraint(info, change, &n);
	if (accelerator >= 0)
		use_constraint(info, accelerator, &n);
	if (test >= 0)
		use_constraint(info, test, &n);
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
	return table_connect(handle, db,
	    "CREATE TABLE x(change_id INTEGER, accelerator TEXT, test_id INTEGER, status TEXT, attribution TEXT,"
	    " message TEXT, job_id INTEGER, is_late INTEGER, file TEXT, line INTEGER, reason TEXT, evidence_job "
	    "INTEGER,"
	    " evidence_url TEXT, needs INTEGER)",
	    ret);
}

static int cell_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret)
{
	return cursor_open(table, ret, sizeof(struct cell_cursor));
}

static int cell_close(sqlite3_vtab_cursor *cursor)
{
	struct cell_cursor *v = (struct cell_cursor *)cursor;

	cells_release(v);
	cursor_close(&v->c);
	return SQLITE_OK;
}

static const sqlite3_module CELL = {
    .xConnect = cell_connect,
    .xDisconnect = table_disconnect,
    .xBestIndex = cell_plan,
    .xOpen = cell_open,
    .xClose = cell_close,
    .xFilter = cell_filter,
    .xNext = cell_next,
    .xEof = cell_eof,
    .xColumn = cell_column,
    .xRowid = cell_rowid,
};

int packed_tables_add(struct db *d, struct error *e)
{
	int rc;

	d->lists = xcalloc(1, sizeof(*d->lists));
	rc = sqlite3_create_module(d->handle, "job_test", &JOB_TEST, d);
	if (rc == SQLITE_OK)
		rc = sqlite3_create_module(d->handle, "cell", &CELL, d);
	return rc == SQLITE_OK ? 0 : error_set(e, db_code_of_sqlite(rc), "%s: %s", d->path, sqlite3_errmsg(d->handle));
}
