/* What one line of a comment on a pull request asks of this program (contract 6.2): plain data
 * between dispatch/, which reads it, and store/, which does it. */
#ifndef MODEL_COMMAND_H
#define MODEL_COMMAND_H

#include <stdbool.h>

#include "model/experiment.h"

enum command_kind {
	COMMAND_UNKNOWN, /* addressed to the bot, but nothing that it knows */
	COMMAND_RETEST,
	COMMAND_CANCEL,
	COMMAND_OK_TO_TEST,
	COMMAND_DECLINE, /* ok-to-test cancel */
	COMMAND_STATUS,
	COMMAND_HELP,   /* ? */
	COMMAND_STRESS, /* one test many times */
	N_COMMAND_KINDS
};

enum {
	COMMANDS_MAX = 10, /* of one comment: what stands behind them is not heard */
	COMMAND_WORD_BYTES = 128,
	COMMAND_TEST_BYTES = EXPERIMENT_TEST_MAX_BYTES + 16, /* with a dtype behind it */
	STRESS_ROUNDS_USUAL = 10,
};

struct command {
	enum command_kind kind;
	char sha[41]; /* ok-to-test: 7 to 40 digits, lower case; "": none was named */
	/* retest, stress: an accelerator in lower case, "" for all; UNKNOWN: what was written behind the name, cut */
	char word[COMMAND_WORD_BYTES];
	char suite[COMMAND_WORD_BYTES]; /* retest ACCELERATOR/SUITE; "": any */
	char test[COMMAND_TEST_BYTES];  /* stress: as it is written, "" for other kinds */
	int n_rounds;                   /* stress: any number; what was not named is 10 */
};

/* "retest", "cancel", …: the word that is written. N_COMMAND_KINDS: none is written so. */
const char *command_kind_name(enum command_kind k);
enum command_kind command_kind_parse(const char *name);

/* What came of a command. X(ENUM, name, is_error, for operators: why nothing was done) */
#define COMMAND_RESULTS(X)                                                                         \
	X(DONE, "done", false, "done")                                                             \
	X(STILL_RUNNING, "still_running", false, "retest, but all of it is still running")         \
	X(NOT_KNOWN, "not_known", true, "not a known command")                                     \
	X(NO_ACCELERATOR, "no_accelerator", true, "retest of an unknown accelerator")              \
	X(NOT_WANTED, "not_wanted", true, "retest of an accelerator that does not test this")      \
	X(NO_SUITE, "no_suite", true, "retest of a suite that nobody reported")                    \
	X(NOTHING_RED, "nothing_red", true, "retest, but nothing is red")                          \
	X(HELD, "held", true, "retest of what is held")                                            \
	X(NOTHING_HELD, "nothing_held", true, "ok-to-test, but nothing is held")                   \
	X(NOTHING_DECLINED, "nothing_declined", true,                                              \
	    "ok-to-test cancel, but nothing is held or released")                                  \
	X(NOTHING_RUNS, "nothing_runs", true, "cancel, but nothing runs")                          \
	X(NO_GITHUB, "no_github", true, "GitHub did not say what the pull request is like")        \
	X(FOR_MEMBERS, "for_members", true, "ok-to-test is for members")                           \
	X(NO_TEST, "no_test", true, "stress of a test that nobody reported")                       \
	X(NO_RERUNS, "no_reruns", true, "stress, but no accelerator can run that test again now")  \
	X(STRESS_HELD, "stress_held", true, "stress of what is held")                              \
	X(ROUNDS, "rounds", true, "stress with a number outside 1 to 20")                          \
	X(STRESS_BUSY, "stress_busy", true, "stress, but too many are under way")                  \
	X(SHARED, "shared", true, "another open pull request has that head: for members")          \
	X(CLOSED, "closed", true, "the pull request is closed")

enum command_result {
#define X(e, name, is_error, why) COMMAND_##e,
	COMMAND_RESULTS(X)
#undef X
	    N_COMMAND_RESULTS
};
const char *command_result_name(enum command_result r);
enum command_result command_result_parse(const char *name); /* N_COMMAND_RESULTS: none */
bool command_result_is_error(enum command_result r);
const char *command_result_why(enum command_result r);

/* A command, and what came of it. */
struct asked_command {
	struct command command;
	enum command_result result;
	/* NO_ACCELERATOR, NO_TEST: the nearest one; "": none is near. SHARED: the other PR's number */
	char hint[COMMAND_WORD_BYTES];
};

#endif
