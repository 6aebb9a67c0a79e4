#include "runners/claim.h"

#include "loop/bell.h"

enum {
	CLAIM_BODY_MAX_BYTES = 16 * 1024,
	UNSEEN_GRACE_MS = 5000, /* for the first look, past the time that was requested */
	TOO_MANY_RETRY_S = 30,
};

struct claims {
	struct runners *runners;
	LIST_HEAD(, claim_queue) queues; /* only those with claims */
	struct bell *bell;               /* looks at all queues, after the store was busy */
	struct alarm expiry;             /* a claim has waited long enough */
	struct alarm turn;               /* work that had to wait for a time may be claimed */
};

/* ---- time ---- */

static int64_t due_of(const struct claim *c) { return c->until_ms + (c->looked ? 0 : UNSEEN_GRACE_MS); }

static void drop_empty_queues(struct claims *cs)
{
	for (struct claim_queue *q = LIST_FIRST(&cs->queues), *next; q; q = next) {
		next = LIST_NEXT(q, link);
		if (!TAILQ_EMPTY(&q->claims) || q->looking)
			continue;
		LIST_REMOVE(q, link);
		free(q->accelerator);
		free(q);
	}
}

static void on_claims_due(struct timer *t)
{
	struct claims *cs = timer_owner(t);
	int64_t now_ms = loop_now_ms(cs->runners->loop);
	struct claim_queue *q;

	cs->expiry.due_ms = 0;
	LIST_FOREACH (q, &cs->queues, link)
		for (struct claim *c = TAILQ_FIRST(&q->claims), *next; c; c = next) {
			next = TAILQ_NEXT(c, link);
			if (c == q->looking)
				continue;
			if (due_of(c) > now_ms) {
				alarm_set(&cs->expiry, due_of(c));
				continue;
			}
			/* 204; 503 if the store never looked for work for this claim. */
			if (c->looked)
				claim_answer_nothing(c);
			else
				answer_busy(q->runners, c->request, q->accelerator, ERR_BUSY);
			claim_queue_drop(q, c);
		}
	drop_empty_queues(cs);
}

/* Answers all claims of a queue, except the one that is looked for, which gets its answer soon. */
static void refuse_all_claims(struct claim_queue *q)
{
	struct refusal x = {.status = 403, .detail = "the accelerator has left the registry", .caller = q->accelerator};

	if (q->runners->is_stopping)
		x = (struct refusal){503, "the service stops: ask again", NULL, q->accelerator, 1};
	for (struct claim *c = TAILQ_FIRST(&q->claims), *next; c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c == q->looking)
			continue;
		answer_refused(q->runners, c->request, &x);
		claim_queue_drop(q, c);
	}
}

static void on_claim_turn(struct timer *t)
{
	struct claims *cs = timer_owner(t);

	cs->turn.due_ms = 0;
	claims_on_queue(cs);
}

void claims_look_ended(struct claim_queue *q, int err)
{
	struct claims *cs = q->runners->claims;
	struct claim *c;

	/* When the wall clock jumps, the store publishes STORE_QUEUE, and the next look brings a new time. */
	if (!err && q->op.next_ms) {
		int64_t after_ms = q->op.next_ms - clock_wall_ms();

		alarm_set(&cs->turn, loop_now_ms(cs->runners->loop) + (after_ms > 0 ? after_ms : 1));
	}
	/* The claim that was looked for may have waited long enough now. */
	TAILQ_FOREACH (c, &q->claims, link)
		alarm_set(&cs->expiry, due_of(c));
	if (q->runners->is_stopping)
		refuse_all_claims(q);
	else if (err)
		bell_retry(cs->bell);
	else
		claim_queue_look(q);
	if (TAILQ_EMPTY(&q->claims))
		drop_empty_queues(cs);
}

static void look_at_all_queues(void *owner)
{
	struct claims *cs = owner;

	bell_rest(cs->bell);
	for (struct claim_queue *q = LIST_FIRST(&cs->queues), *next; q; q = next) {
		next = LIST_NEXT(q, link);
		claim_queue_look(q);
	}
}

/* ---- requests ---- */

static void on_claimant_gone(struct http_request *q)
{
	struct claim *c = http_user(q);
	struct claims *cs = c->queue->runners->claims;

	c->request = NULL;
	if (c->queue->looking == c)
		return;
	claim_queue_drop(c->queue, c);
	drop_empty_queues(cs);
}

/* Takes over the texts of `parsed`. */
static void wait_for_work(
    struct claims *cs, struct http_request *request, struct claim_request *parsed, const struct credential *who)
{
	const struct accelerator *a = config_accelerator(cs->runners->config, who->accelerator);
	struct claim_queue *q;
	struct claim *c, *same;
	int n_of_machine;

	LIST_FOREACH (q, &cs->queues, link)
		if (str_eq(q->accelerator, who->accelerator))
			break;
	if (!q) {
		q = claim_queue_new(cs->runners, who->accelerator);
		LIST_INSERT_HEAD(&cs->queues, q, link);
	}
	same = claim_queue_find(q, parsed->name, parsed->claim_id, &n_of_machine);
	if (!same && n_of_machine >= CLAIMS_PER_MACHINE_MAX) {
		refuse_over_rate(
		    cs->runners, request, "16 claims of this machine wait already", who->accelerator, TOO_MANY_RETRY_S);
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
	    .machine = parsed->name,
	    .claim_id = parsed->claim_id,
	    .labels = parsed->labels,
	    .until_ms = loop_now_ms(cs->runners->loop) + parsed->wait_s * INT64_C(1000),
	};
	parsed->name = parsed->claim_id = NULL;
	parsed->labels = NULL;
	http_set_user(request, c);
	http_on_gone(request, on_claimant_gone);
	claim_queue_add(q, c, a);
	claim_queue_look(q);
	alarm_set(&cs->expiry, due_of(c));
}

static void on_claim_request(struct http_request *q, void *owner)
{
	struct runners *r = owner;
	struct claim_request parsed;
	struct credential who;
	struct error why = {0};
	int status = 400;
	size_t n;

	if (!admit_runner(r, q, &who))
		return;
	/* The body's block is given back before the wait, because it is much larger than a claim. */
	char *body = http_detach_body(q, &n);
	int err = claim_request_parse(body, n, &parsed, &why);
	http_recycle_body(body);
	if (!err && !str_eq(parsed.name, who.name)) {
		status = 403;
		err = error_set(&why, ERR_DENIED, "name is not the machine that this token was made for");
	} else if (!err && parsed.accelerator && !str_eq(parsed.accelerator, who.accelerator)) {
		status = 403;
		err = error_set(&why, ERR_DENIED, "the token is for accelerator %s", who.accelerator);
	}
	if (err)
		refuse_request(r, q, status, why.text, who.accelerator);
	else
		wait_for_work(r->claims, q, &parsed, &who);
	claim_request_release(&parsed);
}

/* ---- life ---- */

struct claims *claims_new(struct runners *r, struct http_server *h)
{
	struct claims *cs = xcalloc(1, sizeof(*cs));

	cs->runners = r;
	alarm_init(&cs->expiry, r->loop, on_claims_due, cs);
	cs->bell = bell_new(r->loop, look_at_all_queues, cs);
	alarm_init(&cs->turn, r->loop, on_claim_turn, cs);
	machine_route_add(r, h, "/api/v1/runner/claim", CLAIM_BODY_MAX_BYTES, on_claim_request);
	return cs;
}

void claims_configure(struct claims *cs)
{
	struct claim_queue *q;

	LIST_FOREACH (q, &cs->queues, link) {
		const struct accelerator *a = config_accelerator(cs->runners->config, q->accelerator);

		if (a)
			claim_queue_match_runners(q, a);
		else
			refuse_all_claims(q);
	}
	drop_empty_queues(cs);
	claims_on_queue(cs);
}

void claims_on_queue(struct claims *cs)
{
	struct claim_queue *q;

	LIST_FOREACH (q, &cs->queues, link)
		q->round++;
	look_at_all_queues(cs);
}

void claims_on_tokens(struct claims *cs)
{
	struct runners *r = cs->runners;
	struct claim_queue *q;

	LIST_FOREACH (q, &cs->queues, link)
		for (struct claim *c = TAILQ_FIRST(&q->claims), *next; c; c = next) {
			next = TAILQ_NEXT(c, link);
			if (!c->request || credentials_has(r->credentials, c->token_id))
				continue;
			refuse_request(r, c->request, 401, TOKEN_REVOKED, q->accelerator);
			c->request = NULL;
			if (c != q->looking)
				claim_queue_drop(q, c);
		}
	drop_empty_queues(cs);
}

void claims_stop(struct claims *cs)
{
	struct claim_queue *q;

	assert(cs->runners->is_stopping);
	LIST_FOREACH (q, &cs->queues, link)
		refuse_all_claims(q);
	drop_empty_queues(cs);
}

int claims_n_waiting(const struct claims *cs)
{
	const struct claim_queue *q;
	size_t n = 0;

	LIST_FOREACH (q, &cs->queues, link)
		n += q->n;
	return (int)n;
}

void claims_free(struct claims *cs)
{
	if (!cs)
		return;
	assert(LIST_EMPTY(&cs->queues));
	timer_close(cs->expiry.timer);
	timer_close(cs->turn.timer);
	bell_free(cs->bell);
	free(cs);
}
