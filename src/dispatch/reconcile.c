/* The looks, and their third part: it compares the tips of upstream's branches with the recorded pushes. Of several
 * missed pushes it finds only the last one, whose commit users have now. The plan contains the commits of the others,
 * so that the branch's history has no gap. */
#include "dispatch/reconcile.h"

#include "db/seats.h"

enum { AFTER_FAILURE_MS = 30 * 1000 };

static const char SINCE_KEY[] = "reconcile.since";

static void (*const PARTS[])(struct reconciler *r) = {
    reconcile_deliveries,
    reconcile_pulls,
    reconcile_branches,
};

static void on_reconcile_timer(struct timer *t);

struct reconciler *reconciler_new(struct dispatch *d)
{
	struct reconciler *r = xcalloc(1, sizeof(*r));

	r->d = d;
	r->timer = timer_new(d->deps.loop, on_reconcile_timer, r);
	timer_start(r->timer, 0);
	return r;
}

/* ---- from one look to the next ---- */

static void release_reconcile_look(struct reconciler *r)
{
	json_decref(r->dl.page);
	json_decref(r->dl.settled);
	FREE_ALL(r->dl.note.failed, r->dl.note.arrived);
	list_redeliveries_release(&r->dl.due);
	memset(&r->dl, 0, sizeof(r->dl));
	list_pulls_release(&r->pl.known);
	list_pulls_release(&r->pl.all);
	free(r->pl.is_listed);
	json_decref(r->pl.page);
	event_release(&r->pl.event);
	memset(&r->pl, 0, sizeof(r->pl));
	FREE_AND_NULL(r->br.tip);
	json_decref(r->br.answer);
	r->br.answer = NULL;
	r->br.i = 0;
	config_unref(r->config);
	r->config = NULL;
	FREE_AND_NULL(r->setting_key);
	FREE_AND_NULL(r->setting_value);
	r->is_running = false;
}

static void finish_closing_reconciler(struct reconciler *r)
{
	if (r->is_running)
		release_reconcile_look(r);
	for (size_t i = 0; i < r->br.n_memory; i++)
		free(r->br.memory[i].name);
	free(r->br.memory);
	timer_close(r->timer);
	dispatch_part_closed(r->d, r);
}

void reconciler_close(struct reconciler *r)
{
	timer_stop(r->timer);
	if (r->is_on_github) /* every call in the union begins with op.call */
		github_cancel(r->d->deps.github, &r->op.call);
	if (!r->is_busy)
		finish_closing_reconciler(r);
}

/* The interval counts from the last look, so that repeated reloads of the configuration do not postpone it. */
static void schedule_look(struct reconciler *r)
{
	int64_t after_ms = r->d->config->reconcile_interval_ms;

	if (r->has_failed && after_ms > AFTER_FAILURE_MS)
		after_ms = AFTER_FAILURE_MS;
	after_ms -= clock_mono_ms() - r->looked_mono_ms;
	if (r->was_rung || !r->has_looked || after_ms < 0)
		after_ms = 0;
	timer_start(r->timer, after_ms);
}

void reconcile_part_done(struct reconciler *r)
{
	if (++r->part < (int)ARRAY_LEN(PARTS)) {
		PARTS[r->part](r);
	} else {
		release_reconcile_look(r);
		r->has_looked = true;
		r->looked_mono_ms = clock_mono_ms();
		if (r->has_failed) {
			r->d->counters.n_reconcile_failures++;
		} else {
			r->n_complete_looks++;
			r->d->counters.last_reconcile_wall_ms = clock_wall_ms();
		}
		log_event(LOG_DEBUG, "reconciled", LOG_S("outcome", r->has_failed ? "failed" : "ok"));
		schedule_look(r);
	}
}

void reconcile_part_failed(struct reconciler *r, const char *what, const char *why)
{
	r->has_failed = true;
	log_event(LOG_WARN, "reconcile_failed", LOG_S("step", what), LOG_S("error", why));
	reconcile_part_done(r);
}

static void begin_parts(struct reconciler *r)
{
	r->part = 0;
	PARTS[0](r);
}

static void have_since(struct reconciler *r)
{
	if (r->setting_value && parse_int64(r->setting_value, &r->since_ms) == 0) {
		begin_parts(r);
		return;
	}
	r->since_ms = clock_wall_ms();
	reconcile_save_setting(r, xstrdup(SINCE_KEY), xasprintf("%lld", (long long)r->since_ms), begin_parts);
}

/* Ends the look if another node has the seat now. Its work is in the database. */
static bool has_reconciler_seat(struct reconciler *r)
{
	bool has_seat = store_has_seat(r->d->deps.store, SEAT_RECONCILER);

	if (!has_seat && r->is_running)
		release_reconcile_look(r);
	return has_seat;
}

static void on_reconcile_timer(struct timer *t)
{
	struct reconciler *r = timer_owner(t);

	if (!has_reconciler_seat(r)) {
		r->was_rung = false; /* reconciler_on_seat() looks */
	} else if (r->is_running) {
		r->then(r);
	} else if (!config_is_registry_loaded(r->d->config)) {
		/* reconciler_configure() starts the look once the registry is loaded */
		r->was_rung = true;
	} else {
		r->is_running = true;
		r->was_rung = false;
		r->has_failed = false;
		r->part = ARRAY_LEN(PARTS); /* a failure before the first one ends the look */
		r->config = config_ref(r->d->config);
		reconcile_load_setting(r, xstrdup(SINCE_KEY), have_since);
	}
}

void reconciler_ring(struct reconciler *r)
{
	r->was_rung = true;
	if (!r->is_running)
		timer_start(r->timer, 0);
}

void reconciler_configure(struct reconciler *r)
{
	if (!r->is_running)
		schedule_look(r);
}

void reconciler_on_seat(struct reconciler *r)
{
	for (size_t i = 0; i < r->br.n_memory; i++)
		r->br.memory[i].etag[0] = '\0';
	r->n_complete_looks = 0;
	r->has_looked = false;
	reconciler_ring(r);
}

bool reconciler_is_idle(const struct reconciler *r) { return !r->is_running && !r->is_busy; }

/* ---- one operation at a time ---- */

void reconcile_later(struct reconciler *r, void (*step)(struct reconciler *r), int64_t after_ms)
{
	r->then = step;
	timer_start(r->timer, after_ms);
}

void reconcile_submitted(struct reconciler *r, const char *what, int rc)
{
	if (rc == 0)
		r->is_busy = true;
	else
		reconcile_part_failed(r, what, err_text(rc));
}

void reconcile_goes_to_github(struct reconciler *r)
{
	r->is_busy = true;
	r->is_on_github = true;
}

bool reconcile_op_ended(struct reconciler *r, const char *what, int err, const struct error *why)
{
	r->is_busy = false;
	r->is_on_github = false;
	if (r->d->is_closing) {
		finish_closing_reconciler(r);
		return false;
	}
	if (!has_reconciler_seat(r))
		return false;
	if (!err)
		return true;
	reconcile_part_failed(r, what, *why->text ? why->text : err_text(err));
	return false;
}

static void on_setting_loaded(struct store_query *q)
{
	struct reconciler *r = CONTAINER_OF(q, struct reconciler, op.get_setting.q);

	r->setting_value = q->err ? NULL : r->op.get_setting.value;
	if (reconcile_op_ended(r, "reading a setting", q->err, &q->why))
		r->then(r);
}

static void use_setting(struct reconciler *r, char *key, char *value, void (*then)(struct reconciler *r))
{
	free(r->setting_key);
	free(r->setting_value);
	r->setting_key = key;
	r->setting_value = value;
	r->then = then;
}

void reconcile_load_setting(struct reconciler *r, char *key, void (*then)(struct reconciler *r))
{
	use_setting(r, key, NULL, then);
	r->op.get_setting = (struct get_setting){.q.done = on_setting_loaded, .key = key};
	reconcile_submitted(r, "reading a setting", store_get_setting(r->d->deps.store, &r->op.get_setting));
}

static void on_setting_saved(struct store_op *op)
{
	struct reconciler *r = CONTAINER_OF(op, struct reconciler, op.put_setting.op);

	if (reconcile_op_ended(r, "writing a setting", op->err, &op->why))
		r->then(r);
}

void reconcile_save_setting(struct reconciler *r, char *key, char *value, void (*then)(struct reconciler *r))
{
	use_setting(r, key, value, then);
	r->op.put_setting = (struct put_setting){.op.done = on_setting_saved, .key = key, .value = value};
	reconcile_submitted(r, "writing a setting", store_put_setting(r->d->deps.store, &r->op.put_setting));
}

static void on_planned(void *owner, int err)
{
	struct reconciler *r = owner;

	if (!reconcile_op_ended(r, "planning", 0, NULL))
		return;
	if (!err)
		r->d->counters.n_reconciled++;
	r->then(r);
}

void reconcile_plan(struct reconciler *r, const char *event_name, char *body, void (*then)(struct reconciler *r))
{
	r->then = then;
	r->is_busy = true;
	planner_start_event(r->d->planner, event_name, body, on_planned, r);
}

static const char *branch_name(const struct reconciler *r) { return r->config->upstream_branches[r->br.i]; }

static struct branch_memory *branch_memory_of(struct reconciler *r)
{
	for (size_t i = 0; i < r->br.n_memory; i++)
		if (str_eq(r->br.memory[i].name, branch_name(r)))
			return &r->br.memory[i];

	struct branch_memory *m = ARRAY_PUSH(r->br.memory, r->br.n_memory);
	*m = (struct branch_memory){.name = xstrdup(branch_name(r))};
	return m;
}

static char *branch_key(const struct reconciler *r) { return xasprintf("reconcile.branch.%s", branch_name(r)); }

/* Continues with the next branch. */
static void continue_branches(struct reconciler *r)
{
	memcpy(branch_memory_of(r)->etag, r->br.etag, sizeof(r->br.etag));
	r->br.i++;
	reconcile_branches(r);
}

static void keep_tip(struct reconciler *r)
{
	if (str_eq(r->br.tip, r->br.sha))
		continue_branches(r);
	else
		reconcile_save_setting(r, branch_key(r), xstrdup(r->br.sha), continue_branches);
}

static void on_branch_noted(struct store_op *op)
{
	struct reconciler *r = CONTAINER_OF(op, struct reconciler, op.note.op);

	free((char *)r->op.note.ref);
	if (reconcile_op_ended(r, "recording a tip", op->err, &op->why))
		keep_tip(r);
}

static void on_commits_between(struct github_call *call)
{
	struct reconciler *r = CONTAINER_OF(call, struct reconciler, op.commits.call);
	const struct github_result *result = &call->result;
	bool is_known = result->err == 0 && r->op.commits.is_complete;
	/* If the comparison is too large for GitHub or the tip no longer exists, waiting does not help. */
	bool is_hopeless = result->is_final || result->err == ERR_TOO_BIG;
	struct github_result kept = *result;
	struct missed_push m = {
	    .branch = r->br.answer,
	    .name = branch_name(r),
	    .after = r->br.sha,
	    .repository = r->config->upstream_repository,
	    .before = r->br.tip,
	    .between = is_known ? json_object_get(call->answer, "commits") : NULL,
	    .is_forced = result->err == 0 && !r->op.commits.is_ahead,
	};
	char *body = synthetic_push(&m);

	github_call_release(call);
	if (reconcile_op_ended(r, "comparing commits", is_hopeless ? 0 : kept.err, is_hopeless ? NULL : &kept.why))
		reconcile_plan(r, "push", body, keep_tip);
	else
		free(body);
}

static void on_has_push(struct store_query *q)
{
	struct reconciler *r = CONTAINER_OF(q, struct reconciler, op.has_push.q);
	bool is_known = r->op.has_push.is_known;

	if (!reconcile_op_ended(r, "looking up a push", q->err, &q->why))
		return;
	if (is_known) {
		keep_tip(r);
	} else if (!r->br.tip) {
		char *ref = xasprintf("refs/heads/%s", branch_name(r));

		r->op.note = (struct note_head){
		    .op.done = on_branch_noted,
		    .repository = r->config->upstream_repository,
		    .ref = ref,
		    .head_sha = r->br.sha,
		    .now_ms = clock_wall_ms(),
		};
		int rc = store_note_head(r->d->deps.store, &r->op.note);
		if (rc)
			free(ref);
		reconcile_submitted(r, "recording a tip", rc);
	} else {
		log_event(LOG_INFO, "push_found", LOG_S("branch", branch_name(r)), LOG_S("head", r->br.sha));
		r->op.commits = (struct github_commits){.call.done = on_commits_between};
		reconcile_goes_to_github(r);
		github_commits_between(
		    r->d->deps.github, &r->op.commits, r->config->upstream_repository, r->br.tip, r->br.sha);
	}
}

static void have_tip(struct reconciler *r)
{
	free(r->br.tip);
	r->br.tip = r->setting_value;
	r->setting_value = NULL;
	r->op.has_push = (struct has_push){
	    .q.done = on_has_push,
	    .repository = r->config->upstream_repository,
	    .head_sha = r->br.sha,
	};
	reconcile_submitted(r, "looking up a push", store_has_push(r->d->deps.store, &r->op.has_push));
}

static void on_reconciled_branch(struct github_call *call)
{
	struct reconciler *r = CONTAINER_OF(call, struct reconciler, op.branch.call);
	struct github_result result = call->result;
	bool is_unchanged = r->op.branch.is_unchanged;
	/* A missing branch is a mistake in the configuration. The look continues with the others. */
	bool is_missing = result.err == ERR_NOT_FOUND;

	json_decref(r->br.answer);
	r->br.answer = json_incref(call->answer);
	memcpy(r->br.etag, r->op.branch.etag, sizeof(r->br.etag));
	memcpy(r->br.sha, r->op.branch.sha, sizeof(r->br.sha));
	github_call_release(call);
	if (!reconcile_op_ended(r, "reading a branch", is_missing ? 0 : result.err, &result.why))
		return;
	if (is_missing)
		log_event(LOG_WARN, "branch_missing", LOG_S("branch", branch_name(r)), LOG_S("error", result.why.text));
	if (is_missing || is_unchanged || !is_sha1(r->br.sha)) {
		r->br.i++;
		reconcile_branches(r);
		return;
	}
	reconcile_load_setting(r, branch_key(r), have_tip);
}

void reconcile_branches(struct reconciler *r)
{
	if (!branch_name(r)) {
		reconcile_part_done(r);
		return;
	}
	r->op.branch = (struct github_branch){.call.done = on_reconciled_branch};
	memcpy(r->op.branch.etag, branch_memory_of(r)->etag, sizeof(r->op.branch.etag));
	reconcile_goes_to_github(r);
	github_branch_get(r->d->deps.github, &r->op.branch, r->config->upstream_repository, branch_name(r));
}
