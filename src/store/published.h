/* The texts that Outpost published on GitHub: the one comment of each pull request, and the check runs of each head. The
 * requests to write them are outbox rows of the kinds COMMENT and CHECKS (store/requests.h). And until when GitHub takes none.
 *
 * Thread: loop. A query owns its results until its release function. */
#pragma once

#include "db/store.h"
#include "model/record.h"

struct get_comment {
	struct store_query q;
	const char *repository;
	int64_t number;
	bool is_known;      /* out: a row exists */
	int64_t comment_id; /* out; 0: not written yet, or not known */
	uint8_t body_hash[SHA256_BYTES];
	int64_t written_ms;
	int64_t change_id;    /* out: the head in its text; 0: not known */
	bool has_red_written; /* out: the last body showed a red cell */
};
int store_get_comment(struct store *s, struct get_comment *q) MUST_CHECK;

/* Nothing happens when the row belongs to another node by now, which may have written a newer text. */
struct put_comment {
	struct store_op op;
	int64_t outbox_id, epoch; /* of the claimed row */
	const char *repository;
	int64_t number, comment_id, change_id, written_ms;
	uint8_t body_hash[SHA256_BYTES];
	bool has_red_written;
};
int store_put_comment(struct store *s, struct put_comment *op) MUST_CHECK;

/* `check_run` as k, its change as c, and the pull request as p. */
#define STORED_CHECK_RECORD(F, S)                                                                                      \
	F(S, TEXT, head_sha, NULL, "k.head_sha", "")                                                                   \
	F(S, TEXT, name, NULL, "k.name", "")                                                                           \
	F(S, TEXT, accelerator, NULL, "k.accelerator", "Empty: the verdict's.")                                        \
	F(S, INT, check_id, NULL, "k.check_id", "")                                                                    \
	F(S, ID, job_id, NULL, "k.job_id", "0: the verdict's.")                                                        \
	F(S, DIGEST, digest, NULL, "k.digest", "Of the last text; zeros while that is not known.")                     \
	F(S, INT, n_annotations, NULL, "k.n_annotations", "On GitHub, which adds annotations and removes none.")       \
	F(S, BOOL, is_completed, NULL, "k.is_completed", "")                                                           \
	F(S, BOOL, is_of_head, NULL, "p.change_id = c.id", "Of the pull request's current head.")
RECORD_STRUCT(stored_check, STORED_CHECK_RECORD);
/* The check runs of the pull request's current head, and those of its older heads that are not completed. */
struct list_checks {
	struct store_query q;
	const char *repository;
	int64_t number;
	struct stored_check *list; /* out; list_checks_release() */
	size_t n;
	/* out: pull requests with one head share its check runs: all their labels (NULL-terminated), and the number under
	 * which all of them write, the lead's. 0: no such pull request. */
	char **labels;
	int64_t named_number;
};
int store_list_checks(struct store *s, struct list_checks *q) MUST_CHECK;
void list_checks_release(struct list_checks *q);

/* The same is true as for a comment. */
struct put_check {
	struct store_op op;
	int64_t outbox_id, epoch;
	const char *repository, *head_sha, *name, *accelerator;
	int64_t check_id, job_id, now_ms;
	uint8_t digest[SHA256_BYTES];
	int n_annotations;
	bool is_completed;
};
int store_put_check(struct store *s, struct put_check *op) MUST_CHECK;

/* The check run is about to be written: its digest matches no text until store_put_check() stores the new one. Otherwise
 * a lost answer would leave the digest of the old text on record. */
struct doubt_check {
	struct store_op op;
	const char *repository, *head_sha, *name;
};
int store_doubt_check(struct store *s, struct doubt_check *op) MUST_CHECK;

#define RERUN_TARGET_RECORD(F, S)                                                                                      \
	F(S, TEXT, accelerator, NULL, "x.accelerator", "")                                                             \
	F(S, TEXT, runner, NULL, "x.runner", "")                                                                       \
	F(S, TEXT, dispatch_id, NULL, "x.id", "")                                                                      \
	F(S, BOOL, is_github, NULL, "x.kind IN ('github', 'infra')", "Its run can be started again at `repository`.")  \
	F(S, TEXT, repository, NULL, "CASE WHEN x.kind IN ('github', 'infra') THEN x.target END", "NULL: it cannot.")  \
	F(S, TEXT, run_id, NULL, "CASE WHEN x.kind IN ('github', 'infra') THEN j.run_id END",                          \
	    "NULL: none was reported.")                                                                                \
	F(S, INT, run_attempt, NULL,                                                                                   \
	    "(SELECT MAX(a.run_attempt) FROM job a WHERE a.change_id = j.change_id AND a.dispatch_id = j.dispatch_id"  \
	    " AND a.run_id = j.run_id)",                                                                               \
	    "The newest one of the run. A retry of its failed jobs leaves the others with an earlier attempt.")
/* The runs that a Re-run of a check starts again. */
RECORD_STRUCT(rerun_target, RERUN_TARGET_RECORD);
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

/* Until when GitHub takes no request of an installation of the App (0: of the App itself), for the other nodes and the next start. */
#define GITHUB_LIMIT_RECORD(F, S)                                                                                      \
	F(S, INT, installation_id, NULL, "installation_id", "")                                                        \
	F(S, TIME, until_ms, NULL, "until_ms", "")                                                                     \
	F(S, INT, remaining, NULL, "remaining", "Of GitHub's hourly quota; -1: not known.")                            \
	F(S, TIME, reset_ms, NULL, "reset_ms", "When the quota is full again, by GitHub's clock; 0: not known.")
RECORD_STRUCT(github_limit, GITHUB_LIMIT_RECORD);
/* Writes the limits of this node, and reads those of all nodes. Of two limits of one installation the longer one counts. */
struct share_limits {
	struct store_op op;
	const struct github_limit *own; /* borrowed until done */
	size_t n_own;
	int64_t now_ms;
	struct github_limit *list; /* out; RECORDS_RELEASE() */
	size_t n;
};
int store_share_limits(struct store *s, struct share_limits *op) MUST_CHECK;
