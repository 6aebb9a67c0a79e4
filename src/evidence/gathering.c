/* One change on its way: its merge base, its files, then its cells. What GitHub does not say now is
 * asked for again with growing pauses; what is known counts meanwhile. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "base/strv.h"
#include "evidence/evidence_internal.h"
#include "model/trigger.h"

enum {
	TRIES_MAX = 10,
	/* By time, too: what else makes a change due costs tries while GitHub is down. Some
	 * comparisons are too much for it, so not for ever. */
	PATIENCE_MS = 24 * 60 * 60 * 1000,
	FIRST_PAUSE_MS = 2000,
	LONGEST_PAUSE_MS = 30 * 60 * 1000,
	LONGEST_WAIT_MS = 60 * 60 * 1000, /* as GitHub asks for */
};

static void see_to_cells(struct gathering *g);
static void ask_files(struct gathering *g);

/* ---- GitHub's no ---- */

static const char *base_of(const struct gathering *g)
{
	return g->due.base_ref ? g->due.base_ref : g->due.base_sha;
}

static bool is_refused(const struct gathering *g)
{
	const struct evidence *e = g->evidence;

	for (size_t i = 0; i < REFUSED_MAX; i++)
		if (e->refused[i].change_id == g->due.change_id &&
		    str_eq(e->refused[i].base_ref, base_of(g)))
			return true;
	return false;
}

static void note_refused(struct gathering *g)
{
	struct evidence *e = g->evidence;
	struct refused *r = &e->refused[e->next_refused];

	e->next_refused = (e->next_refused + 1) % REFUSED_MAX;
	free(r->base_ref);
	*r = (struct refused){g->due.change_id, xstrdup(base_of(g))};
}

static int64_t waited_ms(const struct gathering *g)
{
	return clock_wall_ms() - g->due.since_ms;
}

/* Takes the result of a request that failed. True: it will never go through. */
static bool note_failure(struct gathering *g, const struct github_result *r, const char *what)
{
	bool is_last =
	    r->is_final || (g->due.n_tries + 1 >= TRIES_MAX && waited_ms(g) >= PATIENCE_MS);

	if (r->err == ERR_CANCELLED)
		return false;
	g->evidence->counters.n_failures++;
	g->has_failed |= !is_last;
	if (r->retry_after_ms > g->retry_after_ms)
		g->retry_after_ms = r->retry_after_ms;
	log_event(is_last ? LOG_WARN : LOG_INFO, is_last ? "evidence_refused" : "evidence_retry",
	    LOG_S("repository", g->due.repository), LOG_I("pr", g->due.number),
	    LOG_S("head", g->due.head_sha), LOG_S("what", what),
	    LOG_I("attempt", g->due.n_tries + 1), LOG_S("error", r->why.text));
	return is_last;
}

/* Ends it when the evidence closes: nothing more is begun. */
static bool is_closing(struct gathering *g)
{
	if (!g->evidence->is_closing)
		return false;
	evidence_gathered(g->evidence, g, false);
	return true;
}

/* ---- the merge base ---- */

static void on_base_put(struct store_op *op)
{
	struct gathering *g = CONTAINER_OF(op, struct gathering, put_base.op);

	/* Not written down: it is asked for again, with the next try. ERR_NOT_FOUND: the change is
	 * gone, and its row with it. */
	g->has_failed |= op->err != 0;
	g->has_learnt |= !op->err;
	if (!is_closing(g))
		ask_files(g);
}

static void put_base(struct gathering *g, const char *sha, int64_t commit_ms)
{
	g->put_base = (struct put_merge_base){
	    .op.done = on_base_put,
	    .change_id = g->due.change_id,
	    .sha = sha,
	    .base = base_of(g),
	    .commit_ms = commit_ms,
	    .now_ms = clock_wall_ms(),
	};
	if (store_put_merge_base(g->evidence->deps.store, &g->put_base)) {
		g->has_failed = true;
		ask_files(g);
	}
}

static void on_compared(struct github_call *call)
{
	struct gathering *g = call->owner;
	struct github_compare *c = &g->ask.compare;
	bool is_known = call->result.err == 0;

	g->on_wire = NULL;
	if (!is_known && note_failure(g, &call->result, "merge base"))
		note_refused(g);
	github_call_release(call);
	if (is_closing(g))
		return;
	if (is_known)
		put_base(g, c->merge_base_sha, c->merge_base_wall_ms);
	else
		ask_files(g);
}

/* The base branch and not the base commit of the webhook: that one stays behind when the
 * author merges a newer base into the head. */
static void ask_merge_base(struct gathering *g)
{
	struct evidence *e = g->evidence;

	if (!g->due.needs_merge_base) {
		ask_files(g);
		return;
	}
	if (!base_of(g) || is_refused(g)) {
		ask_files(g);
		return;
	}
	e->counters.n_asked++;
	g->ask.compare = (struct github_compare){.call = {.done = on_compared, .owner = g}};
	g->on_wire = &g->ask.compare.call;
	github_compare_get(
	    e->deps.github, &g->ask.compare, g->due.repository, base_of(g), g->due.head_sha);
}

/* ---- the files ---- */

static void on_files_put(struct store_op *op)
{
	struct gathering *g = CONTAINER_OF(op, struct gathering, put_files.op);

	g->has_failed |= op->err != 0;
	g->has_learnt |= !op->err;
	if (!is_closing(g))
		see_to_cells(g);
}

static void put_files(struct gathering *g)
{
	g->put_files = (struct put_files){
	    .op.done = on_files_put,
	    .repository = g->due.repository,
	    .head_sha = g->due.head_sha,
	    .number = g->due.number,
	    .files = (const char *const *)g->files,
	    .now_ms = clock_wall_ms(),
	};
	if (store_put_files(g->evidence->deps.store, &g->put_files)) {
		g->has_failed = true;
		see_to_cells(g);
	}
}

static void on_files(struct github_call *call)
{
	struct gathering *g = call->owner;
	struct github_pull_files *got = &g->ask.files;
	bool is_known = call->result.err == 0, is_hopeless = false;

	g->on_wire = NULL;
	if (is_known)
		g->files = strv_copy((const char *const *)got->names);
	else
		is_hopeless = note_failure(g, &call->result, "files");
	if (is_hopeless)
		g->files = strv_copy(NULL);
	/* Any path may be among those that are not known. */
	if (is_hopeless || got->is_incomplete)
		strv_add(&g->files, FILES_INCOMPLETE);
	github_pull_files_release(got);
	if (is_closing(g))
		return;
	if (g->files)
		put_files(g);
	else
		see_to_cells(g);
}

static void ask_files(struct gathering *g)
{
	struct evidence *e = g->evidence;

	if (!g->due.needs_files || g->due.number <= 0) {
		see_to_cells(g);
		return;
	}
	e->counters.n_asked++;
	g->ask.files = (struct github_pull_files){.call = {.done = on_files, .owner = g}};
	g->on_wire = &g->ask.files.call;
	github_pull_files_get(e->deps.github, &g->ask.files, g->due.repository, g->due.number);
}

/* ---- the end ---- */

/* As long again as it has waited already. */
static int64_t pause_ms(const struct gathering *g)
{
	int64_t ms = waited_ms(g);

	if (ms < FIRST_PAUSE_MS)
		ms = FIRST_PAUSE_MS;
	if (ms > LONGEST_PAUSE_MS)
		ms = LONGEST_PAUSE_MS;
	if (ms < g->retry_after_ms)
		ms = g->retry_after_ms;
	return ms < LONGEST_WAIT_MS ? ms : LONGEST_WAIT_MS;
}

static void on_attributed(struct store_op *op)
{
	struct gathering *g = CONTAINER_OF(op, struct gathering, attribute.op);
	struct evidence *e = g->evidence;

	if (op->err) {
		log_event(LOG_WARN, "change_not_attributed", LOG_I("change", g->due.change_id),
		    LOG_S("error", op->why.text));
		evidence_gathered(e, g, op->err != ERR_NOT_FOUND);
		return;
	}
	e->counters.n_attributed++;
	e->counters.n_moved += g->attribute.has_moved;
	log_event(LOG_DEBUG, "change_attributed", LOG_I("change", g->due.change_id),
	    LOG_I("pr", g->due.number), LOG_S("head", g->due.head_sha),
	    LOG_S("moved", g->attribute.has_moved ? "yes" : "no"));
	evidence_gathered(e, g, false);
}

static void see_to_cells(struct gathering *g)
{
	int64_t now_ms = clock_wall_ms();

	g->attribute = (struct attribute_change){
	    .op.done = on_attributed,
	    .change_id = g->due.change_id,
	    .generation = g->due.generation,
	    .again_ms = g->has_failed ? now_ms + pause_ms(g) : 0,
	    .has_learnt = g->has_learnt,
	    .now_ms = now_ms,
	};
	if (store_attribute(g->evidence->deps.store, &g->attribute))
		evidence_gathered(g->evidence, g, true);
}

void gathering_start(struct evidence *e, struct due_change *due)
{
	struct gathering *g = xcalloc(1, sizeof(*g));

	g->evidence = e;
	g->due = *due;
	*due = (struct due_change){.change_id = 0};
	g->next = e->first;
	e->first = g;
	e->counters.n_in_hand++;
	ask_merge_base(g);
}

void gathering_cancel(struct gathering *g)
{
	if (g->on_wire)
		github_cancel(g->evidence->deps.github, g->on_wire);
}

void gathering_free(struct gathering *g)
{
	free(g->due.repository);
	free(g->due.head_sha);
	free(g->due.base_ref);
	free(g->due.base_sha);
	strv_free(g->files);
	free(g);
}
