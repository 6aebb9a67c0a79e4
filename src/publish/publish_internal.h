/* What the parts of publish/ share. Thread: loop, everything. */
#ifndef PUBLISH_PUBLISH_INTERNAL_H
#define PUBLISH_PUBLISH_INTERNAL_H

#include "loop/bell.h"
#include "publish/claimed.h"
#include "publish/debounce.h"
#include "publish/pacing.h"
#include "publish/publish.h"
#include "report/comment.h"
#include "store/changes.h"
#include "store/comments.h"
#include "store/outbox.h"

enum {
	/* Each may hold a whole view for a moment, and GitHub takes one content write a second. */
	WRITINGS_MAX = 4,
	/* More cells than a comment can show; red ones are read first. */
	VERDICTS_MAX = 8000,
	ANSWERS_MAX = 2,
	CHECKINGS_MAX = 2, /* each may write for many seconds */
};

struct publisher {
	struct publish_deps deps;
	struct config *config;
	struct debounce debounce;
	struct pacing pacing;
	struct publish_counters counters;
	int64_t checks_refused_until_mono_ms; /* the App lacks the permission, as GitHub says */

	struct bell *bell; /* its looks are claims */
	struct claim_outbox claim;
	size_t effect;           /* which kind is being claimed, publisher.c */
	struct timer *closing;   /* the moment that writes in hand are given */
	struct claimed *in_hand; /* counters.n_writing of them */
	int n_previews;

	bool is_closing, is_cancelling, is_closed;
	void (*on_closed)(void *owner);
	void *owner;
};

/* Looks for rows that are due, or ends the closing when nothing is left in hand. */
void publisher_pump(struct publisher *p);

/* Each takes the row over (and zeroes it), and ends with it given back and publisher_pump(). */
void writing_start(struct publisher *p, struct outbox_row *row);   /* COMMENT: comment.c */
void checks_start(struct publisher *p, struct outbox_row *row);    /* CHECKS: checks.c */
void red_issue_start(struct publisher *p, struct outbox_row *row); /* RED_ISSUE: red_issue.c */
void answer_start(struct publisher *p, struct outbox_row *row);    /* REACTION, REPLY: answer.c */

/* What a comment is rendered with; strings are borrowed from the config, the github and
 * github_url (free() it after the rendering). */
void publisher_comment_options(const struct publisher *p, const struct config *c,
    struct comment_options *ret, char **ret_github_url);

#endif
