#include "webhook/skim.h"

#include <stdint.h>
#include <string.h>

#include "webhook/json_text.h"

enum { DEPTH_MAX = 64 }; /* as base/json.h: one bit of scan.in_object each */

/* Whose keys are looked at. */
enum place { PLACE_TOP, PLACE_REPOSITORY, PLACE_CHANGES, PLACE_ISSUE, PLACE_OTHER };

/* X(FIELD, place, key) */
#define FIELDS(X)                                                                                  \
	X(ACTION, TOP, "action")                                                                   \
	X(REF, TOP, "ref")                                                                         \
	X(DELETED, TOP, "deleted")                                                                 \
	X(REPOSITORY, TOP, "repository")                                                           \
	X(CHANGES, TOP, "changes")                                                                 \
	X(ISSUE, TOP, "issue")                                                                     \
	X(FULL_NAME, REPOSITORY, "full_name")                                                      \
	X(BASE, CHANGES, "base")                                                                   \
	X(PULL_REQUEST, ISSUE, "pull_request")

enum field {
#define X(e, place, key) FIELD_##e,
	FIELDS(X)
#undef X
	    FIELD_NONE
};

static const struct {
	enum place place;
	size_t n;
	const char *key;
} fields[] = {
#define X(e, place, key) {PLACE_##place, sizeof key - 1, key},
    FIELDS(X)
#undef X
};

struct scan {
	const char *p, *end; /* *end is '\0', which is valid nowhere: no bounds in the loops */
	uint64_t in_object;  /* bit d: what opened at depth d is an object */
	int depth;
	bool was_opened;   /* the last value opened a container that is still empty */
	enum place inside; /* the object open at depth 2 */
	unsigned seen;     /* bit per field: a second one is refused */
	struct skim *out;
	const char *why; /* static; at p */
};

static bool fail(struct scan *s, const char *at, const char *why)
{
	s->p = at;
	s->why = why;
	return false;
}

static void skip_space(struct scan *s)
{
	const char *p = s->p;

	/* GitHub sends compact JSON: the first test nearly always ends it. */
	while ((unsigned char)*p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
		p++;
	s->p = p;
}

static enum field find_field(const struct scan *s, const char *key, size_t n)
{
	enum place place = s->depth == 1 ? PLACE_TOP : s->inside;

	for (int i = 0; i < FIELD_NONE; i++)
		if (fields[i].place == place && fields[i].n == n &&
		    memcmp(fields[i].key, key, n) == 0)
			return (enum field)i;
	return FIELD_NONE;
}

/* The key of a member, from its opening quote to behind its colon. */
static bool scan_key(struct scan *s, enum field *ret)
{
	const char *start = s->p + 1, *end, *at;
	bool has_escape;

	*ret = FIELD_NONE;
	if (*s->p != '"')
		return fail(s, s->p, "a key was expected");
	end = json_text_end(start, s->end, &has_escape, &s->why, &at);
	if (!end)
		return fail(s, at, s->why);
	if (s->depth == 1 || (s->depth == 2 && s->inside != PLACE_OTHER)) {
		char plain[32];

		if (!has_escape)
			*ret = find_field(s, start, (size_t)(end - start));
		else if (json_text_decode(start, end, plain, sizeof plain))
			*ret = find_field(s, plain, strlen(plain));
		if (*ret != FIELD_NONE && s->seen & 1u << *ret)
			return fail(s, start, "a duplicate key");
		if (*ret != FIELD_NONE)
			s->seen |= 1u << *ret;
	}
	s->p = end + 1;
	skip_space(s);
	if (*s->p != ':')
		return fail(s, s->p, "a ':' was expected");
	s->p++;
	return true;
}

static void keep_text(struct skim *out, enum field field, const char *p, const char *end)
{
	char *text = field == FIELD_ACTION      ? out->action
		     : field == FIELD_REF       ? out->ref
		     : field == FIELD_FULL_NAME ? out->repository
						: NULL;
	size_t bytes = field == FIELD_ACTION ? sizeof out->action
		       : field == FIELD_REF  ? sizeof out->ref
					     : sizeof out->repository;

	if (text && !json_text_decode(p, end, text, bytes))
		text[0] = '\0';
}

static bool scan_string(struct scan *s, enum field field)
{
	const char *start = s->p + 1, *at;
	bool has_escape;
	const char *end = json_text_end(start, s->end, &has_escape, &s->why, &at);

	if (!end)
		return fail(s, at, s->why);
	if (field != FIELD_NONE)
		keep_text(s->out, field, start, end);
	s->p = end + 1;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *p)
{
	while (is_digit(*p))
		p++;
	return p;
}

/* RFC 8259 section 6. */
static bool scan_number(struct scan *s)
{
	const char *p = s->p;

	if (*p == '-')
		p++;
	if (!is_digit(*p))
		return fail(s, p, "a value was expected");
	p = *p == '0' ? p + 1 : skip_digits(p);
	if (*p == '.') {
		if (!is_digit(p[1]))
			return fail(s, p, "a wrong number");
		p = skip_digits(p + 1);
	}
	if (*p == 'e' || *p == 'E') {
		p++;
		if (*p == '+' || *p == '-')
			p++;
		if (!is_digit(*p))
			return fail(s, p, "a wrong number");
		p = skip_digits(p);
	}
	s->p = p;
	return true;
}

static bool scan_word(struct scan *s, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(s->p, word, n) != 0)
		return fail(s, s->p, "a value was expected");
	s->p += n;
	return true;
}

static bool open_container(struct scan *s, enum field field)
{
	bool is_object = *s->p == '{';

	if (s->depth == DEPTH_MAX)
		return fail(s, s->p, "nested deeper than 64");
	if (is_object)
		s->in_object |= UINT64_C(1) << s->depth;
	else
		s->in_object &= ~(UINT64_C(1) << s->depth);
	s->depth++;
	if (s->depth == 2)
		s->inside = !is_object                  ? PLACE_OTHER
			    : field == FIELD_REPOSITORY ? PLACE_REPOSITORY
			    : field == FIELD_CHANGES    ? PLACE_CHANGES
			    : field == FIELD_ISSUE      ? PLACE_ISSUE
							: PLACE_OTHER;
	if (is_object && field == FIELD_BASE)
		s->out->has_base_change = true;
	if (is_object && field == FIELD_PULL_REQUEST)
		s->out->is_pull_comment = true;
	s->was_opened = true;
	s->p++;
	return true;
}

/* A whole scalar, or the opening bracket of a container. */
static bool scan_value(struct scan *s, enum field field)
{
	skip_space(s);
	s->was_opened = false;
	switch (*s->p) {
	case '"':
		return scan_string(s, field);
	case '{':
	case '[':
		return open_container(s, field);
	case 't':
		if (field == FIELD_DELETED)
			s->out->is_deleted = true;
		return scan_word(s, "true");
	case 'f':
		return scan_word(s, "false");
	case 'n':
		return scan_word(s, "null");
	default:
		return scan_number(s);
	}
}

/* From behind a value to where the next one starts: closing brackets, a comma, a key.
 * False at the end of the document (s->why is NULL) and on a mistake. */
static bool scan_to_next(struct scan *s, enum field *ret)
{
	while (s->depth > 0) {
		bool is_object = s->in_object >> (s->depth - 1) & 1;

		skip_space(s);
		if (*s->p == (is_object ? '}' : ']')) {
			s->p++;
			s->depth--;
			s->was_opened = false;
			continue;
		}
		if (!s->was_opened) {
			if (*s->p != ',')
				return fail(s, s->p, "a ',' or a closing bracket was expected");
			s->p++;
			skip_space(s);
		}
		*ret = FIELD_NONE;
		return is_object ? scan_key(s, ret) : true;
	}
	skip_space(s);
	return s->p == s->end ? false : fail(s, s->p, "something behind the end");
}

int skim(const char *body, size_t n, struct skim *ret, struct error *e)
{
	struct scan s = {.p = body, .end = body + n, .inside = PLACE_OTHER, .out = ret};
	enum field field = FIELD_NONE;

	ret->action[0] = ret->repository[0] = ret->ref[0] = '\0';
	ret->is_deleted = ret->has_base_change = ret->is_pull_comment = false;
	skip_space(&s);
	if (*s.p != '{')
		return error_set(
		    e, ERR_INVALID, "byte %zu: not a JSON object", (size_t)(s.p - body));
	while (scan_value(&s, field) && scan_to_next(&s, &field))
		;
	if (s.why)
		return error_set(e, ERR_INVALID, "byte %zu: %s", (size_t)(s.p - body), s.why);
	return 0;
}
