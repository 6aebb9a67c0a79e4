/* outpostctl: from the command line to a command. */

#include <sys/ioctl.h>

#include "ctl/command.h"

static const char DEFAULT_CONFIG[] = "/etc/outpost/outpost.yml";

enum { HELP_COLUMN = 37 };

/* All helps begin in one column. A usage that would reach into it gets a line of its own, so that no
 * line is wider than 80. */
static void print_command(FILE *out, const struct command *c)
{
	int width = fprintf(out, "  %s%s%s", c->name, *c->usage ? " " : "", c->usage);

	if (width + 1 > HELP_COLUMN) {
		fputc('\n', out);
		width = 0;
	}
	fprintf(out, "%*s%s\n", HELP_COLUMN - width, "", c->help);
}

static void print_help(FILE *out)
{
	fputs("Usage: outpostctl [-c FILE] [--json] COMMAND\n\n", out);
	for (const struct command *c = COMMANDS; c->name; c++)
		print_command(out, c);
	fprintf(out,
	    "\n  -c, --config FILE  outpostd's configuration (default %s)\n"
	    "      --json         print JSON\n"
	    "      --version, --help\n"
	    "\nExit codes: 0 done, 1 failed, 2 usage.\n",
	    DEFAULT_CONFIG);
}

/* The command that argv begins with; *ret_n is the number of words in its name. */
static const struct command *find_command(int argc, char **argv, int *ret_n)
{
	for (const struct command *c = COMMANDS; c->name; c++) {
		const char *space = strchr(c->name, ' ');

		*ret_n = space ? 2 : 1;
		if (!space && str_eq(argv[0], c->name))
			return c;
		if (space && argc > 1 && strlen(argv[0]) == (size_t)(space - c->name) &&
		    str_has_prefix(c->name, argv[0]) && str_eq(argv[1], space + 1))
			return c;
	}
	return NULL;
}

/* "runner" alone, or with an unknown second word, lists the commands that begin with it. Any other
 * word gets the nearest name as a suggestion. */
static int refuse_command(const char *word)
{
	const char *names[32] = {NULL};
	size_t n_names = 0, n_listed = 0, n = strlen(word);

	for (const struct command *c = COMMANDS; c->name; c++) {
		if (n_names + 1 < ARRAY_LEN(names))
			names[n_names++] = c->name;
		if (strncmp(c->name, word, n) || c->name[n] != ' ')
			continue;
		if (n_listed++ == 0)
			fprintf(stderr, "outpostctl: '%s' is one of:\n", word);
		print_command(stderr, c);
	}
	if (n_listed)
		return EXIT_USAGE;
	const char *near = str_nearest(word, names);
	fprintf(stderr, "outpostctl: unknown command '%s'%s%s%s\n", word, near ? "; did you mean '" : "",
	    near ? near : "", near ? "'?" : "");
	fputs("Try 'outpostctl --help'.\n", stderr);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	struct ctl ctl = {.config_path = DEFAULT_CONFIG, .width = 80};
	const char *no_colour = getenv("NO_COLOR");
	const struct command *command;
	struct winsize size;
	const struct program program = {"outpostctl", print_help,
	    (const struct program_option[]){
		{"--config", "-c", .text = &ctl.config_path, .value = "file"},
		{"--json", .flag = &ctl.is_json},
		{NULL},
	    }};
	int i = options_read(&program, argc, argv), n_words;

	ctl.is_terminal = isatty(STDOUT_FILENO);
	ctl.has_colour = ctl.is_terminal && !(no_colour && *no_colour);
	if (ctl.is_terminal && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col >= 40)
		ctl.width = size.ws_col;
	if (i == argc) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	command = find_command(argc - i, argv + i, &n_words);
	if (!command)
		return refuse_command(argv[i]);
	i += n_words;
	/* --json may also be the last word. */
	if (i < argc && str_eq(argv[argc - 1], "--json")) {
		ctl.is_json = true;
		argc--;
	}
	if (i < argc && (str_eq(argv[i], "--help") || str_eq(argv[i], "-h"))) {
		command_print_usage(stdout, command->name);
		printf("\n%s\n", command->help);
		return EXIT_DONE;
	}
	/* The request is JSON, which carries UTF-8 only. An accelerator name that got lost on the way would
	 * select all accelerators. */
	for (int k = i; k < argc; k++)
		if (!utf8_is_valid(argv[k], strlen(argv[k]))) {
			fprintf(stderr, "outpostctl: argument %d is not UTF-8\n", k - i + 1);
			return EXIT_USAGE;
		}
	ctl.command = command->name;
	ctl.argc = argc - i;
	ctl.argv = argv + i;
	if (command->n_max != OWN_OPTIONS && !arguments_read(&ctl, NULL, ctl.words, command->n_min, command->n_max))
		return EXIT_USAGE;
	return command->run(&ctl);
}
