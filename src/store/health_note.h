/* The circuit breaker's switch: looks at an accelerator's newest runs (model/health.h) and says in
 * its row whether it counts. */
#ifndef STORE_HEALTH_NOTE_H
#define STORE_HEALTH_NOTE_H

#include "store/db.h"

/* A run of it has ended, or ended otherwise than was known. When the breaker trips or recovers,
 * comments of its newest open pull requests are wished for again. Inside a writer's transaction. */
void health_note(struct db *d, const char *accelerator, int64_t now_ms);

#endif
