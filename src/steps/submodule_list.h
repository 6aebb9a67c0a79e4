/* What a commit's .gitmodules and its tree say together. Pure but for submodule_list(). */
#ifndef STEPS_SUBMODULE_LIST_H
#define STEPS_SUBMODULE_LIST_H

#include "steps/job.h"

struct submodule {
	char *name;
	char *path; /* plain, relative: no "..", no ".git", no link on the way (git saw to that) */
	char *url;  /* as written; NULL: none */
	char sha[41];
	bool is_left_out; /* update = none */
};

struct submodules {
	struct submodule *list;
	size_t n;
};

/* Of HEAD in the folder: those that are submodules there. Release also after a failure. */
int submodule_list(
    struct job *j, const char *folder, struct submodules *ret, struct error *e) MUST_CHECK;
void submodules_release(struct submodules *s);

/* The URL to fetch from: `written`, or where that is relative, from `parent` on. NULL when it is
 * none that may be fetched: it must be https, http or git_url's own way over the network. free() */
char *submodule_url(const char *git_url, const char *parent, const char *written);

#endif
