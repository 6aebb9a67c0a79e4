/* The process that runs a job's steps: how the agent starts it, and what it does. It is in a
 * session of its own and holds nothing of the agent's, so it lives on when the agent dies. */
#ifndef AGENT_JOB_PROCESS_H
#define AGENT_JOB_PROCESS_H

#include <sys/types.h>

#include "base/err.h"

/* Starts `outpost-runner -c CONFIG --job FOLDER`: this program's own file, also when a newer one
 * has taken its name meanwhile. What it says goes to FOLDER/job-process.err. */
int job_process_start(
    const char *config_path, const char *folder, pid_t *ret_pid, struct error *e) MUST_CHECK;

/* What --job does; the exit code. */
int job_process_main(const char *config_path, const char *folder);

#endif
