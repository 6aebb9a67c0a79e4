/* Figures over all: per accelerator, in total, and the backup of the whole. */
#include "base/alloc.h"
#include "store/counters.h"
#include "store/db.h"
#include "store/registry.h"
#include "store/store_internal.h"

static const int64_t FIGURES_MS = INT64_C(30) * 86400 * 1000;
enum { ACCELERATORS_MAX = 1000, PUSH_JOBS_MAX = 2000 };

/* Since when its runs on pushes have been red without a green one between: from the newest
 * change back, a change being red when one of its jobs is. */
static int64_t red_since(struct db *d, const char *accelerator)
{
	struct rows *r = db_rows(d,
	    "SELECT change_id, verdict, completed_ms FROM job WHERE accelerator = ?1"
	    " AND is_push = 1 AND is_current = 1 AND verdict IS NOT NULL"
	    " ORDER BY change_id DESC LIMIT ?2",
	    V_TEXT(accelerator), V_INT(PUSH_JOBS_MAX));
	int64_t change_id = 0, since = 0, red_ms = 0;

	while (rows_next(r)) {
		if (rows_int(r, 0) != change_id) {
			if (change_id && !red_ms)
				break;
			since = red_ms;
			red_ms = 0;
			change_id = rows_int(r, 0);
		}
		if (test_status_is_red(test_status_parse(rows_text(r, 1))) &&
		    rows_int(r, 2) > red_ms)
			red_ms = rows_int(r, 2);
	}
	rows_end(r);
	return red_ms ? red_ms : since;
}

/* One range of an index for each: counting walks nothing else. */
static int64_t count_jobs(
    struct db *d, const char *accelerator, const char *verdict, int64_t after_ms)
{
	return db_int(d, 0,
	    "SELECT COUNT(*) FROM job WHERE accelerator = ?1 AND verdict = ?2"
	    " AND reported_ms >= ?3 AND is_current = 1",
	    V_TEXT(accelerator), V_TEXT(verdict), V_INT(after_ms));
}

static void count_all(struct db *d, struct accelerator_figures *f, int64_t after_ms)
{
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
	f->red_since_ms = red_since(d, f->name);
}

static int figures_run(struct store_query *q, struct db *d)
{
	struct get_figures *g = CONTAINER_OF(q, struct get_figures, q);
	struct rows *r =
	    db_rows(d, "SELECT name, last_report_ms FROM accelerator ORDER BY name LIMIT ?1",
		V_INT(ACCELERATORS_MAX));

	while (rows_next(r)) {
		struct accelerator_figures *f;

		g->list = xrealloc(g->list, (g->n + 1) * sizeof(*g->list));
		f = &g->list[g->n++];
		*f = (struct accelerator_figures){
		    .name = rows_dup(r, 0),
		    .last_report_ms = rows_int(r, 1),
		};
		count_all(d, f, g->now_ms - FIGURES_MS);
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
