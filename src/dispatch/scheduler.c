/* Periodic runs (triggers.schedule): when a run is due, reads upstream's head and the head of the vendor's own code,
 * and makes a `nightly` change of them for that accelerator's runners. A failed step is retried with growing pauses for
 * an hour, which begins again after a restart.
 *
 * Runs are due by the wall clock, and a clock watch notices when it jumps. A due run is a row in the database before
 * its heads are read, so a restarted daemon continues it. */

#include "db/seats.h"
#include "dispatch/dispatch_internal.h"
#include "dispatch/plan.h"
#include "github/github.h"
#include "loop/bell.h"
#include "model/schedule.h"
#include "store/schedules.h"

enum { GIVE_UP_MS = 3600 * 1000, UNWRITTEN_MS = 10 * 1000, REASON_OF_SERVER_BYTES = 150 };

/* Upstream's head from GitHub's last answer. A request carries its ETag, so an unchanged head costs no quota, and one
 * request serves all runs that wait. */
struct upstream_head {
	struct github_branch call;
	bool is_requested;
	char *repository, *branch;    /* of this head; NULL: nothing is known */
	char etag[GITHUB_ETAG_BYTES]; /* "" without a sha */
	char sha[41];
	char *title, *author; /* NULL: unknown */
};

struct scheduled_run {
	LIST_ENTRY(scheduled_run) link;
	struct scheduler *scheduler;
	int64_t id;
	char *accelerator;
	struct config *config; /* of this attempt; NULL between attempts */
	struct timer *timer;
	int n_tries;
	int64_t first_mono_ms;
	int64_t again_ms; /* from a recorded failure to the next attempt */
	bool waits_for_upstream;
	bool is_reading_head; /* the registry is reading `head` */
	bool is_stored;       /* the store runs an operation */
	bool is_refused;      /* the run has failed, see `reason` */
	struct head_request head;
	struct source_head source; /* sha NULL: no source, or not read yet */
	struct plan plan;
	char *body;
	char guid[UUID_BYTES];
	char reason[SCHEDULE_REASON_BYTES];
	union {
		struct start_schedule_run start;
		struct fail_schedule_run fail;
	} op;
};

struct scheduler {
	struct dispatch *d;
	struct bell *bell;
	struct clock_watch *clock; /* a run becomes due when the clock is put forward */
	bool is_closed;
	struct look_at_schedules look;
	struct config *config; /* of the look that runs */
	struct schedule_entry *entries;
	struct schedule *times;
	struct upstream_head upstream;
	LIST_HEAD(, scheduled_run) runs;
};

static void request_upstream_head(struct scheduler *s);

/* ---- one run, until it is dispatched, skipped or failed ---- */

static void end_run_try(struct scheduled_run *run)
{
	plan_release(&run->plan);
	run->plan = (struct plan){0};
	source_head_release(&run->source);
	FREE_AND_NULL(run->body);
	config_unref(run->config);
	run->config = NULL;
}

static void free_run(struct scheduled_run *run)
{
	LIST_REMOVE(run, link);
	end_run_try(run);
	timer_close(run->timer);
	free(run->accelerator);
	free(run);
}

static void upstream_head_release(struct upstream_head *u)
{
	FREE_ALL(u->repository, u->branch, u->title, u->author);
	*u = (struct upstream_head){0};
}

/* They stay in the database, where the next start or another node finds them. */
static void free_idle_runs(struct scheduler *s)
{
	for (struct scheduled_run *run = LIST_FIRST(&s->runs), *next; run; run = next) {
		next = LIST_NEXT(run, link);
		if (!run->is_reading_head && !run->is_stored)
			free_run(run);
	}
}

/* Runs after each operation. If the scheduler is closing, frees idle runs, and after the last one the scheduler. */
static void settle_scheduler(struct scheduler *s)
{
	if (!s->d->is_closing || s->is_closed)
		return;
	free_idle_runs(s);
	if (bell_is_looking(s->bell) || s->upstream.is_requested || !LIST_EMPTY(&s->runs))
		return;
	s->is_closed = true;
	upstream_head_release(&s->upstream);
	bell_free(s->bell);
	dispatch_part_closed(s->d, s);
}

/* The operation has ended. False: its result is not in the database, and the run tries again later. */
static bool finish_run_op(struct scheduled_run *run, const struct store_op *op)
{
	struct scheduler *s = run->scheduler;

	run->is_stored = false;
	if (s->d->is_closing) {
		settle_scheduler(s);
		return false;
	}
	if (op->err == 0)
		return true;
	log_event(
	    LOG_WARN, "periodic_run_unwritten", LOG_S("accelerator", run->accelerator), LOG_S("error", op->why.text));
	end_run_try(run);
	timer_start(run->timer, UNWRITTEN_MS);
	return false;
}

/* A run that waits is tried again even if its reason was not written. */
static void on_reason_written(struct store_op *op)
{
	struct scheduled_run *run = CONTAINER_OF(op, struct scheduled_run, op.fail.op);
	struct scheduler *s = run->scheduler;

	if (run->op.fail.is_tried_again) {
		run->is_stored = false;
		if (s->d->is_closing)
			settle_scheduler(s);
		else
			timer_start(run->timer, run->again_ms);
	} else if (finish_run_op(run, op)) {
		s->d->counters.n_nightlies_failed++;
		log_event(
		    LOG_WARN, "periodic_run_failed", LOG_S("accelerator", run->accelerator), LOG_S("why", run->reason));
		free_run(run);
	}
}

/* Records the reason, so that people see it. again_ms: until the next attempt; 0: the run has failed. */
static void write_run_reason(struct scheduled_run *run, int64_t again_ms)
{
	run->again_ms = again_ms;
	run->op.fail = (struct fail_schedule_run){
	    .op = {.done = on_reason_written,
		.retry = {.event = again_ms ? NULL : "periodic_run_unwritten", .now_ms = &run->op.fail.now_ms}},
	    .run_id = run->id,
	    .reason = run->reason,
	    .is_tried_again = again_ms != 0,
	    .now_ms = clock_wall_ms(),
	};
	run->is_stored = store_fail_schedule_run(run->scheduler->d->deps.store, &run->op.fail) == 0;
	if (!run->is_stored && again_ms)
		timer_start(run->timer, again_ms);
}

/* is_final: retrying does not help. */
static void retry_run(struct scheduled_run *run, const char *what, const char *why, bool is_final, int64_t wait_ms)
{
	int64_t delay_ms = backoff_delay_ms(++run->n_tries, wait_ms, random_fraction());
	int64_t age_ms = clock_mono_ms() - run->first_mono_ms;

	end_run_try(run);
	snprintf(run->reason, sizeof(run->reason), "%s%s%.*s", what, *why ? ": " : "",
	    (int)utf8_cut(why, strlen(why), REASON_OF_SERVER_BYTES), why);
	run->is_refused = is_final || age_ms + delay_ms > GIVE_UP_MS;
	if (!run->is_refused)
		log_event(LOG_WARN, "periodic_run_waits", LOG_S("accelerator", run->accelerator), LOG_S("why", what),
		    LOG_S("error", why), LOG_I("again_in_ms", delay_ms));
	write_run_reason(run, run->is_refused ? 0 : delay_ms);
}

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
	log_event(LOG_INFO, events[step], LOG_S("accelerator", run->accelerator), LOG_S("head", run->plan.head_sha),
	    LOG_S("source", run->source.sha), LOG_S("why", run->op.start.reason));
	free_run(run);
}

static void start_run(struct scheduled_run *run)
{
	run->op.start = (struct start_schedule_run){
	    .op = {.done = on_run_started,
		.retry = {.event = "periodic_run_unwritten", .now_ms = &run->op.start.now_ms}},
	    .run_id = run->id,
	    .plan = &run->plan,
	    .guid = run->guid,
	    .body = run->body,
	    .body_bytes = strlen(run->body),
	    .source = run->source.sha ? &run->source : NULL,
	    .now_ms = clock_wall_ms(),
	};
	run->is_stored = store_start_schedule_run(run->scheduler->d->deps.store, &run->op.start) == 0;
	if (!run->is_stored)
		end_run_try(run);
}

static void on_source_head(struct head_request *q)
{
	struct scheduled_run *run = CONTAINER_OF(q, struct scheduled_run, head);
	struct scheduler *s = run->scheduler;
	/* The vendor's file causes these errors, so retrying does not help. */
	bool is_final = q->err == ERR_NOT_FOUND || q->err == ERR_DENIED || q->err == ERR_INVALID;

	run->is_reading_head = false;
	s->d->counters.n_head_failures += q->err != 0;
	if (s->d->is_closing) {
		settle_scheduler(s);
	} else if (q->err) {
		retry_run(run, "the head of its source could not be read",
		    *q->why.text ? q->why.text : err_text(q->err), is_final, 0);
	} else {
		run->source.sha = xstrdup(q->sha);
		start_run(run);
	}
}

static void use_upstream_head(struct scheduled_run *run)
{
	struct dispatch *d = run->scheduler->d;
	const struct upstream_head *u = &run->scheduler->upstream;
	const struct accelerator *a = config_accelerator(run->config, run->accelerator);
	struct nightly_head head = {u->sha, u->branch, u->title, u->author};

	plan_nightly(&head, a, run->config, &run->plan);
	run->body = synthetic_nightly(u->repository, u->branch, u->sha);
	if (a->source_git_url) {
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
		run->is_reading_head = true;
		d->counters.n_source_heads_asked++;
		d->deps.heads.ask(d->deps.heads.owner, &run->head);
	} else {
		start_run(run);
	}
}

static void continue_run(struct timer *t)
{
	struct scheduled_run *run = timer_owner(t);
	struct scheduler *s = run->scheduler;

	if (!store_has_seat(s->d->deps.store, SEAT_SCHEDULER)) {
		free_run(run); /* another node goes on */
	} else if (run->is_refused) {
		write_run_reason(run, 0);
	} else if (!config_accelerator(s->d->config, run->accelerator)) {
		retry_run(run, "it has left the registry", "", true, 0);
	} else {
		run->config = config_ref(s->d->config);
		run->waits_for_upstream = true;
		request_upstream_head(s);
	}
}

/* Begins a run in state `reading`, unless it has begun already. */
static void begin_run(struct scheduler *s, const struct schedule_task *task)
{
	struct scheduled_run *run;

	LIST_FOREACH (run, &s->runs, link)
		if (run->id == task->id)
			return;
	run = xcalloc(1, sizeof(*run));
	run->scheduler = s;
	run->id = task->id;
	run->accelerator = xstrdup(task->accelerator);
	run->first_mono_ms = clock_mono_ms();
	run->timer = timer_new(s->d->deps.loop, continue_run, run);
	LIST_INSERT_HEAD(&s->runs, run, link);
	uuid_new(run->guid);
	continue_run(run->timer);
}

/* ---- upstream's head ---- */

static void on_upstream_head(struct github_call *call)
{
	struct scheduler *s = CONTAINER_OF(call, struct scheduler, upstream.call.call);
	struct upstream_head *u = &s->upstream;
	struct github_result result = call->result;

	u->is_requested = false;
	if (result.err == 0 && !u->call.is_unchanged) {
		const json_t *commit = json_object_get(call->answer, "commit");
		const char *message = json_get_str(json_object_get(commit, "commit"), "message");

		memcpy(u->sha, u->call.sha, sizeof(u->sha));
		memcpy(u->etag, u->call.etag, sizeof(u->etag));
		free(u->title);
		free(u->author);
		u->title = message ? xstrndup(message, strcspn(message, "\r\n")) : NULL;
		u->author = xstrdup_or_null(json_get_str(json_object_get(commit, "author"), "login"));
	}
	s->d->counters.n_upstream_heads_unchanged += result.err == 0 && u->call.is_unchanged;
	s->d->counters.n_head_failures += result.err != 0;
	github_call_release(call);
	if (s->d->is_closing) {
		settle_scheduler(s);
		return;
	}
	/* A run that gets its answer may wait for another one at once. This loop does not serve it again. */
	for (struct scheduled_run *run = LIST_FIRST(&s->runs), *next; run; run = next) {
		next = LIST_NEXT(run, link);
		if (!run->waits_for_upstream)
			continue;
		run->waits_for_upstream = false;
		if (result.err)
			retry_run(run, "upstream's head could not be read",
			    *result.why.text ? result.why.text : err_text(result.err), result.is_final,
			    result.retry_after_ms);
		else
			use_upstream_head(run);
	}
}

/* Requests upstream's head, unless a request is running, and then continues each run that waits for it. */
static void request_upstream_head(struct scheduler *s)
{
	const struct config *c = s->d->config;
	struct upstream_head *u = &s->upstream;

	if (u->is_requested)
		return;
	if (!str_eq(u->repository, c->upstream_repository) || !str_eq(u->branch, c->upstream_branches[0])) {
		upstream_head_release(u);
		u->repository = xstrdup(c->upstream_repository);
		u->branch = xstrdup(c->upstream_branches[0]);
	}
	u->call = (struct github_branch){.call.done = on_upstream_head};
	memcpy(u->call.etag, u->etag, sizeof(u->etag));
	u->is_requested = true;
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
			begin_run(s, &s->look.tasks[i]);
	}
	release_schedule_look(s);
	if (op->err)
		bell_retry(s->bell);
	else
		bell_rest(s->bell);
	settle_scheduler(s);
}

static void look_at_schedules(void *owner)
{
	struct scheduler *s = owner;
	struct config *c = s->d->config;
	size_t n = 0;

	/* The schedules are not known yet: dispatch_configure() rings once they are. Or another node runs them. */
	if (!config_is_registry_loaded(c) || !store_has_seat(s->d->deps.store, SEAT_SCHEDULER)) {
		bell_rest(s->bell);
		return;
	}
	s->config = config_ref(c);
	s->look = (struct look_at_schedules){.op.done = on_schedules_looked, .now_ms = clock_wall_ms()};
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

void scheduler_ring(struct scheduler *s) { bell_ring(s->bell); }

void scheduler_on_seat(struct scheduler *s, bool has_seat)
{
	if (has_seat)
		bell_ring(s->bell);
	else
		free_idle_runs(s);
}

bool scheduler_is_idle(const struct scheduler *s) { return LIST_EMPTY(&s->runs) && !bell_is_looking(s->bell); }

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

void scheduler_close(struct scheduler *s)
{
	struct scheduled_run *run;

	clock_watch_free(s->clock);
	bell_stop(s->bell);
	if (s->upstream.is_requested)
		github_cancel(s->d->deps.github, &s->upstream.call.call);
	LIST_FOREACH (run, &s->runs, link) {
		timer_stop(run->timer);
		run->waits_for_upstream = false;
		if (run->is_reading_head)
			s->d->deps.heads.cancel(s->d->deps.heads.owner, &run->head);
	}
	settle_scheduler(s);
}
