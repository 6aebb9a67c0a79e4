/* The newest commit of a branch of any git repository, without fetching anything: git's own
 * ls-remote, over https, http or git. For vendors' repositories, so every address that is connected
 * to must be public or in outgoing.allow_networks, and plain text goes only to the latter; no redirect
 * to another host or port is followed, and no proxy is used.
 *
 * A question takes 30 s and 16 MiB at most; two are asked at a time, the others wait, so that
 * servers which say nothing leave the pool to others. Thread: loop; the work is done in the pool. */
#ifndef REGISTRY_REMOTE_HEAD_H
#define REGISTRY_REMOTE_HEAD_H

#include "config/config.h"
#include "loop/loop.h"
#include "model/source_head.h"

struct remote_heads;

/* Takes a reference to the snapshot. */
struct remote_heads *remote_heads_new(struct loop *l, struct config *c);
/* For what is asked from now on. */
void remote_heads_configure(struct remote_heads *h, struct config *c);
/* As struct head_reader has them; owner is the remote_heads. */
void remote_head_ask(void *owner, struct head_request *r);
void remote_head_cancel(void *owner, struct head_request *r);
/* Cancels what is in hand, frees, then runs on_closed once. Asynchronous. */
void remote_heads_close(struct remote_heads *h, void (*on_closed)(void *owner), void *owner);

#endif
