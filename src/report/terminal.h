/* The same view as comment.h, as an aligned table for a terminal. */
#ifndef REPORT_TERMINAL_H
#define REPORT_TERMINAL_H

#include <stdbool.h>

#include "base/buf.h"
#include "model/change_view.h"

struct terminal_options {
	bool has_colour;        /* ANSI colours; symbols say the same without them */
	int width;              /* columns; 0: 80. Many accelerators go into several blocks */
	const char *public_url; /* what evidence links start with */
	int64_t now_wall_ms;
};

/* Appends. UTF-8; no control character but newlines and our own colours. */
void terminal_render(
    const struct change_view *v, const struct terminal_options *o, struct buf *out);

#endif
