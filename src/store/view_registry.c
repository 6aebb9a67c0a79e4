/* Figures over all: per accelerator, in total, and the backup of the whole. */
#include "base/alloc.h"
#include "store/counters.h"
#include "store/db.h"
#include "store/experiments.h"
#include "store/registry.h"
#include "store/store_internal.h"

enum { ACCELERATORS_MAX = 1000 };

void accelerator_figures_read(
    struct db *d, struct accelerator_figures *f, const struct upstream_branch *u, int64_t now_ms)
{
	int64_t after_ms = now_ms - QUALITY_DAYS_MS;

	f->n_dispatches = db_int(d, 0,
	    "SELECT COUNT(*) FROM dispatch WHERE accelerator = ?1 AND created_ms >= ?2"
	    " AND " IS_FIRST_RUN,
	    V_TEXT(f->name), V_INT(after_ms));
	f->n_expired = db_int(d, 0,
	    "SELECT COUNT(*) FROM dispatch WHERE accelerator = ?1 AND created_ms >= ?2"
	    " AND state = 'expired' AND " IS_FIRST_RUN,
	    V_TEXT(f->name), V_INT(after_ms));
	quality_read(d, f->name, now_ms, &f->quality);
	standing_read(d, f->name, u, now_ms, &f->at);
}

void accelerator_figures_release(struct accelerator_figures *f)
{
	FREE_AND_NULL(f->name);
	standing_release(&f->at);
}

static int figures_run(struct store_query *q, struct db *d)
{
	struct get_figures *g = CONTAINER_OF(q, struct get_figures, q);
	struct upstream_branch u = upstream_branch_read(d);
	struct rows *r = db_rows(d,
	    "SELECT name FROM accelerator WHERE ?2 IS NULL OR name = ?2"
	    " ORDER BY name LIMIT ?1",
	    V_INT(ACCELERATORS_MAX), V_TEXT(g->only));

	while (rows_next(r)) {
		struct accelerator_figures *f;

		g->list = xrealloc(g->list, (g->n + 1) * sizeof(*g->list));
		f = &g->list[g->n++];
		*f = (struct accelerator_figures){.name = rows_dup(r, 0)};
		accelerator_figures_read(d, f, &u, g->now_ms);
	}
	if (db_status(d))
		get_figures_release(g);
	return 0;
}

int store_get_figures(struct store *s, struct get_figures *q)
{
	q->list = NULL;
	q->n = 0;
	q->q.run = figures_run;
	return store_query(s, &q->q);
}

void get_figures_release(struct get_figures *q)
{
	for (size_t i = 0; i < q->n; i++)
		accelerator_figures_release(&q->list[i]);
	FREE_AND_NULL(q->list);
	q->n = 0;
}

static void count_states(struct db *d, struct get_totals *g)
{
	struct upstream_branch u = upstream_branch_read(d);
	struct rows *r = db_rows(d,
	    "SELECT name FROM accelerator WHERE is_gone = 0 AND level > 1 ORDER BY name LIMIT ?1",
	    V_INT(ACCELERATORS_MAX));

	g->n_unhealthy = g->n_red = 0;
	while (rows_next(r)) {
		struct standing at;

		standing_read(d, rows_text(r, 0), &u, g->now_ms, &at);
		g->n_unhealthy += at.facts.is_unhealthy;
		g->n_red += accelerator_status_is_red(at.state.status);
		standing_release(&at);
	}
}

static int totals_run(struct store_query *q, struct db *d)
{
	struct get_totals *g = CONTAINER_OF(q, struct get_totals, q);
	int64_t counts[N_COUNTERS];

	counters_read(d, counts);
	g->n_deliveries_accepted = counts[COUNT_DELIVERIES_ACCEPTED];
	g->n_deliveries_planned = counts[COUNT_DELIVERIES_PLANNED];
	g->n_deliveries_ignored = counts[COUNT_DELIVERIES_IGNORED];
	g->n_deliveries_failed = counts[COUNT_DELIVERIES_FAILED];
	for (int i = 0; i < N_DISPATCH_STATES; i++)
		g->n_dispatches[i] = counts[COUNT_DISPATCHES + i];
	g->n_leases_active = counts[COUNT_LEASES + LEASE_IS_ACTIVE];
	g->n_leases_done = counts[COUNT_LEASES + LEASE_IS_DONE];
	g->n_leases_returned = counts[COUNT_LEASES + LEASE_IS_RETURNED];
	g->n_leases_expired = counts[COUNT_LEASES + LEASE_IS_EXPIRED];
	g->n_leases_cancelled = counts[COUNT_LEASES + LEASE_IS_CANCELLED];
	g->n_jobs = counts[COUNT_JOBS];
	g->n_results = counts[COUNT_RESULTS];
	g->n_open_changes = counts[COUNT_OPEN_CHANGES];
	for (int i = 0; i < N_EXPERIMENT_STATES; i++)
		g->n_experiments[i] = counts[COUNT_EXPERIMENTS + i];
	count_states(d, g);
	g->oldest_accepted_ms = db_int(
	    d, 0, "SELECT received_ms FROM delivery WHERE state = 'accepted' ORDER BY id LIMIT 1");
	g->db_bytes = db_file_bytes(d);
	return 0;
}

int store_get_totals(struct store *s, struct get_totals *q)
{
	memset(q->n_dispatches, 0, sizeof(q->n_dispatches));
	q->q.run = totals_run;
	return store_query(s, &q->q);
}

/* ---- backup ---- */

static int backup_run(struct store_query *q, struct db *d)
{
	struct backup_store *b = CONTAINER_OF(q, struct backup_store, q);

	return db_backup(d, b->path, readers_go_on, b->q.store->readers, &b->n_bytes, &b->q.why);
}

int store_backup(struct store *s, struct backup_store *q)
{
	if (q->path[0] != '/')
		return ERR_INVALID;
	q->n_bytes = 0;
	q->q.run = backup_run;
	return store_query(s, &q->q);
}
