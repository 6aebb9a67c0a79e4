/* outpostctl backup: a copy of the database, while it is in use. */
#include "base/alloc.h"
#include "daemon/control_internal.h"

static void backed_up(struct store_query *s)
{
	struct control_request *q = CONTAINER_OF(s, struct control_request, backup.q);

	if (s->err)
		control_respond_error(q->request, s->err, s->why.text);
	else
		control_respond(q->request, 200,
		    json_pack(
			"{s:s, s:I}", "path", q->text, "bytes", (json_int_t)q->backup.n_bytes));
	log_event(s->err ? LOG_ERROR : LOG_INFO, "backup", LOG_S("path", q->text),
	    LOG_I("bytes", q->backup.n_bytes), LOG_S("result", s->err ? err_text(s->err) : "ok"));
	control_end(q);
}

void control_on_backup(struct http_request *r, void *owner)
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
		control_respond_error(r, ERR_INVALID, "path must be an absolute path");
		return;
	}
	q = control_begin(r, c);
	q->text = xstrdup(path);
	json_decref(asked);
	q->backup.path = q->text;
	q->backup.q.done = backed_up;
	rc = store_backup(c->daemon->store, &q->backup);
	if (rc) {
		control_respond_error(r, rc, NULL);
		control_end(q);
	}
}
