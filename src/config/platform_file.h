/* Reads `platform:` of an accelerator's file, the content of the compute-platforms page. Vendors write it on their first
 * day and edit it by pull requests, so every mistake gets a complete message.
 *
 * Thread: the one that reads. Owns: the accelerator owns the result. One thread at a time uses a draft. */
#pragma once

#include "config/fields.h"
#include "model/platform.h"

extern const struct mapping PLATFORM_MAPPING;
field_read_fn field_platform; /* target: struct platform *, owned; NULL unless a map is there */

/* ---- private to config/platform_*.c ---- */

enum {
	PLATFORM_INSTALLS_MAX = 100,      /* entries as written */
	PLATFORM_COMBINATIONS_MAX = 400,  /* entries after the expansion of their lists */
	PLATFORM_LISTED_MAX = 20,         /* steps, links, commands, versions */
	PLATFORM_TEXT_MAX_BYTES = 131072, /* all of it, each combination counted */
};

/* One entry of `install` as written: a list stands for each of its elements. */
struct install_draft {
	int build; /* enum platform_build; -1: missing or wrong */
	char *torch;
	unsigned oses, packages, languages; /* bits; languages 0: the package's own language */
	char **versions;                    /* NULL-terminated; NULL: not given */
	char **commands;
	char *note;
	int line;
	bool is_right; /* each key is valid by itself */
};

struct platform_draft {
	struct platform p;
	int integration; /* -1: missing or wrong */
	struct install_draft *installs;
	size_t n_installs;
};

/* Puts each combination of the entries into d->p.installs, and reports contradictions between entries. */
void platform_expand(struct reader *r, struct platform_draft *d);
/* Reports the other contradictions in the block `v`. */
void platform_check(struct reader *r, const struct node *v, const struct platform_draft *d);
