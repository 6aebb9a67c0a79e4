/* The sandbox of a step: bubblewrap around it, a filter of system calls, and a keyring of its own.
 * docs/sandbox.md describes what a step sees of the machine; the two must agree.
 *
 * Thread: the only one of its process. Every call blocks for a short time. */
#pragma once

#include "config/runner_config.h"

/* Borrowed paths, real ones. */
struct sandbox_places {
	const char *work;        /* writable, at its own path */
	const char *temporary;   /* becomes /tmp */
	const char *change_file; /* readable; may be NULL */
	const char *tests_file;  /* readable; may be NULL */
	char *const *mirrors;    /* readable; may be NULL */
};

struct sandbox {
	char **argv; /* runs /bin/sh -c RUN inside; NULL-terminated */
	/* Two files for bubblewrap to read from the beginning. args_fd holds its other arguments: they name the
	 * machine's folders, and the step can read bubblewrap's command line. filter_fd holds the filter of system
	 * calls, which lets everything pass except a short list of calls that no test needs and that attacks on the
	 * kernel begin with. It covers the machine's 64-bit calls and the 32-bit calls that the same kernel offers. */
	int args_fd, filter_fd;
};

/* Makes a sandbox for a child_spec with the same two descriptors. The program can start once for each
 * sandbox_open(). Call sandbox_close() also after a failure. ERR_IO. */
int sandbox_open(const struct runner_config *c, const struct sandbox_places *places, const char *run,
    struct sandbox *ret, struct error *e) MUST_CHECK;
void sandbox_close(struct sandbox *s);

/* Gives this process, and every program that it starts from now on, a new and empty session keyring
 * (keyrings(7)). A process hands its keyring down, so without this a Kerberos ticket of the service would
 * reach the steps, and a key that a step leaves would reach later jobs. Returns 0 also if the kernel gives
 * this process no access to keyrings at all, because the steps have none then either. ERR_DENIED. The user
 * keyring is another one: without a sandbox the steps can reach it. */
int keyring_start_session(struct error *e) MUST_CHECK;
