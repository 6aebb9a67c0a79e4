/* `outpost-runner --check`: is the file right, and can this machine do what it says? It asks the
 * server only with --online, so that it can be run before there is one. */
#ifndef AGENT_CHECK_H
#define AGENT_CHECK_H

#include "config/runner_config.h"

/* The exit code: 0, or 1 with every mistake on stderr. */
int agent_check(const char *config_path, bool is_online);

/* `--online`: asks the server with the machine's token and prints a line for each thing that was
 * checked: whether it answers, the token, the labels, waiting work, the clock, the version. False
 * when something is wrong. Blocks. */
bool agent_check_online(const struct runner_config *c);

/* The file, and what it names. NULL after the mistakes went to stderr. runner_config_free(). */
struct runner_config *agent_load_config(const char *config_path);
/* Makes the work folder where it is missing. */
int agent_make_work_dir(const struct runner_config *c, struct error *e) MUST_CHECK;

#endif
