/* The paths that a stream of events may watch, and its events. Pure. Thread: any. */
#pragma once

#include "db/touched.h"

enum { WATCH_BYTES = 80 };

enum watch_kind {
	WATCH_PULL,        /* "pulls/7" */
	WATCH_COMMIT,      /* "commits/SHA" */
	WATCH_JOB,         /* "jobs/3" */
	WATCH_ACCELERATOR, /* "accelerators/NAME" */
	WATCH_WIDE,        /* "dashboard", "nightly", …: every change may show there */
};

struct watch {
	enum watch_kind kind;
	int64_t id;             /* PULL, JOB */
	char path[WATCH_BYTES]; /* as it was requested */
};
/* ERR_INVALID: the path cannot be watched. */
int watch_parse(const char *path, struct watch *ret) MUST_CHECK;
/* "NAME" of "accelerators/NAME"; borrowed. */
const char *watch_name(const struct watch *w);
/* True if the page may have changed. n has the names of n->touched; NULL: unknown, so true. */
bool watch_is_touched(const struct watch *w, const struct name_touched *n);

/* Appends a frame (WHATWG HTML, server-sent events): event `change`, id, the path as JSON. */
void watch_write_event(struct buf *out, const struct watch *w, int64_t run, int64_t seq);
