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
enum place { PLACE_OTHER, PLACE_TOP, PLACE_REPOSITORY, PLACE_CHANGES, PLACE_ISSUE, N_PLACES };

/* A member that matters: where its text or its flag is written to. */
struct field {
	const char *key;
	size_t key_bytes;
	enum place inside;  /* its value is an object whose keys matter, too */
	size_t text, bytes; /* offset and size in struct skim; size 0: it is no text */
	size_t flag;        /* offset in struct skim; 0: none */
	char flag_byte;     /* the flag is set if the value begins with it */
};

enum { FIELDS_MAX = 8 };

#define KEY(its_key)           .key = its_key, .key_bytes = sizeof(its_key) - 1
#define TEXT_IN(member)        .text = offsetof(struct skim, member), .bytes = sizeof(((struct skim *)0)->member)
#define FLAG_IN(member, first) .flag = offsetof(struct skim, member), .flag_byte = first
static const struct field FIELDS[N_PLACES][FIELDS_MAX] = {
    [PLACE_TOP] = {{KEY("action"), TEXT_IN(action)}, {KEY("ref"), TEXT_IN(ref)},
	{KEY("deleted"), FLAG_IN(is_deleted, 't')}, {KEY("repository"), .inside = PLACE_REPOSITORY},
	{KEY("changes"), .inside = PLACE_CHANGES}, {KEY("issue"), .inside = PLACE_ISSUE}},
    [PLACE_REPOSITORY] = {{KEY("full_name"), TEXT_IN(repository)}},
    [PLACE_CHANGES] = {{KEY("base"), FLAG_IN(has_base_change, '{')}},
    [PLACE_ISSUE] = {{KEY("pull_request"), FLAG_IN(is_pull_comment, '{')}},
};
#undef KEY
#undef TEXT_IN
#undef FLAG_IN

/* The functions below get the place in the text and return the next one, so that it stays in a register. They return NULL
 * after fail_skim(). */
struct scan {
	const char *end; /* *end is '\0', which is not valid anywhere, so the loops need no bounds */
	struct json_marks marks;
	uint64_t in_object; /* bit d: the container at depth d is an object */
	int depth;
	enum place place;  /* the innermost container, if it is an object whose keys matter */
	enum place inside; /* the object open at depth 2 */
	uint64_t seen;     /* bit per entry of FIELDS: a second one is refused */
	struct skim *out;
	bool has_escape;      /* the string that was scanned last */
	const char *why, *at; /* why is static */
};

static const char *fail_skim(struct scan *s, const char *at, const char *why)
{
	s->at = at;
	s->why = why;
	return NULL;
}

static inline const char *skip_space(const char *p)
{
	/* GitHub sends compact JSON: the first test nearly always ends it. */
	while ((unsigned char)*p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
		p++;
	return p;
}

/* p: not a plain byte of a string. Returns the closing quote. */
static const char *string_end_slowly(struct scan *s, const char *p)
{
	while (*p != '"') {
		int length = 0;

		if (*p == '\\') {
			s->has_escape = true;
			length = escape_length(p);
			s->out->has_nul |= length == 6 && memcmp(p + 2, "0000", 4) == 0;
		} else if ((unsigned char)*p >= 0x80) {
			length = (int)utf8_sequence_bytes(p, (size_t)(s->end - p));
		}
		if (length == 0)
			return fail_skim(s, p,
			    *p == '\\'                  ? "a wrong escape in a string"
			    : (unsigned char)*p >= 0x80 ? "a string that is not UTF-8"
			    : p == s->end               ? "a string without an end"
							: "a control byte in a string");
		p = json_marks_next(&s->marks, p + length);
	}
	return p;
}

/* p: after the opening quote. Returns the closing quote, and sets has_escape. */
static inline const char *string_end(struct scan *s, const char *p)
{
	s->has_escape = false;
	p = json_marks_next(&s->marks, p);
	return *p == '"' ? p : string_end_slowly(s, p);
}

/* Finds the field with this key, if it matters. False: it came before. (Not inline: scan_values() would lack registers.) */
static __attribute__((noinline)) bool find_field(struct scan *s, const char *key, size_t n, const struct field **ret)
{
	for (const struct field *f = FIELDS[s->place]; f->key; f++) {
		uint64_t bit = UINT64_C(1) << (f - FIELDS[0]);

		if (f->key_bytes != n || memcmp(f->key, key, n) != 0)
			continue;
		if (s->seen & bit)
			return false;
		s->seen |= bit;
		*ret = f;
	}
	return true;
}

/* The same for the key [p, end), which has escapes. */
static __attribute__((noinline)) bool find_escaped_field(
    struct scan *s, const char *p, const char *end, const struct field **ret)
{
	char plain[32];

	return !string_decode(p, end, plain, sizeof plain) || find_field(s, plain, strlen(plain), ret);
}

/* Scans the key of a member, from its opening quote past its colon. */
static inline const char *scan_key(struct scan *s, const char *p, const struct field **ret)
{
	if (*p != '"')
		return fail_skim(s, p, "a key was expected");
	const char *end = string_end(s, p + 1);
	if (!end)
		return NULL;
	if (s->place != PLACE_OTHER && !(s->has_escape ? find_escaped_field(s, p + 1, end, ret)
						       : find_field(s, p + 1, (size_t)(end - p - 1), ret)))
		return fail_skim(s, p + 1, "a duplicate key");
	p = skip_space(end + 1);
	return *p == ':' ? p + 1 : fail_skim(s, p, "a ':' was expected");
}

/* Reads the value at p, if it is of the field's kind. A string that is not valid is found later. */
static const char *scan_field_string(struct scan *s, const char *p, const struct field *field)
{
	const char *end = string_end(s, p + 1);
	char *text = (char *)s->out + field->text;

	if (end && field->bytes && !string_decode(p + 1, end, text, field->bytes))
		text[0] = '\0';
	return end ? end + 1 : NULL;
}

static const char *scan_scalar(struct scan *s, const char *p)
{
	const char *end = json_scalar_end(p, s->end);

	return end ? end : fail_skim(s, p, "a value was expected");
}

static enum place place_at_depth(const struct scan *s)
{
	return s->depth == 1 ? PLACE_TOP : s->depth == 2 ? s->inside : PLACE_OTHER;
}

static const char *open_container(struct scan *s, const char *p, const struct field *field)
{
	bool is_object = *p == '{';

	if (s->depth == DEPTH_MAX)
		return fail_skim(s, p, "nested deeper than 64");
	s->in_object = (s->in_object & ~(UINT64_C(1) << s->depth)) | (uint64_t)is_object << s->depth;
	s->depth++;
	if (s->depth == 2)
		s->inside = is_object && field ? field->inside : PLACE_OTHER;
	s->place = place_at_depth(s);
	return skip_space(p + 1);
}

/* Scans the values from p on, the first of which is the whole document. */
static const char *scan_values(struct scan *s, const char *p)
{
	const struct field *field = NULL;
	bool is_object = false; /* the innermost container */

	for (;;) {
		p = skip_space(p);
		if (field && field->flag && *p == field->flag_byte)
			*(bool *)((char *)s->out + field->flag) = true;
		if (*p == '"' && field) {
			p = scan_field_string(s, p, field);
		} else if (*p == '"') {
			p = string_end(s, p + 1);
			p = p ? p + 1 : NULL;
		} else if (*p == '{' || *p == '[') {
			is_object = *p == '{';
			p = open_container(s, p, field);
			field = NULL;
			if (p && *p != (is_object ? '}' : ']')) { /* its first member */
				p = is_object ? scan_key(s, p, &field) : p;
				if (!p)
					return NULL;
				continue;
			}
		} else {
			p = scan_scalar(s, p);
		}
		if (!p)
			return NULL;
		for (p = skip_space(p); s->depth > 0 && *p == (is_object ? '}' : ']'); p = skip_space(p + 1)) {
			s->depth--;
			s->place = place_at_depth(s);
			is_object = s->depth > 0 && (s->in_object >> (s->depth - 1) & 1);
		}
		if (s->depth == 0)
			return p;
		if (*p != ',')
			return fail_skim(s, p, "a ',' or a closing bracket was expected");
		p = skip_space(p + 1);
		field = NULL;
		if (is_object)
			p = scan_key(s, p, &field);
		if (!p)
			return NULL;
	}
}

int skim(const char *body, size_t n, struct skim *ret, struct error *e)
{
	struct scan s = {.end = body + n, .out = ret};
	const char *p = skip_space(body);

	ret->action[0] = ret->repository[0] = ret->ref[0] = '\0';
	ret->is_deleted = ret->has_base_change = ret->is_pull_comment = ret->has_nul = false;
	json_marks_begin(&s.marks, body, s.end);
	if (*p != '{')
		return error_set(e, ERR_INVALID, "byte %zu: not a JSON object", (size_t)(p - body));
	p = scan_values(&s, p);
	if (p && p != s.end)
		p = fail_skim(&s, p, "text after the end of the document");
	if (!p)
		return error_set(e, ERR_INVALID, "byte %zu: %s", (size_t)(s.at - body), s.why);
	return 0;
}
