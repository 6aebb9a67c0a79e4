/* libgit2's sockets, with bounds, for git:// URLs: libgit2's own sockets wait for a peer without a time
 * limit. http and https URLs do not use them (smart_http.h). */
#ifndef REGISTRY_STREAM_H
#define REGISTRY_STREAM_H

#include "registry/bounds.h"

/* Once, after git_libgit2_init(). */
int stream_register(void) MUST_CHECK;
/* What this thread's connections are bounded by from now on; NULL: none may be opened. */
void stream_use(struct bounds *b);

#endif
