/* Commands in comments, Re-run and outpostctl retest: their effects and the answer, in one transaction.
 *
 * Thread: functions with a struct txn run inside a writer's transaction; store_*() functions run on the loop. Strings are
 * borrowed until done. */
#pragma once

#include "db/store.h"
#include "model/event.h"
#include "store/plans.h"

/* The limit for one pull request, where its author's commands do not count against members, and for one person on all
 * pull requests that had its head. Refused comments of strangers have a separate limit of the same size. */
enum { COMMANDS_AN_HOUR = 20 };

/* The writer of a comment, as far as it matters here. */
enum speaker { SPEAKER_STRANGER, SPEAKER_AUTHOR, SPEAKER_MEMBER };

struct spoken_comment {
	int64_t id, created_ms;
	const char *login;
	const char *words; /* its commands on one line, for people */
	enum speaker speaker;
};

/* A run to be started again at the vendor's repository. */
struct rerun_request {
	char *repository, *run_id;
	char *dispatch_id, *accelerator, *runner;
	int64_t run_attempt;
	bool is_whole; /* all of its jobs; else those that failed */
};

enum commands_outcome {
	COMMANDS_HEARD,
	COMMANDS_REPEATED, /* this comment, or this delivery, was processed before: nothing changed */
	COMMANDS_REFUSED,  /* its writer may not use commands */
	COMMANDS_TOO_MANY,
};

/* Runs `list` in its order; commands that already have an error as result are only answered. All its retests are one:
 * `retest.plan` (NULL: there is none) has the wants and which of them the retests name. A comment is answered with a
 * reaction, and one reply if a reaction cannot say everything. A comment is processed once, whatever deliveries carry it. */
struct run_commands {
	struct store_op op;
	int64_t delivery_id;                 /* marked planned or ignored; 0: none */
	const char *repository;              /* upstream */
	int64_t number;                      /* the pull request; 0: a push */
	const struct spoken_comment *spoken; /* NULL: Re-run or outpostctl */
	struct asked_command *list;          /* in and out: results */
	size_t n;
	const struct rerun_request *reruns;
	size_t n_reruns;
	struct apply_plan retest; /* plan, guid, body; out: retested; its delivery_id stays 0 */
	int64_t now_ms;
	enum command_result given[COMMANDS_MAX]; /* private to the store: the results on entry */
	/* out */
	enum commands_outcome outcome;
	const char *ignored; /* static: why nothing was done; NULL: something was */
	int n_released, n_declined, n_cancelled;
};
int store_run_commands(struct store *s, struct run_commands *op) MUST_CHECK;

/* ---- answers: outbox rows, each once ---- */

struct answer_place {
	const char *repository;
	int64_t number, change_id; /* change 0: the pull request is not known */
	int64_t comment_id;
};
/* One reply with the results of a `stress`: the row's text is JSON, {"comment": ID, "stress": facts}
 * (experiments/experiments.h). Takes facts over. */
void stress_reply_put(struct txn *d, const struct answer_place *at, json_t *facts, int64_t now_ms);

/* Deletes the records of comments that were answered before before_ms, at most `limit`. True: there may be more. */
bool commands_drop(struct txn *d, int64_t before_ms, int limit);
