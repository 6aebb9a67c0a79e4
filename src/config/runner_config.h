/* The configuration of outpost-runner, from its own file. docs/runner.md describes every key.
 *
 * Thread: loading reads files, so before the loop. The configuration does not change afterwards. */
#pragma once

#include "config/network.h"
#include "model/accelerator.h"

enum sandbox_kind { SANDBOX_NONE, SANDBOX_BUBBLEWRAP };

/* The system calls that the sandbox's filter denies. `allow.syscalls` allows them by name: a call, or a group of calls
 * that are useful only together. */
#define GUARDED_CALLS(X)                                                                                               \
	X(ADD_KEY, "add_key")                                                                                          \
	X(BPF, "bpf")                                                                                                  \
	X(IO_URING, "io_uring")                                                                                        \
	X(KEXEC, "kexec")                                                                                              \
	X(KEYCTL, "keyctl")                                                                                            \
	X(MODULES, "modules")                                                                                          \
	X(MOUNT, "mount")                                                                                              \
	X(PERF_EVENT_OPEN, "perf_event_open")                                                                          \
	X(REQUEST_KEY, "request_key")                                                                                  \
	X(TIOCLINUX, "tioclinux")                                                                                      \
	X(TIOCSTI, "tiocsti")                                                                                          \
	X(USER_NAMESPACES, "user_namespaces")                                                                          \
	X(USERFAULTFD, "userfaultfd")

enum guarded_call {
#define GUARDED_CALL_ENUM(id, name) CALL_##id,
	GUARDED_CALLS(GUARDED_CALL_ENUM)
#undef GUARDED_CALL_ENUM
	    N_GUARDED_CALLS
};
/* As the configuration writes it. */
const char *guarded_call_name(enum guarded_call c);

struct runner_step {
	char *name; /* unique; shown to people and in results */
	char *run;  /* given to /bin/sh -c */
	int64_t timeout_ms;
};

struct runner_variable {
	char *name, *value;
};

struct runner_secret {
	char *name;
	struct secret *value;
};

struct runner_config {
	char *path;                   /* made absolute */
	char *server;                 /* without a trailing slash; https, or http to loopback */
	char *name;                   /* this machine, as in `runner add` */
	struct secret *authorization; /* "Authorization: Bearer TOKEN", as the server gets it */
	char *token_file;             /* made absolute; or "credential:NAME" */
	char *ca_file;                /* PEM; NULL: the system's */
	char *accelerator;
	char **labels;  /* NULL-terminated, never NULL */
	char *work_dir; /* made absolute */
	bool has_checkout;
	char *git_url;
	int git_depth; /* 0: all of history */
	bool git_submodules;
	char *git_config; /* git's settings for git_url alone, such as credentials; NULL: none */
	/* private addresses, and those that plain http may go to, for submodules' URLs: the change chooses them */
	struct network_list git_networks;
	char *submodule_proxy; /* the proxy for submodules' hosts; NULL: connect directly */
	enum sandbox_kind sandbox;
	/* bubblewrap: access of the steps besides the read-only system and their work folder */
	bool allow_network;
	char **allow_devices, **allow_read, **allow_write; /* absolute paths, NULL-terminated */
	bool allow_calls[N_GUARDED_CALLS];
	struct runner_step *steps; /* at least one */
	size_t n_steps;
	int64_t timeout_ms;                  /* all steps and the checkout together; default 12h */
	char **report_globs;                 /* NULL-terminated; empty: no report is expected */
	char *report_format;                 /* "junit" (default), "ctrf", "outpost" */
	struct runner_variable *environment; /* `environment: {NAME: value}` for every step */
	size_t n_environment;
	struct runner_secret *secrets; /* `secrets: {NAME: FILE}`: for every step, and masked */
	size_t n_secrets;
	enum visibility visibility; /* the stricter of this and the accelerator's counts */
	int64_t log_max_bytes;      /* default 64 MiB, at most 256 */
	int64_t drain_ms;           /* default 10m */
	int keep_jobs;              /* folders of finished jobs that stay to be looked at; default 3 */
	enum log_level log_level;
	enum log_format log_format;
	char **exposed_files; /* secrets that every user of this machine can read or change; NULL: none */
};

/* Like config_load(): every mistake as "file:line: text", one on a line. */
int runner_config_load(const char *path, struct runner_config **ret, struct buf *messages) MUST_CHECK;
/* The token in `authorization`; borrowed from it. */
const char *runner_config_token(const struct runner_config *c);
/* Reads token_file once more, as `authorization`: it may have been rotated. secret_unref() *ret. */
int runner_config_read_authorization(const struct runner_config *c, struct secret **ret, struct error *e) MUST_CHECK;
void runner_config_free(struct runner_config *c); /* NULL is fine; wipes secrets */
