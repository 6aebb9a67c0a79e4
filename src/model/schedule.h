/* When an accelerator's periodic run is due: its cron texts (UTC, see model/cron.h) and a delay
 * of its own behind each time, so that those who write the same line do not start at once.
 *
 * A due time is what the crons say; a run starts when its delay is over as well. The delay is a
 * stable share (a hash of the name) of the configured jitter, or of a quarter of the gap to the
 * next due time where that is shorter: so due times keep their order and an every-minute cron
 * stays one a minute.
 *
 * Pure: the time is an argument, so a clock that stands wrong or jumps is a test. */
#ifndef MODEL_SCHEDULE_H
#define MODEL_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/cron.h"

struct schedule {
	struct cron *crons;
	size_t n;
	int64_t jitter_ms;
	double share; /* of it, in [0,1) */
};

/* texts: NULL-terminated, as the configuration took them; NULL or empty: never due. */
void schedule_init(
    struct schedule *s, const char *name, const char *const *texts, int64_t jitter_ms);
void schedule_release(struct schedule *s);

/* When the run of that due time starts. */
int64_t schedule_start_ms(const struct schedule *s, int64_t due_ms);

struct schedule_look {
	/* The due time to act upon now, 0: none. However many went by, it is the latest. */
	int64_t due_ms;
	bool is_missed;      /* others went by before it, or its start is more than a minute ago */
	int64_t next_due_ms; /* the one to come after it (or after now), 0: never */
	int64_t next_ms;     /* and its start */
	int64_t last_ms;     /* what is last_ms from now on */
};
/* last_ms: the due time that was acted upon last, or since when times count. One that lies ahead
 * of now was of a clock that has been put back since: then times count from now, and of those that
 * come round again the caller knows which he has acted upon. */
struct schedule_look schedule_look(const struct schedule *s, int64_t last_ms, int64_t now_ms);
/* The first look at a schedule that takes the place of `before` (last_ms is of that). What was due by
 * the one before is not lost, and what only the new one would have had due until now is not missed. */
struct schedule_look schedule_look_at_other(
    const struct schedule *s, const struct schedule *before, int64_t last_ms, int64_t now_ms);

#endif
