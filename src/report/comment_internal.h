/* The parts of the comment. Private to report/. */
#ifndef REPORT_COMMENT_INTERNAL_H
#define REPORT_COMMENT_INTERNAL_H

#include "base/buf.h"
#include "report/comment.h"
#include "report/table.h"

enum {
	TITLE_MAX_CHARS = 40,
	SHA_SHORT_CHARS = 7,
	TEST_MAX_CHARS = 120,
	REASON_MAX_CHARS = 160,
	VENDOR_URL_MAX_BYTES = 1024,
	OWN_URL_MAX_BYTES = 512,
	NAMED_MAX = 20, /* accelerators in one paragraph or block */
};

/* `{public_url}/{folder}/{id}` as a link's target; false and nothing when public_url is none. */
bool comment_append_own_url(
    struct buf *out, const struct comment_options *o, const char *folder, int64_t id);
/* `abc1234`, linked where a commit can be. */
void comment_append_commit(
    struct buf *out, const struct change_view *v, const struct comment_options *o, const char *sha);
/* An accelerator's title in running text. */
void comment_append_title(struct buf *out, const char *title);
/* "[contact](…), on call `alice`, `bob`" behind `before`; nothing when none is known. Contacts are
 * named, never mentioned: a bot that edits a comment all day must not ping anybody. */
void comment_append_contact(struct buf *out, const struct accelerator_view *a, const char *before);
/* `@BOT WORDS` as code. */
void comment_append_command(struct buf *out, const struct comment_options *o, const char *words);

/* The table in at most max_bytes; ends with an empty line unless it is empty. *ret_n_left_out:
 * rows that are not shown. */
void comment_append_table(struct buf *out, const struct table *t, const struct comment_options *o,
    size_t max_bytes, size_t *ret_n_left_out);
/* One line that explains the signs in use; nothing where all are ✓. */
void comment_append_legend(struct buf *out, const struct table *t);

/* New and unclassified failures: test, one line of error, evidence, contact, how to retest. */
void comment_append_failures(
    struct buf *out, const struct table *t, const struct comment_options *o);
/* Folded: failures that are not the change's, tests without a result, unhealthy accelerators'. */
void comment_append_folded_failures(
    struct buf *out, const struct table *t, const struct comment_options *o);
/* Folded: what differs from the base. Nothing where nothing does. */
void comment_append_deltas(struct buf *out, const struct table *t, const struct comment_options *o);
/* Who is silent, lacks something required, is held, running, cancelled, and why: a paragraph
 * each. */
void comment_append_states(struct buf *out, const struct table *t, const struct comment_options *o);

#endif
