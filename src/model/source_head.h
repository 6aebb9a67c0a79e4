/* The newest commit of a vendor's own code, which a periodic run is of beside upstream's; and who
 * finds it out. The registry's part knows git, the dispatcher knows when: they meet here. */
#ifndef MODEL_SOURCE_HEAD_H
#define MODEL_SOURCE_HEAD_H

#include <stdbool.h>

#include "base/err.h"

struct source_head {
	char *accelerator;
	char *git_url;
	char *branch; /* NULL: whatever the repository's HEAD is */
	char *sha;
};
void source_head_release(struct source_head *h);

/* One question. The caller owns it and its texts until done, which runs once, on the loop, never
 * inside ask(). */
struct head_request {
	/* in */
	const char *git_url, *branch;
	void (*done)(struct head_request *r);
	/* out */
	int err; /* ERR_NOT_FOUND: no such branch; ERR_DENIED: an address that may not be reached;
	          * ERR_NETWORK, ERR_TIMEOUT, ERR_TOO_BIG, …; ERR_CANCELLED */
	struct error why;
	char sha[41];
	/* the other side's own */
	void *work;
};
struct head_reader {
	void (*ask)(void *owner, struct head_request *r);
	/* It ends soon, with ERR_CANCELLED unless it had ended otherwise. */
	void (*cancel)(void *owner, struct head_request *r);
	void *owner;
};

#endif
