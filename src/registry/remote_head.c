#include "registry/remote_head.h"

#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "registry/fetch.h"
#include "registry/list_heads.h"

enum { AT_ONCE = 2, ASK_MAX_MS = 30 * 1000, ASK_MAX_BYTES = 16 << 20 };

struct question {
	struct question *next;
	struct remote_heads *heads;
	struct head_request *request;
	struct config *config;
	bool is_at_work; /* the pool has it; else it waits */
	int cancel_fd;
	/* the pool's from submit to after; its texts are copies */
	struct pool_work work;
	char *url, *branch;
	char sha[41];
	int err;
	struct error why;
};

struct remote_heads {
	struct loop *loop;
	struct config *config;
	struct question *questions; /* in their order */
	int n_at_work;
	bool is_closing;
	void (*on_closed)(void *owner);
	void *owner;
};

struct remote_heads *remote_heads_new(struct loop *l, struct config *c)
{
	struct remote_heads *h = xcalloc(1, sizeof(*h));

	h->loop = l;
	h->config = config_ref(c);
	return h;
}

void remote_heads_configure(struct remote_heads *h, struct config *c)
{
	struct config *old = h->config;

	h->config = config_ref(c);
	config_unref(old);
}

static void tell_closed(void *p)
{
	struct remote_heads *h = p;

	h->on_closed(h->owner);
	config_unref(h->config);
	free(h);
}

static void settle(struct remote_heads *h)
{
	if (h->is_closing && !h->questions)
		loop_reap(h->loop, tell_closed, h);
}

/* Takes the question away and tells whoever asked. */
static void answer(struct question *q)
{
	struct question **link = &q->heads->questions;
	struct head_request *r = q->request;

	while (*link != q)
		link = &(*link)->next;
	*link = q->next;
	r->work = NULL;
	r->err = q->err;
	r->why = q->why;
	memcpy(r->sha, q->sha, sizeof(r->sha));
	config_unref(q->config);
	close(q->cancel_fd);
	free(q->url);
	free(q->branch);
	free(q);
	r->done(r);
}

/* ---- the pool's side ---- */

/* Of the snapshot nothing changes while the question holds it. */
static bool allow_address(const uint8_t address[16], void *owner)
{
	const struct question *q = owner;
	bool is_plain = strncasecmp(q->url, "https:", 6) != 0;

	return network_contains(q->config->allow_networks, q->config->n_allow_networks, address) ||
	       (!is_plain && !network_is_private(address));
}

static void work(struct pool_work *w)
{
	struct question *q = CONTAINER_OF(w, struct question, work);
	struct bounds b = {
	    .deadline_mono_ms = clock_mono_ms() + ASK_MAX_MS,
	    .n_bytes_left = ASK_MAX_BYTES,
	    .cancel_fd = q->cancel_fd,
	    .allow_address = allow_address,
	    .allow_owner = q,
	};

	q->err = fetch_setup(&q->why);
	if (!q->err)
		q->err = list_heads_find(q->url, q->branch, &b, q->sha, &q->why);
}

/* ---- one after the other ---- */

static void start_some(struct remote_heads *h);

static void after(struct pool_work *w)
{
	struct question *q = CONTAINER_OF(w, struct question, work);
	struct remote_heads *h = q->heads;

	h->n_at_work--;
	answer(q);
	start_some(h);
	settle(h);
}

static void start_some(struct remote_heads *h)
{
	for (struct question *q = h->questions; q && h->n_at_work < AT_ONCE; q = q->next) {
		if (q->is_at_work || h->is_closing)
			continue;
		q->is_at_work = true;
		h->n_at_work++;
		pool_submit(h->loop, &q->work);
	}
}

/* One that waited is answered at the end of the turn, never inside cancel. */
static void answer_waiting(void *p)
{
	struct question *q = p;
	struct remote_heads *h = q->heads;

	answer(q);
	settle(h);
}

void remote_head_ask(void *owner, struct head_request *r)
{
	struct remote_heads *h = owner;
	struct question *q = xcalloc(1, sizeof(*q)), **last = &h->questions;

	q->heads = h;
	q->request = r;
	q->config = config_ref(h->config);
	q->work = (struct pool_work){.work = work, .after = after};
	q->url = xstrdup(r->git_url);
	q->branch = xstrdup_or_null(r->branch);
	q->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	while (*last)
		last = &(*last)->next;
	*last = q;
	r->work = q;
	if (q->cancel_fd < 0) {
		q->err = error_set(&q->why, ERR_BUSY, "no file descriptor is free");
		q->is_at_work = true;
		loop_reap(h->loop, answer_waiting, q);
		return;
	}
	start_some(h);
}

void remote_head_cancel(void *owner, struct head_request *r)
{
	struct remote_heads *h = owner;
	struct question *q = r->work;
	const uint64_t one = 1;

	if (!q)
		return;
	if (q->cancel_fd >= 0)
		(void)!write(q->cancel_fd, &one, sizeof(one));
	if (q->is_at_work)
		return;
	q->is_at_work = true;
	q->err = error_set(&q->why, ERR_CANCELLED, "broken off: shutting down");
	loop_reap(h->loop, answer_waiting, q);
}

void remote_heads_close(struct remote_heads *h, void (*on_closed)(void *owner), void *owner)
{
	h->is_closing = true;
	h->on_closed = on_closed;
	h->owner = owner;
	for (struct question *q = h->questions; q; q = q->next)
		remote_head_cancel(h, q->request);
	settle(h);
}
