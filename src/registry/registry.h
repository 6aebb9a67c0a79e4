/* accelerators.git: the vendors' files from a git repository, fetched with libgit2 on an interval and
 * after a push webhook of that repository. A commit is refused as a whole when one of its files is
 * invalid; the last good commit stays in force, also over a restart.
 *
 * state_dir/registry has a bare repository, one checked-out folder per commit, and `good`, which
 * names the folder in force. config_load_with() reads the folder that registry_folder() returns.
 *
 * Thread: loop, except registry_folder() and registry_keep_folder(). */
#pragma once

#include "config/config.h"
#include "loop/loop.h"

struct registry;

struct registry_deps {
	struct loop *loop;
	/* `folder` holds a new commit's files. The owner checks them with the other files, keeps the folder with
	 * registry_keep_folder(), puts it in force (registry_configure() with its snapshot), and calls
	 * registry_answer() once, unless registry_close() comes first. Both texts are borrowed for the call. */
	void (*try_commit)(struct registry *r, const char *commit, const char *folder, void *owner);
	void *owner;
};

/* Nothing is fetched before the first registry_configure() with accelerators.git set. */
struct registry *registry_new(const struct registry_deps *deps);
/* Puts a snapshot, and the commit that it was read from, in force. Takes its own reference. Fetches
 * at once when the repository, branch or folder has changed. */
void registry_configure(struct registry *r, struct config *c);
/* Fetches now, after a push. During a round, one more round follows it. */
void registry_fetch(struct registry *r);
/* The operator reloaded the configuration: tries a refused commit again, at once. */
void registry_retry(struct registry *r);
enum registry_answer {
	REGISTRY_IN_FORCE,
	REGISTRY_REFUSED,  /* its files have mistakes: `why` has a line with file and line for each */
	REGISTRY_NOT_KEPT, /* registry_keep_folder() failed: it is fetched and tried again later */
};
/* The outcome of try_commit. Does nothing in another state. */
void registry_answer(struct registry *r, enum registry_answer what, const char *why);
/* Makes this folder the one that a restart begins with; on disk when it returns. Call it before the
 * commit is in force: otherwise a crash could put an older commit in force again, and with it an
 * accelerator that was removed. Thread: pool; blocking. */
int registry_keep_folder(const char *folder, struct error *e) MUST_CHECK;
/* Cancels the current round and frees the registry; no call may follow. on_closed runs once, after
 * this call has returned. */
void registry_close(struct registry *r, void (*on_closed)(void *owner), void *owner);

struct registry_status {
	bool is_used;            /* accelerators.git is set */
	char commit[65];         /* in force; "" none yet */
	int64_t commit_wall_ms;  /* when it came into force; 0 not known yet */
	int64_t fetched_wall_ms; /* the last successful fetch; 0: none since the start */
	char refused[65];        /* the newest commit, if it was refused */
	char *refused_why;       /* one line per mistake; NULL: none is refused */
	char *fetch_error;       /* why the last fetch failed; NULL: it succeeded */
};
/* Borrowed until the loop's next turn. */
const struct registry_status *registry_status(const struct registry *r);

/* The folder of the last good commit, or NULL when there is none yet. free(). Thread: pool, or before
 * the loop; blocking. */
char *registry_folder(const char *state_dir);
