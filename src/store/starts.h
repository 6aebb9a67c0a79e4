/* Dispatches that begin together. Those that share a repository share one id and one request, because the vendor's
 * concurrency group lets the later request cancel the earlier one. So the request lists every accelerator that is to run
 * there now, and never a held one.
 *
 * Thread: all functions run inside a writer's transaction. */
#pragma once

#include "store/dispatches.h"
#include "store/outbox.h"

struct start {
	struct stored_dispatch row;  /* the new row; starts_run() chooses its id */
	struct stored_dispatch last; /* its runner's newest round so far, when has_last */
	bool has_last;
};

struct starts {
	struct start *at;
	size_t n;
	struct outbox_offer *offer; /* for the requests; NULL: none */
};

/* Takes over the row's strings and copies `last`, which may be NULL. */
void starts_add(struct starts *s, struct stored_dispatch row, const struct stored_dispatch *last);
/* Writes the rows and requests, and ends the dispatches that they replace. */
void starts_run(struct txn *d, struct starts *s, int64_t now_ms);
void starts_release(struct starts *s);

/* Runners that test only the newest push in each interval (triggers.push.every). The first push after a quiet time goes
 * at once. Then the newest push goes at most once an interval and supersedes the one that still waits. The waiting one
 * is a dispatch in state queued with not_before_ms, so it survives a restart. */
struct push_slot {
	const char *repository_key, *ref, *head_sha;
	int64_t every_ms, now_ms;
};
/* Finds the time from which the dispatch may go (row->not_before_ms), and supersedes the dispatch that waited for this
 * slot until now. False: a newer push of the branch has the slot, so this one does not run. */
bool starts_occupy_push_slot(struct txn *d, struct stored_dispatch *row, const struct push_slot *slot);
