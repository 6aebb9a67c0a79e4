/* The periodic runs for a page: tests × accelerators × days, worst first. */
#ifndef STORE_NIGHTLY_H
#define STORE_NIGHTLY_H

#include "model/nightly_view.h"
#include "store/store.h"

enum { NIGHTLY_DAYS_MAX = 90 };

/* The states are those of the newest runs, whatever days are asked for. L1 is left out; so is who has
 * neither a schedule nor a run on one of the days. A page may hold fewer tests than `limit` although
 * there are more (view->next): looking for them is bounded. ERR_NOT_FOUND: nobody ever registered
 * `accelerator`. */
struct get_nightly {
	struct store_query q;
	int64_t last_day; /* days since 1970 */
	int n_days;       /* 1 … NIGHTLY_DAYS_MAX */
	int limit;
	const char *accelerator, *suite; /* NULL: all */
	const char *part;                /* of a test's name, in either case; NULL: all */
	enum history_state state;        /* HISTORY_NONE: all */
	struct nightly_place after;      /* an earlier `next`; zero: the beginning. Borrowed */
	struct nightly_view *view;       /* out; nightly_view_free() */
};
int store_get_nightly(struct store *s, struct get_nightly *q) MUST_CHECK;

#endif
