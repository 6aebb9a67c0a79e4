/* How long and how much one fetch may take, and whether it is still wanted. libgit2 asks nobody
 * before it waits for a peer, so everything that it calls back asks here. */
#ifndef REGISTRY_BOUNDS_H
#define REGISTRY_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct bounds {
	int64_t deadline_mono_ms;
	int64_t n_bytes_left; /* that the peer may still send */
	int cancel_fd;        /* readable: not wanted any more */
	/* Whether an address (16 bytes, IPv4 mapped) may be connected to; NULL: any. In the pool. */
	bool (*allow_address)(const uint8_t address[16], void *owner);
	void *allow_owner;
	struct error why; /* the first bound that was hit */
};

/* 0, or the bound that was hit, which stays hit. Never waits. */
int bounds_check(struct bounds *b);
/* Waits until fd is ready for `events` (POLLIN, POLLOUT). */
int bounds_wait(struct bounds *b, int fd, short events);
/* The peer sent so much more. */
int bounds_count(struct bounds *b, size_t n_bytes);

#endif
