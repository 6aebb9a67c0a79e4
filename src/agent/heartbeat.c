/* Keeps a job's lease. While the server is away the steps go on: it may only be down for a while,
 * and gives every lease its full time again when it comes back. Only its word stops them. */
#include "agent/agent_internal.h"
#include "base/alloc.h"
#include "base/clock.h"

enum {
	ANSWER_WITHIN_MS = 15 * 1000,
	AT_MOST_EVERY_MS = 1000,
	RETRY_MS = 3 * 1000,
	RETRY_DOUBTFUL_MS = 15 * 1000,
	RETRY_UNKNOWN_MS = 60 * 1000,
};

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* A third of the lease's time, so that two may be lost. */
static int wait_s(const struct job *j)
{
	if (j->stage == JOB_WAITING)
		return 0; /* the answer is waited for */
	return (int)least(RENEW_WAIT_MAX_S, j->offer.lease_ms / 3000);
}

static void beat(struct timer *t)
{
	struct job *j = timer_owner(t);
	struct heartbeat *h = &j->heartbeat;
	char *body = xasprintf("{\"wait\":%d}", wait_s(j));

	h->sent_mono_ms = clock_mono_ms();
	server_call_start(&j->agent->server, &h->call, "POST", "application/json",
	    xasprintf("/api/v1/runner/leases/%s/renew", j->offer.lease_id), body, strlen(body),
	    wait_s(j) * INT64_C(1000) + ANSWER_WITHIN_MS);
}

static void note_doubt(struct job *j)
{
	struct heartbeat *h = &j->heartbeat;

	if (h->is_doubtful || clock_mono_ms() < h->good_until_mono_ms)
		return;
	h->is_doubtful = true;
	job_log(j, LOG_WARN, "lease_doubtful", "why", h->call.detail);
}

static void try_again(struct job *j, int64_t longest_ms)
{
	struct heartbeat *h = &j->heartbeat;

	h->n_failures++;
	note_doubt(j);
	timer_start(h->timer, server_delay_ms(&h->call, h->n_failures, longest_ms));
}

/* How long a failed one waits: soon while the lease is good. */
static int64_t longest_wait_ms(const struct job *j)
{
	return j->heartbeat.is_doubtful ? RETRY_DOUBTFUL_MS
					: least(RETRY_MS, j->offer.lease_ms / 4);
}

static void on_active(struct job *j, int64_t lease_ms)
{
	struct heartbeat *h = &j->heartbeat;
	int64_t elapsed = clock_mono_ms() - h->sent_mono_ms;
	int64_t every = wait_s(j) ? AT_MOST_EVERY_MS : lease_ms / 3;

	if (h->is_doubtful)
		job_log(j, LOG_INFO, "lease_sure_again", NULL, NULL);
	h->is_doubtful = false;
	h->n_failures = 0;
	j->offer.lease_ms = lease_ms;
	h->good_until_mono_ms = h->sent_mono_ms + lease_ms;
	timer_start(h->timer, elapsed < every ? every - elapsed : 0);
	job_on_lease(j, LEASE_ACTIVE, NULL);
}

static void on_answer(struct job *j)
{
	struct server_call *c = &j->heartbeat.call;
	struct lease_answer answer;
	struct error e = {0};

	if (lease_answer_parse(buf_str(&c->http.answer), c->http.answer.len, &answer, &e)) {
		snprintf(
		    c->detail, sizeof(c->detail), "not an answer to a heartbeat: %.200s", e.text);
		try_again(j, longest_wait_ms(j));
		return;
	}
	if (answer.word == LEASE_ACTIVE) {
		on_active(j, answer.lease_ms);
	} else {
		j->heartbeat.is_on = false;
		job_on_lease(j, answer.word, answer.reason);
	}
	lease_answer_release(&answer);
}

/* The server answers, but knows no such lease: no word to stop running steps by, but none to
 * start any by either. */
static void on_refused(struct job *j)
{
	struct heartbeat *h = &j->heartbeat;

	if (j->stage == JOB_RUNNING) {
		try_again(j, RETRY_UNKNOWN_MS);
		return;
	}
	h->is_on = false;
	if (j->stage == JOB_WAITING)
		job_on_lease(j, LEASE_LOST, h->call.detail);
}

static void on_done(struct server_call *c)
{
	struct job *j = c->owner;

	if (j->stage == JOB_OVER || !j->heartbeat.is_on) {
		job_release_if_over(j);
		return;
	}
	if (c->word == SERVER_OK)
		on_answer(j);
	else if (c->word == SERVER_REFUSED)
		on_refused(j);
	else
		try_again(j, longest_wait_ms(j));
}

void heartbeat_start(struct job *j)
{
	struct heartbeat *h = &j->heartbeat;

	if (h->is_on || h->call.is_active)
		return;
	h->is_on = true;
	h->call.done = on_done;
	h->call.owner = j;
	if (!h->timer)
		h->timer = timer_new(j->agent->loop, beat, j);
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
