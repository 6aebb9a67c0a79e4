/* Shared by the files of publish/. Thread: loop, everything. */
#pragma once

#include "config/config.h"
#include "history/red_episodes.h"
#include "model/change_view.h"
#include "outbox/engine.h"
#include "publish/publish.h"
#include "store/branch_commits.h"
#include "store/changes.h"
#include "store/published.h"
#include "text/check_output.h"
#include "text/comment.h"

/* More cells than a comment can show; red ones are read first. */
enum { VERDICTS_MAX = 8000 };

struct publisher {
	struct publish_deps deps;
	struct config *config;
	struct engine *engine;
	struct debounce debounce;
	struct publish_counters counters;
	int64_t checks_refused_until_mono_ms; /* GitHub said that the App lacks the permission */
	/* After GET /app failed: the pause, and when it ends (wall clock). */
	int64_t app_pause_ms, app_again_ms;
	struct list_writes writes; /* while is_reading_writes: the seat came */
	bool is_reading_writes;
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

/* The URL of GitHub's pages: the API's host without "api." or "/api/v3". free(). */
char *publisher_github_url(const struct config *c);

/* ---- claimed.c ---- */

struct claimed;
typedef void claimed_step(struct claimed *c);
typedef void claimed_answer(struct claimed *c, struct github_call *call);

/* What the kinds of publish/ share: an effect whose requests go to GitHub one after the other. A kind embeds it as its first
 * member. Each path of a kind ends, once, in claimed_end() or in a function that calls it. */
struct claimed {
	struct effect effect; /* first */
	struct publisher *p;
	struct github *github; /* borrowed from p, as the store */
	struct store *store;
	struct config *config;    /* as it was when the effect began */
	char *github_url;         /* publisher_github_url() */
	const char *repository;   /* the row's target */
	int64_t number;           /* the row's: of a pull request or an episode */
	struct get_change change; /* claimed_read_change() */
	struct github_call call;  /* for a request that has no struct of its own */
	int64_t again_ms;         /* wall clock: due again then, because more may be known; 0: no */
	/* claimed.c's own */
	claimed_step *then;
	claimed_answer *on_answer;
	struct github_call *on_wire; /* claimed_cancel() ends it; NULL: none */
	bool was_uncertain;          /* effect.is_uncertain before the last claimed_begin_call() */
	const char *events;          /* static: the first word of the log's events, "comment" */
};

#define CLAIMED_KIND(its_kind, its_lane, type, its_begin, its_release)                                                 \
	{                                                                                                              \
		.kind = its_kind, .lane = its_lane, .bytes = sizeof(type), .begin = its_begin,                         \
		.cancel = claimed_cancel, .release = its_release                                                       \
	}

/* The first step of each begin(). */
void claimed_begin(struct claimed *c, const char *events);
/* The cancel() of each kind, and a part of each release(). */
void claimed_cancel(struct effect *e);
void claimed_release(struct claimed *c);
/* Reads the pull request's change into c->change and runs then(), not inside the call; change.view is NULL if the store has
 * no such pull request. If the store is busy or fails, the effect ends instead. */
void claimed_read_change(struct claimed *c, claimed_step *then);
/* Frees the change before its release, because it may be large, and GitHub slow. */
void claimed_drop_change(struct claimed *c);
/* Prepares one of the kind's calls; on_answer() runs when it is done. False when the service no longer waits for GitHub: the
 * effect has ended then. */
bool claimed_begin_call(struct claimed *c, struct github_call *call, claimed_answer *on_answer);
/* Runs then(), perhaps inside the call, when GitHub has said the App's name, or did not answer. */
void claimed_learn_app(struct claimed *c, claimed_step *then);
/* The App's name, for the commands that a text offers. NULL while GitHub has not answered GET /app: the caller
 * writes the text without the name, and the row becomes due again so that the next text has it. */
const char *claimed_app_name(struct claimed *c);

/* For rendering a comment now. The texts are borrowed from c and the github. */
struct comment_options claimed_comment_options(const struct claimed *c);

/* ---- how it ends ---- */

void claimed_end(struct claimed *c, enum outbox_result result, int64_t next_ms, const char *error);
void claimed_end_ok(struct claimed *c);
/* The store is busy now. */
void claimed_end_busy(struct claimed *c);
/* After a failure: retries after the back-off, or gives up when that is too late. */
void claimed_retry(struct claimed *c, const struct error *why, int64_t retry_after_ms);
/* False: the store failed, and the effect has ended with a retry. */
bool claimed_is_stored(struct claimed *c, int err, const struct error *why);
/* After a failure of GitHub's, which may be final. */
void claimed_fail(struct claimed *c, const struct github_result *result);
/* False: GitHub failed or refused, and claimed_fail() has ended the effect. */
bool claimed_is_answered(struct claimed *c, const struct github_result *result);

/* ---- answer_text.c ----
 *
 * The text of a reply to commands (store/commands.h: the facts; docs/commands.md: the words). Pure: any thread. The caller
 * owns the texts.
 *
 * Never here: a word of the commenter outside of a code span, the marker of the results comment, or a mention. */

/* `commands` of a REPLY row holds `status`: answer_text() needs the change. */
bool answer_needs_view(const json_t *facts);
/* "<!-- outpost:reply:ID -->". With it and the author, a search finds a reply that may have arrived. free(). */
char *answer_marker(const json_t *facts);
/* Markdown, marker first; free(). v NULL: nothing is known of the change. */
char *answer_text(const json_t *facts, const struct change_view *v, const struct comment_options *o);

/* ---- red_text.c ----
 *
 * The next step of a red episode, and its texts: the issue, the comments under it, and the notice to a vendor without a
 * repository. Only these texts mention people, and only the registered oncalls: texts of vendors and commits are escaped.
 * Any thread. The caller owns the texts.
 *
 * The steps: an issue once, a reminder once after 48 h, a mark after 72 h, and the close when the accelerator is green. */

enum red_step {
	RED_WAIT, /* until *ret_next_ms */
	RED_OPEN,
	RED_FIND, /* the episode ended, and its issue may exist */
	RED_REMIND,
	RED_OVERDUE,
	RED_CLOSE,
	RED_OVER, /* nothing is left to do */
};

/* Skips missed steps: an issue that is opened after 48 h needs no reminder. may_be_open: an issue was requested, and its
 * outcome is not on record. */
enum red_step red_step_next(const struct red_episode *e, bool may_be_open, int64_t now_ms, int64_t *ret_next_ms);
/* "red", "reminder", "overdue", "green": as notices and markers call it; NULL: none. */
const char *red_step_name(enum red_step step);

enum { RED_COMMITS_MAX = 50 };

struct red_facts { /* all borrowed */
	const struct red_episode *episode;
	const struct accelerator *accelerator;
	const struct list_commits *commits; /* after last good; NULL: not known */
	const char *public_url, *github_url;
};

/* The marker of an episode and step: "<!-- outpost:red:12:reminder -->"; of the issue itself without the step. free(). */
char *red_marker(int64_t episode, enum red_step step);
/* free(), each. */
char *red_issue_title(const struct red_facts *f);
char *red_issue_text(const struct red_facts *f);
char *red_comment_text(const struct red_facts *f, enum red_step step);
char *red_notice_text(const struct red_facts *f, enum red_step step); /* JSON */

/* ---- check_plan.c ----
 *
 * Decides which check runs of a pull request to write: compares the desired ones with those on record. Pure: any thread.
 *
 * L4 always has check runs, L3 while a label asks for them: one for each current job. One that is not desired any more is
 * closed if it is in progress, and left as it is otherwise. */

/* The one for merge bots. */
#define CHECK_VERDICT_NAME "outpost"

struct planned_check {
	char *head_sha, *name, *accelerator;
	char *external_id, *details_url; /* NULL: they stay as they are */
	int64_t job_id;                  /* 0: the verdict's */
	/* The one on record; 0: none. It is updated, except if `is_recreated`: GitHub removes no annotation, and a completed
	 * check run does not run again. */
	int64_t check_id;
	bool is_recreated;
	struct check_output output;
	uint8_t digest[SHA256_BYTES];
};
struct check_plan {
	struct planned_check *list; /* only those to write: failures first, the verdict last */
	size_t n;
};

/* v: of the PR, whole or cut after its red cells. on_record: from store_list_checks(). */
void check_plan_make(const struct change_view *v, const struct list_checks *on_record, const struct check_options *o,
    struct check_plan *ret);
void check_plan_release(struct check_plan *p);
