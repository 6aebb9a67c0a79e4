/* Why a step's program or file was not found: the sandbox does not show all of the machine. */
#ifndef STEPS_HIDDEN_H
#define STEPS_HIDDEN_H

#include "steps/job.h"

/* What the step's last line of output complains about, when it is a path or program that the
 * step's script in the runner's file names, and that exists on this machine but not inside the
 * sandbox. free(); NULL: nothing of the kind. Only the operator's own words are looked up: a
 * change that prints a path learns nothing about the machine. Blocking, runs the sandbox. */
char *hidden_find(struct job *j, const struct runner_step *step, const char *last_line);
/* The setting that shows it, such as "allow: {read: [/opt/suite]}". free(). */
char *hidden_setting(const char *path);

#endif
