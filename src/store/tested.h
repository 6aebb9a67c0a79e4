/* Queries before something is tested again: the change that a person names, and the runs that a check stands for.
 *
 * Thread: loop. The caller owns the query until done; strings are borrowed until then. */
#ifndef STORE_TESTED_H
#define STORE_TESTED_H

#include "db/store.h"
#include "model/record.h"

#define TESTED_CHANGE_RECORD(F, S)                                                                 \
	F(S, BOOL, is_pull, NULL, "kind = 'pull_request'", "Else a push.")                         \
	F(S, TEXT, head_sha, NULL, "head_sha", "NULL: the commit is not known.")                   \
	F(S, TEXT, ref, NULL, "ref", "Of a push.")                                                 \
	F(S, TEXT, title, NULL, "title", "Of a push.")                                             \
	F(S, TEXT, author, NULL, "author", "Of a push.")
#define TESTED_PULL_RECORD(F, S)                                                                   \
	F(S, INT, pull_number, NULL, "number", "By its SHA, the lead.")                            \
	F(S, BOOL, is_open, NULL, "state = 'open'", "An open pull request has it as its head.")
/* A change that may be tested again. */
struct find_tested {
	struct store_query q;
	void *owner; /* the caller's own */
	const char *repository;
	int64_t number;  /* > 0: this pull request's head */
	const char *sha; /* else this commit, or a prefix of it: 7 digits at least */
	/* out; find_tested_release() */
	RECORD_MEMBERS(TESTED_CHANGE_RECORD)
	RECORD_MEMBERS(TESTED_PULL_RECORD) /* of a pull request */
	char *delivery_guid;               /* of the body that was sent last; NULL: none */
};
/* ERR_NOT_FOUND: the change is not known. ERR_CONFLICT: the prefix fits several commits. */
int store_find_tested(struct store *s, struct find_tested *q) MUST_CHECK;
void find_tested_release(struct find_tested *q);

#define RERUN_TARGET_RECORD(F, S)                                                                  \
	F(S, TEXT, accelerator, NULL, "x.accelerator", "")                                         \
	F(S, TEXT, runner, NULL, "x.runner", "")                                                   \
	F(S, TEXT, dispatch_id, NULL, "x.id", "")                                                  \
	F(S, BOOL, is_github, NULL, "x.kind IN ('github', 'infra')",                               \
	    "Its run can be started again at `repository`.")                                       \
	F(S, TEXT, repository, NULL, "CASE WHEN x.kind IN ('github', 'infra') THEN x.target END",  \
	    "NULL: it cannot.")                                                                    \
	F(S, TEXT, run_id, NULL, "CASE WHEN x.kind IN ('github', 'infra') THEN j.run_id END",      \
	    "NULL: none was reported.")                                                            \
	F(S, INT, run_attempt, NULL, "j.run_attempt", "")
/* The runs that a Re-run of a check starts again. */
struct rerun_target {
	RECORD_MEMBERS(RERUN_TARGET_RECORD)
};
struct find_rerun {
	struct store_query q;
	void *owner; /* the caller's own */
	const char *repository, *head_sha;
	const char *check_name;    /* NULL: all of this head */
	const char *run_id;        /* where no check of that name was written; "" none */
	int64_t pull_number;       /* out: the lead of that head; 0: no open pull request has it */
	struct rerun_target *list; /* out, each run once; find_rerun_release() */
	size_t n;
};
int store_find_rerun(struct store *s, struct find_rerun *q) MUST_CHECK;
void find_rerun_release(struct find_rerun *q);

#endif
