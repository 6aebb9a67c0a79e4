#include "dispatch/command.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "dispatch/spoken.h"

enum {
	SHA_MIN_CHARS = 7,
	/* Each look at what encloses a line may walk over the whole comment. */
	LOOKS_MAX = 50,
};

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

/* ×N, xN; *ret_n up to a million, whatever stands there. */
static bool is_times(const struct word *w, int *ret_n)
{
	static const char times[] = "×";
	size_t n_sign =
	    w->n > 2 && memcmp(w->p, times, sizeof(times) - 1) == 0 ? sizeof(times) - 1 : 1;
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

/* The last word before *end, which moves to where the text before it ends. */
static struct word take_last_word(const char *start, const char **end)
{
	struct word w = {.p = *end};

	while (w.p > start && !isspace((unsigned char)w.p[-1]))
		w.p--;
	w.n = (size_t)(*end - w.p);
	for (*end = w.p; *end > start && isspace((unsigned char)(*end)[-1]);)
		--*end;
	return w;
}

/* Takes "×N" or "on ACCELERATOR" off the end of a text; false: neither stands there. */
static bool take_option(struct command *c, bool *has_rounds, const char *start, const char **end)
{
	const char *before = *end;
	struct word last = take_last_word(start, &before), on;

	if (before == start)
		return false;
	if (!*has_rounds && is_times(&last, &c->n_rounds)) {
		*has_rounds = true;
		*end = before;
		return true;
	}
	on = take_last_word(start, &before);
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
	while (take_option(c, &has_rounds, p, &end))
		;
	while (
	    p + 2 * n_ticks + 2 < end && p[n_ticks] == '`' && end[-1 - (ptrdiff_t)n_ticks] == '`')
		n_ticks++;
	p += n_ticks;
	end -= n_ticks;
	if (p == end || (size_t)(end - p) >= sizeof(c->test))
		return COMMAND_UNKNOWN;
	memcpy(c->test, p, (size_t)(end - p));
	return COMMAND_STRESS;
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

/* "@slug VERB [WORD]" or stress with its own words, nothing else on the line. False: it addresses somebody else. */
static bool parse_command(const struct spoken_line *l, const char *slug, struct command *ret)
{
	const char *p = l->text, *rest, *behind_verb;
	struct word name = take_word(&p, l->end), verb, argument;
	size_t n;

	*ret = (struct command){.kind = COMMAND_UNKNOWN};
	if (name.n < 2 || *name.p != '@')
		return false;
	if (slug && (name.n != strlen(slug) + 1 || strncasecmp(name.p + 1, slug, name.n - 1) != 0))
		return false;
	rest = skip_space(p, l->end);
	verb = take_word(&p, l->end);
	behind_verb = p;
	argument = take_word(&p, l->end);
	if (is_word(&verb, command_kind_name(COMMAND_STRESS)))
		ret->kind = parse_stress(ret, behind_verb, l->end);
	else if (skip_space(p, l->end) == l->end)
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
	struct spoken reader = spoken_of(text);
	struct spoken_line l;
	size_t n = 0, n_looked_at = 0;

	while (n < COMMANDS_MAX && n_looked_at < LOOKS_MAX && spoken_next(&reader, &l)) {
		if (!parse_command(&l, slug, &ret[n]))
			continue;
		n_looked_at++;
		n += !spoken_is_enclosed(&reader, &l);
	}
	return settle_ok_to_test(ret, n);
}
