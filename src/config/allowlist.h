/* CRCR's allowlist.yml as that relay reads it: levels of repositories, L3 grouped by
 * device, each repository with its oncalls. */
#ifndef CONFIG_ALLOWLIST_H
#define CONFIG_ALLOWLIST_H

#include "config/fields.h"
#include "model/accelerator.h"

struct allowlist {
	struct accelerator *items;
	size_t n;
};

/* The tree of a text, or NULL. A bare @login, which the list's own comments show and
 * YAML forbids, is taken as the login. tree_free(). */
struct node *allowlist_parse(
    const char *file, const char *text, size_t n, struct problems *problems);
/* Fills *ret with one accelerator per L3 device and one per other repository. Mistakes
 * go to r->problems. Released in any case. */
void allowlist_read(struct reader *r, const struct node *root, struct allowlist *ret);
void allowlist_release(struct allowlist *l);

#endif
