/* Changes and pull requests: which head a pull request has, which heads it had, and the state of the changes that
 * follows from this.
 *
 * Thread: functions with a connection run on its thread (db/db.h). store_*()
 * functions run on the loop. A query or an operation owns its results until its release function. */
#pragma once

#include "db/db.h"
#include "db/store.h"
#include "model/event.h"
#include "model/record.h"
#include "model/states.h"
#include "store/dispatches.h"

struct change_facts {
	enum change_kind kind;
	const char *repository, *head_sha;
	const char *ref, *base_ref, *base_sha, *title, *author; /* NULL: keep the stored value */
};
/* The id of the change; 0: it is not known. Any thread. */
int64_t change_find(const struct view *d, enum change_kind kind, const char *repository, const char *head_sha);
/* The same; inserts the change, open, when it is new. It does not overwrite the facts of a known pull request's head:
 * change_settle() reads these from the lead. */
int64_t change_put(struct txn *d, const struct change_facts *f, int64_t now_ms);
/* Notes activity, which postpones retention. */
void change_touch(struct txn *d, int64_t change_id, int64_t now_ms);

struct stored_pull {
	bool is_known, is_open;
	int64_t change_id;  /* its head */
	int64_t updated_ms; /* GitHub's */
};
struct stored_pull pull_find(const struct view *d, const char *repository, int64_t number);
/* Writes the pull request with its head. A head that is new to it joins its history as of since_ms. */
void pull_put(struct txn *d, const char *repository, const struct pull_info *pull, int64_t change_id, int64_t since_ms);

/* Several open pull requests may have one head. The lead decides the base and may begin a round. A member's pull request
 * leads before others, then the one that had this head first. So opening another pull request with the same head gives
 * no power over the first. 0: no pull request with this head is open. */
int64_t change_lead(const struct view *d, int64_t change_id);
/* The lead; when none is open, any pull request with this head; 0: there is none. */
int64_t change_pull(const struct view *d, int64_t change_id);
/* An open pull request other than `number` with this head; 0: there is none. */
int64_t change_other_pull(const struct view *d, int64_t change_id, int64_t number);

/* Derives the state of a change (open, closed or superseded) from the pull requests that have or had it as their head.
 * While it is open, its base, title and author are the lead's. When it is no longer open, its unfinished dispatches end. */
void change_settle(struct txn *d, int64_t change_id, int64_t now_ms);

/* The current dispatches and the held rounds that wait beside them; the newest of each runner first. */
struct dispatch_list change_dispatches(const struct view *d, int64_t change_id);

/* ---- operations and queries ---- */

/* The files of a pull request's head, as GitHub compares it with the base. */
struct put_files {
	struct store_op op;
	const char *repository, *head_sha;
	/* The pull request whose files these are. They are dropped when another one leads this head. 0: always keep them. */
	int64_t number;
	const char *const *files; /* NULL-terminated */
	int64_t now_ms;
};
int store_put_files(struct store *s, struct put_files *op) MUST_CHECK;
struct get_files {
	struct store_query q;
	const char *repository, *head_sha;
	char **files; /* out, NULL-terminated; free each and the array; NULL: not cached */
};
int store_get_files(struct store *s, struct get_files *q) MUST_CHECK;

/* The merge base of a change, from GitHub. A comment that exists is updated with it. */
struct put_merge_base {
	struct store_op op;
	int64_t change_id;
	const char *sha;
	/* The base that GitHub compared with; ERR_CONFLICT when the change has another base by now. NULL: any. */
	const char *base;
	int64_t commit_ms; /* 0: unknown */
	int64_t now_ms;
};
int store_put_merge_base(struct store *s, struct put_merge_base *op) MUST_CHECK;

/* The pull requests that are on record, for the reconciler. */
#define KNOWN_PULL_RECORD(F, S)                                                                                        \
	F(S, INT, number, NULL, "p.number", "")                                                                        \
	F(S, TEXT, head_sha, NULL, "c.head_sha", "")                                                                   \
	F(S, BOOL, is_open, NULL, "p.state = 'open'", "")                                                              \
	F(S, TIME, updated_ms, NULL, "p.updated_ms", "")
RECORD_STRUCT(known_pull, KNOWN_PULL_RECORD);
struct list_pulls {
	struct store_query q;
	const char *repository;
	bool only_open;
	struct known_pull *list; /* out, by number; list_pulls_release() */
	size_t n;
};
int store_list_pulls(struct store *s, struct list_pulls *q) MUST_CHECK;
void list_pulls_release(struct list_pulls *q);
struct has_push {
	struct store_query q;
	const char *repository, *head_sha;
	bool is_known; /* out */
};
int store_has_push(struct store *s, struct has_push *q) MUST_CHECK;
/* Records a pull request or a branch's tip without testing it: for the reconciler's first pass over an empty database. */
struct note_head {
	struct store_op op;
	const char *repository, *ref, *head_sha; /* ref: a push; NULL: the pull request below */
	const struct pull_info *pull;
	int64_t now_ms;
};
int store_note_head(struct store *s, struct note_head *op) MUST_CHECK;

#define TESTED_CHANGE_RECORD(F, S)                                                                                     \
	F(S, BOOL, is_pull, NULL, "kind = 'pull_request'", "Else a push.")                                             \
	F(S, TEXT, head_sha, NULL, "head_sha", "NULL: the commit is not known.")                                       \
	F(S, TEXT, ref, NULL, "ref", "Of a push.")                                                                     \
	F(S, TEXT, title, NULL, "title", "Of a push.")                                                                 \
	F(S, TEXT, author, NULL, "author", "Of a push.")
#define TESTED_PULL_RECORD(F, S)                                                                                       \
	F(S, INT, pull_number, NULL, "number", "By its SHA, the lead.")                                                \
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
