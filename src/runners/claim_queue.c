#include "runners/claim.h"

#include "runners/leases.h"

static struct runner_set set_of(const struct accelerator *a, char *const *labels)
{
	struct runner_set set = {0};

	for (size_t i = 0; i < a->n_runners && i < PULL_RUNNERS_MAX; i++) {
		char *const *label = a->runners[i].labels;

		if (a->runners[i].kind != RUNNER_PULL)
			continue;
		while (label && *label && strv_contains((const char *const *)labels, *label))
			label++;
		if (!label || !*label)
			set.bits[i / 64] |= UINT64_C(1) << (i % 64);
	}
	return set;
}

/* ---- the queue ---- */

struct claim_queue *claim_queue_new(struct runners *r, const char *accelerator)
{
	struct claim_queue *q = xcalloc(1, sizeof(*q));

	q->runners = r;
	q->accelerator = xstrdup(accelerator);
	TAILQ_INIT(&q->claims);
	q->round = 1;
	return q;
}

void claim_queue_add(struct claim_queue *q, struct claim *c, const struct accelerator *a)
{
	c->queue = q;
	c->set = set_of(a, c->labels);
	TAILQ_INSERT_TAIL(&q->claims, c, link);
	q->n++;
}

void claim_queue_drop(struct claim_queue *q, struct claim *c)
{
	TAILQ_REMOVE(&q->claims, c, link);
	q->n--;
	strv_free(c->labels);
	FREE_ALL(c->machine, c->claim_id, c);
}

struct claim *claim_queue_find(
    const struct claim_queue *q, const char *machine, const char *claim_id, int *ret_n_of_machine)
{
	struct claim *c, *found = NULL;

	*ret_n_of_machine = 0;
	TAILQ_FOREACH (c, &q->claims, link) {
		if (!c->request || !str_eq(c->machine, machine))
			continue;
		++*ret_n_of_machine;
		if (str_eq(c->claim_id, claim_id))
			found = c;
	}
	return found;
}

void claim_queue_match_runners(struct claim_queue *q, const struct accelerator *a)
{
	struct claim *c;

	TAILQ_FOREACH (c, &q->claims, link)
		c->set = set_of(a, c->labels);
}

/* ---- answers ---- */

void claim_answer_nothing(struct claim *c)
{
	struct http_request *request = c->request;

	c->request = NULL;
	http_respond(request, 204, NULL, NULL, NULL, 0);
}

static void answer_offer(struct claim_queue *q, struct claim *c, const struct accelerator *a)
{
	struct http_request *request = c->request;
	struct lease_offer *o = &q->op.offer;
	const char *url = q->config->public_url;

	o->visibility = a->visibility;
	o->change_url = o->number > 0 ? xasprintf("%s/pulls/%lld", url, (long long)o->number)
				      : xasprintf("%s/commits/%s%s", url, o->head_sha,
					    o->kind == CHANGE_NIGHTLY ? "?kind=nightly" : "");
	c->request = NULL;
	q->runners->counters.n_leases_granted += !q->op.was_known;
	log_event(LOG_INFO, q->op.was_known ? "lease_granted_again" : "lease_granted", LOG_S("lease", o->lease_id),
	    LOG_S("dispatch", o->dispatch_id), LOG_S("accelerator", q->accelerator), LOG_S("runner", o->runner),
	    LOG_S("machine", c->machine), LOG_I("job", o->job_id), LOG_I("attempt", o->attempt));
	answer_json_text(request, 200, lease_offer_text(o));
}

/* ---- looking ---- */

static void end_look(struct claim_queue *q)
{
	lease_offer_release(&q->op.offer);
	FREE_AND_NULL(q->choices);
	config_unref(q->config);
	q->config = NULL;
	q->looking = NULL;
}

static void on_queue_looked(struct store_op *op)
{
	struct claim_queue *q = CONTAINER_OF(op, struct claim_queue, op.op);
	struct runners *r = q->runners;
	struct claim *c = q->looking;
	int err = op->err, n_of_machine;

	if (!err && q->op.is_found) {
		/* If the client left, a claim with the same claim_id gets the lease. */
		struct claim *taker = c->request ? c : claim_queue_find(q, c->machine, c->claim_id, &n_of_machine);

		leases_note_expiry(r->leases, q->op.offer.lease_ms);
		if (taker) {
			answer_offer(q, taker, config_accelerator(q->config, q->accelerator));
		} else {
			log_event(LOG_INFO, "lease_unclaimed", LOG_S("lease", q->op.offer.lease_id),
			    LOG_S("accelerator", q->accelerator), LOG_S("machine", c->machine));
			/* Return the lease at once instead of letting it expire, unless the machine had it before. */
			if (!q->op.was_known)
				lease_hand_back(r, NULL, q->op.offer.lease_id, q->accelerator, c->machine,
				    "the machine left before it had the answer", q->op.now_ms + q->op.lease_ms);
		}
		if (taker && taker != c)
			claim_queue_drop(q, taker);
	}
	/* If there is nothing for this machine, there is nothing for machines that could take no more than it. A machine
	 * without a look is not among them, because the store may know its claim_id. */
	for (struct claim *x = TAILQ_FIRST(&q->claims); !err && !q->op.is_found && x; x = TAILQ_NEXT(x, link)) {
		bool is_within = !(x->set.bits[0] & ~c->set.bits[0]) && !(x->set.bits[1] & ~c->set.bits[1]);

		if (x == c || (x->looked && is_within))
			x->looked = q->look_round;
	}
	end_look(q);
	if (!c->request)
		claim_queue_drop(q, c);
	/* May free the queue. */
	claims_look_ended(q, err);
	runners_let_go(r);
}

void claim_queue_look(struct claim_queue *q)
{
	struct runners *r = q->runners;
	const struct accelerator *a = config_accelerator(r->config, q->accelerator);
	struct claim *c;
	size_t n = 0;

	if (q->looking || !a || r->is_stopping)
		return;
	/* Find the next machine of this round. A machine whose labels fit no runner waits too, because a reload may change
	 * the labels of runners. Skip a client that has ended its side: it is most likely gone, and its claim is dropped
	 * soon. */
	TAILQ_FOREACH (c, &q->claims, link) {
		if (!(c->set.bits[0] | c->set.bits[1]))
			c->looked = q->round;
		else if (c->looked < q->round && !http_client_has_ended(c->request))
			break;
	}
	if (!c)
		return;
	q->choices = xcalloc(a->n_runners, sizeof(*q->choices));
	for (size_t i = 0; i < a->n_runners && i < PULL_RUNNERS_MAX; i++)
		if (c->set.bits[i / 64] >> (i % 64) & 1)
			q->choices[n++] = (struct claim_choice){
			    .runner = a->runners[i].name,
			    .max_parallel = a->runners[i].max_parallel,
			};
	q->config = config_ref(r->config);
	q->look_round = q->round;
	q->looking = c;
	q->op = (struct claim_dispatch){
	    .op.done = on_queue_looked,
	    .accelerator = q->accelerator,
	    .choices = q->choices,
	    .n_choices = n,
	    .machine = c->machine,
	    .claim_id = c->claim_id,
	    .is_silent = a->level == LEVEL_1,
	    .lease_ms = r->config->pull_lease_ms,
	    .now_ms = clock_wall_ms(),
	};
	int err = store_claim_dispatch(r->store, &q->op);
	if (err) {
		end_look(q);
		claims_look_ended(q, err);
	} else {
		runners_hold(r);
	}
}
