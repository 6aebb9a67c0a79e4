/* One job while its process runs it: the state that the files of this folder share, and the order of its life.
 * result.json is written last, after everything that it speaks of is on disk, so a reader of it may believe the rest.
 *
 * Thread: the only one of the job's process. Every call blocks. */
#pragma once

#include "config/runner_config.h"
#include "model/runner_protocol.h"
#include "steps/child.h"
#include "steps/job_folder.h"
#include "steps/job_log.h"

/* Delays that a test shortens. */
struct steps_pace {
	int64_t kill_after_ms; /* from SIGTERM to SIGKILL */
	int64_t retry_ms;      /* before a failed fetch is tried again; four times that later on */
};

struct job {
	const struct runner_config *config;
	struct steps_pace pace;
	/* real paths: a program finds the same file at each of them */
	char *folder, *work, *temporary, *results, *change_file;
	char *tests_file; /* NULL: the job is not an experiment, and all tests run */
	char *git_home;   /* git's HOME: holds only our .gitconfig */
	char **mirrors;   /* the work tree and its submodules borrow objects from them; NULL: none */
	struct lease_offer offer;
	struct masks *masks;
	struct job_log *log;
	struct stop stop;
	int64_t until_mono_ms; /* the end of the job's time */
	struct job_result result;
};

/* The rest of the job's time, at least 0. */
int64_t job_time_left(const struct job *j);

/* Sets how the job ends, unless that is set already. */
void job_conclude(struct job *j, const char *conclusion, const char *fmt, ...) PRINTF(3, 4);

/* Runs the job in `folder` to its end; see steps_run(). */
int job_run(
    const struct runner_config *c, const char *folder, const struct steps_pace *pace, struct error *e) MUST_CHECK;

/* ---- checkout.c ---- */
/* Checks the commit under test out in the job's work folder, with its submodules if the configuration wants them.
 * ERR_CANCELLED, ERR_TIMEOUT; every other error means that the job cannot start. *e is git's own last error. */
int checkout(struct job *j, struct error *e) MUST_CHECK;

/* ---- step.c ---- */
/* Runs the step, until its processes have ended, and adds its outcome to j->result. *ret_ok: it exited with 0
 * and the next step may run. Otherwise the job's conclusion is set. */
void step_run(struct job *j, const struct runner_step *step, bool *ret_ok);
