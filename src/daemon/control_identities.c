/* outpostctl identities: which repository is behind each name. */
#include "daemon/control_identities.h"

#include "base/alloc.h"
#include "base/log.h"

struct identity_request {
	struct http_request *request;
	struct daemon *daemon;
	char *repository;
	struct list_identities list;
	struct forget_identity forget;
};

static struct identity_request *begin(struct http_request *r, struct control *c)
{
	struct identity_request *i = xcalloc(1, sizeof(*i));

	i->request = r;
	i->daemon = c->daemon;
	return i;
}

static void end(struct identity_request *i)
{
	list_identities_release(&i->list);
	free(i->repository);
	free(i);
}

static void fail(struct identity_request *i, int err, const char *text)
{
	control_respond_error(i->request, err, text);
	end(i);
}

/* ---- list ---- */

static void set_id(json_t *v, const char *key, int64_t id)
{
	json_object_set_new(v, key, id ? json_integer(id) : json_null());
}

static json_t *refused_json(const struct identity_row *row)
{
	json_t *v = json_object();

	set_id(v, "repository_id", row->refused.repository_id);
	set_id(v, "repository_owner_id", row->refused.owner_id);
	json_set_time(v, "at", row->refused_ms);
	return v;
}

json_t *identities_json(const struct list_identities *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n; i++) {
		const struct identity_row *row = &l->list[i];
		json_t *v = json_object();

		json_set_str(v, "repository", row->repository);
		set_id(v, "repository_id", row->recorded.repository_id);
		set_id(v, "repository_owner_id", row->recorded.owner_id);
		json_set_time(v, "recorded_at", row->recorded_ms);
		json_set_str(v, "issuer", row->issuer);
		json_object_set_new(
		    v, "refused", row->refused_ms ? refused_json(row) : json_null());
		json_array_append_new(list, v);
	}
	return list;
}

static void on_listed(struct store_query *q)
{
	struct identity_request *i = CONTAINER_OF(q, struct identity_request, list.q);
	json_t *v;

	if (q->err) {
		fail(i, q->err, q->why.text);
		return;
	}
	v = json_object();
	json_object_set_new(v, "identities", identities_json(&i->list));
	control_respond(i->request, 200, v);
	end(i);
}

void control_on_identities(struct http_request *r, void *owner)
{
	struct identity_request *i = begin(r, owner);
	int err;

	i->list.q.done = on_listed;
	err = store_list_identities(i->daemon->store, &i->list);
	if (err)
		fail(i, err, NULL);
}

/* ---- forget ---- */

static void on_forgotten(struct store_op *op)
{
	struct identity_request *i = CONTAINER_OF(op, struct identity_request, forget.op);
	json_t *v;

	if (op->err) {
		fail(i, op->err,
		    op->err == ERR_NOT_FOUND ? "no ids of such a repository are on record"
					     : op->why.text);
		return;
	}
	log_event(LOG_INFO, "identity_forgotten", LOG_S("repository", i->repository));
	v = json_object();
	json_set_str(v, "repository", i->repository);
	control_respond(i->request, 200, v);
	end(i);
}

void control_on_identity_forget(struct http_request *r, void *owner)
{
	struct identity_request *i = begin(r, owner);
	json_t *asked = NULL;
	size_t n;
	const char *body = http_body(r, &n);
	int err = json_parse(body, n, &asked, NULL);

	if (!err)
		i->repository = xstrdup_or_null(json_get_str(asked, "repository"));
	json_decref(asked);
	if (!i->repository) {
		fail(i, ERR_INVALID, "repository is missing");
		return;
	}
	i->forget = (struct forget_identity){.op.done = on_forgotten, .repository = i->repository};
	err = store_forget_identity(i->daemon->store, &i->forget);
	if (err)
		fail(i, err, NULL);
}
