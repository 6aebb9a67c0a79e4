/* What mirror.c (fetching) and mirror_store.c (the files) share. */
#ifndef STEPS_MIRROR_INTERNAL_H
#define STEPS_MIRROR_INTERNAL_H

#include "steps/mirror.h"

#define MIRROR_TIP "refs/outpost/tip" /* of a branch or pull request that was searched */

/* Where the mirror of a URL is. free(). */
char *mirror_path(const struct job *j, enum mirror_kind kind, const char *url);
/* Makes it where it is missing, and takes away what a git that was killed left in the way. */
int mirror_make(struct job *j, const char *path, const char *ref, struct error *e) MUST_CHECK;

#endif
