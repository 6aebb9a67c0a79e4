#include "dispatch/attempt.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/str.h"
#include "store/deliveries.h"

enum {
	KEPT_MAX = 8,
	KEPT_BODY_MAX_BYTES = 256 * 1024, /* larger ones go when the last user is done */
};

struct payload {
	struct payload *next;
	struct payloads *owner;
	char *guid, *event_type, *sent_action;
	int n_users;
	bool is_loading;
	struct client_payload *content;
	size_t body_bytes;
	struct payload_want *waiting;
	struct get_delivery get;
};

static void free_payload(struct payload *p)
{
	client_payload_free(p->content);
	free(p->guid);
	free(p->event_type);
	free(p->sent_action);
	free(p);
}

void payloads_release(struct payloads *ps)
{
	struct payload *p;

	while ((p = ps->first) != NULL) {
		assert(!p->is_loading && p->n_users == 0);
		ps->first = p->next;
		free_payload(p);
	}
}

/* Frees each payload without users, except the few recent and small ones. */
static void trim_payloads(struct payloads *ps)
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

static void use_payload(struct payload *p, struct payload_want *w)
{
	p->n_users++;
	w->payload = p;
	w->content = p->content;
	w->body_bytes = p->body_bytes;
}

static void on_body_got(struct store_query *q)
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

	/* Count each user before the first callback runs, so that no release frees it early. */
	for (struct payload_want *w = waiting; w; w = w->next) {
		w->err = err;
		w->why = why;
		if (!err)
			use_payload(p, w);
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
	trim_payloads(ps);
}

bool payloads_get(struct payloads *ps, struct payload_want *w)
{
	struct payload **link = &ps->first, *p;
	int rc;

	while ((p = *link) != NULL &&
	       (!str_eq(p->guid, w->guid) || !str_eq(p->event_type, w->event_type) ||
		   !str_eq(p->sent_action, w->sent_action)))
		link = &p->next;
	w->err = 0;
	w->why = (struct error){0};
	w->payload = NULL;
	if (p) {
		*link = p->next;
	} else {
		p = xcalloc(1, sizeof(*p));
		p->owner = ps;
		p->guid = xstrdup(w->guid);
		p->event_type = xstrdup(w->event_type);
		p->sent_action = xstrdup(w->sent_action);
		p->get = (struct get_delivery){.q.done = on_body_got, .guid = p->guid};
		rc = store_get_delivery(ps->store, &p->get);
		if (rc) {
			w->err = error_set(&w->why, rc, "%s", err_text(rc));
			free_payload(p);
			return true;
		}
		p->is_loading = true;
	}
	p->next = ps->first;
	ps->first = p;
	if (!p->is_loading) {
		use_payload(p, w);
		return true;
	}
	w->next = p->waiting;
	p->waiting = w;
	return false;
}

void payload_release(struct payload *p)
{
	assert(p->n_users > 0);
	p->n_users--;
	trim_payloads(p->owner);
}
