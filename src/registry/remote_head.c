#include "registry/remote_head.h"

#include <sys/eventfd.h>

#include "registry/fetch.h"

enum { AT_ONCE = 2, ASK_MAX_MS = 30 * 1000, ASK_MAX_BYTES = 16 << 20 };

struct question {
	TAILQ_ENTRY(question) link;
	struct remote_heads *heads;
	struct head_request *request;
	struct config *config;
	bool is_begun; /* the pool has it, or its answer is queued; else it waits */
	int cancel_fd;
	/* the pool's while it works; the texts are copies */
	struct pool_work work;
	char *url, *branch;
	char sha[41];
	int err;
	struct error why;
};

struct remote_heads {
	struct loop *loop;
	struct config *config;
	TAILQ_HEAD(, question) questions; /* oldest first */
	int n_at_work;
	bool is_closing;
	void (*on_closed)(void *owner);
	void *owner;
};

struct remote_heads *remote_heads_new(struct loop *l, struct config *c)
{
	struct remote_heads *h = xcalloc(1, sizeof(*h));

	h->loop = l;
	TAILQ_INIT(&h->questions);
	h->config = config_ref(c);
	return h;
}

void remote_heads_configure(struct remote_heads *h, struct config *c)
{
	struct config *old = h->config;

	h->config = config_ref(c);
	config_unref(old);
}

static void finish_closing_heads(void *p)
{
	struct remote_heads *h = p;

	h->on_closed(h->owner);
	config_unref(h->config);
	free(h);
}

static void close_when_empty(struct remote_heads *h)
{
	if (h->is_closing && TAILQ_EMPTY(&h->questions))
		loop_reap(h->loop, finish_closing_heads, h);
}

/* Removes the question, and calls its done. */
static void answer_question(void *owner)
{
	struct question *q = owner;
	struct remote_heads *h = q->heads;
	struct head_request *r = q->request;

	TAILQ_REMOVE(&h->questions, q, link);
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
	close_when_empty(h);
}

/* ---- the pool's side ---- */

/* The snapshot that the question holds does not change. */
static bool allow_address(const uint8_t address[16], void *owner)
{
	const struct question *q = owner;
	const struct config *c = q->config;

	return network_permits(c->allow_networks, c->n_allow_networks, q->url, address);
}

static void read_head(struct pool_work *w)
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
		q->err = fetch_head(q->url, q->branch, &b, q->sha, &q->why);
}

/* ---- the loop's side ---- */

static void begin_questions(struct remote_heads *h)
{
	struct question *q;

	TAILQ_FOREACH (q, &h->questions, link) {
		if (h->n_at_work == AT_ONCE || h->is_closing)
			return;
		if (q->is_begun)
			continue;
		q->is_begun = true;
		h->n_at_work++;
		pool_submit(h->loop, &q->work);
	}
}

static void on_head_read(struct pool_work *w)
{
	struct question *q = CONTAINER_OF(w, struct question, work);
	struct remote_heads *h = q->heads;

	h->n_at_work--;
	answer_question(q);
	begin_questions(h);
}

void remote_head_ask(void *owner, struct head_request *r)
{
	struct remote_heads *h = owner;
	struct question *q = xcalloc(1, sizeof(*q));

	q->heads = h;
	q->request = r;
	q->config = config_ref(h->config);
	q->work = (struct pool_work){.work = read_head, .after = on_head_read};
	q->url = xstrdup(r->git_url);
	q->branch = xstrdup_or_null(r->branch);
	q->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	TAILQ_INSERT_TAIL(&h->questions, q, link);
	r->work = q;
	if (q->cancel_fd < 0) {
		q->err = error_set(&q->why, ERR_BUSY, "no file descriptor is free");
		q->is_begun = true;
		loop_reap(h->loop, answer_question, q);
		return;
	}
	begin_questions(h);
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
	if (q->is_begun)
		return;
	q->is_begun = true;
	q->err = error_set(&q->why, ERR_CANCELLED, "cancelled: shutting down");
	loop_reap(h->loop, answer_question, q);
}

void remote_heads_close(struct remote_heads *h, void (*on_closed)(void *owner), void *owner)
{
	struct question *q;

	h->is_closing = true;
	h->on_closed = on_closed;
	h->owner = owner;
	TAILQ_FOREACH (q, &h->questions, link)
		remote_head_cancel(h, q->request);
	close_when_empty(h);
}
