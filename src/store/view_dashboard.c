#include <string.h>

#include "base/alloc.h"
#include "store/branch_commits.h"
#include "store/dashboard.h"
#include "store/days.h"
#include "store/experiments.h"
#include "store/run_suites.h"
#include "store/standings.h"

enum { ROWS_MAX = 1000 };

static void read_accelerators(
    struct db *d, struct dashboard *v, const struct upstream_branch *u, int64_t now_ms)
{
	struct rows *r = db_rows(d,
	    "SELECT name, title, vendor, docs_url, help_url FROM accelerator WHERE is_gone = 0"
	    " AND level > ?1 ORDER BY name LIMIT ?2",
	    V_INT(LEVEL_1), V_INT(ROWS_MAX));

	while (rows_next(r)) {
		struct dashboard_row *a;

		if ((v->n_rows & (v->n_rows - 1)) == 0)
			v->rows =
			    xrealloc(v->rows, (v->n_rows ? 2 * v->n_rows : 1) * sizeof(*v->rows));
		a = &v->rows[v->n_rows++];
		*a = (struct dashboard_row){
		    .name = rows_dup(r, 0),
		    .title = rows_dup(r, 1),
		    .vendor = rows_dup(r, 2),
		    .docs_url = rows_dup(r, 3),
		    .help_url = rows_dup(r, 4),
		};
		standing_read(d, a->name, u, now_ms, &a->at);
	}
}

static int by_suite(const void *x, const void *y)
{
	const struct suite_view *a = x, *b = y;

	return suite_order(a->suite, b->suite);
}

static void read_suites(struct db *d, struct dashboard_row *a)
{
	struct rows *r = db_rows(d,
	    "SELECT suite, status, n_broken, job_id, n_fail, n_error, n_miss, n_pass, n_done,"
	    " n_skip FROM run_suite WHERE change_id = ?1 AND accelerator = ?2"
	    " AND NOT (suite = 'dispatch' AND job_id IS NULL"
	    "  AND n_fail + n_error + n_pass + n_done + n_skip = 0)",
	    V_INT(a->at.change_id), V_TEXT(a->name));

	while (rows_next(r)) {
		struct suite_view *s;

		a->suites = xrealloc(a->suites, (a->n_suites + 1) * sizeof(*a->suites));
		s = &a->suites[a->n_suites++];
		*s = (struct suite_view){
		    .suite = rows_dup(r, 0),
		    .status = test_status_parse(rows_text(r, 1)),
		    .n_broken = rows_int(r, 2),
		    .job_id = rows_int(r, 3),
		};
		s->by_status[TEST_FAIL] = rows_int(r, 4);
		s->by_status[TEST_ERROR] = rows_int(r, 5);
		s->by_status[TEST_MISS] = rows_int(r, 6);
		s->by_status[TEST_PASS] = rows_int(r, 7);
		s->by_status[TEST_DONE] = rows_int(r, 8);
		s->by_status[TEST_SKIP] = rows_int(r, 9);
	}
	if (a->n_suites)
		qsort(a->suites, a->n_suites, sizeof(*a->suites), by_suite);
}

static bool is_newer(const struct standing *a, const struct standing *b)
{
	if (!b)
		return true;
	if (a->position != b->position)
		return a->position > b->position;
	return a->change_id > b->change_id;
}

static void find_newest(struct db *d, struct dashboard *v, const struct upstream_branch *u)
{
	const struct standing *newest = NULL;
	struct rows *r;

	for (size_t i = 0; i < v->n_rows; i++)
		if (v->rows[i].at.sha && is_newer(&v->rows[i].at, newest))
			newest = &v->rows[i].at;
	if (!newest)
		return;
	v->sha = xstrdup(newest->sha);
	v->commit_ms = newest->commit_ms;
	v->position = newest->position;
	v->n_tested = (size_t)db_int(d, 0,
	    "SELECT COUNT(*) FROM run r JOIN accelerator a ON a.name = r.accelerator"
	    " WHERE r.change_id = ?1 AND a.is_gone = 0 AND a.level > ?2 AND NOT " RUN_IS_SILENT,
	    V_INT(newest->change_id), V_INT(LEVEL_1));
	r = db_rows(d,
	    "SELECT COALESCE(b.title, c.title), COALESCE(b.author, c.author) FROM change c"
	    " LEFT JOIN branch_commit b ON b.repository_key = ?2 AND b.ref = ?3"
	    " AND b.sha = c.head_sha WHERE c.id = ?1",
	    V_INT(newest->change_id), V_TEXT(u->repository.text), V_TEXT(u->name));
	if (rows_next(r)) {
		v->title = rows_dup(r, 0);
		v->author = rows_dup(r, 1);
	}
	rows_end(r);
}

/* ---- what is running ---- */

/* An experiment shows with the change that it explains. (+: the index of the states is the one to use.) */
#define GOING                                                                                      \
	" x.is_current = 1 AND x.state IN ('queued', 'sent', 'acknowledged', 'running')"           \
	" AND +x." IS_FIRST_RUN
#define HELD " x.is_current = 1 AND x.state = 'held'"
/* The infra repository's own row is no accelerator, and L1 shows nothing. */
#define SHOWN                                                                                      \
	" FROM dispatch x JOIN accelerator a ON a.name = x.accelerator AND a.is_gone = 0"          \
	" AND a.level > ?1"
#define RUNNING_COLUMNS                                                                            \
	"SELECT x.id, x.accelerator, x.runner, x.state, x.number, x.created_ms, x.next_due_ms,"    \
	" c.kind, c.head_sha, COALESCE(p.title, c.title)" SHOWN                                    \
	" JOIN change c ON c.id = x.change_id LEFT JOIN pull p"                                    \
	" ON p.repository_key = c.repository_key AND p.number = x.number WHERE"

static void add_running(struct dashboard *v, struct rows *r)
{
	while (rows_next(r)) {
		if (!v->running)
			v->running = xcalloc(DASHBOARD_RUNNING_MAX, sizeof(*v->running));
		v->running[v->n_running++] = (struct running_view){
		    .id = rows_dup(r, 0),
		    .accelerator = rows_dup(r, 1),
		    .runner = rows_dup(r, 2),
		    .state = dispatch_state_parse(rows_text(r, 3)),
		    .number = rows_int(r, 4),
		    .since_ms = rows_int(r, 5),
		    .due_ms = rows_int(r, 6),
		    .kind = change_kind_parse(rows_text(r, 7)),
		    .head_sha = rows_dup(r, 8),
		    .title = rows_dup(r, 9),
		};
	}
}

/* What waits for a member may wait for ever: it comes behind what moves. */
static void read_running(struct db *d, struct dashboard *v)
{
	v->n_running_total = db_int(d, 0, "SELECT COUNT(*)" SHOWN " WHERE" GOING, V_INT(LEVEL_1)) +
			     db_int(d, 0, "SELECT COUNT(*)" SHOWN " WHERE" HELD, V_INT(LEVEL_1));
	add_running(v, db_rows(d, RUNNING_COLUMNS GOING " ORDER BY x.created_ms LIMIT ?2",
			   V_INT(LEVEL_1), V_INT(DASHBOARD_RUNNING_MAX)));
	add_running(v, db_rows(d, RUNNING_COLUMNS HELD " ORDER BY x.created_ms LIMIT ?2",
			   V_INT(LEVEL_1), V_INT(DASHBOARD_RUNNING_MAX - (int64_t)v->n_running)));
}

static int dashboard_run(struct store_query *q, struct db *d)
{
	struct get_dashboard *g = CONTAINER_OF(q, struct get_dashboard, q);
	struct upstream_branch u = {.repository = repository_key(g->repository)};
	struct dashboard *v = xcalloc(1, sizeof(*v));

	snprintf(u.name, sizeof(u.name), "%s", branch_name(g->branch));

	v->position = -1;
	v->today = day_of(g->now_ms);
	read_accelerators(d, v, &u, g->now_ms);
	for (size_t i = 0; i < v->n_rows; i++) {
		struct dashboard_row *a = &v->rows[i];

		read_suites(d, a);
		days_read(d, a->name, v->today, a->days, DASHBOARD_DAYS);
		nightly_days_read(d, a->name, v->today, a->nightly, DASHBOARD_DAYS);
	}
	find_newest(d, v, &u);
	read_running(d, v);
	dashboard_sort(v);
	if (db_status(d))
		dashboard_free(v);
	else
		g->view = v;
	return 0;
}

int store_get_dashboard(struct store *s, struct get_dashboard *q)
{
	q->view = NULL;
	q->q.run = dashboard_run;
	return store_query(s, &q->q);
}
