#include "dispatch/sender.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "dispatch/attempt.h"
#include "dispatch/dispatch_internal.h"

enum { GRACE_MS = 2000, GITHUB_TARGET_BEGUN_MAX = 16 };

enum { GITHUB_LANE, VENDORS_LANE, N_LANES };

/* GITHUB_LANE follows the configuration: sender_configure(). */
static const struct lane_limits LANES[N_LANES] = {
    [GITHUB_LANE] = {.claimed = 16, .begun = 16, .begun_per_target = GITHUB_TARGET_BEGUN_MAX},
    [VENDORS_LANE] = {.claimed = 256, .begun = 64, .begun_per_target = 4},
};

#define KIND(its_kind, its_lane)                                                                   \
	&(const struct effect_kind)                                                                \
	{                                                                                          \
		.kind = OUTBOX_##its_kind, .lane = its_lane, .bytes = sizeof(struct attempt),      \
		.begin = attempt_begin, .cancel = attempt_cancel, .release = attempt_release,      \
		.target_name = attempt_target_name,                                                \
	}
static const struct effect_kind *const KINDS[] = {
    KIND(GITHUB_DISPATCH, GITHUB_LANE),
    KIND(GITHUB_CLOSED, GITHUB_LANE),
    KIND(RERUN, GITHUB_LANE),
    KIND(WEBHOOK_DISPATCH, VENDORS_LANE),
    KIND(WEBHOOK_CANCEL, VENDORS_LANE),
    KIND(WEBHOOK_NOTICE, VENDORS_LANE),
};
#undef KIND

struct sender {
	struct dispatch *d;
	struct payloads *payloads;
	struct engine *engine;
};

static void log_and_count_ended(struct effect *e)
{
	struct dispatch *d = engine_owner(e->engine);
	struct dispatch_counters *n = &d->counters;
	bool is_dispatch =
	    e->row.kind == OUTBOX_GITHUB_DISPATCH || e->row.kind == OUTBOX_WEBHOOK_DISPATCH;
	const char *event = NULL;
	enum log_level level = LOG_DEBUG;

	switch (e->result) {
	case OUTBOX_OK:
	case OUTBOX_AGAIN:
		event = "dispatch_sent";
		level = LOG_INFO;
		n->n_github_sent += attempt_is_github(e);
		n->n_webhooks_sent += !attempt_is_github(e);
		if (is_dispatch)
			histogram_add(&n->send_times, (clock_wall_ms() - e->row.first_ms) * 1000);
		break;
	case OUTBOX_RETRY:
		event = "dispatch_retried";
		level = LOG_WARN;
		n->n_retries++;
		break;
	case OUTBOX_DEAD:
		event = "dispatch_dead";
		level = LOG_ERROR;
		n->n_dead++;
		break;
	case OUTBOX_NOT_YET:
		event = "dispatch_put_off";
		break;
	}
	log_event(level, event, LOG_S("dispatch", e->row.dispatch_id),
	    LOG_S("delivery", e->row.delivery_guid), LOG_S("kind", outbox_kind_name(e->row.kind)),
	    LOG_S("target", effect_target(e)), LOG_I("pr", e->row.number),
	    LOG_S("head", e->row.head_sha), LOG_I("attempts", e->row.n_attempts + 1),
	    LOG_S("error", e->why.text));
}

struct sender *sender_new(struct dispatch *d)
{
	struct sender *s = xcalloc(1, sizeof(*s));

	s->d = d;
	s->payloads = payloads_new(d->deps.store);
	s->engine = engine_new(&(struct engine_options){
	    .loop = d->deps.loop,
	    .store = d->deps.store,
	    .owner = d,
	    .kinds = KINDS,
	    .n_kinds = ARRAY_LEN(KINDS),
	    .lanes = LANES,
	    .n_lanes = N_LANES,
	    .claim_failed_event = "outbox_unclaimed",
	    .settle_failed_event = "dispatch_unsettled",
	    .on_end = log_and_count_ended,
	});
	sender_configure(s);
	return s;
}

void sender_configure(struct sender *s)
{
	int n = s->d->config->github_max_concurrent;

	/* A few more than GitHub may get at once, so that a free place is filled at once. */
	engine_limit_lane(s->engine, GITHUB_LANE,
	    (struct lane_limits){.claimed = 2 * n + 16,
		.begun = n + 16,
		.begun_per_target = GITHUB_TARGET_BEGUN_MAX});
	engine_look(s->engine);
}

void sender_ring(struct sender *s)
{
	engine_look(s->engine);
}

int sender_n_claimed(const struct sender *s)
{
	return engine_n_claimed(s->engine);
}

struct payloads *sender_payloads(struct sender *s)
{
	return s->payloads;
}

static void on_sender_closed(void *owner)
{
	struct sender *s = owner;
	struct dispatch *d = s->d;

	engine_free(s->engine);
	payloads_free(s->payloads);
	free(s);
	d->sender = NULL;
	dispatch_part_closed(d);
}

void sender_close(struct sender *s)
{
	engine_close(s->engine, GRACE_MS, on_sender_closed, s);
}
