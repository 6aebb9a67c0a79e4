#include "store/job_reports.h"

#include "db/key.h"
#include "store/changes.h"
#include "store/job_results.h"
#include "store/leases.h"
#include "store/requests.h"
#include "store/schedules.h"
#include "verdict/cells_moved.h"

static size_t report_bytes(const struct job_report *r) { return sizeof(*r) + r->n_tests * sizeof(*r->tests); }

/* ---- the dispatch that a report is about ---- */

/* The rows of one dispatch that may report. No vendor knows of a held one. */
#define REPORTING " FROM dispatch WHERE id = ?1 AND state <> 'held' AND accelerator <> ''"

/* The dispatch's id (free()), or NULL with the outcome set. */
static char *find_reported_dispatch(const struct view *d, struct report_job *o)
{
	struct repository_key key;
	char *id = NULL;

	o->outcome = REPORT_NO_DISPATCH;
	if (!o->repository)
		return o->dispatch_id ? db_text(d, "SELECT id" REPORTING " LIMIT 1", V_TEXT(o->dispatch_id)) : NULL;
	key = repository_key(o->repository);
	if (o->delivery_id)
		id = db_text(d,
		    "SELECT id FROM dispatch WHERE target_key = ?1 AND delivery_guid = ?2 AND state <> 'held'"
		    " AND kind IN ('github', 'infra') ORDER BY created_ms DESC, is_current DESC,"
		    " COALESCE(not_before_ms, 0), accelerator, runner LIMIT 1",
		    V_TEXT(key.text), V_TEXT(o->delivery_id));
	/* A forwarded `closed` echoes the id of the dispatch that it closes. */
	if (!id && o->delivery_id &&
	    db_has(d,
		"SELECT 1 FROM outbox WHERE kind = 'github_closed' AND target_key = ?1 AND delivery_guid = ?2 LIMIT 1",
		V_TEXT(key.text), V_TEXT(o->delivery_id))) {
		o->outcome = REPORT_IGNORED_CLOSED;
		return NULL;
	}
	if (o->dispatch_id && db_has(d,
				  "SELECT 1 FROM dispatch WHERE id = ?1 AND target_key = ?2 AND state <> 'held'"
				  " AND kind IN ('github', 'infra') LIMIT 1",
				  V_TEXT(o->dispatch_id), V_TEXT(key.text))) {
		free(id);
		return xstrdup(o->dispatch_id);
	}
	return id;
}

/* ---- its accelerator ---- */

/* The row that this report is for. False: there is none, and the outcome is set.
 *
 * The report may also be for an accelerator that left the registry after its repository got the dispatch. CRCR's allowlist
 * has a repository under its device at L3 and under its own name below, so a move between levels must not cut off its runs.
 * An accelerator that was at L1 showed nothing, so it has nothing to continue. */
static bool choose_reported_dispatch(
    const struct view *d, struct report_job *o, const struct dispatch_list *l, struct stored_dispatch **ret)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct stored_dispatch *s = &l->at[i];

		if (o->accelerator && strcmp(o->accelerator, s->accelerator) != 0)
			continue;
		if (o->allowed && !strv_contains(o->allowed, s->accelerator) &&
		    !(o->repository &&
			db_has(d, "SELECT 1 FROM accelerator WHERE name = ?1 AND is_gone = 1 AND level > ?2",
			    V_TEXT(s->accelerator), V_INT(LEVEL_1))))
			continue;
		/* Two runners of one accelerator in one repository are one for its reports. */
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

/* ---- its effects ---- */

/* The report moves all runners of the accelerator that share the dispatch. */
static void move_reported_dispatches(struct txn *d, const struct report_job *o, const struct dispatch_list *l,
    const struct stored_dispatch *s, enum dispatch_state to)
{
	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->at[i].accelerator, s->accelerator) != 0)
			continue;
		dispatch_note_sent(d, &l->at[i], o->now_ms);
		dispatch_enter(d, &l->at[i], to, NULL, o->now_ms);
	}
	/* Does the report prove that the vendor has the request? The delivery alone does not prove it: when some
	 * dispatches waited for a member, two have the same delivery, and a report without the id of a dispatch may come
	 * from the earlier run. */
	if ((o->dispatch_id && strcmp(o->dispatch_id, s->id) == 0) ||
	    !db_has(d,
		"SELECT 1 FROM dispatch WHERE target_key = ?1 AND delivery_guid = ?2 AND id <> ?3"
		" AND state <> 'held' LIMIT 1",
		V_TEXT(s->target_key), V_TEXT(s->delivery_guid), V_TEXT(s->id)))
		request_is_proved(d, s->id, o->now_ms);
}

/* A report of a machine that was stopped, or that has lost its lease, is not a result. */
static bool report_follows_stop(const struct stored_lease *l, const struct job_report *p)
{
	return l->id[0] && l->state != LEASE_IS_ACTIVE && p->conclusion && strcmp(p->conclusion, "cancelled") == 0;
}

static void end_reported_lease(struct txn *d, const struct stored_lease *l, const struct job_report *p, int64_t now_ms)
{
	if (l->id[0] && p->status == JOB_COMPLETED)
		lease_enter(d, l, LEASE_IS_DONE, NULL, now_ms);
}

static void record_report(struct txn *d, struct report_job *o, const struct dispatch_list *l, struct stored_dispatch *s,
    const struct stored_lease *lease)
{
	bool was_silent = s->state == DISPATCH_EXPIRED || s->state == DISPATCH_FAILED;
	bool is_over = report_follows_stop(lease, o->report);
	bool is_completed = o->report->status == JOB_COMPLETED, is_running;
	struct job_place at = job_place_of(d->view, s);
	struct job_record r;

	at.is_shown = s->is_current && !dispatch_is_called_off(s->state) && !is_over;
	at.is_late |= was_silent;
	r = job_put(d, &at, o->report, o->now_ms);
	o->outcome = r.outcome;
	o->job_id = r.job_id;
	snprintf(o->found_dispatch, sizeof(o->found_dispatch), "%s", s->id);
	snprintf(o->found_accelerator, sizeof(o->found_accelerator), "%s", s->accelerator);
	if (r.outcome != REPORT_RECORDED)
		return;
	change_touch(d, s->change_id, o->now_ms);
	db_notify_change(d, s->change_id); /* its page lists the job, also when no cell moves */
	end_reported_lease(d, lease, o->report, o->now_ms);
	/* A report of an earlier attempt than the current one changes no cell. */
	if (dispatch_is_called_off(s->state) || (lease->id[0] && !r.is_current))
		return;
	is_running = db_has(d,
	    "SELECT 1 FROM job WHERE change_id = ?1 AND dispatch_id = ?2 AND accelerator = ?3"
	    " AND is_current = 1 AND status = 'in_progress' LIMIT 1",
	    V_INT(s->change_id), V_TEXT(s->id), V_TEXT(s->accelerator));
	if (!is_over)
		move_reported_dispatches(d, o, l, s, is_running ? DISPATCH_RUNNING : DISPATCH_DONE);
	/* The report ends a silence, which may have been a cell, also when the report itself is not shown. An attempt
	 * that comes after its retry is evidence, and a test that the retry left out is without a result. */
	if ((was_silent && at.is_shown) || r.has_replaced || (at.is_shown && !r.is_current && is_completed))
		cells_moved(d, s->change_id, s->accelerator, CELLS_JOB_REPLACED, o->now_ms);
	else if (r.is_current && is_completed)
		cells_job_added(d, s->change_id, s->accelerator, CELLS_JOB_COMPLETED, r.job_id, o->now_ms);
	else if (r.is_current)
		cells_moved(d, s->change_id, s->accelerator, CELLS_JOB_STARTED, o->now_ms);
}

/* L1 keeps and shows nothing, but the dispatch counts as reported. */
static void note_silent_report(struct txn *d, struct report_job *o, const struct dispatch_list *l,
    const struct stored_dispatch *s, const struct stored_lease *lease)
{
	o->outcome = REPORT_IGNORED_LEVEL;
	end_reported_lease(d, lease, o->report, o->now_ms);
	/* The job may have begun at a higher level; no other report is going to complete it. */
	if (o->report->status == JOB_COMPLETED)
		job_give_up(d, lease->job_id, "neutral", "it ended when its accelerator was at L1", false, o->now_ms);
	if (dispatch_is_called_off(s->state) || report_follows_stop(lease, o->report))
		return;
	if (lease->id[0] && (o->report->status != JOB_COMPLETED || lease_is_overtaken(d->view, lease)))
		return;
	move_reported_dispatches(d, o, l, s, o->report->status == JOB_COMPLETED ? DISPATCH_DONE : DISPATCH_RUNNING);
	cells_moved(d, s->change_id, s->accelerator, CELLS_REPORTED_AT_L1, o->now_ms);
}

static int report_job_run(struct store_op *op, struct txn *d)
{
	struct report_job *o = CONTAINER_OF(op, struct report_job, op);
	char *id = find_reported_dispatch(d->view, o);
	struct dispatch_list l = {0};
	struct stored_dispatch *s = NULL;

	o->job_id = 0;
	job_results_go_on(o->report->packed, op->n_parts);
	if (!id)
		return 0;
	l = dispatch_list_read(
	    db_rows(d, "SELECT " DISPATCH_COLUMNS REPORTING " ORDER BY accelerator, runner", V_TEXT(id)));
	if (choose_reported_dispatch(d->view, o, &l, &s)) {
		const struct job_report *p = o->report;
		struct stored_lease lease = {0}; /* under which this job ran; without an id: none */

		if (s->kind == RUNNER_PULL && strcmp(p->run_id, s->id) == 0 && strcmp(p->workflow, s->runner) == 0 &&
		    strcmp(p->name, LEASE_JOB_NAME) == 0)
			lease_of_attempt(d->view, s->id, p->run_attempt, &lease);
		if (o->machine && !str_eq(o->machine, lease.machine))
			o->outcome = REPORT_NOT_ITS_LEASE;
		else if (o->silent && strv_contains(o->silent, s->accelerator))
			note_silent_report(d, o, &l, s, &lease);
		else
			record_report(d, o, &l, s, &lease);
		stored_lease_release(&lease);
	}
	op->is_unfinished = o->outcome == REPORT_IN_PARTS;
	if (!op->is_unfinished && o->outcome != REPORT_RECORDED)
		job_results_give_up(d, o->report->packed);
	dispatch_list_release(&l);
	free(id);
	return 0;
}
STORE_HEAVY_OPERATION(report_job, report_bytes(op->report))

/* ---- self-reports of periodic runs, without a dispatch ---- */

static int report_nightly_run(struct store_op *op, struct txn *d)
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
	job_results_go_on(o->report->packed, op->n_parts);
	r = job_put(d, &at, o->report, o->now_ms);
	o->outcome = r.outcome;
	o->job_id = r.job_id;
	op->is_unfinished = r.outcome == REPORT_IN_PARTS;
	if (!op->is_unfinished && r.outcome != REPORT_RECORDED)
		job_results_give_up(d, o->report->packed);
	/* An attempt that another run has replaced counts only if it is red, because a retry does not take a failure away. */
	if (r.outcome != REPORT_RECORDED || (!r.is_current && !job_is_red(d->view, r.job_id)))
		return 0;
	schedule_run_self_reported(d, at.change_id, o->accelerator, f.head_sha, o->now_ms);
	if (r.has_replaced || !r.is_current)
		cells_moved(d, at.change_id, o->accelerator, CELLS_SELF_REPORTED, o->now_ms);
	else
		cells_job_added(d, at.change_id, o->accelerator, CELLS_SELF_REPORTED, r.job_id, o->now_ms);
	return 0;
}
STORE_HEAVY_OPERATION(report_nightly, report_bytes(op->report))
