#include "evidence/comparing.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "loop/bell.h"
#include "store/commits_between.h"

enum {
	STORE_AGAIN_MS = 1000,
	FIRST_PAUSE_MS = 10 * 1000,
	LONGEST_PAUSE_MS = 6 * 3600 * 1000,
	TRIES_MAX = 12,
	TITLE_BYTES_MAX = 300,
};

struct comparing {
	struct evidence_deps deps;
	struct bell *bell;             /* a look: claim, question and answer of one */
	struct claim_comparison claim; /* its texts are ours until the answer is written */
	struct github_commits ask;
	struct put_comparison put;
	char *commits;
	bool is_answered; /* `put` waits for the store to take it: GitHub is not asked again */
	bool is_on_wire, is_closing, is_closed;
	void (*on_closed)(void *owner);
	void *owner;
};

static void tell_closed(void *arg)
{
	struct comparing *c = arg;

	c->on_closed(c->owner);
}

static void close_if_idle(struct comparing *c)
{
	if (c->is_closed || bell_is_looking(c->bell))
		return;
	c->is_closed = true;
	loop_reap(c->deps.loop, tell_closed, c);
}

static void forget(struct comparing *c)
{
	claim_comparison_release(&c->claim);
	FREE_AND_NULL(c->commits);
	c->is_answered = false;
}

static int64_t soon(void)
{
	return clock_wall_ms() + STORE_AGAIN_MS;
}

/* next_ms: when there is something to do again; 0: nobody knows. */
static void rest(struct comparing *c, int64_t next_ms)
{
	if (!c->is_answered)
		forget(c);
	bell_by(c->bell, next_ms);
	bell_rest(c->bell);
	if (c->is_closing)
		close_if_idle(c);
}

/* ---- the answer ---- */

static void on_put(struct store_op *op)
{
	struct comparing *c = CONTAINER_OF(op, struct comparing, put.op);

	c->is_answered = op->err != 0;
	if (op->err)
		log_event(LOG_WARN, "comparison_unwritten", LOG_S("error", op->why.text));
	rest(c, op->err ? soon() : clock_wall_ms());
}

static void submit(struct comparing *c)
{
	c->is_answered = true;
	c->put.op = (struct store_op){.done = on_put};
	if (store_put_comparison(c->deps.store, &c->put))
		rest(c, soon());
}

static void put(struct comparing *c, int64_t n, int64_t again_ms)
{
	c->put = (struct put_comparison){
	    .repository = c->claim.repository,
	    .good_sha = c->claim.good_sha,
	    .bad_sha = c->claim.bad_sha,
	    .n = n,
	    .commits = c->commits,
	    .again_ms = again_ms,
	};
	submit(c);
}

static json_t *commit_json(const json_t *commit)
{
	const char *sha = json_get_str(commit, "sha");
	const char *message = json_get_str(json_object_get(commit, "commit"), "message");
	const char *login = json_get_str(json_object_get(commit, "author"), "login");
	json_t *obj = json_object();
	char *title;

	if (!login)
		login = json_get_str(json_at(commit, "commit", "author", NULL), "name");
	title =
	    message ? xstrndup(message, utf8_cut(message, strlen(message), TITLE_BYTES_MAX)) : NULL;
	if (title)
		title[strcspn(title, "\r\n")] = '\0';
	json_set_str(obj, "sha", sha && is_sha1(sha) ? sha : NULL);
	json_set_str(obj, "title", title);
	json_set_str(obj, "author", login);
	free(title);
	return obj;
}

/* GitHub lists the oldest first, and 250 at most: of more, the newest are not among them. */
static char *newest_text(const struct github_commits *ask)
{
	const json_t *commits = json_object_get(ask->call.answer, "commits");
	size_t n = ask->is_complete ? json_array_size(commits) : 0;
	json_t *list = json_array();
	char *text;

	for (size_t i = 0; i < n && i < COMMITS_SHOWN_MAX; i++)
		json_array_append_new(list, commit_json(json_array_get(commits, n - 1 - i)));
	text = json_text(list);
	json_decref(list);
	if (text && strlen(text) <= COMMITS_ASKED_BYTES_MAX)
		return text;
	free(text);
	return NULL;
}

static int64_t pause_ms(int n_tries, int64_t retry_after_ms)
{
	int64_t ms = n_tries < 12 ? (int64_t)FIRST_PAUSE_MS << n_tries : LONGEST_PAUSE_MS;

	if (ms < retry_after_ms)
		ms = retry_after_ms;
	return ms < LONGEST_PAUSE_MS ? ms : LONGEST_PAUSE_MS;
}

static void note_failure(struct comparing *c, const struct github_result *r)
{
	bool is_last = r->is_final || c->claim.n_tries + 1 >= TRIES_MAX;
	int64_t pause = pause_ms(c->claim.n_tries, r->retry_after_ms);

	log_event(LOG_INFO, is_last ? "comparison_refused" : "comparison_retry",
	    LOG_S("repository", c->claim.repository), LOG_S("base", c->claim.good_sha),
	    LOG_S("head", c->claim.bad_sha), LOG_I("attempt", c->claim.n_tries + 1),
	    LOG_S("error", r->why.text));
	put(c, -1, is_last ? 0 : clock_wall_ms() + pause);
}

static void on_compared(struct github_call *call)
{
	struct comparing *c = call->owner;
	struct github_result result = call->result;
	int64_t n = json_get_int(call->answer, "total_commits", -1);

	c->is_on_wire = false;
	if (!result.err)
		c->commits = newest_text(&c->ask);
	github_call_release(call);
	if (c->is_closing || result.err == ERR_CANCELLED)
		rest(c, soon());
	else if (result.err)
		note_failure(c, &result);
	else
		put(c, n, 0);
}

/* ---- the question ---- */

static void ask(struct comparing *c)
{
	c->ask = (struct github_commits){.call = {.done = on_compared, .owner = c}};
	c->is_on_wire = true;
	github_commits_between(
	    c->deps.github, &c->ask, c->claim.repository, c->claim.good_sha, c->claim.bad_sha);
}

static void on_claimed(struct store_query *q)
{
	struct comparing *c = CONTAINER_OF(q, struct comparing, claim.q);

	if (!q->err && !c->is_closing) {
		ask(c);
		return;
	}
	rest(c, q->err == ERR_NOT_FOUND ? c->claim.next_ms : soon());
}

static void look(void *owner)
{
	struct comparing *c = owner;

	if (c->is_answered) {
		submit(c);
		return;
	}
	c->claim = (struct claim_comparison){.q.done = on_claimed, .now_ms = clock_wall_ms()};
	if (store_claim_comparison(c->deps.store, &c->claim))
		rest(c, soon());
}

/* ---- life ---- */

static void on_topic(unsigned topics, void *owner)
{
	struct comparing *c = owner;

	(void)topics;
	bell_ring(c->bell);
}

struct comparing *comparing_new(const struct evidence_deps *deps)
{
	struct comparing *c = xcalloc(1, sizeof(*c));

	c->deps = *deps;
	c->bell = bell_new(deps->loop, look, c);
	store_subscribe(deps->store, STORE_ATTRIBUTION, on_topic, c);
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
	close_if_idle(c);
}

void comparing_free(struct comparing *c)
{
	if (!c)
		return;
	assert(c->is_closed);
	forget(c);
	bell_free(c->bell);
	free(c);
}
