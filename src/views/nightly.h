/* The page of periodic runs, tests × accelerators × days, worst first: its query (nightly.c, and
 * nightly_tests.c for the tests) and its JSON (nightly_json.c). */
#pragma once

#include "db/db.h"
#include "db/store.h"
#include "model/history.h"

enum { NIGHTLY_DAYS_MAX = 90 };

/* The states are those of the newest runs, for any choice of days. Accelerators at L1 are left out, and those that have
 * neither a schedule nor a run on one of the days. A page may have fewer tests than `limit` although there are more
 * (view->next), because the search for them is bounded. ERR_NOT_FOUND: `accelerator` was never registered. Thread: the
 * query runs on a reader. */
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
/* Adds to v, which has its accelerators, the tests of the page with the state of each of their cells, and the place where
 * the next page begins. Only views/nightly.c calls it. Thread: reader. Owns: v owns them. */
void nightly_tests_read(const struct view *d, const struct get_nightly *q, struct nightly_view *v);

/* NULL: the view does not show it. Any thread. */
const struct nightly_accelerator *nightly_accelerator_find(const struct nightly_view *v, const char *name);

/* The JSON, the answer of /api/v1/nightly (docs/api.md), as text; the caller frees it. Its cursor has the bytes "STATE TEST
 * SUITE" of v->next. public_url: without a trailing slash. Thread: any. */
char *nightly_json(const struct nightly_view *v, const char *public_url);
