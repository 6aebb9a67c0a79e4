/* Changes and pull requests as rows: which head a PR has, which heads it had, and what that
 * makes of the changes. */
#ifndef STORE_STORED_CHANGE_H
#define STORE_STORED_CHANGE_H

#include "model/event.h"
#include "model/states.h"
#include "store/db.h"
#include "store/stored_dispatch.h"

struct change_facts {
	enum change_kind kind;
	const char *repository, *head_sha;
	const char *ref, *base_ref, *base_sha, *title, *author; /* may be NULL: left as known */
};
/* The id of the change; 0 when it is not known. */
int64_t change_find(
    struct db *d, enum change_kind kind, const char *repository, const char *head_sha);
/* The same, made (open) when it is new. What is known of a PR's head is not written over here. */
int64_t change_put(struct db *d, const struct change_facts *f, int64_t now_ms);
void change_touch(struct db *d, int64_t change_id, int64_t now_ms);

struct stored_pull {
	bool is_known, is_open;
	int64_t change_id;  /* its head */
	int64_t updated_ms; /* GitHub's */
};
struct stored_pull pull_find(struct db *d, const char *repository, int64_t number);
/* Writes what the PR looks like now, its head with it. A head that is new to the PR
 * goes to its history as of since_ms. */
void pull_put(struct db *d, const char *repository, const struct pull_info *pull, int64_t change_id,
    int64_t since_ms);

/* Several open PRs may have one head. The one that leads says what the change is compared with and
 * may begin a round: a member's before anybody else's, then the one that had this head first. So
 * who opens another PR with the same head gets no power over the first. 0: none is open. */
int64_t change_lead(struct db *d, int64_t change_id);
/* The same, or where none is open any PR that has this head; 0: there is none. */
int64_t change_pull(struct db *d, int64_t change_id);
/* An open PR other than `number` that has this head; 0: there is none. */
int64_t change_other_pull(struct db *d, int64_t change_id, int64_t number);

/* What the PRs that have, or had, this change as their head make of it: open, closed or
 * superseded; while it is open, its base, title and author are those of the PR that leads. When it
 * is no longer open its unfinished dispatches end. */
void change_settle(struct db *d, int64_t change_id, int64_t now_ms);

/* The current ones, and the held rounds that wait beside one; the newest of a runner first. */
struct dispatch_list change_dispatches(struct db *d, int64_t change_id);

#endif
