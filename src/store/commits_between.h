/* The commits between a last good and a first bad periodic run: from the pushes on record
 * (store/branch_commits.h), and where those lack some, from GitHub, asked once (evidence/). */
#ifndef STORE_COMMITS_BETWEEN_H
#define STORE_COMMITS_BETWEEN_H

#include "store/db.h"
#include "store/store.h"

enum {
	COMMITS_SHOWN_MAX = 10,
	COMMITS_ASKED_BYTES_MAX = 16 * 1024, /* of the JSON that is kept of an answer */
};

/* ---- inside a writer's transaction ---- */

/* Of the runs of two days: notes that GitHub is to be asked, unless the pushes say it or it was
 * asked. Tells STORE_ATTRIBUTION. */
void commits_between_want(
    struct db *d, const char *accelerator, int64_t good_day, int64_t bad_day, int64_t now_ms);
/* Those asked before before_ms go, a piece at a time. True: there may be more. */
bool commits_between_drop(struct db *d, int64_t before_ms, int limit);

/* ---- a reader's or a writer's ---- */

struct known_commit {
	char *sha, *title, *author; /* the last two may be NULL */
};
struct known_commits {
	int64_t n;                                   /* how many there are; -1: not known */
	struct known_commit list[COMMITS_SHOWN_MAX]; /* the newest, newest first */
	size_t n_listed;
};
/* known_commits_release() */
void commits_between_read(struct db *d, const char *repository_key, const char *good_sha,
    const char *bad_sha, struct known_commits *ret);
void known_commits_release(struct known_commits *k);

/* ---- for evidence/ ---- */

/* The oldest due question; ERR_NOT_FOUND: none is due. */
struct claim_comparison {
	struct store_query q;
	int64_t now_ms;
	/* out; claim_comparison_release() */
	char *repository, *good_sha, *bad_sha;
	int n_tries;
	int64_t next_ms; /* out, also with ERR_NOT_FOUND: when the next one is due; 0: none */
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

#endif
