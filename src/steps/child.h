/* One program, run to its end together with all that it starts.
 *
 * Between us and the program stands a supervisor, forked for it: it adopts the program's orphans,
 * ends them all when the program has ended, and also when we are gone, even by SIGKILL. */
#ifndef STEPS_CHILD_H
#define STEPS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "steps/sandbox.h"

/* Where a wish to stop everything comes from. Once seen it stays. */
struct stop {
	int fd; /* a signalfd(); -1: there is none */
	bool is_wanted;
};

struct child_spec {
	const char *const *argv; /* argv[0] is looked up in our own PATH */
	const char *const *env;
	const char *folder; /* to start in */
	/* bubblewrap with --new-session and --json-status-fd CHILD_STATUS_FD: it says there which
	 * process group inside has to hear of SIGTERM, and whether it came as far as running
	 * anything. It gets the sandbox's two files as CHILD_ARGS_FD and CHILD_FILTER_FD. NULL:
	 * another program */
	const struct sandbox *sandbox;
	int64_t timeout_ms;    /* < 0: none */
	int64_t kill_after_ms; /* from SIGTERM to SIGKILL */
	struct stop *stop;     /* may be NULL */
	/* what it writes to standard output and error; may be NULL */
	void (*on_output)(void *ctx, const char *p, size_t n);
	void *ctx;
};

enum { CHILD_STATUS_FD = 3, CHILD_ARGS_FD, CHILD_FILTER_FD };

struct child_end {
	int exit_code; /* -1: it did not exit by itself */
	int signal;    /* 0: none */
	bool is_timeout, is_cancelled;
	bool is_set_up;     /* false: it is bubblewrap's own failure, not the program's */
	int n_left;         /* processes that it left behind and that were ended */
	bool has_survivors; /* some could not be ended */
	int64_t duration_ms;
};

/* Blocking. Fails only where nothing was run: the program is not there, no process to be had.
 * 0: see *ret. */
int child_run(const struct child_spec *s, struct child_end *ret, struct error *e) MUST_CHECK;

/* Waits, but not on when a stop is wanted. True when it is. */
bool stop_wait(struct stop *s, int64_t ms);

#endif
