/* The newest commit of a branch of any git repository, without a fetch: git's ls-remote over https, http or git.
 * Vendors choose these repositories, so every address must be public or in outgoing.allow_networks, and plain text goes
 * only to the latter. No redirect is followed and no proxy is used.
 *
 * A request takes at most 30 s and 16 MiB. Two run at a time and the others wait, so that silent servers do not occupy
 * the whole pool. Thread: loop; the work is done in the pool. */
#pragma once

#include "config/config.h"
#include "loop/loop.h"
#include "model/accelerator.h"

/* Takes a reference to the snapshot. */
struct remote_heads *remote_heads_new(struct loop *l, struct config *c);
/* Applies to later requests. */
void remote_heads_configure(struct remote_heads *h, struct config *c);
/* The two functions of struct head_reader; owner is the remote_heads. */
void remote_head_ask(void *owner, struct head_request *r);
void remote_head_cancel(void *owner, struct head_request *r);
/* Cancels every request and frees h. on_closed runs once, after this call has returned. */
void remote_heads_close(struct remote_heads *h, void (*on_closed)(void *owner), void *owner);
