#include <string.h>

#include "base/alloc.h"
#include "base/strv.h"
#include "store/accelerator_page.h"
#include "store/dashboard.h"
#include "store/days.h"
#include "store/experiments.h"
#include "store/key.h"
#include "store/page_jobs.h"
#include "store/red_episodes.h"

enum { MACHINES_MAX = 1000 };

static void read_schedule(struct db *d, struct get_accelerator_page *p)
{
	struct rows *r = db_rows(d,
	    "SELECT cron, next_ms, is_next_skipped FROM schedule WHERE accelerator = ?1"
	    " AND next_ms IS NOT NULL",
	    V_TEXT(p->name));

	if (rows_next(r)) {
		p->crons = rows_dup(r, 0);
		p->next_ms = rows_int(r, 1);
		p->is_next_skipped = rows_int(r, 2);
	}
	rows_end(r);
	r = db_rows(d,
	    "SELECT id, due_ms, started_ms, ended_ms, cause, state, outcome, reason, upstream_sha,"
	    " source_sha FROM schedule_run WHERE accelerator = ?1"
	    " AND (outcome IS NOT NULL OR ended_ms IS NULL) ORDER BY due_ms DESC LIMIT 1",
	    V_TEXT(p->name)); /* not of its time at L1 */
	if (rows_next(r))
		p->last_run = (struct schedule_run_view){
		    .id = rows_int(r, 0),
		    .due_ms = rows_int(r, 1),
		    .started_ms = rows_int(r, 2),
		    .ended_ms = rows_int(r, 3),
		    .cause = rows_dup(r, 4),
		    .state = rows_dup(r, 5),
		    .outcome = rows_dup(r, 6),
		    .reason = rows_dup(r, 7),
		    .upstream_sha = commit_dup(r, 8),
		    .source_sha = rows_dup(r, 9),
		};
	rows_end(r);
}

/* The commit's own time, where a push told it. */
static struct page_commit commit_of(
    struct db *d, const char *repository_key, const char *ref, const char *sha, int64_t else_ms)
{
	return (struct page_commit){
	    .sha = xstrdup_or_null(sha),
	    .at_ms = sha ? db_int(d, else_ms,
			       "SELECT at_ms FROM branch_commit WHERE repository_key = ?1"
			       " AND sha = ?2 AND ref = ?3",
			       V_TEXT(repository_key), V_TEXT(sha), V_TEXT(ref))
			 : 0,
	};
}

/* Of several branches the one that has been red for longest. */
static void read_red(struct db *d, struct get_accelerator_page *p)
{
	struct rows *r = db_rows(d,
	    "SELECT e.first_bad_ms, e.repository_key, e.ref, c.head_sha, c.created_ms,"
	    " e.last_good_sha, e.issue_repository, e.issue_number, e.first_bad_change"
	    " FROM red_episode e LEFT JOIN change c ON c.id = e.first_bad_change"
	    " WHERE e.accelerator = ?1 AND e.ended_ms IS NULL ORDER BY e.first_bad_ms LIMIT 1",
	    V_TEXT(p->name));

	if (rows_next(r)) {
		const char *bad = rows_is_null(r, 3) ? NULL : rows_text(r, 3);
		const char *good = rows_is_null(r, 5) ? NULL : rows_text(r, 5);

		p->red_since_ms = rows_int(r, 0);
		p->first_bad = commit_of(d, rows_text(r, 1), rows_text(r, 2), bad, rows_int(r, 4));
		p->last_good = commit_of(d, rows_text(r, 1), rows_text(r, 2), good, 0);
		p->issue_repository = rows_dup(r, 6);
		p->issue_number = rows_int(r, 7);
		p->red_tests = red_tests(d, rows_int(r, 8), p->name);
	}
	rows_end(r);
}

/* ---- machines ---- */

static int by_name(const void *name, const void *m)
{
	return strcmp(name, ((const struct page_machine *)m)->name);
}

/* Two tokens of one machine, while one takes the place of the other, are one machine. */
static void read_machines(struct db *d, struct get_accelerator_page *p)
{
	struct rows *r = db_rows(d,
	    "SELECT name, MAX(COALESCE(last_used_ms, 0)) FROM token WHERE accelerator = ?1"
	    " AND kind = 'runner' AND revoked_ms IS NULL GROUP BY name ORDER BY name LIMIT ?2",
	    V_TEXT(p->name), V_INT(MACHINES_MAX));

	while (rows_next(r)) {
		if ((p->n_machines & (p->n_machines - 1)) == 0)
			p->machines = xrealloc(p->machines,
			    (p->n_machines ? 2 * p->n_machines : 1) * sizeof(*p->machines));
		p->machines[p->n_machines++] = (struct page_machine){
		    .name = rows_dup(r, 0),
		    .last_seen_ms = rows_int(r, 1),
		    .busy_with = strv_copy(NULL),
		};
	}
	r = db_rows(d,
	    "SELECT machine, runner FROM lease WHERE accelerator = ?1 AND state = 'active'",
	    V_TEXT(p->name));
	while (rows_next(r)) {
		struct page_machine *m = p->n_machines
					     ? bsearch(rows_text(r, 0), p->machines, p->n_machines,
						   sizeof(*p->machines), by_name)
					     : NULL;

		if (m)
			strv_add(&m->busy_with, rows_text(r, 1));
	}
}

static void read_experiments(struct db *d, struct get_accelerator_page *p)
{
	p->n_experiments_pending = db_int(d, 0,
	    "SELECT COUNT(*) FROM experiment WHERE accelerator = ?1"
	    " AND state IN ('planned', 'started')",
	    V_TEXT(p->name));
	p->experiments_24h_ms = db_int(d, 0,
	    "SELECT SUM(" EXPERIMENT_SPENT_MS ") FROM experiment e"
	    " WHERE e.accelerator = ?1 AND e.started_ms > ?2",
	    V_TEXT(p->name), V_INT(p->now_ms - DAY_MS), V_INT(p->now_ms));
}

static int page_run(struct store_query *sq, struct db *d)
{
	struct get_accelerator_page *p = CONTAINER_OF(sq, struct get_accelerator_page, q);
	struct upstream_branch u = upstream_branch_read(d);

	p->today = day_of(p->now_ms);
	p->figures.name = xstrdup(p->name);
	accelerator_figures_read(d, &p->figures, &u, p->now_ms);
	days_read(d, p->name, p->today, p->trend, PAGE_TREND_DAYS);
	nightly_days_read(d, p->name, p->today, p->calendar, PAGE_CALENDAR_DAYS);
	read_schedule(d, p);
	read_red(d, p);
	page_jobs_read(d, p->name, 0, PAGE_JOBS, &p->jobs);
	read_machines(d, p);
	read_experiments(d, p);
	if (db_status(d))
		get_accelerator_page_release(p);
	return 0;
}

int store_get_accelerator_page(struct store *s, struct get_accelerator_page *q)
{
	q->q.run = page_run;
	return store_query(s, &q->q);
}

void get_accelerator_page_release(struct get_accelerator_page *q)
{
	accelerator_figures_release(&q->figures);
	FREE_AND_NULL(q->crons);
	schedule_run_view_release(&q->last_run);
	FREE_AND_NULL(q->first_bad.sha);
	FREE_AND_NULL(q->last_good.sha);
	FREE_AND_NULL(q->issue_repository);
	strv_free(q->red_tests);
	q->red_tests = NULL;
	page_jobs_release(&q->jobs);
	for (size_t i = 0; i < q->n_machines; i++) {
		free(q->machines[i].name);
		strv_free(q->machines[i].busy_with);
	}
	FREE_AND_NULL(q->machines);
	q->n_machines = 0;
}
