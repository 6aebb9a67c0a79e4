/* The plan for one event: the runners that test the change, those that are held, and those whose work is dropped. Pure:
 * the same event, configuration and files give the same plan. The store compares it with the work that it has
 * recorded already.
 *
 * Rule guarded here: if an accelerator does not trust the author of a change, each want of it has a held_reason.
 *
 * Thread: any. Owns: the caller owns a plan, with plan_release(). */
#pragma once

#include "config/config.h"
#include "model/event.h"
#include "model/plan.h"

enum plan_verdict {
	PLAN_READY,
	PLAN_NEEDS_FILES, /* *ret is not set; call it again with the PR's changed files */
};

/* ev: EVENT_PULL_REQUEST or EVENT_PUSH. files: the changed paths, NULL-terminated, or NULL
 * while unknown. On PLAN_READY *ret is the caller's: plan_release(). */
enum plan_verdict plan_make(
    const struct event *ev, const struct config *c, const char *const *files, struct plan *ret) MUST_CHECK;

/* Plans a periodic run of one accelerator: upstream's head for its own runners. The code is merged, so every trust
 * admits it. The infra repository gets it only if it hosts the accelerator. Each run is a round of its own. */
struct nightly_head {
	const char *sha, *branch;
	const char *title, *author; /* NULL: unknown */
};
void plan_nightly(
    const struct nightly_head *head, const struct accelerator *a, const struct config *c, struct plan *ret);
