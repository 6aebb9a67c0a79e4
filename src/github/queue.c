/* Who may send next. Installations take turns, so that a vendor with a long queue or a
 * spent quota delays nobody else, and in one installation a comment that waits for its
 * second holds up no dispatch. */
#include "base/alloc.h"
#include "base/clock.h"
#include "github/github_internal.h"

enum {
	/* who would have to wait longer is told so, and its durable row waits instead */
	WAIT_MS_MAX = 10 * 1000,
	N_WAITING_MAX = 1000, /* of one installation and kind */
	CONTENT_GAP_MS = 1000,
};

static struct account *account_new(struct github *g, int64_t installation_id)
{
	struct account *a = xcalloc(1, sizeof(*a));

	a->installation_id = installation_id;
	budget_init(&a->budget, g->writes_per_minute);
	for (int k = 0; k < N_BUDGET_KINDS; k++)
		request_list_init(&a->waiting[k]);
	return a;
}

struct account *account_of(struct github *g, int64_t installation_id)
{
	struct account **at = &g->accounts;

	while (*at && (*at)->installation_id != installation_id)
		at = &(*at)->next;
	if (!*at)
		*at = account_new(g, installation_id);
	return *at;
}

void accounts_free(struct github *g)
{
	while (g->accounts) {
		struct account *a = g->accounts;

		g->accounts = a->next;
		budget_release(&a->budget);
		free(a);
	}
}

static void fail_busy(struct request *r, int64_t wait_ms)
{
	request_fail(r, ERR_BUSY, false, wait_ms,
	    "%s, %s: GitHub's limit leaves no room for %lld s", r->spec.what,
	    r->repository ? r->repository : "the App", (long long)((wait_ms + 999) / 1000));
}

void queue_add(struct request *r)
{
	struct account *a = r->account;
	struct request_list *list = &a->waiting[r->spec.kind];
	int64_t wait = budget_wait_ms(&a->budget, r->spec.kind, clock_mono_ms());

	if (r->spec.kind == BUDGET_CONTENT)
		wait += (int64_t)list->n * CONTENT_GAP_MS;
	if (wait > WAIT_MS_MAX) {
		fail_busy(r, wait);
		return;
	}
	if (list->n >= N_WAITING_MAX) {
		request_fail(r, ERR_BUSY, false, CONTENT_GAP_MS, "%s: %d requests wait already",
		    r->spec.what, list->n);
		return;
	}
	request_enter(r, list);
	queue_pump(r->g);
}

/* Sends the first of a list when it may go; else says in *wake_ms when. */
static bool send_first(
    struct github *g, struct account *a, enum budget_kind kind, int64_t now, int64_t *wake_ms)
{
	struct request *r = TAILQ_FIRST(&a->waiting[kind].head);
	int64_t wait;

	if (!r)
		return false;
	wait = budget_wait_ms(&a->budget, kind, now);
	if (wait > WAIT_MS_MAX) {
		request_leave(r);
		fail_busy(r, wait);
		return true;
	}
	if (wait || g->n_in_flight >= g->max_concurrent) {
		if (wait && wait < *wake_ms)
			*wake_ms = wait;
		return false;
	}
	request_leave(r);
	budget_spend(&a->budget, kind, now);
	request_send(r);
	return true;
}

/* One round: each account may send one of each kind. */
static bool pump_round(struct github *g, int64_t *wake_ms)
{
	int64_t now = clock_mono_ms();
	struct account *first = g->turn_of ? g->turn_of : g->accounts, *a = first;
	bool has_sent = false;

	if (!first)
		return false;
	do {
		for (int k = 0; k < N_BUDGET_KINDS; k++) {
			if (!send_first(g, a, (enum budget_kind)k, now, wake_ms))
				continue;
			has_sent = true;
			g->turn_of = a->next;
		}
		a = a->next ? a->next : g->accounts;
	} while (a != first);
	return has_sent;
}

void queue_pump(struct github *g)
{
	int64_t wake_ms = INT64_MAX;

	/* sending may queue something else: it is looked at here, not in a nested round */
	g->must_pump_again = true;
	if (g->is_pumping || g->is_closing)
		return;
	g->is_pumping = true;
	while (g->must_pump_again) {
		g->must_pump_again = false;
		wake_ms = INT64_MAX;
		while (pump_round(g, &wake_ms))
			wake_ms = INT64_MAX;
	}
	g->is_pumping = false;
	if (wake_ms != INT64_MAX)
		timer_start(g->wake, wake_ms);
}
