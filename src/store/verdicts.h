/* Verdicts: the current cell of each (change, accelerator, test), a materialised view of the
 * current jobs' results and of what the dispatches themselves say. */
#ifndef STORE_VERDICTS_H
#define STORE_VERDICTS_H

#include "model/states.h"
#include "store/db.h"

struct cell {
	int64_t change_id;
	const char *accelerator;
	int64_t test_id;
	enum test_status status;
	const char *message; /* or NULL */
	const char *file;    /* or NULL */
	int64_t line;        /* 0: not known */
	int64_t job_id;      /* 0: none */
	bool is_late;
};
/* Adds one source of a cell: of several the worst shows, by the order of enum test_status. */
void verdict_put(struct db *d, const struct cell *c);

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
/* Adds that cell. */
void verdict_put_job(struct db *d, int64_t job_id);

/* All cells of one accelerator anew, from its current jobs and dispatches. */
void verdicts_rebuild(struct db *d, int64_t change_id, const char *accelerator);
/* Whether what an earlier attempt of a job said may be in them as well: one that was red. */
bool verdicts_are_of_retries(struct db *d, int64_t change_id, const char *accelerator);

/* The id of a (suite, name, dtype), made when it is new. dtype NULL: none. */
int64_t test_id_of(struct db *d, const char *suite, const char *name, const char *dtype);

#endif
