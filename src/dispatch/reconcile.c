#include "dispatch/reconcile.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "dispatch/planner.h"
#include "dispatch/reconcile_internal.h"

enum { AFTER_FAILURE_MS = 30 * 1000 };

static const char SINCE_KEY[] = "reconcile.since";

static void (*const parts[])(struct reconciler *r) = {
    reconcile_deliveries,
    reconcile_pulls,
    reconcile_branches,
};

static void on_timer(struct timer *t);

struct reconciler *reconciler_new(struct dispatch *d)
{
	struct reconciler *r = xcalloc(1, sizeof(*r));

	r->d = d;
	r->timer = timer_new(d->deps.loop, on_timer, r);
	timer_start(r->timer, 0);
	return r;
}

/* ---- from one look to the next ---- */

static void release_look(struct reconciler *r)
{
	reconcile_deliveries_release(r);
	reconcile_pulls_release(r);
	reconcile_branches_release(r);
	config_unref(r->config);
	r->config = NULL;
	FREE_AND_NULL(r->setting_value);
	FREE_AND_NULL(r->setting_text);
	r->is_running = false;
}

static void finish_closing(struct reconciler *r)
{
	struct branch_memory *m;

	if (r->is_running)
		release_look(r);
	while ((m = r->br.memory) != NULL) {
		r->br.memory = m->next;
		free(m->name);
		free(m);
	}
	timer_close(r->timer);
	loop_reap(r->d->deps.loop, free, r);
	dispatch_part_closed(r->d);
}

void reconciler_close(struct reconciler *r)
{
	timer_stop(r->timer);
	if (r->is_on_github) /* every call in the union begins with op.call */
		github_cancel(r->d->deps.github, &r->op.call);
	if (!r->is_busy)
		finish_closing(r);
}

/* Counts from the last look: a configuration that is read again and again puts none off. */
static void schedule(struct reconciler *r)
{
	int64_t after_ms = r->d->config->reconcile_interval_ms;

	if (r->has_failed && after_ms > AFTER_FAILURE_MS)
		after_ms = AFTER_FAILURE_MS;
	after_ms -= clock_mono_ms() - r->looked_mono_ms;
	if (r->was_rung || !r->has_looked || after_ms < 0)
		after_ms = 0;
	timer_start(r->timer, after_ms);
}

static void end_look(struct reconciler *r)
{
	release_look(r);
	r->has_looked = true;
	r->looked_mono_ms = clock_mono_ms();
	if (r->has_failed) {
		r->d->counters.n_reconcile_failures++;
	} else {
		r->n_complete_looks++;
		r->d->counters.last_reconcile_wall_ms = clock_wall_ms();
	}
	log_event(LOG_DEBUG, "reconciled", LOG_S("outcome", r->has_failed ? "failed" : "ok"));
	schedule(r);
}

void reconcile_part_done(struct reconciler *r)
{
	if (++r->part < (int)ARRAY_LEN(parts))
		parts[r->part](r);
	else
		end_look(r);
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
	parts[0](r);
}

static void have_since(struct reconciler *r)
{
	char text[24];

	if (r->setting_value && parse_int64(r->setting_value, &r->since_ms) == 0) {
		begin_parts(r);
		return;
	}
	r->since_ms = clock_wall_ms();
	snprintf(text, sizeof(text), "%lld", (long long)r->since_ms);
	reconcile_save_setting(r, SINCE_KEY, text, begin_parts);
}

static void begin_look(struct reconciler *r)
{
	r->is_running = true;
	r->was_rung = false;
	r->has_failed = false;
	r->part = ARRAY_LEN(parts); /* a failure before the first one ends the look */
	r->config = config_ref(r->d->config);
	reconcile_load_setting(r, SINCE_KEY, have_since);
}

static void on_timer(struct timer *t)
{
	struct reconciler *r = timer_owner(t);
	void (*then)(struct reconciler * r) = r->then;

	if (!r->is_running && !config_is_registry_loaded(r->d->config)) {
		r->was_rung = true; /* for reconciler_configure(), which comes when it is */
		return;
	}
	if (!r->is_running) {
		begin_look(r);
		return;
	}
	r->then = NULL;
	then(r);
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
		schedule(r);
}

/* ---- one operation in the air ---- */

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

bool reconcile_is_back(struct reconciler *r, const char *what, int err, const struct error *why)
{
	r->is_busy = false;
	r->is_on_github = false;
	if (r->d->is_closing) {
		finish_closing(r);
		return false;
	}
	if (!err)
		return true;
	reconcile_part_failed(r, what, *why->text ? why->text : err_text(err));
	return false;
}

static void on_loaded(struct store_query *q)
{
	struct reconciler *r = CONTAINER_OF(q, struct reconciler, op.get_setting.q);

	free(r->setting_value);
	r->setting_value = q->err ? NULL : r->op.get_setting.value;
	FREE_AND_NULL(r->setting_text);
	if (reconcile_is_back(r, "reading a setting", q->err, &q->why))
		r->then(r);
}

void reconcile_load_setting(
    struct reconciler *r, const char *key, void (*then)(struct reconciler *r))
{
	r->then = then;
	free(r->setting_text);
	r->setting_text = xstrdup(key);
	r->op.get_setting = (struct get_setting){.q.done = on_loaded, .key = r->setting_text};
	reconcile_submitted(
	    r, "reading a setting", store_get_setting(r->d->deps.store, &r->op.get_setting));
}

static void on_saved(struct store_op *op)
{
	struct reconciler *r = CONTAINER_OF(op, struct reconciler, op.put_setting.op);

	FREE_AND_NULL(r->setting_text);
	if (reconcile_is_back(r, "writing a setting", op->err, &op->why))
		r->then(r);
}

void reconcile_save_setting(
    struct reconciler *r, const char *key, const char *value, void (*then)(struct reconciler *r))
{
	size_t n = strlen(key) + 1;

	r->then = then;
	free(r->setting_text);
	r->setting_text = xmalloc(n + strlen(value) + 1);
	memcpy(r->setting_text, key, n);
	memcpy(r->setting_text + n, value, strlen(value) + 1);
	r->op.put_setting = (struct put_setting){
	    .op.done = on_saved,
	    .key = r->setting_text,
	    .value = r->setting_text + n,
	};
	reconcile_submitted(
	    r, "writing a setting", store_put_setting(r->d->deps.store, &r->op.put_setting));
}

static void on_planned(void *owner, int err)
{
	struct reconciler *r = owner;

	if (!reconcile_is_back(r, "planning", 0, NULL))
		return;
	if (!err)
		r->d->counters.n_reconciled++;
	r->then(r);
}

void reconcile_plan(
    struct reconciler *r, const char *event_name, char *body, void (*then)(struct reconciler *r))
{
	r->then = then;
	r->is_busy = true;
	planner_take_synthetic(r->d->planner, event_name, body, on_planned, r);
}
