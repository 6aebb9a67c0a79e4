/* Who works in a job's folder: one process, known by a lock that the kernel gives back when the
 * last of it is gone. */
#ifndef STEPS_JOB_LOCK_H
#define STEPS_JOB_LOCK_H

#include "base/err.h"

/* The descriptor that holds the lock, close-on-exec. Forked children share it on purpose: the
 * folder is free only when also they are gone. ERR_BUSY: another process has it. */
int job_lock_take(const char *folder, int *ret_fd, struct error *e) MUST_CHECK;

#endif
