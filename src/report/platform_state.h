/* How a platform stands by its must-pass tests, and which of its installation commands that lets us
 * offer. Pure. Private to report/. */
#ifndef REPORT_PLATFORM_STATE_H
#define REPORT_PLATFORM_STATE_H

#include "model/platform_test.h"

/* In the order in which platforms are listed. */
enum platform_state { PLATFORM_TESTED, PLATFORM_IS_RED, PLATFORM_STALE, PLATFORM_UNTESTED };

enum { PLATFORM_LINE_BYTES = 160 };

struct platform_standing {
	enum platform_state state;
	char text[PLATFORM_LINE_BYTES]; /* one line for people */
};

const char *platform_state_name(enum platform_state s);
bool platform_test_is_stale(
    const struct platform *p, const struct platform_test *t, int64_t now_ms);
/* Nightlies count, and of the releases those that `install` names (all, where it names none): one red
 * and not stale makes the platform red, else one green makes it tested. tests: newest first. */
struct platform_standing platform_stand(
    const struct platform *p, const struct platform_test *tests, size_t n, int64_t now_ms);
/* A release is offered for a system where some test of it there is green and not stale, a nightly
 * where the newest is. Else `why` says why not. tests: newest first. */
bool platform_is_offered(const struct platform *p, const struct platform_install *i,
    const struct platform_test *tests, size_t n, int64_t now_ms, char why[PLATFORM_LINE_BYTES]);

#endif
