/* outpost-runner's own file: contract 7. docs/runner.md has every key.
 *
 * Thread: reads files, so before the loop. Never changed after. */
#ifndef CONFIG_RUNNER_CONFIG_H
#define CONFIG_RUNNER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "model/accelerator.h"

enum sandbox_kind { SANDBOX_NONE, SANDBOX_BUBBLEWRAP };

struct runner_step {
	char *name; /* unique; shown to people and in results */
	char *run;  /* given to /bin/sh -c */
	int64_t timeout_ms;
};

struct runner_variable {
	char *name, *value;
};

struct runner_config {
	char *path;       /* made absolute */
	char *server;     /* without a trailing slash; https, or http to loopback */
	char *name;       /* this machine, as in `runner add` */
	char *token;      /* wiped on release */
	char *token_file; /* made absolute; or "credential:NAME" */
	char *ca_file;    /* PEM; NULL: the system's */
	char *accelerator;
	char **labels;  /* NULL-terminated, never NULL */
	char *work_dir; /* made absolute */
	bool has_checkout;
	char *git_url;
	int git_depth; /* 0: all of history */
	bool git_submodules;
	enum sandbox_kind sandbox;
	/* bubblewrap: what the steps get beyond the read-only system and their work folder */
	bool allow_network;
	char **allow_devices, **allow_read, **allow_write; /* absolute paths, NULL-terminated */
	struct runner_step *steps;                         /* at least one */
	size_t n_steps;
	int64_t timeout_ms;                  /* all steps and the checkout together; default 12h */
	char **report_globs;                 /* NULL-terminated; empty: no report is expected */
	char *report_format;                 /* "junit" (default), "ctrf", "outpost" */
	struct runner_variable *environment; /* `environment: {NAME: value}` for every step */
	size_t n_environment;
	struct runner_variable *secrets; /* `secrets: {NAME: FILE}`: for every step, and masked */
	size_t n_secrets;
	enum visibility visibility; /* the stricter of this and the accelerator's counts */
	int64_t log_max_bytes;      /* default 64 MiB, at most 256 */
	int64_t drain_ms;           /* default 10m */
	int keep_jobs; /* folders of finished jobs that stay to be looked at; default 3 */
	enum log_level log_level;
	enum log_format log_format;
	/* of token and secrets those that every user of this machine may read or change: to be
	 * warned of; NULL: none */
	char **exposed_files;
};

/* As config_load(): every mistake as "file:line: what is wrong", a line each. */
int runner_config_load(
    const char *path, struct runner_config **ret, struct buf *messages) MUST_CHECK;
/* Reads token_file once more: it may have been rotated. free() *ret after wiping. */
int runner_config_read_token(const struct runner_config *c, char **ret, struct error *e) MUST_CHECK;
void runner_config_free(struct runner_config *c); /* NULL is fine; wipes secrets */

#endif
