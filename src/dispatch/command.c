#include "dispatch/command.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"

enum { SHA_MIN_CHARS = 7 };

/* Where in the comment's Markdown the current line stands. */
struct place {
	char fence;     /* '`' or '~' inside a fenced block, else 0 */
	size_t n_fence; /* how many of them opened it */
	bool is_quote;  /* since a '>' line; a paragraph's next lines belong to it as well */
	const char *hidden_until; /* inside an HTML block: what ends it, else NULL */
	const char *paragraph;    /* first byte of this run of lines without a blank one */
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
	for (const char *p = l->text; p < l->end; p++)
		if (!isspace((unsigned char)*p))
			return false;
	return true;
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

static size_t run_length(const char *p, const char *end)
{
	size_t n = 0;

	while (p + n < end && p[n] == *p)
		n++;
	return n;
}

/* Whether this line is a fence or lies between two. */
static bool is_fenced(struct place *at, const struct line *l)
{
	const char *p = at->fence ? l->text : skip_list_marks(l->text, l->end);
	size_t n = 0;

	if (p < l->end && (*p == '`' || *p == '~'))
		n = run_length(p, l->end);
	if (at->fence) {
		struct line rest = {.text = p + n, .end = l->end};

		if (n >= at->n_fence && *p == at->fence && is_blank(&rest))
			at->fence = 0;
		return true;
	}
	if (n < 3 || (*p == '`' && memchr(p + n, '`', (size_t)(l->end - p) - n)))
		return false;
	at->fence = *p;
	at->n_fence = n;
	return true;
}

static bool contains_nocase(const char *p, const char *end, const char *word)
{
	const size_t n = strlen(word);

	for (; (size_t)(end - p) >= n; p++)
		if (strncasecmp(p, word, n) == 0)
			return true;
	return false;
}

/* Whether this line lies in an HTML comment or in an element that shows what others said. */
static bool is_hidden(struct place *at, const struct line *l)
{
	static const char *const blocks[][2] = {
	    {"<!--", "-->"},
	    {"<pre", "</pre>"},
	    {"<code", "</code>"},
	    {"<script", "</script>"},
	    {"<style", "</style>"},
	    {"<textarea", "</textarea>"},
	    {"<blockquote", "</blockquote>"},
	};

	for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
		if (!contains_nocase(l->text, l->end, blocks[i][0]))
			continue;
		if (!contains_nocase(l->text, l->end, blocks[i][1]))
			at->hidden_until = blocks[i][1];
		return true;
	}
	return false;
}

static bool is_quoted(struct place *at, const struct line *l)
{
	const char *p = skip_list_marks(l->text, l->end);

	if (p < l->end && *p == '>')
		at->is_quote = true;
	return at->is_quote;
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

/* Whether a `code span` of this paragraph reaches over the line: one that opened before it
 * and closes in or behind it. Spans are paired as CommonMark pairs them; a paragraph with
 * more than 64 runs of backticks is taken to be code, so that the search stays short. */
static bool is_in_code_span(const char *paragraph, const struct line *l)
{
	enum { RUNS_MAX = 64 };
	const char *end = paragraph_end(l);
	int n_runs = 0;

	for (const char *p = paragraph; p < l->start;) {
		size_t n;
		const char *close;

		if (*p == '\\') {
			p += 2;
			continue;
		}
		if (*p != '`') {
			p++;
			continue;
		}
		if (++n_runs > RUNS_MAX)
			return true;
		n = run_length(p, end);
		for (close = p + n; close < end; close += *close == '`' ? run_length(close, end) : 1)
			if (*close == '`' && run_length(close, end) == n)
				break;
		if (close >= end)
			p += n;
		else if (close > l->start)
			return true;
		else
			p = close + n;
	}
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

/* "@slug ok-to-test [SHA]", nothing else on the line. */
static struct command parse_command(const struct line *l, const char *slug)
{
	static const char OK_TO_TEST[] = "ok-to-test";
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

/* Moves over one line; true when a reader sees it as plain text of the comment itself. */
static bool is_spoken(struct place *at, const struct line *l)
{
	if (at->hidden_until) {
		if (contains_nocase(l->text, l->end, at->hidden_until))
			at->hidden_until = NULL;
		at->paragraph = l->end;
		return false;
	}
	if (is_fenced(at, l) || is_blank(l)) {
		at->is_quote = false;
		at->paragraph = l->end;
		return false;
	}
	return !is_quoted(at, l) && !is_hidden(at, l) && l->indent < 4;
}

struct command command_find(const char *text, const char *slug)
{
	struct place at = {.paragraph = text};
	struct command found = {.kind = COMMAND_NONE};

	for (const char *p = text; *p;) {
		struct line l = read_line(p);

		if (is_spoken(&at, &l)) {
			struct command c = parse_command(&l, slug);

			if (c.kind != COMMAND_NONE && !is_in_code_span(at.paragraph, &l)) {
				if (c.kind == COMMAND_OK_TO_TEST)
					return c;
				found = c;
			}
		}
		p = next_line(&l);
	}
	return found;
}
