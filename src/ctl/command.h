/* outpostctl's commands: one table, one function each. */
#ifndef CTL_COMMAND_H
#define CTL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/* Exit codes, as the contract has them. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct ctl {
	const char *config_path;
	bool is_json;     /* --json: for programs */
	bool is_terminal; /* standard output is one */
	bool has_colour;  /* so is it, and NO_COLOR is not set */
	int width;        /* of the terminal, 80 elsewhere */
};

struct command {
	const char *name;  /* one or two words: "comment preview" */
	const char *usage; /* its arguments */
	const char *help;  /* one line */
	/* argv holds the command's own arguments. Returns the exit code. */
	int (*run)(const struct ctl *ctl, int argc, char **argv);
};

/* NULL-terminated by name. */
extern const struct command COMMANDS[];

int cmd_check(const struct ctl *ctl, int argc, char **argv);
int cmd_status(const struct ctl *ctl, int argc, char **argv);
int cmd_deliveries(const struct ctl *ctl, int argc, char **argv);
int cmd_replay(const struct ctl *ctl, int argc, char **argv);
int cmd_dispatches(const struct ctl *ctl, int argc, char **argv);
int cmd_retest(const struct ctl *ctl, int argc, char **argv);
int cmd_comment_preview(const struct ctl *ctl, int argc, char **argv);
int cmd_runner_add(const struct ctl *ctl, int argc, char **argv);
int cmd_runner_list(const struct ctl *ctl, int argc, char **argv);
int cmd_runner_revoke(const struct ctl *ctl, int argc, char **argv);
int cmd_token_issue(const struct ctl *ctl, int argc, char **argv);
int cmd_token_list(const struct ctl *ctl, int argc, char **argv);
int cmd_token_revoke(const struct ctl *ctl, int argc, char **argv);
int cmd_report_validate(const struct ctl *ctl, int argc, char **argv);
int cmd_report_push(const struct ctl *ctl, int argc, char **argv);
int cmd_known_add(const struct ctl *ctl, int argc, char **argv);
int cmd_known_list(const struct ctl *ctl, int argc, char **argv);
int cmd_known_remove(const struct ctl *ctl, int argc, char **argv);
int cmd_identities(const struct ctl *ctl, int argc, char **argv);
int cmd_identities_forget(const struct ctl *ctl, int argc, char **argv);
int cmd_nightly(const struct ctl *ctl, int argc, char **argv);
int cmd_nightly_run(const struct ctl *ctl, int argc, char **argv);
int cmd_nightly_skip(const struct ctl *ctl, int argc, char **argv);
int cmd_import_allowlist(const struct ctl *ctl, int argc, char **argv);
int cmd_backup(const struct ctl *ctl, int argc, char **argv);

/* How the command is written, and those of two words that begin with it. */
void command_print_usage(FILE *out, const char *name);
/* Says so on stderr. Returns EXIT_USAGE. */
int command_usage(const char *name);
/* The same, behind a line that says which argument is wrong. */
int command_wrong(const char *name, const char *fmt, ...) PRINTF(2, 3);

#endif
