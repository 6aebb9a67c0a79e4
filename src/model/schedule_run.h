/* One due time of a periodic run and what became of it, as pages show it (docs/api.md: RUN). */
#ifndef MODEL_SCHEDULE_RUN_H
#define MODEL_SCHEDULE_RUN_H

#include <stdint.h>

/* Texts are stored words (docs/schema.md: schedule_run) and are owned; those that may be NULL are
 * outcome (it is going), reason and the SHAs. */
struct schedule_run_view {
	int64_t id; /* 0: there is none */
	int64_t due_ms, started_ms, ended_ms;
	char *cause, *state, *outcome, *reason, *upstream_sha, *source_sha;
};
void schedule_run_view_release(struct schedule_run_view *v);

#endif
