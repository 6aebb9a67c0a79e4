/* Reading git repositories with libgit2: its connections with bounds, the branches of a repository, and the folders in
 * which commits are checked out.
 *
 * Thread: pool, and the functions of a folder also before the loop runs; blocking. */
#pragma once

#include <git2.h>

/* ---- the limits of one fetch: its time, its bytes, and its cancellation. libgit2 has no such limits, so our
 * callbacks and connections check these. Only cancel_fd is written from another thread ---- */

struct bounds {
	int64_t deadline_mono_ms;
	int64_t n_bytes_left; /* the peer may still send so many */
	int cancel_fd;        /* readable: cancelled */
	/* Whether a connection to the address (16 bytes, IPv4 mapped) is allowed; NULL: to any. */
	bool (*allow_address)(const uint8_t address[16], void *owner);
	void *allow_owner;
	struct error why; /* the first bound that was hit */
};

/* Returns 0, or the code of the bound that was hit, also in every later call. Never waits. */
int bounds_check(struct bounds *b);
/* Waits until fd is ready for `events` (POLLIN, POLLOUT). Returns as bounds_check(). */
int bounds_wait(struct bounds *b, int fd, short events);
/* Counts bytes that the peer sent. Returns as bounds_check(). */
int bounds_count(struct bounds *b, size_t n_bytes);

/* ---- transport.c: connections.
 *
 * http and https: git's smart HTTP protocol over Outpost's own HTTP client. libgit2's own client follows every redirect
 * to another path of the same server, and no option of libgit2 1.5 prevents that; this one follows no redirect at all.
 * TLS is OpenSSL's, as everywhere else.
 *
 * git: our own sockets, because libgit2's wait for a peer without a time limit.
 * Source: git's Documentation/gitprotocol-http.txt, "Smart Clients". ---- */

/* Registers the sockets. Once, after git_libgit2_init(). */
int transport_setup(void) MUST_CHECK;
/* Bounds this thread's git:// connections from now on. NULL: none may be opened. */
void transport_use(struct bounds *b);
/* A git_transport_cb for git_remote_callbacks.transport; `bounds` is that structure's payload, a
 * struct bounds, which outlives the remote. Other URLs than http and https get libgit2's own
 * transport. A failed exchange leaves its reason in bounds->why. */
int transport_new(git_transport **ret, git_remote *remote, void *bounds);

/* ---- branches ---- */

/* Initialises libgit2 for this process, once: our connections, and no configuration of the user or
 * the system. It is never shut down, because libgit2 would then leak the state of its threads. */
int fetch_setup(struct error *e) MUST_CHECK;

/* Opens the repository at `path`, which is a cache. Makes it when it is absent, and again when it is
 * damaged or has too many packs. git_repository_free(). */
int fetch_open(const char *path, git_repository **ret, struct error *e) MUST_CHECK;
/* Fetches refs/heads/branch from url into the repository; *ret is its commit. Errors: ERR_NETWORK, ERR_NOT_FOUND (no
 * such branch), ERR_CORRUPT (the local repository is to be deleted), and those of the bounds. */
int fetch_branch(git_repository *repo, const char *url, const char *branch, struct bounds *b, git_oid *ret,
    struct error *e) MUST_CHECK;
/* Reads the commit of a branch from url, and fetches nothing. branch NULL: HEAD. Errors as
 * fetch_branch(), and ERR_DENIED for an address that b->allow_address refuses. */
int fetch_head(const char *url, const char *branch, struct bounds *b, char ret_sha[41], struct error *e) MUST_CHECK;
/* libgit2's last error in this thread as one line without control characters. */
void fetch_explain(char *out, size_t out_bytes);

/* ---- checkout.c: state_dir/registry has the repository as a cache (repo.git), one folder for each checked-out commit, and
 * `good`, which names the folder in force.
 *
 * Anyone with write access to the repository can make any tree, so the checkout trusts nothing in a commit: only plain
 * files called NAME.yml become files here. A commit that has anything else under such a name, or too much, is
 * refused ---- */

struct checkout {
	git_repository *repo;
	git_oid commit;
	const char *path;     /* in the repository; "." is its root */
	const char *root;     /* the folder in which `name` is made */
	const char *name;     /* of the new folder; it appears only when it is complete */
	struct buf *mistakes; /* out: the commit's mistakes, one line each: "file:line: text" */
};

/* Returns 0; ERR_INVALID: the commit is refused, see mistakes; other codes: this machine failed. */
int checkout_write(const struct checkout *c, struct error *e) MUST_CHECK;

/* The folder's name for `path` at `commit`. free(). */
char *folder_checkout_name(const char *commit, const char *path);
/* The name in `good`, or NULL; *ret_wall_ms: the time at which it was written. free(). */
char *folder_good(const char *root, int64_t *ret_wall_ms);
/* Writes the name to `good`; on disk when it returns. */
int folder_keep(const char *root, const char *name, struct error *e) MUST_CHECK;
/* Removes the folders of other commits; `name` may be NULL. */
void folder_sweep(const char *root, const char *name);
/* Removes a file, or a folder with its content, if it exists. */
void folder_remove(const char *path);
