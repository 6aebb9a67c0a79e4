/* One round of the registry in the pool: fetch the newest commit, check its form, write its files into a
 * folder; and once it is in force, remove older folders. The loop's side prepares the round and reads it
 * when it is over; between the two it belongs to the pool. */
#ifndef REGISTRY_ROUND_H
#define REGISTRY_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "config/config.h"
#include "loop/loop.h"

struct round {
	struct pool_work work;
	/* given */
	char *root, *url, *branch, *path;
	char *name_in_force, *name_refused; /* checkouts that need no folder; NULL: none */
	int cancel_fd;
	/* found */
	int err; /* the fetch failed, or a folder could not be written */
	struct error why;
	char commit[65];
	char *name;           /* of the checkout of that commit */
	struct buf mistakes;  /* why the commit cannot be taken, a line each */
	int64_t good_wall_ms; /* since when the one in force is the good one; 0: not known */
};

void round_prepare(
    struct round *q, const struct config *c, const char *name_refused, int cancel_fd);
/* False when it asked another repository, branch or folder than c names. */
bool round_fits(const struct round *q, const struct config *c);
/* The checkout. free(). */
char *round_folder(const struct round *q);
void round_release(struct round *q);

/* For the pool. Fetches; the folder of a commit that is neither in force nor refused is written. */
void round_fetch(struct pool_work *w);
/* Removes all folders but that of the round's commit, which is in force. */
void round_sweep(struct pool_work *w);

#endif
