/* Text that others wrote, made harmless for where it is shown. One rule for all of them: the
 * input is a NUL-terminated string of any bytes; what is no UTF-8 becomes U+FFFD, as do
 * invisible and direction-changing characters; line breaks, tabs and controls become one
 * space; marks that stack on one letter are cut at two. */
#ifndef BASE_ESCAPE_H
#define BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* The cleaned text itself, one line, cut with "…" behind max_chars code points (0: not cut). */
void escape_line(struct buf *out, const char *text, size_t max_chars);

/* For HTML text and for attribute values in either quote. */
void escape_html(struct buf *out, const char *text);

enum markdown_place {
	MARKDOWN_TEXT, /* a paragraph or a list item */
	MARKDOWN_CELL, /* a cell of a table: a pipe has to be escaped, even in code */
};

/* A code span. In GitHub's Markdown nothing in it is read as markup, and GitHub's own rules
 * that run over the rendered text (mentions, references, commits, addresses, emoji) leave
 * code alone, while backslashes and entities do not keep them off. */
void escape_markdown_code(
    struct buf *out, const char *text, size_t max_chars, enum markdown_place place);
/* Plain letters where they can mean nothing but themselves ("Ascend NPU"), else a code span. */
void escape_markdown_label(
    struct buf *out, const char *text, size_t max_chars, enum markdown_place place);

enum url_rule {
	URL_HTTPS,         /* what vendors write */
	URL_HTTPS_OR_HTTP, /* our own public_url, which may be http on loopback */
};
/* Appends the URL for use as a Markdown link's target or an HTML attribute, percent-encoded
 * where a character could end either. False, and nothing appended, when it is no such URL: another
 * scheme, a user name, an odd host or port, or longer than max_bytes. */
bool escape_url(struct buf *out, const char *url, size_t max_bytes, enum url_rule rule);

#endif
