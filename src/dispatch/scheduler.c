#include "dispatch/scheduler.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "dispatch/scheduler_internal.h"

enum {
	LOOK_EVERY_MS = 5000, /* at the wall clock, which may have been put */
	AGAIN_MS = 1000,
};

static void on_timer(struct timer *t);

struct scheduler *scheduler_new(struct dispatch *d)
{
	struct scheduler *s = xcalloc(1, sizeof(*s));

	s->d = d;
	s->was_rung = true;
	s->timer = timer_new(d->deps.loop, on_timer, s);
	timer_start(s->timer, 0);
	return s;
}

void scheduler_ring(struct scheduler *s)
{
	s->was_rung = true;
	if (!s->is_looking)
		timer_start(s->timer, 0);
}

static void arm(struct scheduler *s)
{
	int64_t after_ms = LOOK_EVERY_MS;

	if (s->next_wall_ms && s->next_wall_ms - clock_wall_ms() < after_ms)
		after_ms = s->next_wall_ms - clock_wall_ms();
	if (s->was_rung)
		after_ms = 0;
	timer_start(s->timer, after_ms > 0 ? after_ms : 0);
}

/* ---- a look at what is due ---- */

static void release_look(struct scheduler *s)
{
	for (size_t i = 0; i < s->look.n_entries; i++)
		schedule_release(&s->times[i]);
	FREE_AND_NULL(s->times);
	FREE_AND_NULL(s->entries);
	look_at_schedules_release(&s->look);
	s->look.n_entries = 0;
	config_unref(s->config);
	s->config = NULL;
}

static void on_looked(struct store_op *op)
{
	struct scheduler *s = CONTAINER_OF(op, struct scheduler, look.op);
	bool is_closing = s->d->is_closing;

	s->is_looking = false;
	if (op->err) {
		log_event(LOG_WARN, "schedules_unread", LOG_S("error", op->why.text));
		s->was_rung = true;
	} else {
		s->next_wall_ms = s->look.next_ms;
		s->d->counters.n_nightlies_skipped += s->look.n_skipped;
		if (s->look.n_taken || s->look.n_skipped)
			log_event(LOG_INFO, "periodic_runs_due", LOG_I("taken", s->look.n_taken),
			    LOG_I("skipped", s->look.n_skipped));
		for (size_t i = 0; i < s->look.n && !is_closing; i++)
			scheduled_run_take(s, &s->look.tasks[i]);
	}
	release_look(s);
	if (is_closing)
		scheduler_settle(s);
	else if (op->err)
		timer_start(s->timer, AGAIN_MS);
	else
		arm(s);
}

static void fill_entries(struct scheduler *s)
{
	const struct config *c = s->config;
	size_t n = 0;

	s->entries = xcalloc(c->n_accelerators + 1, sizeof(*s->entries));
	s->times = xcalloc(c->n_accelerators + 1, sizeof(*s->times));
	for (size_t i = 0; i < c->n_accelerators; i++) {
		const struct accelerator *a = &c->accelerators[i];
		const char *const *crons = (const char *const *)a->triggers.schedules;

		if (!crons || !crons[0])
			continue;
		schedule_init(&s->times[n], a->name, crons, c->schedule_jitter_ms);
		s->entries[n] = (struct schedule_entry){a->name, crons, &s->times[n]};
		n++;
	}
	s->look.n_entries = n;
}

static void look(struct scheduler *s)
{
	int rc;

	s->was_rung = false;
	s->looked_wall_ms = clock_wall_ms();
	s->config = config_ref(s->d->config);
	s->look = (struct look_at_schedules){.op.done = on_looked, .now_ms = s->looked_wall_ms};
	fill_entries(s);
	s->look.entries = s->entries;
	rc = store_look_at_schedules(s->d->deps.store, &s->look);
	if (rc) {
		release_look(s);
		s->was_rung = true;
		timer_start(s->timer, AGAIN_MS);
	} else {
		s->is_looking = true;
	}
}

static void on_timer(struct timer *t)
{
	struct scheduler *s = timer_owner(t);
	int64_t now_ms = clock_wall_ms();
	bool is_due = s->next_wall_ms && s->next_wall_ms <= now_ms;

	/* Nobody knows yet who has a schedule: dispatch_configure() rings when it is known. */
	if (!config_is_registry_loaded(s->d->config)) {
		timer_start(s->timer, LOOK_EVERY_MS);
		return;
	}
	if (s->was_rung || is_due || now_ms < s->looked_wall_ms)
		look(s);
	else
		arm(s);
}

/* ---- closing ---- */

void scheduler_settle(struct scheduler *s)
{
	if (!s->d->is_closing || s->is_closed)
		return;
	for (struct scheduled_run *run = s->runs, *next; run; run = next) {
		next = run->next;
		if (scheduled_run_is_idle(run))
			scheduled_run_free(run);
	}
	if (s->is_looking || s->upstream.is_asked || s->runs)
		return;
	s->is_closed = true;
	upstream_head_release(s);
	timer_close(s->timer);
	loop_reap(s->d->deps.loop, free, s);
	dispatch_part_closed(s->d);
}

void scheduler_close(struct scheduler *s)
{
	timer_stop(s->timer);
	upstream_head_cancel(s);
	for (struct scheduled_run *run = s->runs; run; run = run->next)
		scheduled_run_cancel(run);
	scheduler_settle(s);
}
