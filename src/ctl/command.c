#include "ctl/command.h"

#include <stdarg.h>
#include <string.h>

#include "base/buf.h"
#include "base/escape.h"

const struct command COMMANDS[] = {
    {"check", "", "say what is wrong with the configuration", cmd_check},
    {"status", "", "what the service is doing", cmd_status},
    {"deliveries", "[--failed] [--limit N]", "webhooks, newest first", cmd_deliveries},
    {"replay", "GUID", "plan a delivery again; nothing goes twice", cmd_replay},
    {"dispatches", "[--pr N] [--limit N]", "what went to whom, newest first", cmd_dispatches},
    {"retest", "CHANGE [ACCELERATOR]", "test a PR's head or a commit again", cmd_retest},
    {"comment preview", "PR [--markdown]", "a pull request's comment as it is now",
	cmd_comment_preview},
    {"report validate", "FILE [--format F]", "check a report; F: junit, ctrf, outpost",
	cmd_report_validate},
    {"report push", "--job ID FILE [--url URL] [--token-file FILE]",
	"send a job's report; token: OUTPOST_TOKEN", cmd_report_push},
    {"runner add", "NAME --accelerator A", "let a machine take work: prints its token",
	cmd_runner_add},
    {"runner list", "[--accelerator A]", "the machines, and what they do", cmd_runner_list},
    {"runner revoke", "NAME --accelerator A [--id N]", "its tokens are good no more",
	cmd_runner_revoke},
    {"token issue", "ACCELERATOR", "a token for a vendor's own CI: prints it", cmd_token_issue},
    {"token list", "[ACCELERATOR]", "vendors' tokens, and when they were used", cmd_token_list},
    {"token revoke", "ACCELERATOR [--id N]", "its tokens are good no more", cmd_token_revoke},
    {"identities forget", "REPOSITORY", "record the ids of its next valid token",
	cmd_identities_forget},
    {"identities", "", "who is behind the names that report", cmd_identities},
    {"known add", "--test PATTERN [--accelerator A] --url ISSUE [--until DATE]",
	"an issue explains red cells of these tests", cmd_known_add},
    {"known list", "", "such issues, and which match nothing", cmd_known_list},
    {"known remove", "ID", "it explains nothing from now on", cmd_known_remove},
    {"nightly run", "ACCELERATOR", "start its periodic run now", cmd_nightly_run},
    {"nightly skip", "ACCELERATOR", "leave its next periodic run out", cmd_nightly_skip},
    {"nightly", "", "periodic runs: due when, and the last one", cmd_nightly},
    {"import-allowlist", "FILE [--to DIRECTORY]", "what CRCR's allowlist becomes, or its files",
	cmd_import_allowlist},
    {"backup", "FILE", "a copy of the database while it is in use", cmd_backup},
    {NULL, NULL, NULL, NULL},
};

static bool is_or_begins(const char *name, const char *command)
{
	size_t n = strlen(name);

	return !strncmp(command, name, n) && (command[n] == '\0' || command[n] == ' ');
}

void command_print_usage(FILE *out, const char *name)
{
	for (const struct command *c = COMMANDS; c->name; c++)
		if (is_or_begins(name, c->name))
			fprintf(out, "Usage: outpostctl [-c FILE] [--json] %s%s%s\n", c->name,
			    *c->usage ? " " : "", c->usage);
}

int command_usage(const char *name)
{
	command_print_usage(stderr, name);
	return EXIT_USAGE;
}

/* What is quoted may be what a script was handed from outside. */
int command_wrong(const char *name, const char *fmt, ...)
{
	struct buf line = BUF_INIT(4096);
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	escape_line(&line, text, 0);
	fprintf(stderr, "outpostctl: %s\n", buf_str(&line));
	buf_release(&line);
	return command_usage(name);
}
