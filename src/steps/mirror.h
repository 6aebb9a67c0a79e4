/* The bare repositories that all jobs share: a commit that was fetched once is not fetched again.
 *
 *   work_dir/mirror/HASH.git           of git_url
 *   work_dir/mirror/modules/HASH.git   of a submodule's URL
 *   work_dir/mirror/lock               held by the job that uses any of them
 *
 * refs/outpost/DEPTH/SHA keeps a fetched commit. That name is made of a checked SHA and never of a text that
 * somebody else chose. In the sandbox steps can only read the mirrors, so a job finds there exactly what git
 * fetched; without a sandbox that is not promised.
 *
 * Thread: the only one of the job's process. Every call blocks. */
#pragma once

#include "steps/job.h"

enum mirror_kind { MIRROR_MAIN, MIRROR_MODULE };

/* Borrowed texts. */
struct mirror_want {
	enum mirror_kind kind;
	const char *url;
	const char *sha; /* 40 hexadecimal digits */
	const char *ref; /* searched if the server does not hand out commits by name; or NULL */
	int depth;       /* 0: all of history */
};

/* Keeps other jobs out until *ret_lock is closed. *ret_lock is set also after a failure, or -1.
 * ERR_CANCELLED, ERR_TIMEOUT, ERR_IO. */
int mirror_lock(struct job *j, int *ret_lock, struct error *e) MUST_CHECK;
/* Makes sure that exactly this commit is in the mirror. *ret: the mirror's real path, which is also in
 * j->mirrors from then on; free(). Needs the lock. */
int mirror_fetch(struct job *j, const struct mirror_want *w, char **ret, struct error *e) MUST_CHECK;
/* True for a message of git about a repository that lost a part of itself (power loss, a full disk). */
bool mirror_is_damage(const char *message);
/* Removes the mirror: the next fetch begins with nothing. Needs the lock. */
int mirror_forget(struct job *j, const struct mirror_want *w, struct error *e) MUST_CHECK;
/* After the job is over: removes old commits and submodules that no job asked for lately, and lets git clean
 * up. Does nothing if another job has the lock. Failures do not matter. */
void mirror_tidy(struct job *j);
