/* The parts of the comment. Private to report/. */
#ifndef REPORT_COMMENT_INTERNAL_H
#define REPORT_COMMENT_INTERNAL_H

#include "base/buf.h"
#include "report/comment.h"
#include "report/table.h"

enum {
	TITLE_MAX_CHARS = 40,
	TEST_MAX_CHARS = 120,
	VENDOR_URL_MAX_BYTES = 1024,
	OWN_URL_MAX_BYTES = 512,
};

/* `{public_url}/{folder}/{id}` as a link's target; false and nothing when public_url is none. */
bool comment_append_own_url(
    struct buf *out, const struct comment_options *o, const char *folder, int64_t id);
/* An accelerator's title in running text. */
void comment_append_title(struct buf *out, const char *title);

/* The table with its legend, in at most max_bytes; ends with a line break unless it is empty.
 * *ret_n_left_out: rows for which there was no room. */
void comment_append_table(struct buf *out, const struct table *t, const struct comment_options *o,
    size_t max_bytes, size_t *ret_n_left_out);

/* What is red, then what gave no result: test, one line of error, evidence, and the vendor's
 * contact. */
void comment_append_failures(
    struct buf *out, const struct table *t, const struct comment_options *o);
/* Who is silent, held, running, cancelled, and why: a paragraph each. */
void comment_append_states(struct buf *out, const struct table *t, const struct comment_options *o);

#endif
