/* One claimed outbox row in hand, whatever its kind: what it is, and the ways in which it ends.
 * A kind embeds it as its first part; everything that is begun with it ends in one of the
 * functions below, and the row is given back exactly once. Private to publish/. */
#ifndef PUBLISH_CLAIMED_H
#define PUBLISH_CLAIMED_H

#include "publish/pacing.h"
#include "publish/publish.h"
#include "store/outbox.h"

struct claimed {
	struct publisher *p;
	struct claimed *next;
	struct config *config; /* as it was when the row was claimed */
	struct outbox_row row;
	int64_t first_mono_ms; /* when it was first due: the wall clock may jump meanwhile */
	struct timer *timer;
	struct github_call *on_wire; /* what claimed_cancel_all() ends; NULL: nothing */
	struct outbox_done done;
	int64_t again_ms;   /* wall; something may be known by then that was not now; 0: nothing */
	bool is_uncertain;  /* something may have reached GitHub that was not recorded */
	bool was_uncertain; /* the same before the call that was begun last */
	const char *events; /* static: what the log calls it, "comment" */
	/* Frees what embeds it, with all that is the kind's own. */
	void (*release)(struct claimed *c);
};

/* Takes the row over (and zeroes it). False when the publisher is closing: the row is given back
 * then, and nothing is to be begun. */
bool claimed_start(struct claimed *c, struct publisher *p, struct outbox_row *row,
    const char *events, void (*release)(struct claimed *c));
/* Makes one of the kind's calls ready to be started, with `owner` as its owner. False when the
 * publisher is past waiting for GitHub: the row is given back then. */
bool claimed_begin_call(struct claimed *c, struct github_call *call,
    void (*done)(struct github_call *call), void *owner);
/* Whether a content write of this class may be handed to github/ now (publish/pacing.h); it has been
 * counted then. False: the row is given back until its turn comes. */
bool claimed_may_write(struct claimed *c, enum write_class class);
/* Ends what is on the wire; nothing more is sent. */
void claimed_cancel_all(struct publisher *p);

/* ---- every path ends in one of these; what embeds it is gone some time after ---- */
/* `error` is borrowed until the row is given back: it lies in what embeds it. */
void claimed_give_back(
    struct claimed *c, enum outbox_result result, int64_t next_ms, const char *error);
/* The store has no room for us now. */
void claimed_give_back_soon(struct claimed *c);
void claimed_retry(struct claimed *c, const struct error *why, int64_t retry_after_ms);
void claimed_fail(struct claimed *c, const struct github_result *result);

#endif
