#include "store/test_lists.h"

#include "db/record_rows.h"
#include "verdict/verdicts.h"

enum {
	JOBS_BACK_MAX = 100,
	LIST_BYTES_EACH = 8,
	NAMED_AT_ONCE = 1500, /* tests; a new one takes up to 6 µs */
	LOOKED_UP_SHARE = 16, /* reads the whole list for the ids of more of its tests than one of so many */
};

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
	    " WHERE n.id = ?1 ORDER BY o.id DESC LIMIT 1",
	    V_INT(job_id), V_INT(JOBS_BACK_MAX));
}

#define PACKED_LIST_RECORD(F, S) F(S, BLOB, tests, NULL, "tests", "")
RECORD_LOCAL(packed_list, PACKED_LIST_RECORD)

static int64_t find_list(const struct view *d, const struct packed_tests *p)
{
	return db_int(d, 0, "SELECT id FROM test_list WHERE digest = ?1", V_BLOB(p->digest, sizeof(p->digest)));
}

static void name_tests(struct txn *d, struct packed_tests *p, size_t n)
{
	if (!p->ids)
		p->ids = xcalloc(p->n, sizeof(*p->ids));
	for (; p->n_named < p->n && n > 0; p->n_named++, n--) {
		const struct test_result *t = &p->tests[p->n_named];

		p->ids[p->n_named] = test_id_of(d, t->suite, t->name, t->dtype);
	}
}

void test_list_go_on(struct packed_tests *p, int64_t n_parts)
{
	size_t n = (size_t)n_parts * NAMED_AT_ONCE;

	if (p)
		p->n_named = n < p->n ? n : p->n;
}

bool test_list_put_part(struct txn *d, struct packed_tests *p)
{
	if (!p || p->n - p->n_named <= NAMED_AT_ONCE || find_list(d->view, p))
		return false;
	name_tests(d, p, NAMED_AT_ONCE);
	return true;
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
	buf_release(&bytes);
	buf_release(&base);
	buf_release(&whole);
	buf_release(&rest);
	return ret;
}

int64_t test_list_put_row(struct txn *d, int64_t job_id, struct packed_tests *p)
{
	int64_t id = find_list(d->view, p);

	return id ? id : insert_list(d, job_id, p);
}

#define LISTED_TEST_RECORD(F, S)                                                                                       \
	F(S, INT, ordinal, NULL, "ordinal", "")                                                                        \
	F(S, ID, test_id, NULL, "test_id", "")
RECORD_LOCAL(listed_test, LISTED_TEST_RECORD)

void test_list_name_rows(struct txn *d, int64_t job_id, int64_t first, struct packed_tests *p)
{
	struct rows *r;

	if (p->n_named == p->n || p->n_rows == 0)
		return;
	if (p->n_rows * LOOKED_UP_SHARE <= p->n) {
		p->ids = p->ids ? p->ids : xcalloc(p->n, sizeof(*p->ids));
		for (size_t i = 0; i < p->n_rows; i++) {
			const struct test_result *t = &p->tests[p->rows[i]];

			p->ids[p->rows[i]] = test_id_of(d, t->suite, t->name, t->dtype);
		}
		return;
	}
	free(p->ids);
	p->ids = xcalloc(p->n, sizeof(*p->ids));
	r = db_rows(d, RECORD_QUERY(LISTED_TEST_RECORD, "FROM job_test WHERE job_id = ?1 AND ordinal >= ?2"),
	    V_INT(job_id), V_INT(first));
	while (rows_next(r)) {
		struct listed_test t;

		record_read(r, &listed_test_record, &t);
		if (t.ordinal - first < (int64_t)p->n)
			p->ids[t.ordinal - first] = t.test_id;
	}
}
