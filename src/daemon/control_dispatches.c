/* outpostctl dispatches. */
#include "base/alloc.h"
#include "base/str.h"
#include "daemon/control_internal.h"

static json_t *dispatch_json(const struct dispatch_row *d)
{
	json_t *v = json_object();

	json_set_str(v, "id", d->id);
	json_set_str(v, "event", d->event);
	json_set_str(v, "side", d->side);
	json_set_int(v, "pr", d->number);
	json_set_str(v, "head_sha", d->head_sha);
	json_set_str(v, "accelerator", d->accelerator);
	json_set_str(v, "runner", d->runner);
	json_set_str(v, "kind", d->kind);
	json_set_str(v, "target", d->target);
	json_set_str(v, "state", d->state);
	json_set_int(v, "round", d->round);
	json_set_int(v, "attempts", d->n_attempts);
	json_set_time(v, "created", d->created_ms);
	json_set_time(v, "sent", d->sent_ms);
	json_set_time(v, "finished", d->finished_ms);
	json_set_str(v, "reason", d->held_reason ? d->held_reason : d->last_error);
	return v;
}

static void dispatches_read(struct store_query *s)
{
	struct control_request *q = CONTAINER_OF(s, struct control_request, dispatches.q);
	json_t *list = json_array();

	for (size_t i = 0; i < q->dispatches.n; i++)
		json_array_append_new(list, dispatch_json(&q->dispatches.list[i]));
	if (s->err)
		control_respond_error(q->request, s->err, s->why.text);
	else
		control_respond(q->request, 200, json_pack("{s:O}", "dispatches", list));
	json_decref(list);
	list_dispatches_release(&q->dispatches);
	control_end(q);
}

void control_on_dispatches(struct http_request *r, void *owner)
{
	struct control *c = owner;
	struct control_request *q;
	char text[32] = "";
	int64_t number = 0;
	int rc;

	if (http_query_get(r, "pr", text, sizeof(text)) &&
	    (parse_int64(text, &number) || number < 1)) {
		control_respond_error(r, ERR_INVALID, "pr must be a number");
		return;
	}
	q = control_begin(r, c);
	q->text = xstrdup(c->daemon->config->upstream_repository);
	q->dispatches.repository = q->text;
	q->dispatches.number = number;
	q->dispatches.limit = control_limit(r);
	q->dispatches.q.done = dispatches_read;
	rc = store_list_dispatches(c->daemon->store, &q->dispatches);
	if (rc) {
		control_respond_error(r, rc, NULL);
		control_end(q);
	}
}
