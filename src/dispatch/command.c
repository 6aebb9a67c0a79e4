#include "dispatch/command.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"

enum {
	SHA_MIN_CHARS = 7,
	/* Each look at what encloses a line may walk over the whole comment. */
	LOOKS_MAX = 50,
};

/* Where in the comment's Markdown the current line stands. The trackers do not know of each
 * other: each errs on the side of "not spoken", and a line counts when none objects. */
struct place {
	char fence;     /* '`' or '~' inside a fenced block, else 0 */
	size_t n_fence; /* how many of them opened it */
	/* A fence that may belong to a list's item, or a tag that its paragraph does not close: where
	 * it ends is not known, so the rest of the comment does not count. */
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
    {"<q>", "</q>"},
    {"<del", "</del>"},
    {"<strike", "</strike>"},
    {"<s>", "</s>"},
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

/* "> quoted" and "[^1]: a footnote", which GitHub shows elsewhere, or not at all. */
static bool is_set_aside(struct place *at, const struct line *l)
{
	const char *p = skip_list_marks(l->text, l->end);

	if (is_blank(l))
		at->is_aside = false;
	else if (p < l->end && (*p == '>' || (*p == '[' && p[1] == '^')))
		at->is_aside = true;
	return at->is_aside;
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

/* Follows a block of HTML, which begins with a tag at the beginning of a line. A tag that is still
 * open at the blank line that ends the block goes on behind it: browsers read what follows as that
 * tag's attributes. */
static void follow_html_block(struct place *at, const struct line *l)
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
static bool is_spoken(struct place *at, const struct line *l)
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

/* Whether something that opened before the line in its paragraph may close in it or behind it: a
 * code span, a link or its definition with its title, a tag with its attributes, maths, text that is
 * struck out. A block of maths ($$) may hold blank lines, so it may begin and end anywhere. */
static bool is_enclosed(const struct place *at, const struct line *l)
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

/* ---- the words of a line ---- */

/* The next word, or an empty one at the end. */
struct word {
	const char *p;
	size_t n;
};

static struct word take_word(const char **at, const char *end)
{
	struct word w;

	while (*at < end && isspace((unsigned char)**at))
		++*at;
	w.p = *at;
	w.n = word_length(*at, end);
	*at += w.n;
	return w;
}

static bool is_word(const struct word *w, const char *text)
{
	return w->n == strlen(text) && strncasecmp(w->p, text, w->n) == 0;
}

/* False when it does not fit. */
static bool copy_lower(char *out, size_t out_bytes, const char *p, size_t n)
{
	if (n >= out_bytes)
		return false;
	for (size_t i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)p[i]);
	out[n] = '\0';
	return true;
}

static bool is_hex(const struct word *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (!isxdigit((unsigned char)w->p[i]))
			return false;
	return true;
}

static enum command_kind parse_ok_to_test(struct command *c, const struct word *w)
{
	if (is_word(w, "cancel"))
		return COMMAND_DECLINE;
	if (w->n == 0)
		return COMMAND_OK_TO_TEST;
	if (w->n < SHA_MIN_CHARS || w->n >= sizeof(c->sha) || !is_hex(w))
		return COMMAND_UNKNOWN;
	copy_lower(c->sha, sizeof(c->sha), w->p, w->n);
	return COMMAND_OK_TO_TEST;
}

/* ACCELERATOR or ACCELERATOR/SUITE. */
static enum command_kind parse_retest(struct command *c, const struct word *w)
{
	const char *slash = memchr(w->p, '/', w->n);
	size_t n_name = slash ? (size_t)(slash - w->p) : w->n;

	if (slash && (n_name == 0 || n_name + 1 == w->n))
		return COMMAND_UNKNOWN;
	if (!copy_lower(c->word, sizeof(c->word), w->p, n_name))
		return COMMAND_UNKNOWN;
	if (slash && !copy_lower(c->suite, sizeof(c->suite), slash + 1, w->n - n_name - 1))
		return COMMAND_UNKNOWN;
	return COMMAND_RETEST;
}

static enum command_kind parse_words(
    struct command *c, const struct word *verb, const struct word *w)
{
	static const enum command_kind plain[] = {COMMAND_CANCEL, COMMAND_STATUS, COMMAND_HELP};

	if (is_word(verb, command_kind_name(COMMAND_OK_TO_TEST)))
		return parse_ok_to_test(c, w);
	if (is_word(verb, command_kind_name(COMMAND_RETEST)))
		return parse_retest(c, w);
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		if (w->n == 0 && is_word(verb, command_kind_name(plain[i])))
			return plain[i];
	return COMMAND_UNKNOWN;
}

/* "@slug VERB [WORD]", nothing else on the line. False: it addresses somebody else. */
static bool parse_command(const struct line *l, const char *slug, struct command *ret)
{
	const char *p = l->text, *rest;
	struct word name = take_word(&p, l->end), verb, argument;
	size_t n;

	*ret = (struct command){.kind = COMMAND_UNKNOWN};
	if (name.n < 2 || *name.p != '@')
		return false;
	if (slug && (name.n != strlen(slug) + 1 || strncasecmp(name.p + 1, slug, name.n - 1) != 0))
		return false;
	rest = skip_space(p, l->end);
	verb = take_word(&p, l->end);
	argument = take_word(&p, l->end);
	if (skip_space(p, l->end) == l->end)
		ret->kind = parse_words(ret, &verb, &argument);
	if (ret->kind != COMMAND_UNKNOWN)
		return true;
	*ret = (struct command){.kind = COMMAND_UNKNOWN};
	n = (size_t)(l->end - rest);
	n = utf8_cut(rest, n, sizeof(ret->word) - 1);
	memcpy(ret->word, rest, n);
	return true;
}

/* Takes the `ok-to-test`s out where one says `ok-to-test cancel` as well. */
static size_t settle_ok_to_test(struct command *list, size_t n)
{
	bool is_declined = false;
	size_t n_kept = 0;

	for (size_t i = 0; i < n; i++)
		is_declined |= list[i].kind == COMMAND_DECLINE;
	for (size_t i = 0; i < n; i++)
		if (!is_declined || list[i].kind != COMMAND_OK_TO_TEST)
			list[n_kept++] = list[i];
	return n_kept;
}

size_t commands_find(const char *text, const char *slug, struct command ret[COMMANDS_MAX])
{
	struct place at = {.comment = text, .paragraph = text};
	size_t n = 0, n_looked_at = 0;

	for (const char *p = text; *p && n < COMMANDS_MAX && n_looked_at < LOOKS_MAX;) {
		struct line l = read_line(p);

		if (is_spoken(&at, &l) && parse_command(&l, slug, &ret[n])) {
			n_looked_at++;
			n += !is_enclosed(&at, &l);
		}
		p = next_line(&l);
	}
	return settle_ok_to_test(ret, n);
}
