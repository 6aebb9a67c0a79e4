#include "base/json_plain.h"
#include "webhook/payload.h"

/* ---- strings: checked and skipped at memory speed, decoded where a field needs it ----
 *
 * Every function relies on a '\0' behind the text. No string may contain it, so it ends every loop. */

/* The value of four hexadecimal digits, or -1. */
static int hex4(const char *p)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(p[i]);

		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

static bool is_high_surrogate(int unit) { return unit >= 0xd800 && unit <= 0xdbff; }

static bool is_low_surrogate(int unit) { return unit >= 0xdc00 && unit <= 0xdfff; }

/* The length of the escape at p (a backslash); 0: it is not valid. */
static int escape_length(const char *p)
{
	if (p[1] != 'u')
		return p[1] != '\0' && strchr("\"\\/bfnrt", p[1]) ? 2 : 0;
	int unit = hex4(p + 2);
	if (unit < 0 || is_low_surrogate(unit))
		return 0;
	if (!is_high_surrogate(unit))
		return 6;
	return p[6] == '\\' && p[7] == 'u' && is_low_surrogate(hex4(p + 8)) ? 12 : 0;
}

/* p: after the opening quote; end: the '\0'. Returns the closing quote, or NULL with the reason in *ret_why (static) and
 * the place in *ret_at, which are set only then. */
static const char *string_end(
    const char *p, const char *end, bool *ret_has_escape, const char **ret_why, const char **ret_at)
{
	*ret_has_escape = false;
	for (;;) {
		int length = 0;

		p = json_skip_plain(p, end);
		if (*p == '"')
			return p;
		if (*p == '\\') {
			*ret_has_escape = true;
			length = escape_length(p);
		} else if ((unsigned char)*p >= 0x80) {
			length = (int)utf8_sequence_bytes(p, (size_t)(end - p));
		}
		if (length == 0) {
			*ret_at = p;
			*ret_why = *p == '\\'                  ? "a wrong escape in a string"
				   : (unsigned char)*p >= 0x80 ? "a string that is not UTF-8"
				   : p == end                  ? "a string without an end"
							       : "a control byte in a string";
			return NULL;
		}
		p += length;
	}
}

/* Decodes the escape at *p, and moves *p past it. */
static size_t decode_escape(const char **p, char out[4])
{
	static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
	const char *name = strchr(names, (*p)[1]);
	uint32_t code = (unsigned char)(*p)[1];
	int length = 2;

	if (code == 'u') {
		int unit = hex4(*p + 2);

		code = (uint32_t)unit;
		length = 6;
		if (is_high_surrogate(unit)) {
			code = 0x10000 + ((code - 0xd800) << 10) + (uint32_t)(hex4(*p + 8) - 0xdc00);
			length = 12;
		}
	} else if (name) {
		code = (unsigned char)values[name - names];
	}
	*p += length;
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* Decodes [p, end), which string_end() accepted, into out with a '\0'. False if it does not fit out_bytes or contains a
 * NUL. */
static bool string_decode(const char *p, const char *end, char *out, size_t out_bytes)
{
	size_t used = 0;

	while (p < end) {
		char bytes[4];
		size_t n = 1;

		if (*p == '\\')
			n = decode_escape(&p, bytes);
		else
			bytes[0] = *p++;
		if (bytes[0] == '\0' || used + n >= out_bytes)
			return false;
		memcpy(out + used, bytes, n);
		used += n;
	}
	out[used] = '\0';
	return true;
}

/* ---- the scan ---- */

enum { DEPTH_MAX = 64 }; /* as base/json.h: one bit of scan.in_object each */

/* The objects whose keys matter. */
enum place { PLACE_OTHER, PLACE_TOP, PLACE_REPOSITORY, PLACE_CHANGES, PLACE_ISSUE };

/* A member that matters: where its text or its flag is written to. */
struct field {
	const char *key;
	enum place place;   /* of the object that it is a member of */
	enum place inside;  /* its value is an object whose keys matter, too */
	size_t text, bytes; /* offset and size in struct skim; size 0: it is no text */
	size_t flag;        /* offset in struct skim; 0: none */
	char flag_byte;     /* the flag is set if the value begins with it */
};

#define TEXT_IN(member) .text = offsetof(struct skim, member), .bytes = sizeof(((struct skim *)0)->member)
static const struct field FIELDS[] = {
    {"action", PLACE_TOP, TEXT_IN(action)},
    {"ref", PLACE_TOP, TEXT_IN(ref)},
    {"deleted", PLACE_TOP, .flag = offsetof(struct skim, is_deleted), .flag_byte = 't'},
    {"repository", PLACE_TOP, .inside = PLACE_REPOSITORY},
    {"changes", PLACE_TOP, .inside = PLACE_CHANGES},
    {"issue", PLACE_TOP, .inside = PLACE_ISSUE},
    {"full_name", PLACE_REPOSITORY, TEXT_IN(repository)},
    {"base", PLACE_CHANGES, .flag = offsetof(struct skim, has_base_change), .flag_byte = '{'},
    {"pull_request", PLACE_ISSUE, .flag = offsetof(struct skim, is_pull_comment), .flag_byte = '{'},
};
#undef TEXT_IN

struct scan {
	const char *p, *end; /* *end is '\0', which is not valid anywhere, so the loops need no bounds */
	uint64_t in_object;  /* bit d: the container at depth d is an object */
	int depth;
	bool was_opened;   /* the last value opened a container that is still empty */
	enum place inside; /* the object open at depth 2 */
	unsigned seen;     /* bit per entry of FIELDS: a second one is refused */
	struct skim *out;
	const char *why; /* static; at p */
};

static bool fail_skim(struct scan *s, const char *at, const char *why)
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

/* NULL: the member does not matter. */
static const struct field *find_field(const struct scan *s, const char *key, size_t n)
{
	enum place place = s->depth == 1 ? PLACE_TOP : s->inside;

	for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++)
		if (FIELDS[i].place == place && strncmp(FIELDS[i].key, key, n) == 0 && FIELDS[i].key[n] == '\0')
			return &FIELDS[i];
	return NULL;
}

/* Scans the key of a member, from its opening quote past its colon. */
static bool scan_key(struct scan *s, const struct field **ret)
{
	const char *start = s->p + 1, *at;
	bool has_escape;

	if (*s->p != '"')
		return fail_skim(s, s->p, "a key was expected");
	const char *end = string_end(start, s->end, &has_escape, &s->why, &at);
	if (!end)
		return fail_skim(s, at, s->why);
	if (s->depth == 1 || (s->depth == 2 && s->inside != PLACE_OTHER)) {
		char plain[32];

		if (!has_escape)
			*ret = find_field(s, start, (size_t)(end - start));
		else if (string_decode(start, end, plain, sizeof plain))
			*ret = find_field(s, plain, strlen(plain));
		unsigned bit = *ret ? 1U << (*ret - FIELDS) : 0;
		if (s->seen & bit)
			return fail_skim(s, start, "a duplicate key");
		s->seen |= bit;
	}
	s->p = end + 1;
	skip_space(s);
	if (*s->p != ':')
		return fail_skim(s, s->p, "a ':' was expected");
	s->p++;
	return true;
}

static bool scan_string(struct scan *s, const struct field *field)
{
	const char *start = s->p + 1, *at;
	bool has_escape;
	const char *end = string_end(start, s->end, &has_escape, &s->why, &at);

	if (!end)
		return fail_skim(s, at, s->why);
	if (field && field->bytes) {
		char *text = (char *)s->out + field->text;

		if (!string_decode(start, end, text, field->bytes))
			text[0] = '\0';
	}
	s->p = end + 1;
	return true;
}

static bool scan_scalar(struct scan *s)
{
	const char *end = json_scalar_end(s->p, s->end);

	if (!end)
		return fail_skim(s, s->p, "a value was expected");
	s->p = end;
	return true;
}

static bool open_container(struct scan *s, const struct field *field)
{
	bool is_object = *s->p == '{';

	if (s->depth == DEPTH_MAX)
		return fail_skim(s, s->p, "nested deeper than 64");
	if (is_object)
		s->in_object |= UINT64_C(1) << s->depth;
	else
		s->in_object &= ~(UINT64_C(1) << s->depth);
	s->depth++;
	if (s->depth == 2)
		s->inside = is_object && field ? field->inside : PLACE_OTHER;
	s->was_opened = true;
	s->p++;
	return true;
}

/* Scans a whole scalar, or the opening bracket of a container. */
static bool scan_value(struct scan *s, const struct field *field)
{
	skip_space(s);
	s->was_opened = false;
	if (field && field->flag && *s->p == field->flag_byte)
		*(bool *)((char *)s->out + field->flag) = true;
	switch (*s->p) {
	case '"':
		return scan_string(s, field);
	case '{':
	case '[':
		return open_container(s, field);
	default:
		return scan_scalar(s);
	}
}

/* Scans from the end of a value to the beginning of the next one: closing brackets, a comma, a key. False: the document
 * has ended (s->why is NULL), or has a mistake. */
static bool scan_to_next(struct scan *s, const struct field **ret)
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
				return fail_skim(s, s->p, "a ',' or a closing bracket was expected");
			s->p++;
			skip_space(s);
		}
		*ret = NULL;
		return is_object ? scan_key(s, ret) : true;
	}
	skip_space(s);
	return s->p == s->end ? false : fail_skim(s, s->p, "text after the end of the document");
}

int skim(const char *body, size_t n, struct skim *ret, struct error *e)
{
	struct scan s = {.p = body, .end = body + n, .inside = PLACE_OTHER, .out = ret};
	const struct field *field = NULL;

	ret->action[0] = ret->repository[0] = ret->ref[0] = '\0';
	ret->is_deleted = ret->has_base_change = ret->is_pull_comment = false;
	skip_space(&s);
	if (*s.p != '{')
		return error_set(e, ERR_INVALID, "byte %zu: not a JSON object", (size_t)(s.p - body));
	while (scan_value(&s, field) && scan_to_next(&s, &field))
		;
	if (s.why)
		return error_set(e, ERR_INVALID, "byte %zu: %s", (size_t)(s.p - body), s.why);
	return 0;
}
