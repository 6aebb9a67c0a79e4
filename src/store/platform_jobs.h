/* The current jobs of a change on an accelerator by what they say they ran on, and how must-pass tests
 * came out there. Private to store/platform_*.c. */
#ifndef STORE_PLATFORM_JOBS_H
#define STORE_PLATFORM_JOBS_H

#include "store/db.h"

enum { PLATFORM_GROUPS_MAX = 16 };

/* A version of PyTorch on a system that the jobs of one change report. */
struct platform_group {
	const char *torch, *os;        /* of a job in `jobs`; os "": nobody says */
	int64_t job_id, at_ms;         /* the newest of its jobs */
	const char *extension_version; /* or NULL */
	int64_t n_passed, n_failed, n_missing;
};

struct platform_jobs {
	int64_t change_id;
	const char *accelerator; /* borrowed */
	struct platform_job {
		int64_t id, at_ms;
		char *torch, *os, *extension_version; /* NULL: not said */
	} * jobs;
	size_t n_jobs;
	struct platform_group groups[PLATFORM_GROUPS_MAX];
	size_t n_groups;
};

/* Completed current jobs, grouped. must_pass: a JSON array of "SUITE/TEST". platform_jobs_release(). */
void platform_jobs_read(struct db *d, int64_t change_id, const char *accelerator,
    const char *must_pass, struct platform_jobs *ret);
void platform_jobs_release(struct platform_jobs *p);

#endif
