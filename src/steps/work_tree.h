/* A folder with a commit's files and a repository of its own around them. */
#ifndef STEPS_WORK_TREE_H
#define STEPS_WORK_TREE_H

#include "steps/mirror.h"

/* Fetches what is missing and fills the folder, which is there and empty. `url` becomes the
 * remote `origin`, which steps read: without a password. With the mirrors' lock.
 *
 * A mirror that turns out to be damaged is made anew, once: a machine that lost its power must
 * not need a person. */
int work_tree_make(struct job *j, const struct mirror_want *w, const char *folder, const char *url,
    struct error *e) MUST_CHECK;

#endif
