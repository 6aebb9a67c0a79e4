#include "model/attribution.h"

#include "model/experiment.h"

enum {
	/* runs of the branch in a row that show a breakage with general words */
	STEP_MIN_REDS = 2,
	/* the same for a breakage that is over, because two may be flakes … */
	STEP_MIN_REDS_ENDED = 3,
	/* … unless there are this many green runs: two flakes in a row would be rare there */
	STEP_MIN_GREENS = 8,
	/* failures here besides the first that settle a NEW where others saw it; where most tests of the job say the
	 * same; and where the test may be flaky, because it passed again on another change */
	FAILED_AGAIN_MIN = 2,
	FAILED_AGAIN_OUTAGE_MIN = 3,
	FAILED_AGAIN_LIKELY_MIN = 3,
	/* of the branch, red alike: the failure comes and goes there */
	STRETCHES_OF_FLAKY = 3,
	/* on other changes, none of them red alike: the test is hardly flaky */
	STABLE_MIN_RUNS = 20,
	/* failures in a row that are hardly chance, even of a test that fails in three of ten runs: with and without
	 * three on the merge base itself */
	N_RED_OF_FLAKY = 4,
	N_RED_STRONG = 6,
	/* red commits in a row of a test that is proved to be flaky */
	FLAKY_ROW_MIN = 3,
	/* for a breakage around an untested merge base */
	AROUND_MIN_REDS = 4,
	/* failures there in other words: it hardly passes there */
	OTHER_ON_BASE_MIN = 2,
	/* failures here that a rate needs to mean something; and where a bad machine may have caused them, which is bad for hours */
	FAILED_HERE_MIN = 2,
	FAILED_HERE_MACHINE_MIN = 4,
	/* different ones on the branch */
	NUMBERS_VARY_MIN = 3,
	SHOWN_SHA_CHARS = 7,
};
/* The chance that a test which passed here again fails here no more often than elsewhere; below it the change may make
 * the test flaky. A test that fails elsewhere, too, needs stronger evidence. Simulated with 150 runs elsewhere: of
 * flakes at 1 to 30 %,
 * 0.2 % are held against the change; a test that never failed elsewhere and now fails half of the time is caught in half of the
 * cases on the first head, and in seven of eight by the third. */
static const double CHANCE_MIN_STABLE = 0.005, CHANCE_MIN_FLAKY = 0.001;

#define ATTRIBUTION_NAME(e) #e,
WORDS_DEFINE(attribution, N_ATTRIBUTIONS, ATTRIBUTIONS(ATTRIBUTION_NAME))

bool attribution_counts_against_change(enum attribution a)
{
	return a == ATTRIBUTION_NEW || a == ATTRIBUTION_UNCLASSIFIED;
}

bool attribution_applies(enum test_status s) { return s == TEST_FAIL || s == TEST_ERROR; }

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

/* Whether the numbers of the message are ignored, because they differ from run to run: two runs on one commit differ in
 * them, here or on the branch, or three runs of the branch do. But if two runs of the branch share them, on one commit
 * or on two, they always count. */
static bool numbers_are_ignored(const struct attribution_facts *f, const struct base_run *run)
{
	int64_t seen[NUMBERS_VARY_MIN];
	const struct base_run *last = NULL;
	int n_different = 0;

	for (size_t i = 0; i < f->n_base; i++) {
		const struct base_run *r = &f->base[i];
		int k = 0;

		if (r->outcome != BASE_RED || r->is_other_build || !failure_marks_are_alike(&r->mark, &f->mark))
			continue;
		if ((last && r->mark.numbers == last->mark.numbers) || (r->n_red_alike > 1 && !r->varies))
			return false; /* two runs share them */
		last = r;
		while (k < n_different && seen[k] != r->mark.numbers)
			k++;
		if (k == n_different && n_different < NUMBERS_VARY_MIN)
			seen[n_different++] = r->mark.numbers;
	}
	return run->varies || f->numbers_vary || n_different == NUMBERS_VARY_MIN;
}

/* A run of the branch is red in the same way: the same status, the same words and the same numbers, on a device and
 * with a version of the extension that are not known to differ. */
static bool is_red_alike(const struct attribution_facts *f, const struct base_run *run)
{
	if (!run || run->outcome != BASE_RED || run->is_other_build)
		return false;
	struct failure_mark mark = run->mark;
	if (numbers_are_ignored(f, run))
		mark.numbers = f->mark.numbers;
	return failure_marks_are_same(&mark, &f->mark);
}

static bool is_green(const struct base_run *run) { return run && run->outcome == BASE_GREEN; }

/* A run and the tested runs around it that are red alike, without another run between them. A row of one is a lone red
 * run, which may be a flake. */
struct row {
	size_t first, last;
	int n, n_red; /* commits, and failures on them */
};

static struct row row_around(const struct attribution_facts *f, const struct base_run *run)
{
	size_t first = (size_t)(run - f->base), last = first;
	int n_red = 0;

	while (first > 0 && is_red_alike(f, &f->base[first - 1]))
		first--;
	while (last + 1 < f->n_base && is_red_alike(f, &f->base[last + 1]))
		last++;
	for (size_t i = first; i <= last; i++)
		n_red += f->base[i].n_red_alike;
	return (struct row){first, last, (int)(last - first) + 1, n_red};
}

/* The branch failed alike in several stretches, with green runs between them. The test is flaky there, and a row of red
 * runs may be chance. A breakage that was fixed, came back and was fixed again looks the same: then runs of the merge
 * base decide. */
static bool comes_and_goes(const struct attribution_facts *f)
{
	int n_stretches = 0;
	bool is_within = false;

	for (size_t i = 0; i < f->n_base; i++) {
		if (is_red_alike(f, &f->base[i]) && !is_within) {
			is_within = true;
			n_stretches++;
		} else if (is_green(&f->base[i])) {
			is_within = false;
		}
	}
	return n_stretches >= STRETCHES_OF_FLAKY;
}

/* The test is proved to be flaky on another change, and too few commits of the branch in a row are red. */
static bool is_flaky_row(const struct attribution_facts *f, const struct row *row)
{
	return f->n_proved > 0 && row->n < FLAKY_ROW_MIN;
}

/* Whether a red run of the branch is too little evidence for a breakage. Flakes at 30 % are common, so three red runs
 * in a row are chance in one of forty cases, and six in one of a thousand. */
static bool may_be_flake(const struct attribution_facts *f, const struct base_run *run)
{
	struct row row = row_around(f, run);
	bool is_lone = row.n == 1, is_flaky = f->n_proved > 0 || comes_and_goes(f),
	     is_stable = f->n_seen == 0 && f->elsewhere.n >= STABLE_MIN_RUNS;
	int n_on_base;

	if (is_flaky_row(f, &row))
		return true;
	/* one red run between two green ones is never enough */
	if (is_lone && !run->is_experiment && is_green(older_run(f)) && is_green(newer_run(f)))
		return true;
	if (!f->accepts_experiments && !f->lacks_experiment)
		return comes_and_goes(f);
	/* Where the runner takes experiments, one has to fail on the merge base, too, unless the evidence is strong without it. */
	if (!is_flaky && f->is_specific && (is_stable ? !is_lone : row.n_red >= N_RED_STRONG))
		return false;
	if (is_flaky)
		n_on_base = 3;
	else if (!is_stable)
		n_on_base = f->is_specific || !is_lone ? 2 : 3;
	else
		n_on_base = is_green(older_run(f)) ? 2 : 1;
	return !run->is_experiment || run->n_red_alike < n_on_base || (is_flaky && row.n_red < N_RED_OF_FLAKY);
}

/* Whether a red run of the branch proves a breakage of the branch. */
static bool is_breakage(const struct attribution_facts *f, const struct base_run *run)
{
	size_t n_greens = 0, n_alike = 0, n_in_row = 0;

	if (!is_red_alike(f, run) || f->mark.is_infrastructure || f->is_job_outage || f->passed_here_job ||
	    may_be_flake(f, run))
		return false;
	if (run->is_experiment || f->is_specific)
		return true;
	/* Many failures have this message. It counts if all runs with it are several in a row: a flake does not look
	 * like that. */
	struct row row = row_around(f, run);
	for (size_t i = 0; i < f->n_base; i++) {
		bool is_alike = f->base[i].outcome != BASE_GREEN && failure_marks_are_alike(&f->base[i].mark, &f->mark);

		n_greens += f->base[i].outcome == BASE_GREEN;
		n_alike += is_alike;
		n_in_row += is_alike && i >= row.first && i <= row.last;
	}
	return n_in_row == n_alike &&
	       n_in_row >= (row.first > 0 && n_greens < STEP_MIN_GREENS ? STEP_MIN_REDS_ENDED : STEP_MIN_REDS);
}

/* ---- the reasons ---- */

PRINTF(3, 4)
static struct attribution_result make_result(enum attribution a, int64_t evidence_job, const char *fmt, ...)
{
	struct attribution_result r = {.attribution = a, .evidence_job = evidence_job};
	va_list args;

	va_start(args, fmt);
	vsnprintf(r.reason, sizeof(r.reason), fmt, args);
	va_end(args);
	return r;
}

static const struct attribution_result NOTHING = {.attribution = N_ATTRIBUTIONS};

PRINTF(2, 3) static void append_reason(struct attribution_result *r, const char *fmt, ...)
{
	size_t len = strlen(r->reason);
	va_list args;

	va_start(args, fmt);
	vsnprintf(r->reason + len, sizeof(r->reason) - len, fmt, args);
	va_end(args);
}

static const char *base_name(const struct attribution_facts *f) { return f->is_push ? "parent" : "merge base"; }

/* Only a hint: a change may break a flaky test permanently, with the usual message of the test. */
static void append_likely_flaky(const struct attribution_facts *f, struct attribution_result *r)
{
	if (f->n_seen > 0)
		append_reason(r, "; likely flaky: seen on %d other change%s", f->n_seen, f->n_seen == 1 ? "" : "s");
	if (f->n_seen > 0 && f->n_proved > 0)
		append_reason(r, ", and passed again on %d of them", f->n_proved);
}

static void append_times(struct attribution_result *r, int n)
{
	if (n > 2)
		append_reason(r, " %d times", n);
	else
		append_reason(r, n == 2 ? " twice" : " once");
}

static void append_failed_again(const struct attribution_facts *f, struct attribution_result *r)
{
	if (!f->n_failed_again)
		return;
	append_reason(r, ", and red");
	append_times(r, f->n_failed_again + 1);
	append_reason(r, " here");
}

static bool looks_like_infrastructure(const struct attribution_facts *f)
{
	return f->mark.is_infrastructure || f->is_outage;
}

bool attribution_is_settled_outage(const struct attribution_facts *f)
{
	const struct base_run *at = run_on_base(f);

	return f->is_outage && !f->is_alike_green && is_green(at) && at->experiment_ended_ms &&
	       !f->mark.is_infrastructure && f->n_failed_again >= FAILED_AGAIN_OUTAGE_MIN &&
	       f->experiment_failed_ms >= at->experiment_ended_ms;
}

/* It failed so often here that another run of the head would hardly show a flake. One failure more than the first is
 * enough where no other change saw it, or where another test or job failed again with the same message, which flakes
 * rarely do, and an experiment passed on the merge base, so the machines are good. */
static bool has_failed_again(const struct attribution_facts *f)
{
	const struct base_run *at = run_on_base(f);
	bool comes_and_goes = f->n_proved > 0 || (at && at->outcome == BASE_MIXED);

	if (looks_like_infrastructure(f))
		return f->is_alike_settled || attribution_is_settled_outage(f);
	if (!comes_and_goes && at && at->experiment_ended_ms && f->n_failed_so_again > 0 &&
	    f->n_alike_again > f->n_failed_so_again)
		return true;
	if (comes_and_goes)
		return f->n_failed_again >= FAILED_AGAIN_LIKELY_MIN;
	return f->n_failed_again >= (f->n_seen > 0 ? FAILED_AGAIN_MIN : 1);
}

/* ---- the rules, in their order: each returns its result, or NOTHING ---- */

static struct attribution_result known_issue(const struct attribution_facts *f)
{
	if (!f->known_url)
		return NOTHING;
	struct attribution_result r = make_result(ATTRIBUTION_KNOWN, 0, "an issue is registered for it");
	r.known_url = f->known_url;
	return r;
}

static struct attribution_result broken_on_base(const struct attribution_facts *f)
{
	const struct base_run *at = run_on_base(f);

	if (!at || f->has_own_landing || !is_breakage(f, at))
		return NOTHING;
	return make_result(
	    ATTRIBUTION_BASE, at->job, "red on the %s %.*s, too", base_name(f), SHOWN_SHA_CHARS, at->sha);
}

/* The merge base was not tested, and the nearest tested commits on both sides of it are red in the same way. For a pull
 * request, that must not be chance: so many runs in a row, or changes of other authors that are based there, failed
 * alike. Flakes rarely do. A push has no newer side: it is that side itself. */
static struct attribution_result broken_around_base(const struct attribution_facts *f)
{
	const struct base_run *older = older_run(f), *newer = newer_run(f);

	if (run_on_base(f) || f->accepts_experiments || f->may_be_own || f->has_revert_near || f->has_own_landing ||
	    f->has_own_commit || f->has_related_commit)
		return NOTHING;
	if (!older || !is_breakage(f, older))
		return NOTHING;
	if (f->is_push)
		return make_result(ATTRIBUTION_BASE, older->job, "red on %.*s, %d commit%s before the parent, too",
		    SHOWN_SHA_CHARS, older->sha, older->distance, older->distance == 1 ? "" : "s");
	int n = row_around(f, older).n;
	if (!is_red_alike(f, newer) || n + f->n_red_near < AROUND_MIN_REDS || (n < AROUND_MIN_REDS && f->n_passed_near))
		return NOTHING;
	return make_result(ATTRIBUTION_BASE, older->job, "red before and after the merge base: on %.*s and %.*s",
	    SHOWN_SHA_CHARS, older->sha, SHOWN_SHA_CHARS, newer->sha);
}

/* Whether the rate elsewhere hardly explains the failures here. A bad machine is bad for hours, so it takes more failures. */
static bool fails_more_often(const struct attribution_facts *f, struct rate here)
{
	int n_min = f->mark.is_infrastructure ? FAILED_HERE_MACHINE_MIN : FAILED_HERE_MIN;
	double chance_min = f->elsewhere.n_hits ? CHANCE_MIN_FLAKY : CHANCE_MIN_STABLE;

	return here.n_hits >= n_min && rate_chance_of_higher(here, f->elsewhere) < chance_min;
}

static struct attribution_result passed_here(const struct attribution_facts *f)
{
	if (!f->passed_here_job)
		return NOTHING;
	bool is_often_whole = fails_more_often(f, f->here_whole);
	if (is_often_whole || fails_more_often(f, f->here)) {
		struct rate here = is_often_whole ? f->here_whole : f->here;

		return make_result(ATTRIBUTION_UNCLASSIFIED, f->passed_here_job,
		    "passes now and then, but fails more often here (%d of %d runs) than elsewhere (%d of %d)",
		    here.n_hits, here.n, f->elsewhere.n_hits, f->elsewhere.n);
	}
	if (f->is_alike_red)
		return make_result(ATTRIBUTION_UNCLASSIFIED, f->passed_here_job,
		    "passed in another run on this commit, but another test with this message did not");
	return make_result(ATTRIBUTION_FLAKY, f->passed_here_job, "passed in another run on this commit");
}

/* The test passed on the merge base and never failed there in this way. A failure there with another message may be
 * another flake. */
static struct attribution_result new_here(const struct attribution_facts *f)
{
	const struct base_run *at = run_on_base(f);
	bool is_mixed =
	    at && at->outcome == BASE_MIXED && !at->is_other_build && !failure_marks_are_alike(&at->mark, &f->mark);

	if (!is_green(at) && !is_mixed)
		return NOTHING;
	if (f->mark.is_infrastructure || f->passed_on_other_build ||
	    (f->is_outage && !f->is_alike_settled && !attribution_is_settled_outage(f)))
		return NOTHING;
	struct attribution_result r =
	    make_result(ATTRIBUTION_NEW, at->job, "green on the %s %.*s", base_name(f), SHOWN_SHA_CHARS, at->sha);
	append_failed_again(f, &r);
	if (f->is_outage && !attribution_is_settled_outage(f))
		append_reason(&r, "; other tests with this message failed again");
	if (!has_failed_again(f)) {
		append_likely_flaky(f, &r);
		r.needs = NEEDS_HEAD;
	}
	return r;
}

/* The merge base was not tested, and the nearest tested commits on both sides of it are green. */
static struct attribution_result new_around_base(const struct attribution_facts *f)
{
	const struct base_run *older = older_run(f), *newer = newer_run(f);

	if (run_on_base(f) || f->accepts_experiments || looks_like_infrastructure(f) || !is_green(older) ||
	    !is_green(newer))
		return NOTHING;
	struct attribution_result r =
	    make_result(ATTRIBUTION_NEW, older->job, "green before and after the merge base: on %.*s and %.*s",
		SHOWN_SHA_CHARS, older->sha, SHOWN_SHA_CHARS, newer->sha);
	append_failed_again(f, &r);
	append_likely_flaky(f, &r);
	r.needs = NEEDS_BASE | (has_failed_again(f) ? 0 : NEEDS_HEAD);
	return r;
}

static void explain_few_failures(
    const struct attribution_facts *f, const struct base_run *at, struct attribution_result *r)
{
	append_reason(r, "red on the %s", base_name(f));
	append_times(r, at->n_red_alike);
	append_reason(r, "%s",
	    f->n_seen > 0            ? ", and elsewhere"
	    : is_green(older_run(f)) ? ", and green before it"
				     : ", which may be chance");
}

static void explain_red_base(const struct attribution_facts *f, const struct base_run *at, struct attribution_result *r)
{
	r->evidence_job = at->job;
	if (at->mark.status != f->mark.status)
		append_reason(r, "red on the %s, but as %s", base_name(f), test_status_name(at->mark.status));
	else if (failure_marks_are_alike(&at->mark, &f->mark) && (at->mark.is_cut || f->mark.is_cut))
		append_reason(r, "red on the %s, but the message was cut", base_name(f));
	else if (at->is_other_build && failure_marks_are_alike(&at->mark, &f->mark))
		append_reason(r, "red on the %s, but on another device or version of the extension", base_name(f));
	else if (!is_red_alike(f, at))
		append_reason(r, "red on the %s, but with another message", base_name(f));
	else if (f->has_own_landing)
		append_reason(r, "red on the %s, but this change landed there before", base_name(f));
	else if (f->is_job_outage)
		append_reason(r, "red on the %s, too", base_name(f));
	else if (comes_and_goes(f))
		append_reason(r, "red on the %s, but the failure comes and goes there", base_name(f));
	else if (may_be_flake(f, at) && f->n_proved > 0)
		append_reason(r, "red on the %s%s flaky elsewhere", base_name(f),
		    row_around(f, at).n == 1 ? " once, and" : ", but");
	else if (may_be_flake(f, at) && at->is_experiment)
		explain_few_failures(f, at, r);
	else if (f->mark.is_infrastructure || f->is_specific)
		append_reason(r, "red on the %s once%s", base_name(f),
		    is_green(older_run(f)) && is_green(newer_run(f)) ? ", and green before and after it" : "");
	else
		append_reason(r, "red on the %s, but many failures have this message", base_name(f));
}

static void explain_distance(const struct attribution_facts *f, struct attribution_result *r)
{
	const struct base_run *older = older_run(f), *newer = newer_run(f);

	append_reason(r, "not tested on the %s", base_name(f));
	if (is_green(older))
		append_reason(r, "; green on %.*s, %d commit%s before it", SHOWN_SHA_CHARS, older->sha, older->distance,
		    older->distance == 1 ? "" : "s");
	else if (is_red_alike(f, older) && !newer && !f->is_push)
		append_reason(r, "; red on %.*s, %d commit%s before it", SHOWN_SHA_CHARS, older->sha, older->distance,
		    older->distance == 1 ? "" : "s");
	else if (is_red_alike(f, older) && is_red_alike(f, newer))
		append_reason(r, "; red before and after it, but %s",
		    f->accepts_experiments                                     ? "a rerun there can show more"
		    : f->has_own_landing || f->has_own_commit || f->may_be_own ? "the author may have broken it"
		    : f->has_related_commit                                    ? "a commit there touches the same files"
		    : f->has_revert_near                                       ? "something was taken back there"
		    : is_breakage(f, older)                                    ? "that may be chance"
									       : "many failures have this message");
	else if (is_red_alike(f, older))
		append_reason(r, "; red before it, but it may have been fixed since");
	if (older)
		r->evidence_job = older->job;
}

/* Whether another run of the merge base would not show more. at: its run; NULL: no run tested it. */
static bool is_settled(const struct attribution_facts *f, const struct base_run *at)
{
	if (f->mark.is_infrastructure)
		return true; /* only a good machine can decide it */
	if (f->is_job_outage && !f->n_failed_again && !f->is_alike_settled)
		return true; /* another machine for the head may decide it without the merge base */
	if (is_red_alike(f, at) && may_be_flake(f, at)) {
		struct row row = row_around(f, at);

		if (!is_flaky_row(f, &row))
			return false;
	}
	if (at && at->outcome == BASE_RED && !failure_marks_are_alike(&at->mark, &f->mark))
		return at->n_red >= OTHER_ON_BASE_MIN; /* it may be a flake of the merge base */
	return at && (at->is_experiment || at->outcome == BASE_MIXED || (at->outcome == BASE_GREEN && !f->is_outage));
}

/* The sides of an experiment that would help to decide the failure. Where the branch is red alike, the merge base runs
 * alone: it mostly decides, and then the head need not run. A test that is proved to be flaky runs on both sides,
 * because a pass on the head decides it. */
static unsigned sides_that_help(const struct attribution_facts *f, const struct base_run *at)
{
	unsigned needs =
	    (has_failed_again(f) ? 0 : NEEDS_HEAD) | (f->is_base_known && !is_settled(f, at) ? NEEDS_BASE : 0);
	bool is_branch_red = at ? is_red_alike(f, at) : is_red_alike(f, older_run(f)) || is_red_alike(f, newer_run(f));

	if (looks_like_infrastructure(f))
		return needs ? needs | NEEDS_GOOD_MACHINE : 0;
	return is_branch_red && f->n_proved == 0 && needs & NEEDS_BASE ? NEEDS_BASE : needs;
}

static struct attribution_result unclassified_failure(const struct attribution_facts *f)
{
	const struct base_run *at = run_on_base(f);
	struct attribution_result r = make_result(
	    ATTRIBUTION_UNCLASSIFIED, 0, "%s", looks_like_infrastructure(f) ? "looks like infrastructure; " : "");

	if (!f->is_base_known) {
		append_reason(&r, "the %s is not known", base_name(f));
	} else if (!at || at->outcome == BASE_SKIPPED) {
		explain_distance(f, &r);
	} else if (at->outcome == BASE_RED) {
		explain_red_base(f, at, &r);
	} else {
		append_reason(
		    &r, at->outcome == BASE_GREEN ? "green on the %s" : "red and green on the %s", base_name(f));
		r.evidence_job = at->job;
	}
	if (f->passed_on_other_build)
		append_reason(&r, "; passed here on another device or version of the extension");
	if (f->n_failed_again)
		append_reason(&r, "; red again here");
	append_likely_flaky(f, &r);
	r.needs = sides_that_help(f, at);
	return r;
}

struct attribution_result attribute(const struct attribution_facts *f)
{
	static struct attribution_result (*const RULES[])(const struct attribution_facts *f) = {known_issue,
	    broken_on_base, broken_around_base, passed_here, new_here, new_around_base, unclassified_failure};
	struct attribution_result r = NOTHING;

	for (size_t i = 0; i < ARRAY_LEN(RULES) && r.attribution == N_ATTRIBUTIONS; i++)
		r = RULES[i](f);
	return r;
}

struct attribution_result attribution_without_facts(const char *reason)
{
	return make_result(ATTRIBUTION_UNCLASSIFIED, 0, "%s", reason);
}

/* From the least severe to the most severe. */
static const enum attribution SEVERITIES[] = {
    ATTRIBUTION_KNOWN, ATTRIBUTION_FLAKY, ATTRIBUTION_BASE, ATTRIBUTION_UNCLASSIFIED, ATTRIBUTION_NEW};
_Static_assert(ARRAY_LEN(SEVERITIES) == N_ATTRIBUTIONS, "each cause has a severity");

static size_t severity(enum attribution a)
{
	size_t i = 0;

	while (i < N_ATTRIBUTIONS && SEVERITIES[i] != a)
		i++;
	return i;
}

struct attribution_result attribution_worse(const struct attribution_result *a, const struct attribution_result *b)
{
	struct attribution_result r = severity(b->attribution) > severity(a->attribution) ? *b : *a;

	r.needs = 0;
	/* a proved NEW stays, whatever the result of the other one is */
	if ((a->attribution == ATTRIBUTION_NEW && !a->needs) || (b->attribution == ATTRIBUTION_NEW && !b->needs))
		return r;
	r.needs = (a->needs | b->needs) & ~(unsigned)NEEDS_GOOD_MACHINE;
	/* it waits for a good machine only if nothing else can show more */
	if ((!a->needs || a->needs & NEEDS_GOOD_MACHINE) && (!b->needs || b->needs & NEEDS_GOOD_MACHINE) && r.needs)
		r.needs |= NEEDS_GOOD_MACHINE;
	return r;
}
