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

enum plan_verdict {
	PLAN_READY,
	PLAN_NEEDS_FILES, /* nothing was filled in; again with the PR's changed files */
};

/* ev: EVENT_PULL_REQUEST or EVENT_PUSH. files: the changed paths, NULL-terminated, or NULL
 * while unknown. On PLAN_READY *ret is the caller's: plan_release(). */
enum plan_verdict plan_make(const struct event *ev, const struct config *c,
    const char *const *files, struct plan *ret) MUST_CHECK;

/* A periodic run of one accelerator: upstream's head for its own runners. Merged code, so every
 * trust admits it; the infra repository hears of it only where it hosts the accelerator. Each run
 * is a round of its own. */
struct nightly_head {
	const char *sha, *branch;
	const char *title, *author; /* NULL: unknown */
};
void plan_nightly(const struct nightly_head *head, const struct accelerator *a,
    const struct config *c, struct plan *ret);

#endif
