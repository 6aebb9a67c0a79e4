#include "dispatch/planning.h"

/* ---- the lines that count ---- */

/* Finds the lines of a Markdown comment that GitHub shows as plain text of its writer. Only such a line can be a
 * command.
 *
 * A line is not plain text if GitHub shows it as a quotation, code, maths, a footnote or struck out, or does not show
 * it. This is not a Markdown parser: each tracker below looks for one of these forms and does not know about the
 * others. In doubt a tracker rejects the line. A line counts if no tracker rejects it. */
struct spoken {           /* where in the comment the next line stands */
	const char *next; /* the line to read */
	char fence;       /* '`' or '~' inside a fenced block, else 0 */
	size_t n_fence;   /* how many of them opened it */
	/* A fence that may belong to a list's item, a tag that its paragraph does not close, or one of HIDING inside
	 * another of the same name: where it ends is not known, so the rest of the comment does not count. */
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

/* HTML that hides its content, shows it as code or as a quotation, or strikes it out. */
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

static bool is_blank_line(const struct spoken_line *l) { return l->text == l->end; }

/* Skips all of "- ", "* ", "+ ", "1. ", "1) " at p, because a fence or a quote may open inside a list's item. */
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

/* The number of backticks or tildes that open a fence at p; 0: they do not. */
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

/* True: this line is a fence, or lies inside a fenced block. */
static bool track_fence(struct spoken *at, const struct spoken_line *l)
{
	const char *p = skip_list_marks(l->text, l->end);
	size_t n = fence_length(l->text, l->end);

	if (at->fence) {
		struct spoken_line rest = read_line(l->text + n);

		if (n >= at->n_fence && *l->text == at->fence && l->indent < 4 && is_blank_line(&rest))
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

static bool is_of_name(char c) { return isalnum((unsigned char)c) || c == '-'; }

/* Behind the first occurrence of word, or NULL. The name of a tag is a whole name: "<s" is not the
 * beginning of "<span". */
static const char *find_behind(const char *p, const char *end, const char *word)
{
	const size_t n = strlen(word);
	const bool is_name = is_of_name(word[n - 1]) && word[0] == '<';

	for (; (size_t)(end - p) >= n; p++)
		if (strncasecmp(p, word, n) == 0 && !(is_name && p + n < end && is_of_name(p[n])))
			return p + n;
	return NULL;
}

/* Follows a block of HTML, which begins with a tag at the beginning of a line and ends with a blank line. If a tag is
 * still open there, browsers read the following text as its attributes, so the rest of the comment does not count. */
static void follow_html_block(struct spoken *at, const struct spoken_line *l)
{
	const char *p = skip_list_marks(l->text, l->end);

	if (is_blank_line(l)) {
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

static bool has_any_character(const char *p, const char *end, const char *characters)
{
	for (; p < end; p++)
		if (strchr(characters, *p))
			return true;
	return false;
}

/* A block of maths ($$) may hold blank lines, so it may begin and end anywhere. */
static bool spoken_is_enclosed(const struct spoken *at, const struct spoken_line *l)
{
	static const char *const pairs[][2] = {{"`", "`"}, {"[", "])'\""}, {"<", ">"}, {"$", "$"}, {"~", "~"}};
	const char *maths = strstr(at->comment, "$$");
	struct spoken_line last = *l; /* of the paragraph */

	while (*last.end) {
		last = read_line(next_line(&last));
		if (is_blank_line(&last))
			break;
	}
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		if (has_any_character(at->paragraph, l->start, pairs[i][0]) &&
		    has_any_character(l->text, last.end, pairs[i][1]))
			return true;
	return maths && maths < l->start && strstr(l->text, "$$");
}

/* Follows the HTML of HIDING over one line. True: the line has some on it, or lies in it. */
static bool track_hidden(struct spoken *at, const struct spoken_line *l)
{
	bool is_found = at->hidden != 0;

	for (size_t i = 0; i < ARRAY_LEN(HIDING); i++) {
		const unsigned bit = 1U << i;

		for (const char *p = l->text;;) {
			const char *opens = find_behind(p, l->end, HIDING[i][0]);
			const char *closes = find_behind(p, l->end, HIDING[i][1]);

			/* A tag that opens again before it closes: the trackers do not match ends to beginnings. */
			at->is_lost |= (at->hidden & bit) && isalpha((unsigned char)HIDING[i][0][1]) && opens &&
				       (!closes || opens < closes);
			p = at->hidden & bit ? closes : opens;
			if (!p)
				break;
			at->hidden ^= bit;
			is_found = true;
		}
	}
	return is_found;
}

/* Moves to the next line that a reader sees as plain text of the comment itself. False: there are no more. */
static bool spoken_next(struct spoken *at, struct spoken_line *ret)
{
	while (*at->next) {
		*ret = read_line(at->next);
		bool is_in_fence = track_fence(at, ret);
		bool is_in_html = track_hidden(at, ret);
		/* "> quoted" and "[^1]: a footnote", which GitHub shows in another place or does not show. */
		const char *p = skip_list_marks(ret->text, ret->end);
		if (is_blank_line(ret))
			at->is_aside = false;
		else if (p < ret->end && (*p == '>' || (*p == '[' && p[1] == '^')))
			at->is_aside = true;
		bool is_in_tag = at->is_in_tag;
		follow_html_block(at, ret);
		if (is_in_fence || is_blank_line(ret))
			at->paragraph = ret->end;
		at->next = next_line(ret);
		if (!is_in_fence && !is_in_html && !is_in_tag && !at->is_aside && !at->is_lost && ret->indent < 4)
			return true;
	}
	return false;
}

enum {
	SHA_MIN_CHARS = 7,
	/* Each call of spoken_is_enclosed() may walk over the whole comment. */
	LOOKS_MAX = 50,
};

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && isspace((unsigned char)*p))
		p++;
	return p;
}

/* ---- the words of a line ---- */

struct word {
	const char *p;
	size_t n;
};

static struct word read_word(const char **at, const char *end)
{
	struct word w = {.p = skip_space(*at, end)};

	while (w.p + w.n < end && !isspace((unsigned char)w.p[w.n]))
		w.n++;
	*at = w.p + w.n;
	return w;
}

static bool is_word(const struct word *w, const char *text)
{
	return w->n == strlen(text) && strncasecmp(w->p, text, w->n) == 0;
}

/* False: it does not fit. */
static bool copy_lower(char *out, size_t out_bytes, const char *p, size_t n)
{
	if (n >= out_bytes)
		return false;
	for (size_t i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)p[i]);
	out[n] = '\0';
	return true;
}

/* ×N or xN. *ret_n is at most a million, also for a larger N. */
static bool is_times(const struct word *w, int *ret_n)
{
	static const char times[] = "×";
	size_t n_sign = w->n > 2 && memcmp(w->p, times, sizeof(times) - 1) == 0 ? sizeof(times) - 1 : 1;
	int n = 0;

	if (w->n <= n_sign || (n_sign == 1 && tolower((unsigned char)*w->p) != 'x'))
		return false;
	for (size_t i = n_sign; i < w->n; i++) {
		if (!isdigit((unsigned char)w->p[i]))
			return false;
		if (n < 100000)
			n = 10 * n + (w->p[i] - '0');
	}
	*ret_n = n;
	return true;
}

/* The last word before *end. Moves *end to the end of the text before that word. */
static struct word read_last_word(const char *start, const char **end)
{
	struct word w = {.p = *end};

	while (w.p > start && !isspace((unsigned char)w.p[-1]))
		w.p--;
	w.n = (size_t)(*end - w.p);
	for (*end = w.p; *end > start && isspace((unsigned char)(*end)[-1]);)
		--*end;
	return w;
}

/* Removes "×N" or "on ACCELERATOR" from the end of a text. False: it ends with neither. */
static bool read_option(struct command *c, bool *has_rounds, const char *start, const char **end)
{
	const char *before = *end;
	struct word last = read_last_word(start, &before), on;

	if (before == start)
		return false;
	if (!*has_rounds && is_times(&last, &c->n_rounds)) {
		*has_rounds = true;
		*end = before;
		return true;
	}
	on = read_last_word(start, &before);
	if (c->word[0] || before == start || !is_word(&on, "on") ||
	    !copy_lower(c->word, sizeof(c->word), last.p, last.n))
		return false;
	*end = before;
	return true;
}

/* TEST [on ACCELERATOR] [×N]. A test's name may hold spaces, so the options are read from the end. It may stand
 * in code, as the results comment shows it. */
static enum command_kind parse_stress(struct command *c, const char *p, const char *end)
{
	bool has_rounds = false;
	size_t n_ticks = 0;

	c->n_rounds = STRESS_ROUNDS_USUAL;
	p = skip_space(p, end);
	while (end > p && isspace((unsigned char)end[-1]))
		end--;
	while (read_option(c, &has_rounds, p, &end))
		;
	while (p + 2 * n_ticks + 2 < end && p[n_ticks] == '`' && end[-1 - (ptrdiff_t)n_ticks] == '`')
		n_ticks++;
	p += n_ticks;
	end -= n_ticks;
	if (p == end || (size_t)(end - p) >= sizeof(c->test))
		return COMMAND_UNKNOWN;
	memcpy(c->test, p, (size_t)(end - p));
	return COMMAND_STRESS;
}

static enum command_kind parse_words(struct command *c, const struct word *verb, const struct word *w)
{
	static const enum command_kind plain[] = {COMMAND_CANCEL, COMMAND_STATUS, COMMAND_HELP};

	if (is_word(verb, command_kind_name(COMMAND_OK_TO_TEST))) {
		if (is_word(w, "cancel"))
			return COMMAND_DECLINE;
		if (w->n == 0)
			return COMMAND_OK_TO_TEST;
		if (w->n < SHA_MIN_CHARS || w->n >= sizeof(c->sha) || strspn(w->p, "0123456789abcdefABCDEF") < w->n)
			return COMMAND_UNKNOWN;
		copy_lower(c->sha, sizeof(c->sha), w->p, w->n);
		return COMMAND_OK_TO_TEST;
	}
	if (is_word(verb, command_kind_name(COMMAND_RETEST))) {
		const char *slash = memchr(w->p, '/', w->n);
		size_t n_name = slash ? (size_t)(slash - w->p) : w->n;

		/* ACCELERATOR or ACCELERATOR/SUITE. */
		if (slash && (n_name == 0 || n_name + 1 == w->n))
			return COMMAND_UNKNOWN;
		if (!copy_lower(c->word, sizeof(c->word), w->p, n_name))
			return COMMAND_UNKNOWN;
		if (slash && !copy_lower(c->suite, sizeof(c->suite), slash + 1, w->n - n_name - 1))
			return COMMAND_UNKNOWN;
		return COMMAND_RETEST;
	}
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		if (w->n == 0 && is_word(verb, command_kind_name(plain[i])))
			return plain[i];
	return COMMAND_UNKNOWN;
}

/* "@slug VERB [WORD]", or stress with its own words, and nothing else on the line. False: it addresses another name. */
static bool parse_command(const struct spoken_line *l, const char *slug, struct command *ret)
{
	const char *p = l->text;
	struct word name = read_word(&p, l->end);

	*ret = (struct command){.kind = COMMAND_UNKNOWN};
	if (name.n < 2 || *name.p != '@')
		return false;
	if (slug && (name.n != strlen(slug) + 1 || strncasecmp(name.p + 1, slug, name.n - 1) != 0))
		return false;
	const char *rest = skip_space(p, l->end);
	struct word verb = read_word(&p, l->end);
	const char *behind_verb = p;
	struct word argument = read_word(&p, l->end);
	if (is_word(&verb, command_kind_name(COMMAND_STRESS)))
		ret->kind = parse_stress(ret, behind_verb, l->end);
	else if (skip_space(p, l->end) == l->end)
		ret->kind = parse_words(ret, &verb, &argument);
	if (ret->kind != COMMAND_UNKNOWN)
		return true;
	*ret = (struct command){.kind = COMMAND_UNKNOWN};
	memcpy(ret->word, rest, utf8_cut(rest, (size_t)(l->end - rest), sizeof(ret->word) - 1));
	return true;
}

size_t commands_find(const char *text, const char *slug, struct command ret[COMMANDS_MAX])
{
	struct spoken reader = {.next = text, .comment = text, .paragraph = text};
	struct spoken_line l;
	size_t n = 0, n_looked_at = 0, n_kept = 0;
	bool is_declined = false;

	while (n < COMMANDS_MAX && n_looked_at < LOOKS_MAX && spoken_next(&reader, &l)) {
		if (!parse_command(&l, slug, &ret[n]))
			continue;
		n_looked_at++;
		n += !spoken_is_enclosed(&reader, &l);
	}
	/* Removes `ok-to-test` if the comment contains `ok-to-test cancel` as well. */
	for (size_t i = 0; i < n; i++)
		is_declined |= ret[i].kind == COMMAND_DECLINE;
	for (size_t i = 0; i < n; i++)
		if (!is_declined || ret[i].kind != COMMAND_OK_TO_TEST)
			ret[n_kept++] = ret[i];
	return n_kept;
}
