/* Bodies of webhooks that never came, made from what GitHub's API says, so that what no
 * webhook told of takes the same way as what one did. Pure; free() what they return. */
#ifndef DISPATCH_SYNTHETIC_H
#define DISPATCH_SYNTHETIC_H

#include <jansson.h>
#include <stdbool.h>

/* pull: as the API gives it, borrowed. before: the head that was known, or NULL. */
char *synthetic_pull(
    const char *action, const json_t *pull, const char *repository, const char *before);
/* branch: the API's answer for it, borrowed. before: the tip that was known, or NULL. */
char *synthetic_push(const json_t *branch, const char *name, const char *after,
    const char *repository, const char *before);
/* One whose webhook never came. between: GitHub's commits from `before` to `after`, all of them,
 * borrowed; NULL: it does not say, and the list stays empty. */
struct missed_push {
	const json_t *branch;
	const char *name, *after, *repository, *before;
	const json_t *between;
	bool is_forced;
};
char *synthetic_missed_push(const struct missed_push *m);

/* A periodic run's: {"repository", "ref", "after", "head_sha"}. */
char *synthetic_nightly(const char *repository, const char *branch, const char *head_sha);

#endif
