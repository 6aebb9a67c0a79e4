/* A machine takes work, says that it is alive, hands the work back. */
#include "base/alloc.h"
#include "store/cells_moved.h"
#include "store/db.h"
#include "store/experiments.h"
#include "store/job_row.h"
#include "store/lease_handover.h"
#include "store/leases.h"
#include "store/schedule_runs.h"
#include "store/stored_change.h"
#include "store/stored_dispatch.h"

/* ---- claim ---- */

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

static void offer_source(struct db *d, struct claim_dispatch *o, const struct stored_dispatch *s)
{
	struct source_head *list = NULL;
	size_t n = 0;

	schedule_run_source(d, s->change_id, s->accelerator, &list, &n);
	if (n) {
		o->offer.source_git_url = xstrdup_or_null(list->git_url);
		o->offer.source_branch = xstrdup_or_null(list->branch);
		o->offer.source_sha = xstrdup(list->sha);
		source_head_release(list);
	}
	free(list);
}

/* The pull request that it explains, and the branch on which the merge base is. */
static void offer_experiment(
    struct db *d, struct claim_dispatch *o, const struct stored_dispatch *s)
{
	struct rows *r = db_rows(d,
	    "SELECT 'refs/heads/' || c.base_ref FROM experiment e JOIN change c"
	    " ON c.id = e.change_id WHERE e.run_change_id = ?1",
	    V_INT(s->change_id));

	if (rows_next(r)) {
		free(o->offer.ref);
		o->offer.ref = rows_dup(r, 0);
	}
	rows_end(r);
	o->offer.number = experiment_pull(d, s->change_id);
	o->offer.experiment = xcalloc(1, sizeof(*o->offer.experiment));
	if (!experiment_request_read(d, s->id, o->offer.experiment))
		FREE_AND_NULL(o->offer.experiment);
}

/* As far as the PR still has this head, its base is the newer truth. */
static void offer_change(struct db *d, struct claim_dispatch *o, const struct stored_dispatch *s)
{
	struct rows *r = db_rows(d,
	    "SELECT c.kind, c.repository, c.head_sha, c.ref, COALESCE(p.title, c.title),"
	    " COALESCE(p.author, c.author),"
	    " CASE WHEN p.change_id = c.id THEN COALESCE(p.base_ref, c.base_ref) ELSE c.base_ref"
	    " END,"
	    " CASE WHEN p.change_id = c.id THEN COALESCE(p.base_sha, c.base_sha) ELSE c.base_sha"
	    " END FROM change c LEFT JOIN pull p"
	    " ON p.repository_key = c.repository_key AND p.number = ?2 WHERE c.id = ?1",
	    V_INT(s->change_id), V_INT(s->number));

	if (rows_next(r)) {
		o->offer.kind = change_kind_parse(rows_text(r, 0));
		o->offer.repository = rows_dup(r, 1);
		o->offer.head_sha = rows_dup(r, 2);
		o->offer.ref = o->offer.kind != CHANGE_PULL_REQUEST ? rows_dup(r, 3) : NULL;
		o->offer.title = rows_dup(r, 4);
		o->offer.author = rows_dup(r, 5);
		o->offer.base_ref = rows_dup(r, 6);
		o->offer.base_sha = rows_dup(r, 7);
	}
	rows_end(r);
	o->offer.number = s->number;
	o->offer.event_type = xstrdup(s->event_type);
	o->offer.action = xstrdup(s->sent_action);
	o->offer.delivery_id = xstrdup(s->delivery_guid);
	if (o->offer.kind == CHANGE_NIGHTLY)
		offer_source(d, o, s);
	if (o->offer.kind == CHANGE_EXPERIMENT)
		offer_experiment(d, o, s);
}

/* Asking once more is a sign of life, too. */
static bool offer_known(struct db *d, struct claim_dispatch *o)
{
	struct stored_dispatch s;
	struct stored_lease l;
	bool is_known = stored_lease_take(
	    db_rows(d,
		"UPDATE lease SET until_ms = ?4, lease_ms = ?5 WHERE accelerator = ?1"
		" AND machine = ?2 AND claim_id = ?3 AND state = 'active'"
		" RETURNING " LEASE_COLUMNS,
		V_TEXT(o->accelerator), V_TEXT(o->machine), V_TEXT(o->claim_id),
		V_INT(o->now_ms + o->lease_ms), V_INT(o->lease_ms)),
	    &l);

	if (is_known && lease_dispatch(d, &l, &s)) {
		o->was_known = true;
		offer_lease(o, &l);
		offer_change(d, o, &s);
		stored_dispatch_release(&s);
	}
	stored_lease_release(&l);
	return is_known;
}

/* What a machine may have now. */
#define CLAIMABLE                                                                                  \
	" FROM dispatch WHERE accelerator = ?1 AND runner = ?2 AND kind = 'pull'"                  \
	" AND state = 'queued' AND is_current = 1 AND COALESCE(not_before_ms, 0) <= ?3"

/* The newest first run that waits for one runner, when that has room. */
static struct dispatch_list newest_of(
    struct db *d, const struct claim_dispatch *o, const struct claim_choice *c)
{
	if (lease_count_first(d, o->accelerator, c->runner) >= c->max_parallel)
		return (struct dispatch_list){0};
	return dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS CLAIMABLE " AND " IS_FIRST_RUN
	    " ORDER BY created_ms DESC, id DESC LIMIT 1",
	    V_TEXT(o->accelerator), V_TEXT(c->runner), V_INT(o->now_ms)));
}

/* The oldest experiment of one runner, when that has room and no first run waits for it. */
static struct dispatch_list experiment_of(
    struct db *d, const struct claim_dispatch *o, const struct claim_choice *c)
{
	if (lease_count_active(d, o->accelerator, c->runner) >= c->max_parallel ||
	    db_has(d, "SELECT 1" CLAIMABLE " AND " IS_FIRST_RUN " LIMIT 1", V_TEXT(o->accelerator),
		V_TEXT(c->runner), V_INT(o->now_ms)))
		return (struct dispatch_list){0};
	return dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS CLAIMABLE " AND " IS_EXPERIMENT
	    " ORDER BY created_ms, change_id LIMIT 1",
	    V_TEXT(o->accelerator), V_TEXT(c->runner), V_INT(o->now_ms)));
}

static const struct claim_choice *choose_experiment(
    struct db *d, const struct claim_dispatch *o, struct stored_dispatch *ret)
{
	for (size_t i = 0; i < o->n_choices; i++) {
		struct dispatch_list l = experiment_of(d, o, &o->choices[i]);

		if (!l.n)
			continue;
		*ret = l.at[0];
		l.n = 0;
		dispatch_list_release(&l);
		return &o->choices[i];
	}
	return NULL;
}

static const struct claim_choice *choose(
    struct db *d, const struct claim_dispatch *o, struct stored_dispatch *ret)
{
	const struct claim_choice *choice = NULL;

	*ret = (struct stored_dispatch){0};
	for (size_t i = 0; i < o->n_choices; i++) {
		struct dispatch_list l = newest_of(d, o, &o->choices[i]);

		if (l.n && (!choice || l.at[0].created_ms > ret->created_ms)) {
			stored_dispatch_release(ret);
			*ret = l.at[0];
			l.n = 0;
			choice = &o->choices[i];
		}
		dispatch_list_release(&l);
	}
	return choice ? choice : choose_experiment(d, o, ret);
}

/* When the next push that waits for its turn may be had by anybody. */
static int64_t next_turn(struct db *d, const struct claim_dispatch *o)
{
	return db_int(d, 0,
	    "SELECT not_before_ms FROM dispatch WHERE accelerator = ?1 AND kind = 'pull'"
	    " AND state = 'queued' AND not_before_ms > ?2 ORDER BY not_before_ms LIMIT 1",
	    V_TEXT(o->accelerator), V_INT(o->now_ms));
}

/* The attempt's job, in progress, as if its machine had reported that. */
static struct job_record put_job(struct db *d, const struct claim_dispatch *o,
    const struct stored_dispatch *s, const struct stored_lease *l)
{
	char name[] = LEASE_JOB_NAME;
	struct job_report report = {
	    .status = JOB_IN_PROGRESS,
	    .workflow = s->runner,
	    .name = name,
	    .run_id = (char *)s->id,
	    .run_attempt = l->attempt,
	};
	struct job_place at = {
	    .change_id = s->change_id,
	    .dispatch_id = s->id,
	    .accelerator = s->accelerator,
	    .runner = s->runner,
	    .is_shown = true,
	    .is_late = s->is_late,
	    .is_push = db_has(
		d, "SELECT 1 FROM change WHERE id = ?1 AND kind = 'push'", V_INT(s->change_id)),
	};

	return job_put(d, &at, &report, o->now_ms);
}

static void take(struct db *d, struct claim_dispatch *o, struct stored_dispatch *s,
    const struct claim_choice *choice)
{
	struct stored_lease l = {
	    .accelerator = s->accelerator,
	    .runner = s->runner,
	    .machine = (char *)o->machine,
	    .claim_id = (char *)o->claim_id,
	    .attempt = 1 + db_int(d, 0, "SELECT MAX(attempt) FROM lease WHERE dispatch_id = ?1",
			       V_TEXT(s->id)),
	    .max_parallel = choice->max_parallel,
	    .lease_ms = o->lease_ms,
	    .until_ms = o->now_ms + o->lease_ms,
	};
	struct job_record job = {.job_id = 0};

	if (strcmp(s->event_type, EXPERIMENT_EVENT) != 0)
		experiments_make_room(d, &l, o->now_ms);
	id_new(l.id);
	snprintf(l.dispatch_id, sizeof(l.dispatch_id), "%s", s->id);
	if (!o->is_silent)
		job = put_job(d, o, s, &l);
	l.job_id = job.job_id;
	lease_insert(d, &l, o->now_ms);
	dispatch_note_sent(d, s, o->now_ms);
	dispatch_enter(d, s, DISPATCH_RUNNING, NULL, o->now_ms);
	change_touch(d, s->change_id, o->now_ms);
	if (!o->is_silent)
		cells_moved(d, s->change_id, s->accelerator,
		    job.has_replaced ? CELLS_JOB_REPLACED : CELLS_LEASE_GRANTED, o->now_ms);
	offer_lease(o, &l);
	offer_change(d, o, s);
}

static int claim_run(struct store_op *op, struct db *d)
{
	struct claim_dispatch *o = CONTAINER_OF(op, struct claim_dispatch, op);
	const struct claim_choice *choice;
	struct stored_dispatch s;

	if (offer_known(d, o))
		return 0;
	choice = choose(d, o, &s);
	if (choice)
		take(d, o, &s, choice);
	else
		o->next_ms = next_turn(d, o);
	stored_dispatch_release(&s);
	return 0;
}

int store_claim_dispatch(struct store *s, struct claim_dispatch *op)
{
	op->is_found = op->was_known = false;
	op->next_ms = 0;
	op->offer = (struct lease_offer){0};
	op->op.run = claim_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

/* ---- renew ---- */

static void answer(struct renew_lease *o, enum lease_word word, const char *reason)
{
	o->word = word;
	snprintf(o->reason, sizeof(o->reason), "%s", reason ? reason : "");
}

static bool extend(struct db *d, const struct renew_lease *o)
{
	return db_exec(d,
		   "UPDATE lease SET until_ms = ?4, lease_ms = ?5 WHERE id = ?1"
		   " AND accelerator = ?2 AND machine = ?3 AND state = 'active'",
		   V_TEXT(o->lease_id), V_TEXT(o->accelerator), V_TEXT(o->machine),
		   V_INT(o->now_ms + o->lease_ms), V_INT(o->lease_ms)) > 0;
}

static bool find_own(struct db *d, const char *id, const char *accelerator, const char *machine,
    struct stored_lease *ret)
{
	return stored_lease_take(db_rows(d,
				     "SELECT " LEASE_COLUMNS " FROM lease WHERE id = ?1"
				     " AND accelerator = ?2 AND machine = ?3",
				     V_TEXT(id), V_TEXT(accelerator), V_TEXT(machine)),
	    ret);
}

/* The last of a dispatch that still waits, whose machine has not reported that it stopped, and
 * neither the runner's room nor the machine's claim has gone to another since. */
static bool may_go_on(struct db *d, const struct stored_lease *l, const struct stored_dispatch *s)
{
	return s->state == DISPATCH_QUEUED && s->is_current &&
	       !db_has(d, "SELECT 1 FROM lease WHERE dispatch_id = ?1 AND attempt > ?2 LIMIT 1",
		   V_TEXT(l->dispatch_id), V_INT(l->attempt)) &&
	       !db_has(
		   d, "SELECT 1 FROM job WHERE id = ?1 AND digest IS NOT NULL", V_INT(l->job_id)) &&
	       !db_has(d,
		   "SELECT 1 FROM lease WHERE accelerator = ?1 AND machine = ?2 AND claim_id = ?3"
		   " AND state = 'active'",
		   V_TEXT(l->accelerator), V_TEXT(l->machine), V_TEXT(l->claim_id)) &&
	       (strcmp(s->event_type, EXPERIMENT_EVENT) == 0
		       ? lease_count_active(d, l->accelerator, l->runner)
		       : lease_count_first(d, l->accelerator, l->runner)) < l->max_parallel;
}

static void go_on(
    struct db *d, struct renew_lease *o, struct stored_lease *l, struct stored_dispatch *s)
{
	if (strcmp(s->event_type, EXPERIMENT_EVENT) != 0)
		experiments_make_room(d, l, o->now_ms);
	l->lease_ms = o->lease_ms;
	l->until_ms = o->now_ms + o->lease_ms;
	lease_take_up(d, l);
	job_take_up(d, l->job_id);
	dispatch_enter(d, s, DISPATCH_RUNNING, NULL, o->now_ms);
	cells_moved(d, s->change_id, s->accelerator, CELLS_LEASE_RESUMED, o->now_ms);
}

static void renew_expired(struct db *d, struct renew_lease *o, struct stored_lease *l)
{
	struct stored_dispatch s = {0};

	if (lease_dispatch(d, l, &s) && may_go_on(d, l, &s)) {
		go_on(d, o, l, &s);
		answer(o, LEASE_ACTIVE, NULL);
	} else {
		answer(o, LEASE_LOST, "it ran out, and the work went on without this machine");
	}
	stored_dispatch_release(&s);
}

static int renew_run(struct store_op *op, struct db *d)
{
	struct renew_lease *o = CONTAINER_OF(op, struct renew_lease, op);
	struct stored_lease l;

	answer(o, LEASE_ACTIVE, NULL);
	if (extend(d, o))
		return 0;
	if (!find_own(d, o->lease_id, o->accelerator, o->machine, &l))
		answer(o, LEASE_LOST, "this machine has no such lease");
	else if (l.state == LEASE_IS_EXPIRED)
		renew_expired(d, o, &l);
	else if (l.state == LEASE_IS_CANCELLED)
		answer(o, LEASE_CANCELLED, l.reason);
	else
		answer(o, LEASE_LOST,
		    l.state == LEASE_IS_DONE ? "it is reported already" : "it was handed back");
	stored_lease_release(&l);
	return 0;
}

int store_renew_lease(struct store *s, struct renew_lease *op)
{
	op->op.run = renew_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

/* ---- return ---- */

static int return_run(struct store_op *op, struct db *d)
{
	struct return_lease *o = CONTAINER_OF(op, struct return_lease, op);
	struct stored_lease l;

	if (!find_own(d, o->lease_id, o->accelerator, o->machine, &l))
		return db_status(d) ? db_status(d) : ERR_NOT_FOUND;
	if (l.state == LEASE_IS_ACTIVE)
		lease_hand_back(d, &l, o->reason, o->now_ms);
	stored_lease_release(&l);
	return 0;
}

int store_return_lease(struct store *s, struct return_lease *op)
{
	op->op.run = return_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
