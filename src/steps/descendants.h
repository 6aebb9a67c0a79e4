/* Ends everything that this process started, however far it detached. */
#ifndef STEPS_DESCENDANTS_H
#define STEPS_DESCENDANTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Makes orphans of this process's descendants its own children instead of init's. */
void descendants_adopt(void);

struct descendants {
	pid_t watched; /* the child whose end matters; 0: none */
	bool is_ended; /* it was reaped, with this status of waitpid() */
	int status;
	int n_killed; /* how many of the reaped ones SIGKILL ended, the watched one not counted */
};

/* Reaps what ended. True when no child is left: as every orphan comes here, that means no
 * descendant either. */
bool descendants_reap(struct descendants *d);
/* SIGKILLs and reaps children until there are none, for at most within_ms. True: none is left.
 * Only for a process that adopted them and wants nothing of any child any more. */
bool descendants_end(struct descendants *d, int64_t within_ms);

#endif
