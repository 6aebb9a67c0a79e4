#include "model/runner_protocol.h"

/* ---- texts ---- */

static bool is_word(const char *s, const char *also)
{
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr(also, *s))
			return false;
	return true;
}

/* jansson gives valid UTF-8 only, so the C1 controls are two bytes. */
static bool is_line(const char *s)
{
	for (const unsigned char *c = (const unsigned char *)s; *c; c++)
		if (*c < 0x20 || *c == 0x7f || (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0))
			return false;
	return true;
}

/* NULL: the text follows the rule; else the rule in words. */
static const char *text_must_be(enum text_rule rule, const char *s)
{
	switch (rule) {
	case RULE_ID:
		return is_word(s, "-") ? NULL : "letters, digits and -";
	case RULE_NAME:
		return is_word(s, "-._") ? NULL : "letters, digits, -, . and _";
	case RULE_REPOSITORY:
		return is_repository_name(s) ? NULL : "owner/name";
	case RULE_SHA:
		return is_sha1(s) ? NULL : "40 lower-case hexadecimal digits";
	case RULE_LINE:
	case RULE_PROSE:
	default:
		return is_line(s) ? NULL : "one line without control characters";
	}
}

int protocol_check_text(const struct text_field *f, const char *s, struct error *e)
{
	size_t n = strlen(s);

	if (n == 0 || n > f->max_bytes)
		return error_set(e, ERR_INVALID, "%s must be 1 to %zu bytes, not %zu", f->key, f->max_bytes, n);
	const char *what = text_must_be(f->rule, s);
	return what ? error_set(e, ERR_INVALID, "%s must be %s", f->key, what) : 0;
}

static int read_field_text(const json_t *obj, const struct text_field *f, void *base, struct error *e)
{
	const json_t *v = json_object_get(obj, f->key);
	char **target = (char **)(void *)((char *)base + f->offset);

	if (!v || json_is_null(v) || (f->presence == FIELD_OPTIONAL && json_is_string(v) && !json_string_length(v)))
		return f->presence == FIELD_OPTIONAL ? 0 : error_set(e, ERR_INVALID, "%s is missing", f->key);
	if (!json_is_string(v))
		return error_set(e, ERR_INVALID, "%s must be text", f->key);
	if (f->rule == RULE_PROSE) {
		const char *s = json_string_value(v);
		char *out = xstrndup(s, utf8_cut(s, strlen(s), f->max_bytes));

		/* Makes it one line for is_line(); NULL: nothing is left. */
		for (unsigned char *c = (unsigned char *)out; *c; c++)
			if (*c < 0x20 || *c == 0x7f)
				*c = ' ';
			else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
				c[0] = c[1] = ' ';
		if (!*out)
			FREE_AND_NULL(out);
		*target = out;
		return 0;
	}
	int rc = protocol_check_text(f, json_string_value(v), e);
	if (!rc)
		*target = xstrdup(json_string_value(v));
	return rc;
}

int protocol_read_texts(const json_t *obj, const struct text_field *table, void *base, struct error *e)
{
	int rc = 0;

	for (const struct text_field *f = table; f->key && !rc; f++)
		rc = read_field_text(obj, f, base, e);
	return rc;
}

void protocol_write_texts(json_t *obj, const struct text_field *table, const void *base)
{
	for (const struct text_field *f = table; f->key; f++)
		json_set_str(obj, f->key, *(char *const *)(const void *)((const char *)base + f->offset));
}

void protocol_release_texts(const struct text_field *table, void *base)
{
	for (const struct text_field *f = table; f->key; f++)
		free(*(char **)(void *)((char *)base + f->offset));
}

/* ---- numbers and words ---- */

int protocol_read_number(const json_t *obj, const char *key, int64_t min, int64_t max, int64_t *ret, struct error *e)
{
	const json_t *v = json_object_get(obj, key);

	if (!v)
		return error_set(e, ERR_INVALID, "%s is missing", key);
	if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
		return error_set(
		    e, ERR_INVALID, "%s must be a whole number from %lld to %lld", key, (long long)min, (long long)max);
	*ret = json_integer_value(v);
	return 0;
}

int protocol_read_number_or_null(const json_t *obj, const char *key, int64_t *ret, struct error *e)
{
	const json_t *v = json_object_get(obj, key);

	*ret = 0;
	return !v || json_is_null(v) ? 0 : protocol_read_number(obj, key, 1, INT64_MAX, ret, e);
}

void protocol_write_number_or_null(json_t *obj, const char *key, int64_t n)
{
	json_object_set_new(obj, key, n ? json_integer(n) : json_null());
}

int protocol_parse(const char *text, size_t n, const char *what, json_t **ret, struct error *e)
{
	int rc = json_parse(text, n, ret, e);

	if (rc)
		return rc;
	if (json_is_object(*ret))
		return 0;
	json_decref(*ret);
	*ret = NULL;
	return error_set(e, ERR_INVALID, "%s must be a JSON object", what);
}

char *protocol_text(json_t *v)
{
	char *text = json_text(v);

	json_decref(v);
	return text;
}
