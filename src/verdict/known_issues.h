/* Known issues: a red test that matches one is KNOWN until the issue is removed or expires.
 *
 * Thread: loop. Ownership: a list owns its texts until its release function; operations borrow theirs until they are done. */
#pragma once

#include "db/db.h"
#include "db/store.h"
#include "model/record.h"

#define KNOWN_ISSUE_RECORD(F, S)                                                                                       \
	F(S, ID, id, NULL, "id", "")                                                                                   \
	F(S, TEXT, pattern, NULL, "pattern", "A glob over SUITE/TEST: see glob_matches().")                            \
	F(S, TEXT, accelerator, NULL, "accelerator", "NULL: all.")                                                     \
	F(S, TEXT, url, NULL, "url", "https")                                                                          \
	F(S, TIME, until_ms, NULL, "until_ms", "0: until it is removed.")                                              \
	F(S, TIME, created_ms, NULL, "created_ms", "")                                                                 \
	F(S, TIME, last_match_ms, NULL, "last_match_ms", "0: never.")                                                  \
	F(S, INT, n_matches, NULL, "n_matches", "Changes with a cell that it explained.")
struct known_issue {
	RECORD_MEMBERS(KNOWN_ISSUE_RECORD)
	/* It explains a red cell of an open change, or did so in the last KNOWN_RECENT_MS. Set by store_list_known()
	 * only. */
	bool is_used;
};
RECORD_DECLARE(known_issue);
#define KNOWN_RECENT_MS (INT64_C(7) * 24 * 3600 * 1000)

/* Each of these operations makes changes due for attribution: open changes, and pushes of the last KNOWN_RECENT_MS, with a
 * red cell that the issue matches; the newest KNOWN_DUE_MAX of them. */
enum { KNOWN_DUE_MAX = 2000 };
struct add_known {
	struct store_op op;
	const char *pattern, *accelerator, *url;
	int64_t until_ms, now_ms;
	int64_t id; /* out */
};
int store_add_known(struct store *s, struct add_known *op) MUST_CHECK;
struct remove_known { /* ERR_NOT_FOUND */
	struct store_op op;
	int64_t id, now_ms;
};
int store_remove_known(struct store *s, struct remove_known *op) MUST_CHECK;
/* Ends the issues that expired since the last call. */
struct expire_known {
	struct store_op op;
	int64_t now_ms;
	int n_expired;   /* out */
	int64_t next_ms; /* out: when the next one expires; 0: none will */
};
int store_expire_known(struct store *s, struct expire_known *op) MUST_CHECK;
struct list_known {
	struct store_query q;
	int64_t now_ms;
	struct known_issue *list; /* out, by id; list_known_release(); expired ones too */
	size_t n;
};
int store_list_known(struct store *s, struct list_known *q) MUST_CHECK;
void list_known_release(struct list_known *q);
