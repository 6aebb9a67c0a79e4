/* The one comment on a pull request, as Markdown: a verdict line, the tested commit, the table
 * tests × accelerators, what is red with its evidence, and how to test again. docs/comment.md
 * explains each part to those who read it.
 *
 * Pure text out. Nothing that a vendor or an author wrote reaches the page as Markdown, HTML,
 * a link (except https links to where they keep their evidence), a mention or a reference. */
#ifndef REPORT_COMMENT_H
#define REPORT_COMMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "model/change_view.h"

/* First line of every comment; a comment is ours when it has this and we are its author. */
#define COMMENT_MARKER    "<!-- outpost:results -->"
/* GitHub counts characters; we stay below the same number of bytes. */
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
	/* Of the Markdown without the time of writing and the base's age: equal hashes say that
	 * there is no news. */
	uint8_t hash[SHA256_BYTES];
	size_t n_rows_left_out;
};

/* Renders v; the same view and options give the same bytes, in whatever order the view lists
 * its parts. comment_release() after it. */
void comment_render(
    const struct change_view *v, const struct comment_options *o, struct comment *ret);
void comment_release(struct comment *c);

/* Worth a first comment: something was reported, held, declined, given up or fell silent. */
bool comment_has_news(const struct change_view *v);
/* A cell is FAIL or ERROR, or an accelerator gave no report; unhealthy ones do not count. */
bool comment_has_red(const struct change_view *v);
/* Something reported, and nobody is at work any more (what is held waits for a person). */
bool comment_is_complete(const struct change_view *v);

#endif
