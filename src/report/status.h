/* The short answer to `@BOT status`: the verdict, and what each accelerator is at. */
#ifndef REPORT_STATUS_H
#define REPORT_STATUS_H

#include "report/comment.h"

/* Appends Markdown, some 10 KB at most; it bears no marker. */
void status_render(const struct change_view *v, const struct comment_options *o, struct buf *out);

#endif
