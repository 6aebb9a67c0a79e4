/* The days of the tests that a page shows, and the runs that their states are told by. */
#include <string.h>

#include "base/alloc.h"
#include "store/commits_between.h"
#include "store/history.h"
#include "store/history_cells.h"
#include "store/key.h"
#include "store/view_nightly_internal.h"

/* ---- days ---- */

/* One cell of the view, by accelerator and test. */
struct cell_of_test {
	int64_t test_id;
	struct nightly_cell *cell;
};

static int by_test(const void *x, const void *y)
{
	const struct cell_of_test *a = x, *b = y;

	return (a->test_id > b->test_id) - (a->test_id < b->test_id);
}

static size_t cells_of(struct nightly_view *v, size_t accelerator, struct cell_of_test *list)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n_tests; i++)
		for (size_t k = 0; k < v->tests[i].n_cells; k++)
			if (v->tests[i].cells[k].accelerator == accelerator)
				list[n++] =
				    (struct cell_of_test){v->tests[i].id, &v->tests[i].cells[k]};
	qsort(list, n, sizeof(*list), by_test);
	return n;
}

static void read_day(const struct rows *r, size_t day, const struct cell_of_test *list, size_t n)
{
	size_t n_bytes, n_jobs;
	const void *p = rows_blob(r, 2, &n_bytes);
	struct cell_reader cells = cell_reader_of(p, n_bytes);
	int64_t *jobs = history_numbers(rows_text(r, 1), 10, &n_jobs);
	struct history_cell c;

	for (size_t i = 0; i < n; i++)
		if (cell_reader_find(&cells, list[i].test_id, &c))
			list[i].cell->days[day] = (struct nightly_day){.status = (int)c.status,
			    .job = c.job > 0 && (size_t)c.job <= n_jobs ? jobs[c.job - 1] : 0};
	free(jobs);
}

static void no_days(struct nightly_view *v)
{
	for (size_t i = 0; i < v->n_tests; i++)
		for (size_t k = 0; k < v->tests[i].n_cells; k++) {
			struct nightly_day *days = xcalloc(v->n_days, sizeof(*days));

			for (size_t x = 0; x < v->n_days; x++)
				days[x].status = -1;
			v->tests[i].cells[k].days = days;
		}
}

void nightly_read_days(struct nightly_reading *n)
{
	struct nightly_view *v = n->v;
	struct cell_of_test *list = xcalloc(v->n_tests + 1, sizeof(*list));

	no_days(v);
	for (size_t i = 0; i < v->n_accelerators; i++) {
		size_t n_cells = cells_of(v, i, list);
		struct rows *r;

		if (!n_cells)
			continue;
		r = db_rows(n->d,
		    "SELECT day, COALESCE(jobs, ''), cells FROM history_run WHERE accelerator = ?1"
		    " AND day >= ?2 AND day < ?3",
		    V_TEXT(v->accelerators[i].name), V_INT(v->first_day),
		    V_INT(v->first_day + (int64_t)v->n_days));
		while (rows_next(r))
			read_day(r, (size_t)(rows_int(r, 0) - v->first_day), list, n_cells);
	}
	free(list);
}

/* ---- marks ---- */

static void read_mark(struct db *d, const char *accelerator, struct nightly_mark *m)
{
	struct rows *r;

	if (m->day < 0)
		return;
	r = db_rows(d,
	    "SELECT at_ms, repository, upstream_sha, source_url, source_sha FROM history_run"
	    " WHERE accelerator = ?1 AND day = ?2",
	    V_TEXT(accelerator), V_INT(m->day));
	if (rows_next(r)) {
		m->at_ms = rows_int(r, 0);
		m->repository = rows_dup(r, 1);
		m->upstream_sha = commit_dup(r, 2);
		m->source_url = rows_dup(r, 3);
		m->source_sha = rows_dup(r, 4);
	}
	rows_end(r);
	if (m->job && !db_has(d, "SELECT 1 FROM job WHERE id = ?1", V_INT(m->job)))
		m->job = 0;
}

static int find_commits(const struct nightly_view *v, const char *good_sha, const char *bad_sha)
{
	for (size_t i = v->n_commits; i > 0; i--)
		if (strcmp(v->commits[i - 1].bad_sha, bad_sha) == 0 &&
		    strcmp(v->commits[i - 1].good_sha, good_sha) == 0)
			return (int)i - 1;
	return -1;
}

static int add_commits(struct nightly_reading *n, const struct nightly_mark *good, const char *bad)
{
	struct nightly_view *v = n->v;
	struct repository_key key = repository_key(good->repository);
	struct known_commits known = {.n = 0};
	struct nightly_commits *c;

	if (strcmp(good->upstream_sha, bad) != 0)
		commits_between_read(n->d, key.text, good->upstream_sha, bad, &known);
	v->commits = xrealloc(v->commits, (v->n_commits + 1) * sizeof(*v->commits));
	c = &v->commits[v->n_commits];
	*c = (struct nightly_commits){
	    .repository = xstrdup(good->repository),
	    .good_sha = xstrdup(good->upstream_sha),
	    .bad_sha = xstrdup(bad),
	    .n = known.n,
	    .list = xcalloc(COMMITS_SHOWN_MAX, sizeof(*c->list)),
	    .n_listed = known.n_listed,
	};
	for (size_t i = 0; i < known.n_listed; i++) {
		c->list[i].sha = known.list[i].sha;
		c->list[i].title = known.list[i].title;
		c->list[i].author = known.list[i].author;
	}
	return (int)v->n_commits++;
}

static void read_commits(struct nightly_reading *n, struct nightly_cell *c)
{
	const struct nightly_mark *good = &c->last_good, *bad = &c->first_bad;

	if (!good->upstream_sha || !bad->upstream_sha)
		return;
	c->commits = find_commits(n->v, good->upstream_sha, bad->upstream_sha);
	if (c->commits < 0)
		c->commits = add_commits(n, good, bad->upstream_sha);
}

/* Most tests that broke, broke together: the mark before is asked for first. */
static void take_mark(
    struct db *d, const char *accelerator, struct nightly_mark *m, const struct nightly_mark **last)
{
	const struct nightly_mark *before = *last;

	if (before && before->day == m->day && before->job == m->job && m->day >= 0) {
		m->at_ms = before->at_ms;
		m->repository = xstrdup_or_null(before->repository);
		m->upstream_sha = xstrdup_or_null(before->upstream_sha);
		m->source_url = xstrdup_or_null(before->source_url);
		m->source_sha = xstrdup_or_null(before->source_sha);
		return;
	}
	read_mark(d, accelerator, m);
	*last = m;
}

void nightly_read_marks(struct nightly_reading *n)
{
	size_t n_lasts = 2 * n->v->n_accelerators;
	const struct nightly_mark **lasts = xcalloc(n_lasts + 1, sizeof(*lasts));

	for (size_t i = 0; i < n->v->n_tests; i++)
		for (size_t k = 0; k < n->v->tests[i].n_cells; k++) {
			struct nightly_cell *c = &n->v->tests[i].cells[k];
			const char *name = n->v->accelerators[c->accelerator].name;
			const struct nightly_mark **last = &lasts[2 * c->accelerator];

			take_mark(n->d, name, &c->first_bad, &last[0]);
			take_mark(n->d, name, &c->last_good, &last[1]);
			read_commits(n, c);
		}
	free(lasts);
}
