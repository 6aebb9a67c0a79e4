/* What a repository says its branches are, without fetching. Blocking: in the pool. */
#ifndef REGISTRY_LIST_HEADS_H
#define REGISTRY_LIST_HEADS_H

#include "registry/bounds.h"

/* After fetch_setup(). branch NULL: what HEAD is. Errors as fetch_branch() has them, and ERR_DENIED:
 * an address that b->allow_address does not let through. */
int list_heads_find(const char *url, const char *branch, struct bounds *b, char ret_sha[41],
    struct error *e) MUST_CHECK;

#endif
