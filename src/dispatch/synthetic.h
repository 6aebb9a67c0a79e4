/* Bodies of webhooks that never came, made from what GitHub's API says, so that what no
 * webhook told of takes the same way as what one did. Pure; free() what they return. */
#ifndef DISPATCH_SYNTHETIC_H
#define DISPATCH_SYNTHETIC_H

#include <jansson.h>

/* pull: as the API gives it, borrowed. before: the head that was known, or NULL. */
char *synthetic_pull(
    const char *action, const json_t *pull, const char *repository, const char *before);
/* branch: the API's answer for it, borrowed. before: the tip that was known, or NULL. */
char *synthetic_push(const json_t *branch, const char *name, const char *after,
    const char *repository, const char *before);

#endif
