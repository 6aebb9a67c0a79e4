/* outpostctl nightly: when each accelerator's periodic run is due and what came of the last, one
 * put in, one left out. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/control_internal.h"
#include "store/schedules.h"

struct nightly_request {
	struct http_request *request;
	char *accelerator;
	union {
		struct list_schedules list;
		struct ask_schedule_run ask;
		struct skip_schedule skip;
	};
};

static struct nightly_request *begin(struct http_request *r)
{
	struct nightly_request *q = xcalloc(1, sizeof(*q));

	q->request = r;
	return q;
}

static void end(struct nightly_request *q)
{
	free(q->accelerator);
	free(q);
}

static void set_time(json_t *o, const char *key, int64_t wall_ms)
{
	char text[RFC3339_BYTES];

	json_set_str(o, key, wall_ms ? rfc3339_format(wall_ms, text) : NULL);
}

/* ---- the list ---- */

static json_t *run_json(const struct schedule_row *r)
{
	json_t *o;

	if (!r->due_ms)
		return json_null();
	o = json_object();
	set_time(o, "due_at", r->due_ms);
	set_time(o, "started_at", r->started_ms);
	set_time(o, "ended_at", r->ended_ms);
	json_set_str(o, "cause", r->cause);
	json_set_str(o, "state", r->state);
	json_set_str(o, "outcome", r->outcome);
	json_set_str(o, "reason", r->reason);
	json_set_str(o, "upstream_sha", r->upstream_sha);
	json_set_str(o, "source_sha", r->source_sha);
	return o;
}

static json_t *schedule_json(const struct schedule_row *r)
{
	json_t *o = json_object(), *crons = NULL;

	if (!r->crons || json_parse(r->crons, strlen(r->crons), &crons, NULL))
		crons = json_array();
	json_set_str(o, "accelerator", r->accelerator);
	json_object_set_new(o, "cron", crons);
	set_time(o, "next", r->next_ms);
	json_object_set_new(o, "skip_next", json_boolean(r->is_next_skipped));
	json_object_set_new(o, "last", run_json(r));
	return o;
}

static void on_listed(struct store_query *s)
{
	struct nightly_request *q = CONTAINER_OF(s, struct nightly_request, list.q);
	json_t *v, *all;

	if (s->err) {
		control_respond_error(q->request, s->err, s->why.text);
		end(q);
		return;
	}
	v = json_object();
	all = json_array();
	for (size_t i = 0; i < q->list.n; i++)
		json_array_append_new(all, schedule_json(&q->list.list[i]));
	json_object_set_new(v, "schedules", all);
	list_schedules_release(&q->list);
	control_respond(q->request, 200, v);
	end(q);
}

void control_on_nightly(struct http_request *r, void *owner)
{
	struct control *c = owner;
	struct nightly_request *q = begin(r);
	int rc;

	q->list = (struct list_schedules){.q.done = on_listed};
	rc = store_list_schedules(c->daemon->store, &q->list);
	if (rc) {
		control_respond_error(r, rc, NULL);
		end(q);
	}
}

/* ---- run and skip ---- */

/* NULL: it has been answered. */
static struct nightly_request *read_accelerator(struct http_request *r, const struct config *c)
{
	struct nightly_request *q = begin(r);
	json_t *asked = NULL;
	const char *name = NULL, *body;
	char *why;
	size_t n;

	body = http_body(r, &n);
	if (json_parse(body, n, &asked, NULL) == 0)
		name = json_get_str(asked, "accelerator");
	if (name && config_accelerator(c, name)) {
		q->accelerator = xstrdup(name);
		json_decref(asked);
		return q;
	}
	why = name ? control_unknown_accelerator(c, name) : xstrdup("accelerator is missing");
	control_respond_error(r, name ? ERR_NOT_FOUND : ERR_INVALID, why);
	free(why);
	json_decref(asked);
	end(q);
	return NULL;
}

static void on_asked(struct store_op *op)
{
	struct nightly_request *q = CONTAINER_OF(op, struct nightly_request, ask.op);
	json_t *v;

	if (op->err) {
		control_respond_error(q->request, op->err, op->why.text);
	} else {
		log_event(LOG_INFO, "periodic_run_asked", LOG_S("accelerator", q->accelerator));
		v = json_object();
		json_set_str(v, "accelerator", q->accelerator);
		json_set_int(v, "run", q->ask.run_id);
		control_respond(q->request, 200, v);
	}
	end(q);
}

void control_on_nightly_run(struct http_request *r, void *owner)
{
	struct control *c = owner;
	struct nightly_request *q = read_accelerator(r, c->daemon->config);
	int rc;

	if (!q)
		return;
	q->ask = (struct ask_schedule_run){
	    .op.done = on_asked,
	    .accelerator = q->accelerator,
	    .now_ms = clock_wall_ms(),
	};
	rc = store_ask_schedule_run(c->daemon->store, &q->ask);
	if (rc) {
		control_respond_error(r, rc, NULL);
		end(q);
	}
}

static void on_skipped(struct store_op *op)
{
	struct nightly_request *q = CONTAINER_OF(op, struct nightly_request, skip.op);
	json_t *v;

	if (op->err) {
		control_respond_error(q->request, op->err, op->why.text);
	} else {
		log_event(LOG_INFO, "periodic_run_left_out", LOG_S("accelerator", q->accelerator));
		v = json_object();
		json_set_str(v, "accelerator", q->accelerator);
		set_time(v, "next", q->skip.next_ms);
		json_object_set_new(v, "was_skipped", json_boolean(q->skip.was_skipped));
		control_respond(q->request, 200, v);
	}
	end(q);
}

void control_on_nightly_skip(struct http_request *r, void *owner)
{
	struct control *c = owner;
	struct nightly_request *q = read_accelerator(r, c->daemon->config);
	int rc;

	if (!q)
		return;
	q->skip = (struct skip_schedule){.op.done = on_skipped, .accelerator = q->accelerator};
	rc = store_skip_schedule(c->daemon->store, &q->skip);
	if (rc) {
		control_respond_error(r, rc, NULL);
		end(q);
	}
}
