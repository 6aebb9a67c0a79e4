/* The state of each test in periodic runs (model/history.h), stored for pages. It is made from the packed runs
 * (history_run) each time and never from the previous state, so that late and corrected runs need no special case.
 *
 * Thread: history_judge() runs inside a writer's transaction; the others are pure, any thread. */
#pragma once

#include "db/db.h"
#include "model/states.h"

/* A judged run of the accelerator was written, changed or deleted. */
void history_judge(struct txn *d, const char *accelerator, int64_t now_ms);

/* A day's stored list of jobs or of their keys: numbers in base 10 or 16, separated by spaces. *ret_n: how many. free() the
 * list. */
int64_t *history_numbers(const char *text, int base, size_t *ret_n);

/* ---- the cells of one run, packed ----
 *
 * A few bytes for each sequence of tests with rising ids and one outcome, so that 20,000 tests of a year take megabytes and
 * a page can read hundreds of runs. */

struct history_cell {
	int64_t test_id;
	enum test_status status;
	int job; /* index in the run's list of jobs + 1; 0: none */
};

/* Packs cells, which come by rising test_id. */
struct cell_packer {
	struct buf out;
	int64_t end; /* the first test_id after those in `out` */
	struct history_cell run;
	int64_t n_run;
};
void cell_packer_init(struct cell_packer *p);
void cell_packer_add(struct cell_packer *p, const struct history_cell *c);
/* The packed bytes; the packer owns them until it is released. */
const struct buf *cell_packer_end(struct cell_packer *p);
void cell_packer_release(struct cell_packer *p);

/* Reads them in the same order, and ends at bytes that no packer wrote. */
struct cell_reader {
	const uint8_t *p, *end;
	struct history_cell next;
	int64_t n_left;
};
struct cell_reader cell_reader_of(const void *p, size_t n); /* borrows */
bool cell_reader_next(struct cell_reader *r, struct history_cell *ret);
/* The cell of that test, if there is one. Each call on one reader needs a larger test_id than the last. */
bool cell_reader_find(struct cell_reader *r, int64_t test_id, struct history_cell *ret);
