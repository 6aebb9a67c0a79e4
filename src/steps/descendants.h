/* Ends every process that this one started, also those that detached.
 *
 * Thread: the only one of its process, because a child may be reaped only once. */
#ifndef STEPS_DESCENDANTS_H
#define STEPS_DESCENDANTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Makes orphans of this process's descendants its own children instead of init's. */
void descendants_adopt(void);

struct descendants {
	pid_t watched; /* the child whose end is recorded; 0: none */
	bool is_ended; /* it was reaped, and `status` is that of waitpid() */
	int status;
	int n_killed; /* how many reaped children SIGKILL ended, without the watched one */
};

/* Reaps the children that have ended. True if no child is left. Because every orphan becomes a child, no
 * descendant is left then either. */
bool descendants_reap(struct descendants *d);
/* Kills (SIGKILL) and reaps children until none is left, for at most within_ms; blocks. True: none is left.
 * Only after descendants_adopt(), by a process that needs no child any more. */
bool descendants_end(struct descendants *d, int64_t within_ms);

#endif
