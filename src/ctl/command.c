#include "ctl/command.h"

const struct command COMMANDS[] = {
    {"check", "", "validate the configuration", cmd_check},
    {"status", "", "show the state of the service", cmd_status},
    {"deliveries", "[--failed] [--limit N]", "list webhooks, newest first", cmd_deliveries},
    {"replay", "GUID", "process a delivery again", cmd_replay},
    {"dispatches", "[--pr N] [--limit N]", "list dispatches, newest first", cmd_dispatches},
    {"retest", "CHANGE [ACCELERATOR]", "re-run a PR's head or a commit", cmd_retest},
    {"comment preview", "PR [--markdown]", "print a pull request's comment", cmd_comment_preview},
    {"report validate", "FILE [--format F]", "check a report; F: junit, ctrf, outpost", cmd_report_validate},
    {"report push", "--job ID FILE [--url URL] [--token-file FILE]", "send a job's report; token: OUTPOST_TOKEN",
	cmd_report_push},
    {"runner add", "NAME --accelerator A", "register a machine and print its token", cmd_runner_add},
    {"runner list", "[--accelerator A]", "list machines and their jobs", cmd_runner_list},
    {"runner revoke", "NAME --accelerator A [--id N]", "revoke a machine's tokens", cmd_runner_revoke},
    {"token issue", "ACCELERATOR", "print a new token for a vendor's CI", cmd_token_issue},
    {"token list", "[ACCELERATOR]", "list vendors' tokens and their last use", cmd_token_list},
    {"token revoke", "ACCELERATOR [--id N]", "revoke a vendor's tokens", cmd_token_revoke},
    {"identities forget", "REPOSITORY", "record the ids of its next valid token", cmd_identities_forget},
    {"identities", "", "list the ids of reporting repositories", cmd_identities},
    {"known add", "--test PATTERN [--accelerator A] --url ISSUE [--until DATE]",
	"link failures of tests to a known issue", cmd_known_add},
    {"known list", "", "list known issues and their matches", cmd_known_list},
    {"known remove", "ID", "remove a known issue", cmd_known_remove},
    {"nightly run", "ACCELERATOR", "start its periodic run now", cmd_nightly_run},
    {"nightly skip", "ACCELERATOR", "skip its next periodic run", cmd_nightly_skip},
    {"nightly", "", "list periodic runs: the next, the last", cmd_nightly},
    {"import-allowlist", "FILE [--to DIRECTORY]", "convert CRCR's allowlist", cmd_import_allowlist},
    {"backup", "FILE", "copy the database while it is in use", cmd_backup},
    {NULL, NULL, NULL, NULL},
};

void command_print_usage(FILE *out, const char *name)
{
	size_t n = strlen(name);

	for (const struct command *c = COMMANDS; c->name; c++)
		if (!strncmp(c->name, name, n) && (c->name[n] == '\0' || c->name[n] == ' '))
			fprintf(out, "Usage: outpostctl [-c FILE] [--json] %s%s%s\n", c->name, *c->usage ? " " : "",
			    c->usage);
}

int command_usage(const char *name)
{
	command_print_usage(stderr, name);
	return EXIT_USAGE;
}

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

bool argument_number(const char *command, const char *what, const char *text, int64_t min, int64_t max, int64_t *ret)
{
	int64_t n;

	if (parse_int64(text, &n) == 0 && n >= min && (!max || n <= max)) {
		*ret = n;
		return true;
	}
	if (max)
		(void)command_wrong(command, "%s %s: must be a whole number from %lld to %lld", what, text,
		    (long long)min, (long long)max);
	else
		(void)command_wrong(command, "%s %s: must be a whole number, %lld or more", what, text, (long long)min);
	return false;
}

/* value is NULL where the option is the last word. */
static bool set_option(const char *command, const struct argument_option *o, const char *value)
{
	struct buf choices = BUF_INIT(1024);
	bool is_choice = !o->choices;

	if (!value || (o->text && *o->text)) {
		(void)command_wrong(command, "%s %s", o->name, value ? "is given twice" : "needs a value");
		return false;
	}
	if (o->number)
		return argument_number(command, o->name, value, o->min, o->max, o->number);
	for (const char *const *c = o->choices; c && *c; c++) {
		buf_appendf(&choices, "%s%s", c == o->choices ? "" : ", ", *c);
		is_choice |= str_eq(*c, value);
	}
	if (is_choice)
		*o->text = value;
	else
		(void)command_wrong(command, "%s %s: must be one of %s", o->name, value, buf_str(&choices));
	buf_release(&choices);
	return is_choice;
}

bool arguments_read(const char *command, int argc, char **argv, const struct argument_option *options,
    const char **words, int n_min, int n_max)
{
	int n = 0;

	for (int i = 0; i < argc; i++) {
		const struct argument_option *o = options;

		while (o && o->name && !str_eq(argv[i], o->name))
			o++;
		if (o && o->name && o->flag) {
			*o->flag = true;
		} else if (o && o->name) {
			if (!set_option(command, o, i + 1 < argc ? argv[i + 1] : NULL))
				return false;
			i++;
		} else if (argv[i][0] == '-' || argv[i][0] == '\0' || n == n_max) {
			(void)command_wrong(command, "unexpected argument '%s'", argv[i]);
			return false;
		} else {
			words[n++] = argv[i];
		}
	}
	if (n < n_min)
		(void)command_usage(command);
	return n >= n_min;
}

bool arguments_none(const char *command, int argc, char **argv)
{
	return arguments_read(command, argc, argv, NULL, NULL, 0, 0);
}
