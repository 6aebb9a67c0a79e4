#include "ctl/command.h"

#include "base/str.h"

const struct command COMMANDS[] = {
    {"check", "", "read every configuration file and print what is wrong", cmd_check},
    {"status", "", "what the service is doing", cmd_status},
    {"deliveries", "[--failed] [--limit N]", "webhooks, newest first", cmd_deliveries},
    {"replay", "GUID", "plan a delivery again; nothing is dispatched twice", cmd_replay},
    {"dispatches", "[--pr N] [--limit N]", "what went to whom, newest first", cmd_dispatches},
    {"comment preview", "PR [--markdown]", "the comment of a pull request as it would be now",
	cmd_comment_preview},
    {"backup", "FILE", "a consistent copy of the database, while it is in use", cmd_backup},
    {NULL, NULL, NULL, NULL},
};

int command_usage(const char *name)
{
	for (const struct command *c = COMMANDS; c->name; c++)
		if (str_eq(c->name, name))
			fprintf(stderr, "Usage: outpostctl [-c FILE] [--json] %s%s%s\n", c->name,
			    *c->usage ? " " : "", c->usage);
	return EXIT_USAGE;
}
