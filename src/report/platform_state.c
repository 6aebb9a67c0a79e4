#include "report/platform_state.h"

#include <stdio.h>
#include <string.h>

#define MINUTE INT64_C(60000)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

static const char NOTHING_DEMANDED[] = "no must-pass tests are named for it";

enum { SPAN_BYTES = 32 };

const char *platform_state_name(enum platform_state s)
{
	static const char *const names[] = {
	    [PLATFORM_TESTED] = "tested",
	    [PLATFORM_IS_RED] = "red",
	    [PLATFORM_STALE] = "stale",
	    [PLATFORM_UNTESTED] = "untested",
	};

	return names[s];
}

/* "3 days". A time to come, after the clock was put back, is none. */
static const char *span(int64_t ms, char out[SPAN_BYTES])
{
	const char *unit = ms < HOUR ? "minute" : ms < DAY ? "hour" : "day";
	int64_t n = ms / (ms < HOUR ? MINUTE : ms < DAY ? HOUR : DAY);

	if (ms < MINUTE)
		snprintf(out, SPAN_BYTES, "less than a minute");
	else
		snprintf(out, SPAN_BYTES, "%lld %s%s", (long long)n, unit, n == 1 ? "" : "s");
	return out;
}

static const char *os_title(enum platform_os os)
{
	static const char *const titles[] = {
	    [OS_LINUX] = "Linux",
	    [OS_MACOS] = "macOS",
	    [OS_WINDOWS] = "Windows",
	};

	return titles[os];
}

bool platform_test_is_stale(const struct platform *p, const struct platform_test *t, int64_t now_ms)
{
	return now_ms - t->at_ms > p->max_age_ms;
}

/* ---- the platform ---- */

static bool names_releases(const struct platform *p)
{
	for (size_t i = 0; i < p->n_installs; i++)
		if (p->installs[i].torch)
			return true;
	return false;
}

static bool is_relevant(const struct platform *p, const struct platform_test *t)
{
	if (t->build == BUILD_NIGHTLY || !names_releases(p))
		return true;
	for (size_t i = 0; i < p->n_installs; i++)
		if (p->installs[i].torch && platform_is_release(t->torch, p->installs[i].torch))
			return true;
	return false;
}

struct newest { /* times; 0: there is none */
	int64_t green_ms, red_since_ms, any_ms;
	bool is_red, is_unjudged;
};

static void look_at(
    const struct platform *p, const struct platform_test *t, int64_t now_ms, struct newest *ret)
{
	enum platform_result result = platform_test_result(t);

	if (result == PLATFORM_UNJUDGED) {
		ret->is_unjudged = true;
		return;
	}
	if (t->at_ms > ret->any_ms)
		ret->any_ms = t->at_ms;
	if (platform_test_is_stale(p, t, now_ms))
		return;
	if (result == PLATFORM_GREEN && t->at_ms > ret->green_ms)
		ret->green_ms = t->at_ms;
	if (result == PLATFORM_RED && (!ret->is_red || t->red_since_ms < ret->red_since_ms))
		ret->red_since_ms = t->red_since_ms;
	ret->is_red |= result == PLATFORM_RED;
}

struct platform_standing platform_stand(
    const struct platform *p, const struct platform_test *tests, size_t n, int64_t now_ms)
{
	struct platform_standing s = {.state = PLATFORM_UNTESTED};
	struct newest newest = {0};
	char ago[SPAN_BYTES];

	for (size_t i = 0; i < n; i++)
		if (is_relevant(p, &tests[i]))
			look_at(p, &tests[i], now_ms, &newest);
	if (newest.is_red) {
		s.state = PLATFORM_IS_RED;
		snprintf(s.text, sizeof(s.text), "must-pass tests have been red for %s",
		    span(now_ms - newest.red_since_ms, ago));
	} else if (newest.green_ms) {
		s.state = PLATFORM_TESTED;
		snprintf(s.text, sizeof(s.text), "must-pass tests passed %s ago",
		    span(now_ms - newest.green_ms, ago));
	} else if (newest.any_ms) {
		s.state = PLATFORM_STALE;
		snprintf(s.text, sizeof(s.text), "last tested %s ago",
		    span(now_ms - newest.any_ms, ago));
	} else {
		snprintf(s.text, sizeof(s.text), "%s",
		    newest.is_unjudged ? NOTHING_DEMANDED : "not tested yet");
	}
	return s;
}

/* ---- one way to install ---- */

static bool is_of_build(const struct platform_install *i, const struct platform_test *t)
{
	if (i->build != t->build)
		return false;
	return !i->torch || platform_is_release(t->torch, i->torch);
}

static void say_why_not(const struct platform *p, const struct platform_test *t, const char *what,
    int64_t now_ms, char why[PLATFORM_LINE_BYTES])
{
	char ago[SPAN_BYTES];

	if (platform_test_result(t) == PLATFORM_UNJUDGED)
		snprintf(why, PLATFORM_LINE_BYTES, "%s", NOTHING_DEMANDED);
	else if (platform_test_is_stale(p, t, now_ms))
		snprintf(why, PLATFORM_LINE_BYTES, "%s was last tested %s ago", what,
		    span(now_ms - t->at_ms, ago));
	else
		snprintf(why, PLATFORM_LINE_BYTES, "must-pass tests with %s have been red for %s",
		    what, span(now_ms - t->red_since_ms, ago));
}

bool platform_is_offered(const struct platform *p, const struct platform_install *i,
    const struct platform_test *tests, size_t n, int64_t now_ms, char why[PLATFORM_LINE_BYTES])
{
	const struct platform_test *newest = NULL;
	bool is_tested = false, has_no_os = false;
	char what[48];

	if (i->torch)
		snprintf(what, sizeof(what), "PyTorch %s", i->torch);
	else
		snprintf(what, sizeof(what), "the nightly");
	for (size_t k = 0; k < n; k++) {
		const struct platform_test *t = &tests[k];

		if (!is_of_build(i, t))
			continue;
		is_tested = true;
		has_no_os |= !*t->os;
		if (platform_os_of(t->os) != i->os || (newest && i->build == BUILD_NIGHTLY))
			continue;
		if (!newest)
			newest = t;
		if (platform_test_result(t) == PLATFORM_GREEN &&
		    !platform_test_is_stale(p, t, now_ms))
			return true;
	}
	if (newest)
		say_why_not(p, newest, what, now_ms, why);
	else if (has_no_os)
		snprintf(why, PLATFORM_LINE_BYTES,
		    "%s was tested, but its report names no operating system", what);
	else
		snprintf(why, PLATFORM_LINE_BYTES, "%s was not tested%s%s", what,
		    is_tested ? " on " : "", is_tested ? os_title(i->os) : "");
	return false;
}
