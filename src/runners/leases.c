#include "runners/leases.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "runners/admission.h"
#include "runners/answer.h"
#include "runners/lease_expiry.h"
#include "runners/lease_request.h"
#include "runners/lease_return.h"
#include "store/leases.h"

enum {
	RENEW_BODY_MAX_BYTES = 4096,
	LOOK_AGAIN_MS =
	    250, /* after the store could not: a cancel reaches the machine within 5 s */
};

/* One heartbeat: first in the store's hands, then, while the lease is active, waiting. */
struct heartbeat {
	struct renew_lease op;
	struct leases *leases;
	struct http_request *request; /* NULL: the client left */
	char *lease_id, *accelerator, *machine;
	int64_t token_id;
	int64_t until_ms; /* mono */
	bool is_waiting;  /* linked; else in the store's hands */
	struct heartbeat *prev, *next;
};

struct leases {
	struct runners *runners;
	struct heartbeat *waiting;
	int n_waiting;
	struct timer *expiry, *again;
	int64_t due_ms; /* of expiry; 0: it does not run */
	struct list_leases list;
	bool is_reading, is_outdated;
};

/* ---- those who wait ---- */

static void arm(struct leases *l, int64_t due_ms)
{
	if (l->due_ms && l->due_ms <= due_ms)
		return;
	l->due_ms = due_ms;
	timer_start(l->expiry, due_ms - loop_now_ms(l->runners->loop));
}

static void enlist(struct heartbeat *hb)
{
	struct leases *l = hb->leases;

	hb->is_waiting = true;
	hb->prev = NULL;
	hb->next = l->waiting;
	if (hb->next)
		hb->next->prev = hb;
	l->waiting = hb;
	l->n_waiting++;
	arm(l, hb->until_ms);
}

static void unlist(struct heartbeat *hb)
{
	struct leases *l = hb->leases;

	*(hb->prev ? &hb->prev->next : &l->waiting) = hb->next;
	if (hb->next)
		hb->next->prev = hb->prev;
	hb->is_waiting = false;
	l->n_waiting--;
}

static void heartbeat_free(struct heartbeat *hb)
{
	if (hb->is_waiting)
		unlist(hb);
	free(hb->lease_id);
	free(hb->accelerator);
	free(hb->machine);
	free(hb);
}

/* With what the store said last; then it is freed. */
static void answer(struct heartbeat *hb)
{
	struct lease_answer a = {
	    .word = hb->op.word,
	    .lease_ms = hb->op.lease_ms,
	    .reason = *hb->op.reason ? hb->op.reason : NULL,
	};
	char *text = lease_answer_text(&a);

	if (a.word != LEASE_ACTIVE)
		log_event(LOG_INFO, "lease_ended", LOG_S("lease", hb->lease_id),
		    LOG_S("accelerator", hb->accelerator), LOG_S("machine", hb->machine),
		    LOG_S("how", lease_word_name(a.word)), LOG_S("why", a.reason));
	if (hb->request)
		http_respond(hb->request, 200, "application/json", NULL, text, strlen(text));
	free(text);
	heartbeat_free(hb);
}

static void on_gone(struct http_request *q)
{
	struct heartbeat *hb = http_user(q);

	hb->request = NULL;
	if (hb->is_waiting)
		heartbeat_free(hb);
}

static void on_expiry(struct timer *t)
{
	struct leases *l = timer_owner(t);
	int64_t now_ms = loop_now_ms(l->runners->loop);

	l->due_ms = 0;
	for (struct heartbeat *hb = l->waiting, *next; hb; hb = next) {
		next = hb->next;
		if (hb->until_ms <= now_ms)
			answer(hb);
		else
			arm(l, hb->until_ms);
	}
}

/* ---- a heartbeat ---- */

/* Also when it was revoked while the store had the heartbeat. */
static void refuse_revoked(struct heartbeat *hb)
{
	answer_revoked(hb->leases->runners, hb->request, hb->accelerator);
	heartbeat_free(hb);
}

static void on_renewed(struct store_op *op)
{
	struct heartbeat *hb = CONTAINER_OF(op, struct heartbeat, op.op);
	struct runners *r = hb->leases->runners;
	bool is_active = !op->err && hb->op.word == LEASE_ACTIVE;
	bool waits = is_active && hb->until_ms > loop_now_ms(r->loop) && !r->is_stopping;

	/* It may have run out and been taken up again: nobody watches for it then. */
	if (is_active)
		lease_expiry_note(r->lease_expiry, hb->op.lease_ms);
	if (!hb->request) {
		heartbeat_free(hb);
	} else if (!credentials_has(r->credentials, hb->token_id)) {
		refuse_revoked(hb);
	} else if (op->err == ERR_NOT_FOUND) {
		answer_refused(r, hb->request,
		    &(struct refusal){
			.status = 404, .detail = "no such lease", .caller = hb->accelerator});
		heartbeat_free(hb);
	} else if (op->err) {
		answer_busy(r, hb->request, hb->accelerator, op->err);
		heartbeat_free(hb);
	} else if (waits) {
		enlist(hb);
	} else {
		answer(hb);
	}
	runners_let_go(r);
}

static int renew(struct heartbeat *hb)
{
	struct runners *r = hb->leases->runners;
	int err;

	hb->op = (struct renew_lease){
	    .op.done = on_renewed,
	    .lease_id = hb->lease_id,
	    .accelerator = hb->accelerator,
	    .machine = hb->machine,
	    .lease_ms = r->config->pull_lease_ms,
	    .now_ms = clock_wall_ms(),
	};
	err = store_renew_lease(r->store, &hb->op);
	if (!err)
		runners_hold(r);
	return err;
}

/* A newer heartbeat of the same lease has what this one waits for. */
static void relieve(struct leases *l, const struct heartbeat *by)
{
	for (struct heartbeat *hb = l->waiting; hb; hb = hb->next)
		if (str_eq(hb->lease_id, by->lease_id) && str_eq(hb->machine, by->machine) &&
		    str_eq(hb->accelerator, by->accelerator)) {
			answer(hb);
			return;
		}
}

/* Answers a bad token before the body is read. */
static void on_headers(struct http_request *q, void *owner)
{
	struct leases *l = owner;
	struct credential who;

	admit_runner(l->runners, q, &who);
}

static void on_renew(struct http_request *q, void *owner)
{
	struct leases *l = owner;
	struct runners *r = l->runners;
	const char *lease_id = http_segment(q, 0);
	struct credential who;
	struct heartbeat *hb;
	struct error why = {0};
	char *body;
	size_t n;
	int err, wait_s;

	if (!admit_runner(r, q, &who))
		return;
	/* The body's block goes back before the wait. */
	body = http_take_body(q, &n);
	err = lease_wait_parse(body, n, &wait_s, &why);
	http_recycle_body(body);
	if (err || !lease_id_is_valid(lease_id)) {
		answer_refused(r, q,
		    &(struct refusal){.status = err ? 400 : 404,
			.detail = err ? why.text : "no such lease",
			.caller = who.accelerator});
		return;
	}
	hb = xcalloc(1, sizeof(*hb));
	*hb = (struct heartbeat){
	    .leases = l,
	    .request = q,
	    .lease_id = xstrdup(lease_id),
	    .accelerator = xstrdup(who.accelerator),
	    .machine = xstrdup(who.name),
	    .token_id = who.id,
	    .until_ms = loop_now_ms(r->loop) + wait_s * INT64_C(1000),
	};
	relieve(l, hb);
	err = renew(hb);
	if (err) {
		answer_busy(r, q, hb->accelerator, err);
		heartbeat_free(hb);
		return;
	}
	http_set_user(q, hb);
	http_on_gone(q, on_gone);
}

/* ---- a lease was ended ---- */

static int compare_rows(const void *a, const void *b)
{
	const struct lease_row *x = a, *y = b;

	return strcmp(x->id, y->id);
}

static bool is_listed(const struct list_leases *list, const char *id)
{
	const struct lease_row key = {.id = (char *)(uintptr_t)id};

	return list->n &&
	       bsearch(&key, list->list, list->n, sizeof(*list->list), compare_rows) != NULL;
}

static void on_listed(struct store_query *q)
{
	struct leases *l = CONTAINER_OF(q, struct leases, list.q);
	struct runners *r = l->runners;
	int err = q->err;

	l->is_reading = false;
	if (!err && l->list.n)
		qsort(l->list.list, l->list.n, sizeof(*l->list.list), compare_rows);
	for (struct heartbeat *hb = l->waiting, *next; hb && !err; hb = next) {
		next = hb->next;
		if (is_listed(&l->list, hb->lease_id))
			continue;
		/* How it ended is the store's to say. Where it cannot now, the next heartbeat
		 * learns it. */
		unlist(hb);
		if (renew(hb))
			answer(hb);
	}
	list_leases_release(&l->list);
	if (l->is_outdated && !r->is_stopping)
		leases_on_ended(l);
	else if (err && !r->is_stopping)
		timer_start(l->again, LOOK_AGAIN_MS);
	runners_let_go(r);
}

void leases_on_ended(struct leases *l)
{
	l->is_outdated = l->is_reading;
	if (l->is_reading || !l->waiting)
		return;
	l->list = (struct list_leases){.q.done = on_listed, .only_active = true};
	if (store_list_leases(l->runners->store, &l->list)) {
		timer_start(l->again, LOOK_AGAIN_MS);
		return;
	}
	timer_stop(l->again);
	l->is_reading = true;
	runners_hold(l->runners);
}

static void on_again(struct timer *t)
{
	leases_on_ended(timer_owner(t));
}

void leases_on_tokens(struct leases *l)
{
	struct runners *r = l->runners;

	for (struct heartbeat *hb = l->waiting, *next; hb; hb = next) {
		next = hb->next;
		if (credentials_has(r->credentials, hb->token_id))
			continue;
		refuse_revoked(hb);
	}
}

/* ---- life ---- */

struct leases *leases_new(struct runners *r, struct http_server *h)
{
	struct leases *l = xcalloc(1, sizeof(*l));

	l->runners = r;
	l->expiry = timer_new(r->loop, on_expiry, l);
	l->again = timer_new(r->loop, on_again, l);
	http_server_route(h, &(struct http_route){
				 .method = "POST",
				 .pattern = "/api/v1/runner/leases/{lease}/renew",
				 .max_body_bytes = RENEW_BODY_MAX_BYTES,
				 .body_mode = HTTP_BODY_WHOLE,
				 .on_headers = on_headers,
				 .on_request = on_renew,
				 .owner = l,
			     });
	lease_return_add_route(r, h);
	return l;
}

void leases_stop(struct leases *l)
{
	assert(l->runners->is_stopping);
	while (l->waiting)
		answer(l->waiting);
}

int leases_n_waiting(const struct leases *l)
{
	return l->n_waiting;
}

void leases_free(struct leases *l)
{
	if (!l)
		return;
	assert(!l->waiting);
	timer_close(l->expiry);
	timer_close(l->again);
	free(l);
}
