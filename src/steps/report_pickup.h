/* The report files that the steps left in the work folder: found, read, merged into the job's report.json.
 *
 * The work folder holds untrusted files of the steps, so no link to a folder or file is followed,
 * only regular files count, and the number of files and bytes is bounded.
 *
 * Thread: the only one of the job's process. Every call blocks. */
#pragma once

#include "steps/job.h"

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

/* The files that match a pattern. Patterns are a shell's, relative to the folder: `*`, `?` and `[…]` within a
 * name, `**` for any folders. A name that begins with a dot matches only a pattern with that dot. */
void report_find(const char *folder, char *const *patterns, struct found_files *ret);
void found_files_release(struct found_files *f);

/* Writes report.json. `before`: the files that matched before the first step; a file that came with the
 * checkout and that no step touched says nothing about this run.
 *
 * 0: *ret_has_report says if there is a report.json. ERR_INVALID: a report is missing, wrong or too large;
 * *e says which. ERR_CANCELLED: the job was cancelled. Also then the good files may have made a
 * report.json. ERR_IO and the like: it could not be written. */
int report_pickup(struct job *j, const struct found_files *before, bool *ret_has_report, struct error *e) MUST_CHECK;
