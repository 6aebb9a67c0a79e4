/* The parts of the comment; private to comment*.c. Thread: any. */
#pragma once

#include "text/comment.h"
#include "text/table.h"

enum {
	TITLE_MAX_CHARS = 40,
	SHA_SHORT_CHARS = 7,
	TEST_MAX_CHARS = 120,
	REASON_MAX_CHARS = 160,
	VENDOR_URL_MAX_BYTES = 1024,
	GITHUB_URL_MAX_BYTES = 512,
	NAMED_MAX = 20, /* accelerators in one paragraph or block */
};

/* `abc1234`, with a link if the repository is known. */
void comment_append_commit(
    struct buf *out, const struct change_view *v, const struct comment_options *o, const char *sha);
/* An accelerator's title in running text. */
void comment_append_title(struct buf *out, const char *title);
/* "[contact](…), on call `alice`, `bob`" after `before`; nothing if no contact is known. The names are code,
 * not mentions: a bot that edits a comment all day must not notify people each time. */
void comment_append_contact(struct buf *out, const struct accelerator_view *a, const char *before);
/* `@BOT WORDS` as code. */
void comment_append_command(struct buf *out, const struct comment_options *o, const char *words);

/* The table in at most max_bytes; unless it is empty, an empty line follows. *ret_n_left_out: rows that are
 * not shown. */
void comment_append_table(
    struct buf *out, const struct table *t, const struct comment_options *o, size_t max_bytes, size_t *ret_n_left_out);
/* One line that explains the signs in use; nothing if all are ✓. */
void comment_append_legend(struct buf *out, const struct table *t);

/* New and unclassified failures: test, one line of error, evidence, contact, how to run it again. */
void comment_append_failures(struct buf *out, const struct table *t, const struct comment_options *o);
/* Folded: failures that the change did not cause, tests without a result, failures of unhealthy accelerators. */
void comment_append_folded_failures(struct buf *out, const struct table *t, const struct comment_options *o);
/* Folded: the differences from the base, if there are any. */
void comment_append_deltas(struct buf *out, const struct table *t, const struct comment_options *o);
/* The accelerators that are silent, lack required results, are held, running or cancelled, with the reasons: a
 * paragraph for each state. */
void comment_append_states(struct buf *out, const struct table *t, const struct comment_options *o);
