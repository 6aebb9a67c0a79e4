/* The planning of one event: parses its body, reads the changed files if the plan depends on them, makes the plan, and
 * applies it in the store. Private to the planner.
 *
 * A delivery that cannot be planned ends as `ignored` or `failed` with the reason, which operators see. An operation
 * that the store cannot run at the moment is retried until it can.
 *
 * Thread: loop. Owns: the planner, with planning_free(). */
#pragma once

#include "config/config.h"
#include "dispatch/dispatch_internal.h"
#include "github/github.h"
#include "model/event.h"
#include "model/plan.h"
#include "store/changes.h"
#include "store/commands.h"
#include "store/deliveries.h"
#include "store/plans.h"
#include "store/published.h"

struct planning {
	TAILQ_ENTRY(planning) link; /* in the planner's list */
	struct dispatch *d;
	struct config *config;
	int64_t delivery_id; /* 0: synthetic, or outpostctl's */
	int64_t received_ms; /* of the delivery */
	char *guid, *event_name;
	char *body; /* until parsed, if it is large; else until applied */
	size_t body_bytes;

	/* Events of one line are planned in their order ("owner/name#7", "owner/name@refs/heads/main"); NULL: the
	 * order does not matter. */
	char *line;
	bool is_begun, is_on_github;
	struct event event;
	struct error parse_error;
	struct plan plan;
	char **files;                      /* NULL: not read yet */
	struct user_request *user_request; /* a person's request; NULL: a plain event */
	void (*then)(struct planning *p);  /* runs when the files are known */

	void (*step)(struct planning *p);      /* runs when the timer ends; NULL: it does not run */
	struct timer *timer;                   /* NULL until it is needed */
	int n_tries;                           /* requests to GitHub without an answer */
	void (*on_done)(void *owner, int err); /* synthetic */
	void *owner;
	int err;

	union { /* one operation at a time */
		struct get_files get_files;
		struct put_files put_files;
		struct apply_plan apply;
		struct run_commands commands;
		struct get_delivery body;
		struct mark_delivery mark;
		struct github_pull_files pull_files;
		struct github_call call;
	} op;
};

/* Takes over guid, event_name and body (free()); parses at once. */
struct planning *planning_new(
    struct dispatch *d, int64_t delivery_id, char *guid, char *event_name, char *body, size_t body_bytes);
/* For a request of outpostctl; takes over the request. */
struct planning *planning_new_request(struct dispatch *d, struct user_request *request);
/* Ends with planner_finished(), never inside this call. */
void planning_begin(struct planning *p);
/* Ends soon. A delivery whose plan is not on disk by then stays accepted. */
void planning_cancel(struct planning *p);
void planning_free(struct planning *p);

/* ---- among planning*.c ---- */
/* Runs step after the delay, or ends if the dispatcher is closing. */
void planning_again(struct planning *p, void (*step)(struct planning *p), int64_t after_ms);
/* After a failed request to GitHub: runs step after a pause, or ends if the dispatcher is closing. False: GitHub does not
 * answer within a few seconds, and the caller continues without its answer. */
bool planning_retries_github(
    struct planning *p, const struct github_result *r, int *n_tries, void (*step)(struct planning *p));
/* Call it after submitting an operation or a query that retries by itself (struct store_retry). rc not 0: the store is
 * closed, and the planning ends. */
void planning_submitted(struct planning *p, int rc);
/* False: the operation failed. Then the planning ends, or the delivery is marked as failed. */
bool planning_went_well(struct planning *p, const struct error *why, int err);
void planning_end(struct planning *p, int err);
/* Records the reason with the delivery, logs it, and ends. */
void planning_mark(struct planning *p, enum delivery_mark mark, const char *reason);
/* Fills p->files, then runs `then`. */
void planning_get_files(struct planning *p, void (*then)(struct planning *p));
void planning_comment(struct planning *p);
void planning_rerun(struct planning *p);

/* A request by a person: commands in a comment, Re-run on a check, or outpostctl retest. All three have the same steps:
 * find the change, read it from GitHub, run one transaction. Private to the planner. Thread: loop. */

struct user_request {
	/* the change: the PR of that number, else a commit by its SHA or the first digits of it */
	int64_t number;
	char *sha;
	int64_t event_ms; /* GitHub's time of the request; 0: unknown */

	bool is_comment;
	struct spoken_comment spoken; /* if is_comment; borrows these texts: */
	char *login, *words;
	struct asked_command list[COMMANDS_MAX]; /* of a comment */
	size_t n;

	/* Re-run and outpostctl: the runners that get a round. An entry whose names are NULL means all. */
	struct retest *retests;
	size_t n_retests;
	struct rerun_request *reruns; /* Re-run at vendors' repositories */
	size_t n_reruns;
	struct retest_request *request; /* of outpostctl, which waits for the answer; or NULL */

	/* while it runs */
	struct find_tested tested;
	struct find_rerun found;
	int n_tries;
	int github_err; /* of the last failed request for the PR */
	struct error github_why;
	char guid[UUID_BYTES]; /* of the dispatches of a retest */
	char *body;
	struct arena texts; /* those of the request, except body */
	bool has_plan;
};

struct user_request *user_request_new(void);
void user_request_free(struct user_request *a); /* NULL is fine */
void user_request_add_retest(struct user_request *a, const char *accelerator, const char *runner);

/* Runs p->user_request. If it contains a retest, this first makes the body for vendors: from the PR at GitHub, or from
 * the last body if GitHub does not answer. */
void planning_run_request(struct planning *p);

/* ---- among planning_*.c ---- */
/* planning_retest.c: makes the body, the event and the plan, then calls user_request_submit(). */
void user_request_gather(struct planning *p);
/* The event of its operations, which wait while the database is away (struct store_retry). NULL: somebody or the outbox waits for the answer,
 * and gets the failure at once. */
const char *user_request_retry_event(const struct user_request *a);
/* planning_comment.c: runs the request in one transaction and ends the planning. */
void user_request_submit(struct planning *p);
/* Ends the planning because there is nothing to test: answers outpostctl, or marks the delivery as failed. */
void user_request_give_up(struct planning *p, int err, const char *why);

/* ---- command.c: finds the commands in a comment on a pull request: `@BOT retest …`, each on a line of its own. Pure.
 *
 * Rule guarded here: text that GitHub shows as a quotation or as code, or does not show (an HTML comment), is not a
 * command, because the comment's author did not give it. In doubt the line is not a command. ---- */

/* Fills ret with at most COMMANDS_MAX commands in their order, and returns their number. If a comment contains both
 * `ok-to-test` and `ok-to-test cancel`, only the cancel counts. slug: the App's, without @; NULL: any name. */
size_t commands_find(const char *text, const char *slug, struct command ret[COMMANDS_MAX]);
