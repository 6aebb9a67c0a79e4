#include "db/cell_sets.h"

#include "db/packed_tables.h"

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
	"SELECT j.accelerator, j.id, j.is_late, p.n_rows, p.first, p.n, p.list_id, p.cells, " TEST_LIST_COLUMNS        \
	" FROM job j CROSS JOIN packed_job p ON p.job_id = j.id LEFT JOIN test_list l ON l.id = p.list_id"             \
	" WHERE j.change_id = ?1 AND j.is_counted = 1"

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
static bool add_part(const struct view *d, struct rows *r, struct cell_set *s, size_t n_room)
{
	struct cell c = {.part = s->n_parts, .attribution = N_ATTRIBUTIONS, .has_job = true};
	struct packed_place place = {rows_int(r, 1), rows_int(r, 4), rows_int(r, 6)};
	size_t run = s->n, bytes;
	const void *cells = rows_blob(r, 7, &bytes);
	struct packed_part p;
	bool is_read = packed_part_get(test_list_of_row(d, r, 8), &place, rows_int(r, 5), cells, bytes, false, &p);

	*ARRAY_PUSH(s->parts, s->n_parts) = (struct cell_part){.job_id = place.job_id,
	    .first = place.first,
	    .is_late = rows_int(r, 2) != 0,
	    .has_rows = rows_int(r, 3) > 0,
	    .list = p.list};
	if (p.list)
		p.list->n_users++;
	if (is_read) {
		const uint32_t *order = test_list_order(p.list);

		reserve_cells(s, s->n_room || p.list->n > n_room ? p.list->n : n_room);
		for (size_t k = 0; k < p.list->n; k++) {
			c.i = order ? order[k] : (uint32_t)k;
			c.test_id = p.list->ids[c.i];
			c.status = p.statuses[c.i];
			if (p.list->is_distinct)
				s->at[s->n++] = c;
			else
				add_cell(s, run, &c);
		}
	}
	packed_part_release(&p);
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

		if (add_part(d, r, s, n_room)) {
			n_room = s->n; /* most accelerators have as many cells as the one before */
			continue;
		}
		db_fail(d, ERR_INVALID, "the packed results of job %lld are damaged", (long long)rows_int(r, 1));
		break;
	}
	rows_end(r);
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

int64_t cell_sets_n_tests(const struct cell_sets *l)
{
	struct cell_set all = {.n = 0};
	int64_t n;

	for (const struct cell_set *s = l->at; s < l->at + l->n; s++) {
		size_t run = all.n;

		reserve_cells(&all, s->n);
		for (size_t i = 0; i < s->n; i++)
			if (s->at[i].has_job)
				all.at[all.n++] = s->at[i];
		close_run(&all, run);
	}
	while (all.n_runs > 1)
		merge_runs(&all);
	n = (int64_t)all.n;
	FREE_ALL(all.at, all.runs);
	return n;
}

void cell_sets_release(struct cell_sets *l)
{
	for (struct cell_set *s = l->at; s < l->at + l->n; s++) {
		for (size_t i = 0; i < s->n_parts; i++)
			test_list_release(s->parts[i].list);
		FREE_ALL(s->accelerator, s->at, s->parts, s->runs, s->rows);
	}
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
