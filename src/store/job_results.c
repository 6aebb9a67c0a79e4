#include "store/job_results.h"

#include "db/counters.h"
#include "db/nodes.h"
#include "db/packed_lists.h"
#include "db/record_rows.h"
#include "model/attribution.h"
#include "verdict/verdicts.h"

enum {
	JOBS_BACK_MAX = 100,
	LIST_BYTES_EACH = 8,
	NAMED_AT_ONCE = 700,  /* tests; a new one takes up to 15 µs where the names of others lie between */
	ROWS_AT_ONCE = 2500,  /* 2 µs each */
	LOOKED_UP_SHARE = 16, /* reads the whole list for the ids of more of its tests than one of so many */
};

/* ---- lists ---- */

static int compare_ids(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

	return (a > b) - (a < b);
}

static bool are_distinct(const int64_t *ids, size_t n)
{
	int64_t *sorted = xmemdup(ids, n * sizeof(*ids));
	bool is_distinct = true;

	qsort(sorted, n, sizeof(*sorted), compare_ids);
	for (size_t i = 1; i < n; i++)
		is_distinct &= sorted[i] != sorted[i - 1];
	free(sorted);
	return is_distinct;
}

/* A list that the same job of the accelerator had a short time ago, and that is stored whole. 0: there is none. */
static int64_t similar_list(struct txn *d, int64_t job_id)
{
	return db_int(d, 0,
	    "SELECT COALESCE(l.base_id, l.id) FROM job n CROSS JOIN (SELECT id, workflow, name, accelerator FROM job"
	    "  WHERE accelerator = (SELECT accelerator FROM job WHERE id = ?1) AND id > 0 AND id < ?1"
	    "  ORDER BY id DESC LIMIT ?2) o ON o.workflow = n.workflow AND o.name = n.name"
	    " CROSS JOIN packed_job p ON p.job_id = o.id CROSS JOIN test_list l ON l.id = p.list_id"
	    " WHERE n.id = ?1 ORDER BY o.id DESC, p.first LIMIT 1",
	    V_INT(job_id), V_INT(JOBS_BACK_MAX));
}

#define PACKED_LIST_RECORD(F, S) F(S, BLOB, tests, NULL, "tests", "")
RECORD_LOCAL(packed_list, PACKED_LIST_RECORD)

#define REPORT_PLACE_RECORD(F, S)                                                                                      \
	F(S, ID, list_id, NULL, "(SELECT id FROM test_list WHERE digest = ?1)", "")                                    \
	F(S, BOOL, is_staged, NULL, "EXISTS (SELECT 1 FROM staged WHERE job_id = ?2)",                                 \
	    "The job has rows of a report in parts.")
RECORD_LOCAL(report_place, REPORT_PLACE_RECORD)

/* In each transaction, because retention deletes lists that no job has. */
static void find_place(const struct view *d, struct packed_tests *p, int64_t job_id)
{
	struct report_place place = {.list_id = 0};

	RECORD_READ_FIRST(
	    d, report_place, REPORT_PLACE_RECORD, &place, "", V_BLOB(p->digest, sizeof(p->digest)), V_INT(job_id));
	p->list_id = place.list_id;
	p->has_leftovers = place.is_staged;
}

static void name_tests(struct txn *d, struct packed_tests *p, size_t n)
{
	if (!p->ids)
		p->ids = xcalloc(p->n, sizeof(*p->ids));
	if (n > p->n - p->n_named)
		n = p->n - p->n_named;
	test_ids_of(d, p->tests + p->n_named, n, p->ids + p->n_named);
	p->n_named += n;
}

/* Writes the list as the difference to a similar one if that takes at most half of the room. */
static int64_t insert_list(struct txn *d, int64_t job_id, struct packed_tests *p)
{
	size_t n = p->n;
	struct buf bytes = BUF_INIT(n * LIST_BYTES_EACH), base = BUF_INIT(REPORT_TESTS_MAX * LIST_BYTES_EACH);
	struct buf whole = BUF_INIT(n * 2 * LIST_BYTES_EACH + 1024), rest = BUF_INIT(n * 2 * LIST_BYTES_EACH + 1024);
	int64_t base_id = similar_list(d, job_id), ret;
	bool is_distinct;

	name_tests(d, p, n);
	is_distinct = are_distinct(p->ids, n);
	test_list_put(&bytes, p->ids, n);
	if (compress_like(db_compressor(d), NULL, 0, bytes.data, bytes.len, &whole))
		db_fail(d, ERR_TOO_BIG, "a list of %zu tests cannot be stored", n);
	if (base_id) {
		struct rows *r =
		    db_rows(d, RECORD_QUERY(PACKED_LIST_RECORD, "FROM test_list WHERE id = ?1"), V_INT(base_id));
		struct packed_list list = {0};

		if (rows_next(r))
			record_read(r, &packed_list_record, &list);
		if (!list.tests.p || decompress_like(NULL, 0, list.tests.p, list.tests.n, &base) ||
		    compress_like(db_compressor(d), base.data, base.len, bytes.data, bytes.len, &rest) ||
		    rest.len > whole.len / 2)
			base_id = 0;
		rows_end(r);
	}
	ret = db_exec_int(d, 0,
	    "INSERT INTO test_list (digest, n, is_distinct, base_id, tests) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id",
	    V_BLOB(p->digest, sizeof(p->digest)), V_INT((int64_t)n), V_INT(is_distinct), V_INT_OR_NULL(base_id),
	    V_BLOB(base_id ? rest.data : whole.data, base_id ? rest.len : whole.len));
	db_unpack_list(d, ret, p->ids, n);
	buf_release(&bytes);
	buf_release(&base);
	buf_release(&whole);
	buf_release(&rest);
	return ret;
}

/* Finds the ids of the tests that need rows. */
static void name_rows(struct txn *d, struct packed_tests *p)
{
	struct test_list *l;

	if (p->n_named == p->n || p->n_rows == 0)
		return;
	p->ids = p->ids ? p->ids : xcalloc(p->n, sizeof(*p->ids));
	if (p->n_rows * LOOKED_UP_SHARE <= p->n) {
		for (size_t i = 0; i < p->n_rows; i++) {
			const struct test_result *t = &p->tests[p->rows[i]];

			p->ids[p->rows[i]] = test_id_of(d, t->suite, t->name, t->dtype);
		}
		return;
	}
	l = test_list_of(d->view, p->list_id);
	if (l && l->n == p->n) {
		memcpy(p->ids, l->ids, p->n * sizeof(*p->ids));
		p->n_named = p->n;
	} else {
		db_fail(d, ERR_INVALID, "the list %lld of tests is damaged", (long long)p->list_id);
	}
	test_list_release(l);
}

/* ---- rows ---- */

/* Writes rows of the results that say more than their packed form, from number `from` on, and at most n. */
static void insert_rows(
    struct txn *d, int64_t job_id, int64_t first, const struct packed_tests *p, size_t from, size_t n)
{
	for (size_t i = from; i < p->n_rows && i < from + n; i++) {
		const struct test_result *t = &p->tests[p->rows[i]];
		uint8_t mark[FAILURE_MARK_BYTES];

		failure_mark_put(&p->marks[i], mark);
		db_exec(d,
		    "INSERT INTO result (job_id, ordinal, test_id, status, duration_ms, dtype, message, number, unit,"
		    " log_url, trace, file, line, is_packed, mark)"
		    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 1, ?14)",
		    V_INT(job_id), V_INT(first + p->rows[i]), V_INT(p->ids[p->rows[i]]),
		    V_TEXT(test_status_name(t->status)), t->duration_ms < 0 ? V_NULL : V_INT(t->duration_ms),
		    V_TEXT(t->dtype), V_TEXT(t->message), t->has_number ? V_REAL(t->number) : V_NULL, V_TEXT(t->unit),
		    V_TEXT(t->log_url), V_TEXT(t->trace), V_TEXT(t->file), V_INT_OR_NULL(t->line),
		    attribution_applies(t->status) ? V_BLOB(mark, sizeof(mark)) : V_NULL);
	}
}

bool staged_rows_drop(struct txn *d, int64_t job_id, int64_t *left)
{
	if (!db_has(d, "SELECT 1 FROM staged WHERE job_id = ?1", V_INT(job_id)))
		return true;
	*left -= db_exec_count(d,
	    "DELETE FROM result WHERE (job_id, ordinal) IN (SELECT job_id, ordinal FROM result WHERE job_id = ?1"
	    " AND ordinal >= COALESCE((SELECT n_tests FROM job WHERE id = ?1), 0) LIMIT ?2)",
	    V_INT(job_id), V_INT(*left));
	if (*left > 0)
		db_exec(d, "DELETE FROM staged WHERE job_id = ?1", V_INT(job_id));
	return *left > 0;
}

bool staged_reports_drop(struct txn *d, int64_t before_ms, int64_t *left)
{
	bool has_any = false;
	int64_t id;

	db_exec(d, "UPDATE staged SET owner = 0 WHERE at_ms < ?1", V_INT(before_ms));
	while (*left > 0 && (id = db_int(d, 0, "SELECT job_id FROM staged WHERE owner = 0 LIMIT 1")) != 0) {
		has_any = true;
		staged_rows_drop(d, id, left);
	}
	return has_any;
}

void staged_reports_give_up(struct txn *d)
{
	db_exec(d, "UPDATE staged SET owner = 0 WHERE owner <> 0 AND NOT " NODE_IS_ALIVE("staged.epoch"),
	    V_INT(node_horizon(d).first_epoch));
}

/* ---- a report in parts ---- */

/* Differs for all reports that this node is writing. */
static int64_t owner_of(const struct packed_tests *p) { return (int64_t)(intptr_t)p; }

void job_results_go_on(struct packed_tests *p, int64_t n_parts)
{
	if (!p)
		return;
	p->list_id = 0;
	if (n_parts > 0)
		return;
	p->n_named = p->n_staged = 0;
	p->staged_job = 0;
}

bool job_results_put_part(struct txn *d, int64_t job_id, int64_t first, struct packed_tests *p, int64_t now_ms)
{
	if (!p)
		return false;
	find_place(d->view, p, job_id);
	/* Another report of the job came between, and may have replaced the rows. Then this one is written at once. */
	if (p->staged_job && ((job_id && job_id != p->staged_job) ||
				 !db_has(d, "SELECT 1 FROM staged WHERE job_id = ?1 AND owner = ?2 AND epoch = ?3",
				     V_INT(p->staged_job), V_INT(owner_of(p)), V_INT(db_epoch(d))))) {
		job_results_give_up(d, p);
		p->staged_job = 0;
		return false;
	}
	if (!p->list_id && p->n - p->n_named > NAMED_AT_ONCE) {
		name_tests(d, p, NAMED_AT_ONCE);
		return true;
	}
	if (p->n_rows <= ROWS_AT_ONCE || p->n_staged == p->n_rows)
		return false;
	if (!p->staged_job) {
		p->staged_job = job_id ? job_id : db_int(d, 0, "SELECT " NEW_JOB_ID);
		staged_rows_drop(d, p->staged_job, &(int64_t){INT64_MAX});
		db_exec(d, "INSERT INTO staged (job_id, owner, at_ms, epoch) VALUES (?1, ?2, ?3, ?4)",
		    V_INT(p->staged_job), V_INT(owner_of(p)), V_INT(now_ms), V_INT(db_epoch(d)));
	}
	if (p->list_id)
		name_rows(d, p);
	else
		name_tests(d, p, p->n);
	insert_rows(d, p->staged_job, first, p, p->n_staged, ROWS_AT_ONCE);
	p->n_staged = p->n_staged + ROWS_AT_ONCE < p->n_rows ? p->n_staged + ROWS_AT_ONCE : p->n_rows;
	return true;
}

static void put_packed(struct txn *d, int64_t job_id, int64_t first, struct packed_tests *p)
{
	if (!p->list_id && !p->staged_job)
		find_place(d->view, p, job_id);
	if (p->staged_job)
		db_exec(d, "DELETE FROM staged WHERE job_id = ?1", V_INT(job_id));
	else if (p->has_leftovers)
		staged_rows_drop(d, job_id, &(int64_t){INT64_MAX});
	if (!p->list_id)
		p->list_id = insert_list(d, job_id, p);
	packed_tests_place(p, &(struct packed_place){job_id, first, p->list_id});
	db_exec(d, "INSERT INTO packed_job (job_id, first, n, list_id, n_rows, cells) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	    V_INT(job_id), V_INT(first), V_INT((int64_t)p->n), V_INT(p->list_id), V_INT((int64_t)p->n_rows),
	    V_BLOB(p->cells.data, p->cells.len));
	db_unpack_job(d, job_id, first, p->tests, p->n);
	name_rows(d, p);
	insert_rows(d, job_id, first, p, p->staged_job ? p->n_staged : 0, p->n_rows);
}

void job_results_put(struct txn *d, int64_t job_id, int64_t first, struct packed_tests *p)
{
	const int64_t *n = p->by_status;

	if (p->n)
		put_packed(d, job_id, first, p);
	db_exec(d,
	    "UPDATE job SET n_tests_fail = COALESCE(n_tests_fail, 0) + ?2,"
	    " n_tests_error = COALESCE(n_tests_error, 0) + ?3, n_tests_miss = COALESCE(n_tests_miss, 0) + ?4,"
	    " n_tests_pass = COALESCE(n_tests_pass, 0) + ?5, n_tests_done = COALESCE(n_tests_done, 0) + ?6,"
	    " n_tests_skip = COALESCE(n_tests_skip, 0) + ?7 WHERE id = ?1",
	    V_INT(job_id), V_INT(n[TEST_FAIL]), V_INT(n[TEST_ERROR]), V_INT(n[TEST_MISS]), V_INT(n[TEST_PASS]),
	    V_INT(n[TEST_DONE]), V_INT(n[TEST_SKIP]));
	counter_add(d, COUNT_RESULTS, (int64_t)p->n);
}

void job_results_give_up(struct txn *d, struct packed_tests *p)
{
	if (p && p->staged_job)
		db_exec(d, "UPDATE staged SET owner = 0 WHERE job_id = ?1 AND owner = ?2 AND epoch = ?3",
		    V_INT(p->staged_job), V_INT(owner_of(p)), V_INT(db_epoch(d)));
}
