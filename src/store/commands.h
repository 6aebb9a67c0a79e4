/* Commands in comments, Re-run and outpostctl retest: what they do and what is answered, in one
 * transaction. */
#ifndef STORE_COMMANDS_H
#define STORE_COMMANDS_H

#include "model/command.h"
#include "store/changes.h"
#include "store/store.h"

/* On one PR, where those of its author do not count against members, and of one speaker on all PRs
 * that had its head; strangers have as many refusals of their own. */
enum { COMMANDS_AN_HOUR = 20 };

/* Who wrote a comment, as far as it matters here. */
enum speaker { SPEAKER_STRANGER, SPEAKER_AUTHOR, SPEAKER_MEMBER };

struct spoken_comment {
	int64_t id, created_ms;
	const char *login;
	const char *words; /* what it asks, one line, for people */
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
	COMMANDS_REPEATED, /* this comment, or this delivery, was heard before: nothing was done */
	COMMANDS_REFUSED,  /* not for whoever said it */
	COMMANDS_TOO_MANY,
};

/* Does what `list` asks for, in its order: those whose result is an error already are answered
 * only. All retests of it are one: `retest.plan` (NULL: none is asked) says who wants the change
 * and whom of them they mean. For a comment the answer is written, too: a reaction, and one reply
 * where there is more to say. The same comment, under whatever delivery, is heard once. */
struct run_commands {
	struct store_op op;
	int64_t delivery_id;                 /* marked planned or ignored; 0: none */
	const char *repository;              /* upstream */
	int64_t number;                      /* the PR; 0: a push */
	const struct spoken_comment *spoken; /* NULL: Re-run or outpostctl */
	struct asked_command *list;          /* in and out: results */
	size_t n;
	const struct rerun_request *reruns;
	size_t n_reruns;
	struct apply_plan retest; /* plan, guid, body; out: retested; its delivery_id stays 0 */
	int64_t now_ms;
	enum command_result given[COMMANDS_MAX]; /* store's own: the results as they came in */
	/* out */
	enum commands_outcome outcome;
	const char *ignored; /* static: why nothing was done; NULL: something was */
	int n_released, n_declined, n_cancelled;
};
int store_run_commands(struct store *s, struct run_commands *op) MUST_CHECK;

/* ---- what has to be known before ---- */
/* A change that may be tested again. */
struct find_tested {
	struct store_query q;
	void *owner; /* the caller's own */
	const char *repository;
	int64_t number;             /* > 0: this PR's head */
	const char *sha;            /* else this commit, or a beginning of it: 7 digits at least */
	bool is_pull;               /* out: else a push */
	bool is_open;               /* out, is_pull: some PR that is open has it as its head */
	int64_t pull_number;        /* out, is_pull: by its SHA, the one that leads */
	char head_sha[41];          /* out; "" when nothing is known of it */
	char *ref, *title, *author; /* out, pushes */
	char *delivery_guid;        /* out: of the body that was sent last; NULL: none */
};
/* ERR_NOT_FOUND: nothing is known of it. ERR_CONFLICT: the beginning fits several commits. */
int store_find_tested(struct store *s, struct find_tested *q) MUST_CHECK;
void find_tested_release(struct find_tested *q);

/* What Re-run on a check means. */
struct rerun_target {
	char *accelerator, *runner, *dispatch_id;
	bool is_github;   /* or hosted: its run can be started again at `repository` */
	char *repository; /* NULL: it cannot */
	char *run_id;     /* NULL: none was reported */
	int64_t run_attempt;
};
struct find_rerun {
	struct store_query q;
	void *owner; /* the caller's own */
	const char *repository, *head_sha;
	const char *check_name;    /* NULL: all of this head */
	const char *run_id;        /* where no check of that name was written; "" none */
	int64_t pull_number;       /* out: the open PR that leads that head; 0: there is none */
	struct rerun_target *list; /* out, each run once; find_rerun_release() */
	size_t n;
};
int store_find_rerun(struct store *s, struct find_rerun *q) MUST_CHECK;
void find_rerun_release(struct find_rerun *q);

#endif
