/* The functions for the agent: they run one job to its end (checkout, steps, report), and check the machine before
 * it takes work.
 *
 * A job runs in a process of its own that does nothing else (`outpost-runner -c FILE --job FOLDER`): it
 * outlives the agent that started it, and everything that it started ends with it, also processes that
 * detached. It never talks to the server.
 *
 * Thread: any thread of a program that runs nothing else meanwhile. Every call blocks. */
#pragma once

#include "config/runner_config.h"

enum { STEPS_KILL_AFTER_MS = 10 * 1000 }; /* from SIGTERM to SIGKILL */

/* Runs the job in `folder`, which holds offer.json; makes everything else that job_folder.h lists. SIGTERM
 * cancels: the running step ends, and the conclusion is `cancelled`. When this returns 0, result.json is
 * there, however the job ended. An error: not even that could be written. */
int steps_run(const struct runner_config *c, const char *folder, struct error *e) MUST_CHECK;

/* Checks the machine before it takes work: the work folder, which it makes if it is missing, can be written to, git is
 * there if the job has a checkout, and bubblewrap works if the configuration wants it. *e says how to repair it. */
int steps_check(const struct runner_config *c, struct error *e) MUST_CHECK;

/* Frees disk space: removes the mirrors of all submodules, unless a job has their lock. Slow. In
 * the pool of the agent. */
void steps_make_room(const char *work_dir);
