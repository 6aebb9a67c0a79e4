/* The agent's leases: it asks the server for work, and keeps the lease of the job that it got.
 *
 * The claim's id is written to disk before the request is sent and stays there until the answer is on disk
 * too. So if the answer is lost, the next claim has the same id and gets the work that was granted.
 *
 * While the server does not answer a heartbeat, the steps go on: the server may be down for a short time, and
 * when it comes back it gives every lease its full time again. Only an answer of the server stops them. */
#include "agent/agent.h"

enum {
	AT_MOST_EVERY_MS = 1000,
	ANSWER_WITHIN_MS = 15 * 1000,
	LAST_ANSWER_WITHIN_MS = 5 * 1000,
	LONGEST_WAIT_MS = 60 * 1000,
	REFUSED_WAIT_MS = 60 * 1000,
	TOKEN_WAIT_MS = 5 * 60 * 1000,
	NO_ROOM_WAIT_MS = 30 * 1000,
	RETRY_MS = 3 * 1000,
	RETRY_DOUBTFUL_MS = 15 * 1000,
	RETRY_UNKNOWN_MS = 60 * 1000,
};
/* for the report, the journal and a little work */
#define ROOM_BEYOND_LOG_BYTES (INT64_C(96) << 20)

static void send_claim(struct agent *a, int wait_s, int64_t answer_within_ms)
{
	struct claim *c = &a->claim;
	const struct claim_request request = {
	    .name = a->c->name,
	    .claim_id = c->id,
	    .accelerator = a->c->accelerator,
	    .labels = a->c->labels,
	    .wait_s = wait_s,
	    .version = (char *)(uintptr_t)OUTPOST_VERSION,
	};
	char *body = claim_request_text(&request);

	c->sent_mono_ms = clock_mono_ms();
	server_call_start(&a->server, &c->call, "POST", "application/json", xstrdup("/api/v1/runner/claim"), body,
	    strlen(body), wait_s * INT64_C(1000) + answer_within_ms);
}

void claim_send(struct agent *a)
{
	struct claim *c = &a->claim;
	int64_t needed = a->c->log_max_bytes + ROOM_BEYOND_LOG_BYTES;
	struct error e = {0};

	if (c->is_over || c->call.is_active || timer_is_running(c->timer))
		return;
	/* A job that fills the disk fails half way and makes others fail. Logs each change once. */
	int64_t room = journal_room_bytes(&a->journal);
	bool has_room = room < 0 || room >= needed;
	if (has_room && c->is_full_logged)
		log_event(LOG_INFO, "room_again", LOG_I("bytes", room));
	if (!has_room && !c->is_full_logged) {
		log_event(LOG_ERROR, "no_room", LOG_S("why", "too little disk space to take work"),
		    LOG_S("work_dir", a->c->work_dir), LOG_I("bytes", room), LOG_I("needed", needed));
		a->is_room_needed = true;
		agent_prune(a);
	}
	c->is_full_logged = !has_room;
	if (!has_room) {
		timer_start(c->timer, NO_ROOM_WAIT_MS);
		return;
	}
	if (!c->id && journal_claim_id(&a->journal, &c->id, &e)) {
		log_event(LOG_ERROR, "journal_not_written", LOG_S("why", e.text));
		timer_start(c->timer, NO_ROOM_WAIT_MS);
		return;
	}
	send_claim(a, CLAIM_WAIT_MAX_S, ANSWER_WITHIN_MS);
}

static void forget_claim_id(struct agent *a)
{
	journal_claim_over(&a->journal);
	FREE_AND_NULL(a->claim.id);
}

/* Hands work back that cannot be done here, so that another machine gets it at once. */
static void return_lease(struct agent *a, const struct lease_offer *o, const char *why)
{
	json_t *v = json_object();

	log_event(LOG_WARN, "claim_handed_back", LOG_S("dispatch", o->dispatch_id), LOG_S("why", why));
	forget_claim_id(a);
	json_set_str(v, "reason", why);
	char *body = json_text(v);
	json_decref(v);
	a->claim.is_returning = true;
	server_call_start(&a->server, &a->claim.call, "POST", "application/json",
	    xasprintf("/api/v1/runner/leases/%s/return", o->lease_id), body, strlen(body), ANSWER_WITHIN_MS);
}

static void start_lease(struct agent *a, struct lease_offer *o)
{
	struct error e = {0};
	char *folder;

	if (a->claim.is_over) {
		return_lease(a, o, "drained");
		return;
	}
	if (!str_eq(o->accelerator, a->c->accelerator)) {
		struct buf why = BUF_INIT(1024);

		buf_appendf(&why, "the token is for accelerator %s, but %s says %s", o->accelerator, a->c->path,
		    a->c->accelerator);
		timer_start(a->claim.timer, REFUSED_WAIT_MS);
		return_lease(a, o, buf_str(&why));
		buf_release(&why);
		return;
	}
	int rc = journal_add(&a->journal, o, &folder, &e);
	if (rc == ERR_EXISTS) {
		/* The job is in the journal and the server has not heard of its end yet. */
		forget_claim_id(a);
		timer_start(a->claim.timer, AT_MOST_EVERY_MS);
	} else if (rc) {
		timer_start(a->claim.timer, NO_ROOM_WAIT_MS);
		return_lease(a, o, e.text);
	} else {
		forget_claim_id(a);
		a->n_taken++;
		job_start(job_new(a, folder, o));
	}
}

static void retry_claim(struct agent *a, int64_t longest_ms)
{
	struct claim *c = &a->claim;

	c->n_failures++;
	timer_start(c->timer, server_delay_ms(&c->call, c->n_failures, longest_ms));
}

static void on_claim_answered(struct agent *a)
{
	struct claim *c = &a->claim;
	int64_t elapsed = clock_mono_ms() - c->sent_mono_ms;
	struct lease_offer offer;
	struct error e = {0};

	if (c->call.status == 204) {
		c->n_failures = 0;
		/* Once, so that an operator sees why the machine is idle. */
		if (!c->is_waiting_logged) {
			struct buf labels = BUF_INIT(8192);

			for (char **label = a->c->labels; *label; label++)
				buf_appendf(&labels, "%s%s", labels.len ? "," : "", *label);
			log_event(LOG_INFO, "waiting", LOG_S("why", "no queued work matches these labels"),
			    LOG_S("labels", buf_str(&labels)), LOG_S("accelerator", a->c->accelerator));
			buf_release(&labels);
			c->is_waiting_logged = true;
		}
		/* Do not flood a server that answers at once instead of holding the claim. */
		if (elapsed < AT_MOST_EVERY_MS)
			timer_start(c->timer, AT_MOST_EVERY_MS - elapsed);
		return;
	}
	if (lease_offer_parse(buf_str(&c->call.http.answer), c->call.http.answer.len, &offer, &e)) {
		log_event(LOG_ERROR, "claim_unreadable", LOG_S("why", e.text));
		retry_claim(a, LONGEST_WAIT_MS);
		return;
	}
	c->n_failures = 0;
	start_lease(a, &offer);
	lease_offer_release(&offer);
}

static void on_claim_done(struct server_call *call)
{
	struct agent *a = call->owner;
	struct claim *c = &a->claim;
	bool was_returning = c->is_returning;
	bool is_refused = call->word == SERVER_REFUSED || (call->word == SERVER_TOKEN && !a->server.has_other_token);

	c->is_returning = false;
	if (a->stopping == ENDING || was_returning) {
		/* If handing back failed, the lease runs out by itself. */
	} else if (call->word == SERVER_OK) {
		on_claim_answered(a);
	} else if (c->is_over) {
		if (!c->is_checking_last && c->id) {
			c->is_checking_last = true;
			send_claim(a, 0, LAST_ANSWER_WITHIN_MS);
		}
	} else if (a->end == AGENT_ONCE && is_refused) {
		/* With --once the program ends when the server refuses its token or its request: trying again
		 * later is only of use to a program that keeps running while an operator corrects the file. If
		 * the token file holds another token than the refused one, that token is tried first. */
		log_event(LOG_ERROR, "claim_refused", LOG_S("why", call->detail),
		    LOG_S("hint", hint_text(call->status, call->detail)), LOG_S("token_file", a->c->token_file));
		a->exit_code = 1;
		a->stopping = DRAINING;
		claim_stop(a);
	} else if (call->word == SERVER_REFUSED) {
		log_event(LOG_ERROR, "claim_refused", LOG_S("why", call->detail));
		c->n_failures = 0;
		timer_start(c->timer, REFUSED_WAIT_MS);
	} else {
		retry_claim(a, call->word == SERVER_TOKEN ? TOKEN_WAIT_MS : LONGEST_WAIT_MS);
	}
	agent_next(a);
}

void claim_open(struct agent *a)
{
	struct claim *c = &a->claim;

	c->timer = timer_new(a->loop, agent_on_timer, a);
	c->call.done = on_claim_done;
	c->call.owner = a;
}

void claim_stop(struct agent *a)
{
	a->claim.is_over = true;
	timer_stop(a->claim.timer);
	if (!a->claim.is_returning)
		server_call_cancel(&a->claim.call);
}

void claim_stop_waiting(struct agent *a)
{
	a->claim.n_failures = 0;
	timer_stop(a->claim.timer);
	agent_next(a);
}

void claim_close(struct agent *a)
{
	timer_close(a->claim.timer);
	a->claim.timer = NULL;
}

static int64_t min_ms(int64_t a, int64_t b) { return a < b ? a : b; }

/* How long the server may hold the answer: a third of the lease's time, so that two heartbeats may be
 * lost. 0 while the job waits for the answer to start. */
static int renew_wait_s(const struct job *j)
{
	if (j->stage == JOB_WAITING)
		return 0;
	return (int)min_ms(RENEW_WAIT_MAX_S, j->offer.lease_ms / 3000);
}

static void send_heartbeat(struct timer *t)
{
	struct job *j = timer_owner(t);
	struct heartbeat *h = &j->heartbeat;
	char *body = xasprintf("{\"wait\":%d}", renew_wait_s(j));

	h->sent_mono_ms = clock_mono_ms();
	server_call_start(&j->agent->server, &h->call, "POST", "application/json",
	    xasprintf("/api/v1/runner/leases/%s/renew", j->offer.lease_id), body, strlen(body),
	    renew_wait_s(j) * INT64_C(1000) + ANSWER_WITHIN_MS);
}

/* Tries again later; logs once if the lease may have run out meanwhile. longest_ms 0: a short wait while the lease is
 * still good. */
static void retry_heartbeat(struct job *j, int64_t longest_ms)
{
	struct heartbeat *h = &j->heartbeat;

	if (!longest_ms)
		longest_ms = h->is_doubtful ? RETRY_DOUBTFUL_MS : min_ms(RETRY_MS, j->offer.lease_ms / 4);

	h->n_failures++;
	if (!h->is_doubtful && clock_mono_ms() >= h->good_until_mono_ms) {
		h->is_doubtful = true;
		job_log(j, LOG_WARN, "lease_doubtful", "why", h->call.detail);
	}
	timer_start(h->timer, server_delay_ms(&h->call, h->n_failures, longest_ms));
}

static void on_heartbeat_done(struct server_call *c)
{
	struct job *j = c->owner;
	struct heartbeat *h = &j->heartbeat;
	int64_t elapsed = clock_mono_ms() - h->sent_mono_ms;
	struct lease_answer answer;
	struct error e = {0};

	if (j->stage == JOB_OVER || !h->is_on) {
		job_release_if_over(j);
		return;
	}
	if (c->word == SERVER_REFUSED && j->stage != JOB_RUNNING) {
		h->is_on = false;
		if (j->stage == JOB_WAITING) /* steps that wait must not start */
			job_on_lease(j, LEASE_LOST, c->detail);
		return;
	}
	if (c->word != SERVER_OK) {
		/* A refusal: the server answers, but does not know the lease: no reason to stop running steps. */
		retry_heartbeat(j, c->word == SERVER_REFUSED ? RETRY_UNKNOWN_MS : 0);
		return;
	}
	if (lease_answer_parse(buf_str(&c->http.answer), c->http.answer.len, &answer, &e)) {
		snprintf(c->detail, sizeof(c->detail), "not an answer to a heartbeat: %.200s", e.text);
		retry_heartbeat(j, 0);
		return;
	}
	if (answer.word == LEASE_ACTIVE) {
		int64_t every = renew_wait_s(j) ? AT_MOST_EVERY_MS : answer.lease_ms / 3;

		if (h->is_doubtful)
			job_log(j, LOG_INFO, "lease_sure_again", NULL, NULL);
		h->is_doubtful = false;
		h->n_failures = 0;
		j->offer.lease_ms = answer.lease_ms;
		h->good_until_mono_ms = h->sent_mono_ms + answer.lease_ms;
		timer_start(h->timer, elapsed < every ? every - elapsed : 0);
	} else {
		h->is_on = false;
	}
	job_on_lease(j, answer.word, answer.word == LEASE_ACTIVE ? NULL : answer.reason);
	lease_answer_release(&answer);
}

void heartbeat_start(struct job *j)
{
	struct heartbeat *h = &j->heartbeat;

	if (h->is_on || h->call.is_active)
		return;
	h->is_on = true;
	h->call.done = on_heartbeat_done;
	h->call.owner = j;
	if (!h->timer)
		h->timer = timer_new(j->agent->loop, send_heartbeat, j);
	h->good_until_mono_ms = clock_mono_ms() + j->offer.lease_ms;
	timer_start(h->timer, 0);
}

void heartbeat_stop(struct job *j)
{
	j->heartbeat.is_on = false;
	if (j->heartbeat.timer)
		timer_stop(j->heartbeat.timer);
	server_call_cancel(&j->heartbeat.call);
}
