/* Deliveries as the planner, outpostctl and the reconciler read them. */
#include "base/alloc.h"
#include "store/db.h"
#include "store/deliveries.h"
#include "store/key.h"

enum {
	LIST_MAX = 1000,
	BODIES_BYTES = 4 << 20,   /* about so much body at a time */
	BODY_MAX_BYTES = 64 << 20 /* more than any that was let in */
};

void delivery_release(struct delivery *d)
{
	free(d->guid);
	free(d->event);
	free(d->action);
	free(d->repository);
	free(d->state);
	free(d->error);
	free(d->body);
	*d = (struct delivery){0};
}

static void release_list(struct delivery **list, size_t *n)
{
	for (size_t i = 0; i < *n; i++)
		delivery_release(&(*list)[i]);
	FREE_AND_NULL(*list);
	*n = 0;
}

static int bounded(int limit)
{
	return limit > 0 && limit < LIST_MAX ? limit : LIST_MAX;
}

#define COLUMNS                                                                                    \
	"id, guid, event, action, repository, state, error, received_ms, body_bytes, n_attempts"
enum { BODY_COLUMN = 10 };

static struct delivery read_row(const struct rows *r)
{
	return (struct delivery){
	    .id = rows_int(r, 0),
	    .guid = guid_dup(r, 1),
	    .event = rows_dup(r, 2),
	    .action = rows_dup(r, 3),
	    .repository = rows_dup(r, 4),
	    .state = rows_dup(r, 5),
	    .error = rows_dup(r, 6),
	    .received_ms = rows_int(r, 7),
	    .body_bytes = rows_int(r, 8),
	    .n_attempts = (int)rows_int(r, 9),
	};
}

/* A body that cannot be unpacked is left out: one damaged row must not stop planning. */
static void read_body(const struct rows *r, struct delivery *d)
{
	struct buf body = BUF_INIT(BODY_MAX_BYTES);
	size_t n;
	const void *p = rows_blob(r, BODY_COLUMN, &n);

	if (rows_is_null(r, BODY_COLUMN) || decompress(p, n, &body)) {
		buf_release(&body);
		return;
	}
	d->body_len = body.len;
	d->body = buf_take(&body);
}

static int next_run(struct store_query *q, struct db *d)
{
	struct next_deliveries *n = CONTAINER_OF(q, struct next_deliveries, q);
	int limit = bounded(n->limit);
	struct rows *r = db_rows(d,
	    "SELECT " COLUMNS ", body FROM delivery WHERE state = 'accepted' AND id > ?1"
	    " ORDER BY id LIMIT ?2",
	    V_INT(n->after_id), V_INT(limit));
	size_t bytes = 0;

	n->list = xcalloc((size_t)limit, sizeof(*n->list));
	while (bytes < BODIES_BYTES && rows_next(r)) {
		n->list[n->n] = read_row(r);
		read_body(r, &n->list[n->n]);
		bytes += n->list[n->n].body_len;
		n->n++;
	}
	rows_end(r);
	if (db_status(d))
		next_deliveries_release(n);
	return 0;
}

int store_next_deliveries(struct store *s, struct next_deliveries *q)
{
	q->list = NULL;
	q->n = 0;
	q->q.run = next_run;
	return store_query(s, &q->q);
}

void next_deliveries_release(struct next_deliveries *q)
{
	release_list(&q->list, &q->n);
}

static int get_run(struct store_query *q, struct db *d)
{
	struct get_delivery *g = CONTAINER_OF(q, struct get_delivery, q);
	struct guid_key guid = guid_key(g->guid);
	struct rows *r =
	    db_rows(d, "SELECT " COLUMNS ", body FROM delivery WHERE guid = ?1", guid_value(&guid));

	if (!rows_next(r))
		return ERR_NOT_FOUND;
	g->delivery = read_row(r);
	read_body(r, &g->delivery);
	rows_end(r);
	if (!g->delivery.body)
		delivery_release(&g->delivery);
	return g->delivery.body ? 0 : ERR_NOT_FOUND;
}

int store_get_delivery(struct store *s, struct get_delivery *q)
{
	q->delivery = (struct delivery){0};
	q->q.run = get_run;
	return store_query(s, &q->q);
}

static int list_run(struct store_query *q, struct db *d)
{
	struct list_deliveries *l = CONTAINER_OF(q, struct list_deliveries, q);
	int limit = bounded(l->limit);
	struct rows *r;

	if (l->only_failed)
		r = db_rows(d,
		    "SELECT " COLUMNS " FROM delivery WHERE state = 'failed'"
		    " ORDER BY id DESC LIMIT ?1",
		    V_INT(limit));
	else
		r = db_rows(
		    d, "SELECT " COLUMNS " FROM delivery ORDER BY id DESC LIMIT ?1", V_INT(limit));
	l->list = xcalloc((size_t)limit, sizeof(*l->list));
	while (rows_next(r))
		l->list[l->n++] = read_row(r);
	if (db_status(d))
		list_deliveries_release(l);
	return 0;
}

int store_list_deliveries(struct store *s, struct list_deliveries *q)
{
	q->list = NULL;
	q->n = 0;
	q->q.run = list_run;
	return store_query(s, &q->q);
}

void list_deliveries_release(struct list_deliveries *q)
{
	release_list(&q->list, &q->n);
}

static int known_run(struct store_query *q, struct db *d)
{
	struct known_guids *k = CONTAINER_OF(q, struct known_guids, q);

	for (size_t i = 0; i < k->n; i++) {
		struct guid_key guid = guid_key(k->guids[i]);

		k->known[i] =
		    db_has(d, "SELECT 1 FROM delivery WHERE guid = ?1", guid_value(&guid));
	}
	return 0;
}

int store_known_guids(struct store *s, struct known_guids *q)
{
	q->q.run = known_run;
	return store_query(s, &q->q);
}
