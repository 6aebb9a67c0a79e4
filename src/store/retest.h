/* Whom a retest starts again. */
#ifndef STORE_RETEST_H
#define STORE_RETEST_H

#include "model/plan.h"
#include "store/stored_dispatch.h"

enum retest_result {
	RETEST_STARTED,
	RETEST_NOT_MEANT, /* the retest is about others */
	RETEST_RUNNING,   /* it is at work: nothing is doubled */
	RETEST_HELD,      /* and stays so: only ok-to-test releases */
	RETEST_CLEAN,     /* its last round came out clean, and nobody named it */
	RETEST_NO_SUITE,  /* none of its jobs reported that suite */
	N_RETEST_RESULTS
};
const char *retest_result_name(enum retest_result r);

/* What became of one want. */
struct retested {
	char *accelerator, *runner;
	enum retest_result result;
	char id[ID_BYTES]; /* STARTED: of the new dispatch */
};
void retested_release(struct retested *list, size_t n);

/* What p's retests mean for one want. last: its newest dispatch of the change, NULL: it had
 * none. RETEST_STARTED says that it may begin; whether it is held then, trust decides. Inside a
 * writer's transaction. */
enum retest_result retest_choose(struct db *d, const struct plan *p, const struct plan_want *w,
    const struct stored_dispatch *last);

#endif
