/* Which tests a page shows: state by state from the worst on, each test where its worst cell is. The
 * place behind the last one is where the next page begins, whatever was added meanwhile. */
#include <string.h>

#include "base/alloc.h"
#include "store/view_nightly_internal.h"

/* Cells that are looked at for one page: those of accelerators that are not shown, of tests that were
 * listed with a worse state, or that have another name than what is looked for, cost as well. */
enum { CELLS_MAX = 20000, MATCHES_MAX = 400 };

/* Behind every suite, as texts compare. */
static const char LAST_SUITE[] = "\xf4\x8f\xbf\xbf";

struct listing {
	struct nightly_reading *n;
	enum history_state state;
	int n_cells;
	bool is_full;
	char *suite; /* of the test that was looked at last */
	int64_t test_id;
};

static void read_cells(struct nightly_reading *n, struct nightly_test *t)
{
	t->cells = xcalloc(n->v->n_accelerators, sizeof(*t->cells));
	for (size_t i = 0; i < n->v->n_accelerators; i++) {
		struct rows *r = db_rows(n->d,
		    "SELECT state, since_day, first_bad_day, first_bad_job, last_good_day,"
		    " last_good_job FROM history WHERE accelerator = ?1 AND test_id = ?2",
		    V_TEXT(n->v->accelerators[i].name), V_INT(t->id));

		if (rows_next(r))
			t->cells[t->n_cells++] = (struct nightly_cell){
			    .accelerator = i,
			    .state = history_state_parse(rows_text(r, 0)),
			    .since_day = rows_is_null(r, 1) ? -1 : rows_int(r, 1),
			    .first_bad = {.day = rows_is_null(r, 2) ? -1 : rows_int(r, 2),
				.job = rows_int(r, 3)},
			    .last_good = {.day = rows_is_null(r, 4) ? -1 : rows_int(r, 4),
				.job = rows_int(r, 5)},
			    .commits = -1,
			};
		rows_end(r);
	}
}

/* In the order of states it is listed once: where its worst cell is. */
static bool is_in_place(const struct listing *l, const struct nightly_test *t)
{
	bool has_state = false;

	for (size_t i = 0; i < t->n_cells; i++) {
		if (l->n->q->state == HISTORY_NONE && t->cells[i].state < l->state)
			return false;
		has_state |= t->cells[i].state == l->state;
	}
	return has_state;
}

static bool read_name(struct nightly_reading *n, struct nightly_test *t)
{
	struct rows *r =
	    db_rows(n->d, "SELECT suite, name, dtype FROM test WHERE id = ?1", V_INT(t->id));

	if (rows_next(r)) {
		const char *name = rows_text(r, 1);

		if (!n->q->part || strcasestr(name, n->q->part)) {
			t->suite = rows_dup(r, 0);
			t->name = rows_dup(r, 1);
			t->dtype = rows_text(r, 2)[0] ? rows_dup(r, 2) : NULL;
		}
	}
	rows_end(r);
	return t->name != NULL;
}

static void test_forget(struct nightly_test *t)
{
	free(t->cells);
	free(t->suite);
	free(t->name);
	free(t->dtype);
}

static void look_at(struct listing *l, int64_t test_id)
{
	struct nightly_view *v = l->n->v;
	struct nightly_test t = {.id = test_id};

	if (!read_name(l->n, &t))
		return;
	read_cells(l->n, &t);
	if (!is_in_place(l, &t)) {
		test_forget(&t);
		return;
	}
	v->tests[v->n_tests++] = t;
}

static struct rows *cells_of_state(struct listing *l, const char *after_suite, int64_t after_id)
{
	const struct get_nightly *q = l->n->q;
	const char *last = q->suite ? q->suite : LAST_SUITE;

	if (q->accelerator)
		return db_rows(l->n->d,
		    "SELECT suite, test_id FROM history WHERE accelerator = ?1 AND state = ?2"
		    " AND (suite, test_id) > (?3, ?4) AND suite <= ?5 ORDER BY suite, test_id",
		    V_TEXT(q->accelerator), V_TEXT(history_state_name(l->state)),
		    V_TEXT(after_suite), V_INT(after_id), V_TEXT(last));
	return db_rows(l->n->d,
	    "SELECT suite, test_id FROM history WHERE state = ?1 AND (suite, test_id) > (?2, ?3)"
	    " AND suite <= ?4 ORDER BY suite, test_id",
	    V_TEXT(history_state_name(l->state)), V_TEXT(after_suite), V_INT(after_id),
	    V_TEXT(last));
}

/* Several accelerators have a test, one behind the other. */
static void list_state(struct listing *l, const char *after_suite, int64_t after_id)
{
	struct rows *r = cells_of_state(l, after_suite, after_id);

	l->test_id = -1;
	while (rows_next(r)) {
		l->n_cells++;
		if (l->test_id == rows_int(r, 1))
			continue;
		if (l->n->v->n_tests == (size_t)l->n->q->limit || l->n_cells > CELLS_MAX) {
			l->is_full = true;
			break;
		}
		l->test_id = rows_int(r, 1);
		free(l->suite);
		l->suite = rows_dup(r, 0);
		look_at(l, l->test_id);
	}
	rows_end(r);
}

/* ---- a part of a name that few tests have ---- */

/* How many ids; more than MATCHES_MAX: they are not worth a list. Not by LIKE, which tries each place
 * of a name anew: a vendor with names of one letter, and whoever looks for many of it, would keep a
 * reader for minutes. */
static size_t find_matches(struct nightly_reading *n, int64_t ids[MATCHES_MAX + 1])
{
	struct rows *r = db_rows(n->d,
	    "SELECT id, name FROM test WHERE suite >= ?1 AND suite <= ?2",
	    V_TEXT(n->q->suite ? n->q->suite : ""), V_TEXT(n->q->suite ? n->q->suite : LAST_SUITE));
	size_t n_ids = 0;

	while (n_ids <= MATCHES_MAX && rows_next(r)) {
		const char *name = rows_text(r, 1);

		if (strcasestr(name, n->q->part))
			ids[n_ids++] = rows_int(r, 0);
	}
	rows_end(r);
	return n_ids;
}

struct match {
	struct nightly_place place; /* its suite is the test's */
	struct nightly_test test;
};

static int by_place(const void *x, const void *y)
{
	const struct nightly_place *a = &((const struct match *)x)->place;
	const struct nightly_place *b = &((const struct match *)y)->place;
	int order = a->state != b->state ? (a->state > b->state) - (a->state < b->state)
					 : strcmp(a->suite, b->suite);

	return order ? order : (a->test_id > b->test_id) - (a->test_id < b->test_id);
}

/* Where it is listed; false: nowhere. */
static bool place_test(const struct get_nightly *q, struct match *m)
{
	enum history_state state = HISTORY_NONE;

	for (size_t i = 0; i < m->test.n_cells; i++)
		if (q->state == HISTORY_NONE ? m->test.cells[i].state < state
					     : m->test.cells[i].state == q->state)
			state = m->test.cells[i].state;
	m->place = (struct nightly_place){state, m->test.suite, m->test.id};
	return state != HISTORY_NONE &&
	       (!q->after.suite || by_place(m, &(struct match){.place = q->after}) > 0);
}

static void list_matches(struct nightly_reading *n, const int64_t *ids, size_t n_ids)
{
	struct match *list = xcalloc(n_ids + 1, sizeof(*list));
	size_t n_found = 0, limit = (size_t)n->q->limit;
	struct nightly_view *v = n->v;

	for (size_t i = 0; i < n_ids; i++) {
		struct match m = {.test = {.id = ids[i]}};
		bool has_name = read_name(n, &m.test);

		if (has_name)
			read_cells(n, &m.test);
		if (has_name && place_test(n->q, &m))
			list[n_found++] = m;
		else
			test_forget(&m.test);
	}
	qsort(list, n_found, sizeof(*list), by_place);
	for (size_t i = 0; i < n_found; i++)
		if (i < limit)
			v->tests[v->n_tests++] = list[i].test;
		else
			test_forget(&list[i].test);
	if (n_found > limit) {
		v->next = list[limit - 1].place;
		v->next.suite = xstrdup(v->next.suite);
	}
	free(list);
}

/* ---- all of them ---- */

/* Behind the test that was looked at last; where none of this state was, at its beginning. */
static void note_next(struct listing *l, const char *from_suite, int64_t from_id)
{
	bool is_behind = l->test_id >= 0;

	l->n->v->next = (struct nightly_place){
	    .state = l->state,
	    .suite = xstrdup(is_behind ? l->suite : from_suite),
	    .test_id = is_behind ? l->test_id : from_id,
	};
}

void nightly_list_tests(struct nightly_reading *n)
{
	const struct get_nightly *q = n->q;
	const struct nightly_place *after = &q->after;
	struct listing l = {.n = n, .state = after->suite ? after->state : HISTORY_REGRESSION};

	n->v->tests = xcalloc((size_t)q->limit, sizeof(*n->v->tests));
	if (q->part && n->v->n_accelerators) {
		int64_t ids[MATCHES_MAX + 1];
		size_t n_ids = find_matches(n, ids);

		if (n_ids <= MATCHES_MAX) {
			list_matches(n, ids, n_ids);
			return;
		}
	}
	for (; n->v->n_accelerators && l.state < N_HISTORY_STATES; l.state++) {
		bool is_on = after->suite && l.state == after->state;
		const char *from_suite = is_on ? after->suite : q->suite ? q->suite : "";
		int64_t from_id = is_on ? after->test_id : -1;

		if (q->state != HISTORY_NONE && q->state != l.state)
			continue;
		list_state(&l, from_suite, from_id);
		if (l.is_full) {
			note_next(&l, from_suite, from_id);
			break;
		}
	}
	free(l.suite);
}
