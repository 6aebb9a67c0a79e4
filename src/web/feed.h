/* Regressions as an Atom feed (RFC 4287). It is well-formed whatever vendors and authors wrote, and the same
 * events give the same bytes. Pure. Thread: any. */
#pragma once

#include "model/accelerator.h"

struct feed {
	const char *public_url;          /* without a trailing slash */
	const char *upstream;            /* pytorch/pytorch */
	int64_t empty_ms;                /* `updated` if there are no events */
	const struct feed_event *events; /* newest first */
	size_t n;
};
/* Appends the document. Its ids are tag: URIs (RFC 4151) of public_url's host, which stay the same when a
 * page moves. */
void feed_write(struct buf *out, const struct feed *f);
