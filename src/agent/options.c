#include "agent/options.h"

#include <getopt.h>

#include "base/version.h"

static const char USAGE[] =
    "Usage: outpost-runner -c FILE [--check [--online] | --once]\n"
    "\n"
    "Takes work for one accelerator from an Outpost, runs it on this machine and reports\n"
    "it. Connects out only. Runs in the foreground.\n"
    "\n"
    "  -c, --config FILE  the configuration, runner.yml\n"
    "      --check        read it, look whether sandbox, git and work folder can be used,\n"
    "                     print what is wrong, and exit 0 or 1; takes no work\n"
    "      --online       with --check: ask the server, too, about the token, the labels,\n"
    "                     waiting work, the clock and the version\n"
    "      --once         take one job, report it, and exit; 1 where the server refuses\n"
    "                     this machine\n"
    "      --version      print the version\n"
    "      --help         print this\n"
    "\n"
    "SIGTERM takes no more work and finishes or hands back the job in hand; a second one\n"
    "hands it back at once. SIGHUP reads the token again.\n";

static int wrong(const char *what, const char *value)
{
	fprintf(stderr, "outpost-runner: %s%s\nTry 'outpost-runner --help'.\n", what, value);
	return 2;
}

int options_parse(int argc, char **argv, struct options *ret)
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
		return wrong("unexpected argument ", argv[optind]);
	if (n_modes > 1)
		return wrong("--check and --once do not go together", "");
	if (ret->is_online && ret->mode != MODE_CHECK)
		return wrong("--online goes with --check only", "");
	if (!ret->config_path)
		return wrong("which configuration? Give -c FILE.", "");
	return -1;
}
