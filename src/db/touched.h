/* The changes, jobs and accelerators that look different after a commit, so that only their viewers are notified. When
 * there are more than fit, anything may look different.
 *
 * Thread: the functions are pure; store_name_touched() is called on the loop. The struct owns nothing. */
#pragma once

#include "db/store.h"

enum { TOUCHED_MAX = 32, TOUCHED_NAMES_MAX = 8, TOUCHED_NAME_BYTES = 64 };

struct store_touched {
	int64_t changes[TOUCHED_MAX], jobs[TOUCHED_MAX];
	char accelerators[TOUCHED_NAMES_MAX][TOUCHED_NAME_BYTES];
	int n_changes, n_jobs, n_accelerators;
	bool is_all; /* more than fits */
};
/* Each is listed once. */
void touched_add_change(struct store_touched *t, int64_t change_id);
void touched_add_job(struct store_touched *t, int64_t job_id);
void touched_add_accelerator(struct store_touched *t, const char *name);
void touched_merge(struct store_touched *t, const struct store_touched *more);
bool touched_is_empty(const struct store_touched *t);

/* The commits, pull requests and accelerators of these changes and jobs. */
struct name_touched {
	struct store_query q;
	struct store_touched touched;
	/* out; name_touched_release() */
	char **shas;         /* heads; NULL-terminated, never NULL */
	char **accelerators; /* of the jobs, and those touched themselves; likewise */
	int64_t *numbers;    /* pull requests whose head is one of the changes */
	size_t n_numbers;
};
int store_name_touched(struct store *s, struct name_touched *q) MUST_CHECK;
void name_touched_release(struct name_touched *q);
