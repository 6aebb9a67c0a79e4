/* The process between a job and one program of it; see child.h. */
#ifndef STEPS_SUPERVISOR_H
#define STEPS_SUPERVISOR_H

#include "steps/child.h"

/* Job to supervisor, a byte each. The end of the connection means SUPERVISOR_KILL. */
enum { SUPERVISOR_TERMINATE = 'T', SUPERVISOR_KILL = 'K' };

/* Supervisor to job, a packet each; then it exits. */
struct supervisor_word {
	enum { WORD_NOT_STARTED, WORD_ENDED, WORD_ALL_GONE } kind;
	int value; /* NOT_STARTED: errno; ENDED: waitpid()'s status; ALL_GONE: how many were left */
	bool has_survivors; /* ALL_GONE */
	bool is_set_up;     /* ENDED: see struct child_end */
};

/* Runs the program with output_fd as its output; talks over `socket`. In the forked process. */
void supervisor_run(const struct child_spec *s, int socket, int output_fd)
    __attribute__((noreturn));

#endif
