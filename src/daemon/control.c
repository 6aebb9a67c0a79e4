/* The control socket: its routes, and reading and answering requests. */
#include "daemon/control.h"

#include "daemon/wire.h"

enum { LIST_DEFAULT = 50, LIST_MAX = 1000, BODY_MAX_BYTES = 16384, CLOSE_GRACE_MS = 3000 };

struct bound_route {
	const struct control_route *route;
	struct daemon *daemon;
};

struct control {
	struct http_server *server;
	struct bound_route routes[32];
	size_t n_routes;
	void (*on_closed)(void *owner);
	void *closed_owner;
};

/* ---- requests ---- */

static void free_request(struct control_request *q)
{
	if (q->release)
		q->release(q);
	json_decref(q->body);
	free(q);
}

void control_answer(struct control_request *q, json_t *v)
{
	char *text = json_text(v);

	http_respond(q->http, 200, "application/json", NULL, text, strlen(text));
	free(text);
	json_decref(v);
	free_request(q);
}

bool control_goes_on(struct control_request *q, int err, const char *text)
{
	int status = err == ERR_NOT_FOUND ? 404 : err == ERR_INVALID ? 400 : 409;
	struct error why = {0};

	if (!err)
		return true;
	if (store_is_passing(err) || err == ERR_CLOSING)
		status = 503;
	if (!text || !*text) /* the queue is full because the database is away */
		text = err == ERR_BUSY && store_check_writable(q->daemon->store, &why) ? why.text : err_text(err);
	http_respond_json1(q->http, status, "error", text);
	free_request(q);
	return false;
}

void control_answer_list(struct control_request *q, const struct store_query *s, const char *key, json_t *list)
{
	if (control_goes_on(q, s->err, s->why.text))
		control_answer(q, json_pack("{s:O}", key, list));
	json_decref(list);
}

static void on_control_request(struct http_request *r, void *owner)
{
	const struct bound_route *b = owner;
	struct control_request *q = xcalloc(1, b->route->bytes);
	size_t n;
	int rc = 0;

	q->http = r;
	q->daemon = b->daemon;
	const char *body = http_body(r, &n);
	if (n > 0 && json_parse(body, n, &q->body, NULL))
		rc = error_set(&q->why, ERR_INVALID, "the body is not JSON");
	/* While the database is away a command that writes would wait for it. A backup fails there, too: PostgreSQL has its own. */
	if (!rc && str_eq(b->route->method, "POST"))
		rc = store_check_writable(q->daemon->store, &q->why);
	if (!rc)
		rc = b->route->begin(q);
	(void)control_goes_on(q, rc, q->why.text);
}

int control_limit(const struct control_request *q)
{
	char text[16];
	int64_t n;

	if (!http_query_get(q->http, "limit", text, sizeof(text)) || parse_int64(text, &n) || n < 1)
		return LIST_DEFAULT;
	return n > LIST_MAX ? LIST_MAX : (int)n;
}

int control_unknown_accelerator(struct control_request *q, const char *name)
{
	const struct config *c = q->daemon->config;
	const char **names = xcalloc(c->n_accelerators + 1, sizeof(*names)), *near;

	for (size_t i = 0; i < c->n_accelerators; i++)
		names[i] = c->accelerators[i].name;
	near = str_nearest(name, names);
	error_set(&q->why, ERR_NOT_FOUND, "no accelerator is called %s%s%s%s", name, near ? "; did you mean " : "",
	    near ? near : "", near ? "?" : "");
	free(names);
	return ERR_NOT_FOUND;
}

/* ---- the socket ---- */

int control_new(struct daemon *d, struct control **ret, struct error *e)
{
	static const struct control_route *const all[] = {
	    CONTROL_CHANGES, CONTROL_CREDENTIALS, CONTROL_KNOWN, CONTROL_STATUS};
	struct control *c = xcalloc(1, sizeof(*c));
	char *path = path_join(d->config->state_dir, "control.sock");

	c->server = http_server_new(d->loop, NULL);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		for (const struct control_route *route = all[i]; route->method; route++) {
			struct bound_route *bound = &c->routes[c->n_routes++];

			assert(c->n_routes <= ARRAY_LEN(c->routes));
			*bound = (struct bound_route){.route = route, .daemon = d};
			http_server_route(c->server, &(struct http_route){.method = route->method,
							 .pattern = route->pattern,
							 .max_body_bytes = BODY_MAX_BYTES,
							 .on_request = on_control_request,
							 .owner = bound});
		}
	}
	int rc = http_server_listen_unix(c->server, path, e);
	free(path);
	*ret = c;
	return rc;
}

static void on_server_closed(void *owner)
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
	http_server_close(c->server, CLOSE_GRACE_MS, on_server_closed, c);
}
