/* One claimed row on its way: comment.c reads and decides, learn.c asks GitHub what the
 * database does not know, comment_write.c writes. Private to publish/. */
#ifndef PUBLISH_WRITING_H
#define PUBLISH_WRITING_H

#include "publish/publish_internal.h"

struct writing {
	struct publisher *p;
	struct writing *next;
	struct config *config;
	struct outbox_row row;
	struct timer *timer;
	struct github_call *on_wire; /* what writings_cancel() ends; NULL: nothing */
	struct get_change change;
	struct get_comment known;
	struct github_call call;
	struct github_compare compare;
	struct github_comment_search search;
	struct put_merge_base put_base;
	struct put_comment put;
	struct outbox_done done;
	struct comment text;
	int64_t comment_id; /* 0: not known */
	int64_t again_ms;   /* wall; something may be known by then that was not now; 0: nothing */
	bool is_uncertain;  /* a text may have reached GitHub that was not recorded */
	bool has_red;
	bool has_searched; /* GitHub was asked whether ours is there */
};

/* Asks for what is missing, then writing_decide(), whatever came of it. */
void writing_learn(struct writing *w);
void writing_decide(struct writing *w);
/* Writes w->text to GitHub and records it. */
void writing_write(struct writing *w);

/* Makes one of w's calls ready to be started. False when the publisher is past waiting for
 * GitHub: the row is given back then. */
bool writing_begin_call(
    struct writing *w, struct github_call *call, void (*done)(struct github_call *call));

/* ---- every path ends in one of these; w is gone some time after ---- */
/* `error` is borrowed until the row is given back: it lies in one of w's calls. */
void writing_give_back(
    struct writing *w, enum outbox_result result, int64_t next_ms, const char *error);
void writing_retry(struct writing *w, const struct error *why, int64_t retry_after_ms);
void writing_fail(struct writing *w, const struct github_result *result);

#endif
