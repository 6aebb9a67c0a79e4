#include "db/cell_sets.h"

#include "model/packed_tests.h"

/* ---- lists of tests ---- */

enum { LISTS_KEPT = 8, LIST_MAX_BYTES = REPORT_TESTS_MAX * 8 };

struct ordered_list {
	int64_t id; /* 0: none */
	int64_t *ids;
	uint32_t *order; /* the places of the list by test_id; NULL: it is in this order already */
	size_t n;
	bool is_distinct;
};

/* The lists of one read. Jobs of all accelerators usually share a few. */
struct ordered_lists {
	struct ordered_list at[LISTS_KEPT];
	size_t next; /* the place for the next one */
};

static void list_clear(struct ordered_list *l)
{
	FREE_ALL(l->ids, l->order);
	*l = (struct ordered_list){.id = 0};
}

/* Replaces the content of out with the bytes of a list that is stored whole (may_have_base false) or as a difference. */
static bool read_list_bytes(const struct view *d, int64_t id, bool may_have_base, struct buf *out, size_t *ret_n)
{
	struct rows *r = db_rows(d, "SELECT n, base_id, tests FROM test_list WHERE id = ?1", V_INT(id));
	struct buf base = BUF_INIT(LIST_MAX_BYTES), packed = BUF_INIT(LIST_MAX_BYTES * 2);
	int64_t base_id = 0, n = 0;
	bool is_read = rows_next(r);
	size_t bytes, n_base;

	if (is_read) {
		const void *p = rows_blob(r, 2, &bytes);

		n = rows_int(r, 0);
		base_id = rows_int(r, 1);
		is_read = n > 0 && n <= REPORT_TESTS_MAX && p && buf_append(&packed, p, bytes) == 0;
	}
	rows_end(r);
	if (is_read && base_id)
		is_read = may_have_base && read_list_bytes(d, base_id, false, &base, &n_base);
	if (is_read)
		is_read = decompress_like(base.data, base.len, packed.data, packed.len, out) == 0;
	*ret_n = (size_t)n;
	buf_release(&base);
	buf_release(&packed);
	return is_read;
}

static int compare_by_id(const void *x, const void *y, void *ids)
{
	const uint32_t *a = x, *b = y;
	const int64_t *id = ids;

	if (id[*a] != id[*b])
		return id[*a] < id[*b] ? -1 : 1;
	return (*a > *b) - (*a < *b);
}

static void order_list(struct ordered_list *l)
{
	bool is_ordered = true;

	for (size_t i = 1; i < l->n; i++)
		is_ordered &= l->ids[i - 1] <= l->ids[i];
	if (!is_ordered) {
		l->order = xcalloc(l->n, sizeof(*l->order));
		for (size_t i = 0; i < l->n; i++)
			l->order[i] = (uint32_t)i;
		qsort_r(l->order, l->n, sizeof(*l->order), compare_by_id, l->ids);
	}
	l->is_distinct = true;
	for (size_t i = 1; i < l->n; i++)
		l->is_distinct &=
		    l->order ? l->ids[l->order[i - 1]] != l->ids[l->order[i]] : l->ids[i - 1] != l->ids[i];
}

/* NULL: it is missing or damaged. */
static const struct ordered_list *ordered_list_of(const struct view *d, struct ordered_lists *lists, int64_t id)
{
	struct buf bytes = BUF_INIT(LIST_MAX_BYTES);
	struct ordered_list *l;

	for (l = lists->at; l < lists->at + LISTS_KEPT; l++)
		if (l->id == id && id)
			return l;
	l = &lists->at[lists->next];
	lists->next = (lists->next + 1) % LISTS_KEPT;
	list_clear(l);
	if (read_list_bytes(d, id, true, &bytes, &l->n)) {
		l->ids = xcalloc(l->n, sizeof(*l->ids));
		if (test_list_get(bytes.data, bytes.len, l->ids, l->n))
			l->id = id;
	}
	buf_release(&bytes);
	if (l->id)
		order_list(l);
	else
		list_clear(l);
	return l->id ? l : NULL;
}

/* ---- a set is made of sorted pieces, which are merged when they are about as long as each other ---- */

/* Of two cells of one test: a row decides, else the worst result, and of equal ones that of the oldest job. */
static bool is_decisive(const struct cell *a, const struct cell *b)
{
	if (a->is_row != b->is_row)
		return a->is_row;
	if (a->status != b->status)
		return a->status < b->status;
	return a->part != b->part ? a->part < b->part : a->i < b->i;
}

/* Makes room for so many more cells at once. */
static void reserve_cells(struct cell_set *s, size_t n)
{
	if (s->n + n <= s->n_room)
		return;
	s->n_room = s->n + n > 2 * s->n_room ? s->n + n : 2 * s->n_room;
	s->at = xrealloc(s->at, s->n_room * sizeof(*s->at));
}

/* There is room for it. */
static void add_cell(struct cell_set *s, size_t run, const struct cell *c)
{
	struct cell *last = s->n > run ? &s->at[s->n - 1] : NULL;

	if (!last || last->test_id != c->test_id)
		s->at[s->n++] = *c;
	else if (is_decisive(c, last))
		*last = *c;
}

/* Merges the last two pieces, in each of which every test is once. */
static void merge_runs(struct cell_set *s)
{
	size_t begin = s->runs[s->n_runs - 2], middle = s->runs[s->n_runs - 1], end = s->n, n_left = middle - begin;
	struct cell *left, *at = s->at;

	s->n_runs--;
	if (at[middle - 1].test_id < at[middle].test_id)
		return;
	left = xmemdup(at + begin, n_left * sizeof(*left));
	s->n = begin;
	for (size_t i = 0, k = middle; i < n_left || k < end;) {
		bool has_both = i < n_left && k < end;

		if (has_both && left[i].test_id == at[k].test_id) {
			at[s->n++] = is_decisive(&left[i], &at[k]) ? left[i] : at[k];
			i++;
			k++;
		} else if (k == end || (has_both && left[i].test_id < at[k].test_id)) {
			at[s->n++] = left[i++];
		} else {
			at[s->n++] = at[k++];
		}
	}
	free(left);
}

static void close_run(struct cell_set *s, size_t run)
{
	if (s->n == run)
		return;
	*ARRAY_PUSH(s->runs, s->n_runs) = run;
	while (s->n_runs > 1 && s->runs[s->n_runs - 1] - s->runs[s->n_runs - 2] <= 2 * (s->n - s->runs[s->n_runs - 1]))
		merge_runs(s);
}

/* ---- reading ---- */

static struct cell_set *cell_set_of(struct cell_sets *l, const char *accelerator)
{
	struct cell_set *s;

	for (size_t i = l->n; i-- > 0;)
		if (strcmp(l->at[i].accelerator, accelerator) == 0)
			return &l->at[i];
	s = ARRAY_PUSH(l->at, l->n);
	*s = (struct cell_set){.accelerator = xstrdup(accelerator)};
	return s;
}

#define ROWS_OF_CHANGE                                                                                                 \
	"SELECT accelerator, test_id, status, attribution, job_id IS NOT NULL FROM verdict WHERE change_id = ?1"
#define PARTS_OF_CHANGE                                                                                                \
	"SELECT j.accelerator, j.id, j.is_late, p.first, p.n_rows, p.n, p.list_id, p.cells FROM job j"                 \
	" CROSS JOIN packed_job p ON p.job_id = j.id WHERE j.change_id = ?1 AND j.is_counted = 1"

static void read_rows(struct rows *r, struct cell_sets *l)
{
	while (rows_next(r)) {
		struct cell c = {.test_id = rows_int(r, 1), .is_row = true, .has_job = rows_int(r, 4) != 0};
		struct cell_set *s = cell_set_of(l, rows_text(r, 0));
		enum test_status status = test_status_parse(rows_text(r, 2));

		if (status == N_TEST_STATUSES)
			continue;
		c.status = (uint8_t)status;
		c.attribution = (uint8_t)(rows_is_null(r, 3) ? N_ATTRIBUTIONS : attribution_parse(rows_text(r, 3)));
		*ARRAY_PUSH(s->rows, s->n_rows) = c;
	}
}

/* Puts the rows, of which there are few, in the places of the other cells of their tests. */
static void apply_rows(struct cell_set *s)
{
	size_t run = s->n, n_new = 0;

	for (size_t i = 0; i < s->n_rows; i++) {
		struct cell *same = (struct cell *)cell_set_find(s, s->rows[i].test_id);

		if (same)
			*same = s->rows[i];
		else
			s->rows[n_new++] = s->rows[i];
	}
	if (n_new) {
		reserve_cells(s, n_new);
		memcpy(s->at + run, s->rows, n_new * sizeof(*s->rows));
		s->n += n_new;
		*ARRAY_PUSH(s->runs, s->n_runs) = run;
		if (s->n_runs > 1)
			merge_runs(s);
	}
	FREE_AND_NULL(s->rows);
	s->n_rows = 0;
}

/* Adds the results of the part in this row. False: they are damaged. n_room: as many cells as the set will probably have. */
static bool add_part(
    const struct view *d, struct rows *r, struct ordered_lists *lists, struct cell_set *s, size_t n_room)
{
	const struct ordered_list *list = ordered_list_of(d, lists, rows_int(r, 6));
	struct cell c = {.part = (uint32_t)s->n_parts, .attribution = N_ATTRIBUTIONS, .has_job = true};
	size_t run = s->n, bytes;
	const void *cells = rows_blob(r, 7, &bytes);
	uint8_t *statuses;
	bool is_read;

	if (!list || list->n != (size_t)rows_int(r, 5))
		return false;
	statuses = xmalloc(list->n);
	is_read = packed_cells_get(cells, bytes, rows_int(r, 1), statuses, NULL, list->n);
	*ARRAY_PUSH(s->parts, s->n_parts) = (struct cell_part){.job_id = rows_int(r, 1),
	    .first = rows_int(r, 3),
	    .is_late = rows_int(r, 2) != 0,
	    .has_rows = rows_int(r, 4) > 0};
	reserve_cells(s, s->n_room || list->n > n_room ? list->n : n_room);
	for (size_t k = 0; is_read && k < list->n; k++) {
		c.i = list->order ? list->order[k] : (uint32_t)k;
		c.test_id = list->ids[c.i];
		c.status = statuses[c.i];
		if (list->is_distinct)
			s->at[s->n++] = c;
		else
			add_cell(s, run, &c);
	}
	free(statuses);
	close_run(s, run);
	return is_read;
}

static int compare_sets(const void *x, const void *y)
{
	const struct cell_set *a = x, *b = y;

	return strcmp(a->accelerator, b->accelerator);
}

void cell_sets_read(const struct view *d, int64_t change_id, const char *accelerator, struct cell_sets *ret)
{
	struct ordered_lists lists = {.next = 0};
	size_t n_room = 0;
	struct rows *r;

	*ret = (struct cell_sets){.n = 0};
	read_rows(accelerator ? db_rows(d, ROWS_OF_CHANGE " AND accelerator = ?2 ORDER BY test_id", V_INT(change_id),
				    V_TEXT(accelerator))
			      : db_rows(d, ROWS_OF_CHANGE " ORDER BY accelerator, test_id", V_INT(change_id)),
	    ret);
	r = accelerator ? db_rows(d, PARTS_OF_CHANGE " AND j.accelerator = ?2 ORDER BY j.id, p.first", V_INT(change_id),
			      V_TEXT(accelerator))
			: db_rows(d, PARTS_OF_CHANGE " ORDER BY j.accelerator, j.id, p.first", V_INT(change_id));
	while (rows_next(r)) {
		struct cell_set *s = cell_set_of(ret, rows_text(r, 0));

		if (add_part(d, r, &lists, s, n_room)) {
			n_room = s->n; /* most accelerators have as many cells as the one before */
			continue;
		}
		db_fail(d, ERR_INVALID, "the packed results of job %lld are damaged", (long long)rows_int(r, 1));
		break;
	}
	rows_end(r);
	for (size_t i = 0; i < LISTS_KEPT; i++)
		list_clear(&lists.at[i]);
	for (struct cell_set *s = ret->at; s < ret->at + ret->n; s++) {
		while (s->n_runs > 1)
			merge_runs(s);
		apply_rows(s);
		FREE_AND_NULL(s->runs);
		s->n_runs = 0;
	}
	if (ret->n)
		qsort(ret->at, ret->n, sizeof(*ret->at), compare_sets);
}

void cell_sets_release(struct cell_sets *l)
{
	for (size_t i = 0; i < l->n; i++)
		FREE_ALL(l->at[i].accelerator, l->at[i].at, l->at[i].parts, l->at[i].runs, l->at[i].rows);
	free(l->at);
	*l = (struct cell_sets){.n = 0};
}

/* ---- looking ---- */

const struct cell_set *cell_sets_find(const struct cell_sets *l, const char *accelerator)
{
	return l->n ? bsearch(&(struct cell_set){.accelerator = (char *)accelerator}, l->at, l->n, sizeof(*l->at),
			  compare_sets)
		    : NULL;
}

const struct cell *cell_set_find(const struct cell_set *s, int64_t test_id)
{
	size_t from = 0, to = s->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (s->at[middle].test_id < test_id)
			from = middle + 1;
		else
			to = middle;
	}
	return from < s->n && s->at[from].test_id == test_id ? &s->at[from] : NULL;
}
