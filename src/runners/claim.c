#include "runners/claim.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "runners/admission.h"
#include "runners/answer.h"
#include "runners/claim_queue.h"

enum {
	CLAIM_BODY_MAX_BYTES = 16 * 1024,
	LOOK_AGAIN_MS = 250,    /* after the store could not */
	UNSEEN_GRACE_MS = 5000, /* for the first look, past the time that was asked for */
	TOO_MANY_RETRY_S = 30,
};

struct claims {
	struct runners *runners;
	struct claim_queue *queues; /* only those that somebody waits in */
	struct timer *expiry, *again;
	int64_t due_ms;     /* of expiry; 0: it does not run */
	struct timer *turn; /* something that waits for its time may be had */
	int64_t turn_ms;    /* mono, of turn; 0: it does not run */
};

/* ---- time ---- */

static int64_t due_of(const struct claim *c)
{
	return c->until_ms + (c->looked ? 0 : UNSEEN_GRACE_MS);
}

static void arm(struct claims *cs, int64_t due_ms)
{
	int64_t now_ms = loop_now_ms(cs->runners->loop);

	if (cs->due_ms && cs->due_ms <= due_ms)
		return;
	cs->due_ms = due_ms;
	timer_start(cs->expiry, due_ms - now_ms);
}

static void drop_empty_queues(struct claims *cs)
{
	struct claim_queue **at = &cs->queues;

	while (*at) {
		struct claim_queue *q = *at;

		if (q->first || q->looking) {
			at = &q->next;
			continue;
		}
		*at = q->next;
		claim_queue_free(q);
	}
}

/* 204, or 503 for one that the store was not asked about in all this time. */
static void answer_late(struct claim_queue *q, struct claim *c)
{
	if (c->looked) {
		claim_answer_nothing(c);
	} else {
		answer_busy(q->runners, c->request, q->accelerator, ERR_BUSY);
		c->request = NULL;
	}
	claim_queue_drop(q, c);
}

static void on_expiry(struct timer *t)
{
	struct claims *cs = timer_owner(t);
	int64_t now_ms = loop_now_ms(cs->runners->loop), next_ms = INT64_MAX;

	cs->due_ms = 0;
	for (struct claim_queue *q = cs->queues; q; q = q->next)
		for (struct claim *c = q->first, *next; c; c = next) {
			next = c->next;
			if (c == q->looking)
				continue;
			if (due_of(c) <= now_ms)
				answer_late(q, c);
			else if (due_of(c) < next_ms)
				next_ms = due_of(c);
		}
	drop_empty_queues(cs);
	if (next_ms != INT64_MAX)
		arm(cs, next_ms);
}

/* Answers all of a queue but the one that is looked for, which has its answer soon. */
static void refuse_all(struct claim_queue *q, const struct refusal *x)
{
	for (struct claim *c = q->first, *next; c; c = next) {
		next = c->next;
		if (c == q->looking)
			continue;
		answer_refused(q->runners, c->request, x);
		claim_queue_drop(q, c);
	}
}

static void refuse_stopping(struct claim_queue *q)
{
	refuse_all(q, &(struct refusal){
			  .status = 503,
			  .detail = "the service stops: ask again",
			  .caller = q->accelerator,
			  .retry_after_s = 1,
		      });
}

/* A wall clock that jumps makes the store ring, and the look after that brings a new time. */
static void arm_turn(struct claims *cs, int64_t wall_ms)
{
	int64_t now_ms = loop_now_ms(cs->runners->loop), after_ms = wall_ms - clock_wall_ms();
	int64_t turn_ms = now_ms + (after_ms > 0 ? after_ms : 1);

	if (cs->turn_ms && cs->turn_ms <= turn_ms)
		return;
	cs->turn_ms = turn_ms;
	timer_start(cs->turn, turn_ms - now_ms);
}

static void on_turn(struct timer *t)
{
	struct claims *cs = timer_owner(t);

	cs->turn_ms = 0;
	claims_on_queue(cs);
}

static void on_look_ended(struct claim_queue *q, int err)
{
	struct claims *cs = q->runners->claims;

	if (!err && q->op.next_ms)
		arm_turn(cs, q->op.next_ms);
	/* Whoever was looked for now may have waited long enough. */
	for (struct claim *c = q->first; c; c = c->next)
		arm(cs, due_of(c));
	if (q->runners->is_stopping)
		refuse_stopping(q);
	else if (err)
		timer_start(cs->again, LOOK_AGAIN_MS);
	else
		claim_queue_look(q);
	if (!q->first)
		drop_empty_queues(cs);
}

static void on_again(struct timer *t)
{
	struct claims *cs = timer_owner(t);

	for (struct claim_queue *q = cs->queues, *next; q; q = next) {
		next = q->next;
		claim_queue_look(q);
	}
}

/* ---- a machine asks ---- */

static struct claim_queue *queue_of(struct claims *cs, const char *accelerator)
{
	struct claim_queue *q = cs->queues;

	while (q && !str_eq(q->accelerator, accelerator))
		q = q->next;
	if (q)
		return q;
	q = claim_queue_new(cs->runners, accelerator, on_look_ended);
	q->next = cs->queues;
	cs->queues = q;
	return q;
}

static void on_gone(struct http_request *q)
{
	struct claim *c = http_user(q);
	struct claims *cs = c->queue->runners->claims;

	c->request = NULL;
	if (c->queue->looking == c)
		return;
	claim_queue_drop(c->queue, c);
	drop_empty_queues(cs);
}

/* Takes the request's texts over. */
static void wait_for_work(struct claims *cs, struct http_request *request,
    struct claim_request *asked, const struct credential *who)
{
	const struct accelerator *a = config_accelerator(cs->runners->config, who->accelerator);
	struct claim_queue *q = queue_of(cs, who->accelerator);
	int n_of_machine;
	struct claim *same = claim_queue_find(q, asked->name, asked->claim_id, &n_of_machine);
	struct claim *c;

	if (!same && n_of_machine >= CLAIMS_PER_MACHINE_MAX) {
		answer_refused(cs->runners, request,
		    &(struct refusal){
			.status = 429,
			.detail = "16 claims of this machine wait already",
			.caller = who->accelerator,
			.retry_after_s = TOO_MANY_RETRY_S,
		    });
		return;
	}
	if (same) {
		claim_answer_nothing(same);
		if (q->looking != same)
			claim_queue_drop(q, same);
	}
	c = xcalloc(1, sizeof(*c));
	*c = (struct claim){
	    .request = request,
	    .token_id = who->id,
	    .machine = asked->name,
	    .claim_id = asked->claim_id,
	    .labels = asked->labels,
	    .until_ms = loop_now_ms(cs->runners->loop) + asked->wait_s * INT64_C(1000),
	};
	asked->name = asked->claim_id = NULL;
	asked->labels = NULL;
	http_set_user(request, c);
	http_on_gone(request, on_gone);
	claim_queue_add(q, c, a);
	claim_queue_look(q);
	arm(cs, due_of(c));
}

static bool is_its_own(struct runners *r, struct http_request *q, const struct claim_request *asked,
    const struct credential *who)
{
	struct buf why = BUF_INIT(256);

	if (!str_eq(asked->name, who->name))
		buf_append_str(&why, "name is not the machine that this token was made for");
	else if (asked->accelerator && !str_eq(asked->accelerator, who->accelerator))
		buf_appendf(&why, "the token is for accelerator %s", who->accelerator);
	else
		return true;
	answer_refused(r, q,
	    &(struct refusal){.status = 403, .detail = buf_str(&why), .caller = who->accelerator});
	buf_release(&why);
	return false;
}

/* Answers a bad token before the body is read. */
static void on_headers(struct http_request *q, void *owner)
{
	struct claims *cs = owner;
	struct credential who;

	admit_runner(cs->runners, q, &who);
}

static void on_request(struct http_request *q, void *owner)
{
	struct claims *cs = owner;
	struct claim_request asked;
	struct credential who;
	struct error why = {0};
	char *body;
	size_t n;
	int err;

	if (!admit_runner(cs->runners, q, &who))
		return;
	/* The body's block goes back before the wait: it is many times what a claim needs. */
	body = http_take_body(q, &n);
	err = claim_request_parse(body, n, &asked, &why);
	http_recycle_body(body);
	if (err) {
		answer_refused(cs->runners, q,
		    &(struct refusal){
			.status = 400, .detail = why.text, .caller = who.accelerator});
		return;
	}
	if (is_its_own(cs->runners, q, &asked, &who))
		wait_for_work(cs, q, &asked, &who);
	claim_request_release(&asked);
}

/* ---- life ---- */

struct claims *claims_new(struct runners *r, struct http_server *h)
{
	struct claims *cs = xcalloc(1, sizeof(*cs));

	cs->runners = r;
	cs->expiry = timer_new(r->loop, on_expiry, cs);
	cs->again = timer_new(r->loop, on_again, cs);
	cs->turn = timer_new(r->loop, on_turn, cs);
	http_server_route(h, &(struct http_route){
				 .method = "POST",
				 .pattern = "/api/v1/runner/claim",
				 .max_body_bytes = CLAIM_BODY_MAX_BYTES,
				 .body_mode = HTTP_BODY_WHOLE,
				 .on_headers = on_headers,
				 .on_request = on_request,
				 .owner = cs,
			     });
	return cs;
}

void claims_configure(struct claims *cs)
{
	for (struct claim_queue *q = cs->queues, *next; q; q = next) {
		const struct accelerator *a =
		    config_accelerator(cs->runners->config, q->accelerator);

		next = q->next;
		if (a) {
			claim_queue_sort_out(q, a);
			claim_queue_ring(q);
			continue;
		}
		refuse_all(q, &(struct refusal){
				  .status = 403,
				  .detail = "the accelerator has left the registry",
				  .caller = q->accelerator,
			      });
	}
	drop_empty_queues(cs);
}

void claims_on_queue(struct claims *cs)
{
	for (struct claim_queue *q = cs->queues, *next; q; q = next) {
		next = q->next;
		claim_queue_ring(q);
	}
}

void claims_on_tokens(struct claims *cs)
{
	struct runners *r = cs->runners;

	for (struct claim_queue *q = cs->queues; q; q = q->next)
		for (struct claim *c = q->first, *next; c; c = next) {
			next = c->next;
			if (!c->request || credentials_has(r->credentials, c->token_id))
				continue;
			answer_revoked(r, c->request, q->accelerator);
			c->request = NULL;
			if (c != q->looking)
				claim_queue_drop(q, c);
		}
	drop_empty_queues(cs);
}

void claims_stop(struct claims *cs)
{
	assert(cs->runners->is_stopping);
	for (struct claim_queue *q = cs->queues; q; q = q->next)
		refuse_stopping(q);
	drop_empty_queues(cs);
}

int claims_n_waiting(const struct claims *cs)
{
	size_t n = 0;

	for (const struct claim_queue *q = cs->queues; q; q = q->next)
		n += q->n;
	return (int)n;
}

void claims_free(struct claims *cs)
{
	if (!cs)
		return;
	assert(!cs->queues);
	timer_close(cs->expiry);
	timer_close(cs->again);
	timer_close(cs->turn);
	free(cs);
}
