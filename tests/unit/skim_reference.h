/* skim() once more, byte by byte and without any of its shortcuts: the reference that it is compared with, down to the text and
 * the place of a mistake. Thread: any. */
#pragma once

#include "webhook/payload.h"

struct reference {
	const char *p, *end; /* *end is '\0' */
	int depth;
	unsigned seen; /* fields */
	struct skim *out;
	const char *why; /* at p */
};

/* A key or a value. `text` is its decoded text if it is a string that fits and has no NUL, else NULL. */
struct reference_string {
	char bytes[sizeof(((struct skim *)0)->ref)];
	const char *text;
};

static inline bool reference_fails(struct reference *r, const char *why)
{
	r->why = why;
	return false;
}

static inline void reference_space(struct reference *r)
{
	while (*r->p && strchr(" \t\r\n", *r->p))
		r->p++;
}

/* The code of \uXXXX at p, or -1. */
static inline int reference_unit(const char *p)
{
	int code = 0;

	if (p[0] != '\\' || p[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		if (hex_digit(p[i]) < 0)
			return -1;
		code = code * 16 + hex_digit(p[i]);
	}
	return code;
}

/* One character of a string as UTF-8. The length of its text; 0: it is not valid. */
static inline size_t reference_character(const struct reference *r, char out[5])
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *name;
	int code, low;

	memset(out, 0, 5);
	if (*r->p != '\\') {
		size_t n = (unsigned char)*r->p < 0x20 ? 0 : utf8_sequence_bytes(r->p, (size_t)(r->end - r->p));

		memcpy(out, r->p, n);
		return n;
	}
	if (r->p[1] != 'u') {
		name = r->p[1] ? strchr(names, r->p[1]) : NULL;
		out[0] = name ? values[name - names] : '\0';
		return name ? 2 : 0;
	}
	code = reference_unit(r->p);
	if (code < 0 || (code >= 0xdc00 && code <= 0xdfff))
		return 0;
	if (code >= 0xd800 && code <= 0xdbff) {
		low = reference_unit(r->p + 6);
		if (low < 0xdc00 || low > 0xdfff)
			return 0;
		code = 0x10000 + (code - 0xd800) * 0x400 + low - 0xdc00;
		out[0] = (char)(0xf0 | code >> 18);
		out[1] = (char)(0x80 | (code >> 12 & 63));
		out[2] = (char)(0x80 | (code >> 6 & 63));
		out[3] = (char)(0x80 | (code & 63));
		return 12;
	}
	if (code >= 0x800) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 63));
		out[2] = (char)(0x80 | (code & 63));
	} else if (code >= 0x80) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 63));
	} else {
		out[0] = (char)code;
	}
	return 6;
}

static inline bool reference_string(struct reference *r, struct reference_string *ret)
{
	size_t used = 0;
	bool is_usable = true;

	ret->text = NULL;
	for (r->p++; *r->p != '"';) {
		char one[5];
		size_t n = reference_character(r, one);

		if (n == 0)
			return reference_fails(r, *r->p == '\\'                  ? "a wrong escape in a string"
						  : (unsigned char)*r->p >= 0x80 ? "a string that is not UTF-8"
						  : r->p == r->end               ? "a string without an end"
										 : "a control byte in a string");
		is_usable &= one[0] != '\0' && used + strlen(one) < sizeof(ret->bytes);
		if (is_usable)
			memcpy(ret->bytes + used, one, strlen(one));
		used += strlen(one);
		r->p += n;
	}
	r->p++;
	if (is_usable) {
		ret->bytes[used] = '\0';
		ret->text = ret->bytes;
	}
	return true;
}

static inline void reference_put(char *to, size_t bytes, const char *text)
{
	to[0] = '\0';
	if (text && strlen(text) < bytes)
		memcpy(to, text, strlen(text) + 1);
}

/* A value that begins here; path: the keys that lead to it, or "" where none matters. */
static inline bool reference_value(struct reference *r, const char *path)
{
	static const char *const fields[] = {"/action", "/ref", "/deleted", "/repository", "/changes", "/issue",
	    "/repository/full_name", "/changes/base", "/issue/pull_request", NULL};
	struct reference_string s;
	const char *end;
	char close;

	reference_space(r);
	r->out->is_deleted |= str_eq(path, "/deleted") && *r->p == 't';
	r->out->has_base_change |= str_eq(path, "/changes/base") && *r->p == '{';
	r->out->is_pull_comment |= str_eq(path, "/issue/pull_request") && *r->p == '{';
	if (*r->p == '"') {
		if (!reference_string(r, &s))
			return false;
		if (str_eq(path, "/action"))
			reference_put(r->out->action, sizeof(r->out->action), s.text);
		if (str_eq(path, "/ref"))
			reference_put(r->out->ref, sizeof(r->out->ref), s.text);
		if (str_eq(path, "/repository/full_name"))
			reference_put(r->out->repository, sizeof(r->out->repository), s.text);
		return true;
	}
	if (*r->p != '{' && *r->p != '[') {
		end = json_scalar_end(r->p, r->end);
		if (!end)
			return reference_fails(r, "a value was expected");
		r->p = end;
		return true;
	}
	if (++r->depth > 64)
		return reference_fails(r, "nested deeper than 64");
	close = *r->p == '{' ? '}' : ']';
	r->p++;
	reference_space(r);
	for (bool is_first = true; *r->p != close; is_first = false) {
		char inside[64] = "";

		if (!is_first && *r->p != ',')
			return reference_fails(r, "a ',' or a closing bracket was expected");
		r->p += !is_first;
		reference_space(r);
		if (close == '}') {
			const char *key = r->p;

			if (*r->p != '"')
				return reference_fails(r, "a key was expected");
			if (!reference_string(r, &s))
				return false;
			if (s.text && strlen(s.text) < 32 && !strchr(s.text, '/') && (r->depth == 1 || *path))
				snprintf(inside, sizeof(inside), "%s/%s", path, s.text);
			for (size_t i = 0; fields[i]; i++) {
				if (str_eq(inside, fields[i]) && r->seen & 1U << i) {
					r->p = key + 1;
					return reference_fails(r, "a duplicate key");
				}
				r->seen |= str_eq(inside, fields[i]) ? 1U << i : 0;
			}
			reference_space(r);
			if (*r->p != ':')
				return reference_fails(r, "a ':' was expected");
			r->p++;
		}
		if (!reference_value(r, inside))
			return false;
		reference_space(r);
	}
	r->p++;
	r->depth--;
	return true;
}

/* As skim(). */
static inline int reference_skim(const char *body, size_t n, struct skim *ret, struct error *e)
{
	struct reference r = {.p = body, .end = body + n, .out = ret};

	*ret = (struct skim){.is_deleted = false};
	reference_space(&r);
	if (*r.p != '{')
		return error_set(e, ERR_INVALID, "byte %zu: not a JSON object", (size_t)(r.p - body));
	if (reference_value(&r, "")) {
		reference_space(&r);
		if (r.p == r.end)
			return 0;
		r.why = "text after the end of the document";
	}
	return error_set(e, ERR_INVALID, "byte %zu: %s", (size_t)(r.p - body), r.why);
}
