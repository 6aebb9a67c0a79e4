#include "dispatch/payloads.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/str.h"
#include "store/deliveries.h"

enum {
	KEPT_MAX = 8,
	KEPT_BODY_MAX_BYTES = 256 * 1024, /* larger ones go when the last user is done */
};

struct payload {
	struct payload *next; /* most recently used first */
	struct payloads *owner;
	char *guid, *event_type, *sent_action;
	int n_users;
	bool is_loading;
	struct client_payload *content;
	size_t body_bytes;
	struct payload_want *waiting;
	struct get_delivery get;
};

struct payloads {
	struct store *store;
	struct payload *first;
};

struct payloads *payloads_new(struct store *s)
{
	struct payloads *ps = xcalloc(1, sizeof(*ps));

	ps->store = s;
	return ps;
}

static void free_payload(struct payload *p)
{
	client_payload_free(p->content);
	free(p->guid);
	free(p->event_type);
	free(p->sent_action);
	free(p);
}

void payloads_free(struct payloads *ps)
{
	struct payload *p;

	if (!ps)
		return;
	while ((p = ps->first) != NULL) {
		assert(!p->is_loading && p->n_users == 0);
		ps->first = p->next;
		free_payload(p);
	}
	free(ps);
}

/* Lets go of what nobody uses, beyond the few recent and small ones. */
static void trim(struct payloads *ps)
{
	int n = 0;

	for (struct payload **link = &ps->first; *link;) {
		struct payload *p = *link;
		bool is_small = p->body_bytes <= KEPT_BODY_MAX_BYTES && p->content;

		if (p->is_loading || p->n_users > 0 || (is_small && ++n <= KEPT_MAX)) {
			link = &p->next;
			continue;
		}
		*link = p->next;
		free_payload(p);
	}
}

static void on_got(struct store_query *q)
{
	struct payload *p = CONTAINER_OF(q, struct payload, get.q);
	struct payloads *ps = p->owner;
	struct payload_want *waiting = p->waiting, *next;
	struct delivery *body = &p->get.delivery;
	struct error why = {0};
	int err = q->err;

	if (err)
		error_set(&why, err, "%s", *q->why.text ? q->why.text : err_text(err));
	else if (!body->body)
		err = error_set(&why, ERR_NOT_FOUND, "the webhook's body is gone");
	else
		err = client_payload_new(p->event_type, p->guid, p->sent_action, body->body,
		    body->body_len, &p->content, &why);
	p->body_bytes = body->body_len;
	delivery_release(body);
	p->is_loading = false;
	p->waiting = NULL;

	/* Every user is counted before the first is told, so that none can let go of it. */
	for (struct payload_want *w = waiting; w; w = w->next) {
		w->err = err;
		w->why = why;
		w->payload = err ? NULL : p;
		p->n_users += !err;
	}
	if (err) {
		struct payload **link = &p->owner->first;

		while (*link != p)
			link = &(*link)->next;
		*link = p->next;
		free_payload(p);
	}
	for (struct payload_want *w = waiting; w; w = next) {
		next = w->next;
		w->done(w);
	}
	trim(ps);
}

static struct payload *find_payload(struct payloads *ps, const struct payload_want *w)
{
	for (struct payload **link = &ps->first; *link; link = &(*link)->next) {
		struct payload *p = *link;

		if (!str_eq(p->guid, w->guid) || !str_eq(p->event_type, w->event_type) ||
		    !str_eq(p->sent_action, w->sent_action))
			continue;
		*link = p->next;
		p->next = ps->first;
		ps->first = p;
		return p;
	}
	return NULL;
}

bool payloads_get(struct payloads *ps, struct payload_want *w)
{
	struct payload *p = find_payload(ps, w);
	int rc;

	w->err = 0;
	w->why = (struct error){0};
	w->payload = NULL;
	if (p && !p->is_loading) {
		p->n_users++;
		w->payload = p;
		return true;
	}
	if (!p) {
		p = xcalloc(1, sizeof(*p));
		p->owner = ps;
		p->guid = xstrdup(w->guid);
		p->event_type = xstrdup(w->event_type);
		p->sent_action = xstrdup(w->sent_action);
		p->get = (struct get_delivery){.q.done = on_got, .guid = p->guid};
		rc = store_get_delivery(ps->store, &p->get);
		if (rc) {
			w->err = error_set(&w->why, rc, "%s", err_text(rc));
			free_payload(p);
			return true;
		}
		p->is_loading = true;
		p->next = ps->first;
		ps->first = p;
	}
	w->next = p->waiting;
	p->waiting = w;
	return false;
}

struct client_payload *payload_content(struct payload *p)
{
	return p->content;
}

size_t payload_body_bytes(const struct payload *p)
{
	return p->body_bytes;
}

void payload_release(struct payload *p)
{
	assert(p->n_users > 0);
	p->n_users--;
	trim(p->owner);
}
