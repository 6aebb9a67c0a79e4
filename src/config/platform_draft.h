/* A `platform:` block between reading its keys and having checked them against each other. Private to
 * config/platform_*.c. */
#ifndef CONFIG_PLATFORM_DRAFT_H
#define CONFIG_PLATFORM_DRAFT_H

#include "config/fields.h"
#include "model/platform.h"

enum {
	PLATFORM_INSTALLS_MAX = 100,      /* entries as written */
	PLATFORM_COMBINATIONS_MAX = 400,  /* what they come to */
	PLATFORM_LISTED_MAX = 20,         /* steps, links, commands, versions */
	PLATFORM_TEXT_MAX_BYTES = 131072, /* all of it, each combination counted */
};

/* One entry of `install` as written: lists stand for each of what is in them. */
struct install_draft {
	int build; /* enum platform_build; -1: missing or wrong */
	char *torch;
	unsigned oses, packages, languages; /* bits; languages 0: what the package is for */
	char **versions;                    /* NULL-terminated; NULL: not given */
	char **commands;
	char *note;
	int line;
	bool is_right; /* each key by itself */
};

struct platform_draft {
	struct platform p;
	int integration; /* -1: missing or wrong */
	struct install_draft *installs;
	size_t n_installs;
};

/* Puts each combination of the entries into d->p.installs; what is wrong with them together is
 * told. */
void platform_expand(struct reader *r, struct platform_draft *d);
/* What contradicts itself besides: `v` is the block. */
void platform_check(struct reader *r, const struct node *v, const struct platform_draft *d);

#endif
