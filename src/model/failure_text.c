/* One pass over the message, a lexeme at a time. Nothing that is written reads as something to take
 * out: what begins with a digit begins with a letter afterwards, a path loses its folders, and no
 * lexeme joins what is around it. That, and that lexemes are written whole or not at all, is why it
 * is idempotent. */
#include "model/failure_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/failure_word.h"

struct scan {
	const char *at;
	char out[FAILURE_TEXT_MAX_BYTES + 1];
	size_t len;
	bool is_full; /* a lexeme did not fit: nothing behind it is written */
};

static bool is_blank(char c)
{
	return c && ((unsigned char)c <= ' ' || c == 0x7f);
}

static bool is_of_path(char c)
{
	return failure_is_word(c) || (c && strchr("/.+-@%~=", c));
}

static bool is_of_drive_path(char c)
{
	return is_of_path(c) || c == '\\';
}

static void emit(struct scan *s, const char *p, size_t n)
{
	if (s->is_full || s->len + n > FAILURE_TEXT_MAX_BYTES) {
		s->is_full = true;
		return;
	}
	memcpy(s->out + s->len, p, n);
	s->len += n;
}

static char last_written(const struct scan *s)
{
	return s->len ? s->out[s->len - 1] : '\0';
}

/* The rest of tmp.Xa3bC9dEf1, as mktemp makes them. */
static bool is_rest_of_temporary(const struct scan *s, const char *p, size_t n)
{
	return s->len >= 4 && memcmp(s->out + s->len - 4, "tmp.", 4) == 0 && n >= 6 &&
	       failure_has_digit(p, n);
}

/* ---- words ---- */

/* Where the last part of a path begins, or NULL when it has none. */
static const char *base_name(const char *p, size_t n)
{
	while (n && (p[n - 1] == '/' || p[n - 1] == '\\'))
		n--;
	if (!n)
		return NULL;
	while (n && p[n - 1] != '/' && p[n - 1] != '\\')
		n--;
	return p + n;
}

static bool skip_drive(struct scan *s, size_t n)
{
	const char *path = s->at + 2, *base;

	if (n != 1 || !isalpha((unsigned char)s->at[0]) || s->at[0] == FAILURE_PLACEHOLDER ||
	    s->at[1] != ':' || *path != '\\')
		return false;
	base = base_name(path, failure_span(path, is_of_drive_path));
	if (base)
		s->at = base;
	return base != NULL;
}

static void take_word(struct scan *s)
{
	size_t n = failure_span(s->at, failure_is_word);
	struct failure_word w;

	if (skip_drive(s, n))
		return;
	if (is_rest_of_temporary(s, s->at, n)) {
		emit(s, (const char[]){FAILURE_PLACEHOLDER}, 1);
		s->at += n;
		return;
	}
	s->at += failure_word_take(s->at, n, &w);
	emit(s, w.text, w.len);
}

/* ---- the rest ---- */

static bool begins_path(const struct scan *s)
{
	char before = last_written(s);

	if (failure_is_word(before) || (before && strchr("/.)", before)))
		return false;
	if (s->at[0] == '~')
		return s->at[1] == '/';
	return s->at[0] == '/' && !(before == ':' && s->at[1] == '/');
}

static bool skip_folders(struct scan *s)
{
	const char *base;

	if (!begins_path(s))
		return false;
	base = base_name(s->at, failure_span(s->at, is_of_path));
	if (!base || base == s->at)
		return false;
	s->at = base;
	return true;
}

/* Colours: with their escape, or what is left where that was dropped. */
static size_t escape_length(const char *p)
{
	size_t n = *p == 0x1b;

	if (p[n] != '[')
		return 0;
	n++;
	while (failure_is_digit(p[n]) || p[n] == ';' || p[n] == '?')
		n++;
	if (*p == 0x1b)
		return p[n] >= 0x40 && p[n] <= 0x7e ? n + 1 : n;
	return p[n] == 'm' && n > 1 ? n + 1 : 0;
}

static bool is_sign(const struct scan *s)
{
	char before = last_written(s);

	if (!strchr("+-.", s->at[0]) || !failure_is_digit(s->at[1 + (s->at[1] == '.')]))
		return false;
	return !failure_is_word(before) && before != ')' && before != ']';
}

/* Blanks and quotation marks of all kinds, by their length; 0: neither. */
static size_t other_form(const char *p, char *ret)
{
	static const struct {
		const char *form;
		char as;
	} FORMS[] = {{"\"", '\''}, {"`", '\''}, {"\xe2\x80\x98", '\''}, {"\xe2\x80\x99", '\''},
	    {"\xe2\x80\x9c", '\''}, {"\xe2\x80\x9d", '\''}, {"\xc2\xa0", ' '}};
	size_t n = escape_length(p);

	*ret = ' ';
	if (n || is_blank(*p))
		return n ? n : 1;
	for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
		n = strlen(FORMS[i].form);
		*ret = FORMS[i].as;
		if (strncmp(p, FORMS[i].form, n) == 0)
			return n;
	}
	return 0;
}

/* Not a part of a character, as long as the text is UTF-8. */
static size_t character_length(const char *p)
{
	size_t n = 1;

	while ((unsigned char)*p >= 0xc0 && n < 4 && ((unsigned char)p[n] & 0xc0) == 0x80)
		n++;
	return n;
}

static void take_other(struct scan *s)
{
	char as;
	size_t n = other_form(s->at, &as);

	if (n) {
		if (as != ' ' || (s->len && last_written(s) != ' '))
			emit(s, &as, 1);
	} else if (is_sign(s)) {
		n = 1;
	} else if (!skip_folders(s)) {
		n = character_length(s->at);
		emit(s, s->at, n);
	}
	s->at += n;
}

/* What PyTorch's tests add to each of their messages: how to run this one, which is not why it
 * failed, and would make any failure of the test look like the others. */
static bool begins_epilogue(const char *p)
{
	static const char HOW_TO_RUN[] = "To execute this test, run the following from the base ";

	return *p == HOW_TO_RUN[0] && strncmp(p, HOW_TO_RUN, sizeof(HOW_TO_RUN) - 1) == 0;
}

char *failure_text_normalise(const char *text)
{
	struct scan s = {.at = text};

	while (*s.at && !s.is_full && !begins_epilogue(s.at)) {
		if (failure_is_word(*s.at))
			take_word(&s);
		else
			take_other(&s);
	}
	while (last_written(&s) == ' ')
		s.len--;
	return xstrndup(s.out, s.len);
}
