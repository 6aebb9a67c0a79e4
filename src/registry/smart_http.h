/* git's smart HTTP protocol for libgit2, over Outpost's own HTTP client. libgit2's own client follows
 * every redirect to another path of the same server, and no option of libgit2 1.5 prevents that.
 * This one follows no redirect at all. TLS is OpenSSL's, as everywhere else.
 * Source: git's Documentation/gitprotocol-http.txt, "Smart Clients". */
#ifndef REGISTRY_SMART_HTTP_H
#define REGISTRY_SMART_HTTP_H

#include <git2.h>

#include "registry/bounds.h"

/* A git_transport_cb for git_remote_callbacks.transport; `bounds` is that structure's payload, a
 * struct bounds, which outlives the remote. Other URLs than http and https get libgit2's own
 * transport. An exchange that fails leaves its reason in bounds->why. Blocking: in the pool. */
int smart_http_transport(git_transport **ret, git_remote *remote, void *bounds);

#endif
