/* The git program, run for a job. It obeys the settings that are written here and those of
 * checkout.git_config, and nothing else: no configuration of the user or the system, no hook, no
 * filter, no credential helper, no ~/.netrc. It asks no person anything and follows no redirect.
 * Its progress goes to the job's log once a second. */
#ifndef STEPS_GIT_COMMAND_H
#define STEPS_GIT_COMMAND_H

#include "steps/job.h"

struct git_end {
	bool is_done;       /* it exited with 0 */
	bool is_missing;    /* the other side does not have, or does not give, what was asked for */
	bool is_redirect;   /* the other side said that it is elsewhere */
	bool is_final;      /* trying again is of no use */
	char message[1024]; /* the line that says why not; "" when done */
};

/* Who chose the URL that git fetches from, which decides what it may use for it. */
struct git_remote {
	enum {
		/* checkout.git_url: the operator's proxies, ssh keys and checkout.git_config */
		GIT_OPERATORS_URL,
		/* a submodule's: `proxy` and no other way out, no login of any kind */
		GIT_CHANGES_URL,
	} kind;
	const char *proxy; /* GIT_CHANGES_URL: a proxy's URL */
	bool is_plain;     /* GIT_CHANGES_URL: http instead of https */
};

/* Blocking. `args` end with NULL. ERR_CANCELLED, ERR_TIMEOUT: the job's time is over; otherwise 0
 * or it could not be run at all. The first may use the network for this remote; all others may
 * not use it. */
int git_fetch(struct job *j, const char *folder, const struct git_remote *remote,
    const char *const *args, struct git_end *ret, struct error *e) MUST_CHECK;
int git_run(struct job *j, const char *folder, const char *const *args, struct git_end *ret,
    struct error *e) MUST_CHECK;
/* The same, and fails with the message when git does. */
int git_must(
    struct job *j, const char *folder, const char *const *args, struct error *e) MUST_CHECK;
/* What it prints, without the last line break; "" when it fails. Nothing of it is logged.
 * free(). */
int git_ask(struct job *j, const char *folder, const char *const *args, char **ret,
    struct error *e) MUST_CHECK;
/* The same with all of it, which may hold NUL bytes. */
int git_ask_bytes(struct job *j, const char *folder, const char *const *args, char **ret,
    size_t *ret_n, struct error *e) MUST_CHECK;

#endif
