#include "dispatch/scheduler.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "loop/bell.h"

static void upstream_head_release(struct scheduler *s)
{
	struct upstream_head *u = &s->upstream;

	u->etag[0] = u->sha[0] = '\0';
	FREE_AND_NULL(u->repository);
	FREE_AND_NULL(u->branch);
	FREE_AND_NULL(u->title);
	FREE_AND_NULL(u->author);
}

static void on_upstream_head(struct github_call *call)
{
	struct scheduler *s = CONTAINER_OF(call, struct scheduler, upstream.call.call);
	struct upstream_head *u = &s->upstream;
	struct github_result result = call->result;

	u->is_asked = false;
	if (result.err == 0 && !u->call.is_unchanged) {
		const json_t *commit = json_object_get(call->answer, "commit");
		const char *message = json_get_str(json_object_get(commit, "commit"), "message");
		const char *author = json_get_str(json_object_get(commit, "author"), "login");

		memcpy(u->sha, u->call.sha, sizeof(u->sha));
		memcpy(u->etag, u->call.etag, sizeof(u->etag));
		free(u->title);
		free(u->author);
		u->title = message ? xstrndup(message, strcspn(message, "\r\n")) : NULL;
		u->author = xstrdup_or_null(author);
	}
	s->d->counters.n_upstream_heads_unchanged += result.err == 0 && u->call.is_unchanged;
	s->d->counters.n_head_failures += result.err != 0;
	github_call_release(call);
	if (s->d->is_closing) {
		scheduler_settle(s);
	} else {
		struct scheduled_run *waiting[64];
		size_t n;

		/* A run that gets its answer may wait for another one at once. This walk leaves it out. */
		do {
			n = 0;
			for (struct scheduled_run *run = s->runs; run && n < ARRAY_LEN(waiting);
			     run = run->next)
				if (run->waits_for_upstream) {
					run->waits_for_upstream = false;
					waiting[n++] = run;
				}
			for (size_t i = 0; i < n; i++)
				scheduled_run_have_upstream(waiting[i], result.err,
				    *result.why.text ? result.why.text : err_text(result.err),
				    result.is_final, result.retry_after_ms);
		} while (n == ARRAY_LEN(waiting));
	}
}

void upstream_head_ask(struct scheduler *s)
{
	const struct config *c = s->d->config;
	struct upstream_head *u = &s->upstream;

	if (u->is_asked)
		return;
	if (!str_eq(u->repository, c->upstream_repository) ||
	    !str_eq(u->branch, c->upstream_branches[0])) {
		upstream_head_release(s);
		u->repository = xstrdup(c->upstream_repository);
		u->branch = xstrdup(c->upstream_branches[0]);
	}
	u->call = (struct github_branch){.call.done = on_upstream_head};
	memcpy(u->call.etag, u->etag, sizeof(u->etag));
	u->is_asked = true;
	s->d->counters.n_upstream_heads_asked++;
	github_branch_get(s->d->deps.github, &u->call, u->repository, u->branch);
}

/* ---- a look for due runs ---- */

static void release_schedule_look(struct scheduler *s)
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

static void on_schedules_looked(struct store_op *op)
{
	struct scheduler *s = CONTAINER_OF(op, struct scheduler, look.op);
	bool is_closing = s->d->is_closing;

	if (op->err) {
		log_event(LOG_WARN, "schedules_unread", LOG_S("error", op->why.text));
	} else {
		bell_by(s->bell, s->look.next_ms);
		s->d->counters.n_nightlies_skipped += s->look.n_skipped;
		if (s->look.n_taken || s->look.n_skipped)
			log_event(LOG_INFO, "periodic_runs_due", LOG_I("taken", s->look.n_taken),
			    LOG_I("skipped", s->look.n_skipped));
		for (size_t i = 0; i < s->look.n && !is_closing; i++)
			scheduled_run_take(s, &s->look.tasks[i]);
	}
	release_schedule_look(s);
	if (op->err)
		bell_retry(s->bell);
	else
		bell_rest(s->bell);
	if (is_closing)
		scheduler_settle(s);
}

static void look_at_schedules(void *owner)
{
	struct scheduler *s = owner;
	const struct config *c;
	size_t n = 0;

	/* The schedules are not known yet. dispatch_configure() rings once they are. */
	if (!config_is_registry_loaded(s->d->config)) {
		bell_rest(s->bell);
		return;
	}
	s->config = config_ref(s->d->config);
	s->look =
	    (struct look_at_schedules){.op.done = on_schedules_looked, .now_ms = clock_wall_ms()};
	c = s->config;
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
	s->look.entries = s->entries;
	if (store_look_at_schedules(s->d->deps.store, &s->look)) {
		release_schedule_look(s);
		bell_retry(s->bell);
	}
}

/* ---- life ---- */

void scheduler_ring(struct scheduler *s)
{
	bell_ring(s->bell);
}

static void on_schedule_clock_jumped(int64_t by_ms, void *owner)
{
	struct scheduler *s = owner;

	(void)by_ms;
	bell_ring(s->bell);
}

struct scheduler *scheduler_new(struct dispatch *d)
{
	struct scheduler *s = xcalloc(1, sizeof(*s));

	s->d = d;
	s->bell = bell_new(d->deps.loop, look_at_schedules, s);
	s->clock = clock_watch_new(d->deps.loop, on_schedule_clock_jumped, s);
	bell_ring(s->bell);
	return s;
}

void scheduler_settle(struct scheduler *s)
{
	if (!s->d->is_closing || s->is_closed)
		return;
	for (struct scheduled_run *run = s->runs, *next; run; run = next) {
		next = run->next;
		if (scheduled_run_is_idle(run))
			scheduled_run_free(run);
	}
	if (bell_is_looking(s->bell) || s->upstream.is_asked || s->runs)
		return;
	s->is_closed = true;
	upstream_head_release(s);
	bell_free(s->bell);
	loop_reap(s->d->deps.loop, free, s);
	dispatch_part_closed(s->d);
}

void scheduler_close(struct scheduler *s)
{
	clock_watch_free(s->clock);
	bell_stop(s->bell);
	if (s->upstream.is_asked)
		github_cancel(s->d->deps.github, &s->upstream.call.call);
	for (struct scheduled_run *run = s->runs; run; run = run->next)
		scheduled_run_cancel(run);
	scheduler_settle(s);
}
