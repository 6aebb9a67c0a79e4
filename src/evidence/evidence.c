/* The rows of attribution_due say which changes lack a fact that GitHub has. This file claims due rows while there is room
 * for them, and sleeps until the next row is due. For each change it asks GitHub for the merge base, then for the files,
 * and then the store attributes the change's cells. It holds nothing that the database does not have, so a crash at any
 * point loses nothing. If GitHub does not answer, the row is due again after a growing pause; the facts that are known
 * count meanwhile. */
#include "evidence/evidence.h"

#include "db/seats.h"
#include "loop/bell.h"
#include "model/plan.h"
#include "store/changes.h"
#include "verdict/attribution.h"

enum {
	GATHERINGS_MAX = 4, /* each is a request or two, and all of Outpost shares GitHub's budget */
	REFUSED_MAX = 256,  /* remembered refusals */
	TRIES_MAX = 10,
	/* It gives up after this time and TRIES_MAX: other events make a change due as well, and each costs a try while
	 * GitHub is down. It does give up, because GitHub cannot answer some comparisons at all. */
	PATIENCE_MS = 24 * 60 * 60 * 1000,
	STORE_PAUSE_MS = 500,
	FIRST_PAUSE_MS = 2000,
	LONGEST_PAUSE_MS = 30 * 60 * 1000,
	LONGEST_WAIT_MS = 60 * 60 * 1000, /* that GitHub asks for */
};

/* GitHub refused to name the merge base of this head. Outpost asks again only after the next start, or if the base
 * changes. */
struct refused {
	int64_t change_id;
	char *base_ref;
};

struct evidence {
	struct evidence_deps deps;
	struct evidence_counters counters;

	struct bell *bell; /* each look is a claim */
	struct claim_due_changes claim;
	int64_t ended[GATHERINGS_MAX]; /* changes that ended during a claim, which may still have seen them as due */
	int n_ended;
	LIST_HEAD(, gathering) gatherings; /* counters.n_in_hand of them */
	struct refused refused[REFUSED_MAX];
	size_t next_refused;
	bool is_closing, is_closed;
	void (*on_closed)(void *owner);
	void *owner;
};

/* One change: its merge base and files from GitHub, then its cells. */
struct gathering {
	LIST_ENTRY(gathering) link;
	struct evidence *evidence;
	struct due_change due;       /* owned */
	struct github_call *on_wire; /* NULL: nothing */
	int64_t retry_after_ms;
	bool has_failed, has_learnt;
	union { /* GitHub gets one request at a time */
		struct github_compare compare;
		struct github_pull_files files;
	} ask;
	struct put_merge_base put_base;
	struct put_files put_files;
	char **files; /* as they are stored */
	struct attribute_change attribute;
};

/* ---- the end of a gathering ---- */

static void close_evidence_if_idle(struct evidence *e)
{
	if (e->is_closed || bell_is_looking(e->bell) || !LIST_EMPTY(&e->gatherings))
		return;
	e->is_closed = true;
	loop_reap(e->deps.loop, e->on_closed, e->owner);
}

/* Frees it. is_store_busy: the store rejected the operation, so the change is still due. */
static void end_gathering(struct gathering *g, bool is_store_busy)
{
	struct evidence *e = g->evidence;

	LIST_REMOVE(g, link);
	e->counters.n_in_hand--;
	if (bell_is_looking(e->bell) && !is_store_busy && e->n_ended < GATHERINGS_MAX)
		e->ended[e->n_ended++] = g->due.change_id;
	record_release(&due_change_record, &g->due);
	attribute_change_release(&g->attribute);
	strv_free(g->files);
	free(g);
	if (e->is_closing)
		close_evidence_if_idle(e);
	else if (is_store_busy) /* not bell_retry(), which would end a look that is running */
		bell_by(e->bell, clock_wall_ms() + STORE_PAUSE_MS);
	else
		bell_now(e->bell);
}

/* When the evidence closes, a gathering ends without its next step. The change stays due. */
static bool end_gathering_if_closing(struct gathering *g)
{
	if (!g->evidence->is_closing)
		return false;
	end_gathering(g, false);
	return true;
}

/* ---- the cells ---- */

static int64_t waited_ms(const struct gathering *g) { return clock_wall_ms() - g->due.since_ms; }

static void on_attributed(struct store_op *op)
{
	struct gathering *g = CONTAINER_OF(op, struct gathering, attribute.op);
	struct evidence *e = g->evidence;

	if (op->err) {
		log_event(
		    LOG_WARN, "change_not_attributed", LOG_I("change", g->due.change_id), LOG_S("error", op->why.text));
		end_gathering(g, op->err != ERR_NOT_FOUND);
		return;
	}
	e->counters.n_attributed++;
	e->counters.n_moved += g->attribute.has_moved;
	log_event(LOG_DEBUG, "change_attributed", LOG_I("change", g->due.change_id), LOG_I("pr", g->due.number),
	    LOG_S("head", g->due.head_sha), LOG_S("moved", g->attribute.has_moved ? "yes" : "no"));
	end_gathering(g, false);
}

static void attribute_cells(struct gathering *g)
{
	int64_t now_ms = clock_wall_ms(), pause_ms = waited_ms(g);

	/* the pause before the next try is as long as the change has waited already, within bounds */
	if (pause_ms < FIRST_PAUSE_MS)
		pause_ms = FIRST_PAUSE_MS;
	if (pause_ms > LONGEST_PAUSE_MS)
		pause_ms = LONGEST_PAUSE_MS;
	if (pause_ms < g->retry_after_ms)
		pause_ms = g->retry_after_ms;
	if (pause_ms > LONGEST_WAIT_MS)
		pause_ms = LONGEST_WAIT_MS;
	g->attribute = (struct attribute_change){
	    .op.done = on_attributed,
	    .change_id = g->due.change_id,
	    .generation = g->due.generation,
	    .again_ms = g->has_failed ? now_ms + pause_ms : 0,
	    .has_learnt = g->has_learnt,
	    .now_ms = now_ms,
	};
	if (store_attribute_change(g->evidence->deps.store, &g->attribute))
		end_gathering(g, true);
}

/* Records the failure of a request. True: it will never succeed. */
static bool note_gathering_failure(struct gathering *g, const struct github_result *r, const char *what)
{
	bool is_last = r->is_final || (g->due.n_tries + 1 >= TRIES_MAX && waited_ms(g) >= PATIENCE_MS);

	if (r->err == ERR_CANCELLED)
		return false;
	g->evidence->counters.n_failures++;
	g->has_failed |= !is_last;
	if (r->retry_after_ms > g->retry_after_ms)
		g->retry_after_ms = r->retry_after_ms;
	log_event(is_last ? LOG_WARN : LOG_INFO, is_last ? "evidence_refused" : "evidence_retry",
	    LOG_S("repository", g->due.repository), LOG_I("pr", g->due.number), LOG_S("head", g->due.head_sha),
	    LOG_S("what", what), LOG_I("attempt", g->due.n_tries + 1), LOG_S("error", r->why.text));
	return is_last;
}

/* ---- the files ---- */

static void on_files_put(struct store_op *op)
{
	struct gathering *g = CONTAINER_OF(op, struct gathering, put_files.op);

	g->has_failed |= op->err != 0;
	g->has_learnt |= !op->err;
	if (!end_gathering_if_closing(g))
		attribute_cells(g);
}

static void on_files(struct github_call *call)
{
	struct gathering *g = call->owner;
	struct github_pull_files *got = &g->ask.files;
	bool is_known = call->result.err == 0, is_hopeless = false;

	g->on_wire = NULL;
	if (!is_known)
		is_hopeless = note_gathering_failure(g, &call->result, "files");
	if (is_known || is_hopeless)
		g->files = strv_copy(is_known ? (const char *const *)got->names : NULL);
	/* any path may be among those that are not known */
	if (is_hopeless || got->is_incomplete)
		strv_add(&g->files, FILES_INCOMPLETE);
	github_pull_files_release(got);
	if (end_gathering_if_closing(g))
		return;
	g->put_files = (struct put_files){
	    .op.done = on_files_put,
	    .repository = g->due.repository,
	    .head_sha = g->due.head_sha,
	    .number = g->due.number,
	    .files = (const char *const *)g->files,
	    .now_ms = clock_wall_ms(),
	};
	if (g->files && store_put_files(g->evidence->deps.store, &g->put_files) == 0)
		return;
	g->has_failed |= g->files != NULL;
	attribute_cells(g);
}

static void ask_files(struct gathering *g)
{
	struct evidence *e = g->evidence;

	if (!g->due.needs_files || g->due.number <= 0) {
		attribute_cells(g);
		return;
	}
	e->counters.n_asked++;
	g->ask.files = (struct github_pull_files){.call = {.done = on_files, .owner = g}};
	g->on_wire = &g->ask.files.call;
	github_pull_files_get(e->deps.github, &g->ask.files, g->due.repository, g->due.number);
}

/* ---- the merge base ---- */

static const char *base_of_gathering(const struct gathering *g)
{
	return g->due.base_ref ? g->due.base_ref : g->due.base_sha;
}

static void on_base_put(struct store_op *op)
{
	struct gathering *g = CONTAINER_OF(op, struct gathering, put_base.op);

	/* after an error, the next try asks again; ERR_NOT_FOUND: the change and its row are deleted */
	g->has_failed |= op->err != 0;
	g->has_learnt |= !op->err;
	if (!end_gathering_if_closing(g))
		ask_files(g);
}

static void on_merge_base(struct github_call *call)
{
	struct gathering *g = call->owner;
	struct evidence *e = g->evidence;
	struct github_compare *c = &g->ask.compare;
	bool is_known = call->result.err == 0;

	g->on_wire = NULL;
	if (!is_known && note_gathering_failure(g, &call->result, "merge base")) {
		struct refused *r = &e->refused[e->next_refused];

		e->next_refused = (e->next_refused + 1) % REFUSED_MAX;
		free(r->base_ref);
		*r = (struct refused){g->due.change_id, xstrdup(base_of_gathering(g))};
	}
	github_call_release(call);
	if (end_gathering_if_closing(g))
		return;
	g->put_base = (struct put_merge_base){
	    .op.done = on_base_put,
	    .change_id = g->due.change_id,
	    .sha = c->merge_base_sha,
	    .base = base_of_gathering(g),
	    .commit_ms = c->merge_base_wall_ms,
	    .now_ms = clock_wall_ms(),
	};
	if (is_known && store_put_merge_base(e->deps.store, &g->put_base) == 0)
		return;
	g->has_failed |= is_known;
	ask_files(g);
}

/* Asks with the base branch and not with the base commit of the webhook: that commit is too old after the author has merged
 * a newer base into the head. */
static void ask_merge_base(struct gathering *g)
{
	struct evidence *e = g->evidence;
	const char *base = base_of_gathering(g);
	bool is_refused = false;

	for (size_t i = 0; base && i < REFUSED_MAX; i++)
		is_refused |= e->refused[i].change_id == g->due.change_id && str_eq(e->refused[i].base_ref, base);
	if (!g->due.needs_merge_base || !base || is_refused) {
		ask_files(g);
		return;
	}
	e->counters.n_asked++;
	g->ask.compare = (struct github_compare){.call = {.done = on_merge_base, .owner = g}};
	g->on_wire = &g->ask.compare.call;
	github_compare_get(e->deps.github, &g->ask.compare, g->due.repository, base, g->due.head_sha);
}

/* ---- claims ---- */

/* The changes whose facts are being gathered are still due, so a claim asks for more changes than there is room for. */
static void start_gatherings(struct evidence *e)
{
	for (size_t i = 0; i < e->claim.n; i++) {
		struct due_change *due = &e->claim.list[i];
		bool is_gathered = false;
		struct gathering *g;

		for (int k = 0; k < e->n_ended; k++)
			is_gathered |= e->ended[k] == due->change_id;
		LIST_FOREACH (g, &e->gatherings, link)
			is_gathered |= g->due.change_id == due->change_id;
		if (e->counters.n_in_hand == GATHERINGS_MAX)
			bell_ring(e->bell);
		if (e->counters.n_in_hand == GATHERINGS_MAX || is_gathered)
			continue;
		g = xcalloc(1, sizeof(*g));
		g->evidence = e;
		g->due = *due;
		*due = (struct due_change){.change_id = 0};
		LIST_INSERT_HEAD(&e->gatherings, g, link);
		e->counters.n_in_hand++;
		ask_merge_base(g); /* the gathering may end inside this call */
	}
	if (e->n_ended)
		bell_ring(e->bell);
}

static void on_evidence_claimed(struct store_query *q)
{
	struct evidence *e = CONTAINER_OF(q, struct evidence, claim.q);

	if (q->err && !e->is_closing) {
		log_event(LOG_WARN, "evidence_unread", LOG_S("error", q->why.text));
		bell_retry(e->bell);
	} else {
		if (!e->is_closing) {
			bell_by(e->bell, e->claim.next_ms);
			start_gatherings(e);
		}
		bell_rest(e->bell);
	}
	claim_due_changes_release(&e->claim);
	if (e->is_closing)
		close_evidence_if_idle(e);
}

static void claim_evidence(void *owner)
{
	struct evidence *e = owner;

	e->n_ended = 0;
	/* the end of one of them looks again, or evidence_on_seat() */
	if (e->counters.n_in_hand == GATHERINGS_MAX || !store_has_seat(e->deps.store, SEAT_EVIDENCE)) {
		bell_rest(e->bell);
		return;
	}
	e->claim = (struct claim_due_changes){
	    .q.done = on_evidence_claimed,
	    .now_ms = clock_wall_ms(),
	    .limit = 2 * GATHERINGS_MAX,
	};
	if (store_claim_due_changes(e->deps.store, &e->claim))
		bell_retry(e->bell);
}

static void on_evidence_topic(unsigned topics, void *owner)
{
	(void)topics;
	bell_ring(((struct evidence *)owner)->bell);
}

static void on_evidence_seat(enum seat seat, bool has_seat, void *owner)
{
	(void)seat;
	if (has_seat)
		bell_now(((struct evidence *)owner)->bell);
}

static bool is_evidence_idle(enum seat seat, void *owner)
{
	(void)seat;
	return LIST_EMPTY(&((struct evidence *)owner)->gatherings);
}

/* ---- life ---- */

struct evidence *evidence_new(const struct evidence_deps *deps)
{
	struct evidence *e = xcalloc(1, sizeof(*e));

	e->deps = *deps;
	e->bell = bell_new(deps->loop, claim_evidence, e);
	store_subscribe(deps->store, STORE_ATTRIBUTION, on_evidence_topic, e);
	store_add_part(deps->store, &(struct seat_part){SEAT_EVIDENCE, on_evidence_seat, is_evidence_idle, e});
	bell_now(e->bell);
	return e;
}

void evidence_close(struct evidence *e, void (*on_closed)(void *owner), void *owner)
{
	struct gathering *g;

	assert(!e->is_closing);
	e->is_closing = true;
	e->on_closed = on_closed;
	e->owner = owner;
	bell_stop(e->bell);
	LIST_FOREACH (g, &e->gatherings, link)
		if (g->on_wire)
			github_cancel(e->deps.github, g->on_wire);
	close_evidence_if_idle(e);
}

void evidence_free(struct evidence *e)
{
	if (!e)
		return;
	assert(e->is_closed);
	for (size_t i = 0; i < REFUSED_MAX; i++)
		free(e->refused[i].base_ref);
	bell_free(e->bell);
	free(e);
}

void evidence_read_counters(const struct evidence *e, struct evidence_counters *ret) { *ret = e->counters; }
