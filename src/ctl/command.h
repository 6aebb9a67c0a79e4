/* outpostctl's commands: the table of all of them, and reading a command's arguments.
 * Thread: outpostctl has one thread; everything in this folder runs there and may block. */
#pragma once

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

enum { OWN_OPTIONS = -1 };

/* The command line. */
struct ctl {
	const char *command; /* the command's name, one or two words */
	int argc;            /* its own arguments */
	char **argv;
	const char *words[2]; /* the same, of a command without options */
	const char *config_path;
	bool is_json;     /* --json: print JSON for programs */
	bool is_terminal; /* standard output is a terminal */
	bool has_colour;  /* it is a terminal, and NO_COLOR is not set */
	int width;        /* columns of the terminal; 80 without one */
};

struct command {
	const char *name;                  /* one or two words: "comment preview" */
	const char *usage;                 /* its arguments */
	const char *help;                  /* one line */
	int (*run)(const struct ctl *ctl); /* returns the exit code */
	/* The words that main() reads into ctl->words. OWN_OPTIONS: the command calls arguments_read() itself. */
	int n_min, n_max;
};

/* Ends with a name of NULL. */
extern const struct command COMMANDS[];

/* All commands: function, name, arguments, help, and the least and the most words of its arguments. */
#define COMMAND_LIST(X)                                                                                                \
	X(cmd_check, "check", "", "validate the configuration", 0, 0)                                                  \
	X(cmd_status, "status", "", "show the state of the service", 0, 0)                                             \
	X(cmd_deliveries, "deliveries", "[--failed] [--limit N]", "list webhooks, newest first", 0, OWN_OPTIONS)       \
	X(cmd_replay, "replay", "GUID", "process a delivery again", 1, 1)                                              \
	X(cmd_dispatches, "dispatches", "[--pr N] [--limit N]", "list dispatches, newest first", 0, OWN_OPTIONS)       \
	X(cmd_retest, "retest", "CHANGE [ACCELERATOR]", "re-run a PR's head or a commit", 1, 2)                        \
	X(cmd_comment_preview, "comment preview", "PR [--markdown]", "print a pull request's comment", 0, OWN_OPTIONS) \
	X(cmd_report_validate, "report validate", "FILE [--format F]", "check a report; F: junit, ctrf, outpost", 0,   \
	    OWN_OPTIONS)                                                                                               \
	X(cmd_report_push, "report push", "--job ID FILE [--url URL] [--token-file FILE]",                             \
	    "send a job's report; token: OUTPOST_TOKEN", 0, OWN_OPTIONS)                                               \
	X(cmd_runner_add, "runner add", "NAME --accelerator A", "register a machine and print its token", 0,           \
	    OWN_OPTIONS)                                                                                               \
	X(cmd_runner_list, "runner list", "[--accelerator A]", "list machines and their jobs", 0, OWN_OPTIONS)         \
	X(cmd_token_revoke, "runner revoke", "NAME --accelerator A [--id N]", "revoke a machine's tokens", 0,          \
	    OWN_OPTIONS)                                                                                               \
	X(cmd_token_issue, "token issue", "ACCELERATOR", "print a new token for a vendor's CI", 0, OWN_OPTIONS)        \
	X(cmd_token_list, "token list", "[ACCELERATOR]", "list vendors' tokens and their last use", 0, 1)              \
	X(cmd_token_revoke, "token revoke", "ACCELERATOR [--id N]", "revoke a vendor's tokens", 0, OWN_OPTIONS)        \
	X(cmd_identities_forget, "identities forget", "REPOSITORY", "record the ids of its next valid token", 1, 1)    \
	X(cmd_identities, "identities", "", "list the ids of reporting repositories", 0, 0)                            \
	X(cmd_known_add, "known add", "--test PATTERN [--accelerator A] --url ISSUE [--until DATE]",                   \
	    "link failures of tests to a known issue", 0, OWN_OPTIONS)                                                 \
	X(cmd_known_list, "known list", "", "list known issues and their matches", 0, 0)                               \
	X(cmd_known_remove, "known remove", "ID", "remove a known issue", 1, 1)                                        \
	X(cmd_nightly_run, "nightly run", "ACCELERATOR", "start its periodic run now", 1, 1)                           \
	X(cmd_nightly_skip, "nightly skip", "ACCELERATOR", "skip its next periodic run", 1, 1)                         \
	X(cmd_nightly, "nightly", "", "list periodic runs: the next, the last", 0, 0)                                  \
	X(cmd_import_allowlist, "import-allowlist", "FILE [--to DIRECTORY]", "convert CRCR's allowlist", 0,            \
	    OWN_OPTIONS)                                                                                               \
	X(cmd_backup, "backup", "FILE", "copy the database while it is in use", 1, 1)                                  \
	X(cmd_store_copy, "store copy", "--to URL|FILE [--password-file FILE]",                                        \
	    "move everything to PostgreSQL, or back", 0, OWN_OPTIONS)
#define COMMAND_FUNCTION(function, name, usage, help, n_min, n_max) int function(const struct ctl *ctl);
COMMAND_LIST(COMMAND_FUNCTION)
#undef COMMAND_FUNCTION

/* Prints the usage of a command, and of the two-word commands that begin with its name. */
void command_print_usage(FILE *out, const char *name);
/* Prints the usage on stderr. Returns EXIT_USAGE. */
int command_usage(const struct ctl *ctl);
/* The same after a line that says which argument is wrong. The line may quote untrusted text. */
int command_wrong(const struct ctl *ctl, const char *fmt, ...) PRINTF(2, 3);

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

/* Reads the command's arguments. options ends with a name of NULL, or is NULL. The other words (borrowed, never empty)
 * go into words[]: at least n_min of them and at most n_max. Returns false after explaining the mistake on stderr; the
 * caller returns EXIT_USAGE. */
bool arguments_read(
    const struct ctl *ctl, const struct argument_option *options, const char **words, int n_min, int n_max);
/* Reads a word as a number; `what` names it in the message. Returns false as above. */
bool argument_number(const struct ctl *ctl, const char *what, const char *text, int64_t min, int64_t max, int64_t *ret);
