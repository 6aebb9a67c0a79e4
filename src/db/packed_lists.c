/* Lists of tests as the tables job_test and cell and the cells of a change read them. A connection keeps the lists that it used
 * last: pages and comments read the jobs of one accelerator, and usually all accelerators share a few. */
#include "db/packed_lists.h"

#include "db/db_driver.h"

enum {
	LISTS_KEPT = 16,
	TESTS_KEPT = 4 * REPORT_TESTS_MAX, /* of all of them */
	LIST_MAX_BYTES = REPORT_TESTS_MAX * 8,
};

/* The lists that this connection used last, the newest first. */
struct test_lists {
	struct test_list *kept[LISTS_KEPT];
};

static void forget_suites(struct test_list *l)
{
	while (l->n_suites > 0)
		free(l->suites[--l->n_suites]);
	FREE_AND_NULL(l->suites);
	FREE_AND_NULL(l->suite_of);
}

void test_list_release(struct test_list *l)
{
	if (!l || --l->n_users > 0)
		return;
	forget_suites(l);
	FREE_ALL(l->order, l);
}

struct test_lists *test_lists_new(void) { return xcalloc(1, sizeof(struct test_lists)); }

void test_lists_undone(struct test_lists *l)
{
	for (size_t i = 0; i < LISTS_KEPT; i++) {
		test_list_release(l->kept[i]);
		l->kept[i] = NULL;
	}
}

void test_lists_free(struct test_lists *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < LISTS_KEPT; i++)
		test_list_release(l->kept[i]);
	free(l);
}

/* The bytes of the list itself. A list that resembles another one (base_id) is stored as the difference; that one is not. */
static bool read_list_bytes(const struct view *d, int64_t id, bool may_have_base, struct buf *out)
{
	struct buf base = BUF_INIT(LIST_MAX_BYTES), packed = BUF_INIT(LIST_MAX_BYTES * 2);
	struct rows *r = db_rows(d, "SELECT base_id, tests FROM test_list WHERE id = ?1", V_INT(id));
	bool is_read = rows_next(r);
	int64_t base_id = 0;
	size_t bytes;

	if (is_read) {
		const void *p = rows_blob(r, 1, &bytes);

		base_id = rows_int(r, 0);
		is_read = p && buf_append(&packed, p, bytes) == 0;
	}
	rows_end(r);
	if (is_read && base_id)
		is_read = may_have_base && read_list_bytes(d, base_id, false, &base);
	if (is_read)
		is_read = decompress_like(base.data, base.len, packed.data, packed.len, out) == 0;
	buf_release(&base);
	buf_release(&packed);
	return is_read;
}

static struct test_list *read_list(const struct view *d, const struct test_list *head)
{
	struct buf bytes = BUF_INIT(LIST_MAX_BYTES);
	struct test_list *l;

	if (head->n == 0 || head->n > REPORT_TESTS_MAX)
		return NULL;
	l = xmalloc(sizeof(*l) + head->n * sizeof(l->ids[0]));
	*l = *head;
	l->n_users = 1;
	if (!read_list_bytes(d, l->id, true, &bytes) || !test_list_get(bytes.data, bytes.len, l->ids, l->n))
		FREE_AND_NULL(l);
	buf_release(&bytes);
	return l;
}

/* Puts the list in front, and forgets the oldest ones. `from`: its place before. */
static void keep_list(struct test_lists *lists, struct test_list *l, size_t from)
{
	size_t n_tests = 0;

	memmove(lists->kept + 1, lists->kept, from * sizeof(*lists->kept));
	lists->kept[0] = l;
	for (size_t i = 0; i < LISTS_KEPT && lists->kept[i]; i++) {
		n_tests += lists->kept[i]->n;
		if (n_tests > TESTS_KEPT) {
			test_list_release(lists->kept[i]);
			lists->kept[i] = NULL;
		}
	}
}

struct test_list *test_list_of_row(const struct view *d, const struct rows *r, int at)
{
	struct test_lists *lists = d->db->lists;
	struct test_list head = {
	    .id = rows_int(r, at), .n = (size_t)rows_int(r, at + 2), .is_distinct = rows_int(r, at + 3) != 0};
	struct test_list *l;
	size_t i = 0, bytes;
	const void *digest = rows_blob(r, at + 1, &bytes);

	if (bytes != SHA256_BYTES)
		return NULL;
	memcpy(head.digest, digest, SHA256_BYTES);
	while (i < LISTS_KEPT - 1 && lists->kept[i] && lists->kept[i]->id != head.id)
		i++;
	l = lists->kept[i];
	if (!l || l->id != head.id || memcmp(l->digest, head.digest, SHA256_BYTES) != 0) {
		l = read_list(d, &head);
		if (!l)
			return NULL;
		test_list_release(lists->kept[i]);
	}
	keep_list(lists, l, i);
	l->n_users++;
	return l;
}

struct test_list *test_list_of(const struct view *d, int64_t id)
{
	struct rows *r = db_rows(d, "SELECT " TEST_LIST_COLUMNS " FROM test_list l WHERE l.id = ?1", V_INT(id));
	struct test_list *l = rows_next(r) ? test_list_of_row(d, r, 0) : NULL;

	rows_end(r);
	return l;
}

size_t test_list_find(const struct test_list *l, int64_t test_id, size_t i)
{
	while (i < l->n && l->ids[i] != test_id)
		i++;
	return i;
}

static int by_id_and_place(const void *x, const void *y, void *ids)
{
	const uint32_t *a = x, *b = y;
	const int64_t *id = ids;

	if (id[*a] != id[*b])
		return id[*a] < id[*b] ? -1 : 1;
	return (*a > *b) - (*a < *b);
}

const uint32_t *test_list_order(struct test_list *l)
{
	bool is_ordered = true;

	if (l->has_order)
		return l->order;
	l->has_order = true;
	for (size_t i = 1; i < l->n; i++)
		is_ordered &= l->ids[i - 1] <= l->ids[i];
	if (is_ordered)
		return NULL;
	l->order = xcalloc(l->n, sizeof(*l->order));
	for (size_t i = 0; i < l->n; i++)
		l->order[i] = (uint32_t)i;
	qsort_r(l->order, l->n, sizeof(*l->order), by_id_and_place, l->ids);
	return l->order;
}

bool test_list_suites(const struct view *d, struct test_list *l, int64_t job_id, int64_t first)
{
	struct rows *r;
	size_t n = 0;

	if (l->suites)
		return true;
	l->suite_of = xcalloc(l->n, sizeof(*l->suite_of));
	r = db_rows(d,
	    "SELECT r.ordinal - ?2, t.suite FROM job_test r CROSS JOIN test t ON t.id = r.test_id"
	    " WHERE r.job_id = ?1 AND r.ordinal >= ?2 AND r.ordinal < ?2 + ?3 ORDER BY t.suite",
	    V_INT(job_id), V_INT(first), V_INT((int64_t)l->n));
	for (; rows_next(r); n++) {
		if (!l->n_suites || strcmp(l->suites[l->n_suites - 1], rows_text(r, 1)) != 0)
			*ARRAY_PUSH(l->suites, l->n_suites) = xstrdup(rows_text(r, 1));
		l->suite_of[rows_int(r, 0)] = l->n_suites - 1;
	}
	if (n != l->n)
		forget_suites(l);
	return n == l->n;
}
