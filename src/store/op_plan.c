/* A plan meets what is known: in one transaction the PR's head moves, what that ends ends,
 * and each runner that wants the change gets at most one dispatch a round. Everything here
 * may be applied twice. */
#include "base/alloc.h"
#include "base/str.h"
#include "store/branch_commits.h"
#include "store/changes.h"
#include "store/closing.h"
#include "store/delivery_row.h"
#include "store/key.h"
#include "store/plan_apply.h"
#include "store/requests.h"
#include "store/retest.h"
#include "store/starts.h"
#include "store/stored_change.h"
#include "store/thinning.h"

struct applying {
	struct db *d;
	struct apply_plan *op;
	const struct plan *plan;
	struct stored_pull known; /* before this plan */
	bool is_stale;
	bool is_new_head; /* the PR had another one before, or is new */
	bool is_lead;     /* change_lead(): others begin no round */
	/* The best rank of the authors of other open PRs that have this head; -1: there is none. */
	int others_rank;
	int64_t change_id;
	bool is_released;  /* ok-to-test has let this head in */
	bool has_requests; /* the delivery's body is going to be sent */
};

static const char *text(const char *s)
{
	return s ? s : "";
}

/* A push to a head that the PR had left already when its newest push came. */
static bool is_overtaken(struct db *d, const struct stored_pull *known, const struct plan *p)
{
	return p->before && db_has(d,
				"SELECT 1 FROM pull_head h JOIN change c ON c.id = h.change_id"
				" WHERE h.repository_key = ?1 AND h.number = ?2"
				" AND c.head_sha = ?3 AND c.id <> ?4 LIMIT 1",
				V_TEXT(repository_key(p->repository).text), V_INT(p->pull.number),
				V_TEXT(p->before), V_INT(known->change_id));
}

/* GitHub's updated_at has whole seconds: what comes with the same one as `closed` did not
 * come after it, unless it says so; of two pushes the later one replaced the other's head. */
static bool is_older(struct db *d, const struct stored_pull *known, const struct plan *p)
{
	if (!known->is_known || !p->pull.updated_ms)
		return false;
	if (p->pull.updated_ms != known->updated_ms)
		return p->pull.updated_ms < known->updated_ms;
	if (is_overtaken(d, known, p))
		return true;
	return !known->is_open && p->pull.is_open && p->kind != PLAN_CLOSE &&
	       strcmp(text(p->original_action), "reopened") != 0;
}

static int64_t put_change(struct applying *a)
{
	const struct plan *p = a->plan;
	struct change_facts f = {
	    .kind = p->change_kind,
	    .repository = p->repository,
	    .head_sha = p->head_sha,
	    .ref = p->ref,
	    .base_ref = p->pull.base_ref,
	    .base_sha = p->pull.base_sha,
	    .title = p->title ? p->title : p->pull.title,
	    .author = p->author ? p->author : p->pull.author,
	};

	return change_put(a->d, &f, a->op->now_ms);
}

/* ---- who starts ---- */

/* This PR's author is not trusted, but that of another open one with this head is: so the head is. Yet
 * a PR whose own author is not trusted starts nothing because of that, and holds nothing. */
static bool is_vouched(const struct applying *a, const struct plan_want *w)
{
	return w->held_reason && a->others_rank >= (int)w->needs;
}

static struct stored_dispatch row_of(const struct applying *a, const struct plan_want *w,
    int64_t round, int64_t round_ms, bool is_held)
{
	const struct plan *p = a->plan;
	/* `closed` is for what a plan drops, never for what it starts. */
	bool is_closed = strcmp(text(p->sent_action), "closed") == 0;
	struct stored_dispatch s = {
	    .accelerator = xstrdup(w->accelerator),
	    .runner = xstrdup(w->runner),
	    .change_id = a->change_id,
	    .kind = w->kind,
	    .target = xstrdup(text(w->target)),
	    .round = round,
	    .round_ms = round_ms,
	    .state = is_held ? DISPATCH_HELD : DISPATCH_QUEUED,
	    .held_reason = xstrdup_or_null(is_vouched(a, w) ? NULL : w->held_reason),
	    .is_held_for_good = is_held && w->is_held_for_good,
	    .number = p->pull.number,
	    .delivery_guid = xstrdup(a->op->guid),
	    .event_type = xstrdup(text(p->event_type)),
	    .sent_action = xstrdup(is_closed ? "synchronize" : text(p->sent_action)),
	    .original_action = xstrdup(text(p->original_action)),
	    .acknowledge_ms = w->acknowledge_ms,
	    .start_ms = w->start_ms,
	    .finish_ms = w->finish_ms,
	};

	if (w->kind == RUNNER_GITHUB || w->kind == RUNNER_INFRA)
		s.target_key = xstrdup(repository_key(s.target).text);
	else
		s.target_key = xasprintf("%s/%s", w->accelerator, w->runner);
	return s;
}

static const struct stored_dispatch *find_last(
    const struct dispatch_list *l, const struct plan_want *w)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->at[i].accelerator, w->accelerator) == 0 &&
		    strcmp(l->at[i].runner, w->runner) == 0)
			return &l->at[i];
	return NULL;
}

/* Does this event begin another round for a runner that had one? Once for each of GitHub's
 * times: the same event under another GUID has the same time. Without a time only the
 * first planning of a delivery can. */
static bool begins_round(const struct applying *a, const struct stored_dispatch *last)
{
	const struct plan *p = a->plan;

	if (!p->starts_round || !a->is_lead)
		return false;
	if (!p->event_ms)
		return !a->op->was_planned;
	return p->event_ms > last->round_ms || (a->known.is_known && !a->known.is_open);
}

/* Whether a retest means this want; noted for whoever asked for it. A head that nobody has
 * tested yet is tested by all who want it. */
static bool is_retested(
    struct applying *a, const struct plan_want *w, const struct stored_dispatch *last, bool is_held)
{
	struct apply_plan *o = a->op;
	enum retest_result result = retest_choose(a->d, a->plan, w, last);

	if (result == RETEST_NOT_MEANT)
		return a->is_new_head;
	o->retested = xrealloc(o->retested, (o->n_retested + 1) * sizeof(*o->retested));
	o->retested[o->n_retested++] = (struct retested){
	    .accelerator = xstrdup(w->accelerator),
	    .runner = xstrdup(w->runner),
	    .result = result == RETEST_STARTED && is_held ? RETEST_HELD : result,
	};
	return result == RETEST_STARTED;
}

/* Somebody ended it on purpose: only a new round begins it again. */
static bool is_called_off(const struct stored_dispatch *s)
{
	return s->last_error && str_has_prefix(s->last_error, CALLED_OFF_BY);
}

/* A push may have to wait for its turn, or make way for a newer one. A retest of it does not. */
static void add_row(struct applying *a, const struct plan_want *w, struct stored_dispatch row,
    const struct stored_dispatch *last, struct starts *starts)
{
	const struct plan *p = a->plan;
	struct repository_key key = repository_key(p->repository);
	const struct push_slot slot = {
	    .repository_key = key.text,
	    .ref = p->ref,
	    .head_sha = p->head_sha,
	    .every_ms = w->every_ms,
	    .now_ms = a->op->now_ms,
	};

	if (w->every_ms > 0 && p->change_kind == CHANGE_PUSH && !p->starts_round &&
	    !thinning_take_slot(a->d, &row, &slot))
		stored_dispatch_release(&row);
	else
		starts_add(starts, row, last);
}

static void add_start(struct applying *a, const struct plan_want *w,
    const struct stored_dispatch *last, struct starts *starts)
{
	bool is_held =
	    w->held_reason && !is_vouched(a, w) && (w->is_held_for_good || !a->is_released);
	int64_t event_ms = a->plan->event_ms ? a->plan->event_ms : a->op->now_ms;
	int64_t round_ms = a->plan->starts_round && a->is_lead ? event_ms : 0;

	if (is_vouched(a, w) && !a->is_released && !a->plan->n_retests)
		return;
	if (a->plan->n_retests && !is_retested(a, w, last, is_held))
		return;
	if (!last) {
		add_row(a, w, row_of(a, w, 1, round_ms, is_held), NULL, starts);
		return;
	}
	if (round_ms < last->round_ms)
		round_ms = last->round_ms;
	if (last->state == DISPATCH_HELD) {
		if (!is_held)
			starts_add(starts, row_of(a, w, last->round, round_ms, false), last);
		return;
	}
	if (a->plan->n_retests || begins_round(a, last) ||
	    (!a->is_stale && !is_called_off(last) &&
		(last->state == DISPATCH_SUPERSEDED || last->state == DISPATCH_CANCELLED)))
		add_row(a, w, row_of(a, w, last->round + 1, round_ms, is_held), last, starts);
}

/* Whoever asked for a retest is told under which id it runs. */
static void note_ids(struct apply_plan *o, const struct starts *starts)
{
	for (size_t i = 0; i < o->n_retested; i++)
		for (size_t k = 0; k < starts->n; k++)
			if (strcmp(o->retested[i].accelerator, starts->at[k].row.accelerator) ==
				0 &&
			    strcmp(o->retested[i].runner, starts->at[k].row.runner) == 0)
				snprintf(o->retested[i].id, ID_BYTES, "%s", starts->at[k].row.id);
}

static int rank_of_others(struct applying *a)
{
	struct rows *r = db_rows(a->d,
	    "SELECT association FROM pull WHERE change_id = ?1 AND state = 'open'"
	    " AND number <> ?2",
	    V_INT(a->change_id), V_INT(a->plan->pull.number));
	int best = -1;

	while (rows_next(r)) {
		int one = (int)author_rank_of(rows_text(r, 0));

		best = one > best ? one : best;
	}
	return best;
}

static void start_wants(struct applying *a)
{
	struct dispatch_list before = change_dispatches(a->d, a->change_id);
	struct starts starts = {0};

	a->is_lead =
	    !a->plan->pull.number || change_lead(a->d, a->change_id) == a->plan->pull.number;
	a->others_rank = a->plan->pull.number ? rank_of_others(a) : -1;
	a->is_released = db_has(
	    a->d, "SELECT 1 FROM change WHERE id = ?1 AND is_released = 1", V_INT(a->change_id));
	for (size_t i = 0; i < a->plan->n_wants; i++) {
		const struct plan_want *w = &a->plan->wants[i];

		if (a->is_new_head || !w->is_for_new_head)
			add_start(a, w, find_last(&before, w), &starts);
	}
	starts_run(a->d, &starts, a->op->now_ms);
	note_ids(a->op, &starts);
	a->op->n_new_dispatches = (int)starts.n;
	a->has_requests |= starts.n > 0;
	starts_release(&starts);
	dispatch_list_release(&before);
}

/* ---- the whole plan ---- */

static void apply_pull(struct applying *a)
{
	const struct plan *p = a->plan;
	struct pull_info pull = p->pull;
	struct closing closing = {a->d, p, a->op->guid, a->op->now_ms};

	a->known = pull_find(a->d, p->repository, pull.number);
	a->is_stale = a->op->is_stale = is_older(a->d, &a->known, p);
	if (a->is_stale) {
		/* An older event about the head that the PR still has may yet have something
		 * to start: GitHub promises no order. */
		a->change_id = change_find(a->d, p->change_kind, p->repository, p->head_sha);
		if (p->kind == PLAN_START && a->known.is_open && a->change_id == a->known.change_id)
			start_wants(a);
		return;
	}
	a->change_id = put_change(a);
	a->is_new_head = a->known.change_id != a->change_id;
	if (p->kind == PLAN_CLOSE)
		pull.is_open = false;
	pull_put(a->d, p->repository, &pull, a->change_id,
	    pull.updated_ms ? pull.updated_ms : a->op->now_ms);
	if (a->known.is_known && a->known.change_id != a->change_id)
		change_settle(a->d, a->known.change_id, a->op->now_ms);
	change_settle(a->d, a->change_id, a->op->now_ms);
	if (p->kind != PLAN_CLOSE && pull.is_open)
		closing_note_wanted(&closing, a->change_id);
	if (p->drops)
		a->has_requests |= closing_drop(&closing, a->change_id) > 0;
	if (p->kind == PLAN_CLOSE)
		a->has_requests |= closing_tell(&closing) > 0;
	if (p->kind != PLAN_CLOSE && pull.is_open)
		start_wants(a);
	comment_wish_pull(a->d, p->repository, pull.number, WISH_UPDATE, a->op->now_ms);
}

/* The branch's history, whoever wants the push. A commit's own time is its author's to say: what
 * lies in the future counts as now, so that retention finds it one day. */
static void keep_commits(const struct applying *a)
{
	const struct plan *p = a->plan;
	struct branch_commit *list = xcalloc(p->n_commits + 1, sizeof(*list));

	for (size_t i = 0; i < p->n_commits; i++) {
		const struct push_commit *c = &p->commits[i];
		bool is_sane = c->at_ms > 0 && c->at_ms < a->op->now_ms;

		list[i] = (struct branch_commit){
		    c->sha, c->author, c->title, is_sane ? c->at_ms : a->op->now_ms};
	}
	if (p->n_commits)
		branch_commits_put(a->d, p->repository, p->ref, p->before, list, p->n_commits);
	free(list);
}

static void apply_push(struct applying *a)
{
	a->change_id = put_change(a);
	keep_commits(a);
	if (a->plan->kind == PLAN_START)
		start_wants(a);
}

void plan_apply(struct db *d, struct apply_plan *o)
{
	struct applying a = {.d = d, .op = o, .plan = o->plan};
	const struct plan *p = o->plan;

	if (p->pull.number)
		apply_pull(&a);
	else
		apply_push(&a);
	if (!o->delivery_id && o->body && a.has_requests)
		delivery_put_synthetic(d, o->guid, text(p->event_type), text(p->original_action),
		    p->repository, o->body, o->body_bytes, o->now_ms);
	o->change_id = a.change_id;
}

static int apply_run(struct store_op *op, struct db *d)
{
	struct apply_plan *o = CONTAINER_OF(op, struct apply_plan, op);
	const struct plan *p = o->plan;

	o->change_id = 0;
	o->n_new_dispatches = 0;
	o->is_stale = o->was_planned = false;
	if (o->delivery_id) {
		struct delivery_place at = delivery_find(d, o->delivery_id);

		if (!at.state[0])
			return ERR_NOT_FOUND;
		o->was_planned = at.was_planned;
		if (strcmp(at.state, "planned") == 0)
			return 0;
		delivery_enter(d, o->delivery_id, p->kind == PLAN_IGNORE ? "ignored" : "planned",
		    p->kind == PLAN_IGNORE ? p->reason : NULL, o->now_ms);
	}
	if (p->kind != PLAN_IGNORE)
		plan_apply(d, o);
	return 0;
}

int store_apply_plan(struct store *s, struct apply_plan *op)
{
	op->op.run = apply_run;
	op->op.bytes = sizeof(*op) + op->body_bytes;
	return store_submit(s, &op->op);
}
