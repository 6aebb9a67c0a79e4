/* libgit2's sockets, with bounds. Its own wait for a peer as long as the peer likes; TLS stands on
 * these as well, so a peer that goes silent in a handshake is bounded too. */
#ifndef REGISTRY_STREAM_H
#define REGISTRY_STREAM_H

#include "registry/bounds.h"

/* Once, after git_libgit2_init(). */
int stream_register(void) MUST_CHECK;
/* What this thread's connections are bounded by from now on; NULL: none may be opened. */
void stream_use(struct bounds *b);

#endif
