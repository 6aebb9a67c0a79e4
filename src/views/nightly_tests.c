/* A page goes through the states from the worst on and lists each test at its worst cell. The next page begins after the
 * last test, also when cells were added in the meantime. */
#include "views/nightly.h"

#include "db/record_rows.h"

/* CELLS_MAX: how many cells one page looks at. Cells of accelerators that are not shown count, and so do tests that were
 * listed with a worse state or do not have the requested name. */
enum { CELLS_MAX = 20000, MATCHES_MAX = 400 };

/* After every suite, as texts compare. */
static const char LAST_SUITE[] = "\xf4\x8f\xbf\xbf";

struct listing {
	const struct view *d;
	const struct get_nightly *q;
	struct nightly_view *v;
	enum history_state state;
	int n_cells;
	bool is_full;
	char *suite; /* of the test that was found last */
	int64_t test_id;
	struct nightly_test *found; /* which may belong to the page */
	size_t n_found;
};

/* ---- one test ---- */

#define HISTORY_CELL_RECORD(F, S)                                                                                      \
	F(S, HISTORY_STATE, state, NULL, "state", "")                                                                  \
	F(S, COUNT, since_day, NULL, "since_day", "")                                                                  \
	F(S, COUNT, first_bad_day, NULL, "first_bad_day", "")                                                          \
	F(S, INT, first_bad_job, NULL, "first_bad_job", "")                                                            \
	F(S, COUNT, last_good_day, NULL, "last_good_day", "")                                                          \
	F(S, INT, last_good_job, NULL, "last_good_job", "")
RECORD_LOCAL(history_cell_row, HISTORY_CELL_RECORD)

static void release_test(struct nightly_test *t)
{
	free(t->cells);
	record_release(&nightly_test_record, t);
}

/* One statement for all accelerators. */
static void read_cells(const struct listing *l, struct nightly_test *t)
{
	struct rows *r = db_rows(l->d,
	    RECORD_QUERY_BY("a.name", HISTORY_CELL_RECORD,
		"FROM accelerator a CROSS JOIN history h ON h.accelerator = a.name AND h.test_id = ?1"
		" WHERE (?2 IS NULL OR a.name = ?2) ORDER BY a.name"),
	    V_INT(t->id), V_TEXT(l->q->accelerator));

	t->cells = xcalloc(l->v->n_accelerators, sizeof(*t->cells));
	t->n_cells = 0;
	while (rows_next(r)) {
		const struct nightly_accelerator *a = nightly_accelerator_find(l->v, rows_key(r));
		struct history_cell_row c;

		if (!a)
			continue;
		record_read(r, &history_cell_row_record, &c);
		t->cells[t->n_cells++] = (struct nightly_cell){
		    .accelerator = (size_t)(a - l->v->accelerators),
		    .state = c.state,
		    .since_day = c.since_day,
		    .first_bad = {.day = c.first_bad_day, .job = c.first_bad_job},
		    .last_good = {.day = c.last_good_day, .job = c.last_good_job},
		    .commits = -1,
		};
	}
}

/* Reads the tests with these ids, of which *list is zero otherwise. One that is missing has no name. */
static void read_tests(const struct listing *l, struct nightly_test *list, size_t n)
{
	DB_PIPELINE (l->d)
		for (struct nightly_test *t = list; t < list + n; t++) {
			release_test(t);
			record_read_first(
			    db_rows(
				l->d, RECORD_QUERY(NIGHTLY_TEST_RECORD, "FROM test t WHERE t.id = ?1"), V_INT(t->id)),
			    &nightly_test_record, t);
			read_cells(l, t);
		}
}

/* A test is listed once, at its worst cell; of one state only, at that state. */
static bool is_in_place(const struct listing *l, const struct nightly_test *t)
{
	bool has_state = false;

	if (!t->name || (l->q->part && !strcasestr(t->name, l->q->part)))
		return false;
	for (size_t i = 0; i < t->n_cells; i++) {
		if (l->q->state == HISTORY_NONE && t->cells[i].state < l->state)
			return false;
		has_state |= t->cells[i].state == l->state;
	}
	return has_state;
}

/* ---- state by state ---- */

#define TEST_PLACE_RECORD(F, S)                                                                                        \
	F(S, TEXT, suite, NULL, "suite", "")                                                                           \
	F(S, INT, test_id, NULL, "test_id", "")
RECORD_LOCAL(test_place, TEST_PLACE_RECORD)

static struct rows *cells_of_state(struct listing *l, const char *after_suite, int64_t after_id, int64_t limit)
{
	const struct get_nightly *q = l->q;
	const char *last = q->suite ? q->suite : LAST_SUITE;

	if (q->accelerator)
		return db_rows(l->d,
		    RECORD_QUERY(TEST_PLACE_RECORD,
			"FROM history WHERE accelerator = ?1 AND state = ?2 AND (suite, test_id) > "
			"(?3, ?4) AND suite <= ?5 ORDER BY suite, test_id LIMIT ?6"),
		    V_TEXT(q->accelerator), V_TEXT(history_state_name(l->state)), V_TEXT(after_suite), V_INT(after_id),
		    V_TEXT(last), V_INT(limit));
	return db_rows(l->d,
	    RECORD_QUERY(TEST_PLACE_RECORD, "FROM history WHERE state = ?1 AND (suite, test_id) > "
					    "(?2, ?3) AND suite <= ?4 ORDER BY suite, test_id LIMIT ?5"),
	    V_TEXT(history_state_name(l->state)), V_TEXT(after_suite), V_INT(after_id), V_TEXT(last), V_INT(limit));
}

/* Adds those of the tests found that belong to the page. */
static void list_found(struct listing *l)
{
	read_tests(l, l->found, l->n_found);
	for (size_t i = 0; i < l->n_found; i++)
		if (is_in_place(l, &l->found[i]))
			*ARRAY_PUSH(l->v->tests, l->v->n_tests) = l->found[i];
		else
			release_test(&l->found[i]);
	l->n_found = 0;
}

/* Several accelerators have a test; their cells follow each other. */
static void find_test(struct listing *l, struct rows *r)
{
	struct test_place place;

	record_read(r, &test_place_record, &place);
	l->n_cells++;
	if (l->test_id == place.test_id) {
		record_release(&test_place_record, &place);
		return;
	}
	if (l->v->n_tests + l->n_found == (size_t)l->q->limit)
		list_found(l);
	l->is_full = l->v->n_tests == (size_t)l->q->limit || l->n_cells > CELLS_MAX;
	if (l->is_full) {
		record_release(&test_place_record, &place);
		return;
	}
	l->test_id = place.test_id;
	free(l->suite);
	l->suite = place.suite;
	*ARRAY_PUSH(l->found, l->n_found) = (struct nightly_test){.id = place.test_id};
}

/* Reads as many cells at a time as fill a page, because PostgreSQL sends all rows of a statement. */
static void list_state(struct listing *l, const char *after_suite, int64_t after_id)
{
	int64_t n_wanted = (l->q->limit + 1) * (int64_t)l->v->n_accelerators, n_rows;

	l->test_id = -1;
	do {
		bool has_last = l->test_id >= 0;
		struct rows *r =
		    cells_of_state(l, has_last ? l->suite : after_suite, has_last ? l->test_id : after_id, n_wanted);

		for (n_rows = 0; !l->is_full && rows_next(r); n_rows++)
			find_test(l, r);
		rows_end(r);
		list_found(l);
	} while (!l->is_full && n_rows == n_wanted);
}

static void list_states(struct listing *l)
{
	const struct nightly_place *after = &l->q->after;

	for (l->state = after->suite ? after->state : HISTORY_REGRESSION; l->state < N_HISTORY_STATES; l->state++) {
		bool is_on = after->suite && l->state == after->state;
		const char *from_suite = is_on ? after->suite : l->q->suite ? l->q->suite : "";
		int64_t from_id = is_on ? after->test_id : -1;

		if (l->q->state != HISTORY_NONE && l->q->state != l->state)
			continue;
		list_state(l, from_suite, from_id);
		if (l->is_full) {
			/* after the last test, or at the beginning of a state of which none was looked at */
			bool has_last = l->test_id >= 0;

			l->v->next = (struct nightly_place){.state = l->state,
			    .suite = xstrdup(has_last ? l->suite : from_suite),
			    .test_id = has_last ? l->test_id : from_id};
			return;
		}
	}
}

/* ---- a part of a name that few tests have ---- */

#define TEST_ID_RECORD(F, S) F(S, INT, id, NULL, "id", "")
RECORD_LOCAL(test_id, TEST_ID_RECORD)

struct match {
	struct nightly_place place; /* its suite is the test's */
	struct nightly_test test;
};

static int by_place(const void *x, const void *y)
{
	const struct nightly_place *a = &((const struct match *)x)->place;
	const struct nightly_place *b = &((const struct match *)y)->place;
	int order = a->state != b->state ? (a->state > b->state) - (a->state < b->state) : strcmp(a->suite, b->suite);

	return order ? order : (a->test_id > b->test_id) - (a->test_id < b->test_id);
}

/* False: it is listed nowhere. */
static bool place_test(const struct get_nightly *q, struct match *m)
{
	enum history_state state = HISTORY_NONE;

	for (size_t i = 0; i < m->test.n_cells; i++)
		if (q->state == HISTORY_NONE ? m->test.cells[i].state < state : m->test.cells[i].state == q->state)
			state = m->test.cells[i].state;
	m->place = (struct nightly_place){state, m->test.suite, m->test.id};
	return state != HISTORY_NONE && (!q->after.suite || by_place(m, &(struct match){.place = q->after}) > 0);
}

static void list_matches(const struct listing *l, const struct test_id *ids, size_t n_ids)
{
	struct match *list = xcalloc(n_ids + 1, sizeof(*list));
	struct nightly_test *tests = xcalloc(n_ids + 1, sizeof(*tests));
	size_t n_found = 0, limit = (size_t)l->q->limit;
	struct nightly_view *v = l->v;

	for (size_t i = 0; i < n_ids; i++)
		tests[i].id = ids[i].id;
	read_tests(l, tests, n_ids);
	for (size_t i = 0; i < n_ids; i++) {
		struct match m = {.test = tests[i]};

		if (m.test.name && place_test(l->q, &m))
			list[n_found++] = m;
		else
			release_test(&m.test);
	}
	qsort(list, n_found, sizeof(*list), by_place);
	if (n_found > limit) {
		v->next = list[limit - 1].place;
		v->next.suite = xstrdup(v->next.suite);
	}
	for (size_t i = 0; i < n_found; i++)
		if (i < limit)
			*ARRAY_PUSH(v->tests, v->n_tests) = list[i].test;
		else
			release_test(&list[i].test);
	FREE_ALL(list, tests);
}

void nightly_tests_read(const struct view *d, const struct get_nightly *q, struct nightly_view *v)
{
	struct listing l = {.d = d, .q = q, .v = v};
	struct test_id ids[MATCHES_MAX + 1];
	size_t n_ids = 0;
	struct rows *r;

	if (!v->n_accelerators)
		return;
	if (q->part) {
		/* It does not use LIKE, which searches a name again from each of its places: a vendor's long names of one
		 * repeated letter would keep a reader busy for minutes. */
		r = db_rows(d, RECORD_QUERY_BY("name", TEST_ID_RECORD, "FROM test WHERE suite >= ?1 AND suite <= ?2"),
		    V_TEXT(q->suite ? q->suite : ""), V_TEXT(q->suite ? q->suite : LAST_SUITE));
		while (n_ids <= MATCHES_MAX && rows_next(r))
			if (strcasestr(rows_key(r), q->part))
				record_read(r, &test_id_record, &ids[n_ids++]);
		rows_end(r);
	}
	if (q->part && n_ids <= MATCHES_MAX)
		list_matches(&l, ids, n_ids);
	else
		list_states(&l);
	FREE_ALL(l.suite, l.found);
}
