/* A webhook as a struct: webhook/payload.c fills it, and the planner reads it. It has only the fields that Outpost
 * uses. Also the commands in a comment on a pull request, and their results.
 *
 * Thread: any. Plain data and pure functions; the owner of a struct releases it. */
#pragma once

#include "model/experiment.h"

enum event_kind {
	EVENT_PULL_REQUEST,
	EVENT_PUSH,
	EVENT_ISSUE_COMMENT,
	EVENT_CHECK_RUN,
	EVENT_CHECK_SUITE,
	EVENT_INSTALLATION, /* installation and installation_repositories */
};

/* X(ENUM, GitHub's word) */
#define PULL_ACTIONS(X)                                                                                                \
	X(OPENED, "opened")                                                                                            \
	X(REOPENED, "reopened")                                                                                        \
	X(SYNCHRONIZE, "synchronize")                                                                                  \
	X(READY_FOR_REVIEW, "ready_for_review")                                                                        \
	X(CONVERTED_TO_DRAFT, "converted_to_draft")                                                                    \
	X(LABELED, "labeled")                                                                                          \
	X(UNLABELED, "unlabeled")                                                                                      \
	X(BASE_CHANGED, "edited") /* with changes.base */                                                              \
	X(CLOSED, "closed")
#define PULL_VALUE(e, name) PULL_##e,
enum pull_action { PULL_ACTIONS(PULL_VALUE) N_PULL_ACTIONS };
WORDS_DECLARE(pull_action); /* Outpost uses no other action */

struct pull_info {
	int64_t number;
	char *head_sha, *base_sha, *base_ref, *title, *author, *author_association;
	char **labels; /* NULL-terminated, never NULL */
	bool is_draft, is_open;
	int64_t updated_ms; /* GitHub's updated_at: orders events that arrive out of order */
};

/* One commit of a push. */
struct push_commit {
	char *sha;
	char *author, *title; /* login or name; first line of the message; either may be "" */
	int64_t at_ms;        /* the commit's own time; 0: unknown */
	char **files;         /* that it adds, removes or modifies; NULL: not known. FILES_INCOMPLETE: and more */
};
void push_commits_free(struct push_commit *list, size_t n);

struct event {
	enum event_kind kind;
	char *action; /* GitHub's word; "" for push */
	/* Where its value is in the body, with its quotes; 0: the body has none. */
	size_t action_at, action_bytes;
	char *repository;
	char *sender;

	/* EVENT_PULL_REQUEST; EVENT_ISSUE_COMMENT sets only pull.number */
	enum pull_action pull_action;
	struct pull_info pull;
	char *label; /* the one of labeled and unlabeled, else NULL */

	/* EVENT_PUSH */
	char *ref; /* refs/heads/main */
	char *before, *after;
	bool is_deleted;
	bool is_forced;
	/* Those after `before`, up to `after`, oldest first. None: GitHub did not list all of them, so they are not known. */
	struct push_commit *commits;
	size_t n_commits;
	int64_t pushed_ms;  /* 0: unknown */
	char *head_message; /* first line of the head commit, may be NULL */
	char *head_author;  /* login or name, may be NULL */

	/* EVENT_ISSUE_COMMENT */
	char *comment_body, *comment_author, *comment_author_type, *comment_association;
	int64_t comment_id, comment_created_ms;
	char *pull_author;
	bool is_pull_comment;

	/* EVENT_CHECK_RUN, EVENT_CHECK_SUITE */
	int64_t check_app_id; /* the App that owns the check; 0: not known */
	char *check_head_sha;
	char *check_name, *check_external_id; /* CHECK_RUN; external_id "": none */
};

void pull_info_release(struct pull_info *p);
void event_release(struct event *e);

/* Fills *ret (event_release() it, also after a failure). ERR_INVALID names the field that is missing or of a wrong
 * type. Pure; webhook/ implements it, and daemon/wire.c passes it to others. */
typedef int event_parse_fn(const char *event_name, const char *body, size_t n, struct event *ret, struct error *e);

/* ---- the command in one line of a comment on a pull request: dispatch/ reads it, and store/ carries it out ---- */

/* X(ENUM, the words in the comment) */
#define COMMAND_KINDS(X)                                                                                               \
	X(UNKNOWN, "unknown") /* addressed to the bot, but not a known command */                                      \
	X(RETEST, "retest")                                                                                            \
	X(CANCEL, "cancel")                                                                                            \
	X(OK_TO_TEST, "ok-to-test")                                                                                    \
	X(DECLINE, "ok-to-test cancel")                                                                                \
	X(STATUS, "status")                                                                                            \
	X(HELP, "?")                                                                                                   \
	X(STRESS, "stress") /* one test many times */
#define COMMAND_VALUE(e, ...) COMMAND_##e,
enum command_kind { COMMAND_KINDS(COMMAND_VALUE) N_COMMAND_KINDS };
WORDS_DECLARE(command_kind);

enum {
	COMMANDS_MAX = 10, /* of one comment; the rest of the comment is ignored */
	COMMAND_WORD_BYTES = 128,
	COMMAND_TEST_BYTES = EXPERIMENT_TEST_MAX_BYTES + 16, /* with a dtype behind it */
	STRESS_ROUNDS_USUAL = 10,
};

struct command {
	enum command_kind kind;
	char sha[41]; /* ok-to-test: 7 to 40 digits, lower case; "": none was named */
	/* retest, stress: an accelerator in lower case, "" for all; UNKNOWN: the text after the bot's name, cut */
	char word[COMMAND_WORD_BYTES];
	char suite[COMMAND_WORD_BYTES]; /* retest ACCELERATOR/SUITE; "": any */
	char test[COMMAND_TEST_BYTES];  /* stress: as it is written, "" for other kinds */
	int n_rounds;                   /* stress: any number; 10 if the comment has none */
};

/* The result of a command. X(ENUM, name, is_error, text for operators: the reason why nothing was done) */
#define COMMAND_RESULTS(X)                                                                                             \
	X(DONE, "done", false, "done")                                                                                 \
	X(STILL_RUNNING, "still_running", false, "retest, but all of it is still running")                             \
	X(NOT_KNOWN, "not_known", true, "not a known command")                                                         \
	X(NO_ACCELERATOR, "no_accelerator", true, "a command for an unknown accelerator")                              \
	X(NOT_TESTED, "not_wanted", true, "retest of an accelerator that does not test this")                          \
	X(NO_SUITE, "no_suite", true, "retest of a suite without a reported result")                                   \
	X(NOTHING_RED, "nothing_red", true, "retest, but nothing is red")                                              \
	X(HELD, "held", true, "retest of what is held")                                                                \
	X(NOTHING_HELD, "nothing_held", true, "ok-to-test, but nothing is held")                                       \
	X(NOTHING_DECLINED, "nothing_declined", true, "ok-to-test cancel, but nothing is held or released")            \
	X(NOTHING_RUNS, "nothing_runs", true, "cancel, but nothing runs")                                              \
	X(NO_GITHUB, "no_github", true, "GitHub did not say what the pull request is like")                            \
	X(FOR_MEMBERS, "for_members", true, "ok-to-test is for members")                                               \
	X(NO_TEST, "no_test", true, "stress of a test without a reported result")                                      \
	X(NO_RERUNS, "no_reruns", true, "stress, but no accelerator can run that test again now")                      \
	X(STRESS_HELD, "stress_held", true, "stress of what is held")                                                  \
	X(ROUNDS, "rounds", true, "stress with a number outside 1 to 20")                                              \
	X(STRESS_BUSY, "stress_busy", true, "stress, but too many are under way")                                      \
	X(SHARED, "shared", true, "another open pull request has that head: for members")                              \
	X(CLOSED, "closed", true, "the pull request is closed")
enum command_result { COMMAND_RESULTS(COMMAND_VALUE) N_COMMAND_RESULTS };
WORDS_DECLARE(command_result);
bool command_result_is_error(enum command_result r);
const char *command_result_why(enum command_result r);

/* A command and its result. */
struct asked_command {
	struct command command;
	enum command_result result;
	/* NO_ACCELERATOR, NO_TEST: the nearest one; "": none is near. SHARED: the other PR's number */
	char hint[COMMAND_WORD_BYTES];
};
