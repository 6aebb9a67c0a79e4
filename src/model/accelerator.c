#include "model/accelerator.h"

WORDS_DEFINE(level, LEVEL_4 + 1, NULL, "L1", "L2", "L3", "L4")
WORDS_DEFINE(runner_kind, RUNNER_INFRA + 1, "github", "webhook", "pull", "infra")
WORDS_DEFINE(level_criterion, N_CRITERIA, LEVEL_CRITERIA(WORD_NAME))

const char *trust_name(enum trust trust)
{
	static const char *const names[] = {"anyone", "contributors", "members", "approved", "merged"};

	return names[trust];
}

const char *visibility_name(enum visibility v) { return v == VISIBILITY_SUMMARY ? "summary" : "public"; }

void accelerator_release(struct accelerator *a)
{
	for (size_t i = 0; i < a->n_runners; i++) {
		struct runner *r = &a->runners[i];
		secret_unref(r->secret);
		FREE_ALL(r->name, r->repository, r->workflow, r->url);
		strv_free(r->labels);
	}
	FREE_ALL(
	    a->runners, a->name, a->title, a->vendor, a->docs_url, a->help_url, a->source_git_url, a->source_branch);
	strv_free(a->oncall);
	strv_free(a->triggers.paths);
	strv_free(a->triggers.branches);
	strv_free(a->triggers.schedules);
	strv_free(a->must_pass);
	strv_free(a->skip);
	platform_free(a->platform);
	free(a->file);
	*a = (struct accelerator){0};
}

int64_t deadline_acknowledge_ms(const struct deadlines *d, enum runner_kind kind)
{
	if (d->acknowledge_ms)
		return d->acknowledge_ms;
	return kind == RUNNER_WEBHOOK ? INT64_C(10) * 60 * 1000 : 0;
}

enum {
	NEWEST = 10,        /* of those that count */
	TRIPS_AT = 8,       /* of NEWEST */
	RECOVERS_AFTER = 3, /* green in a row */
};

bool health_is_unhealthy(const struct health_sample *samples, size_t n, bool was_unhealthy)
{
	int n_counted = 0, n_red = 0, n_green_in_a_row = 0;

	for (size_t i = 0; i < n && n_counted < NEWEST; i++) {
		if (samples[i].is_red && samples[i].is_attributed)
			continue;
		n_counted++;
		n_red += samples[i].is_red;
		if (!n_red)
			n_green_in_a_row++;
	}
	if (!was_unhealthy)
		return n_red >= TRIPS_AT;
	if (n_green_in_a_row >= RECOVERS_AFTER)
		return false;
	return n_counted < NEWEST || 2 * n_red >= NEWEST;
}

/* ---- one criterion ---- */

static struct level_finding judged(struct level_finding f)
{
	if (f.has_measure)
		f.met = (f.is_at_least ? f.measured >= f.target : f.measured < f.target) ? MET_YES : MET_NO;
	return f;
}

static struct level_finding time_finding(enum level_criterion c, int64_t ms, int64_t target_ms, bool is_at_least)
{
	return judged((struct level_finding){.criterion = c,
	    .unit = UNIT_SECONDS,
	    .has_measure = ms >= 0,
	    .measured = (double)ms / 1000,
	    .with_upstream = (double)ms / 1000,
	    .target = (double)target_ms / 1000,
	    .is_at_least = is_at_least});
}

static struct level_finding share_finding(
    enum level_criterion c, int64_t part, int64_t whole, int percent, bool is_at_least)
{
	double share = whole > 0 ? (double)part / (double)whole : 0;

	return judged((struct level_finding){.criterion = c,
	    .unit = UNIT_SHARE,
	    .has_measure = whole > 0,
	    .measured = share,
	    .with_upstream = share,
	    .target = percent / 100.0,
	    .is_at_least = is_at_least});
}

/* A job that only upstream broke says nothing about its vendor, so it counts neither as passed nor as failed. */
static struct level_finding pass_finding(const struct level_window *w, int percent)
{
	struct level_finding f = share_finding(CRITERION_PASS, w->n_passed, w->n_jobs - w->n_upstream, percent, true);

	f.with_upstream = w->n_jobs > 0 ? (double)w->n_passed / (double)w->n_jobs : 0;
	return f;
}

/* The target itself meets the criterion, too. */
static struct level_finding reaction_finding(int64_t ms, int64_t target_ms)
{
	struct level_finding f = time_finding(CRITERION_REACTION, ms, target_ms, false);

	f.met = ms <= target_ms ? MET_YES : MET_NO;
	return f;
}

/* ---- all ---- */

static struct level_finding find_criterion(enum level_criterion c, const struct level_numbers *n,
    const struct level_window *w, const struct level_thresholds *t)
{
	switch (c) {
	case CRITERION_TENURE:
		return time_finding(c, n->tenure_ms, t->tenure_ms, true);
	case CRITERION_DATA:
		return time_finding(c, n->data_ms, t->data_ms, true);
	case CRITERION_END_TO_END:
		return time_finding(c, w->end_to_end_ms, t->end_to_end_ms, false);
	case CRITERION_OVERRUN:
		return share_finding(c, w->n_overrun, w->n_jobs - w->n_timed_out, t->overrun_percent, false);
	case CRITERION_QUEUE:
		return time_finding(c, w->queue_ms, t->queue_ms, false);
	case CRITERION_TIMEOUT:
		return share_finding(c, w->n_timed_out, w->n_jobs, t->timeout_percent, false);
	case CRITERION_PASS:
		return pass_finding(w, t->pass_percent);
	case CRITERION_DEADLINES:
		return share_finding(c, n->n_deadlines_met, n->n_dispatches, t->deadlines_percent, true);
	case CRITERION_REACTION: /* an accelerator that was never red meets it */
		return reaction_finding(n->reaction_ms < 0 ? 0 : n->reaction_ms, t->reaction_ms);
	case CRITERION_MAINTAINERS:
	case N_CRITERIA:
		break;
	}
	return (struct level_finding){.criterion = CRITERION_MAINTAINERS, .met = MET_NO};
}

/* Whether the criterion counts for this step. */
static bool criterion_counts(enum level_criterion c, const struct level_thresholds *t, enum level_step step)
{
	if (c == CRITERION_END_TO_END || c == CRITERION_TIMEOUT || c == CRITERION_PASS)
		return true;
	if ((c == CRITERION_DEADLINES && !t->deadlines_percent) || (c == CRITERION_REACTION && !t->reaction_ms) ||
	    (c == CRITERION_MAINTAINERS && t->is_proposed))
		return false;
	return step == STEP_UP;
}

size_t level_findings(const struct level_numbers *n, const struct level_thresholds *t, enum level_step step,
    struct level_finding ret[N_CRITERIA])
{
	const struct level_window *w = step == STEP_UP ? &n->promotion : &n->demotion;
	size_t n_findings = 0;

	for (int c = 0; c < N_CRITERIA; c++)
		if (criterion_counts((enum level_criterion)c, t, step))
			ret[n_findings++] = find_criterion((enum level_criterion)c, n, w, t);
	return n_findings;
}

/* An unknown measure does not meet a criterion on the way up, and does not miss one on the way down. */
static unsigned unmet_criteria(const struct level_numbers *n, const struct level_thresholds *t, enum level_step step)
{
	struct level_finding list[N_CRITERIA];
	size_t n_findings = level_findings(n, t, step, list);
	unsigned bits = 0;

	for (size_t i = 0; i < n_findings; i++)
		if (step == STEP_UP ? list[i].met != MET_YES : list[i].met == MET_NO)
			bits |= 1U << list[i].criterion;
	return bits;
}

struct level_proposal level_propose(
    enum level now, const struct level_numbers *n, const struct level_thresholds *l3, const struct level_thresholds *l4)
{
	struct level_proposal p = {.level = now};

	if (now >= LEVEL_3)
		p.unmet_now = unmet_criteria(n, now == LEVEL_3 ? l3 : l4, STEP_DOWN);
	if (now == LEVEL_2 || now == LEVEL_3)
		p.unmet_next = unmet_criteria(n, now == LEVEL_2 ? l3 : l4, STEP_UP);
	if (p.unmet_now)
		p.level--;
	else if ((now == LEVEL_2 || now == LEVEL_3) && !p.unmet_next)
		p.level++;
	p.is_silent = now >= LEVEL_3 && n->demotion.n_jobs == 0;
	return p;
}

void source_head_release(struct source_head *h)
{
	FREE_ALL(h->accelerator, h->git_url, h->branch, h->sha);
	*h = (struct source_head){0};
}

RECORD_DEFINE(feed_event, FEED_EVENT_RECORD)
RECORD_DEFINE_PART(feed_nightly, feed_event, FEED_NIGHTLY_RECORD)
_Static_assert(FEED_RED == 0 && FEED_GREEN == 1 && FEED_NOT_RED == 2, "the SQL of the records has these numbers");

void feed_event_release(struct feed_event *e)
{
	record_release(&feed_event_record, e);
	strv_free(e->tests);
	*e = (struct feed_event){0};
}
