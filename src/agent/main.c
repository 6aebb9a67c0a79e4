/* outpost-runner: its command line. */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include "agent/agent.h"

enum agent_mode {
	MODE_RUN,
	MODE_ONCE,  /* --once: one job, then end */
	MODE_CHECK, /* --check */
	MODE_JOB, /* --job FOLDER: the process that runs the steps; for the agent, not for people */
};

struct options {
	const char *config_path; /* borrowed from argv */
	const char *job_folder;  /* MODE_JOB */
	enum agent_mode mode;
	bool is_online; /* MODE_CHECK: --online */
};

static const char USAGE[] =
    "Usage: outpost-runner -c FILE [--check [--online] | --once]\n"
    "\n"
    "Takes work for one accelerator from an Outpost, runs it on this machine and reports\n"
    "it. Connects out only. Runs in the foreground.\n"
    "\n"
    "  -c, --config FILE  the configuration, runner.yml\n"
    "      --check        check the configuration, the sandbox, git and the work folder,\n"
    "                     print every mistake, and exit 0 or 1; takes no work\n"
    "      --online       with --check: also check with the server the token, the labels,\n"
    "                     waiting work, the clock and the version\n"
    "      --once         take one job, report it, and exit; 1 if the server refuses\n"
    "                     this machine\n"
    "      --version      print the version\n"
    "      --help         print this\n"
    "\n"
    "After SIGTERM it claims no more work and finishes the current job, or returns it after\n"
    "`drain`; a second SIGTERM returns it at once. SIGHUP reads the token again.\n";

static int print_usage_error(const char *what, const char *value)
{
	fprintf(stderr, "outpost-runner: %s%s\nTry 'outpost-runner --help'.\n", what, value);
	return 2;
}

/* Returns -1 if the program goes on, else its exit code: 0 after --help and --version, or 2 after a
 * mistake, which stderr explains. */
static int parse_options(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = {
	    {"config", required_argument, NULL, 'c'},
	    {"check", no_argument, NULL, 'k'},
	    {"online", no_argument, NULL, 'n'},
	    {"once", no_argument, NULL, 'o'},
	    {"job", required_argument, NULL, 'j'},
	    {"version", no_argument, NULL, 'V'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	int c, n_modes = 0;

	*ret = (struct options){0};
	while ((c = getopt_long(argc, argv, "c:h", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			ret->config_path = optarg;
			break;
		case 'k':
		case 'o':
		case 'j':
			ret->mode = c == 'k' ? MODE_CHECK : c == 'o' ? MODE_ONCE : MODE_JOB;
			ret->job_folder = c == 'j' ? optarg : NULL;
			n_modes++;
			break;
		case 'n':
			ret->is_online = true;
			break;
		case 'V':
			puts("outpost-runner " OUTPOST_VERSION);
			return 0;
		case 'h':
			fputs(USAGE, stdout);
			return 0;
		default:
			fputs("Try 'outpost-runner --help'.\n", stderr);
			return 2;
		}
	}
	if (optind < argc)
		return print_usage_error("unexpected argument ", argv[optind]);
	if (n_modes > 1)
		return print_usage_error("--check and --once do not go together", "");
	if (ret->is_online && ret->mode != MODE_CHECK)
		return print_usage_error("--online goes with --check only", "");
	if (!ret->config_path)
		return print_usage_error("which configuration? Give -c FILE.", "");
	return -1;
}

int main(int argc, char **argv)
{
	struct options options;
	int exit_code = parse_options(argc, argv, &options);

	if (exit_code >= 0)
		return exit_code;
	switch (options.mode) {
	case MODE_CHECK:
		return agent_check(options.config_path, options.is_online);
	case MODE_JOB:
		return job_process_main(options.config_path, options.job_folder);
	case MODE_ONCE:
		return agent_run(options.config_path, AGENT_ONCE);
	case MODE_RUN:
	default:
		return agent_run(options.config_path, AGENT_UNTIL_STOPPED);
	}
}
