/* Escapes text from outside for the place where it is shown. All functions take a NUL-terminated string of
 * any bytes. All except escape_xml_…() clean it in the same way: bytes that are not UTF-8 and invisible or
 * direction-changing characters become U+FFFD; line breaks, tabs and control characters become one space; a
 * letter keeps at most two combining marks. Thread: any. */
#pragma once

/* The cleaned text on one line, cut with "…" after max_chars code points (0: not cut). */
void escape_line(struct buf *out, const char *text, size_t max_chars);

/* For HTML text and for attribute values in either quote. */
void escape_html(struct buf *out, const char *text);

enum markdown_place {
	MARKDOWN_TEXT, /* a paragraph or a list item */
	MARKDOWN_CELL, /* a cell of a table: a pipe has to be escaped, even in code */
};

/* A code span. GitHub's Markdown reads no markup in it, and GitHub's own rules for rendered text (mentions,
 * references, commits, addresses, emoji) skip code. Backslashes and entities do not stop these rules. */
void escape_markdown_code(struct buf *out, const char *text, size_t max_chars, enum markdown_place place);
/* Plain text if its characters cannot be markup ("Ascend NPU"), else a code span. */
void escape_markdown_label(struct buf *out, const char *text, size_t max_chars, enum markdown_place place);

enum url_rule {
	URL_HTTPS,         /* of vendors */
	URL_HTTPS_OR_HTTP, /* our own public_url, which may be http on loopback */
};
/* Appends the URL for a Markdown link's target or an HTML attribute; percent-encodes each character that
 * could end either. Returns false and appends nothing if it is not such a URL: another scheme, a user name,
 * an odd host or port, or longer than max_bytes. */
bool escape_url(struct buf *out, const char *url, size_t max_bytes, enum url_rule rule);

/* For an XML 1.0 document that programs read: it keeps the text as it is. Only characters that XML cannot contain (most
 * control characters, U+FFFE, bytes that are not UTF-8) become U+FFFD, so the document is always well-formed. */
void escape_xml_text(struct buf *out, const char *text);
/* Appends ` name="value"`; nothing if value is NULL. Line breaks and tabs survive. */
void escape_xml_attribute(struct buf *out, const char *name, const char *value);
