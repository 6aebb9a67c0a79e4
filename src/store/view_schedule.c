/* Who runs when, and what came of it last: for operators. */
#include "base/alloc.h"
#include "store/db.h"
#include "store/key.h"
#include "store/schedules.h"

static struct schedule_row read_row(const struct rows *r)
{
	return (struct schedule_row){
	    .accelerator = rows_dup(r, 0),
	    .crons = rows_is_null(r, 2) ? NULL : rows_dup(r, 1),
	    .next_ms = rows_int(r, 2),
	    .is_next_skipped = rows_int(r, 3),
	    .due_ms = rows_int(r, 4),
	    .started_ms = rows_int(r, 5),
	    .ended_ms = rows_int(r, 6),
	    .cause = rows_dup(r, 7),
	    .state = rows_dup(r, 8),
	    .outcome = rows_dup(r, 9),
	    .reason = rows_dup(r, 10),
	    .upstream_sha = commit_dup(r, 11),
	    .source_sha = rows_dup(r, 12),
	};
}

static int list_run(struct store_query *q, struct db *d)
{
	struct list_schedules *o = CONTAINER_OF(q, struct list_schedules, q);
	struct rows *r = db_rows(d,
	    "SELECT a.name, s.cron, s.next_ms, s.is_next_skipped, r.due_ms, r.started_ms,"
	    " r.ended_ms, r.cause, r.state, r.outcome, r.reason, r.upstream_sha, r.source_sha"
	    " FROM accelerator a LEFT JOIN schedule s ON s.accelerator = a.name"
	    " LEFT JOIN schedule_run r ON r.id = (SELECT MAX(id) FROM schedule_run"
	    "  WHERE accelerator = a.name)"
	    " WHERE (s.next_ms IS NOT NULL OR r.id IS NOT NULL) AND (?1 IS NULL OR a.name = ?1)"
	    " ORDER BY a.name",
	    V_TEXT(o->accelerator));

	o->list = NULL;
	o->n = 0;
	while (rows_next(r)) {
		o->list = xrealloc(o->list, (o->n + 1) * sizeof(*o->list));
		o->list[o->n++] = read_row(r);
	}
	return 0;
}

int store_list_schedules(struct store *s, struct list_schedules *q)
{
	q->q.run = list_run;
	return store_query(s, &q->q);
}

void list_schedules_release(struct list_schedules *q)
{
	for (size_t i = 0; i < q->n; i++) {
		struct schedule_row *r = &q->list[i];

		free(r->accelerator);
		free(r->crons);
		free(r->cause);
		free(r->state);
		free(r->outcome);
		free(r->reason);
		free(r->upstream_sha);
		free(r->source_sha);
	}
	FREE_AND_NULL(q->list);
	q->n = 0;
}
