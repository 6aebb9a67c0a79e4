/* Lists: dispatches for outpostctl, pull requests and pushes for the reconciler. */
#include "base/alloc.h"
#include "store/changes.h"
#include "store/db.h"
#include "store/key.h"

enum { DISPATCHES_MAX = 1000, PULLS_MAX = 100000 };

#define COLUMNS                                                                                    \
	"SELECT x.id, x.accelerator, x.runner, x.kind, x.target, x.state, c.head_sha,"             \
	" CASE x.state WHEN 'held' THEN x.held_reason END, COALESCE(x.last_error, o.last_error), " \
	"CASE WHEN e.id IS NULL THEN x.number"                                                     \
	" ELSE (SELECT number FROM dispatch WHERE id = e.dispatch_id) END,"                        \
	" x.created_ms, x.sent_ms, x.finished_ms, x.round, o.n_attempts, x.event_type, e.side"     \
	" FROM dispatch x JOIN change c ON c.id = x.change_id"                                     \
	" LEFT JOIN experiment e ON e.run_change_id = c.id"                                        \
	" LEFT JOIN outbox o ON o.key = 'dispatch:' || x.id"
#define NEWEST_FIRST  " ORDER BY x.created_ms DESC, x.id, x.accelerator LIMIT "
#define HEADS_OF_PULL "SELECT change_id FROM pull_head WHERE repository_key = ?1 AND number = ?2"
#define OF_PULL                                                                                    \
	" WHERE x.change_id IN (" HEADS_OF_PULL                                                    \
	" UNION SELECT run_change_id FROM experiment WHERE change_id IN (" HEADS_OF_PULL "))"

static struct rows *select_rows(struct db *d, const struct list_dispatches *l, int limit)
{
	struct repository_key key = repository_key(l->repository ? l->repository : "");

	if (l->number && l->accelerator)
		return db_rows(d, COLUMNS OF_PULL " AND x.accelerator = ?3" NEWEST_FIRST "?4",
		    V_TEXT(key.text), V_INT(l->number), V_TEXT(l->accelerator), V_INT(limit));
	if (l->number)
		return db_rows(d, COLUMNS OF_PULL NEWEST_FIRST "?3", V_TEXT(key.text),
		    V_INT(l->number), V_INT(limit));
	if (l->accelerator)
		return db_rows(d, COLUMNS " WHERE x.accelerator = ?1" NEWEST_FIRST "?2",
		    V_TEXT(l->accelerator), V_INT(limit));
	return db_rows(d, COLUMNS NEWEST_FIRST "?1", V_INT(limit));
}

static int dispatches_run(struct store_query *q, struct db *d)
{
	struct list_dispatches *l = CONTAINER_OF(q, struct list_dispatches, q);
	int limit = l->limit > 0 && l->limit < DISPATCHES_MAX ? l->limit : DISPATCHES_MAX;
	struct rows *r = select_rows(d, l, limit);

	l->list = xcalloc((size_t)limit, sizeof(*l->list));
	while (rows_next(r))
		l->list[l->n++] = (struct dispatch_row){
		    .id = rows_dup(r, 0),
		    .accelerator = rows_dup(r, 1),
		    .runner = rows_dup(r, 2),
		    .kind = rows_dup(r, 3),
		    .target = rows_dup(r, 4),
		    .state = rows_dup(r, 5),
		    .head_sha = rows_dup(r, 6),
		    .held_reason = rows_dup(r, 7),
		    .last_error = rows_dup(r, 8),
		    .number = rows_int(r, 9),
		    .created_ms = rows_int(r, 10),
		    .sent_ms = rows_int(r, 11),
		    .finished_ms = rows_int(r, 12),
		    .round = (int)rows_int(r, 13),
		    .n_attempts = (int)rows_int(r, 14),
		    .event = rows_dup(r, 15),
		    .side = rows_dup(r, 16),
		};
	if (db_status(d))
		list_dispatches_release(l);
	return 0;
}

int store_list_dispatches(struct store *s, struct list_dispatches *q)
{
	q->list = NULL;
	q->n = 0;
	q->q.run = dispatches_run;
	return store_query(s, &q->q);
}

void list_dispatches_release(struct list_dispatches *q)
{
	for (size_t i = 0; i < q->n; i++) {
		struct dispatch_row *x = &q->list[i];

		free(x->id);
		free(x->accelerator);
		free(x->runner);
		free(x->kind);
		free(x->target);
		free(x->state);
		free(x->head_sha);
		free(x->held_reason);
		free(x->event);
		free(x->side);
		free(x->last_error);
	}
	FREE_AND_NULL(q->list);
	q->n = 0;
}

/* ---- for the reconciler ---- */

#define PULL_COLUMNS                                                                               \
	"SELECT p.number, c.head_sha, p.state, p.updated_ms FROM pull p"                           \
	" JOIN change c ON c.id = p.change_id WHERE p.repository_key = ?1"

static int pulls_run(struct store_query *q, struct db *d)
{
	struct list_pulls *l = CONTAINER_OF(q, struct list_pulls, q);
	struct repository_key key = repository_key(l->repository);
	struct rows *r;

	if (l->only_open)
		r = db_rows(d, PULL_COLUMNS " AND p.state = 'open' ORDER BY p.number LIMIT ?2",
		    V_TEXT(key.text), V_INT(PULLS_MAX));
	else
		r = db_rows(d, PULL_COLUMNS " ORDER BY p.number LIMIT ?2", V_TEXT(key.text),
		    V_INT(PULLS_MAX));
	while (rows_next(r)) {
		if ((l->n & (l->n - 1)) == 0)
			l->list = xrealloc(l->list, (l->n ? 2 * l->n : 1) * sizeof(*l->list));
		l->list[l->n++] = (struct known_pull){
		    .number = rows_int(r, 0),
		    .head_sha = rows_dup(r, 1),
		    .is_open = strcmp(rows_text(r, 2), "open") == 0,
		    .updated_ms = rows_int(r, 3),
		};
	}
	if (db_status(d))
		list_pulls_release(l);
	return 0;
}

int store_list_pulls(struct store *s, struct list_pulls *q)
{
	q->list = NULL;
	q->n = 0;
	q->q.run = pulls_run;
	return store_query(s, &q->q);
}

void list_pulls_release(struct list_pulls *q)
{
	for (size_t i = 0; i < q->n; i++)
		free(q->list[i].head_sha);
	FREE_AND_NULL(q->list);
	q->n = 0;
}

static int has_push_run(struct store_query *q, struct db *d)
{
	struct has_push *h = CONTAINER_OF(q, struct has_push, q);

	h->is_known = db_has(d,
	    "SELECT 1 FROM change WHERE repository_key = ?1 AND head_sha = ?2 AND kind = 'push'",
	    V_TEXT(repository_key(h->repository).text), V_TEXT(h->head_sha));
	return 0;
}

int store_has_push(struct store *s, struct has_push *q)
{
	q->is_known = false;
	q->q.run = has_push_run;
	return store_query(s, &q->q);
}
