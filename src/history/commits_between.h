/* The commits between the last good and the first bad periodic run of a test: from the pushes on record
 * (store/branch_commits.h) or, if some are missing, from GitHub, which evidence/ asks once.
 *
 * Thread: functions with a connection run on its thread (db/db.h); store_*() functions run on the loop. */
#pragma once

#include "db/db.h"
#include "db/store.h"
#include "model/record.h"

enum {
	COMMITS_SHOWN_MAX = 10,
	COMMITS_ASKED_BYTES_MAX = 16 * 1024, /* of the JSON that is kept of an answer */
};

/* Records a question to GitHub about the runs of two days, unless the pushes on record answer it or it was asked before.
 * Notifies STORE_ATTRIBUTION. */
void commits_between_want(struct txn *d, const char *accelerator, int64_t good_day, int64_t bad_day, int64_t now_ms);
/* Deletes questions that were asked before before_ms, at most `limit`. True: there may be more. */
bool commits_between_drop(struct txn *d, int64_t before_ms, int limit);

/* ---- reading ---- */

#define KNOWN_COMMIT_RECORD(F, S)                                                                                      \
	F(S, TEXT, sha, NULL, "sha", "")                                                                               \
	F(S, TEXT, title, NULL, "title", "May be NULL.")                                                               \
	F(S, TEXT, author, NULL, "author", "May be NULL.")
struct known_commit {
	RECORD_MEMBERS(KNOWN_COMMIT_RECORD)
};
struct known_commits {
	int64_t n;                                   /* how many there are; -1: not known */
	struct known_commit list[COMMITS_SHOWN_MAX]; /* the newest, newest first */
	size_t n_listed;
};
/* The caller owns the texts of the list. */
void commits_between_read(const struct view *d, const char *repository_key, const char *good_sha, const char *bad_sha,
    struct known_commits *ret);

/* ---- for evidence/ ---- */

#define CLAIM_COMPARISON_RECORD(F, S)                                                                                  \
	F(S, TEXT, repository, NULL, "repository", "")                                                                 \
	F(S, TEXT, good_sha, NULL, "good_sha", "")                                                                     \
	F(S, TEXT, bad_sha, NULL, "bad_sha", "")                                                                       \
	F(S, INT, n_tries, NULL, "n_tries", "")                                                                        \
	F(S, TIME, next_ms, NULL, "next_ms", "Also with ERR_NOT_FOUND: when the next one is due; 0: there is none.")
/* The oldest due question; ERR_NOT_FOUND: none is due. */
struct claim_comparison {
	struct store_query q;
	int64_t now_ms;
	RECORD_MEMBERS(CLAIM_COMPARISON_RECORD) /* out; claim_comparison_release() */
};
int store_claim_comparison(struct store *s, struct claim_comparison *q) MUST_CHECK;
void claim_comparison_release(struct claim_comparison *q);

struct put_comparison {
	struct store_op op;
	const char *repository, *good_sha, *bad_sha;
	int64_t n;           /* -1: not known */
	const char *commits; /* JSON array of {"sha", "title", "author"}, newest first; or NULL */
	int64_t again_ms;    /* 0: this is the answer; else asked again then */
};
int store_put_comparison(struct store *s, struct put_comparison *op) MUST_CHECK;
