#include "runners/leases.h"

#include "db/seats.h"
#include "loop/bell.h"
#include "store/leases.h"

enum { RENEW_BODY_MAX_BYTES = 4096, OTHERS_LEASES_MS = 5000 };

/* One heartbeat: the store renews its lease, then it waits while the lease is active. */
struct heartbeat {
	struct renew_lease op;
	struct leases *leases;
	struct http_request *request; /* NULL: the client left */
	char *lease_id, *accelerator, *machine;
	int64_t token_id;
	int64_t until_ms; /* mono */
	bool is_waiting;  /* linked; else the store has it */
	LIST_ENTRY(heartbeat) link;
};

struct leases {
	struct runners *runners;
	LIST_HEAD(, heartbeat) waiting;
	int n_waiting;
	struct alarm answer; /* a heartbeat has waited long enough */
	struct bell *bell;   /* reads which leases are still active */
	struct list_leases list;
	struct bell *over; /* ends leases whose time is over */
	struct expire_leases expire;
};

/* ---- waiting heartbeats ---- */

static void stop_waiting(struct heartbeat *hb)
{
	LIST_REMOVE(hb, link);
	hb->is_waiting = false;
	hb->leases->n_waiting--;
}

static void heartbeat_free(struct heartbeat *hb)
{
	if (hb->is_waiting)
		stop_waiting(hb);
	FREE_ALL(hb->lease_id, hb->accelerator, hb->machine, hb);
}

/* Answers with the store's last word, and frees the heartbeat. */
static void answer_heartbeat(struct heartbeat *hb)
{
	struct lease_answer a = {
	    .word = hb->op.word,
	    .lease_ms = hb->op.lease_ms,
	    .reason = *hb->op.reason ? hb->op.reason : NULL,
	};

	if (a.word != LEASE_ACTIVE)
		log_event(LOG_INFO, "lease_ended", LOG_S("lease", hb->lease_id), LOG_S("accelerator", hb->accelerator),
		    LOG_S("machine", hb->machine), LOG_S("how", lease_word_name(a.word)), LOG_S("why", a.reason));
	answer_json_text(hb->request, 200, lease_answer_text(&a));
	heartbeat_free(hb);
}

static void on_heartbeat_gone(struct http_request *q)
{
	struct heartbeat *hb = http_user(q);

	hb->request = NULL;
	if (hb->is_waiting)
		heartbeat_free(hb);
}

static void on_heartbeats_due(struct timer *t)
{
	struct leases *l = timer_owner(t);
	int64_t now_ms = loop_now_ms(l->runners->loop);

	l->answer.due_ms = 0;
	for (struct heartbeat *hb = LIST_FIRST(&l->waiting), *next; hb; hb = next) {
		next = LIST_NEXT(hb, link);
		if (hb->until_ms <= now_ms)
			answer_heartbeat(hb);
		else
			alarm_set(&l->answer, hb->until_ms);
	}
}

/* ---- a heartbeat ---- */

static void on_renewed(struct store_op *op)
{
	struct heartbeat *hb = CONTAINER_OF(op, struct heartbeat, op.op);
	struct leases *l = hb->leases;
	struct runners *r = l->runners;
	bool is_active = !op->err && hb->op.word == LEASE_ACTIVE;
	bool is_revoked = !credentials_has(r->credentials, hb->token_id); /* while the store had the heartbeat */
	bool is_unknown = op->err == ERR_NOT_FOUND;

	/* The lease may have expired and be active again now, so note its next expiry. */
	if (is_active)
		leases_note_expiry(l, hb->op.lease_ms);
	if (!hb->request || is_revoked || op->err) {
		if (is_revoked || is_unknown)
			refuse_request(r, hb->request, is_revoked ? 401 : 404, is_revoked ? TOKEN_REVOKED : NO_LEASE,
			    hb->accelerator);
		else if (op->err)
			answer_busy(r, hb->request, hb->accelerator, op->err);
		heartbeat_free(hb);
	} else if (is_active && hb->until_ms > loop_now_ms(r->loop) && !r->is_stopping) {
		hb->is_waiting = true;
		LIST_INSERT_HEAD(&l->waiting, hb, link);
		l->n_waiting++;
		alarm_set(&l->answer, hb->until_ms);
	} else {
		answer_heartbeat(hb);
	}
	runners_let_go(r);
}

static int renew(struct heartbeat *hb)
{
	struct runners *r = hb->leases->runners;

	hb->op = (struct renew_lease){
	    .op.done = on_renewed,
	    .lease_id = hb->lease_id,
	    .accelerator = hb->accelerator,
	    .machine = hb->machine,
	    .lease_ms = r->config->pull_lease_ms,
	    .now_ms = clock_wall_ms(),
	};
	int err = store_renew_lease(r->store, &hb->op);
	if (!err)
		runners_hold(r);
	return err;
}

static void on_renew(struct http_request *q, void *owner)
{
	struct runners *r = owner;
	struct leases *l = r->leases;
	const char *lease_id = http_segment(q, 0);
	struct credential who;
	struct heartbeat *hb, *older;
	struct error why = {0};
	size_t n;
	int err, wait_s;

	if (!admit_runner(r, q, &who))
		return;
	/* The body's block is given back before the wait. */
	char *body = http_detach_body(q, &n);
	err = lease_wait_parse(body, n, &wait_s, &why);
	http_recycle_body(body);
	if (err || !lease_id_is_valid(lease_id)) {
		refuse_request(r, q, err ? 400 : 404, err ? why.text : NO_LEASE, who.accelerator);
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
	/* An older heartbeat of the same lease is answered, because this one replaces it. */
	LIST_FOREACH (older, &l->waiting, link)
		if (str_eq(older->lease_id, hb->lease_id) && str_eq(older->machine, hb->machine) &&
		    str_eq(older->accelerator, hb->accelerator))
			break;
	if (older)
		answer_heartbeat(older);
	err = renew(hb);
	if (err) {
		answer_busy(r, q, hb->accelerator, err);
		heartbeat_free(hb);
		return;
	}
	http_set_user(q, hb);
	http_on_gone(q, on_heartbeat_gone);
}

/* ---- ended leases ---- */

static int compare_rows(const void *a, const void *b)
{
	const struct lease_row *x = a, *y = b;

	return strcmp(x->id, y->id);
}

static void on_leases_listed(struct store_query *q)
{
	struct leases *l = CONTAINER_OF(q, struct leases, list.q);
	struct runners *r = l->runners;
	int err = q->err;

	if (!err && l->list.n)
		qsort(l->list.list, l->list.n, sizeof(*l->list.list), compare_rows);
	for (struct heartbeat *hb = LIST_FIRST(&l->waiting), *next; hb && !err; hb = next) {
		const struct lease_row key = {.id = hb->lease_id};

		next = LIST_NEXT(hb, link);
		if (l->list.n && bsearch(&key, l->list.list, l->list.n, sizeof(*l->list.list), compare_rows))
			continue;
		/* The renewal returns how the lease ended. If the store is busy, the next heartbeat returns it. */
		stop_waiting(hb);
		if (renew(hb))
			answer_heartbeat(hb);
	}
	list_leases_release(&l->list);
	if (err)
		bell_retry(l->bell);
	else
		bell_rest(l->bell);
	runners_let_go(r);
}

static void look_for_ended_leases(void *owner)
{
	struct leases *l = owner;

	l->list = (struct list_leases){.q.done = on_leases_listed, .only_active = true};
	if (LIST_EMPTY(&l->waiting))
		bell_rest(l->bell);
	else if (store_list_leases(l->runners->store, &l->list))
		bell_retry(l->bell);
	else
		runners_hold(l->runners);
}

void leases_on_ended(struct leases *l) { bell_now(l->bell); }

void leases_on_tokens(struct leases *l)
{
	struct runners *r = l->runners;

	for (struct heartbeat *hb = LIST_FIRST(&l->waiting), *next; hb; hb = next) {
		next = LIST_NEXT(hb, link);
		if (credentials_has(r->credentials, hb->token_id))
			continue;
		refuse_request(r, hb->request, 401, TOKEN_REVOKED, hb->accelerator);
		heartbeat_free(hb);
	}
}

/* ---- leases whose time is over ---- */

static void on_leases_expired(struct store_op *op)
{
	struct leases *l = CONTAINER_OF(op, struct leases, expire.op);

	if (op->err) {
		log_event(LOG_WARN, "leases_unread", LOG_S("why", op->why.text));
		bell_retry(l->over);
	} else {
		if (l->expire.n_expired > 0)
			log_event(LOG_WARN, "leases_expired", LOG_I("n", l->expire.n_expired));
		l->runners->counters.n_leases_expired += l->expire.n_expired;
		bell_by(l->over, l->expire.next_due_ms);
		if (store_n_nodes(l->runners->store) > 1) /* they grant leases too */
			bell_by(l->over, clock_wall_ms() + OTHERS_LEASES_MS);
		bell_rest(l->over);
	}
	runners_let_go(l->runners);
}

/* A jump of the wall clock ends no lease: before_submit() in dispatch/deadlines.c moves the stored times first. */
static void look_for_expired_leases(void *owner)
{
	struct leases *l = owner;

	if (!store_has_seat(l->runners->store, SEAT_DEADLINES)) {
		bell_rest(l->over);
		return;
	}
	l->expire = (struct expire_leases){.op.done = on_leases_expired, .now_ms = clock_wall_ms()};
	if (store_expire_leases(l->runners->store, &l->expire))
		bell_retry(l->over);
	else
		runners_hold(l->runners);
}

void leases_on_seat(struct leases *l) { bell_now(l->over); }

void leases_note_expiry(struct leases *l, int64_t lease_ms) { bell_by(l->over, clock_wall_ms() + lease_ms); }

/* ---- life ---- */

struct leases *leases_new(struct runners *r, struct http_server *h)
{
	struct leases *l = xcalloc(1, sizeof(*l));

	l->runners = r;
	alarm_init(&l->answer, r->loop, on_heartbeats_due, l);
	l->bell = bell_new(r->loop, look_for_ended_leases, l);
	machine_route_add(r, h, "/api/v1/runner/leases/{lease}/renew", RENEW_BODY_MAX_BYTES, on_renew);
	machine_add_routes(r, h);
	l->over = bell_new(r->loop, look_for_expired_leases, l);
	bell_now(l->over);
	return l;
}

void leases_stop(struct leases *l)
{
	assert(l->runners->is_stopping);
	bell_stop(l->bell);
	bell_stop(l->over);
	while (!LIST_EMPTY(&l->waiting))
		answer_heartbeat(LIST_FIRST(&l->waiting));
}

int leases_n_waiting(const struct leases *l) { return l->n_waiting; }

void leases_free(struct leases *l)
{
	if (!l)
		return;
	assert(LIST_EMPTY(&l->waiting));
	timer_close(l->answer.timer);
	bell_free(l->bell);
	bell_free(l->over);
	free(l);
}
