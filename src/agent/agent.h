/* outpost-runner's life: claim, run, stream, report, again. It talks to the server and keeps the
 * journal; the steps run in a process of their own (steps/steps.h), which it finds again after
 * a restart.
 *
 * Thread: the loop's. Small local files are read and written on it: this is one machine's agent,
 * not a server. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

enum agent_end {
	AGENT_UNTIL_STOPPED, /* by SIGTERM or SIGINT */
	AGENT_ONCE,          /* after the first job that was taken and reported */
};

/* Returns the exit code: 0 after a drain; 1 when it could not start, or with AGENT_ONCE when the
 * server refused the machine (the log says why). */
int agent_run(const char *config_path, enum agent_end end);

#endif
