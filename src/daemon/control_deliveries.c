/* outpostctl deliveries and replay. */
#include "base/alloc.h"
#include "base/str.h"
#include "daemon/control_internal.h"

static json_t *delivery_json(const struct delivery *d)
{
	json_t *v = json_object();

	json_set_str(v, "guid", d->guid);
	json_set_time(v, "received", d->received_ms);
	json_set_str(v, "event", d->event);
	json_set_str(v, "action", d->action);
	json_set_str(v, "repository", d->repository);
	json_set_str(v, "state", d->state);
	json_set_int(v, "bytes", d->body_bytes);
	json_set_str(v, "error", d->error);
	return v;
}

static void deliveries_read(struct store_query *s)
{
	struct control_request *q = CONTAINER_OF(s, struct control_request, deliveries.q);
	json_t *list = json_array();

	for (size_t i = 0; i < q->deliveries.n; i++)
		json_array_append_new(list, delivery_json(&q->deliveries.list[i]));
	if (s->err)
		control_respond_error(q->request, s->err, s->why.text);
	else
		control_respond(q->request, 200, json_pack("{s:O}", "deliveries", list));
	json_decref(list);
	list_deliveries_release(&q->deliveries);
	control_end(q);
}

void control_on_deliveries(struct http_request *r, void *owner)
{
	struct control *c = owner;
	struct control_request *q = control_begin(r, c);
	char failed[4] = "";
	int rc;

	q->deliveries.only_failed =
	    http_query_get(r, "failed", failed, sizeof(failed)) && str_eq(failed, "1");
	q->deliveries.limit = control_limit(r);
	q->deliveries.q.done = deliveries_read;
	rc = store_list_deliveries(c->daemon->store, &q->deliveries);
	if (rc) {
		control_respond_error(r, rc, NULL);
		control_end(q);
	}
}

static void replayed(struct store_op *op)
{
	struct control_request *q = CONTAINER_OF(op, struct control_request, replay.op);

	if (op->err == ERR_NOT_FOUND)
		control_respond_error(q->request, op->err, "no delivery with that GUID");
	else if (op->err)
		control_respond_error(q->request, op->err, op->why.text);
	else
		control_respond(q->request, 200, json_pack("{s:s}", "replayed", q->text));
	if (!op->err)
		log_event(LOG_INFO, "replay", LOG_S("delivery", q->text));
	control_end(q);
}

void control_on_replay(struct http_request *r, void *owner)
{
	struct control *c = owner;
	struct control_request *q = control_begin(r, c);
	int rc;

	q->text = xstrdup(http_segment(r, 0));
	q->replay.guid = q->text;
	q->replay.op.done = replayed;
	rc = store_replay_delivery(c->daemon->store, &q->replay);
	if (rc) {
		control_respond_error(r, rc, NULL);
		control_end(q);
	}
}
