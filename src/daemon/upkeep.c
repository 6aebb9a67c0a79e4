#include "daemon/wire.h"

#include "db/seats.h"
#include "loop/bell.h"
#include "store/published.h"
#include "verdict/known_issues.h"

enum { LOGS_EVERY_MS = 10 * 60 * 1000, DAY_MS = 24 * 3600 * 1000, SMALL_JUMP_MS = 60 * 1000, LIMITS_MAX = 64 };

struct upkeep {
	struct daemon *daemon;
	bool is_stopped;
	struct bell *known_bell;
	struct expire_known expire;
	struct timer *logs_timer;
	struct clock_watch *clock;
	bool is_dropping_logs;
	struct bell *limit_bell;
	struct github_limit limits[LIMITS_MAX];
	struct share_limits share;
};

/* ---- known issues ---- */

static void on_known_expired(struct store_op *op)
{
	struct upkeep *u = CONTAINER_OF(op, struct upkeep, expire.op);

	if (op->err && !u->is_stopped)
		log_event(LOG_WARN, "known_expiry_failed", LOG_S("error", op->why.text));
	if (u->expire.n_expired)
		log_event(LOG_INFO, "known_issues_expired", LOG_I("n", u->expire.n_expired));
	if (op->err) {
		bell_retry(u->known_bell);
	} else {
		bell_by(u->known_bell, u->expire.next_ms);
		bell_rest(u->known_bell);
	}
}

static void expire_known(void *owner)
{
	struct upkeep *u = owner;

	if (!store_has_seat(u->daemon->store, SEAT_RETENTION)) {
		bell_rest(u->known_bell);
		return;
	}
	u->expire = (struct expire_known){.op.done = on_known_expired, .now_ms = clock_wall_ms()};
	if (store_expire_known(u->daemon->store, &u->expire))
		bell_retry(u->known_bell);
}

void upkeep_on_known_issue(struct upkeep *u) { bell_now(u->known_bell); }

/* ---- logs ---- */

static void on_logs_dropped(int64_t n, void *owner)
{
	struct upkeep *u = owner;

	if (n > 0)
		log_event(LOG_INFO, "logs_dropped", LOG_I("n", n));
	u->is_dropping_logs = false;
	if (!u->is_stopped && !timer_is_running(u->logs_timer))
		timer_start(u->logs_timer, LOGS_EVERY_MS);
}

static void on_logs_timer(struct timer *t)
{
	struct upkeep *u = timer_owner(t);

	clock_watch_look(u->clock); /* a jump starts the timer again */
	if (timer_is_running(t) || u->is_dropping_logs)
		return;
	if (!store_has_seat(u->daemon->store, SEAT_RETENTION)) {
		timer_start(t, LOGS_EVERY_MS);
		return;
	}
	u->is_dropping_logs = true;
	logs_drop_older(u->daemon->logs, clock_wall_ms() - u->daemon->config->retention_logs_ms, on_logs_dropped, u);
}

/* A wrong time must not delete a log, so the next deletion waits for a day. A small jump, as after each snapshot of a virtual
 * machine, does not matter: it would postpone the deletion for ever. */
static void on_upkeep_clock_jumped(int64_t by_ms, void *owner)
{
	struct upkeep *u = owner;

	if (by_ms > SMALL_JUMP_MS || by_ms < -SMALL_JUMP_MS)
		timer_start(u->logs_timer, DAY_MS);
}

/* ---- GitHub's limits: a node writes those that it met, and learns those of the others ---- */

static void on_limits_shared(struct store_op *op)
{
	struct upkeep *u = CONTAINER_OF(op, struct upkeep, share.op);

	for (size_t i = 0; i < u->share.n && !op->err && !u->is_stopped; i++) {
		const struct github_limit *l = &u->share.list[i];

		github_learn_limit(
		    u->daemon->github, &(struct github_budget_stats){.installation_id = l->installation_id,
					   .remaining = l->remaining,
					   .reset_wall_ms = l->reset_ms,
					   .blocked_ms = l->until_ms - u->share.now_ms});
	}
	RECORDS_RELEASE(github_limit, u->share.list, u->share.n);
	if (op->err)
		bell_retry(u->limit_bell);
	else
		bell_rest(u->limit_bell);
}

static void share_limits(void *owner)
{
	struct upkeep *u = owner;
	struct github_budget_stats budgets[LIMITS_MAX];
	size_t n = github_read_budgets(u->daemon->github, budgets, LIMITS_MAX);

	u->share = (struct share_limits){.op.done = on_limits_shared, .own = u->limits, .now_ms = clock_wall_ms()};
	for (size_t i = 0; i < n && i < LIMITS_MAX; i++)
		if (budgets[i].blocked_ms > 0)
			u->limits[u->share.n_own++] =
			    (struct github_limit){.installation_id = budgets[i].installation_id,
				.until_ms = u->share.now_ms + budgets[i].blocked_ms,
				.remaining = budgets[i].remaining,
				.reset_ms = budgets[i].reset_wall_ms};
	if (store_share_limits(u->daemon->store, &u->share))
		bell_retry(u->limit_bell);
}

static void on_limit_met(void *owner) { bell_ring(((struct upkeep *)owner)->limit_bell); }

static void on_limit_topic(unsigned topics, void *owner)
{
	(void)topics;
	on_limit_met(owner);
}

/* ---- life ---- */

static void on_upkeep_seat(enum seat seat, bool has_seat, void *owner)
{
	struct upkeep *u = owner;

	(void)seat;
	if (has_seat && !u->is_stopped)
		bell_now(u->known_bell);
}

struct upkeep *upkeep_new(struct daemon *d)
{
	struct upkeep *u = xcalloc(1, sizeof(*u));

	u->daemon = d;
	u->logs_timer = timer_new(d->loop, on_logs_timer, u);
	timer_start(u->logs_timer, LOGS_EVERY_MS);
	u->clock = clock_watch_new(d->loop, on_upkeep_clock_jumped, u);
	u->known_bell = bell_new(d->loop, expire_known, u);
	bell_now(u->known_bell);
	u->limit_bell = bell_new(d->loop, share_limits, u);
	bell_now(u->limit_bell);
	github_on_limit(d->github, on_limit_met, u);
	store_subscribe(d->store, STORE_LIMITS, on_limit_topic, u);
	store_add_part(d->store, &(struct seat_part){SEAT_RETENTION, on_upkeep_seat, NULL, u});
	return u;
}

void upkeep_stop(struct upkeep *u)
{
	if (!u)
		return;
	u->is_stopped = true;
	timer_stop(u->logs_timer);
	clock_watch_free(u->clock);
	u->clock = NULL;
	bell_stop(u->known_bell);
	bell_stop(u->limit_bell);
}

void upkeep_free(struct upkeep *u)
{
	if (!u)
		return;
	timer_close(u->logs_timer);
	clock_watch_free(u->clock);
	bell_free(u->known_bell);
	bell_free(u->limit_bell);
	free(u);
}
