#include "model/attribution.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/experiment.h"

enum {
	STEP_MIN_REDS = 2, /* runs of the branch in a row that show a breakage with general words */
	STEP_MIN_REDS_ENDED =
	    3,                /* the same when it is over, so that it is not two flakes in a row */
	STEP_MIN_GREENS = 8,  /* else so many around two: two flakes in a row would be rare there */
	FAILED_AGAIN_MIN = 1, /* failures here besides the first that settle a NEW */
	FAILED_AGAIN_MACHINE_MIN =
	    2, /* the same where the machine may be bad: the next may be a good one */
	FAILED_AGAIN_LIKELY_MIN =
	    3,               /* and where the test may be flaky: others saw the failure, too */
	FAILED_HERE_MIN = 2, /* failures here that a rate needs to mean something */
	FAILED_HERE_MACHINE_MIN =
	    4, /* … where a bad machine may have caused them: it is bad for hours */
	NUMBERS_VARY_MIN = 3, /* different ones on the branch */
	SHOWN_SHA_CHARS = 7,
};
/* Simulated: of flakes at 1 to 30 % that pass when they run again, at most 2 % are held against the change; a new flake
 * of 50 % is caught in a third of the cases on the first head, and in four of five by the third. */
static const double CHANCE_MIN = 0.005;

static const char *const NAMES[] = {
#define X(e) #e,
    ATTRIBUTIONS(X)
#undef X
};

const char *attribution_name(enum attribution a)
{
	return a < N_ATTRIBUTIONS ? NAMES[a] : NULL;
}

enum attribution attribution_parse(const char *name)
{
	int a = 0;

	while (a < N_ATTRIBUTIONS && !str_eq(NAMES[a], name))
		a++;
	return (enum attribution)a;
}

bool attribution_counts_against_change(enum attribution a)
{
	return a == ATTRIBUTION_NEW || a == ATTRIBUTION_UNCLASSIFIED;
}

bool attribution_applies(enum test_status s)
{
	return s == TEST_FAIL || s == TEST_ERROR;
}

/* ---- the runs of the base branch ---- */

static const struct base_run *run_on_base(const struct attribution_facts *f)
{
	for (size_t i = 0; i < f->n_base; i++)
		if (f->base[i].distance == 0)
			return &f->base[i];
	return NULL;
}

/* The nearest runs on either side of the merge base; NULL: none is near enough. A skipped test counts as a run. */
static const struct base_run *older_run(const struct attribution_facts *f)
{
	for (size_t i = 0; i < f->n_base; i++)
		if (f->base[i].distance > 0)
			return f->base[i].distance <= f->max_distance ? &f->base[i] : NULL;
	return NULL;
}

static const struct base_run *newer_run(const struct attribution_facts *f)
{
	for (size_t i = f->n_base; i-- > 0;)
		if (f->base[i].distance < 0)
			return -f->base[i].distance <= f->max_distance ? &f->base[i] : NULL;
	return NULL;
}

/* Three runs of the branch failed alike with three different numbers: they differ from run to run. */
static bool numbers_vary_on_base(const struct attribution_facts *f)
{
	int64_t seen[NUMBERS_VARY_MIN];
	size_t n = 0;

	for (size_t i = 0; i < f->n_base && n < NUMBERS_VARY_MIN; i++) {
		size_t k = 0;

		if (f->base[i].outcome != BASE_RED ||
		    !failure_marks_are_alike(&f->base[i].mark, &f->mark))
			continue;
		while (k < n && seen[k] != f->base[i].mark.numbers)
			k++;
		if (k == n)
			seen[n++] = f->base[i].mark.numbers;
	}
	return n == NUMBERS_VARY_MIN;
}

/* Two runs of the branch failed alike with the same numbers. */
static bool numbers_stay_on_base(const struct attribution_facts *f)
{
	const struct base_run *first = NULL;

	for (size_t i = 0; i < f->n_base; i++) {
		const struct base_run *run = &f->base[i];

		if (run->outcome != BASE_RED || !failure_marks_are_alike(&run->mark, &f->mark))
			continue;
		if (first && run->mark.numbers == first->mark.numbers)
			return true;
		first = run;
	}
	return false;
}

/* The numbers of a message count as well, unless they differ from run to run. */
static bool is_red_alike(const struct attribution_facts *f, const struct base_run *run)
{
	struct failure_mark mark;

	if (!run || run->outcome != BASE_RED)
		return false;
	mark = run->mark;
	if (run->varies || (f->numbers_vary && !numbers_stay_on_base(f)) || numbers_vary_on_base(f))
		mark.numbers = f->mark.numbers;
	return failure_marks_are_same(&mark, &f->mark);
}

static bool is_green(const struct base_run *run)
{
	return run && run->outcome == BASE_GREEN;
}

/* For messages that many failures have: the branch went red so once, stayed so for several runs in a row, and `run` is
 * one of them. A flake does not look like that. */
static bool is_in_step(const struct attribution_facts *f, const struct base_run *run)
{
	size_t first = (size_t)(run - f->base), last = first, n_greens = 0, n_alike = 0,
	       n_in_step = 0;

	while (first > 0 && is_red_alike(f, &f->base[first - 1]))
		first--;
	while (last + 1 < f->n_base && is_red_alike(f, &f->base[last + 1]))
		last++;
	for (size_t i = 0; i < f->n_base; i++) {
		bool is_alike = f->base[i].outcome != BASE_GREEN &&
				failure_marks_are_alike(&f->base[i].mark, &f->mark);

		n_greens += f->base[i].outcome == BASE_GREEN;
		n_alike += is_alike;
		n_in_step += is_alike && i >= first && i <= last;
	}
	return n_in_step == n_alike &&
	       n_in_step >=
		   (first > 0 && n_greens < STEP_MIN_GREENS ? STEP_MIN_REDS_ENDED : STEP_MIN_REDS);
}

/* No tested run next to it is red alike: it may be a flake of the merge base. */
static bool is_lone(const struct attribution_facts *f, const struct base_run *run)
{
	size_t i = (size_t)(run - f->base);

	return !(i > 0 && is_red_alike(f, run - 1)) &&
	       !(i + 1 < f->n_base && is_red_alike(f, run + 1));
}

/* A single red run of the branch is no breakage where the failure is proved to be flaky elsewhere, and where an experiment can
 * run the merge base once more. */
static bool may_be_flake(const struct attribution_facts *f, const struct base_run *run)
{
	return is_lone(f, run) &&
	       (f->n_proved > 0 || (f->takes_experiments && !run->is_experiment));
}

/* What a red run of the branch shows by itself, if its message is worth anything. */
static bool is_breakage(const struct attribution_facts *f, const struct base_run *run)
{
	if (!is_red_alike(f, run) || f->mark.is_infrastructure || f->is_job_outage ||
	    (f->takes_experiments && f->passed_here_job && is_lone(f, run)))
		return false;
	if (may_be_flake(f, run))
		return false;
	return run->is_experiment || f->is_specific || is_in_step(f, run);
}

/* ---- what is said ---- */

static struct attribution_result result(
    enum attribution a, int64_t evidence_job, const char *fmt, ...) PRINTF(3, 4);

static struct attribution_result result(
    enum attribution a, int64_t evidence_job, const char *fmt, ...)
{
	struct attribution_result r = {.attribution = a, .evidence_job = evidence_job};
	va_list args;

	va_start(args, fmt);
	vsnprintf(r.reason, sizeof(r.reason), fmt, args);
	va_end(args);
	return r;
}

static const struct attribution_result NOTHING = {.attribution = N_ATTRIBUTIONS};

static void add(struct attribution_result *r, const char *fmt, ...) PRINTF(2, 3);

static void add(struct attribution_result *r, const char *fmt, ...)
{
	size_t len = strlen(r->reason);
	va_list args;

	va_start(args, fmt);
	vsnprintf(r->reason + len, sizeof(r->reason) - len, fmt, args);
	va_end(args);
}

static const char *base_name(const struct attribution_facts *f)
{
	return f->is_push ? "parent" : "merge base";
}

/* A hint: a change may break a flaky test for good, in the words that it always has. */
static void add_likely_flaky(const struct attribution_facts *f, struct attribution_result *r)
{
	if (f->n_seen > 0)
		add(r, "; likely flaky: seen on %d other change%s", f->n_seen,
		    f->n_seen == 1 ? "" : "s");
	if (f->n_seen > 0 && f->n_proved > 0)
		add(r, ", and passed again on %d of them", f->n_proved);
}

static void add_failed_again(const struct attribution_facts *f, struct attribution_result *r)
{
	if (f->n_failed_again > 1)
		add(r, ", and red %d times here", f->n_failed_again + 1);
	else if (f->n_failed_again)
		add(r, ", and red twice here");
}

static bool looks_like_infrastructure(const struct attribution_facts *f)
{
	return f->mark.is_infrastructure || f->is_outage;
}

/* It failed so often here that another run of the head would hardly show a flake. */
static bool has_failed_again(const struct attribution_facts *f)
{
	const struct base_run *at = run_on_base(f);
	bool comes_and_goes = f->n_seen > 0 || (at && at->outcome == BASE_MIXED);

	return f->n_failed_again >= (looks_like_infrastructure(f) ? FAILED_AGAIN_MACHINE_MIN
					: comes_and_goes          ? FAILED_AGAIN_LIKELY_MIN
								  : FAILED_AGAIN_MIN);
}

/* ---- the rules, in their order: each returns its result, or NOTHING ---- */

static struct attribution_result known(const struct attribution_facts *f)
{
	struct attribution_result r;

	if (!f->known_url)
		return NOTHING;
	r = result(ATTRIBUTION_KNOWN, 0, "an issue is registered for it");
	r.known_url = f->known_url;
	return r;
}

static struct attribution_result broken_on_base(const struct attribution_facts *f)
{
	const struct base_run *at = run_on_base(f);
	struct attribution_result r;

	if (!at || f->has_own_landing || !is_breakage(f, at))
		return NOTHING;
	r = result(ATTRIBUTION_BASE, at->job, "red on the %s %.*s, too", base_name(f),
	    SHOWN_SHA_CHARS, at->sha);
	if (f->n_seen > 0 && is_lone(f, at) &&
	    f->n_failed_again < (f->n_proved > 0 ? FAILED_AGAIN_LIKELY_MIN : FAILED_AGAIN_MIN))
		r.needs = NEEDS_HEAD;
	return r;
}

/* The merge base was not tested, and the nearest tested commits on both sides of it are red in the same way. A push has
 * no newer side: it is that side itself. */
static struct attribution_result broken_around_base(const struct attribution_facts *f)
{
	const struct base_run *older = older_run(f), *newer = newer_run(f);

	if (run_on_base(f) || f->takes_experiments || f->may_be_own || f->has_revert_near ||
	    f->has_own_landing || f->has_own_commit || f->has_related_commit)
		return NOTHING;
	if (!older || !is_breakage(f, older) || (!f->is_push && !is_red_alike(f, newer)))
		return NOTHING;
	if (f->is_push)
		return result(ATTRIBUTION_BASE, older->job,
		    "red on %.*s, %d commit%s before the parent, too", SHOWN_SHA_CHARS, older->sha,
		    older->distance, older->distance == 1 ? "" : "s");
	return result(ATTRIBUTION_BASE, older->job,
	    "red before and after the merge base: on %.*s and %.*s", SHOWN_SHA_CHARS, older->sha,
	    SHOWN_SHA_CHARS, newer->sha);
}

static struct attribution_result passed_here(const struct attribution_facts *f)
{
	if (!f->passed_here_job)
		return NOTHING;
	if (f->here.n_hits >=
		(f->mark.is_infrastructure ? FAILED_HERE_MACHINE_MIN : FAILED_HERE_MIN) &&
	    rate_chance_of_higher(f->here, f->elsewhere) < CHANCE_MIN)
		return result(ATTRIBUTION_UNCLASSIFIED, f->passed_here_job,
		    "passes now and then, but fails more often here (%d of %d runs) than elsewhere "
		    "(%d of %d)",
		    f->here.n_hits, f->here.n, f->elsewhere.n_hits, f->elsewhere.n);
	return result(
	    ATTRIBUTION_FLAKY, f->passed_here_job, "passed when it ran again on this commit");
}

/* Most tests of the job say the same, as on a bad machine or with a bad change: it failed on each machine that it got, and
 * the merge base passed on one of them. */
static bool is_settled_outage(const struct attribution_facts *f, const struct base_run *at)
{
	return at->is_experiment && f->n_failed_again >= FAILED_AGAIN_MACHINE_MIN;
}

static struct attribution_result new_here(const struct attribution_facts *f)
{
	const struct base_run *at = run_on_base(f);
	struct attribution_result r;

	if (!is_green(at) || f->mark.is_infrastructure ||
	    (f->is_outage && !is_settled_outage(f, at)))
		return NOTHING;
	r = result(ATTRIBUTION_NEW, at->job, "green on the %s %.*s", base_name(f), SHOWN_SHA_CHARS,
	    at->sha);
	add_failed_again(f, &r);
	if (!has_failed_again(f)) {
		add_likely_flaky(f, &r);
		r.needs = NEEDS_HEAD;
	}
	return r;
}

/* The merge base was not tested, and the nearest tested commits on both sides of it are green. */
static struct attribution_result new_around_base(const struct attribution_facts *f)
{
	const struct base_run *older = older_run(f), *newer = newer_run(f);
	struct attribution_result r;

	if (run_on_base(f) || f->takes_experiments || looks_like_infrastructure(f) ||
	    !is_green(older) || !is_green(newer))
		return NOTHING;
	r = result(ATTRIBUTION_NEW, older->job,
	    "green before and after the merge base: on %.*s and %.*s", SHOWN_SHA_CHARS, older->sha,
	    SHOWN_SHA_CHARS, newer->sha);
	add_failed_again(f, &r);
	add_likely_flaky(f, &r);
	r.needs = NEEDS_BASE | (has_failed_again(f) ? 0 : NEEDS_HEAD);
	return r;
}

static void explain_red_base(
    const struct attribution_facts *f, const struct base_run *at, struct attribution_result *r)
{
	r->evidence_job = at->job;
	if (at->mark.status != f->mark.status)
		add(r, "red on the %s, but as %s", base_name(f), test_status_name(at->mark.status));
	else if (failure_marks_are_alike(&at->mark, &f->mark) &&
		 (at->mark.is_cut || f->mark.is_cut))
		add(r, "red on the %s, but the message was cut", base_name(f));
	else if (!is_red_alike(f, at))
		add(r, "red on the %s, but with another message", base_name(f));
	else if (f->has_own_landing)
		add(r, "red on the %s, but this change landed there before", base_name(f));
	else if (f->is_job_outage)
		add(r, "red on the %s, too", base_name(f));
	else if (may_be_flake(f, at) && f->n_proved > 0)
		add(r, "red on the %s once, and flaky elsewhere", base_name(f));
	else if (f->mark.is_infrastructure || f->is_specific)
		add(r, "red on the %s once, and green before and after it", base_name(f));
	else
		add(r, "red on the %s, but many failures have this message", base_name(f));
}

static void explain_distance(const struct attribution_facts *f, struct attribution_result *r)
{
	const struct base_run *older = older_run(f), *newer = newer_run(f);

	add(r, "not tested on the %s", base_name(f));
	if (is_green(older))
		add(r, "; green on %.*s, %d commit%s before it", SHOWN_SHA_CHARS, older->sha,
		    older->distance, older->distance == 1 ? "" : "s");
	else if (is_red_alike(f, older) && !newer && !f->is_push)
		add(r, "; red on %.*s, %d commit%s before it", SHOWN_SHA_CHARS, older->sha,
		    older->distance, older->distance == 1 ? "" : "s");
	else if (is_red_alike(f, older) && is_red_alike(f, newer))
		add(r, "; red before and after it, but %s",
		    f->has_own_landing || f->has_own_commit || f->may_be_own
			? "the author may have broken it"
		    : f->has_related_commit ? "a commit there touches the same files"
		    : f->has_revert_near    ? "something was taken back there"
					    : "many failures have this message");
	else if (is_red_alike(f, older))
		add(r, "; red before it, but it may have been fixed since");
	if (older)
		r->evidence_job = older->job;
}

/* Another run there would say nothing more. */
static bool is_settled(const struct attribution_facts *f, const struct base_run *at)
{
	if (f->is_outage && f->mark.is_infrastructure)
		return true; /* only a good machine can decide it */
	return at && (at->is_experiment || at->outcome == BASE_MIXED ||
			 (at->outcome == BASE_GREEN && !f->is_outage));
}

static struct attribution_result unclassified(const struct attribution_facts *f)
{
	const struct base_run *at = run_on_base(f);
	struct attribution_result r = result(ATTRIBUTION_UNCLASSIFIED, 0, "%s",
	    looks_like_infrastructure(f) ? "looks like infrastructure; " : "");

	if (!f->is_base_known) {
		add(&r, "the %s is not known", base_name(f));
	} else if (!at || at->outcome == BASE_SKIPPED) {
		explain_distance(f, &r);
	} else if (at->outcome == BASE_RED) {
		explain_red_base(f, at, &r);
	} else {
		add(&r, at->outcome == BASE_GREEN ? "green on the %s" : "red and green on the %s",
		    base_name(f));
		r.evidence_job = at->job;
	}
	if (f->n_failed_again)
		add(&r, "; red again here");
	add_likely_flaky(f, &r);
	if (!has_failed_again(f))
		r.needs |= NEEDS_HEAD;
	if (f->is_base_known && !is_settled(f, at))
		r.needs |= NEEDS_BASE;
	return r;
}

struct attribution_result attribute(const struct attribution_facts *f)
{
	static struct attribution_result (*const RULES[])(const struct attribution_facts *f) = {
	    known, broken_on_base, broken_around_base, passed_here, new_here, new_around_base,
	    unclassified};
	struct attribution_result r = NOTHING;

	for (size_t i = 0; i < ARRAY_LEN(RULES) && r.attribution == N_ATTRIBUTIONS; i++)
		r = RULES[i](f);
	return r;
}

struct attribution_result attribution_without_facts(const char *reason)
{
	return result(ATTRIBUTION_UNCLASSIFIED, 0, "%s", reason);
}

struct attribution_result attribution_worse(
    const struct attribution_result *a, const struct attribution_result *b)
{
	/* Of several failures NEW is the worst, then UNCLASSIFIED, then the excuses in the order of their rules. */
	static const int RANKS[] = {[ATTRIBUTION_KNOWN] = 0,
	    [ATTRIBUTION_BASE] = 2,
	    [ATTRIBUTION_FLAKY] = 1,
	    [ATTRIBUTION_UNCLASSIFIED] = 3,
	    [ATTRIBUTION_NEW] = 4};
	struct attribution_result r = RANKS[b->attribution] > RANKS[a->attribution] ? *b : *a;

	r.needs = a->needs | b->needs;
	return r;
}
