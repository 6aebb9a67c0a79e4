/* The socket, its routes, and what all answers have in common; the answers are in
 * control_*.c, one file a noun. */
#include "daemon/control.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "daemon/control_identities.h"
#include "daemon/control_internal.h"
#include "daemon/control_known.h"
#include "daemon/control_tokens.h"

enum { LIST_DEFAULT = 50, LIST_MAX = 1000, BODY_MAX_BYTES = 16384, CLOSE_GRACE_MS = 3000 };

/* ---- what answers share ---- */

struct control_request *control_begin(struct http_request *r, struct control *c)
{
	struct control_request *q = xcalloc(1, sizeof(*q));

	q->request = r;
	q->daemon = c->daemon;
	return q;
}

void control_end(struct control_request *q)
{
	free(q->text);
	free(q);
}

void control_respond(struct http_request *r, int status, json_t *v)
{
	char *text = json_text(v);

	http_respond(r, status, "application/json", NULL, text, strlen(text));
	free(text);
	json_decref(v);
}

void control_respond_error(struct http_request *r, int err, const char *text)
{
	int status = err == ERR_NOT_FOUND ? 404 : err == ERR_INVALID ? 400 : 409;

	if (err == ERR_BUSY || err == ERR_CLOSING)
		status = 503;
	http_respond_json1(r, status, "error", text && *text ? text : err_text(err));
}

int control_limit(const struct http_request *r)
{
	char text[16];
	int64_t n;

	if (!http_query_get(r, "limit", text, sizeof(text)) || parse_int64(text, &n) || n < 1)
		return LIST_DEFAULT;
	return n > LIST_MAX ? LIST_MAX : (int)n;
}

char *control_unknown_accelerator(const struct config *c, const char *name)
{
	const char **names = xcalloc(c->n_accelerators + 1, sizeof(*names)), *near;
	char *text;

	for (size_t i = 0; i < c->n_accelerators; i++)
		names[i] = c->accelerators[i].name;
	near = str_nearest(name, names);
	text = xasprintf("no accelerator is called %s%s%s%s", name, near ? "; did you mean " : "",
	    near ? near : "", near ? "?" : "");
	free(names);
	return text;
}

/* ---- the socket ---- */

static void add_routes(struct control *c)
{
	const struct http_route routes[] = {
	    {.method = "GET", .pattern = "/control/status", .on_request = control_on_status},
	    {.method = "GET",
		.pattern = "/control/deliveries",
		.on_request = control_on_deliveries},
	    {.method = "POST",
		.pattern = "/control/deliveries/{guid}/replay",
		.on_request = control_on_replay},
	    {.method = "GET",
		.pattern = "/control/dispatches",
		.on_request = control_on_dispatches},
	    {.method = "POST", .pattern = "/control/retest", .on_request = control_on_retest},
	    {.method = "GET",
		.pattern = "/control/comments/{pr}",
		.on_request = control_on_preview},
	    {.method = "POST", .pattern = "/control/backup", .on_request = control_on_backup},
	    {.method = "GET",
		.pattern = "/control/identities",
		.on_request = control_on_identities},
	    {.method = "POST",
		.pattern = "/control/identities/forget",
		.on_request = control_on_identity_forget},
	    {.method = "GET", .pattern = "/control/known", .on_request = control_on_known},
	    {.method = "POST", .pattern = "/control/known", .on_request = control_on_known_add},
	    {.method = "POST",
		.pattern = "/control/known/remove",
		.on_request = control_on_known_remove},
	    {.method = "GET", .pattern = "/control/nightly", .on_request = control_on_nightly},
	    {.method = "POST",
		.pattern = "/control/nightly/run",
		.on_request = control_on_nightly_run},
	    {.method = "POST",
		.pattern = "/control/nightly/skip",
		.on_request = control_on_nightly_skip},
	    {.method = "GET", .pattern = "/control/tokens", .on_request = control_on_tokens},
	    {.method = "POST", .pattern = "/control/tokens", .on_request = control_on_token_add},
	    {.method = "POST",
		.pattern = "/control/tokens/revoke",
		.on_request = control_on_token_revoke},
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
