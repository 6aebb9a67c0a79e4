/* What the parts of publish/ share. Thread: loop, everything. */
#ifndef PUBLISH_PUBLISH_INTERNAL_H
#define PUBLISH_PUBLISH_INTERNAL_H

#include "outbox/engine.h"
#include "publish/publish.h"
#include "store/changes.h"
#include "store/published.h"
#include "text/comment.h"

/* More cells than a comment can show; red ones are read first. */
enum { VERDICTS_MAX = 8000 };

struct publisher {
	struct publish_deps deps;
	struct config *config;
	struct engine *engine;
	struct debounce debounce;
	struct publish_counters counters;
	int64_t checks_refused_until_mono_ms; /* the App lacks the permission, as GitHub says */
	int n_previews;
	bool is_engine_closed, is_closed;
	void (*on_closed)(void *owner);
	void *owner;
};

/* The lanes of the publisher's engine, the urgent first: slow rows of one kind do not delay those of another. */
enum { COMMENT_LANE, CHECKS_LANE, REACTION_LANE, REPLY_LANE, RED_ISSUE_LANE, N_PUBLISH_LANES };
extern const struct effect_kind comment_kind;              /* comment.c */
extern const struct effect_kind checks_kind;               /* checks.c */
extern const struct effect_kind reaction_kind, reply_kind; /* answer.c */
extern const struct effect_kind red_issue_kind;            /* red_issue.c */

/* ---- claimed.c ---- */

/* What the kinds of publish/ share: an effect whose requests go to GitHub one after the other. A kind embeds it as its first
 * member. Each path of a kind ends in one of the functions below, once. */
struct claimed {
	struct effect effect; /* first */
	struct publisher *p;
	struct config *config;       /* as it was when the effect began */
	struct github_call *on_wire; /* claimed_cancel() ends it; NULL: nothing */
	int64_t again_ms;   /* wall clock: due again then, because more may be known; 0: no */
	bool was_uncertain; /* effect.is_uncertain before the last claimed_begin_call() */
	const char *events; /* static: the first word of the log's events, "comment" */
};

/* The first step of each begin(). */
void claimed_begin(struct claimed *c, const char *events);
/* The cancel() of each kind, and a part of each release(). */
void claimed_cancel(struct effect *e);
void claimed_release(struct claimed *c);
/* Prepares one of the kind's calls, with `owner` as its owner. False when the service no longer waits for GitHub: the effect
 * has ended then. */
bool claimed_begin_call(struct claimed *c, struct github_call *call,
    void (*done)(struct github_call *call), void *owner);
/* The App's name, for the commands that a text offers. NULL while GitHub has not answered GET /app: the caller
 * writes the text without the name, and the row becomes due again so that the next text has it. */
const char *claimed_app_name(struct claimed *c);

/* ---- how it ends ---- */
void claimed_end(struct claimed *c, enum outbox_result result, int64_t next_ms, const char *error);
/* The store is busy now. */
void claimed_end_busy(struct claimed *c);
/* After a failure: retries after the back-off, or gives up when that is too late. */
void claimed_retry(struct claimed *c, const struct error *why, int64_t retry_after_ms);
/* After a failure of GitHub's, which may be final. */
void claimed_fail(struct claimed *c, const struct github_result *result);

/* Options for rendering a comment. The strings are borrowed from the config, the github and
 * github_url (free() it after the rendering). */
void publisher_comment_options(const struct publisher *p, const struct config *c,
    struct comment_options *ret, char **ret_github_url);

#endif
