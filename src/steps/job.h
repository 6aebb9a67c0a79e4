/* One job on its way through steps_run(); shared by the files that take it there. */
#ifndef STEPS_JOB_H
#define STEPS_JOB_H

#include <stdint.h>

#include "config/runner_config.h"
#include "model/runner_protocol.h"
#include "steps/child.h"
#include "steps/job_folder.h"
#include "steps/job_log.h"
#include "steps/masks.h"

/* How long things take that a test does not want to wait for. */
struct steps_pace {
	int64_t kill_after_ms; /* from SIGTERM to SIGKILL */
	int64_t retry_ms;      /* before a failed fetch is tried again; four times that later on */
};

struct job {
	const struct runner_config *config;
	struct steps_pace pace;
	/* real paths, so that what programs are told is what they find */
	char *folder, *work, *temporary, *results, *change_file;
	char *tests_file; /* NULL: the job is no experiment, all tests run */
	char *git_home;   /* git's HOME: nothing but .gitconfig, ours */
	char **mirrors;   /* what the work tree and its submodules borrow from; NULL: nothing */
	struct lease_offer offer;
	struct masks *masks;
	struct job_log *log;
	struct stop stop;
	int64_t until_mono_ms; /* of all the work */
	struct job_result result;
};

/* What is left of the job's time, at least 0. */
int64_t job_time_left(const struct job *j);

/* steps_run() with another pace. */
int job_run(const struct runner_config *c, const char *folder, const struct steps_pace *pace,
    struct error *e) MUST_CHECK;

#endif
