#include "store/gauges.h"

#include "base/alloc.h"
#include "base/str.h"
#include "model/states.h"
#include "store/days.h"
#include "store/db.h"
#include "store/experiments.h"
#include "store/quality.h"

/* One that had not begun, or that made way for a first run, is not the vendor's fault. */
static void read_experiments(struct db *d, int64_t now_ms, struct accelerator_gauges *g)
{
	struct rows *r = db_rows(d,
	    "SELECT SUM(state = 'done'), SUM(state = 'expired'), SUM(state = 'void')"
	    " FROM experiment WHERE accelerator = ?1 AND ended_ms > ?2"
	    " AND started_ms IS NOT NULL",
	    V_TEXT(g->name), V_INT(now_ms - DAY_MS));

	if (rows_next(r)) {
		g->n_experiments_done = rows_int(r, 0);
		g->n_experiments_expired = rows_int(r, 1);
		g->n_experiments_void = rows_int(r, 2);
	}
	rows_end(r);
}

static void read_accelerators(struct db *d, struct get_gauges *q)
{
	int64_t after_ms = q->now_ms - QUALITY_DAYS_MS;
	struct upstream_branch u = upstream_branch_read(d);
	struct rows *r = db_rows(d,
	    "SELECT name, unhealthy_since_ms FROM accelerator"
	    " WHERE is_gone = 0 AND level > 1 ORDER BY name LIMIT ?1",
	    V_INT(GAUGE_ACCELERATORS_MAX));

	while (rows_next(r)) {
		if ((q->n & (q->n - 1)) == 0)
			q->list = xrealloc(q->list, (q->n ? 2 * q->n : 1) * sizeof(*q->list));
		q->list[q->n++] = (struct accelerator_gauges){
		    .name = rows_dup(r, 0),
		    .unhealthy_since_ms = rows_int(r, 1),
		};
	}
	for (size_t i = 0; i < q->n; i++) {
		struct accelerator_gauges *g = &q->list[i];

		standing_read(d, g->name, &u, q->now_ms, &g->at);
		g->n_expired = db_int(d, 0,
		    "SELECT COUNT(*) FROM dispatch WHERE accelerator = ?1 AND created_ms >= ?2"
		    " AND state = 'expired' AND " IS_FIRST_RUN,
		    V_TEXT(g->name), V_INT(after_ms));
		g->n_queued = db_int(d, 0,
		    "SELECT COUNT(*) FROM dispatch WHERE accelerator = ?1 AND kind = 'pull'"
		    " AND state = 'queued' AND " IS_FIRST_RUN,
		    V_TEXT(g->name));
		read_experiments(d, q->now_ms, g);
	}
}

static void read_outbox(struct db *d, struct get_gauges *q)
{
	struct rows *r = db_rows(d, "SELECT kind, COUNT(*), MIN(first_ms) FROM outbox"
				    " WHERE state IN ('due', 'waiting', 'sending') GROUP BY kind");

	while (rows_next(r))
		for (int k = 0; k < N_OUTBOX_KINDS; k++)
			if (str_eq(rows_text(r, 0), outbox_kind_name((enum outbox_kind)k)))
				q->outbox[k] = (struct outbox_gauges){
				    .n_unsent = rows_int(r, 1), .oldest_ms = rows_int(r, 2)};
}

static int gauges_run(struct store_query *query, struct db *d)
{
	struct get_gauges *q = CONTAINER_OF(query, struct get_gauges, q);

	read_accelerators(d, q);
	read_outbox(d, q);
	if (db_status(d))
		get_gauges_release(q);
	return 0;
}

int store_get_gauges(struct store *s, struct get_gauges *q)
{
	q->list = NULL;
	q->n = 0;
	memset(q->outbox, 0, sizeof(q->outbox));
	q->q.run = gauges_run;
	return store_query(s, &q->q);
}

void get_gauges_release(struct get_gauges *q)
{
	for (size_t i = 0; i < q->n; i++) {
		free(q->list[i].name);
		standing_release(&q->list[i].at);
	}
	FREE_AND_NULL(q->list);
	q->n = 0;
}
