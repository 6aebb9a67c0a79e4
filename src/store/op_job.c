/* A report finds its dispatch and accelerator, and moves them: the job's row, its results,
 * the dispatch's state, the cells and the wish to update the comment in one transaction. */
#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"
#include "store/cells_moved.h"
#include "store/db.h"
#include "store/job_row.h"
#include "store/key.h"
#include "store/requests.h"
#include "store/schedule_runs.h"
#include "store/stored_change.h"
#include "store/stored_dispatch.h"
#include "store/stored_lease.h"

/* ---- which dispatch ---- */

/* Rows of one dispatch that may report: never held ones, which nobody was told of. */
#define REPORTING " FROM dispatch WHERE id = ?1 AND state <> 'held' AND accelerator <> ''"

static bool is_of_repository(struct db *d, const char *id, const char *target_key)
{
	return db_has(d,
	    "SELECT 1 FROM dispatch WHERE id = ?1 AND target_key = ?2 AND state <> 'held'"
	    " AND kind IN ('github', 'infra') LIMIT 1",
	    V_TEXT(id), V_TEXT(target_key));
}

static char *newest_by_delivery(struct db *d, const char *target_key, const char *delivery_id)
{
	return db_text(d,
	    "SELECT id FROM dispatch WHERE target_key = ?1 AND delivery_guid = ?2"
	    " AND state <> 'held' AND kind IN ('github', 'infra')"
	    " ORDER BY created_ms DESC, is_current DESC LIMIT 1",
	    V_TEXT(target_key), V_TEXT(delivery_id));
}

static bool is_forwarded_closed(struct db *d, const char *target_key, const char *delivery_id)
{
	return db_has(d,
	    "SELECT 1 FROM outbox WHERE kind = 'github_closed' AND target_key = ?1"
	    " AND delivery_guid = ?2 LIMIT 1",
	    V_TEXT(target_key), V_TEXT(delivery_id));
}

/* The dispatch's id (free()), or NULL with the outcome set. */
static char *find_dispatch(struct db *d, struct report_job *o)
{
	struct repository_key key;
	char *id;

	o->outcome = REPORT_NO_DISPATCH;
	if (!o->repository)
		return o->dispatch_id
			   ? db_text(d, "SELECT id" REPORTING " LIMIT 1", V_TEXT(o->dispatch_id))
			   : NULL;
	key = repository_key(o->repository);
	id = o->delivery_id ? newest_by_delivery(d, key.text, o->delivery_id) : NULL;
	/* A forwarded `closed` echoes the id of the dispatch that it closes. */
	if (!id && o->delivery_id && is_forwarded_closed(d, key.text, o->delivery_id)) {
		o->outcome = REPORT_IGNORED_CLOSED;
		return NULL;
	}
	if (o->dispatch_id && is_of_repository(d, o->dispatch_id, key.text)) {
		free(id);
		return xstrdup(o->dispatch_id);
	}
	return id;
}

/* ---- which accelerator ---- */

/* Also an accelerator that left the registry after its repository got the dispatch: CRCR's allowlist calls
 * one repository by its device at L3 and by its own name below, so a move between levels must not cut off
 * what is under way. One that was at L1 showed nothing, so there is nothing to go on with. */
static bool is_allowed(struct db *d, const struct report_job *o, const char *accelerator)
{
	if (!o->allowed || strv_contains(o->allowed, accelerator))
		return true;
	return o->repository &&
	       db_has(d, "SELECT 1 FROM accelerator WHERE name = ?1 AND is_gone = 1 AND level > ?2",
		   V_TEXT(accelerator), V_INT(LEVEL_1));
}

/* The one row that this report is for, or false with the outcome set. */
static bool choose(
    struct db *d, struct report_job *o, const struct dispatch_list *l, struct stored_dispatch **ret)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct stored_dispatch *s = &l->at[i];

		if (o->accelerator && strcmp(o->accelerator, s->accelerator) != 0)
			continue;
		if (!is_allowed(d, o, s->accelerator))
			continue;
		/* Two runners of one accelerator in one repository are one to it. */
		if (n && strcmp((*ret)->accelerator, s->accelerator) == 0)
			continue;
		n++;
		*ret = s;
	}
	if (n == 1)
		return true;
	o->outcome = n ? REPORT_WHICH_ACCELERATOR : REPORT_WRONG_ACCELERATOR;
	return false;
}

/* ---- what it does ---- */

static bool is_called_off(const struct stored_dispatch *s)
{
	return s->state == DISPATCH_SUPERSEDED || s->state == DISPATCH_CANCELLED;
}

static enum dispatch_state state_by_jobs(struct db *d, const struct stored_dispatch *s)
{
	bool is_running = db_has(d,
	    "SELECT 1 FROM job WHERE change_id = ?1 AND dispatch_id = ?2 AND accelerator = ?3"
	    " AND is_current = 1 AND status = 'in_progress' LIMIT 1",
	    V_INT(s->change_id), V_TEXT(s->id), V_TEXT(s->accelerator));

	return is_running ? DISPATCH_RUNNING : DISPATCH_DONE;
}

/* Whether the vendor must have the request to report so. The delivery alone does not tell:
 * where some waited for a member, two dispatches carry the same one, and a report that names
 * no dispatch may come from the run of the earlier. */
static bool is_proof(struct db *d, const struct report_job *o, const struct stored_dispatch *s)
{
	if (o->dispatch_id && strcmp(o->dispatch_id, s->id) == 0)
		return true;
	return !db_has(d,
	    "SELECT 1 FROM dispatch WHERE target_key = ?1 AND delivery_guid = ?2 AND id <> ?3"
	    " AND state <> 'held' LIMIT 1",
	    V_TEXT(s->target_key), V_TEXT(s->delivery_guid), V_TEXT(s->id));
}

/* Every runner of the accelerator that shares the dispatch moves with the report. */
static void move_dispatches(struct db *d, const struct report_job *o, const struct dispatch_list *l,
    const struct stored_dispatch *s, enum dispatch_state to)
{
	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->at[i].accelerator, s->accelerator) != 0)
			continue;
		dispatch_note_sent(d, &l->at[i], o->now_ms);
		dispatch_enter(d, &l->at[i], to, NULL, o->now_ms);
	}
	if (is_proof(d, o, s))
		request_is_proved(d, s->id, o->now_ms);
}

/* The lease under which this job ran; without an id: none, whoever reports it. */
static struct stored_lease find_lease(
    struct db *d, const struct job_report *p, const struct stored_dispatch *s)
{
	struct stored_lease l = {0};

	if (s->kind == RUNNER_PULL && strcmp(p->run_id, s->id) == 0 &&
	    strcmp(p->workflow, s->runner) == 0 && strcmp(p->name, LEASE_JOB_NAME) == 0)
		lease_of_attempt(d, s->id, p->run_attempt, &l);
	return l;
}

/* What a machine says that was told to stop, or that found its lease gone, is no result. */
static bool is_farewell(const struct stored_lease *l, const struct job_report *p)
{
	return l->id[0] && l->state != LEASE_IS_ACTIVE && p->conclusion &&
	       strcmp(p->conclusion, "cancelled") == 0;
}

static void end_lease(
    struct db *d, const struct stored_lease *l, const struct job_report *p, int64_t now_ms)
{
	if (l->id[0] && p->status == JOB_COMPLETED)
		lease_end(d, l, LEASE_IS_DONE, NULL, now_ms);
}

/* A red attempt that comes after its retry: what the retry left out is without a result. */
static bool is_red_before_retry(
    struct db *d, const struct job_place *at, const struct job_record *r)
{
	return at->is_shown && !r->is_current &&
	       db_has(d, "SELECT 1 FROM job WHERE id = ?1 AND status = 'completed' AND n_red > 0",
		   V_INT(r->job_id));
}

/* A silence that is over may have been a cell, also where the report itself is not shown. */
static void tell_cells(struct db *d, const struct report_job *o, const struct job_place *at,
    const struct job_record *r, bool was_silent)
{
	if ((was_silent && at->is_shown) || r->has_replaced || is_red_before_retry(d, at, r))
		cells_moved(d, at->change_id, at->accelerator, CELLS_JOB_REPLACED, o->now_ms);
	else if (r->is_current && o->report->status == JOB_COMPLETED)
		cells_job_added(
		    d, at->change_id, at->accelerator, CELLS_JOB_COMPLETED, r->job_id, o->now_ms);
	else if (r->is_current)
		cells_moved(d, at->change_id, at->accelerator, CELLS_JOB_STARTED, o->now_ms);
}

static void record(struct db *d, struct report_job *o, const struct dispatch_list *l,
    struct stored_dispatch *s, const struct stored_lease *lease)
{
	bool was_silent = s->state == DISPATCH_EXPIRED || s->state == DISPATCH_FAILED;
	bool is_over = is_farewell(lease, o->report);
	struct job_place at = {
	    .change_id = s->change_id,
	    .dispatch_id = s->id,
	    .accelerator = s->accelerator,
	    .runner = s->runner,
	    .is_shown = s->is_current && !is_called_off(s) && !is_over,
	    .is_late = was_silent || s->is_late,
	    .is_push = db_has(
		d, "SELECT 1 FROM change WHERE id = ?1 AND kind = 'push'", V_INT(s->change_id)),
	};
	struct job_record r = job_put(d, &at, o->report, o->now_ms);

	o->outcome = r.outcome;
	o->job_id = r.job_id;
	snprintf(o->found_dispatch, sizeof(o->found_dispatch), "%s", s->id);
	snprintf(o->found_accelerator, sizeof(o->found_accelerator), "%s", s->accelerator);
	if (r.outcome != REPORT_RECORDED)
		return;
	change_touch(d, s->change_id, o->now_ms);
	db_tell_change(d, s->change_id); /* its page lists the job, also where no cell moves */
	end_lease(d, lease, o->report, o->now_ms);
	/* An earlier attempt than the one that is at work, or has reported, moves nothing. */
	if (is_called_off(s) || (lease->id[0] && !r.is_current))
		return;
	if (!is_over)
		move_dispatches(d, o, l, s, state_by_jobs(d, s));
	tell_cells(d, o, &at, &r, was_silent);
}

/* L1 shows nothing and keeps nothing, but its dispatch did not stay silent. */
static void note_silent(struct db *d, struct report_job *o, const struct dispatch_list *l,
    const struct stored_dispatch *s, const struct stored_lease *lease)
{
	o->outcome = REPORT_IGNORED_LEVEL;
	end_lease(d, lease, o->report, o->now_ms);
	/* It may have been begun at a higher level: nobody else is going to complete that. */
	if (o->report->status == JOB_COMPLETED)
		job_give_up(d, lease->job_id, "neutral", "it ended when its accelerator was at L1",
		    false, o->now_ms);
	if (is_called_off(s) || is_farewell(lease, o->report))
		return;
	if (lease->id[0] && (o->report->status != JOB_COMPLETED || lease_is_overtaken(d, lease)))
		return;
	move_dispatches(
	    d, o, l, s, o->report->status == JOB_COMPLETED ? DISPATCH_DONE : DISPATCH_RUNNING);
	cells_moved(d, s->change_id, s->accelerator, CELLS_REPORTED_AT_L1, o->now_ms);
}

static int report_run(struct store_op *op, struct db *d)
{
	struct report_job *o = CONTAINER_OF(op, struct report_job, op);
	char *id = find_dispatch(d, o);
	struct dispatch_list l = {0};
	struct stored_dispatch *s = NULL;

	o->job_id = 0;
	if (!id)
		return 0;
	l = dispatch_list_take(db_rows(
	    d, "SELECT " DISPATCH_COLUMNS REPORTING " ORDER BY accelerator, runner", V_TEXT(id)));
	if (choose(d, o, &l, &s)) {
		struct stored_lease lease = find_lease(d, o->report, s);

		if (o->machine && !str_eq(o->machine, lease.machine))
			o->outcome = REPORT_NOT_ITS_LEASE;
		else if (o->silent && strv_contains(o->silent, s->accelerator))
			note_silent(d, o, &l, s, &lease);
		else
			record(d, o, &l, s, &lease);
		stored_lease_release(&lease);
	}
	dispatch_list_release(&l);
	free(id);
	return 0;
}

static size_t weight(const struct job_report *r)
{
	return sizeof(*r) + r->n_tests * sizeof(*r->tests);
}

int store_report_job(struct store *s, struct report_job *op)
{
	op->op.run = report_run;
	op->op.bytes = sizeof(*op) + weight(op->report);
	return store_submit(s, &op->op);
}

/* ---- periodic runs, which nobody dispatched ---- */

static int nightly_run(struct store_op *op, struct db *d)
{
	struct report_nightly *o = CONTAINER_OF(op, struct report_nightly, op);
	struct run_key unknown = unknown_commit_key(o->target, o->report->run_id);
	struct change_facts f = {
	    .kind = CHANGE_NIGHTLY,
	    .repository = o->repository,
	    .head_sha = o->head_sha ? o->head_sha : unknown.text,
	};
	struct job_place at = {
	    .change_id = change_put(d, &f, o->now_ms),
	    .dispatch_id = "",
	    .accelerator = o->accelerator,
	    .runner = o->target,
	    .is_shown = true,
	};
	struct job_record r;

	if (o->report->status != JOB_COMPLETED)
		return ERR_INVALID;
	r = job_put(d, &at, o->report, o->now_ms);
	o->outcome = r.outcome;
	o->job_id = r.job_id;
	if (r.outcome != REPORT_RECORDED || (!r.is_current && !is_red_before_retry(d, &at, &r)))
		return 0;
	schedule_run_self_reported(d, at.change_id, o->accelerator, f.head_sha, o->now_ms);
	if (r.has_replaced || !r.is_current)
		cells_moved(d, at.change_id, o->accelerator, CELLS_SELF_REPORTED, o->now_ms);
	else
		cells_job_added(
		    d, at.change_id, o->accelerator, CELLS_SELF_REPORTED, r.job_id, o->now_ms);
	return 0;
}

int store_report_nightly(struct store *s, struct report_nightly *op)
{
	op->op.run = nightly_run;
	op->op.bytes = sizeof(*op) + weight(op->report);
	return store_submit(s, &op->op);
}
