/* Makes the bodies of lost webhooks from answers of GitHub's API, so that the planner handles a change without a webhook
 * like any other. Pure.
 *
 * Thread: any. Owns: the caller owns a returned body, with free(). */
#ifndef DISPATCH_SYNTHETIC_H
#define DISPATCH_SYNTHETIC_H

#include <jansson.h>
#include <stdbool.h>

/* pull: the API's answer, borrowed. before: the recorded head, or NULL. */
char *synthetic_pull(
    const char *action, const json_t *pull, const char *repository, const char *before);
/* branch: the API's answer for it, borrowed. before: the recorded tip, or NULL. */
char *synthetic_push(const json_t *branch, const char *name, const char *after,
    const char *repository, const char *before);
/* A push whose webhook was lost. between: all commits from `before` to `after` from GitHub, borrowed; NULL: they are
 * unknown, and the list stays empty. */
struct missed_push {
	const json_t *branch;
	const char *name, *after, *repository, *before;
	const json_t *between;
	bool is_forced;
};
char *synthetic_missed_push(const struct missed_push *m);

/* For a periodic run: {"repository", "ref", "after", "head_sha"}. */
char *synthetic_nightly(const char *repository, const char *branch, const char *head_sha);

#endif
