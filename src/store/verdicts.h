/* Verdicts: the current cell of each (change, accelerator, test), a materialised view of the
 * current jobs' results and of what the dispatches themselves say. */
#ifndef STORE_VERDICTS_H
#define STORE_VERDICTS_H

#include "model/states.h"
#include "store/db.h"

/* A completed job as a cell of its own name, when its tests do not say it already. */
struct job_outcome {
	const char *conclusion;
	int64_t n_tests, n_red;
	const char *message; /* what whoever ended it says; or NULL */
	bool is_given_up;    /* nobody reported it: see job_give_up() */
};
bool job_needs_cell(const struct job_outcome *o);
/* What that cell says besides its status. NULL: nothing. free(). */
char *job_outcome_text(const struct job_outcome *o);

/* ---- steps of cells_moved(), which alone calls them ---- */

/* Makes all cells of one accelerator again, from its current jobs and dispatches. */
void verdicts_rebuild(struct db *d, int64_t change_id, const char *accelerator);
/* Adds the cells of a job that has just completed and takes no other attempt's place: with the cells
 * that are there the result is that of verdicts_rebuild(). */
void verdicts_add_job(struct db *d, int64_t change_id, const char *accelerator, int64_t job_id);

/* Whether what an earlier attempt of a job said may be in them as well: one that was red. */
bool verdicts_are_of_retries(struct db *d, int64_t change_id, const char *accelerator);

/* The id of a (suite, name, dtype), made when it is new. dtype NULL: none. */
int64_t test_id_of(struct db *d, const char *suite, const char *name, const char *dtype);

#endif
