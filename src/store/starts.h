/* Dispatches that begin together. Those that share a repository share one id and one
 * request, because the vendor's concurrency group lets the later request cancel the earlier
 * one: so it lists whatever is to run there now, and never what is held. */
#ifndef STORE_STARTS_H
#define STORE_STARTS_H

#include "store/stored_dispatch.h"

struct start {
	struct stored_dispatch row;  /* to be; its id is chosen here */
	struct stored_dispatch last; /* its runner's newest round so far, when has_last */
	bool has_last;
};

struct starts {
	struct start *at;
	size_t n;
};

/* Takes over the strings of both rows; last may be NULL. */
void starts_add(struct starts *s, struct stored_dispatch row, const struct stored_dispatch *last);
/* Writes them all: rows, requests, and what goes because of them. */
void starts_run(struct db *d, struct starts *s, int64_t now_ms);
void starts_release(struct starts *s);

#endif
