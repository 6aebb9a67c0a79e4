#include "store/claims.h"

#include "experiments/experiments.h"
#include "store/changes.h"
#include "store/dispatches.h"
#include "store/jobs.h"
#include "store/leases.h"
#include "store/schedules.h"
#include "verdict/cells_moved.h"

/* ---- the offer ---- */

static void offer_lease(struct claim_dispatch *o, const struct stored_lease *l)
{
	o->is_found = true;
	o->offer.lease_id = xstrdup(l->id);
	o->offer.lease_ms = l->lease_ms;
	o->offer.attempt = (int)l->attempt;
	o->offer.job_id = l->job_id;
	o->offer.dispatch_id = xstrdup(l->dispatch_id);
	o->offer.accelerator = xstrdup(l->accelerator);
	o->offer.runner = xstrdup(l->runner);
	o->offer.run_id = xstrdup(l->dispatch_id);
}

/* While the pull request still has this head, its base is newer than that of the change. */
#define OF_PULL_OR_CHANGE(column)                                                                                      \
	"CASE WHEN p.change_id = c.id THEN COALESCE(p." column ", c." column ") ELSE c." column " END"
#define OFFERED_CHANGE_RECORD(F, S)                                                                                    \
	F(S, CHANGE_KIND, kind, NULL, "c.kind", "")                                                                    \
	F(S, TEXT, repository, NULL, "c.repository", "")                                                               \
	F(S, TEXT, head_sha, NULL, "c.head_sha", "")                                                                   \
	F(S, TEXT, ref, NULL, "CASE WHEN c.kind <> 'pull_request' THEN c.ref END", "")                                 \
	F(S, TEXT, title, NULL, "COALESCE(p.title, c.title)", "")                                                      \
	F(S, TEXT, author, NULL, "COALESCE(p.author, c.author)", "")                                                   \
	F(S, TEXT, base_ref, NULL, OF_PULL_OR_CHANGE("base_ref"), "")                                                  \
	F(S, TEXT, base_sha, NULL, OF_PULL_OR_CHANGE("base_sha"), "")
RECORD_DEFINE_PART(offered_change, lease_offer, OFFERED_CHANGE_RECORD);

static void offer_change(const struct view *d, struct claim_dispatch *o, const struct stored_dispatch *s)
{
	struct lease_offer *to = &o->offer;
	struct source_head *sources = NULL;
	size_t n_sources = 0;

	RECORD_READ_FIRST(d, offered_change, OFFERED_CHANGE_RECORD, to,
	    "FROM change c LEFT JOIN pull p ON p.repository_key = c.repository_key AND p.number = ?2 WHERE c.id = ?1",
	    V_INT(s->change_id), V_INT(s->number));
	to->number = s->number;
	to->event_type = xstrdup(s->event_type);
	to->action = xstrdup(s->sent_action);
	to->delivery_id = xstrdup(s->delivery_guid);
	if (to->kind == CHANGE_NIGHTLY)
		schedule_run_source(d, s->change_id, s->accelerator, &sources, &n_sources);
	if (n_sources) {
		to->source_git_url = xstrdup_or_null(sources->git_url);
		to->source_branch = xstrdup_or_null(sources->branch);
		to->source_sha = xstrdup(sources->sha);
		source_head_release(sources);
	}
	free(sources);
	if (to->kind != CHANGE_EXPERIMENT)
		return;
	/* The pull request that the experiment explains, and the branch that has the merge base. */
	free(to->ref);
	to->ref = db_text(d,
	    "SELECT 'refs/heads/' || c.base_ref FROM experiment e JOIN change c"
	    " ON c.id = e.change_id WHERE e.run_change_id = ?1",
	    V_INT(s->change_id));
	to->number = experiment_pull(d, s->change_id);
	to->experiment = xcalloc(1, sizeof(*to->experiment));
	if (!experiment_request_read(d, s->id, to->experiment))
		FREE_AND_NULL(to->experiment);
}

/* The machine asks again for a lease that it has: this counts as a heartbeat. */
static bool offer_known(struct txn *d, struct claim_dispatch *o)
{
	struct stored_dispatch s;
	struct stored_lease l;
	struct rows *r = db_exec_rows(d,
	    "UPDATE lease SET " LEASE_RENEWED " WHERE accelerator = ?1 AND machine = ?2"
	    " AND claim_id = ?3 AND state = 'active' RETURNING " LEASE_COLUMNS,
	    V_TEXT(o->accelerator), V_TEXT(o->machine), V_TEXT(o->claim_id), V_INT(o->now_ms), V_INT(o->lease_ms));
	bool is_known = stored_lease_read(r, &l);

	if (is_known && lease_dispatch(d->view, &l, &s)) {
		o->was_known = true;
		offer_lease(o, &l);
		offer_change(d->view, o, &s);
		stored_dispatch_release(&s);
	}
	stored_lease_release(&l);
	return is_known;
}

/* The dispatches of a runner that a machine may claim now. */
#define CLAIMABLE                                                                                                      \
	" FROM dispatch WHERE accelerator = ?1 AND runner = ?2 AND kind = 'pull'"                                      \
	" AND state = 'queued' AND is_current = 1 AND COALESCE(not_before_ms, 0) <= ?3"

/* The newest first run that waits for a runner with room. Without one, the oldest experiment of the first runner that has room
 * and has one. */
static const struct claim_choice *choose_claim(
    const struct view *d, const struct claim_dispatch *o, struct stored_dispatch *ret)
{
	const struct claim_choice *choice = NULL, *c;
	struct stored_dispatch s;

	*ret = (struct stored_dispatch){0};
	for (c = o->choices; c < o->choices + o->n_choices; c++) {
		if (lease_count_first(d, o->accelerator, c->runner) >= c->max_parallel ||
		    !stored_dispatch_read(db_rows(d,
					      "SELECT " DISPATCH_COLUMNS CLAIMABLE " AND " IS_FIRST_RUN
					      " ORDER BY created_ms DESC, id DESC LIMIT 1",
					      V_TEXT(o->accelerator), V_TEXT(c->runner), V_INT(o->now_ms)),
			&s))
			continue;
		if (choice && s.created_ms <= ret->created_ms) {
			stored_dispatch_release(&s);
			continue;
		}
		stored_dispatch_release(ret);
		*ret = s;
		choice = c;
	}
	for (c = o->choices; !choice && c < o->choices + o->n_choices; c++)
		if (lease_count_active(d, o->accelerator, c->runner) < c->max_parallel &&
		    !db_has(d, "SELECT 1" CLAIMABLE " AND " IS_FIRST_RUN " LIMIT 1", V_TEXT(o->accelerator),
			V_TEXT(c->runner), V_INT(o->now_ms)) &&
		    stored_dispatch_read(db_rows(d,
					     "SELECT " DISPATCH_COLUMNS CLAIMABLE " AND " IS_EXPERIMENT
					     " ORDER BY created_ms, change_id LIMIT 1",
					     V_TEXT(o->accelerator), V_TEXT(c->runner), V_INT(o->now_ms)),
			ret))
			choice = c;
	return choice;
}

static void grant_lease(
    struct txn *d, struct claim_dispatch *o, struct stored_dispatch *s, const struct claim_choice *choice)
{
	struct stored_lease l = {
	    .accelerator = s->accelerator,
	    .runner = s->runner,
	    .machine = (char *)o->machine,
	    .claim_id = (char *)o->claim_id,
	    .attempt = 1 + db_int(d, 0, "SELECT MAX(attempt) FROM lease WHERE dispatch_id = ?1", V_TEXT(s->id)),
	    .max_parallel = choice->max_parallel,
	    .lease_ms = o->lease_ms,
	    .until_ms = o->now_ms + o->lease_ms,
	};
	char name[] = LEASE_JOB_NAME;
	struct job_record job = {.job_id = 0};
	/* The job of the attempt is in progress, as if its machine had reported it. */
	struct job_report report = {
	    .status = JOB_IN_PROGRESS, .workflow = s->runner, .name = name, .run_id = s->id, .run_attempt = l.attempt};
	struct job_place at = job_place_of(d->view, s);

	if (strcmp(s->event_type, EXPERIMENT_EVENT) != 0)
		experiments_make_room(d, &l, o->now_ms);
	id_new(l.id);
	snprintf(l.dispatch_id, sizeof(l.dispatch_id), "%s", s->id);
	if (!o->is_silent)
		job = job_put(d, &at, &report, o->now_ms);
	l.job_id = job.job_id;
	lease_insert(d, &l, o->now_ms);
	dispatch_note_sent(d, s, o->now_ms);
	dispatch_enter(d, s, DISPATCH_RUNNING, NULL, o->now_ms);
	change_touch(d, s->change_id, o->now_ms);
	if (!o->is_silent)
		cells_moved(d, s->change_id, s->accelerator,
		    job.has_replaced ? CELLS_JOB_REPLACED : CELLS_LEASE_GRANTED, o->now_ms);
	offer_lease(o, &l);
	offer_change(d->view, o, s);
}

static int claim_dispatch_run(struct store_op *op, struct txn *d)
{
	struct claim_dispatch *o = CONTAINER_OF(op, struct claim_dispatch, op);
	const struct claim_choice *choice;
	struct stored_dispatch s;

	lease_offer_release(&o->offer);
	CLEAR_FROM(o, is_found);
	if (offer_known(d, o))
		return 0;
	choice = choose_claim(d->view, o, &s);
	if (choice)
		grant_lease(d, o, &s, choice);
	else
		/* the time at which the next push that waits for its slot can be claimed */
		o->next_ms = db_int(d, 0,
		    "SELECT not_before_ms FROM dispatch WHERE accelerator = ?1 AND kind = 'pull'"
		    " AND state = 'queued' AND not_before_ms > ?2 ORDER BY not_before_ms LIMIT 1",
		    V_TEXT(o->accelerator), V_INT(o->now_ms));
	stored_dispatch_release(&s);
	return 0;
}

int store_claim_dispatch(struct store *s, struct claim_dispatch *op)
{
	CLEAR_FROM(op, is_found);
	op->op.run = claim_dispatch_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

/* ---- how much waits ---- */

static int count_pull_work_run(struct store_query *query, const struct view *d)
{
	struct count_pull_work *q = CONTAINER_OF(query, struct count_pull_work, q);

	for (size_t i = 0; i < q->n; i++) {
		struct pull_work *w = &q->list[i];

		w->n_waiting = db_int(
		    d, 0, "SELECT COUNT(*)" CLAIMABLE, V_TEXT(q->accelerator), V_TEXT(w->runner), V_INT(q->now_ms));
		w->n_active = lease_count_active(d, q->accelerator, w->runner);
	}
	return 0;
}
STORE_QUERY(count_pull_work)
