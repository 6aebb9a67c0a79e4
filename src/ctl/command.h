/* outpostctl's commands: the table of all of them, and reading a command's arguments.
 * Thread: outpostctl has one thread; everything in this folder runs there and may block. */
#pragma once

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct ctl {
	const char *config_path;
	bool is_json;     /* --json: print JSON for programs */
	bool is_terminal; /* standard output is a terminal */
	bool has_colour;  /* it is a terminal, and NO_COLOR is not set */
	int width;        /* columns of the terminal; 80 without one */
};

struct command {
	const char *name;  /* one or two words: "comment preview" */
	const char *usage; /* its arguments */
	const char *help;  /* one line */
	/* argv holds the command's own arguments. Returns the exit code. */
	int (*run)(const struct ctl *ctl, int argc, char **argv);
};

/* Ends with a name of NULL. */
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

/* Prints the usage of a command, and of the two-word commands that begin with its name. */
void command_print_usage(FILE *out, const char *name);
/* Prints the usage on stderr. Returns EXIT_USAGE. */
int command_usage(const char *name);
/* The same after a line that says which argument is wrong. The line may quote untrusted text. */
int command_wrong(const char *name, const char *fmt, ...) PRINTF(2, 3);

/* One option of a command. Exactly one of text, number and flag is set: the value goes there. An
 * option that is not given leaves its target unchanged. A text must be NULL before. */
struct argument_option {
	const char *name; /* "--limit" */
	const char **text;
	int64_t *number;
	int64_t min, max; /* of the number; max 0: no upper limit */
	bool *flag;
	const char *const *choices; /* the allowed texts, NULL-terminated; NULL: any text */
};

/* The most rows that the service returns for a list. */
enum { ARGUMENT_LIMIT_MAX = 1000 };
#define ARGUMENT_LIMIT(to)                                                                                             \
	{                                                                                                              \
		.name = "--limit", .number = (to), .min = 1, .max = ARGUMENT_LIMIT_MAX                                 \
	}

/* Reads a command's arguments. options ends with a name of NULL, or is NULL. The other words
 * (borrowed, never empty) go into words[]: at least n_min of them and at most n_max.
 * Returns false after explaining the mistake on stderr; the caller returns EXIT_USAGE. */
bool arguments_read(const char *command, int argc, char **argv, const struct argument_option *options,
    const char **words, int n_min, int n_max);
/* For a command without options or words. Returns false as above. */
bool arguments_none(const char *command, int argc, char **argv);
/* Reads a word as a number; `what` names it in the message. Returns false as above. */
bool argument_number(const char *command, const char *what, const char *text, int64_t min, int64_t max, int64_t *ret);
