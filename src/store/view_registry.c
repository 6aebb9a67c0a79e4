/* Figures over all: per accelerator, in total, and the backup of the whole. */
#include "base/alloc.h"
#include "store/counters.h"
#include "store/db.h"
#include "store/registry.h"
#include "store/store_internal.h"

enum { ACCELERATORS_MAX = 1000 };

/* One range of an index for each: counting walks nothing else. */
static int64_t count_jobs(
    struct db *d, const char *accelerator, const char *verdict, int64_t after_ms)
{
	return db_int(d, 0,
	    "SELECT COUNT(*) FROM job WHERE accelerator = ?1 AND verdict = ?2"
	    " AND reported_ms >= ?3 AND is_current = 1",
	    V_TEXT(accelerator), V_TEXT(verdict), V_INT(after_ms));
}

void accelerator_figures_read(struct db *d, struct accelerator_figures *f, int64_t now_ms)
{
	int64_t after_ms = now_ms - QUALITY_DAYS_MS;

	for (int status = 0; status < N_TEST_STATUSES; status++) {
		const char *name = test_status_name((enum test_status)status);

		if (test_status_is_red((enum test_status)status))
			f->n_fail += count_jobs(d, f->name, name, after_ms);
		else if (status == TEST_PASS)
			f->n_pass = count_jobs(d, f->name, name, after_ms);
	}
	f->n_dispatches = db_int(d, 0,
	    "SELECT COUNT(*) FROM dispatch WHERE accelerator = ?1 AND created_ms >= ?2",
	    V_TEXT(f->name), V_INT(after_ms));
	f->n_expired = db_int(d, 0,
	    "SELECT COUNT(*) FROM dispatch WHERE accelerator = ?1 AND created_ms >= ?2"
	    " AND state = 'expired'",
	    V_TEXT(f->name), V_INT(after_ms));
	quality_read(d, f->name, now_ms, &f->quality);
}

static int figures_run(struct store_query *q, struct db *d)
{
	struct get_figures *g = CONTAINER_OF(q, struct get_figures, q);
	struct rows *r = db_rows(d,
	    "SELECT name, last_report_ms FROM accelerator WHERE ?2 IS NULL OR name = ?2"
	    " ORDER BY name LIMIT ?1",
	    V_INT(ACCELERATORS_MAX), V_TEXT(g->only));

	while (rows_next(r)) {
		struct accelerator_figures *f;

		g->list = xrealloc(g->list, (g->n + 1) * sizeof(*g->list));
		f = &g->list[g->n++];
		*f = (struct accelerator_figures){
		    .name = rows_dup(r, 0),
		    .last_report_ms = rows_int(r, 1),
		};
		accelerator_figures_read(d, f, g->now_ms);
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
		free(q->list[i].name);
	FREE_AND_NULL(q->list);
	q->n = 0;
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
	g->n_unhealthy = db_int(d, 0,
	    "SELECT COUNT(*) FROM accelerator WHERE unhealthy_since_ms IS NOT NULL"
	    " AND is_gone = 0 AND level > 1");
	g->n_red = db_int(d, 0,
	    "SELECT COUNT(DISTINCT e.accelerator) FROM red_episode e JOIN accelerator a"
	    " ON a.name = e.accelerator WHERE e.ended_ms IS NULL AND a.is_gone = 0"
	    " AND a.level > 1");
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
