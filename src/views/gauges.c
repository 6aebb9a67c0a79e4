#include "views/gauges.h"

#include "db/record_rows.h"
#include "experiments/experiments.h"
#include "history/standings.h"
#include "store/outbox.h"

RECORD_DEFINE(accelerator_gauges, ACCELERATOR_GAUGES_RECORD)
RECORD_DEFINE(outbox_gauges, OUTBOX_GAUGES_RECORD)

static int get_gauges_run(struct store_query *query, const struct view *d)
{
	struct get_gauges *q = CONTAINER_OF(query, struct get_gauges, q);
	struct upstream_branch u = upstream_branch_read(d);
	struct rows *r = db_rows(d,
	    RECORD_QUERY(ACCELERATOR_GAUGES_RECORD,
		"FROM accelerator a WHERE a.is_gone = 0 AND a.level > 1 ORDER BY a.name LIMIT ?1"),
	    V_INT(GAUGE_ACCELERATORS_MAX), V_INT(q->now_ms - QUALITY_DAYS_MS));

	memset(q->outbox, 0, sizeof(q->outbox));
	RECORDS_READ(r, accelerator_gauges, q->list, q->n);
	DB_PIPELINE (d)
		for (struct accelerator_gauges *g = q->list; g < q->list + q->n; g++) {
			struct experiment_ends ends = experiment_ends_read(d, g->name, q->now_ms);

			standing_read(d, g->name, &u, q->now_ms, &g->at);
			g->n_experiments_done = ends.n_done;
			g->n_experiments_expired = ends.n_expired;
			g->n_experiments_void = ends.n_void;
			free(ends.newest_loss);
		}
	q->n_unhealthy = q->n_red = 0;
	for (size_t i = 0; i < q->n; i++) {
		q->n_unhealthy += q->list[i].at.facts.is_unhealthy;
		q->n_red += accelerator_status_is_red(q->list[i].at.state.status);
	}
	r = db_rows(d,
	    RECORD_QUERY_BY("kind", OUTBOX_GAUGES_RECORD, "FROM outbox WHERE " OUTBOX_IS_UNSENT("") " GROUP BY kind"));
	while (rows_next(r))
		for (int k = 0; k < N_OUTBOX_KINDS; k++)
			if (str_eq(rows_key(r), outbox_kind_name((enum outbox_kind)k)))
				record_read(r, &outbox_gauges_record, &q->outbox[k]);
	q->totals = (struct get_totals){.now_ms = q->now_ms};
	totals_read(d, &q->totals);
	if (db_status(d))
		get_gauges_release(q);
	return 0;
}

STORE_QUERY(get_gauges)

void get_gauges_release(struct get_gauges *q)
{
	for (size_t i = 0; i < q->n; i++)
		standing_release(&q->list[i].at);
	RECORDS_RELEASE(accelerator_gauges, q->list, q->n);
}
