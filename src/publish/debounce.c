#include "publish/debounce.h"

static struct debounce_pull *find(struct debounce *d, int64_t number)
{
	struct debounce_pull *pull;

	for (size_t i = 0; i < DEBOUNCE_PULLS; i++)
		if (d->pulls[i].number == number)
			return &d->pulls[i];
	pull = &d->pulls[d->next];
	d->next = (d->next + 1) % DEBOUNCE_PULLS;
	*pull = (struct debounce_pull){.number = number};
	return pull;
}

static bool take_allowance(struct debounce *d, const struct debounce_question *q)
{
	struct debounce_pull *pull = find(d, q->number);
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

	/* written in the future: the clock was put back, and waiting for it may take for ever */
	if (q->written_wall_ms == 0 || q->now_wall_ms < q->written_wall_ms ||
	    q->now_wall_ms >= due_ms)
		return q->now_wall_ms;
	if (q->has_red && !q->had_red)
		return q->now_wall_ms;
	if (q->is_complete && take_allowance(d, q))
		return q->now_wall_ms;
	return due_ms;
}
