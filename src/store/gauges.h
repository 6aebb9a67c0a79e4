/* What /metrics says of each accelerator and each kind of effect. Few labels: at most
 * GAUGE_ACCELERATORS_MAX accelerators that are registered and show anything. */
#ifndef STORE_GAUGES_H
#define STORE_GAUGES_H

#include "store/outbox.h"
#include "store/standings.h"
#include "store/store.h"

enum { GAUGE_ACCELERATORS_MAX = 500 };

struct accelerator_gauges {
	char *name;
	int64_t unhealthy_since_ms; /* 0: it counts */
	struct standing at;
	int64_t n_expired; /* deadlines missed in 30 days */
	int64_t n_queued;  /* pull: wait for a machine */
	/* of the experiments that ended in the last 24 hours after the vendor was asked */
	int64_t n_experiments_done, n_experiments_expired, n_experiments_void;
};
struct outbox_gauges {
	int64_t n_unsent, oldest_ms; /* 0: none */
};
struct get_gauges {
	struct store_query q;
	int64_t now_ms;
	struct accelerator_gauges *list; /* out, by name; get_gauges_release() */
	size_t n;
	struct outbox_gauges outbox[N_OUTBOX_KINDS]; /* out */
};
int store_get_gauges(struct store *s, struct get_gauges *q) MUST_CHECK;
void get_gauges_release(struct get_gauges *q);

#endif
