/* outpost-runner: its command line. */
#include <getopt.h>

#include "agent/agent.h"

enum agent_mode {
	MODE_RUN,
	MODE_ONCE,  /* --once: one job, then end */
	MODE_CHECK, /* --check */
	MODE_JOB,   /* --job FOLDER: the process that runs the steps; for the agent, not for people */
};

static const char USAGE[] = "Usage: outpost-runner -c FILE [--check [--online] | --once]\n"
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

int main(int argc, char **argv)
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
	const char *config_path = NULL, *job_folder = NULL;
	enum agent_mode mode = MODE_RUN;
	bool is_online = false;
	int c, n_modes = 0;

	while ((c = getopt_long(argc, argv, "c:h", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			config_path = optarg;
			break;
		case 'k':
		case 'o':
		case 'j':
			mode = c == 'k' ? MODE_CHECK : c == 'o' ? MODE_ONCE : MODE_JOB;
			job_folder = c == 'j' ? optarg : NULL;
			n_modes++;
			break;
		case 'n':
			is_online = true;
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
	if (is_online && mode != MODE_CHECK)
		return print_usage_error("--online goes with --check only", "");
	if (!config_path)
		return print_usage_error("which configuration? Give -c FILE.", "");
	if (mode == MODE_CHECK)
		return agent_check(config_path, is_online);
	if (mode == MODE_JOB)
		return job_process_main(config_path, job_folder);
	return agent_run(config_path, mode == MODE_ONCE ? AGENT_ONCE : AGENT_UNTIL_STOPPED);
}
