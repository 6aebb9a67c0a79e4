/* outpost-runner's file: its grammar and reading it. runner_config.c then reads the files that it
 * names. Thread: any; it does not open other files. Owns: the caller, with runner_file_release(). */
#pragma once

#include "config/fields.h"
#include "config/runner_config.h"

struct runner_file {
	struct runner_config c; /* without the content of other files */
	struct file_ref token, ca, work_dir, git_config;
	struct file_ref *secrets; /* of c.secrets, by index */
	struct file_ref allow;    /* only its line; 0: not given */
	int format;               /* of the report: an index into the formats' names */
};

extern const struct mapping RUNNER_FILE_MAPPING; /* the whole grammar */

/* Fills *ret with the defaults and the values of `root`. Mistakes go to r->problems. Release *ret in any case. */
void runner_file_read(struct reader *r, const struct node *root, struct runner_file *ret);
/* Frees all but c, which the caller then takes over or frees with runner_config_release(). */
void runner_file_release(struct runner_file *f);
void runner_config_release(struct runner_config *c); /* its content; wipes secrets */
