/* The gauges of /metrics for each accelerator and each kind of effect. At most GAUGE_ACCELERATORS_MAX accelerators, so that
 * there are few labels: those that are registered and not at L1. Thread: the query runs on a reader. */
#pragma once

#include "db/store.h"
#include "history/standings.h"
#include "store/registry.h"

enum { GAUGE_ACCELERATORS_MAX = 500 };

/* `accelerator` as a; ?2: 30 days ago. `n_expired`: missed deadlines in 30 days. `n_queued`: pull dispatches that wait for
 * a machine. */
#define ACCELERATOR_GAUGES_RECORD(F, S)                                                                                \
	F(S, TEXT, name, NULL, "a.name", "")                                                                           \
	F(S, TIME, unhealthy_since_ms, NULL, "a.unhealthy_since_ms", "")                                               \
	F(S, INT, n_expired, NULL,                                                                                     \
	    "(SELECT COUNT(*) FROM dispatch WHERE accelerator = a.name AND created_ms >= ?2"                           \
	    " AND state = 'expired' AND " IS_FIRST_RUN ")",                                                            \
	    "")                                                                                                        \
	F(S, INT, n_queued, NULL,                                                                                      \
	    "(SELECT COUNT(*) FROM dispatch WHERE accelerator = a.name AND kind = 'pull'"                              \
	    " AND state = 'queued' AND " IS_FIRST_RUN ")",                                                             \
	    "")
struct accelerator_gauges {
	RECORD_MEMBERS(ACCELERATOR_GAUGES_RECORD)
	struct standing at;
	/* of the experiments that ended in the last 24 hours after Outpost sent them to the vendor */
	int64_t n_experiments_done, n_experiments_expired, n_experiments_void;
};
/* The effects of one kind that are not sent yet, from `outbox`. */
#define OUTBOX_GAUGES_RECORD(F, S)                                                                                     \
	F(S, INT, n_unsent, NULL, "COUNT(*)", "")                                                                      \
	F(S, TIME, oldest_ms, NULL, "MIN(first_ms)", "")
struct outbox_gauges {
	RECORD_MEMBERS(OUTBOX_GAUGES_RECORD)
};
struct get_gauges {
	struct store_query q;
	int64_t now_ms;
	struct get_totals totals;        /* out, without experiments */
	struct accelerator_gauges *list; /* out, by name; get_gauges_release() */
	size_t n;
	/* out: accelerators that the breaker does not count; accelerators whose state is red */
	int64_t n_unhealthy, n_red;
	struct outbox_gauges outbox[N_OUTBOX_KINDS]; /* out */
};
int store_get_gauges(struct store *s, struct get_gauges *q) MUST_CHECK;
void get_gauges_release(struct get_gauges *q);
