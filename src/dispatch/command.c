#include "dispatch/command.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"

enum { SHA_MIN_CHARS = 7 };

/* Where in the comment's Markdown the current line stands. The trackers do not know of each
 * other: each errs on the side of "not spoken", and a line counts when none objects. */
struct place {
	char fence;      /* '`' or '~' inside a fenced block, else 0 */
	size_t n_fence;  /* how many of them opened it */
	bool is_lost;    /* a fence that may belong to a list's item: nobody knows where it ends */
	bool is_quote;   /* since a '>' line; a paragraph's next lines belong to it as well */
	unsigned hidden; /* inside these of HIDING, by bits */
	const char *paragraph; /* first byte of this run of lines without a blank one */
};

/* HTML that hides what is between, or shows it as somebody else's words. */
static const char *const HIDING[][2] = {
    {"<!--", "-->"},
    {"<![CDATA[", "]]>"},
    {"<!", ">"},
    {"<?", "?>"},
    {"<pre", "</pre>"},
    {"<code", "</code>"},
    {"<script", "</script>"},
    {"<style", "</style>"},
    {"<textarea", "</textarea>"},
    {"<blockquote", "</blockquote>"},
};

struct line {
	const char *start, *text, *end; /* text: behind the indentation */
	size_t indent;                  /* a tab counts as four */
};

static struct line read_line(const char *p)
{
	struct line l = {.start = p, .end = p + strcspn(p, "\r\n")};

	for (l.text = p; l.text < l.end && (*l.text == ' ' || *l.text == '\t'); l.text++)
		l.indent += *l.text == '\t' ? 4 : 1;
	return l;
}

static const char *next_line(const struct line *l)
{
	if (l->end[0] == '\r' && l->end[1] == '\n')
		return l->end + 2;
	return *l->end ? l->end + 1 : l->end;
}

static bool is_blank(const struct line *l)
{
	return l->text == l->end;
}

/* Behind "- ", "* ", "+ ", "1. ", "1) ", as often as they come: a fence or a quote may open
 * inside a list's item. */
static const char *skip_list_marks(const char *p, const char *end)
{
	for (;;) {
		const char *mark = p;

		while (mark < end && isdigit((unsigned char)*mark))
			mark++;
		if (mark == end || !strchr(mark > p ? ".)" : "-*+", *mark))
			return p;
		if (++mark == end || (*mark != ' ' && *mark != '\t'))
			return p;
		while (mark < end && (*mark == ' ' || *mark == '\t'))
			mark++;
		p = mark;
	}
}

/* How many backticks or tildes open a fence at p; 0: it is none. */
static size_t fence_length(const char *p, const char *end)
{
	size_t n = 0;

	if (p == end || (*p != '`' && *p != '~'))
		return 0;
	while (p + n < end && p[n] == *p)
		n++;
	if (n < 3 || (*p == '`' && memchr(p + n, '`', (size_t)(end - p) - n)))
		return 0;
	return n;
}

/* Whether this line is a fence or lies between two. */
static bool is_fenced(struct place *at, const struct line *l)
{
	const char *p = skip_list_marks(l->text, l->end);
	size_t n = fence_length(l->text, l->end);

	if (at->fence) {
		struct line rest = read_line(l->text + n);

		if (n >= at->n_fence && *l->text == at->fence && l->indent < 4 && is_blank(&rest))
			at->fence = 0;
		return true;
	}
	if (n && l->indent == 0) {
		at->fence = *l->text;
		at->n_fence = n;
		return true;
	}
	if (n || fence_length(p, l->end))
		at->is_lost = true;
	return false;
}

/* Behind the first occurrence of word, or NULL. */
static const char *behind(const char *p, const char *end, const char *word)
{
	const size_t n = strlen(word);

	for (; (size_t)(end - p) >= n; p++)
		if (strncasecmp(p, word, n) == 0)
			return p + n;
	return NULL;
}

/* Whether this line has hidden HTML on it or lies in it. */
static bool is_hidden(struct place *at, const struct line *l)
{
	bool is_found = at->hidden != 0;

	for (size_t i = 0; i < ARRAY_LEN(HIDING); i++) {
		const unsigned bit = 1U << i;
		const char *p = l->text;

		for (;;) {
			p = behind(p, l->end, HIDING[i][at->hidden & bit ? 1 : 0]);
			if (!p)
				break;
			at->hidden ^= bit;
			is_found = true;
		}
	}
	return is_found;
}

static bool is_quoted(struct place *at, const struct line *l)
{
	const char *p = skip_list_marks(l->text, l->end);

	if (is_blank(l))
		at->is_quote = false;
	else if (p < l->end && *p == '>')
		at->is_quote = true;
	return at->is_quote;
}

/* Moves over one line; true when a reader sees it as plain text of the comment itself. */
static bool is_spoken(struct place *at, const struct line *l)
{
	bool is_in_fence = is_fenced(at, l);
	bool is_in_html = is_hidden(at, l);
	bool is_in_quote = is_quoted(at, l);

	if (is_in_fence || is_blank(l))
		at->paragraph = l->end;
	return !is_in_fence && !is_in_html && !is_in_quote && !at->is_lost && l->indent < 4;
}

static const char *paragraph_end(const struct line *l)
{
	struct line next = *l;

	while (*next.end) {
		next = read_line(next_line(&next));
		if (is_blank(&next))
			break;
	}
	return next.end;
}

static bool has_any(const char *p, const char *end, const char *characters)
{
	for (; p < end; p++)
		if (strchr(characters, *p))
			return true;
	return false;
}

/* Whether something that opened before the line in its paragraph may close behind it: a code
 * span, a link with its title, a tag with its attributes. */
static bool is_enclosed(const struct place *at, const struct line *l)
{
	static const char *const pairs[][2] = {{"`", "`"}, {"[", "])'\""}, {"<", ">"}};
	const char *end = paragraph_end(l);

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		if (has_any(at->paragraph, l->start, pairs[i][0]) &&
		    has_any(l->end, end, pairs[i][1]))
			return true;
	return false;
}

static size_t word_length(const char *p, const char *end)
{
	size_t n = 0;

	while (p + n < end && !isspace((unsigned char)p[n]))
		n++;
	return n;
}

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && isspace((unsigned char)*p))
		p++;
	return p;
}

/* "@slug ok-to-test [SHA | cancel]", nothing else on the line. */
static struct command parse_command(const struct line *l, const char *slug)
{
	static const char OK_TO_TEST[] = "ok-to-test", CANCEL[] = "cancel";
	struct command c = {.kind = COMMAND_NONE};
	const char *p = l->text;
	size_t n = word_length(p, l->end);

	if (n != strlen(slug) + 1 || *p != '@' || strncasecmp(p + 1, slug, n - 1) != 0)
		return c;
	c.kind = COMMAND_UNKNOWN;
	p = skip_space(p + n, l->end);
	n = word_length(p, l->end);
	if (n != sizeof(OK_TO_TEST) - 1 || strncasecmp(p, OK_TO_TEST, n) != 0)
		return c;
	p = skip_space(p + n, l->end);
	n = word_length(p, l->end);
	if (n == 0) {
		c.kind = COMMAND_OK_TO_TEST;
		return c;
	}
	if (n == sizeof(CANCEL) - 1 && strncasecmp(p, CANCEL, n) == 0) {
		if (skip_space(p + n, l->end) == l->end)
			c.kind = COMMAND_DECLINE;
		return c;
	}
	if (n < SHA_MIN_CHARS || n >= sizeof(c.sha) || skip_space(p + n, l->end) != l->end)
		return c;
	for (size_t i = 0; i < n; i++) {
		if (!isxdigit((unsigned char)p[i])) {
			c.sha[0] = '\0';
			return c;
		}
		c.sha[i] = (char)tolower((unsigned char)p[i]);
	}
	c.kind = COMMAND_OK_TO_TEST;
	return c;
}

struct command command_find(const char *text, const char *slug)
{
	struct place at = {.paragraph = text};
	struct command found = {.kind = COMMAND_NONE};

	for (const char *p = text; *p;) {
		struct line l = read_line(p);

		if (is_spoken(&at, &l)) {
			struct command c = parse_command(&l, slug);

			if (c.kind > found.kind && !is_enclosed(&at, &l))
				found = c;
		}
		p = next_line(&l);
	}
	return found;
}
