/* The files that a job's `report.files` mean, found without ever leaving the work folder: no link
 * is followed, neither a folder nor a file, and only regular files count. */
#ifndef STEPS_REPORT_FIND_H
#define STEPS_REPORT_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/err.h"

enum { REPORT_FILES_MAX = 1000 };

struct found_file {
	char *path; /* relative to the folder */
	struct stat st;
};

struct found_files {
	struct found_file *list; /* by path, each once */
	size_t n;
	bool is_cut; /* there were more than REPORT_FILES_MAX */
};

/* Patterns as in a shell, relative to the folder: `*`, `?` and `[…]` within a name, `**` for any
 * folders. A name that begins with a dot is matched only by one that is written with it. */
void report_find(const char *folder, char *const *patterns, struct found_files *ret);
void found_files_release(struct found_files *f);
/* True when it is in the list and was not written to since. */
bool found_files_has_same(const struct found_files *f, const struct found_file *file);
/* Opens a path of the list, in the same way. -1 and errno. */
int report_open(const char *folder, const char *path);

#endif
