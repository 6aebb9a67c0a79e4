/* Lists of leases, and how much waits for a machine. */
#include "base/alloc.h"
#include "store/db.h"
#include "store/leases.h"

#define COLUMNS                                                                                    \
	"SELECT l.id, l.dispatch_id, l.accelerator, l.runner, l.machine, l.state, l.attempt,"      \
	" l.job_id, l.granted_ms, l.until_ms, l.ended_ms, x.number, c.head_sha FROM lease l"       \
	" LEFT JOIN dispatch x ON x.id = l.dispatch_id AND x.accelerator = l.accelerator"          \
	" AND x.runner = l.runner LEFT JOIN change c ON c.id = x.change_id"
#define NEWEST_FIRST " ORDER BY l.granted_ms DESC, l.id LIMIT "

static struct rows *select_rows(struct db *d, const struct list_leases *q)
{
	int64_t limit = q->limit > 0 ? q->limit : INT64_MAX;

	if (q->only_active && q->accelerator)
		return db_rows(d,
		    COLUMNS " WHERE l.state = 'active' AND l.accelerator = ?1" NEWEST_FIRST "?2",
		    V_TEXT(q->accelerator), V_INT(limit));
	if (q->only_active)
		return db_rows(
		    d, COLUMNS " WHERE l.state = 'active'" NEWEST_FIRST "?1", V_INT(limit));
	if (q->accelerator)
		return db_rows(d, COLUMNS " WHERE l.accelerator = ?1" NEWEST_FIRST "?2",
		    V_TEXT(q->accelerator), V_INT(limit));
	return db_rows(d, COLUMNS NEWEST_FIRST "?1", V_INT(limit));
}

static int64_t count_queued(struct db *d, const char *accelerator)
{
	if (accelerator)
		return db_int(d, 0,
		    "SELECT COUNT(*) FROM dispatch WHERE kind = 'pull' AND state = 'queued'"
		    " AND accelerator = ?1",
		    V_TEXT(accelerator));
	return db_int(
	    d, 0, "SELECT COUNT(*) FROM dispatch WHERE kind = 'pull' AND state = 'queued'");
}

static int list_run(struct store_query *q, struct db *d)
{
	struct list_leases *l = CONTAINER_OF(q, struct list_leases, q);
	struct rows *r = select_rows(d, l);

	while (rows_next(r)) {
		if ((l->n & (l->n - 1)) == 0)
			l->list = xrealloc(l->list, (l->n ? 2 * l->n : 1) * sizeof(*l->list));
		l->list[l->n++] = (struct lease_row){
		    .id = rows_dup(r, 0),
		    .dispatch_id = rows_dup(r, 1),
		    .accelerator = rows_dup(r, 2),
		    .runner = rows_dup(r, 3),
		    .machine = rows_dup(r, 4),
		    .state = rows_dup(r, 5),
		    .attempt = (int)rows_int(r, 6),
		    .job_id = rows_int(r, 7),
		    .granted_ms = rows_int(r, 8),
		    .until_ms = rows_int(r, 9),
		    .ended_ms = rows_int(r, 10),
		    .number = rows_int(r, 11),
		    .head_sha = rows_dup(r, 12),
		};
	}
	l->n_queued = count_queued(d, l->accelerator);
	if (db_status(d))
		list_leases_release(l);
	return 0;
}

int store_list_leases(struct store *s, struct list_leases *q)
{
	q->list = NULL;
	q->n = 0;
	q->n_queued = 0;
	q->q.run = list_run;
	return store_query(s, &q->q);
}

void list_leases_release(struct list_leases *q)
{
	for (size_t i = 0; i < q->n; i++) {
		struct lease_row *l = &q->list[i];

		free(l->id);
		free(l->dispatch_id);
		free(l->accelerator);
		free(l->runner);
		free(l->machine);
		free(l->state);
		free(l->head_sha);
	}
	FREE_AND_NULL(q->list);
	q->n = 0;
}

static int count_run(struct store_query *query, struct db *d)
{
	struct count_pull_work *q = CONTAINER_OF(query, struct count_pull_work, q);

	for (size_t i = 0; i < q->n; i++) {
		struct pull_work *w = &q->list[i];

		w->n_waiting = db_int(d, 0,
		    "SELECT COUNT(*) FROM dispatch WHERE accelerator = ?1 AND runner = ?2"
		    " AND kind = 'pull' AND state = 'queued' AND is_current = 1"
		    " AND COALESCE(not_before_ms, 0) <= ?3",
		    V_TEXT(q->accelerator), V_TEXT(w->runner), V_INT(q->now_ms));
		w->n_active = db_int(d, 0,
		    "SELECT COUNT(*) FROM lease WHERE accelerator = ?1 AND runner = ?2"
		    " AND state = 'active'",
		    V_TEXT(q->accelerator), V_TEXT(w->runner));
	}
	return 0;
}

int store_count_pull_work(struct store *s, struct count_pull_work *q)
{
	q->q.run = count_run;
	return store_query(s, &q->q);
}
