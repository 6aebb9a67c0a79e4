/* outpost-runner's file, read but with nothing looked up yet: the files it names are read after. */
#ifndef CONFIG_RUNNER_FILE_H
#define CONFIG_RUNNER_FILE_H

#include "config/fields.h"
#include "config/runner_config.h"

struct runner_file {
	struct runner_config c; /* without what comes from other files */
	struct file_ref token, ca, work_dir, git_config;
	struct file_ref *secrets; /* of c.secrets, by index */
	struct file_ref allow;    /* only its line; 0: not given */
	int format;               /* of the report: an index into the formats' names */
};

extern const struct mapping RUNNER_FILE_MAPPING; /* the whole grammar */

/* Fills *ret with what `root` says over the defaults. Mistakes go to r->problems; *ret is
 * complete enough to read on and is released in any case. */
void runner_file_read(struct reader *r, const struct node *root, struct runner_file *ret);
/* All but c, which the caller takes or releases with runner_config_release(); before that. */
void runner_file_release(struct runner_file *f);
void runner_config_release(struct runner_config *c); /* its content; wipes secrets */

/* ---- runner_file_lists.c: keys that are lists or maps of the vendor's own names ---- */
field_read_fn field_runner_steps;       /* struct runner_config as target */
field_read_fn field_runner_environment; /* struct runner_config */
field_read_fn field_runner_secrets;     /* struct runner_file */
field_read_fn field_guarded_calls;      /* struct runner_config */
extern const struct mapping RUNNER_STEP_MAPPING;

/* ---- runner_check.c ---- */
check_fn check_machine_name;  /* as the protocol has it */
check_fn check_server_url;    /* https, or http to loopback */
check_fn check_git_url;       /* what git fetches from; never a helper's name or an option */
check_fn check_proxy_url;     /* an http, https or SOCKS proxy */
check_fn check_absolute_path; /* without .. */
check_fn check_report_glob;   /* below the work folder */
check_fn check_script;        /* text, several lines allowed */

field_read_fn field_size; /* int64_t, bytes: 64MiB */

#endif
