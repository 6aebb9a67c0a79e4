/* One periodic run, until it is dispatched, skipped or failed: reads upstream's head, then the source's head, then
 * writes the change. A failed step is retried with growing pauses for an hour, which begins again after a restart. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "base/str.h"
#include "dispatch/scheduler.h"
#include "dispatch/synthetic.h"
#include "model/schedule.h"

enum { GIVE_UP_MS = 3600 * 1000, UNWRITTEN_MS = 10 * 1000 };

static void continue_run(struct scheduled_run *run);

static void end_run_try(struct scheduled_run *run)
{
	plan_release(&run->plan);
	run->plan = (struct plan){0};
	source_head_release(&run->source);
	FREE_AND_NULL(run->body);
	config_unref(run->config);
	run->config = NULL;
}

void scheduled_run_free(struct scheduled_run *run)
{
	struct scheduled_run **link = &run->scheduler->runs;

	while (*link != run)
		link = &(*link)->next;
	*link = run->next;
	end_run_try(run);
	timer_close(run->timer);
	free(run->accelerator);
	free(run);
}

bool scheduled_run_is_idle(const struct scheduled_run *run)
{
	return !run->is_asking && !run->is_stored;
}

void scheduled_run_cancel(struct scheduled_run *run)
{
	const struct head_reader *reader = &run->scheduler->d->deps.heads;

	timer_stop(run->timer);
	run->waits_for_upstream = false;
	if (run->is_asking)
		reader->cancel(reader->owner, &run->head);
}

static void on_run_timer(struct timer *t)
{
	continue_run(timer_owner(t));
}

void scheduled_run_take(struct scheduler *s, const struct schedule_task *task)
{
	struct scheduled_run *run = s->runs;

	while (run && run->id != task->id)
		run = run->next;
	if (run)
		return;
	run = xcalloc(1, sizeof(*run));
	run->scheduler = s;
	run->id = task->id;
	run->accelerator = xstrdup(task->accelerator);
	run->first_mono_ms = clock_mono_ms();
	run->timer = timer_new(s->d->deps.loop, on_run_timer, run);
	run->next = s->runs;
	s->runs = run;
	uuid_new(run->guid);
	continue_run(run);
}

/* ---- the end ---- */

/* The operation has ended. False: its result is not in the database, and the run tries again later. */
static bool finish_run_op(struct scheduled_run *run, const struct store_op *op)
{
	struct scheduler *s = run->scheduler;

	run->is_stored = false;
	if (s->d->is_closing) {
		scheduler_settle(s);
		return false;
	}
	if (op->err == 0)
		return true;
	log_event(LOG_WARN, "periodic_run_unwritten", LOG_S("accelerator", run->accelerator),
	    LOG_S("error", op->why.text));
	end_run_try(run);
	timer_start(run->timer, UNWRITTEN_MS);
	return false;
}

static void run_submitted(struct scheduled_run *run, int rc)
{
	run->is_stored = rc == 0;
	if (rc)
		end_run_try(run);
}

static void on_run_failed(struct store_op *op)
{
	struct scheduled_run *run = CONTAINER_OF(op, struct scheduled_run, op.fail.op);

	if (!finish_run_op(run, op))
		return;
	run->scheduler->d->counters.n_nightlies_failed++;
	log_event(LOG_WARN, "periodic_run_failed", LOG_S("accelerator", run->accelerator),
	    LOG_S("why", run->reason));
	scheduled_run_free(run);
}

static void fail_run(struct scheduled_run *run)
{
	run->op.fail = (struct fail_schedule_run){
	    .op = {.done = on_run_failed, .retry.event = "periodic_run_unwritten"},
	    .run_id = run->id,
	    .reason = run->reason,
	    .now_ms = clock_wall_ms(),
	};
	run_submitted(run, store_fail_schedule_run(run->scheduler->d->deps.store, &run->op.fail));
}

static void set_run_reason(struct scheduled_run *run, const char *what, const char *why)
{
	snprintf(run->reason, sizeof(run->reason), "%s%s%.150s", what, *why ? ": " : "", why);
}

static void give_up_run(struct scheduled_run *run, const char *what, const char *why)
{
	set_run_reason(run, what, why);
	run->is_refused = true;
	fail_run(run);
}

static void on_run_noted(struct store_op *op)
{
	struct scheduled_run *run = CONTAINER_OF(op, struct scheduled_run, op.fail.op);
	struct scheduler *s = run->scheduler;

	run->is_stored = false;
	if (s->d->is_closing)
		scheduler_settle(s);
	else
		timer_start(run->timer, run->again_ms); /* whether it was written or not */
}

static void retry_run(
    struct scheduled_run *run, const char *what, const char *why, bool is_final, int64_t wait_ms)
{
	int64_t delay_ms = backoff_delay_ms(++run->n_tries, wait_ms, random_fraction());
	int64_t age_ms = clock_mono_ms() - run->first_mono_ms;
	int rc;

	end_run_try(run);
	if (is_final || age_ms + delay_ms > GIVE_UP_MS) {
		give_up_run(run, what, why);
		return;
	}
	log_event(LOG_WARN, "periodic_run_waits", LOG_S("accelerator", run->accelerator),
	    LOG_S("why", what), LOG_S("error", why), LOG_I("again_in_ms", delay_ms));
	set_run_reason(run, what, why);
	run->again_ms = delay_ms;
	/* Records the reason, so that people see it while the run waits. */
	run->op.fail = (struct fail_schedule_run){
	    .op.done = on_run_noted,
	    .run_id = run->id,
	    .reason = run->reason,
	    .is_tried_again = true,
	    .now_ms = clock_wall_ms(),
	};
	rc = store_fail_schedule_run(run->scheduler->d->deps.store, &run->op.fail);
	run->is_stored = rc == 0;
	if (rc)
		timer_start(run->timer, run->again_ms);
}

/* ---- dispatched ---- */

static void on_run_started(struct store_op *op)
{
	struct scheduled_run *run = CONTAINER_OF(op, struct scheduled_run, op.start.op);
	struct dispatch_counters *counters = &run->scheduler->d->counters;
	static const char *const events[] = {
	    [SCHEDULE_DISPATCHED] = "periodic_run_dispatched",
	    [SCHEDULE_NOTHING_NEW] = "periodic_run_skipped",
	    [SCHEDULE_NOBODY] = "periodic_run_failed",
	    [SCHEDULE_GONE] = "periodic_run_gone",
	};
	enum schedule_step step = run->op.start.step;

	if (!finish_run_op(run, op))
		return;
	counters->n_nightlies_dispatched += step == SCHEDULE_DISPATCHED;
	counters->n_nightlies_skipped += step == SCHEDULE_NOTHING_NEW;
	counters->n_nightlies_failed += step == SCHEDULE_NOBODY;
	log_event(LOG_INFO, events[step], LOG_S("accelerator", run->accelerator),
	    LOG_S("head", run->plan.head_sha), LOG_S("source", run->source.sha),
	    LOG_S("why", run->op.start.reason));
	scheduled_run_free(run);
}

static void start_run(struct scheduled_run *run)
{
	run->op.start = (struct start_schedule_run){
	    .op = {.done = on_run_started, .retry.event = "periodic_run_unwritten"},
	    .run_id = run->id,
	    .plan = &run->plan,
	    .guid = run->guid,
	    .body = run->body,
	    .body_bytes = strlen(run->body),
	    .source = run->source.sha ? &run->source : NULL,
	    .now_ms = clock_wall_ms(),
	};
	run_submitted(run, store_start_schedule_run(run->scheduler->d->deps.store, &run->op.start));
}

/* ---- the source's head ---- */

static void on_source_head(struct head_request *q)
{
	struct scheduled_run *run = CONTAINER_OF(q, struct scheduled_run, head);
	struct scheduler *s = run->scheduler;
	/* The vendor's file causes these errors, so retrying does not help. */
	bool is_final = q->err == ERR_NOT_FOUND || q->err == ERR_DENIED || q->err == ERR_INVALID;

	run->is_asking = false;
	s->d->counters.n_head_failures += q->err != 0;
	if (s->d->is_closing) {
		scheduler_settle(s);
		return;
	}
	if (q->err) {
		retry_run(run, "the head of its source could not be read",
		    *q->why.text ? q->why.text : err_text(q->err), is_final, 0);
		return;
	}
	run->source.sha = xstrdup(q->sha);
	start_run(run);
}

/* ---- upstream's head ---- */

void scheduled_run_have_upstream(
    struct scheduled_run *run, int err, const char *why, bool is_final, int64_t wait_ms)
{
	const struct upstream_head *u = &run->scheduler->upstream;
	const struct accelerator *a = config_accelerator(run->config, run->accelerator);
	struct nightly_head head = {u->sha, u->branch, u->title, u->author};

	if (err) {
		retry_run(run, "upstream's head could not be read", why, is_final, wait_ms);
		return;
	}
	plan_nightly(&head, a, run->config, &run->plan);
	run->body = synthetic_nightly(u->repository, u->branch, u->sha);
	if (a->source_git_url) {
		const struct head_reader *reader = &run->scheduler->d->deps.heads;

		run->source = (struct source_head){
		    .accelerator = xstrdup(a->name),
		    .git_url = xstrdup(a->source_git_url),
		    .branch = xstrdup_or_null(a->source_branch),
		};
		run->head = (struct head_request){
		    .git_url = run->source.git_url,
		    .branch = run->source.branch,
		    .done = on_source_head,
		};
		run->is_asking = true;
		run->scheduler->d->counters.n_source_heads_asked++;
		reader->ask(reader->owner, &run->head);
	} else {
		start_run(run);
	}
}

static void continue_run(struct scheduled_run *run)
{
	struct scheduler *s = run->scheduler;

	if (run->is_refused) {
		fail_run(run);
		return;
	}
	if (!config_accelerator(s->d->config, run->accelerator)) {
		give_up_run(run, "it has left the registry", "");
		return;
	}
	run->config = config_ref(s->d->config);
	run->waits_for_upstream = true;
	upstream_head_ask(s);
}
