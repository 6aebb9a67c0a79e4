/* Asks for work. The claim's id is on disk until its answer is, so that work that was granted to
 * an answer that got lost is asked for again under the same id. */
#include "agent/agent_internal.h"
#include "agent/hint.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/version.h"

enum {
	AT_MOST_EVERY_MS = 1000,
	ANSWER_WITHIN_MS = 15 * 1000,
	LAST_ANSWER_WITHIN_MS = 5 * 1000,
	LONGEST_WAIT_MS = 60 * 1000,
	REFUSED_WAIT_MS = 60 * 1000,
	TOKEN_WAIT_MS = 5 * 60 * 1000,
	NO_ROOM_WAIT_MS = 30 * 1000,
};
#define ROOM_BEYOND_LOG_BYTES (INT64_C(96) << 20) /* report, journal, a little work */

static void on_done(struct server_call *c);

static void on_timer(struct timer *t)
{
	agent_next(timer_owner(t));
}

void claim_open(struct agent *a)
{
	struct claim *c = &a->claim;

	c->timer = timer_new(a->loop, on_timer, a);
	c->call.done = on_done;
	c->call.owner = a;
}

/* A job that fills the disk fails half way and takes others with it. */
static bool has_room(struct agent *a)
{
	int64_t room = journal_room_bytes(&a->journal);
	int64_t wanted = a->c->log_max_bytes + ROOM_BEYOND_LOG_BYTES;

	if (room < 0 || room >= wanted) {
		if (a->claim.is_room_told)
			log_event(LOG_INFO, "room_again", LOG_I("bytes", room));
		a->claim.is_room_told = false;
		return true;
	}
	if (!a->claim.is_room_told)
		log_event(LOG_ERROR, "no_room", LOG_S("why", "too little disk space to take work"),
		    LOG_S("work_dir", a->c->work_dir), LOG_I("bytes", room),
		    LOG_I("wanted", wanted));
	if (!a->claim.is_room_told)
		agent_make_room(a);
	a->claim.is_room_told = true;
	return false;
}

static void ask(struct agent *a, int wait_s, int64_t answer_within_ms)
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
	server_call_start(&a->server, &c->call, "POST", "application/json",
	    xstrdup("/api/v1/runner/claim"), body, strlen(body),
	    wait_s * INT64_C(1000) + answer_within_ms);
}

void claim_go(struct agent *a)
{
	struct claim *c = &a->claim;
	struct error e = {0};

	if (c->is_over || c->call.is_active || timer_is_running(c->timer))
		return;
	if (!has_room(a)) {
		timer_start(c->timer, NO_ROOM_WAIT_MS);
		return;
	}
	if (!c->id && journal_claim_id(&a->journal, &c->id, &e)) {
		log_event(LOG_ERROR, "journal_not_written", LOG_S("why", e.text));
		timer_start(c->timer, NO_ROOM_WAIT_MS);
		return;
	}
	ask(a, CLAIM_WAIT_MAX_S, ANSWER_WITHIN_MS);
}

/* ---- granted ---- */

static void forget_id(struct agent *a)
{
	journal_claim_over(&a->journal);
	FREE_AND_NULL(a->claim.id);
}

/* Work that cannot be done here goes back before anybody waits for it. */
static void give_back(struct agent *a, const struct lease_offer *o, const char *why)
{
	json_t *v = json_object();
	char *body;

	log_event(
	    LOG_WARN, "claim_handed_back", LOG_S("dispatch", o->dispatch_id), LOG_S("why", why));
	forget_id(a);
	json_set_str(v, "reason", why);
	body = json_text(v);
	json_decref(v);
	a->claim.is_returning = true;
	server_call_start(&a->server, &a->claim.call, "POST", "application/json",
	    xasprintf("/api/v1/runner/leases/%s/return", o->lease_id), body, strlen(body),
	    ANSWER_WITHIN_MS);
}

static void take(struct agent *a, struct lease_offer *o)
{
	struct error e = {0};
	char *folder;
	int rc;

	if (a->claim.is_over) {
		give_back(a, o, "drained");
		return;
	}
	if (!str_eq(o->accelerator, a->c->accelerator)) {
		struct buf why = BUF_INIT(1024);

		buf_appendf(&why, "the token is for accelerator %s, but %s says %s", o->accelerator,
		    a->c->path, a->c->accelerator);
		timer_start(a->claim.timer, REFUSED_WAIT_MS);
		give_back(a, o, buf_str(&why));
		buf_release(&why);
		return;
	}
	rc = journal_add(&a->journal, o, &folder, &e);
	if (rc == ERR_EXISTS) {
		/* what is left of it is under way; the server did not hear of its end yet */
		forget_id(a);
		timer_start(a->claim.timer, AT_MOST_EVERY_MS);
	} else if (rc) {
		timer_start(a->claim.timer, NO_ROOM_WAIT_MS);
		give_back(a, o, e.text);
	} else {
		forget_id(a);
		a->n_taken++;
		job_start(job_new(a, folder, o));
	}
}

/* ---- answers ---- */

static void retry(struct agent *a, int64_t longest_ms)
{
	struct claim *c = &a->claim;

	c->n_failures++;
	timer_start(c->timer, server_delay_ms(&c->call, c->n_failures, longest_ms));
}

/* Once: whoever looks at a machine that does nothing wants to know what it waits for. */
static void tell_waiting(struct agent *a)
{
	struct buf labels = BUF_INIT(8192);

	if (a->claim.is_waiting_told)
		return;
	a->claim.is_waiting_told = true;
	for (char **label = a->c->labels; *label; label++)
		buf_appendf(&labels, "%s%s", labels.len ? "," : "", *label);
	log_event(LOG_INFO, "waiting",
	    LOG_S("why", "no change waits for a runner that wants no other labels than these"),
	    LOG_S("labels", buf_str(&labels)), LOG_S("accelerator", a->c->accelerator));
	buf_release(&labels);
}

static void on_answer(struct agent *a)
{
	struct claim *c = &a->claim;
	int64_t elapsed = clock_mono_ms() - c->sent_mono_ms;
	struct lease_offer offer;
	struct error e = {0};

	if (c->call.status == 204) {
		c->n_failures = 0;
		tell_waiting(a);
		/* a server that does not hold claims open is not to be flooded */
		if (elapsed < AT_MOST_EVERY_MS)
			timer_start(c->timer, AT_MOST_EVERY_MS - elapsed);
		return;
	}
	if (lease_offer_parse(buf_str(&c->call.http.answer), c->call.http.answer.len, &offer, &e)) {
		log_event(LOG_ERROR, "claim_unreadable", LOG_S("why", e.text));
		retry(a, LONGEST_WAIT_MS);
		return;
	}
	c->n_failures = 0;
	take(a, &offer);
	lease_offer_release(&offer);
}

/* With --once the program ends when the server refuses its token or its request: trying again later is
 * only of use to a program that keeps running while an operator corrects the file. If the token file holds
 * another token than the refused one, that token is tried first. */
static bool is_end_of_once(const struct agent *a)
{
	enum server_word word = a->claim.call.word;

	return a->end == AGENT_ONCE &&
	       (word == SERVER_REFUSED || (word == SERVER_TOKEN && !a->server.has_other_token));
}

static void end_once(struct agent *a)
{
	const struct server_call *call = &a->claim.call;
	const char *hint = hint_text(call->status, call->detail);

	log_event(LOG_ERROR, "claim_refused", LOG_S("why", call->detail), LOG_S("hint", hint),
	    LOG_S("token_file", a->c->token_file));
	a->exit_code = 1;
	a->stopping = DRAINING;
	claim_stop(a);
}

static void on_done(struct server_call *call)
{
	struct agent *a = call->owner;
	struct claim *c = &a->claim;
	bool was_returning = c->is_returning;

	c->is_returning = false;
	if (a->stopping == ENDING || was_returning) {
		/* where handing back failed the lease runs out by itself */
	} else if (call->word == SERVER_OK) {
		on_answer(a);
	} else if (c->is_over) {
		if (!c->is_checking_last && c->id) {
			c->is_checking_last = true;
			ask(a, 0, LAST_ANSWER_WITHIN_MS);
		}
	} else if (is_end_of_once(a)) {
		end_once(a);
	} else if (call->word == SERVER_REFUSED) {
		log_event(LOG_ERROR, "claim_refused", LOG_S("why", call->detail));
		c->n_failures = 0;
		timer_start(c->timer, REFUSED_WAIT_MS);
	} else {
		retry(a, call->word == SERVER_TOKEN ? TOKEN_WAIT_MS : LONGEST_WAIT_MS);
	}
	agent_next(a);
}

/* ---- the end ---- */

void claim_stop(struct agent *a)
{
	a->claim.is_over = true;
	timer_stop(a->claim.timer);
	if (!a->claim.is_returning)
		server_call_cancel(&a->claim.call);
}

bool claim_is_idle(const struct agent *a)
{
	return !a->claim.call.is_active;
}

void claim_hurry(struct agent *a)
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
