/* When to fetch, and what becomes of a commit: fetching → trying (the owner checks it, writes down that it
 * is the good one, and puts it in force) → sweeping (older ones are removed). One thing at a time; what is asked for meanwhile is remembered once. */
#include "registry/registry.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/str.h"
#include "model/backoff.h"
#include "registry/folder.h"
#include "registry/round.h"

enum state { IDLE, FETCHING, TRYING, SWEEPING };

struct registry {
	struct registry_deps deps;
	struct config *config; /* NULL until configured */
	struct registry_status status;
	enum state state;
	struct timer *timer;
	struct round round; /* the work in hand; its texts are valid in the other states too */
	char *refused_name; /* the checkout that was refused; NULL: none */
	int n_failures;     /* fetches in a row */
	int cancel_fd;
	bool is_fetch_wanted, is_closing;
	void (*on_closed)(void *owner);
	void *owner;
};

static const char *const state_names[] = {"idle", "fetching", "trying", "sweeping"};

static bool is_legal(enum state from, enum state to)
{
	return to == IDLE || (from == IDLE && to == FETCHING) ||
	       (from == FETCHING && to == TRYING) || (from == TRYING && to == SWEEPING);
}

static void registry_enter(struct registry *r, enum state to)
{
	if (!is_legal(r->state, to))
		abort();
	log_event(LOG_DEBUG, "registry_state", LOG_S("from", state_names[r->state]),
	    LOG_S("to", state_names[to]));
	r->state = to;
}

static double random01(void)
{
	uint32_t n;

	random_bytes(&n, sizeof(n));
	return (double)n / 4294967296.0;
}

/* ---- the end of a round ---- */

static void finish_closing(struct registry *r)
{
	timer_close(r->timer);
	config_unref(r->config);
	round_release(&r->round);
	free(r->refused_name);
	free(r->status.refused_why);
	free(r->status.fetch_error);
	close(r->cancel_fd);
	loop_reap(r->deps.loop, free, r);
	r->on_closed(r->owner);
}

static void on_closing_turn(struct timer *t)
{
	finish_closing(timer_owner(t));
}

static void rest(struct registry *r)
{
	int64_t after_ms;

	registry_enter(r, IDLE);
	if (r->is_closing) {
		finish_closing(r);
		return;
	}
	if (!r->status.is_used)
		return;
	after_ms = r->config->accelerators_git_interval_ms;
	if (r->n_failures && backoff_delay_ms(r->n_failures, 0, random01()) < after_ms)
		after_ms = backoff_delay_ms(r->n_failures, 0, random01());
	timer_start(r->timer, r->is_fetch_wanted ? 0 : after_ms);
}

static void set_text(char **field, const char *text)
{
	free(*field);
	*field = xstrdup_or_null(text);
}

static void forget_refused(struct registry *r)
{
	FREE_AND_NULL(r->refused_name);
	FREE_AND_NULL(r->status.refused_why);
	r->status.refused[0] = '\0';
}

static void refuse(struct registry *r, const char *why)
{
	char *copy = xstrdup(why), *line = copy, *end;

	log_event(LOG_ERROR, "registry_refused", LOG_S("commit", r->round.commit),
	    LOG_S("kept", r->status.commit));
	for (; *line; line = end) {
		end = strchrnul(line, '\n');
		if (*end)
			*end++ = '\0';
		log_event(LOG_ERROR, "registry_error", LOG_S("at", line));
	}
	free(copy);
	set_text(&r->refused_name, r->round.name);
	set_text(&r->status.refused_why, why);
	snprintf(r->status.refused, sizeof(r->status.refused), "%s", r->round.commit);
}

static void fail(struct registry *r, const char *why)
{
	r->n_failures++;
	set_text(&r->status.fetch_error, why);
	log_event(LOG_WARN, "registry_not_fetched", LOG_S("why", why));
	rest(r);
}

static void on_swept(struct pool_work *w)
{
	rest(CONTAINER_OF(w, struct registry, round.work));
}

static void take(struct registry *r)
{
	forget_refused(r);
	snprintf(r->status.commit, sizeof(r->status.commit), "%s", r->round.commit);
	r->status.commit_wall_ms = clock_wall_ms();
	log_event(LOG_INFO, "registry_in_force", LOG_S("commit", r->status.commit),
	    LOG_I("accelerators", (int64_t)r->config->n_accelerators));
	registry_enter(r, SWEEPING);
	r->round.work.work = round_sweep;
	r->round.work.after = on_swept;
	pool_submit(r->deps.loop, &r->round.work);
}

void registry_answer(struct registry *r, enum registry_answer what, const char *why)
{
	if (r->state != TRYING)
		return;
	switch (what) {
	case REGISTRY_IN_FORCE:
		take(r);
		break;
	case REGISTRY_REFUSED:
		refuse(r, why);
		rest(r);
		break;
	case REGISTRY_NOT_KEPT:
		fail(r, why);
		break;
	}
}

/* ---- fetching ---- */

/* What the round brought, when it went through. */
static void take_commit(struct registry *r)
{
	struct round *q = &r->round;
	char *folder;

	r->n_failures = 0;
	r->status.fetched_wall_ms = clock_wall_ms();
	FREE_AND_NULL(r->status.fetch_error);
	if (!r->status.commit_wall_ms)
		r->status.commit_wall_ms = q->good_wall_ms;
	if (str_eq(q->name, q->name_in_force)) {
		forget_refused(r);
		rest(r);
	} else if (str_eq(q->name, q->name_refused)) {
		rest(r); /* as it was when the round began: it has written no folder */
	} else if (q->mistakes.len) {
		refuse(r, buf_str(&q->mistakes));
		rest(r);
	} else {
		registry_enter(r, TRYING);
		folder = round_folder(q);
		r->deps.try_commit(r, q->commit, folder, r->deps.owner);
		free(folder);
	}
}

static void on_fetched(struct pool_work *w)
{
	struct registry *r = CONTAINER_OF(w, struct registry, round.work);
	bool is_outdated = !r->status.is_used || !round_fits(&r->round, r->config);

	if (r->is_closing || is_outdated) {
		r->is_fetch_wanted = true;
		rest(r);
	} else if (r->round.err) {
		fail(r, r->round.why.text);
	} else {
		take_commit(r);
	}
}

static void begin(struct registry *r)
{
	r->is_fetch_wanted = false;
	timer_stop(r->timer);
	round_release(&r->round);
	round_prepare(&r->round, r->config, r->refused_name, r->cancel_fd);
	registry_enter(r, FETCHING);
	r->round.work.work = round_fetch;
	r->round.work.after = on_fetched;
	pool_submit(r->deps.loop, &r->round.work);
}

static void on_timer(struct timer *t)
{
	struct registry *r = timer_owner(t);

	if (r->state == IDLE && r->status.is_used)
		begin(r);
}

/* ---- from outside ---- */

struct registry *registry_new(const struct registry_deps *deps)
{
	struct registry *r = xcalloc(1, sizeof(*r));

	r->deps = *deps;
	r->timer = timer_new(deps->loop, on_timer, r);
	r->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->cancel_fd < 0)
		abort();
	return r;
}

void registry_fetch(struct registry *r)
{
	if (!r->status.is_used || r->is_closing)
		return;
	r->is_fetch_wanted = true;
	if (r->state == IDLE)
		timer_start(r->timer, 0);
}

void registry_retry(struct registry *r)
{
	forget_refused(r);
	registry_fetch(r);
}

static bool is_same_source(const struct config *a, const struct config *b)
{
	return str_eq(a->accelerators_git_url, b->accelerators_git_url) &&
	       str_eq(a->accelerators_git_branch, b->accelerators_git_branch) &&
	       str_eq(a->accelerators_git_path, b->accelerators_git_path);
}

void registry_configure(struct registry *r, struct config *c)
{
	struct config *old = r->config;
	bool is_new = !old || !is_same_source(old, c);

	r->config = config_ref(c);
	r->status.is_used = c->accelerators_git_url != NULL;
	snprintf(r->status.commit, sizeof(r->status.commit), "%s",
	    c->accelerators_git_commit ? c->accelerators_git_commit : "");
	if (!*r->status.commit)
		r->status.commit_wall_ms = 0;
	config_unref(old);
	if (!r->status.is_used) {
		timer_stop(r->timer);
		forget_refused(r);
		FREE_AND_NULL(r->status.fetch_error);
	} else if (is_new) {
		forget_refused(r);
		registry_fetch(r);
	}
}

const struct registry_status *registry_status(const struct registry *r)
{
	return &r->status;
}

void registry_close(struct registry *r, void (*on_closed)(void *owner), void *owner)
{
	const uint64_t one = 1;

	r->is_closing = true;
	r->on_closed = on_closed;
	r->owner = owner;
	if (write(r->cancel_fd, &one, sizeof(one)) != sizeof(one))
		log_event(LOG_WARN, "registry_not_cancelled");
	if (r->state == FETCHING || r->state == SWEEPING)
		return;
	timer_close(r->timer);
	r->timer = timer_new(r->deps.loop, on_closing_turn, r);
	timer_start(r->timer, 0);
}
