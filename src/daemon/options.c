#include "daemon/options.h"

#include <getopt.h>

#include "base/version.h"

static const char USAGE[] =
    "Usage: outpostd -c FILE [--check]\n"
    "\n"
    "Takes GitHub's webhooks, has every registered accelerator tested, and keeps one\n"
    "results comment on each pull request. Runs in the foreground.\n"
    "\n"
    "  -c, --config FILE  the configuration, outpost.yml\n"
    "      --check        read every configuration file, print what is wrong as\n"
    "                     file:line: text, and exit 0 or 1; touches nothing\n"
    "      --version      print the version\n"
    "      --help         print this\n"
    "\n"
    "SIGHUP reads the configuration again, all or nothing. SIGTERM ends cleanly.\n";

int options_parse(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = {
	    {"config", required_argument, NULL, 'c'},
	    {"check", no_argument, NULL, 'k'},
	    {"version", no_argument, NULL, 'V'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	int c;

	*ret = (struct options){0};
	while ((c = getopt_long(argc, argv, "c:h", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			ret->config_path = optarg;
			break;
		case 'k':
			ret->is_check = true;
			break;
		case 'V':
			puts("outpostd " OUTPOST_VERSION);
			return 0;
		case 'h':
			fputs(USAGE, stdout);
			return 0;
		default:
			fputs("Try 'outpostd --help'.\n", stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "outpostd: unexpected argument '%s'\nTry 'outpostd --help'.\n",
		    argv[optind]);
		return 2;
	}
	if (!ret->config_path) {
		fputs("outpostd: which configuration? Give -c FILE.\nTry 'outpostd --help'.\n",
		    stderr);
		return 2;
	}
	return -1;
}
