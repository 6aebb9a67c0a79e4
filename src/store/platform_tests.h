/* Which versions of PyTorch were tested on which systems, and whether the must-pass tests were green:
 * what the platforms page shows beside a vendor's own words. The first group is called inside a
 * writer's transaction. */
#ifndef STORE_PLATFORM_TESTS_H
#define STORE_PLATFORM_TESTS_H

#include "model/platform_test.h"
#include "store/db.h"
#include "store/standings.h"
#include "store/store.h"

/* Jobs or cells of it have changed. Each (version, system) that its current jobs report is judged:
 * by the jobs that report it and those that say nothing of version or system. What has failed counts
 * at once, what is missing or green once nobody is at work any more. An older change moves nothing;
 * the same one again corrects what was there, and of what it says no more the change before it counts. Pull requests and L1 leave nothing. */
void platform_tests_note(struct db *d, int64_t change_id, const char *accelerator);
/* Its must-pass tests are others now: what is on record is judged again, as far as the changes are
 * still there. */
void platform_tests_changed(struct db *d, const char *accelerator);
/* What earlier versions of this program recorded, once. Call it when the registry is mirrored. */
void platform_tests_fill(struct db *d);
/* The change goes; what was learnt from it stays. */
void platform_tests_forget(struct db *d, int64_t change_id);

struct get_platform_tests {
	struct store_query q;
	const char *only; /* in: this accelerator; NULL: all */
	/* in: the accelerators whose standing is wanted */
	const char *const *names;
	size_t n_names;
	int64_t now_ms;             /* in */
	struct platform_test *list; /* out, by accelerator, newest first; …_release() */
	size_t n;
	struct standing *standings; /* out: one for each name */
};
int store_get_platform_tests(struct store *s, struct get_platform_tests *q) MUST_CHECK;
void get_platform_tests_release(struct get_platform_tests *q);

#endif
