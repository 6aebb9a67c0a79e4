#include "daemon/control.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "daemon/wire.h"
#include "store/changes.h"
#include "store/deliveries.h"

enum { LIST_DEFAULT = 50, LIST_MAX = 1000, BODY_MAX_BYTES = 16384, CLOSE_GRACE_MS = 3000 };

struct control {
	struct daemon *daemon;
	struct http_server *server;
	void (*on_closed)(void *owner);
	void *closed_owner;
};

/* One request in hand: the store's or the publisher's struct, and whom to answer. */
struct control_request {
	struct http_request *request;
	struct daemon *daemon;
	union {
		struct list_deliveries deliveries;
		struct list_dispatches dispatches;
		struct replay_delivery replay;
		struct backup_store backup;
		struct preview preview;
	};
	char *text; /* what the struct above borrows */
};

static struct control_request *begin(struct http_request *r, struct control *c)
{
	struct control_request *q = xcalloc(1, sizeof(*q));

	q->request = r;
	q->daemon = c->daemon;
	return q;
}

static void end(struct control_request *q)
{
	free(q->text);
	free(q);
}

static void respond(struct http_request *r, int status, json_t *v)
{
	char *text = json_text(v);

	http_respond(r, status, "application/json", NULL, text, strlen(text));
	free(text);
	json_decref(v);
}

static void respond_error(struct http_request *r, int err, const char *text)
{
	int status = err == ERR_NOT_FOUND ? 404 : err == ERR_INVALID ? 400 : 409;

	if (err == ERR_BUSY || err == ERR_CLOSING)
		status = 503;
	http_respond_json1(r, status, "error", text && *text ? text : err_text(err));
}

static int limit_of(const struct http_request *r)
{
	char text[16];
	int64_t n;

	if (!http_query_get(r, "limit", text, sizeof(text)) || parse_int64(text, &n) || n < 1)
		return LIST_DEFAULT;
	return n > LIST_MAX ? LIST_MAX : (int)n;
}

/* ---- status ---- */

static json_t *publish_json(const struct daemon *d)
{
	struct publish_counters c;
	json_t *v = json_object();

	publish_read_counters(d->publish, &c);
	json_set_int(v, "created", c.n_created);
	json_set_int(v, "edited", c.n_edited);
	json_set_str(v, "last_error", *c.last_error ? c.last_error : NULL);
	json_set_time(v, "last_error_at", c.last_error_wall_ms);
	return v;
}

static json_t *github_json(const struct daemon *d)
{
	struct github_stats s;
	json_t *v = json_object();

	github_read_stats(d->github, &s);
	json_set_str(v, "bot", github_bot_login(d->github));
	json_set_int(v, "requests", s.n_requests);
	json_set_int(v, "rate_limited", s.n_rate_limited);
	json_set_int(v, "failures", s.n_failures);
	json_set_int(v, "in_flight", s.n_in_flight);
	json_set_int(v, "waiting", s.n_waiting);
	return v;
}

static json_t *config_json(const struct daemon *d)
{
	json_t *v = json_object();

	json_set_str(v, "file", d->config_path);
	json_set_time(v, "loaded_at", d->config_loaded_wall_ms);
	json_set_str(v, "refused", d->config_error);
	json_set_time(v, "refused_at", d->config_error ? d->config_error_wall_ms : 0);
	return v;
}

static void status_read(int err, json_t *status, void *owner)
{
	struct control_request *q = owner;
	struct daemon *d = q->daemon;
	struct dispatch_counters dispatch;

	if (err) {
		respond_error(q->request, err, NULL);
		end(q);
		return;
	}
	dispatch_read_counters(d->dispatch, &dispatch);
	json_set_str(status, "address", d->address);
	json_set_time(status, "last_reconcile", dispatch.last_reconcile_wall_ms);
	json_object_set_new(status, "comments", publish_json(d));
	json_object_set_new(status, "github", github_json(d));
	json_object_set_new(status, "config", config_json(d));
	respond(q->request, 200, status);
	end(q);
}

static void on_status(struct http_request *r, void *owner)
{
	struct control *c = owner;

	web_status(c->daemon->web, status_read, begin(r, c));
}

/* ---- deliveries ---- */

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
		respond_error(q->request, s->err, s->why.text);
	else
		respond(q->request, 200, json_pack("{s:O}", "deliveries", list));
	json_decref(list);
	list_deliveries_release(&q->deliveries);
	end(q);
}

static void on_deliveries(struct http_request *r, void *owner)
{
	struct control *c = owner;
	struct control_request *q = begin(r, c);
	char failed[4] = "";
	int rc;

	q->deliveries.only_failed = http_query_get(r, "failed", failed, sizeof(failed)) &&
	                            str_eq(failed, "1");
	q->deliveries.limit = limit_of(r);
	q->deliveries.q.done = deliveries_read;
	rc = store_list_deliveries(c->daemon->store, &q->deliveries);
	if (rc) {
		respond_error(r, rc, NULL);
		end(q);
	}
}

static void replayed(struct store_op *op)
{
	struct control_request *q = CONTAINER_OF(op, struct control_request, replay.op);

	if (op->err == ERR_NOT_FOUND)
		respond_error(q->request, op->err, "no delivery with that GUID");
	else if (op->err)
		respond_error(q->request, op->err, op->why.text);
	else
		respond(q->request, 200, json_pack("{s:s}", "replayed", q->text));
	if (!op->err)
		log_event(LOG_INFO, "replay", LOG_S("delivery", q->text));
	end(q);
}

static void on_replay(struct http_request *r, void *owner)
{
	struct control *c = owner;
	struct control_request *q = begin(r, c);
	int rc;

	q->text = xstrdup(http_segment(r, 0));
	q->replay.guid = q->text;
	q->replay.op.done = replayed;
	rc = store_replay_delivery(c->daemon->store, &q->replay);
	if (rc) {
		respond_error(r, rc, NULL);
		end(q);
	}
}

/* ---- dispatches ---- */

static json_t *dispatch_json(const struct dispatch_row *d)
{
	json_t *v = json_object();

	json_set_str(v, "id", d->id);
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
		respond_error(q->request, s->err, s->why.text);
	else
		respond(q->request, 200, json_pack("{s:O}", "dispatches", list));
	json_decref(list);
	list_dispatches_release(&q->dispatches);
	end(q);
}

static void on_dispatches(struct http_request *r, void *owner)
{
	struct control *c = owner;
	struct control_request *q;
	char text[32] = "";
	int64_t number = 0;
	int rc;

	if (http_query_get(r, "pr", text, sizeof(text)) && (parse_int64(text, &number) || number < 1)) {
		respond_error(r, ERR_INVALID, "pr must be a number");
		return;
	}
	q = begin(r, c);
	q->text = xstrdup(c->daemon->config->upstream_repository);
	q->dispatches.repository = q->text;
	q->dispatches.number = number;
	q->dispatches.limit = limit_of(r);
	q->dispatches.q.done = dispatches_read;
	rc = store_list_dispatches(c->daemon->store, &q->dispatches);
	if (rc) {
		respond_error(r, rc, NULL);
		end(q);
	}
}

/* ---- comment preview ---- */

static void previewed(struct preview *pv)
{
	struct control_request *q = CONTAINER_OF(pv, struct control_request, preview);

	if (pv->err == ERR_NOT_FOUND)
		respond_error(q->request, pv->err, "no such pull request is known");
	else if (pv->err)
		respond_error(q->request, pv->err, NULL);
	else
		respond(q->request, 200, json_pack("{s:s}", "text", pv->text));
	free(pv->text);
	end(q);
}

static enum preview_format format_of(const struct http_request *r)
{
	char text[16] = "";

	if (!http_query_get(r, "format", text, sizeof(text)))
		return PREVIEW_MARKDOWN;
	if (str_eq(text, "colour"))
		return PREVIEW_TERMINAL_COLOUR;
	return str_eq(text, "terminal") ? PREVIEW_TERMINAL : PREVIEW_MARKDOWN;
}

static void on_preview(struct http_request *r, void *owner)
{
	struct control *c = owner;
	struct control_request *q;
	char width[16] = "";
	int64_t number, columns = 0;
	int rc;

	if (parse_int64(http_segment(r, 0), &number) || number < 1) {
		respond_error(r, ERR_INVALID, "the pull request must be a number");
		return;
	}
	q = begin(r, c);
	if (http_query_get(r, "width", width, sizeof(width)) && !parse_int64(width, &columns) &&
	    columns >= 40 && columns <= 1000)
		q->preview.width = (int)columns;
	q->preview.number = number;
	q->preview.format = format_of(r);
	q->preview.done = previewed;
	rc = publish_preview(c->daemon->publish, &q->preview);
	if (rc) {
		respond_error(r, rc, NULL);
		end(q);
	}
}

/* ---- backup ---- */

static void backed_up(struct store_query *s)
{
	struct control_request *q = CONTAINER_OF(s, struct control_request, backup.q);

	if (s->err)
		respond_error(q->request, s->err, s->why.text);
	else
		respond(q->request, 200,
		    json_pack("{s:s, s:I}", "path", q->text, "bytes", (json_int_t)q->backup.n_bytes));
	log_event(s->err ? LOG_ERROR : LOG_INFO, "backup", LOG_S("path", q->text),
	    LOG_I("bytes", q->backup.n_bytes), LOG_S("result", s->err ? err_text(s->err) : "ok"));
	end(q);
}

static void on_backup(struct http_request *r, void *owner)
{
	struct control *c = owner;
	struct control_request *q;
	const char *path, *body;
	json_t *asked;
	size_t n;
	int rc;

	body = http_body(r, &n);
	if (json_parse(body, n, &asked, NULL) || !(path = json_get_str(asked, "path")) ||
	    path[0] != '/') {
		json_decref(asked);
		respond_error(r, ERR_INVALID, "path must be an absolute path");
		return;
	}
	q = begin(r, c);
	q->text = xstrdup(path);
	json_decref(asked);
	q->backup.path = q->text;
	q->backup.q.done = backed_up;
	rc = store_backup(c->daemon->store, &q->backup);
	if (rc) {
		respond_error(r, rc, NULL);
		end(q);
	}
}

/* ---- the socket ---- */

static void add_routes(struct control *c)
{
	const struct http_route routes[] = {
	    {.method = "GET", .pattern = "/control/status", .on_request = on_status},
	    {.method = "GET", .pattern = "/control/deliveries", .on_request = on_deliveries},
	    {.method = "POST", .pattern = "/control/deliveries/{guid}/replay", .on_request = on_replay},
	    {.method = "GET", .pattern = "/control/dispatches", .on_request = on_dispatches},
	    {.method = "GET", .pattern = "/control/comments/{pr}", .on_request = on_preview},
	    {.method = "POST", .pattern = "/control/backup", .on_request = on_backup},
	};

	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		struct http_route route = routes[i];

		route.owner = c;
		route.max_body_bytes = BODY_MAX_BYTES;
		http_server_route(c->server, &route);
	}
}

int control_new(struct daemon *d, struct control **ret, struct error *e)
{
	struct control *c = xcalloc(1, sizeof(*c));
	char *path = path_join(d->config->state_dir, "control.sock");
	int rc;

	c->daemon = d;
	c->server = http_server_new(d->loop, NULL);
	add_routes(c);
	rc = http_server_listen_unix(c->server, path, e);
	free(path);
	/* Also after a failure: wire_down() closes it like every other part. */
	*ret = c;
	return rc;
}

static void server_closed(void *owner)
{
	struct control *c = owner;
	void (*on_closed)(void *) = c->on_closed;
	void *closed_owner = c->closed_owner;

	free(c);
	on_closed(closed_owner);
}

void control_close(struct control *c, void (*on_closed)(void *owner), void *owner)
{
	c->on_closed = on_closed;
	c->closed_owner = owner;
	http_server_close(c->server, CLOSE_GRACE_MS, server_closed, c);
}
