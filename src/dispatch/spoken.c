#include "dispatch/spoken.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"

/* HTML that hides what is between, shows it as code or as somebody else's words, or strikes it out. */
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
    {"<kbd", "</kbd>"},
    {"<samp", "</samp>"},
    {"<tt", "</tt>"},
    {"<q", "</q>"},
    {"<del", "</del>"},
    {"<strike", "</strike>"},
    {"<s", "</s>"},
};

static struct spoken_line read_line(const char *p)
{
	struct spoken_line l = {.start = p, .end = p + strcspn(p, "\r\n")};

	for (l.text = p; l.text < l.end && (*l.text == ' ' || *l.text == '\t'); l.text++)
		l.indent += *l.text == '\t' ? 4 : 1;
	return l;
}

static const char *next_line(const struct spoken_line *l)
{
	if (l->end[0] == '\r' && l->end[1] == '\n')
		return l->end + 2;
	return *l->end ? l->end + 1 : l->end;
}

static bool is_blank(const struct spoken_line *l)
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
static bool is_fenced(struct spoken *at, const struct spoken_line *l)
{
	const char *p = skip_list_marks(l->text, l->end);
	size_t n = fence_length(l->text, l->end);

	if (at->fence) {
		struct spoken_line rest = read_line(l->text + n);

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

static bool is_of_name(char c)
{
	return isalnum((unsigned char)c) || c == '-';
}

/* Behind the first occurrence of word, or NULL. The name of a tag is a whole name: "<s" is not the
 * beginning of "<span". */
static const char *behind(const char *p, const char *end, const char *word)
{
	const size_t n = strlen(word);
	const bool is_name = is_of_name(word[n - 1]) && word[0] == '<';

	for (; (size_t)(end - p) >= n; p++)
		if (strncasecmp(p, word, n) == 0 && !(is_name && p + n < end && is_of_name(p[n])))
			return p + n;
	return NULL;
}

/* Whether a tag opens once more before it closes: which end is whose is not followed. */
static bool is_nested(const char *p, const char *end, const char *const tag[2])
{
	const char *opens = isalpha((unsigned char)tag[0][1]) ? behind(p, end, tag[0]) : NULL;
	const char *closes = behind(p, end, tag[1]);

	return opens && (!closes || opens < closes);
}

/* Whether this line has hidden HTML on it or lies in it. */
static bool is_hidden(struct spoken *at, const struct spoken_line *l)
{
	bool is_found = at->hidden != 0;

	for (size_t i = 0; i < ARRAY_LEN(HIDING); i++) {
		const unsigned bit = 1U << i;
		const char *p = l->text;

		for (;;) {
			at->is_lost |= (at->hidden & bit) && is_nested(p, l->end, HIDING[i]);
			p = behind(p, l->end, HIDING[i][at->hidden & bit ? 1 : 0]);
			if (!p)
				break;
			at->hidden ^= bit;
			is_found = true;
		}
	}
	return is_found;
}

/* "> quoted" and "[^1]: a footnote", which GitHub shows elsewhere, or not at all. */
static bool is_set_aside(struct spoken *at, const struct spoken_line *l)
{
	const char *p = skip_list_marks(l->text, l->end);

	if (is_blank(l))
		at->is_aside = false;
	else if (p < l->end && (*p == '>' || (*p == '[' && p[1] == '^')))
		at->is_aside = true;
	return at->is_aside;
}

static const char *paragraph_end(const struct spoken_line *l)
{
	struct spoken_line next = *l;

	while (*next.end) {
		next = read_line(next_line(&next));
		if (is_blank(&next))
			break;
	}
	return next.end;
}

/* Follows a block of HTML, which begins with a tag at the beginning of a line. A tag that is still
 * open at the blank line that ends the block goes on behind it: browsers read what follows as that
 * tag's attributes. */
static void follow_html_block(struct spoken *at, const struct spoken_line *l)
{
	const char *p = skip_list_marks(l->text, l->end);

	if (is_blank(l)) {
		at->is_lost |= at->is_in_tag;
		at->is_html_block = at->is_in_tag = false;
		at->quote = 0;
		return;
	}
	while (p < l->end && (*p == '>' || *p == ' ' || *p == '\t'))
		p++;
	at->is_html_block |= p < l->end && *p == '<';
	for (; at->is_html_block && p < l->end; p++) {
		if (!at->is_in_tag)
			at->is_in_tag = *p == '<' && (isalpha((unsigned char)p[1]) || p[1] == '/');
		else if (at->quote)
			at->quote = *p == at->quote ? 0 : at->quote;
		else if (*p == '\'' || *p == '"')
			at->quote = *p;
		else if (*p == '>')
			at->is_in_tag = false;
	}
}

/* Moves over one line; true when a reader sees it as plain text of the comment itself. */
static bool is_spoken(struct spoken *at, const struct spoken_line *l)
{
	bool is_in_fence = is_fenced(at, l);
	bool is_in_html = is_hidden(at, l);
	bool is_aside = is_set_aside(at, l);

	follow_html_block(at, l);
	if (is_in_fence || is_blank(l))
		at->paragraph = l->end;
	return !is_in_fence && !is_in_html && !is_aside && !at->is_lost && l->indent < 4;
}

static bool has_any(const char *p, const char *end, const char *characters)
{
	for (; p < end; p++)
		if (strchr(characters, *p))
			return true;
	return false;
}

/* A block of maths ($$) may hold blank lines, so it may begin and end anywhere. */
bool spoken_is_enclosed(const struct spoken *at, const struct spoken_line *l)
{
	static const char *const pairs[][2] = {
	    {"`", "`"}, {"[", "])'\""}, {"<", ">"}, {"$", "$"}, {"~", "~"}};
	const char *end = paragraph_end(l), *maths = strstr(at->comment, "$$");

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		if (has_any(at->paragraph, l->start, pairs[i][0]) &&
		    has_any(l->text, end, pairs[i][1]))
			return true;
	return maths && maths < l->start && strstr(l->text, "$$");
}

struct spoken spoken_of(const char *comment)
{
	return (struct spoken){.next = comment, .comment = comment, .paragraph = comment};
}

bool spoken_next(struct spoken *at, struct spoken_line *ret)
{
	while (*at->next) {
		bool is_plain;

		*ret = read_line(at->next);
		is_plain = is_spoken(at, ret);
		at->next = next_line(ret);
		if (is_plain)
			return true;
	}
	return false;
}
