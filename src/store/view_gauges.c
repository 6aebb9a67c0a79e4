#include "store/gauges.h"

#include "base/alloc.h"
#include "base/str.h"
#include "model/states.h"
#include "store/db.h"
#include "store/quality.h"
#include "store/red_episodes.h"

/* One range of an index for each status, as in view_registry.c. */
static void count_jobs(struct db *d, struct accelerator_gauges *g, int64_t after_ms)
{
	for (int status = 0; status < N_TEST_STATUSES; status++) {
		bool is_red = test_status_is_red((enum test_status)status);
		int64_t n;

		if (!is_red && status != TEST_PASS)
			continue;
		n = db_int(d, 0,
		    "SELECT COUNT(*) FROM job WHERE accelerator = ?1 AND verdict = ?2"
		    " AND reported_ms >= ?3 AND is_current = 1",
		    V_TEXT(g->name), V_TEXT(test_status_name((enum test_status)status)),
		    V_INT(after_ms));
		*(is_red ? &g->n_fail : &g->n_pass) += n;
	}
}

static void read_accelerators(struct db *d, struct get_gauges *q)
{
	int64_t after_ms = q->now_ms - QUALITY_DAYS_MS;
	struct rows *r = db_rows(d,
	    "SELECT name, last_report_ms, unhealthy_since_ms FROM accelerator"
	    " WHERE is_gone = 0 AND level > 1 ORDER BY name LIMIT ?1",
	    V_INT(GAUGE_ACCELERATORS_MAX));

	while (rows_next(r)) {
		if ((q->n & (q->n - 1)) == 0)
			q->list = xrealloc(q->list, (q->n ? 2 * q->n : 1) * sizeof(*q->list));
		q->list[q->n++] = (struct accelerator_gauges){
		    .name = rows_dup(r, 0),
		    .last_report_ms = rows_int(r, 1),
		    .unhealthy_since_ms = rows_int(r, 2),
		};
	}
	for (size_t i = 0; i < q->n; i++) {
		struct accelerator_gauges *g = &q->list[i];

		g->red_since_ms = red_since_ms(d, g->name);
		g->n_expired = db_int(d, 0,
		    "SELECT COUNT(*) FROM dispatch WHERE accelerator = ?1 AND created_ms >= ?2"
		    " AND state = 'expired'",
		    V_TEXT(g->name), V_INT(after_ms));
		g->n_queued = db_int(d, 0,
		    "SELECT COUNT(*) FROM dispatch WHERE accelerator = ?1 AND kind = 'pull'"
		    " AND state = 'queued'",
		    V_TEXT(g->name));
		count_jobs(d, g, after_ms);
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
	for (size_t i = 0; i < q->n; i++)
		free(q->list[i].name);
	FREE_AND_NULL(q->list);
	q->n = 0;
}
