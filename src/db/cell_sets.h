/* The cells of a change as numbers, for code that counts or compares all of them. The table `cell` (packed_cell.c) shows the
 * same cells, but one row at a time and with their texts, which takes twenty times as long.
 *
 * Thread: the connection's. A set belongs to the caller, and does not use the connection afterwards. */
#pragma once

#include "db/packed_lists.h"
#include "model/attribution.h"
#include "model/test_result.h"

/* A cell is a row of `verdict`, or the result number `i` of a part. A change has a hundred thousand of them, so each has two words. */
struct cell {
	int64_t test_id;
	uint64_t status : 8;      /* enum test_status */
	uint64_t attribution : 8; /* enum attribution; N_ATTRIBUTIONS: it has none */
	uint64_t i : 22;          /* a report has REPORT_TESTS_MAX results at most */
	uint64_t part : 24;       /* far more than the jobs of a change on one accelerator */
	uint64_t is_row : 1, has_job : 1;
};
_Static_assert(sizeof(struct cell) == 16 && REPORT_TESTS_MAX < 1 << 22, "a cell has two words");

/* Consecutive results of one job. has_rows: some of them have a row of `result`, which says more. */
struct cell_part {
	int64_t job_id, first; /* first: the ordinal of its first result */
	bool is_late, has_rows;
	struct test_list *list; /* the set is one of its users */
};

/* The cells of one accelerator, by test_id. */
struct cell_set {
	char *accelerator;
	struct cell *at;
	size_t n, n_room;
	struct cell_part *parts;
	size_t n_parts;
	/* while the set is made: where each sorted piece of `at` begins, and the rows, which are put into `at` at the end */
	size_t *runs;
	size_t n_runs;
	struct cell *rows;
	size_t n_rows;
};

struct cell_sets {
	struct cell_set *at; /* by accelerator */
	size_t n;
};

/* Reads the cells of one accelerator, or of all (NULL). A damaged row fails the connection with an error that names the job. */
void cell_sets_read(const struct view *d, int64_t change_id, const char *accelerator, struct cell_sets *ret);
void cell_sets_release(struct cell_sets *l);
/* How many tests at least one job reported. */
int64_t cell_sets_n_tests(const struct cell_sets *l);
/* NULL: there is none. */
const struct cell_set *cell_sets_find(const struct cell_sets *l, const char *accelerator);
const struct cell *cell_set_find(const struct cell_set *s, int64_t test_id);
