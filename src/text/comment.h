/* The one comment on a pull request, as Markdown: a verdict line, the tested commit, the table tests × accelerators,
 * the failures with their evidence, and how to test again. docs/comment.md explains each part to its readers.
 *
 * Nothing that a vendor or an author wrote reaches the page as Markdown, HTML, a link (except https links to vendors'
 * evidence), a mention or a reference. Pure. Thread: any. */
#pragma once

#include "text/table.h"

/* The first line of every comment. A comment with this line is Outpost's if Outpost is its author. */
#define COMMENT_MARKER    "<!-- outpost:results -->"
/* GitHub limits characters; Outpost stays below the same number of bytes. */
#define COMMENT_MAX_BYTES 65536

struct comment_options {
	const char *public_url; /* ours, without a trailing slash */
	const char *github_url; /* where commits are shown: "https://github.com" */
	const char *bot;        /* the App's slug, for `@BOT retest`; NULL: not known */
	int64_t now_wall_ms;
};

struct comment {
	char *markdown; /* owned; below COMMENT_MAX_BYTES bytes, valid UTF-8 */
	size_t bytes;
	/* of the Markdown without the time of writing and the age of the base: if it is equal, there are no news */
	uint8_t hash[SHA256_BYTES];
	size_t n_rows_left_out;
};

/* The same view and options give the same bytes, whatever the order of the view's parts. Owns: the caller,
 * with comment_release(). */
void comment_render(const struct table *t, const struct comment_options *o, struct comment *ret);
void comment_release(struct comment *c);

/* There is something for a first comment: a report, a held or declined dispatch, or an accelerator that
 * failed to report. */
bool comment_has_news(const struct table *t);
/* A cell is FAIL or ERROR, or an accelerator gave no report; unhealthy ones do not count. */
bool comment_has_red(const struct table *t);

/* Appends the short answer to `@BOT status`: the verdict and the state of each accelerator. Markdown, about
 * 10 KB at most, without the marker. */
void comment_render_status(const struct table *t, const struct comment_options *o, struct buf *out);
