/* Finds the lines of a Markdown comment that GitHub shows as plain text of its writer. Only such a line
 * can be a command. Pure.
 *
 * A line is not plain text if GitHub shows it as a quotation, code, maths, a footnote or struck out, or
 * does not show it. This is not a Markdown parser: each tracker below looks for one of these forms and
 * does not know about the others. In doubt a tracker rejects the line. A line counts if no tracker
 * rejects it. */
#ifndef DISPATCH_SPOKEN_H
#define DISPATCH_SPOKEN_H

#include <stdbool.h>
#include <stddef.h>

/* Where in the comment the next line stands. */
struct spoken {
	const char *next; /* the line to read */
	char fence;       /* '`' or '~' inside a fenced block, else 0 */
	size_t n_fence;   /* how many of them opened it */
	/* A fence that may belong to a list's item, a tag that its paragraph does not close, or one of
	 * HIDING inside another of the same name: where it ends is not known, so the rest of the
	 * comment does not count. */
	bool is_lost;
	/* Since a '>' line or a footnote's definition; a paragraph's next lines belong to it as well. */
	bool is_aside;
	bool is_html_block;    /* since a line that began with a tag */
	bool is_in_tag;        /* of that block, */
	char quote;            /* and inside an attribute's text: its quotation mark, else 0 */
	unsigned hidden;       /* inside these of HIDING, by bits */
	const char *comment;   /* its first byte */
	const char *paragraph; /* first byte of this run of lines without a blank one */
};

struct spoken_line {
	const char *start, *text, *end; /* text: behind the indentation */
	size_t indent;                  /* a tab counts as four */
};

/* Borrows the comment. */
struct spoken spoken_of(const char *comment);
/* The next line that was said; false at the end. */
bool spoken_next(struct spoken *at, struct spoken_line *ret);
/* Whether something that opened before the line may close in it or behind it: in its paragraph a code
 * span, a link or its definition with its title, a tag with its attributes, maths, text that is struck
 * out; anywhere a block of maths. May walk over the whole comment. */
bool spoken_is_enclosed(const struct spoken *at, const struct spoken_line *l);

#endif
