/* The cells of one run, packed: some bytes for each stretch of tests that follow each other and came
 * out alike, so that 20,000 tests of a year take megabytes and a page reads hundreds of runs. */
#ifndef STORE_HISTORY_CELLS_H
#define STORE_HISTORY_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/states.h"

struct history_cell {
	int64_t test_id;
	enum test_status status;
	int job; /* place in the run's list of jobs + 1; 0: none */
};

/* Takes cells by rising test_id. */
struct cell_packer {
	struct buf out;
	int64_t end; /* the first test_id behind what is in `out` and `run` */
	struct history_cell run;
	int64_t n_run;
};
void cell_packer_init(struct cell_packer *p);
void cell_packer_add(struct cell_packer *p, const struct history_cell *c);
/* What was packed; stays the packer's until it is released. */
const struct buf *cell_packer_end(struct cell_packer *p);
void cell_packer_release(struct cell_packer *p);

/* Gives them back in the same order. Bytes that are none of the packer's end it. */
struct cell_reader {
	const uint8_t *p, *end;
	struct history_cell next;
	int64_t n_left;
};
struct cell_reader cell_reader_of(const void *p, size_t n); /* borrows */
bool cell_reader_next(struct cell_reader *r, struct history_cell *ret);
/* The cell of that test, if it is there. Only for rising test_ids on one reader. */
bool cell_reader_find(struct cell_reader *r, int64_t test_id, struct history_cell *ret);

#endif
