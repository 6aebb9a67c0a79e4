/* What one event means: which runners want the change, which of them are held, who is to
 * be dropped. Pure: the same event, configuration and files give the same plan, and only
 * the store knows what of it was done before.
 *
 * Rule guarded here: a change of an author that an accelerator does not trust never gets a
 * want without a held_reason. */
#ifndef DISPATCH_PLAN_H
#define DISPATCH_PLAN_H

#include "config/config.h"
#include "model/event.h"
#include "model/plan.h"

/* The name that stands for "and more, which GitHub did not list" among changed files; no
 * file can be called so. With it in the list every path matches. */
extern const char FILES_INCOMPLETE[];

enum plan_verdict {
	PLAN_READY,
	PLAN_NEEDS_FILES, /* nothing was filled in; again with the PR's changed files */
};

/* ev: EVENT_PULL_REQUEST or EVENT_PUSH. files: the changed paths, NULL-terminated, or NULL
 * while unknown. On PLAN_READY *ret is the caller's: plan_release(). */
enum plan_verdict plan_make(const struct event *ev, const struct config *c,
    const char *const *files, struct plan *ret) MUST_CHECK;

#endif
