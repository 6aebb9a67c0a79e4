#include "model/promotion.h"

const char *level_criterion_name(enum level_criterion c)
{
	/* As the thresholds are called in outpost.yml; the last has none, it holds always. */
	static const char *const names[] = {
	    [CRITERION_RUNS] = "push_runs",
	    [CRITERION_PASS] = "pass_rate",
	    [CRITERION_DEADLINES] = "deadlines_met",
	    [CRITERION_QUEUE] = "queue_time",
	    [CRITERION_RUN] = "run_time",
	    [CRITERION_REACTION] = "reaction_time",
	    [CRITERION_OVERDUE] = "overdue",
	};

	return c < N_CRITERIA ? names[c] : NULL;
}

/* Nothing of nothing proves nothing: a share is met only where there is something to share. */
static bool has_share(int64_t part, int64_t whole, int percent)
{
	if (!percent)
		return true;
	return whole > 0 && part * 100 >= whole * percent;
}

static bool is_within(int64_t ms, int64_t limit_ms)
{
	return !limit_ms || (ms >= 0 && ms <= limit_ms);
}

static unsigned unmet(const struct level_numbers *n, const struct level_thresholds *t)
{
	const bool is_met[N_CRITERIA] = {
	    [CRITERION_RUNS] = n->n_push_runs >= t->n_runs,
	    [CRITERION_PASS] = has_share(n->n_push_green, n->n_push_runs, t->pass_percent),
	    [CRITERION_DEADLINES] =
		has_share(n->n_deadlines_met, n->n_dispatches, t->deadlines_percent),
	    [CRITERION_QUEUE] = is_within(n->queue_p90_ms, t->queue_ms),
	    [CRITERION_RUN] = is_within(n->run_p90_ms, t->run_ms),
	    [CRITERION_REACTION] = n->reaction_ms < 0 || is_within(n->reaction_ms, t->reaction_ms),
	    [CRITERION_OVERDUE] = !n->is_overdue,
	};
	unsigned bits = 0;

	for (int c = 0; c < N_CRITERIA; c++)
		if (!is_met[c])
			bits |= 1U << c;
	return bits;
}

struct level_proposal level_propose(enum level now, const struct level_numbers *n,
    const struct level_thresholds *l3, const struct level_thresholds *l4)
{
	struct level_proposal p = {.level = now};

	switch (now) {
	case LEVEL_1:
		break;
	case LEVEL_2:
		p.unmet_next = unmet(n, l3);
		if (!p.unmet_next)
			p.level = LEVEL_3;
		break;
	case LEVEL_3:
		p.unmet_now = unmet(n, l3);
		p.unmet_next = unmet(n, l4);
		if (p.unmet_now)
			p.level = LEVEL_2;
		else if (!p.unmet_next)
			p.level = LEVEL_4;
		break;
	case LEVEL_4:
		p.unmet_now = unmet(n, l4);
		if (p.unmet_now)
			p.level = LEVEL_3;
		break;
	}
	return p;
}
