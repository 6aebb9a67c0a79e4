#include "evidence/evidence.h"

#include "db/seats.h"
#include "history/commits_between.h"
#include "loop/bell.h"

enum {
	FIRST_PAUSE_MS = 10 * 1000,
	LONGEST_PAUSE_MS = 6 * 3600 * 1000,
	TRIES_MAX = 12,
	TITLE_BYTES_MAX = 300,
};

/* Instead of a time: the query or the write failed, so try again soon. */
static const int64_t SOON = -1;

struct comparing {
	struct evidence_deps deps;
	struct bell *bell;             /* each look is one claim, with its question and its answer */
	struct claim_comparison claim; /* keeps its texts until the answer is written */
	struct github_commits ask;
	struct put_comparison put;
	char *commits;
	bool is_on_wire, is_closing, is_closed;
	void (*on_closed)(void *owner);
	void *owner;
};

static void close_comparing_if_idle(struct comparing *c)
{
	if (c->is_closed || bell_is_looking(c->bell))
		return;
	c->is_closed = true;
	loop_reap(c->deps.loop, c->on_closed, c->owner);
}

/* Ends the look. next_ms: when to look again; 0: not known; SOON. */
static void end_comparing(struct comparing *c, int64_t next_ms)
{
	claim_comparison_release(&c->claim);
	FREE_AND_NULL(c->commits);
	if (next_ms == SOON) {
		bell_retry(c->bell);
	} else {
		bell_by(c->bell, next_ms);
		bell_rest(c->bell);
	}
	if (c->is_closing)
		close_comparing_if_idle(c);
}

/* ---- the answer ---- */

static void on_comparison_put(struct store_op *op)
{
	struct comparing *c = CONTAINER_OF(op, struct comparing, put.op);

	if (op->err)
		log_event(LOG_WARN, "comparison_unwritten", LOG_S("error", op->why.text));
	end_comparing(c, op->err ? SOON : clock_wall_ms());
}

static void put_comparison(struct comparing *c, int64_t n, int64_t again_ms)
{
	c->put = (struct put_comparison){
	    .op = {.done = on_comparison_put, .retry.event = "comparison_unwritten"},
	    .repository = c->claim.repository,
	    .good_sha = c->claim.good_sha,
	    .bad_sha = c->claim.bad_sha,
	    .n = n,
	    .commits = c->commits,
	    .again_ms = again_ms,
	};
	if (store_put_comparison(c->deps.store, &c->put))
		end_comparing(c, SOON);
}

/* The newest commits as JSON; NULL: too long. GitHub lists the oldest first, and at most 250: a longer list lacks the
 * newest. */
static char *newest_commits_text(const struct github_commits *ask)
{
	const json_t *commits = json_object_get(ask->call.answer, "commits");
	size_t n = ask->is_complete ? json_array_size(commits) : 0;
	json_t *list = json_array();
	char *text;

	for (size_t i = 0; i < n && i < COMMITS_SHOWN_MAX; i++) {
		const json_t *commit = json_array_get(commits, n - 1 - i);
		const char *sha = json_get_str(commit, "sha");
		const char *message = json_get_str(json_object_get(commit, "commit"), "message");
		const char *login = json_get_str(json_object_get(commit, "author"), "login");
		json_t *obj = json_object();
		char *title = NULL;

		if (message) {
			title = xstrndup(message, utf8_cut(message, strlen(message), TITLE_BYTES_MAX));
			title[strcspn(title, "\r\n")] = '\0';
		}
		json_set_str(obj, "sha", sha && is_sha1(sha) ? sha : NULL);
		json_set_str(obj, "title", title);
		json_set_str(
		    obj, "author", login ? login : json_get_str(json_at(commit, "commit", "author", NULL), "name"));
		json_array_append_new(list, obj);
		free(title);
	}
	text = json_text(list);
	json_decref(list);
	if (strlen(text) > COMMITS_ASKED_BYTES_MAX)
		FREE_AND_NULL(text);
	return text;
}

static void on_compared(struct github_call *call)
{
	struct comparing *c = call->owner;
	struct github_result result = call->result;
	int64_t n = json_get_int(call->answer, "total_commits", -1);
	int n_tries = c->claim.n_tries;
	bool is_last = result.is_final || n_tries + 1 >= TRIES_MAX;
	int64_t pause = n_tries < 12 ? (int64_t)FIRST_PAUSE_MS << n_tries : LONGEST_PAUSE_MS;

	c->is_on_wire = false;
	if (!result.err)
		c->commits = newest_commits_text(&c->ask);
	github_call_release(call);
	if (c->is_closing || result.err == ERR_CANCELLED) {
		end_comparing(c, SOON);
	} else if (result.err) {
		if (pause < result.retry_after_ms)
			pause = result.retry_after_ms;
		if (pause > LONGEST_PAUSE_MS)
			pause = LONGEST_PAUSE_MS;
		log_event(LOG_INFO, is_last ? "comparison_refused" : "comparison_retry",
		    LOG_S("repository", c->claim.repository), LOG_S("base", c->claim.good_sha),
		    LOG_S("head", c->claim.bad_sha), LOG_I("attempt", n_tries + 1), LOG_S("error", result.why.text));
		put_comparison(c, -1, is_last ? 0 : clock_wall_ms() + pause);
	} else {
		put_comparison(c, n, 0);
	}
}

/* ---- the question ---- */

static void on_comparisons_claimed(struct store_query *q)
{
	struct comparing *c = CONTAINER_OF(q, struct comparing, claim.q);

	if (q->err || c->is_closing) {
		end_comparing(c, q->err == ERR_NOT_FOUND ? c->claim.next_ms : SOON);
		return;
	}
	c->ask = (struct github_commits){.call = {.done = on_compared, .owner = c}};
	c->is_on_wire = true;
	github_commits_between(c->deps.github, &c->ask, c->claim.repository, c->claim.good_sha, c->claim.bad_sha);
}

static void look_for_comparisons(void *owner)
{
	struct comparing *c = owner;

	if (!store_has_seat(c->deps.store, SEAT_EVIDENCE)) {
		bell_rest(c->bell);
		return;
	}
	c->claim = (struct claim_comparison){.q.done = on_comparisons_claimed, .now_ms = clock_wall_ms()};
	if (store_claim_comparison(c->deps.store, &c->claim))
		end_comparing(c, SOON);
}

/* ---- life ---- */

static void on_comparing_topic(unsigned topics, void *owner)
{
	(void)topics;
	bell_ring(((struct comparing *)owner)->bell);
}

static void on_comparing_seat(enum seat seat, bool has_seat, void *owner)
{
	(void)seat;
	if (has_seat)
		bell_now(((struct comparing *)owner)->bell);
}

static bool is_comparing_idle(enum seat seat, void *owner)
{
	(void)seat;
	return !bell_is_looking(((struct comparing *)owner)->bell);
}

struct comparing *comparing_new(const struct evidence_deps *deps)
{
	struct comparing *c = xcalloc(1, sizeof(*c));

	c->deps = *deps;
	c->bell = bell_new(deps->loop, look_for_comparisons, c);
	store_subscribe(deps->store, STORE_ATTRIBUTION, on_comparing_topic, c);
	store_add_part(deps->store, &(struct seat_part){SEAT_EVIDENCE, on_comparing_seat, is_comparing_idle, c});
	bell_ring(c->bell);
	return c;
}

void comparing_close(struct comparing *c, void (*on_closed)(void *owner), void *owner)
{
	assert(!c->is_closing);
	c->is_closing = true;
	c->on_closed = on_closed;
	c->owner = owner;
	bell_stop(c->bell);
	if (c->is_on_wire)
		github_cancel(c->deps.github, &c->ask.call);
	close_comparing_if_idle(c);
}

void comparing_free(struct comparing *c)
{
	if (!c)
		return;
	assert(c->is_closed);
	claim_comparison_release(&c->claim);
	free(c->commits);
	bell_free(c->bell);
	free(c);
}
