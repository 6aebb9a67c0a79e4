/* The check runs that Outpost made: what was last written into each. The wish to write is an outbox
 * row of kind CHECKS, one a PR, which every wish for its comment raises too (store/requests.h). */
#ifndef STORE_CHECK_RUNS_H
#define STORE_CHECK_RUNS_H

#include "base/hash.h"
#include "store/store.h"

struct stored_check {
	char *head_sha, *name;
	char *accelerator; /* "": the verdict's */
	int64_t check_id;
	int64_t job_id;                /* 0: the verdict's */
	uint8_t digest[SHA256_BYTES];  /* of what was written */
	int n_annotations;             /* that it bears: GitHub adds to them and takes none away */
	bool is_completed, is_of_head; /* of the PR's present head */
};
/* Those of the PR's present head, and of its older heads those that are not completed. */
struct list_checks {
	struct store_query q;
	const char *repository;
	int64_t number;
	struct stored_check *list; /* out; list_checks_release() */
	size_t n;
	/* PRs with one head share its check runs: all their labels (NULL-terminated), and the
	 * number under which all of them write, the lowest that is open. 0: no such PR. */
	char **labels;
	int64_t named_number;
};
int store_list_checks(struct store *s, struct list_checks *q) MUST_CHECK;
void list_checks_release(struct list_checks *q);

struct put_check {
	struct store_op op;
	const char *repository, *head_sha, *name, *accelerator;
	int64_t check_id, job_id, now_ms;
	uint8_t digest[SHA256_BYTES];
	int n_annotations;
	bool is_completed;
};
int store_put_check(struct store *s, struct put_check *op) MUST_CHECK;

/* It is about to be written over: until store_put_check() says what it bears, its digest is of
 * nothing. Without it, an answer that got lost would leave on record what it said before. */
struct doubt_check {
	struct store_op op;
	const char *repository, *head_sha, *name;
};
int store_doubt_check(struct store *s, struct doubt_check *op) MUST_CHECK;

#endif
