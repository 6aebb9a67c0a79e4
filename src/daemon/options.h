/* outpostd's command line. */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdbool.h>

struct options {
	const char *config_path; /* borrowed from argv */
	bool is_check;           /* --check: read every file, touch nothing */
};

/* Returns -1 when the program goes on, else its exit code: --help and --version were
 * answered (0), or the line was wrong and stderr says how (2). */
int options_parse(int argc, char **argv, struct options *ret);

#endif
