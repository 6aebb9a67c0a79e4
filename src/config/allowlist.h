/* CRCR's allowlist.yml, read like that relay does: levels of repositories, L3 grouped by device, each repository with
 * its oncalls. Thread: any; only allowlist_files_read() reads a file. Owns: the caller, with the release functions. */
#pragma once

#include "config/fields.h"
#include "model/accelerator.h"

struct allowlist {
	struct accelerator *items;
	size_t n;
};

/* The tree of a text, or NULL. It accepts a bare @login, which the list's own comments show and YAML
 * forbids. tree_free(). */
struct node *allowlist_parse(const char *file, const char *text, size_t n, struct problems *problems);
/* Fills *ret with one accelerator per L3 device and one per other repository. Mistakes
 * go to r->problems. allowlist_release() it in any case. */
void allowlist_read(struct reader *r, const struct node *root, struct allowlist *ret);
/* Both for a file. A file that cannot be read is a mistake at `line` of `named_in`. Blocking. */
void allowlist_load(const char *path, const char *named_in, int line, struct problems *problems, struct allowlist *ret);
void allowlist_release(struct allowlist *l);

/* The same list as files of accelerators.d, one for each accelerator. */
struct allowlist_files {
	struct allowlist list;
	char **texts; /* list.n of them, in its order: the content of NAME.yml */
};
/* Reads the list like outpostd. ERR_INVALID: every mistake was appended to `messages`, one line each: "file:line:
 * text"; also where outpostd would refuse a file. allowlist_files_release() it in any case. Blocking. */
int allowlist_files_read(const char *path, struct allowlist_files *ret, struct buf *messages) MUST_CHECK;
void allowlist_files_release(struct allowlist_files *f);
