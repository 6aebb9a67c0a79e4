/* What a commit's .gitmodules and its tree say together. */
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

#endif
