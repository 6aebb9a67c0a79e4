/* The same table as the comment's, aligned for a terminal. Pure. Thread: any. */
#pragma once

#include "text/table.h"

struct terminal_options {
	bool has_colour;        /* ANSI colours; the symbols mean the same without them */
	int width;              /* columns; 0: 80. Many accelerators make several blocks */
	const char *public_url; /* the start of evidence links */
	int64_t now_wall_ms;
};

/* Appends. UTF-8; no control character but newlines and our own colours. */
void terminal_render(const struct table *t, const struct terminal_options *o, struct buf *out);
