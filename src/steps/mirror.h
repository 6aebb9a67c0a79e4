/* The bare repositories that all jobs share: a commit that was fetched once is not fetched again.
 *
 *   work_dir/mirror/HASH.git           of git_url
 *   work_dir/mirror/modules/HASH.git   of a submodule's URL
 *   work_dir/mirror/lock               held by whoever uses any of them
 *
 * What is fetched is kept by refs/outpost/DEPTH/SHA; the name is made of a checked SHA and never
 * of anything that a stranger chose. Steps only ever read them (in the sandbox; without one
 * nothing is promised), so what a job finds here is what git fetched. */
#ifndef STEPS_MIRROR_H
#define STEPS_MIRROR_H

#include "steps/job.h"

enum mirror_kind { MIRROR_MAIN, MIRROR_MODULE };

struct mirror_want {
	enum mirror_kind kind;
	const char *url;
	const char *sha; /* 40 hexadecimal digits */
	const char *ref; /* where to look for it on a server that gives none by name; or NULL */
	int depth;       /* 0: all of history */
};

/* Keeps other jobs out until *ret_lock is closed. Set also when it fails, or -1. */
int mirror_lock(struct job *j, int *ret_lock, struct error *e) MUST_CHECK;
/* Makes sure that the commit, and no other, is there; *ret: the mirror's real path, which
 * j->mirrors has from then on too. free(). With the lock. */
int mirror_fetch(
    struct job *j, const struct mirror_want *w, char **ret, struct error *e) MUST_CHECK;
/* True for what git says of a repository that lost a part of itself (power loss, a full disk). */
bool mirror_is_damage(const char *message);
/* Removes it: the next fetch begins with nothing. */
int mirror_forget(struct job *j, const struct mirror_want *w, struct error *e) MUST_CHECK;
/* Forgets old commits and submodules that nobody asked for lately, and lets git clean up. After
 * the job is over; failures are no matter. */
void mirror_tidy(struct job *j);

#endif
