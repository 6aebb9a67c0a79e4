/* What the parts of evidence/ share. Thread: loop, everything. */
#ifndef EVIDENCE_EVIDENCE_INTERNAL_H
#define EVIDENCE_EVIDENCE_INTERNAL_H

#include "evidence/evidence.h"
#include "loop/bell.h"
#include "store/attribution.h"
#include "store/changes.h"

enum {
	IN_HAND_MAX = 4,   /* each is a request or two, and GitHub's budget is for all */
	REFUSED_MAX = 256, /* heads of whose merge base GitHub's no is remembered */
};

/* GitHub will not say the merge base of this head: it is not asked again, until the next start or
 * another base. */
struct refused {
	int64_t change_id;
	char *base_ref;
};

struct evidence {
	struct evidence_deps deps;
	struct config *config;
	struct evidence_counters counters;

	struct bell *bell; /* its looks are claims */
	struct claim_due_changes claim;
	/* What ended while a claim was under way: it may still have seen it as due. */
	int64_t ended[IN_HAND_MAX];
	int n_ended;
	struct gathering *first; /* in hand, counters.n_in_hand of them */
	struct refused refused[REFUSED_MAX];
	size_t next_refused;

	bool is_closing, is_closed;
	void (*on_closed)(void *owner);
	void *owner;
};

/* One change: what GitHub says of it, then its cells. */
struct gathering {
	struct gathering *next;
	struct evidence *evidence;
	struct due_change due;       /* owned */
	struct github_call *on_wire; /* NULL: nothing */
	struct error why;            /* of the last request that failed */
	int64_t retry_after_ms;
	bool has_failed, has_learnt;
	union { /* one at a time is in hand */
		struct github_compare compare;
		struct github_pull_files files;
	} ask;
	struct put_merge_base put_base;
	struct put_files put_files;
	char **files; /* as they are stored */
	struct attribute_change attribute;
};

/* Takes the strings of `due`. Ends with evidence_gathered(), maybe inside this call. */
void gathering_start(struct evidence *e, struct due_change *due);
/* Ends soon, without a word about the change: it stays due. */
void gathering_cancel(struct gathering *g);
void gathering_free(struct gathering *g);
/* It ended; whether the store could not take it for the moment. Frees it. */
void evidence_gathered(struct evidence *e, struct gathering *g, bool is_store_busy);

#endif
