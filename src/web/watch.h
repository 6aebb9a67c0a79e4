/* What a stream of events may watch, and what it says: pure. */
#ifndef WEB_WATCH_H
#define WEB_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/touched.h"

enum { WATCH_BYTES = 80 };

enum watch_kind {
	WATCH_PULL,        /* "pulls/7" */
	WATCH_COMMIT,      /* "commits/SHA" */
	WATCH_JOB,         /* "jobs/3" */
	WATCH_ACCELERATOR, /* "accelerators/NAME" */
	WATCH_WIDE,        /* "dashboard", "nightly", …: anything may show there */
};

struct watch {
	enum watch_kind kind;
	int64_t id;             /* PULL, JOB */
	char path[WATCH_BYTES]; /* as it was asked for */
};
/* ERR_INVALID: nothing that can be watched. */
int watch_parse(const char *path, struct watch *ret) MUST_CHECK;
/* "NAME" of "accelerators/NAME". */
const char *watch_name(const struct watch *w);
/* Is what it shows different? n has the names of n->touched; NULL: the store could not say. */
bool watch_is_touched(const struct watch *w, const struct name_touched *n);

/* Appends a frame (WHATWG HTML, server-sent events): event `change`, id, the path as JSON. */
void watch_write_event(struct buf *out, const struct watch *w, int64_t run, int64_t seq);

#endif
