/* What the page of periodic runs shows: some tests, worst first, across accelerators and days. Plain
 * data: the store fills it, report/ writes it down. */
#ifndef MODEL_NIGHTLY_VIEW_H
#define MODEL_NIGHTLY_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/history.h"
#include "model/schedule_run.h"

/* Days are counted from 1970, UTC. */
struct nightly_accelerator {
	char *name, *title;
	int level;
	char *crons; /* JSON array; NULL: it has no schedule */
	int64_t next_ms;
	bool is_next_skipped;
	struct schedule_run_view *runs; /* n_days of them, the last of each day */
};

/* A run that a row of days is told by. */
struct nightly_mark {
	int64_t day; /* -1: none */
	int64_t at_ms;
	char *repository, *upstream_sha, *source_url, *source_sha; /* NULL: not known any more */
	int64_t job;                                               /* 0: none, or gone */
};

/* The commits of upstream between two runs; several cells share one. */
struct nightly_commits {
	char *repository, *good_sha, *bad_sha;
	int64_t n; /* -1: not known */
	struct {
		char *sha, *title, *author;
	} * list; /* the newest, newest first */
	size_t n_listed;
};

struct nightly_day {
	int status; /* enum test_status; -1: none */
	int64_t job;
};

struct nightly_cell {
	size_t accelerator; /* place in the view's list */
	enum history_state state;
	int64_t since_day; /* -1: not known */
	struct nightly_mark first_bad, last_good;
	int commits;              /* place in the view's list; -1: none between */
	struct nightly_day *days; /* n_days of them */
};

struct nightly_test {
	int64_t id;
	char *suite, *name, *dtype; /* dtype NULL: none */
	struct nightly_cell *cells; /* of the accelerators that have it */
	size_t n_cells;
};

/* Where a list goes on: behind this test. */
struct nightly_place {
	enum history_state state;
	char *suite; /* NULL: at the beginning, or (as `next`) nothing is left */
	int64_t test_id;
};

struct nightly_view {
	int64_t first_day;
	size_t n_days;
	struct nightly_accelerator *accelerators;
	size_t n_accelerators;
	int64_t counts[N_HISTORY_STATES]; /* cells */
	struct nightly_test *tests;
	size_t n_tests;
	struct nightly_commits *commits;
	size_t n_commits;
	struct nightly_place next;
};

void nightly_view_free(struct nightly_view *v); /* NULL is fine */

#endif
