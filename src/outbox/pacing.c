#include "outbox/pacing.h"

enum {
	SECOND_MS = 1000,
	MINUTE_MS = 60 * SECOND_MS,
	HOUR_MS = 60 * MINUTE_MS,
	SLOTS_MAX = 45, /* waiting writes of one class that get different seconds */
	STARVED_PERCENT = 97,
};

/* The share of a window that may be used up before a write of the class has to wait: when the write is new, and when it has
 * aged. In between, the share grows with the age. */
static const struct share {
	int new_percent, aged_percent;
	int64_t aged_ms;
	/* How long the writes before it in github/ may still need. github/ refuses a write that would wait more than 10 s. */
	int64_t ahead_ms;
} SHARES[N_WRITE_CLASSES] = {[WRITE_FIRST_FAILURE] = {100, 100, 1, 6 * SECOND_MS},
    [WRITE_CHECK] = {85, 95, 5 * MINUTE_MS, 2 * SECOND_MS},
    [WRITE_ANSWER] = {85, 92, 5 * MINUTE_MS, 2 * SECOND_MS},
    [WRITE_FIRST_COMMENT] = {80, 92, 5 * MINUTE_MS, 2 * SECOND_MS},
    [WRITE_LAST_RESULT] = {75, 92, 10 * MINUTE_MS, SECOND_MS},
    [WRITE_ISSUE] = {65, 92, 20 * MINUTE_MS, SECOND_MS},
    [WRITE_EDIT] = {60, 92, 20 * MINUTE_MS, SECOND_MS}};

void pacing_init(struct pacing *p, int writes_per_minute)
{
	*p = (struct pacing){.free_ms = INT64_MIN};
	for (int i = 0; i < N_WRITE_CLASSES; i++)
		p->slot_ms[i] = INT64_MIN;
	budget_window_init(&p->minute, writes_per_minute, MINUTE_MS);
	budget_window_init(&p->hour, PACING_PER_HOUR, HOUR_MS);
}

void pacing_release(struct pacing *p)
{
	budget_window_release(&p->minute);
	budget_window_release(&p->hour);
}

void pacing_configure(struct pacing *p, int writes_per_minute) { budget_window_resize(&p->minute, writes_per_minute); }

void pacing_forget(struct pacing *p)
{
	int per_minute = p->minute.n;

	pacing_release(p);
	pacing_init(p, per_minute);
}

void pacing_note(struct pacing *p, int64_t at_ms)
{
	budget_window_add(&p->minute, at_ms);
	budget_window_add(&p->hour, at_ms);
}

static int percent_of(const struct pacing_request *q)
{
	const struct share *s = &SHARES[q->class];
	int64_t age_ms = q->age_ms > 0 ? q->age_ms : 0;

	if (age_ms >= PACING_STARVED_MS && s->aged_percent < STARVED_PERCENT)
		return STARVED_PERCENT;
	if (age_ms >= s->aged_ms)
		return s->aged_percent;
	return s->new_percent + (int)((s->aged_percent - s->new_percent) * age_ms / s->aged_ms);
}

static int64_t share_wait_ms(const struct budget_window *w, int percent, int64_t now_ms)
{
	int share = w->n * percent / 100;

	return budget_window_wait_ms(w, share > 1 ? share : 1, now_ms);
}

static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

/* The wait until the next free second of the class, after wait_ms. */
static int64_t slot_wait_ms(struct pacing *p, const struct pacing_request *q, int64_t wait_ms)
{
	int64_t *slot = &p->slot_ms[q->class], at = q->now_ms + wait_ms;

	if (*slot < at || *slot > at + (int64_t)SLOTS_MAX * SECOND_MS)
		*slot = at;
	at = *slot;
	*slot += budget_gap_ms(p->minute.n);
	wait_ms = at - q->now_ms;
	return wait_ms < PACING_LATEST_MS ? wait_ms : PACING_LATEST_MS;
}

int64_t pacing_reserve(struct pacing *p, const struct pacing_request *q)
{
	int percent = percent_of(q);
	int64_t wait_ms =
	    max64(share_wait_ms(&p->minute, percent, q->now_ms), share_wait_ms(&p->hour, percent, q->now_ms));
	int64_t queued_ms = p->free_ms == INT64_MIN ? 0 : max64(0, p->free_ms - q->now_ms);

	wait_ms = max64(wait_ms, queued_ms - SHARES[q->class].ahead_ms);
	if (wait_ms > 0)
		return slot_wait_ms(p, q, wait_ms);
	p->free_ms = q->now_ms + queued_ms + budget_gap_ms(p->minute.n);
	pacing_note(p, q->now_ms);
	return 0;
}

/* ---- debouncing ---- */

static struct debounce_pull *find_debounced_pull(struct debounce *d, int64_t number)
{
	for (size_t i = 0; i < DEBOUNCE_PULLS; i++)
		if (d->pulls[i].number == number)
			return &d->pulls[i];
	struct debounce_pull *pull = &d->pulls[d->next];
	d->next = (d->next + 1) % DEBOUNCE_PULLS;
	*pull = (struct debounce_pull){.number = number};
	return pull;
}

static bool use_allowance(struct debounce *d, const struct debounce_question *q)
{
	struct debounce_pull *pull = find_debounced_pull(d, q->number);
	int64_t age_ms = q->now_wall_ms - pull->since_wall_ms;

	if (age_ms < 0 || age_ms >= DEBOUNCE_WINDOW_MS) {
		pull->since_wall_ms = q->now_wall_ms;
		pull->n_used = 0;
	}
	if (pull->n_used == DEBOUNCE_ALLOWANCE)
		return false;
	pull->n_used++;
	return true;
}

int64_t debounce_due_ms(struct debounce *d, const struct debounce_question *q)
{
	int64_t due_ms = q->written_wall_ms + q->min_interval_ms;

	/* written in the future: the clock was put back, and the wait could be of any length */
	if (q->written_wall_ms == 0 || q->now_wall_ms < q->written_wall_ms || q->now_wall_ms >= due_ms)
		return q->now_wall_ms;
	if (q->has_red && !q->had_red)
		return q->now_wall_ms;
	if (q->is_complete && use_allowance(d, q))
		return q->now_wall_ms;
	return due_ms;
}
