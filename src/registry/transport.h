/* libgit2's connections, with bounds.
 *
 * http and https: git's smart HTTP protocol over Outpost's own HTTP client. libgit2's own client
 * follows every redirect to another path of the same server, and no option of libgit2 1.5 prevents
 * that; this one follows no redirect at all. TLS is OpenSSL's, as everywhere else.
 * git: our own sockets, because libgit2's wait for a peer without a time limit.
 * Source: git's Documentation/gitprotocol-http.txt, "Smart Clients". Thread: pool; blocking. */
#ifndef REGISTRY_TRANSPORT_H
#define REGISTRY_TRANSPORT_H

#include <git2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

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

/* ---- connections ---- */

/* Registers the sockets. Once, after git_libgit2_init(). */
int transport_setup(void) MUST_CHECK;
/* Bounds this thread's git:// connections from now on. NULL: none may be opened. */
void transport_use(struct bounds *b);
/* A git_transport_cb for git_remote_callbacks.transport; `bounds` is that structure's payload, a
 * struct bounds, which outlives the remote. Other URLs than http and https get libgit2's own
 * transport. A failed exchange leaves its reason in bounds->why. */
int transport_new(git_transport **ret, git_remote *remote, void *bounds);

#endif
