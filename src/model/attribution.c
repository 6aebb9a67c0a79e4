#include "model/attribution.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/str.h"
#include "model/experiment.h"

enum {
	STEP_MIN_REDS = 2,       /* so many on the branch, when it is red up to its newest run */
	STEP_MIN_REDS_ENDED = 3, /* when it is green again, so that it is not two flakes in a row */
	STEP_MIN_GREENS = 8,     /* else so many around two: what flakes twice would flake there */
	SHOWN_SHA_CHARS = 7,
};

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

static void say(struct attribution_result *r, const char *fmt, ...) PRINTF(2, 3);

static void say(struct attribution_result *r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(r->reason, sizeof(r->reason), fmt, args);
	va_end(args);
}

/* ---- KNOWN ---- */

static bool is_known(const struct attribution_facts *f, struct attribution_result *r)
{
	if (!f->known_url)
		return false;
	r->attribution = ATTRIBUTION_KNOWN;
	r->known_url = f->known_url;
	say(r, "an issue is registered for it");
	return true;
}

/* ---- BASE ---- */

/* The merge base, or the nearest tested commit before it; NULL: none is near enough. */
static const struct base_run *find_base(const struct attribution_facts *f, int max_distance)
{
	size_t i = 0;

	if (!f->is_base_known)
		return NULL;
	while (i < f->n_base && f->base[i].distance < 0)
		i++;
	return i < f->n_base && f->base[i].distance <= max_distance ? &f->base[i] : NULL;
}

static bool is_same(const struct failure_mark *a, const struct failure_mark *b)
{
	return a->status == b->status && a->key && a->key == b->key;
}

static bool is_alone(const struct attribution_facts *f, const struct base_run *base)
{
	size_t i;

	if (!base || base->is_green || base->distance == 0)
		return false;
	i = (size_t)(base - f->base);
	return i > 0 && i + 1 < f->n_base && base[-1].is_green && base[1].is_green;
}

bool attribution_is_base_alone(const struct attribution_facts *f, int max_distance)
{
	return is_alone(f, find_base(f, max_distance));
}

bool failure_marks_are_alike(const struct failure_mark *a, const struct failure_mark *b)
{
	return a->status == b->status && a->key == b->key && a->text == b->text;
}

/* All that is known of the branch is that it went red so once, stayed so for a while, and the merge
 * base lies within: what a breakage looks like, and a flake does not. What else was red there,
 * machines that were down, tells of neither. */
static bool is_clear_step(const struct attribution_facts *f, const struct base_run *base)
{
	size_t first = (size_t)(base - f->base), last = first, n_alike = 0, n_green = 0;
	int newest = base->distance;
	bool has_ended;

	while (first > 0 && !f->base[first - 1].is_green)
		first--;
	while (last + 1 < f->n_base && !f->base[last + 1].is_green)
		last++;
	for (size_t i = f->n_base; i-- > 0;) {
		const struct base_run *run = &f->base[i];

		n_green += run->is_green;
		if (run->is_green || !failure_marks_are_alike(&run->mark, &f->mark))
			continue;
		if (i < first || i > last)
			return false;
		n_alike++;
		newest = run->distance;
	}
	has_ended = first > 0;
	if (has_ended && newest > 0)
		return false; /* it may have been mended before the merge base */
	if (!failure_marks_are_alike(&base->mark, &f->mark))
		return false;
	if (!n_green) /* never seen to work: no flake of something that does */
		return base->distance == 0 || n_alike >= STEP_MIN_REDS;
	return n_alike >=
	       (has_ended && n_green < STEP_MIN_GREENS ? STEP_MIN_REDS_ENDED : STEP_MIN_REDS);
}

static void say_where(const struct attribution_facts *f, const struct base_run *base,
    const char *what, struct attribution_result *r)
{
	const char *whose = f->is_push ? "parent" : "merge base";

	if (base->distance == 0)
		say(r, "%s on the %s %.*s", what, whose, SHOWN_SHA_CHARS, base->sha);
	else
		say(r, "%s on %.*s, %d commit%s before the %s", what, SHOWN_SHA_CHARS, base->sha,
		    base->distance, base->distance == 1 ? "" : "s", whose);
}

/* Red so before the merge base and after it. */
static bool is_amid(const struct attribution_facts *f, const struct base_run *base)
{
	return base > f->base && !base[-1].is_green && is_same(&base[-1].mark, &f->mark);
}

static bool has_failed_so(const struct attribution_facts *f, const struct base_run *base)
{
	if (f->has_other_failure)
		return f->are_all_on_base;
	if (f->mark.key && base->mark.key)
		return is_same(&f->mark, &base->mark);
	return (!f->has_several || f->are_all_on_base) && is_clear_step(f, base);
}

static bool is_from_base(
    const struct attribution_facts *f, const struct base_run *base, struct attribution_result *r)
{
	if (!base || base->is_green || base->mark.status != f->mark.status)
		return false;
	/* What landed from the same author and may be mended since is no excuse for its return. */
	if (base->distance > 0 && f->is_first_seen_on_own && !is_amid(f, base))
		return false;
	if (!has_failed_so(f, base))
		return false;
	r->attribution = ATTRIBUTION_BASE;
	r->evidence_job = base->job;
	say_where(f, base, "red", r);
	return true;
}

/* ---- FLAKY ---- */

static bool has_passed_here(const struct attribution_facts *f, struct attribution_result *r)
{
	if (!f->passed_here_job)
		return false;
	r->attribution = ATTRIBUTION_FLAKY;
	r->evidence_job = f->passed_here_job;
	say(r, "it passed on this very commit, too");
	return true;
}

/* May what failed elsewhere speak for this failure at all? */
static bool may_compare(const struct attribution_facts *f)
{
	return f->mark.key && !f->has_other_failure && f->n_in_row <= ATTRIBUTION_ROW_MAX;
}

static bool is_mixed_elsewhere(const struct attribution_facts *f, struct attribution_result *r)
{
	if (!may_compare(f) || !f->mixed_elsewhere_job || f->is_first_seen_on_own)
		return false;
	r->attribution = ATTRIBUTION_FLAKY;
	r->evidence_job = f->mixed_elsewhere_job;
	say(r, "on one other commit it failed like this, and passed, too");
	return true;
}

static bool fails_elsewhere(const struct attribution_facts *f, struct attribution_result *r)
{
	if (!may_compare(f))
		return false;
	for (size_t i = 0; i < f->n_similar; i++) {
		const struct similar_failure *s = &f->similar[i];

		if (!s->is_other_author || !s->has_other_files || s->is_on_broken_base)
			continue;
		if (f->is_first_seen_on_own && !s->is_base_green)
			continue;
		r->attribution = ATTRIBUTION_FLAKY;
		r->evidence_job = s->job;
		say(r, "it failed like this on a change of somebody else that touches other files");
		return true;
	}
	return false;
}

/* ---- NEW, or what is missing ---- */

static bool is_green_on_base(
    const struct attribution_facts *f, const struct base_run *base, struct attribution_result *r)
{
	if (!base || !base->is_green || base->distance != 0)
		return false;
	r->attribution = ATTRIBUTION_NEW;
	r->evidence_job = base->job;
	say_where(f, base, "green", r);
	r->needs = NEEDS_HEAD;
	return true;
}

static void explain_base(
    const struct attribution_facts *f, const struct base_run *base, struct attribution_result *r)
{
	const char *at = base->distance ? "before the merge base" : "on the merge base";

	r->evidence_job = base->job;
	if (base->mark.status != f->mark.status)
		say(r, "red %s, but as %s", at, test_status_name(base->mark.status));
	else if (f->has_other_failure && !f->are_all_on_base)
		say(r, "red %s, but not in all the ways that it failed here", at);
	else if (!f->mark.key || !base->mark.key)
		say(r, "red %s, but its message is too general to compare", at);
	else if (!is_same(&f->mark, &base->mark))
		say(r, "red %s, but with another message", at);
	else
		say(r, "red %s, but first on a change of the same author or files", at);
}

static void explain(
    const struct attribution_facts *f, const struct base_run *base, struct attribution_result *r)
{
	const char *whose = f->is_push ? "its parent" : "the merge base";
	char green[96];

	r->attribution = ATTRIBUTION_UNCLASSIFIED;
	r->needs = f->is_base_known ? NEEDS_HEAD | NEEDS_BASE : NEEDS_HEAD;
	if (!f->is_base_known) {
		say(r, "%s is not known", whose);
	} else if (!base) {
		say(r, "not tested on %s, nor shortly before it", whose);
	} else if (base->is_green) {
		r->evidence_job = base->job;
		snprintf(green, sizeof(green), "green on %.*s, %d commit%s before it",
		    SHOWN_SHA_CHARS, base->sha, base->distance, base->distance == 1 ? "" : "s");
		say(r, "not tested on %s; %s", whose, green);
	} else {
		explain_base(f, base, r);
	}
}

static bool is_flaky(const struct attribution_facts *f, struct attribution_result *r)
{
	return has_passed_here(f, r) || is_mixed_elsewhere(f, r) || fails_elsewhere(f, r);
}

struct attribution_result attribute(const struct attribution_facts *f, int max_distance)
{
	const struct base_run *base = find_base(f, max_distance);
	struct attribution_result r = {.evidence_job = 0};

	if (is_known(f, &r) || (is_alone(f, base) && is_flaky(f, &r)))
		return r;
	if (!is_from_base(f, base, &r) && !is_flaky(f, &r) && !is_green_on_base(f, base, &r))
		explain(f, base, &r);
	return r;
}
