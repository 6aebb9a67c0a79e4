/* A periodic run becomes a change with its dispatches, or ends without. */
#include "base/alloc.h"
#include "base/clock.h"
#include "store/db.h"
#include "store/plan_apply.h"
#include "store/schedule_runs.h"
#include "store/stored_change.h"

struct stored_run {
	char *accelerator;
	bool is_asked_for; /* by an operator */
};

/* False: it is not `reading` any more. */
static bool read_run(struct db *d, int64_t id, struct stored_run *ret)
{
	struct rows *r = db_rows(d,
	    "SELECT accelerator, cause = 'operator' FROM schedule_run WHERE id = ?1"
	    " AND state = 'reading'",
	    V_INT(id));
	bool is_there = rows_next(r);

	if (is_there)
		*ret = (struct stored_run){rows_dup(r, 0), rows_int(r, 1)};
	rows_end(r);
	return is_there;
}

static void note_heads(struct db *d, const struct start_schedule_run *o)
{
	const struct source_head *s = o->source;

	db_exec(d,
	    "UPDATE schedule_run SET upstream_sha = ?2, source_url = ?3, source_branch = ?4,"
	    " source_sha = ?5 WHERE id = ?1",
	    V_INT(o->run_id), V_TEXT(o->plan->head_sha), V_TEXT(s ? s->git_url : NULL),
	    V_TEXT(s ? s->branch : NULL), V_TEXT(s ? s->sha : NULL));
}

/* The newest run that tested anything was green, and of these very heads. When it was, 0: not so. */
static int64_t green_of_same(
    struct db *d, const struct start_schedule_run *o, const char *accelerator)
{
	return db_int(d, 0,
	    "SELECT due_ms FROM (SELECT due_ms, outcome, upstream_sha, source_sha"
	    "  FROM schedule_run WHERE accelerator = ?1 AND change_id IS NOT NULL"
	    "  ORDER BY id DESC LIMIT 1) WHERE outcome = 'green' AND upstream_sha = ?2"
	    " AND COALESCE(source_sha, '') = ?3",
	    V_TEXT(accelerator), V_TEXT(o->plan->head_sha),
	    V_TEXT(o->source ? o->source->sha : ""));
}

static void end(struct db *d, struct start_schedule_run *o, enum schedule_step step)
{
	o->step = step;
	schedule_run_end(
	    d, o->run_id, step == SCHEDULE_NOBODY ? "failed" : "skipped", o->reason, o->now_ms);
}

/* The dispatches find the source by the change, so the run names it before they are written. */
static void dispatch(struct db *d, struct start_schedule_run *o)
{
	struct apply_plan apply = {
	    .guid = o->guid,
	    .body = o->body,
	    .body_bytes = o->body_bytes,
	    .plan = o->plan,
	    .now_ms = o->now_ms,
	};

	plan_apply(d, &apply);
	if (apply.n_new_dispatches == 0) {
		snprintf(o->reason, sizeof(o->reason), "it has no runner that takes it");
		end(d, o, SCHEDULE_NOBODY);
		return;
	}
	change_touch(d, apply.change_id, o->now_ms);
	db_exec(d,
	    "UPDATE schedule_run SET state = 'dispatched', reason = NULL, change_id = ?2"
	    " WHERE id = ?1",
	    V_INT(o->run_id), V_INT(apply.change_id));
	o->step = SCHEDULE_DISPATCHED;
}

static int start_run(struct store_op *op, struct db *d)
{
	struct start_schedule_run *o = CONTAINER_OF(op, struct start_schedule_run, op);
	char time[RFC3339_BYTES];
	struct stored_run run;
	int64_t green_ms;

	o->step = SCHEDULE_GONE;
	o->reason[0] = '\0';
	if (!read_run(d, o->run_id, &run))
		return 0;
	note_heads(d, o);
	green_ms = run.is_asked_for ? 0 : green_of_same(d, o, run.accelerator);
	if (green_ms) {
		snprintf(o->reason, sizeof(o->reason), "nothing new since the green run of %s",
		    rfc3339_format(green_ms, time));
		end(d, o, SCHEDULE_NOTHING_NEW);
	} else {
		dispatch(d, o);
	}
	db_tell_accelerator(d, run.accelerator);
	free(run.accelerator);
	return 0;
}

int store_start_schedule_run(struct store *s, struct start_schedule_run *op)
{
	op->op.run = start_run;
	op->op.bytes = sizeof(*op) + op->body_bytes;
	return store_submit(s, &op->op);
}

static int fail_run(struct store_op *op, struct db *d)
{
	struct fail_schedule_run *o = CONTAINER_OF(op, struct fail_schedule_run, op);
	struct stored_run run;

	if (!read_run(d, o->run_id, &run))
		return 0;
	if (o->is_tried_again)
		db_exec(d, "UPDATE schedule_run SET reason = ?2 WHERE id = ?1", V_INT(o->run_id),
		    V_TEXT(o->reason));
	else
		schedule_run_end(d, o->run_id, "failed", o->reason, o->now_ms);
	db_tell_accelerator(d, run.accelerator);
	free(run.accelerator);
	return 0;
}

int store_fail_schedule_run(struct store *s, struct fail_schedule_run *op)
{
	op->op.run = fail_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
