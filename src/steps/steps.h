/* Runs one job to its end: checkout, steps, report. The process of its own that does nothing else
 * (`outpost-runner -c FILE --job FOLDER`): it outlives the agent that started it, and everything
 * it started dies with it, however far it detached. It never talks to the server. */
#ifndef STEPS_STEPS_H
#define STEPS_STEPS_H

#include "base/err.h"
#include "config/runner_config.h"

enum { STEPS_KILL_AFTER_MS = 10 * 1000 }; /* SIGTERM to the group, SIGKILL so much later */

/* Blocking. `folder` holds offer.json; all else that job_folder.h lists is made here. SIGTERM
 * means: cancel (the running step ends, conclusion `cancelled`). Whatever happens, result.json is
 * there when it returns 0. An error: not even that could be written. */
int steps_run(const struct runner_config *c, const char *folder, struct error *e) MUST_CHECK;

/* What must be so before a machine takes work: bubblewrap is there and works where the config
 * asks for it, git where there is a checkout, the work folder can be written to. The error says
 * how to mend it. Blocking. */
int steps_check(const struct runner_config *c, struct error *e) MUST_CHECK;

/* For want of room: forgets the submodules that were kept for later jobs. While no job runs.
 * Blocking, and slow. */
void steps_make_room(const char *work_dir);

#endif
