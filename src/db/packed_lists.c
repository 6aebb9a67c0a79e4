/* Lists of tests as the tables job_test and cell read them. A connection keeps the few lists that it used last: pages and
 * comments read the jobs of one accelerator, which share theirs. */
#include "db/packed_tables.h"
#include "model/packed_tests.h"

enum {
	LISTS_KEPT = 4,
	LIST_MAX_BYTES = REPORT_TESTS_MAX * 8,
};

/* The lists that this connection used last, the newest first. */
struct test_lists {
	struct test_list *kept[LISTS_KEPT];
	sqlite3_stmt *find;
};

void test_list_release(struct test_list *l)
{
	if (l && --l->n_users == 0)
		free(l);
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

void test_lists_forget_statement(struct test_lists *l)
{
	sqlite3_finalize(l->find);
	l->find = NULL;
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

struct test_list *test_list_of(struct db *d, int64_t id)
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

size_t test_list_find(const struct test_list *l, int64_t test_id, size_t i)
{
	while (i < l->n && l->ids[i] != test_id)
		i++;
	return i;
}
