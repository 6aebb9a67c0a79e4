/* Runs one program until it and all processes that it started have ended.
 *
 * A supervisor process is forked between the job's process and the program. It adopts the program's orphans and ends
 * them all when the program has ended, and also when the job's process is gone, even by SIGKILL.
 *
 * Thread: the only thread of the job's process, because it forks. Every call blocks. */
#pragma once

#include "steps/sandbox.h"

/* The request to stop everything. Once it was seen, it stays. */
struct stop {
	int fd; /* a signalfd(), owned by the caller; -1: none */
	bool is_requested;
};

struct child_spec {
	const char *const *argv; /* argv[0] is looked up in our own PATH */
	const char *const *env;
	const char *folder; /* the working folder */
	/* Not NULL: the program is bubblewrap with --new-session and --json-status-fd CHILD_STATUS_FD.
	 * It writes there which process group inside gets SIGTERM, and if it ran anything at all. It
	 * gets the sandbox's two files as CHILD_ARGS_FD and CHILD_FILTER_FD. */
	const struct sandbox *sandbox;
	int64_t timeout_ms;    /* < 0: none */
	int64_t kill_after_ms; /* from SIGTERM to SIGKILL */
	struct stop *stop;     /* may be NULL */
	/* gets what the program writes to standard output and error; may be NULL */
	void (*on_output)(void *ctx, const char *p, size_t n);
	void *ctx;
};

enum { CHILD_STATUS_FD = 3, CHILD_ARGS_FD, CHILD_FILTER_FD };

struct child_end {
	int exit_code; /* -1: it did not exit by itself */
	int signal;    /* 0: none */
	bool is_timeout, is_cancelled;
	bool is_set_up;     /* false: bubblewrap itself failed, not the program inside */
	int n_left;         /* processes that it left behind and that were killed */
	bool has_survivors; /* some could not be killed */
	int64_t duration_ms;
};

/* 0: the program ran, and *ret says how it ended. Fails only if nothing was run: ERR_NOT_FOUND (no such
 * program), ERR_IO (no descriptor or process available). */
int child_run(const struct child_spec *s, struct child_end *ret, struct error *e) MUST_CHECK;

/* The same for a program that tests the machine: it gets a basic system's variables instead of s->env. */
int child_run_check(const struct child_spec *s, struct child_end *ret, struct error *e) MUST_CHECK;

/* Waits `ms`, or until a stop is requested. True if it is. */
bool stop_wait(struct stop *s, int64_t ms);

/* ---- the variables that a program gets: never this process's own as a whole, which may hold anything ---- */

#define ENVIRONMENT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Zero at first. */
struct environment {
	char **list; /* "NAME=value", NULL-terminated: for execve() */
	size_t n;
};

/* Adds a variable; a later value of a name replaces the earlier one. */
void environment_set(struct environment *v, const char *name, const char *value);
/* Adds our own value of the variable; fallback NULL: leaves it out if we have none. */
void environment_copy(struct environment *v, const char *name, const char *fallback);
/* Adds our own values of all names, which end with NULL. */
void environment_copy_all(struct environment *v, const char *const *names);
/* Frees it and wipes its memory, which holds secrets. */
void environment_release(struct environment *v);

/* ---- descendants.c: ends every process that this one started, also those that detached. Only one thread of the process may
 * use it, because a child may be reaped only once ---- */

/* Makes orphans of this process's descendants its own children instead of init's. */
void descendants_adopt(void);

struct descendants {
	pid_t watched; /* the child whose end is recorded; 0: none */
	bool is_ended; /* it was reaped, and `status` is that of waitpid() */
	int status;
	int n_killed; /* how many reaped children SIGKILL ended, without the watched one */
};

/* Reaps the children that have ended. True if no child is left. Because every orphan becomes a child, no
 * descendant is left then either. */
bool descendants_reap(struct descendants *d);
/* Kills (SIGKILL) and reaps children until none is left, for at most within_ms; blocks. True: none is left.
 * Only after descendants_adopt(), by a process that needs no child any more. */
bool descendants_end(struct descendants *d, int64_t within_ms);
