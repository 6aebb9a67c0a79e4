/* accelerators.git: the vendors' files from a git repository, fetched with libgit2 on an interval and
 * when a push webhook of that repository says so. A commit whose files do not all check is refused
 * whole; the last good one stays in force, also over a restart.
 *
 * Kept in state_dir/registry: a bare repository, and checked-out folders by commit, of which
 * `good` names the one in force. config_load_with() reads the folder that registry_folder() gives.
 *
 * Thread: loop, except registry_folder(). */
#ifndef REGISTRY_REGISTRY_H
#define REGISTRY_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "config/config.h"
#include "loop/loop.h"

struct registry;

struct registry_deps {
	struct loop *loop;
	/* A commit's files lie in `folder`. The owner checks them with everything else, has them kept
	 * with registry_keep_folder(), puts them in force (which calls registry_configure() with their
	 * snapshot), and answers with registry_answer(), once, unless registry_close() comes first.
	 * Asynchronous. Both texts are borrowed for the call. */
	void (*try_commit)(struct registry *r, const char *commit, const char *folder, void *owner);
	void *owner;
};

/* Nothing is fetched before the first registry_configure() with accelerators.git set. */
struct registry *registry_new(const struct registry_deps *deps);
/* Takes its own reference. What the snapshot was read from is what is in force. Fetches at once when
 * the repository, branch or folder is another one than before. */
void registry_configure(struct registry *r, struct config *c);
/* Fetch now (a push came); at most one runs at a time, one more is remembered. */
void registry_fetch(struct registry *r);
/* The operator had everything read again: a refused commit is tried once more, at once. */
void registry_retry(struct registry *r);
enum registry_answer {
	REGISTRY_IN_FORCE,
	REGISTRY_REFUSED, /* its files have mistakes; `why` says which file and line, a line each */
	REGISTRY_NOT_KEPT, /* registry_keep_folder() failed: it is fetched and tried again later */
};
/* What became of the commit that try_commit got. */
void registry_answer(struct registry *r, enum registry_answer what, const char *why);
/* Makes the checked commit in this folder the one that a restart begins with; on disk when it returns.
 * It comes before the commit is in force: otherwise a crash could put an older commit in force again,
 * and with it an accelerator that was removed. Blocking: in the pool. */
int registry_keep_folder(const char *folder, struct error *e) MUST_CHECK;
/* What is under way is broken off; on_closed runs once it is, never inside this call. The registry
 * frees itself: no call after this one. */
void registry_close(struct registry *r, void (*on_closed)(void *owner), void *owner);

struct registry_status {
	bool is_used;            /* accelerators.git is set */
	char commit[65];         /* in force; "" none yet */
	int64_t commit_wall_ms;  /* when it came into force; 0 not known yet */
	int64_t fetched_wall_ms; /* the last fetch that worked; 0 none since the start */
	char refused[65];        /* the newest commit, if it was refused */
	char *refused_why;       /* a line each; NULL: none is refused */
	char *fetch_error;       /* why the last fetch failed; NULL: it did not */
};
/* Borrowed until the loop's next turn. */
const struct registry_status *registry_status(const struct registry *r);

/* The folder of the last good commit, or NULL when there is none yet; free(). Blocking: before the
 * loop, or in the pool. */
char *registry_folder(const char *state_dir);

#endif
