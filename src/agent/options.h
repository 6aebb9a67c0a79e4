/* outpost-runner's command line. */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include <stdbool.h>

enum agent_mode {
	MODE_RUN,
	MODE_ONCE,  /* --once: one job, then end */
	MODE_CHECK, /* --check */
	MODE_JOB,   /* --job FOLDER: the process that runs the steps; not for people */
};

struct options {
	const char *config_path; /* borrowed from argv */
	const char *job_folder;  /* MODE_JOB */
	enum agent_mode mode;
	bool is_online; /* MODE_CHECK: --online */
};

/* Returns -1 when the program goes on, else its exit code: --help and --version were
 * answered (0), or the line was wrong and stderr says how (2). */
int options_parse(int argc, char **argv, struct options *ret);

#endif
