#include "github/budget.h"

enum {
	SECOND_MS = 1000,
	MINUTE_MS = 60 * SECOND_MS,
	HOUR_MS = 60 * MINUTE_MS,
	CONTENT_PER_HOUR = 500,
	CONTENT_PER_MINUTE = 80,  /* GitHub's limit */
	SECONDARY_MS = MINUTE_MS, /* GitHub's advice where it names no time */
	SECONDARY_MS_MAX = 16 * MINUTE_MS,
};

void budget_window_init(struct budget_window *w, int n, int64_t span_ms)
{
	w->n = n > 0 ? n : 1;
	w->next = 0;
	w->span_ms = span_ms;
	w->at = xcalloc((size_t)w->n, sizeof(*w->at));
	for (int i = 0; i < w->n; i++)
		w->at[i] = INT64_MIN;
}

void budget_window_release(struct budget_window *w) { FREE_AND_NULL(w->at); }

void budget_window_resize(struct budget_window *w, int n)
{
	struct budget_window old = *w;

	if ((n > 0 ? n : 1) == old.n)
		return;
	budget_window_init(w, n, old.span_ms);
	for (int i = 0; i < old.n; i++) /* oldest first, so the newest stay */
		budget_window_add(w, old.at[(old.next + i) % old.n]);
	budget_window_release(&old);
}

int64_t budget_window_wait_ms(const struct budget_window *w, int share, int64_t now_ms)
{
	int64_t at = w->at[(w->next - share + w->n) % w->n]; /* the share-th last one */

	return at == INT64_MIN || now_ms - at >= w->span_ms ? 0 : at + w->span_ms - now_ms;
}

void budget_window_add(struct budget_window *w, int64_t now_ms)
{
	w->at[w->next] = now_ms;
	w->next = (w->next + 1) % w->n;
}

int64_t budget_gap_ms(int writes_per_minute)
{
	return writes_per_minute <= CONTENT_PER_MINUTE ? SECOND_MS : SECOND_MS * CONTENT_PER_MINUTE / writes_per_minute;
}

void budget_init(struct budget *b, int writes_per_minute)
{
	*b = (struct budget){.remaining = -1, .last_content_ms = INT64_MIN};
	budget_window_init(&b->minute, writes_per_minute, MINUTE_MS);
	budget_window_init(&b->hour, CONTENT_PER_HOUR, HOUR_MS);
}

void budget_release(struct budget *b)
{
	budget_window_release(&b->minute);
	budget_window_release(&b->hour);
}

static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

int64_t budget_wait_ms(const struct budget *b, enum budget_kind kind, int64_t now_ms)
{
	int64_t wait = max64(0, b->blocked_until_ms - now_ms);

	if (kind != BUDGET_CONTENT)
		return wait;
	if (b->last_content_ms != INT64_MIN)
		wait = max64(wait, b->last_content_ms + budget_gap_ms(b->minute.n) - now_ms);
	wait = max64(wait, budget_window_wait_ms(&b->minute, b->minute.n, now_ms));
	return max64(wait, budget_window_wait_ms(&b->hour, b->hour.n, now_ms));
}

void budget_spend(struct budget *b, enum budget_kind kind, int64_t now_ms)
{
	if (kind != BUDGET_CONTENT)
		return;
	b->last_content_ms = now_ms;
	budget_window_add(&b->minute, now_ms);
	budget_window_add(&b->hour, now_ms);
}

/* A wait from outside: at least a second, and at most the hour after which every quota is full again. */
static int64_t sane_wait(int64_t ms)
{
	if (ms < SECOND_MS)
		return SECOND_MS;
	return ms < HOUR_MS ? ms : HOUR_MS;
}

int64_t budget_learn(struct budget *b, const struct budget_signs *s, int64_t now_ms, int64_t now_wall_ms)
{
	bool is_refusal = s->status == 403 || s->status == 429;
	int64_t wait = 0;

	if (s->remaining >= 0) {
		b->remaining = s->remaining;
		b->reset_wall_ms = s->reset_wall_ms;
	}
	if (s->status >= 200 && s->status < 300)
		b->n_secondary = 0;
	if (is_refusal && s->retry_after_ms >= 0) {
		wait = sane_wait(s->retry_after_ms);
	} else if (s->remaining == 0 && s->reset_wall_ms > 0) {
		/* also after a success that used the last request; one second for a different clock */
		wait = sane_wait(s->reset_wall_ms - now_wall_ms + SECOND_MS);
	} else if (is_refusal && (s->is_secondary || s->status == 429)) {
		wait = (int64_t)SECONDARY_MS << b->n_secondary;
		if (wait < SECONDARY_MS_MAX)
			b->n_secondary++;
	}
	if (wait)
		b->blocked_until_ms = max64(b->blocked_until_ms, now_ms + wait);
	return is_refusal ? wait : 0;
}
