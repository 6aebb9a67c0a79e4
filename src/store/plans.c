#include "store/plans.h"

#include "db/key.h"
#include "db/record_rows.h"
#include "store/branch_commits.h"
#include "store/changes.h"
#include "store/closing.h"
#include "store/deliveries.h"
#include "store/dispatches.h"
#include "store/requests.h"
#include "store/starts.h"

/* ---- retests ---- */

const char *retest_result_name(enum retest_result r)
{
	static const char *const names[N_RETEST_RESULTS] = {
	    [RETEST_STARTED] = "started",
	    [RETEST_NOT_MEANT] = "not meant",
	    [RETEST_RUNNING] = "still running",
	    [RETEST_HELD] = "held",
	    [RETEST_CLEAN] = "clean",
	    [RETEST_NO_SUITE] = "no such suite",
	};

	return names[r];
}

void retested_release(struct retested *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		FREE_ALL(list[i].accelerator, list[i].runner);
	free(list);
}

/* It has ended, all its jobs have a verdict, and none is red. */
static bool round_is_clean(const struct view *d, const struct stored_dispatch *s)
{
	return s->state == DISPATCH_DONE &&
	       db_has(d,
		   "SELECT 1 FROM job WHERE change_id = ?1 AND dispatch_id = ?2 AND accelerator = ?3 AND is_current = 1"
		   " LIMIT 1",
		   V_INT(s->change_id), V_TEXT(s->id), V_TEXT(s->accelerator)) &&
	       !db_has(d,
		   "SELECT 1 FROM job WHERE change_id = ?1 AND dispatch_id = ?2 AND accelerator = ?3 AND is_current = 1"
		   " AND (verdict IS NULL OR verdict IN ('FAIL', 'ERROR', 'MISS')) LIMIT 1",
		   V_INT(s->change_id), V_TEXT(s->id), V_TEXT(s->accelerator));
}

/* A job without tests is a cell of its workflow: that name is its suite. */
static bool round_has_suite(const struct view *d, const struct stored_dispatch *s, const char *suite)
{
	return db_has(d,
	    "SELECT 1 FROM job j WHERE j.change_id = ?1 AND j.dispatch_id = ?2 AND j.accelerator = ?3 AND j.runner = ?4"
	    " AND j.is_current = 1 AND (lower(j.workflow) = lower(?5) OR EXISTS (SELECT 1 FROM job_test r CROSS JOIN "
	    "test t"
	    " ON t.id = r.test_id WHERE r.job_id = j.id AND lower(t.suite) = lower(?5))) LIMIT 1",
	    V_INT(s->change_id), V_TEXT(s->id), V_TEXT(s->accelerator), V_TEXT(s->runner), V_TEXT(suite));
}

static enum retest_result choose_retest(
    const struct view *d, const struct retest *r, const struct plan_want *w, const struct stored_dispatch *last)
{
	/* The infra repository itself gets each change; only the accelerators that it hosts are tested. */
	if (!w->accelerator[0] || (r->accelerator && strcasecmp(r->accelerator, w->accelerator) != 0) ||
	    (r->runner && strcmp(r->runner, w->runner) != 0))
		return RETEST_NOT_MEANT;
	if (last && last->state == DISPATCH_HELD)
		return w->held_reason ? RETEST_HELD : RETEST_STARTED;
	if (last && last->ended_how == ENDED_DECLINED)
		return RETEST_HELD;
	if (last && dispatch_is_unfinished(last->state))
		return RETEST_RUNNING;
	if (r->suite && !(last && round_has_suite(d, last, r->suite)))
		return RETEST_NO_SUITE;
	return !r->accelerator && last && round_is_clean(d, last) ? RETEST_CLEAN : RETEST_STARTED;
}

struct applying {
	struct txn *d;
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
	bool has_requests; /* the body of the delivery will be sent */
};

static const char *text_or_empty(const char *s) { return s ? s : ""; }

/* GitHub's updated_at has whole seconds. An event with the same time as `closed` is not newer, unless it is a reopen; of two
 * pushes the later one replaced the head of the other. */
static bool event_is_older(const struct view *d, const struct stored_pull *known, const struct plan *p)
{
	if (!known->is_known || !p->pull.updated_ms)
		return false;
	if (p->pull.updated_ms != known->updated_ms)
		return p->pull.updated_ms < known->updated_ms;
	if (p->before && db_has(d,
			     "SELECT 1 FROM pull_head h JOIN change c ON c.id = h.change_id WHERE h.repository_key = ?1"
			     " AND h.number = ?2 AND c.head_sha = ?3 AND c.id <> ?4 LIMIT 1",
			     V_TEXT(repository_key(p->repository).text), V_INT(p->pull.number), V_TEXT(p->before),
			     V_INT(known->change_id)))
		return true; /* the pull request had left the head of this push before its newest push came */
	return !known->is_open && p->pull.is_open && p->kind != PLAN_CLOSE &&
	       strcmp(text_or_empty(p->original_action), "reopened") != 0;
}

static int64_t put_planned_change(struct applying *a)
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

/* ---- the dispatches that a plan starts ---- */

/* This pull request's author is not trusted, but the author of another open one with this head is, so the head is trusted. The
 * pull request of the author who is not trusted starts nothing because of that, and holds nothing. */
static bool want_is_vouched(const struct applying *a, const struct plan_want *w)
{
	return w->held_reason && a->others_rank >= (int)w->needs;
}

static struct stored_dispatch dispatch_of_want(
    const struct applying *a, const struct plan_want *w, int64_t round, int64_t round_ms, bool is_held)
{
	const struct plan *p = a->plan;
	/* `closed` is sent for dropped dispatches, never for started ones. */
	bool is_closed = strcmp(text_or_empty(p->sent_action), "closed") == 0;
	struct stored_dispatch s = {
	    .accelerator = xstrdup(w->accelerator),
	    .runner = xstrdup(w->runner),
	    .change_id = a->change_id,
	    .kind = w->kind,
	    .target = xstrdup(text_or_empty(w->target)),
	    .round = round,
	    .round_ms = round_ms,
	    .state = is_held ? DISPATCH_HELD : DISPATCH_QUEUED,
	    .held_reason = xstrdup_or_null(want_is_vouched(a, w) ? NULL : w->held_reason),
	    .is_held_for_good = is_held && w->is_held_for_good,
	    .number = p->pull.number,
	    .delivery_guid = xstrdup(a->op->guid),
	    .event_type = xstrdup(text_or_empty(p->event_type)),
	    .sent_action = xstrdup(is_closed ? "synchronize" : text_or_empty(p->sent_action)),
	    .original_action = xstrdup(text_or_empty(p->original_action)),
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

/* Whether a retest means this runner; the best result of the retests is noted for the answer. A head that no runner has tested
 * yet is tested by all of them. */
static bool note_retested(
    struct applying *a, const struct plan_want *w, const struct stored_dispatch *last, bool is_held)
{
	struct apply_plan *o = a->op;
	enum retest_result best = RETEST_NOT_MEANT;

	for (size_t i = 0; i < a->plan->n_retests && best != RETEST_STARTED; i++) {
		enum retest_result one = choose_retest(a->d->view, &a->plan->retests[i], w, last);

		if (one != RETEST_NOT_MEANT && (best == RETEST_NOT_MEANT || one < best))
			best = one;
	}
	if (best == RETEST_NOT_MEANT)
		return a->is_new_head;
	*ARRAY_PUSH(o->retested, o->n_retested) = (struct retested){
	    .accelerator = xstrdup(w->accelerator),
	    .runner = xstrdup(w->runner),
	    .result = best == RETEST_STARTED && is_held ? RETEST_HELD : best,
	};
	return best == RETEST_STARTED;
}

/* A push may have to wait for its slot, or give way to a newer one. A retest does not. */
static void add_new_start(struct applying *a, const struct plan_want *w, struct stored_dispatch row,
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
	    !starts_occupy_push_slot(a->d, &row, &slot))
		stored_dispatch_release(&row);
	else
		starts_add(starts, row, last);
}

static void add_want(
    struct applying *a, const struct plan_want *w, const struct stored_dispatch *last, struct starts *starts)
{
	bool is_held = w->held_reason && !want_is_vouched(a, w) && (w->is_held_for_good || !a->is_released);
	int64_t event_ms = a->plan->event_ms ? a->plan->event_ms : a->op->now_ms;
	int64_t round_ms = a->plan->starts_round && a->is_lead ? event_ms : 0;
	bool begins_round;

	if (want_is_vouched(a, w) && !a->is_released && !a->plan->n_retests)
		return;
	if (a->plan->n_retests && !note_retested(a, w, last, is_held))
		return;
	if (!last) {
		add_new_start(a, w, dispatch_of_want(a, w, 1, round_ms, is_held), NULL, starts);
		return;
	}
	if (round_ms < last->round_ms)
		round_ms = last->round_ms;
	if (last->state == DISPATCH_HELD) {
		if (!is_held)
			starts_add(starts, dispatch_of_want(a, w, last->round, round_ms, false), last);
		return;
	}
	/* Each of GitHub's times begins at most one other round, because the same event with another GUID has the same time.
	 * An event without a time begins one only when its delivery is planned first. */
	begins_round =
	    a->plan->starts_round && a->is_lead &&
	    (a->plan->event_ms ? a->plan->event_ms > last->round_ms || (a->known.is_known && !a->known.is_open)
			       : !a->op->was_planned);
	/* Only a new round starts a runner again that a person cancelled. */
	if (a->plan->n_retests || begins_round ||
	    (!a->is_stale && last->ended_how != ENDED_CANCELLED && dispatch_is_called_off(last->state)))
		add_new_start(a, w, dispatch_of_want(a, w, last->round + 1, round_ms, is_held), last, starts);
}

/* Notes the id of the new dispatch for the answer to the retest. */
static void note_retest_ids(struct apply_plan *o, const struct starts *starts)
{
	for (size_t i = 0; i < o->n_retested; i++)
		for (size_t k = 0; k < starts->n; k++)
			if (strcmp(o->retested[i].accelerator, starts->at[k].row.accelerator) == 0 &&
			    strcmp(o->retested[i].runner, starts->at[k].row.runner) == 0)
				snprintf(o->retested[i].id, ID_BYTES, "%s", starts->at[k].row.id);
}

static void start_wants(struct applying *a)
{
	struct dispatch_list before = change_dispatches(a->d->view, a->change_id);
	struct starts starts = {.offer = &a->op->offer};
	int64_t number = a->plan->pull.number;
	struct rows *r = db_rows(a->d,
	    "SELECT association FROM pull WHERE change_id = ?1 AND state = 'open' AND number <> ?2 AND ?2 <> 0",
	    V_INT(a->change_id), V_INT(number));

	a->others_rank = -1;
	while (rows_next(r)) {
		int one = (int)author_rank_of(rows_key(r));

		a->others_rank = one > a->others_rank ? one : a->others_rank;
	}
	a->is_lead = !number || change_lead(a->d->view, a->change_id) == number;
	a->is_released = db_has(a->d, "SELECT 1 FROM change WHERE id = ?1 AND is_released = 1", V_INT(a->change_id));
	for (size_t i = 0; i < a->plan->n_wants; i++) {
		const struct plan_want *w = &a->plan->wants[i];
		const struct stored_dispatch *last = NULL;

		for (size_t k = 0; k < before.n && !last; k++)
			if (strcmp(before.at[k].accelerator, w->accelerator) == 0 &&
			    strcmp(before.at[k].runner, w->runner) == 0)
				last = &before.at[k];
		if (a->is_new_head || !w->is_for_new_head)
			add_want(a, w, last, &starts);
	}
	starts_run(a->d, &starts, a->op->now_ms);
	note_retest_ids(a->op, &starts);
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

	a->known = pull_find(a->d->view, p->repository, pull.number);
	a->is_stale = a->op->is_stale = event_is_older(a->d->view, &a->known, p);
	if (a->is_stale) {
		/* An older event about the current head of the pull request may still have something
		 * to start, because GitHub does not keep the order. */
		a->change_id = change_find(a->d->view, p->change_kind, p->repository, p->head_sha);
		if (p->kind == PLAN_START && a->known.is_open && a->change_id == a->known.change_id)
			start_wants(a);
		return;
	}
	a->change_id = put_planned_change(a);
	a->is_new_head = a->known.change_id != a->change_id;
	if (p->kind == PLAN_CLOSE)
		pull.is_open = false;
	pull_put(a->d, p->repository, &pull, a->change_id, pull.updated_ms ? pull.updated_ms : a->op->now_ms);
	if (a->known.is_known && a->known.change_id != a->change_id)
		change_settle(a->d, a->known.change_id, a->op->now_ms);
	change_settle(a->d, a->change_id, a->op->now_ms);
	if (p->kind != PLAN_CLOSE && pull.is_open)
		closing_note_needed(&closing, a->change_id);
	if (p->drops)
		a->has_requests |= closing_drop(&closing, a->change_id) > 0;
	if (p->kind == PLAN_CLOSE)
		a->has_requests |= closing_send(&closing) > 0;
	if (p->kind != PLAN_CLOSE && pull.is_open)
		start_wants(a);
	comment_request_pull(a->d, p->repository, pull.number, COMMENT_UPDATE, a->op->now_ms);
}

/* Records the history of the branch, also if no runner tests the push. The author chooses a commit's time: a time in the
 * future counts as now, so that retention deletes it one day. */
static void keep_commits(const struct applying *a)
{
	const struct plan *p = a->plan;
	struct branch_commit *list;

	if (!p->n_commits)
		return;
	list = xcalloc(p->n_commits, sizeof(*list));
	for (size_t i = 0; i < p->n_commits; i++) {
		const struct push_commit *c = &p->commits[i];
		bool is_sane = c->at_ms > 0 && c->at_ms < a->op->now_ms;

		list[i] = (struct branch_commit){.sha = c->sha,
		    .author = c->author,
		    .title = c->title,
		    .at_ms = is_sane ? c->at_ms : a->op->now_ms,
		    .files = json_text_of_strings((const char *const *)c->files)};
	}
	branch_commits_put(a->d, p->repository, p->ref, p->before, list, p->n_commits);
	for (size_t i = 0; i < p->n_commits; i++)
		free((char *)list[i].files);
	free(list);
}

void plan_apply(struct txn *d, struct apply_plan *o)
{
	struct applying a = {.d = d, .op = o, .plan = o->plan};
	const struct plan *p = o->plan;

	if (p->pull.number) {
		apply_pull(&a);
	} else {
		a.change_id = put_planned_change(&a);
		keep_commits(&a);
		if (p->kind == PLAN_START)
			start_wants(&a);
	}
	if (!o->delivery_id && o->body && a.has_requests)
		delivery_put_synthetic(d, o->guid, text_or_empty(p->event_type), text_or_empty(p->original_action),
		    p->repository, o->body, o->body_bytes, o->now_ms);
	o->change_id = a.change_id;
}

static int apply_plan_run(struct store_op *op, struct txn *d)
{
	struct apply_plan *o = CONTAINER_OF(op, struct apply_plan, op);
	const struct plan *p = o->plan;

	o->change_id = 0;
	o->n_new_dispatches = 0;
	outbox_offer_release(&o->offer); /* of an attempt that failed */
	o->is_stale = o->was_planned = false;
	if (o->delivery_id) {
		struct delivery_place at = delivery_find(d->view, o->delivery_id);

		if (at.state == N_DELIVERY_STATES)
			return ERR_NOT_FOUND;
		o->was_planned = at.was_planned;
		if (at.state == DELIVERY_IS_PLANNED)
			return 0;
		delivery_enter(d, o->delivery_id, p->kind == PLAN_IGNORE ? DELIVERY_IS_IGNORED : DELIVERY_IS_PLANNED,
		    p->kind == PLAN_IGNORE ? p->reason : NULL, o->now_ms);
	}
	if (p->kind != PLAN_IGNORE)
		plan_apply(d, o);
	outbox_offer_read(d->view, &o->offer);
	return 0;
}
STORE_HEAVY_OPERATION(apply_plan, op->body_bytes)
