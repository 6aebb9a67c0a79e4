/* How an accelerator fared: 30 days of its runs and episodes, and the numbers by which its level is judged
 * (model/promotion.h). */
#ifndef STORE_QUALITY_H
#define STORE_QUALITY_H

#include "model/promotion.h"
#include "store/db.h"

#define QUALITY_DAYS_MS (INT64_C(30) * 86400 * 1000)

struct quality {
	struct level_numbers level;
	int64_t n_push_runs, n_push_green;
	int64_t n_episodes;                                         /* red on an upstream branch */
	bool is_overdue;                                            /* red for more than 72 h now */
	int64_t queue_p50_ms, queue_p90_ms, run_p50_ms, run_p90_ms; /* -1: not known */
	int64_t red_since_ms;       /* of its runs on upstream's branches; 0: it is not red */
	bool is_red_in_silence;     /* by nothing but deadlines that passed without a report */
	int64_t unhealthy_since_ms; /* the circuit breaker; 0: it counts */
};
/* From its days (store/days.h), and from the runs of the one day that is only in part within the time.
 * Thread: reader or writer. */
void quality_read(struct db *d, const char *accelerator, int64_t now_ms, struct quality *ret);

#endif
