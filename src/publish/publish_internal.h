/* What the parts of publish/ share. Thread: loop, everything. */
#ifndef PUBLISH_PUBLISH_INTERNAL_H
#define PUBLISH_PUBLISH_INTERNAL_H

#include "publish/debounce.h"
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
	BASELESS_MAX = 64,
};

/* A merge base that GitHub did not give: not asked for again before until_mono_ms. */
struct baseless {
	int64_t change_id, until_mono_ms;
	int n_tries;
};

struct publisher {
	struct publish_deps deps;
	struct config *config;
	struct debounce debounce;
	struct baseless baseless[BASELESS_MAX];
	size_t next_baseless;
	struct publish_counters counters;

	struct claim_outbox claim;
	bool is_claiming;
	bool wants_claim;      /* something became due since the claim began */
	bool is_rung;          /* wake runs within a moment */
	struct timer *wake;    /* the next row is due */
	struct timer *closing; /* the moment that writes in hand are given */
	struct writing *writings;
	int n_previews;

	bool is_closing, is_cancelling, is_closed;
	void (*on_closed)(void *owner);
	void *owner;
};

/* Looks for rows that are due, or ends the closing when nothing is left in hand. */
void publisher_pump(struct publisher *p);

/* ---- comment.c: one claimed row, from the view to the written comment ---- */
struct writing;
/* Takes the row over (and zeroes it). Ends with the row given back and publisher_pump(). */
void writing_start(struct publisher *p, struct outbox_row *row);
/* Ends what is on the wire; nothing more is sent. */
void writings_cancel(struct publisher *p);

/* What a comment is rendered with; strings are borrowed from the config, the github and
 * github_url (free() it after the rendering). */
void publisher_comment_options(const struct publisher *p, const struct config *c,
    struct comment_options *ret, char **ret_github_url);

#endif
