/* How many experiments are open, and how much of its budget each accelerator has spent on them. */
#ifndef STORE_EXPERIMENT_USE_H
#define STORE_EXPERIMENT_USE_H

#include "store/store.h"

struct experiment_use {
	char *name;
	int64_t n_planned, n_started;
	int64_t spent_ms, allowed_ms; /* in 24 hours, without `stress` */
};
struct list_experiment_use {
	struct store_query q;
	int64_t now_ms;
	/* out: accelerators that take experiments or have open ones, by name, at most 500;
	 * list_experiment_use_release() */
	struct experiment_use *list;
	size_t n;
};
int store_list_experiment_use(struct store *s, struct list_experiment_use *q) MUST_CHECK;
void list_experiment_use_release(struct list_experiment_use *q);

#endif
