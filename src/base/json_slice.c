#include "base/json_plain.h"

/* The depth is base/json.h's. */
enum { DEPTH_MAX = 64, TREE_MAX_BYTES = 64 << 10, MEMBERS_MAX = 16 };

static bool scan_fail(struct json_scan *s, const char *why)
{
	s->why = why;
	return false;
}

static bool is_at(const struct json_scan *s, char c) { return s->p < s->end && *s->p == c; }

static void skip_blank(struct json_scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r'))
		s->p++;
}

static bool scan_escape(struct json_scan *s)
{
	static const char zero[] = "0000";

	s->p++;
	if (s->p == s->end || !*s->p || !strchr("\"\\/bfnrtu", *s->p))
		return scan_fail(s, "a wrong escape in a string");
	if (*s->p++ != 'u')
		return true;
	if (s->end - s->p < 4)
		return scan_fail(s, "a wrong escape in a string");
	for (int i = 0; i < 4; i++)
		if (!s->p[i] || !strchr("0123456789abcdefABCDEF", s->p[i]))
			return scan_fail(s, "a wrong escape in a string");
	if (memcmp(s->p, zero, 4) == 0)
		return scan_fail(s, "a NUL character in a string");
	s->p += 4;
	return true;
}

static bool scan_string(struct json_scan *s)
{
	if (!is_at(s, '"'))
		return scan_fail(s, "a string was expected");
	s->p++;
	for (;;) {
		s->p = json_skip_plain(s->p, s->end);
		if (s->p == s->end)
			return scan_fail(s, "a string without an end");
		if (*s->p == '"')
			break;
		if (*s->p == '\\') {
			if (!scan_escape(s))
				return false;
		} else if ((unsigned char)*s->p < 0x20) {
			return scan_fail(s, "a control character in a string");
		} else {
			s->p++; /* of a character of several bytes */
		}
	}
	s->p++;
	return true;
}

static bool scan_scalar(struct json_scan *s)
{
	const char *end;

	if (s->p == s->end)
		return scan_fail(s, "it ends too early");
	if (*s->p == '"')
		return scan_string(s);
	end = json_scalar_end(s->p, s->end);
	if (!end)
		return scan_fail(s, "a value was expected");
	s->p = end;
	return true;
}

/* Reads the key, the colon and the blanks after it. */
static bool scan_key(struct json_scan *s, struct json_slice *ret_key)
{
	ret_key->p = s->p;
	if (!scan_string(s))
		return false;
	ret_key->n = (size_t)(s->p - ret_key->p);
	skip_blank(s);
	if (!is_at(s, ':'))
		return scan_fail(s, "a ':' was expected");
	s->p++;
	skip_blank(s);
	return true;
}

/* Moves from '{' or '[' (is_first) or the end of an element to the next element, or past the closing bracket. */
static inline bool scan_to_element(struct json_scan *s, bool is_first, char close)
{
	if (is_first && s->depth == DEPTH_MAX)
		return scan_fail(s, "nested deeper than 64");
	s->depth += is_first;
	s->p += is_first;
	skip_blank(s);
	if (is_at(s, close)) {
		s->depth--;
		s->p++;
		return false;
	}
	if (is_first)
		return true;
	if (s->p == s->end)
		return scan_fail(s, "it ends too early");
	if (*s->p != ',')
		return scan_fail(s, close == '}' ? "a ',' or '}' was expected" : "a ',' or ']' was expected");
	s->p++;
	skip_blank(s);
	return true;
}

bool json_scan_member(struct json_scan *s, bool is_first, struct json_slice *ret_key)
{
	return scan_to_element(s, is_first, '}') && scan_key(s, ret_key);
}

/* One whole value. It calls itself at most DEPTH_MAX times. */
static bool scan_value(struct json_scan *s)
{
	bool is_object = is_at(s, '{'), is_first = true;
	struct json_slice key;

	if (!is_object && !is_at(s, '['))
		return scan_scalar(s);
	while (scan_to_element(s, is_first, is_object ? '}' : ']')) {
		is_first = false;
		if ((is_object && !scan_key(s, &key)) || !scan_value(s))
			return false;
	}
	return !s->why;
}

bool json_scan_value(struct json_scan *s, struct json_slice *ret)
{
	bool is_valid;

	ret->p = s->p;
	is_valid = scan_value(s);
	ret->n = (size_t)(s->p - ret->p);
	return is_valid;
}

int json_scan_begin(struct json_scan *s, const char *text, size_t n, struct error *e)
{
	int line = 1;

	*s = (struct json_scan){.p = text, .end = text + n, .text = text};
	if (n >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
		return error_set(e, ERR_INVALID, "line 1: this is UTF-16; write it as UTF-8");
	if (!utf8_is_valid(text, n)) {
		const char *stop = memchr(text, '\n', n);

		for (const char *p = text; stop && utf8_is_valid(p, (size_t)(stop - p)); line++) {
			p = stop + 1;
			stop = p < s->end ? memchr(p, '\n', (size_t)(s->end - p)) : NULL;
		}
		return error_set(e, ERR_INVALID, "line %d: bytes that are not UTF-8", line);
	}
	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		s->p += 3;
	skip_blank(s);
	return 0;
}

int json_scan_end(struct json_scan *s, struct error *e)
{
	int line = 1;

	if (!s->why)
		skip_blank(s);
	if (!s->why && s->p == s->end)
		return 0;
	for (const char *p = s->text; p < s->p; p++)
		line += *p == '\n';
	return error_set(e, ERR_INVALID, "line %d: not valid JSON: %s", line, s->why ? s->why : "text after the end");
}

int json_slice_check(const char *text, size_t n, struct json_slice *ret, struct error *e)
{
	struct json_scan s;
	int rc;

	*ret = (struct json_slice){NULL, 0};
	rc = json_scan_begin(&s, text, n, e);
	if (rc)
		return rc;
	json_scan_value(&s, ret);
	return json_scan_end(&s, e);
}

bool json_iter_init(struct json_iter *it, struct json_slice whole, char open)
{
	bool is_it = whole.p && whole.n >= 2 && *whole.p == open;

	*it = (struct json_iter){NULL, NULL};
	if (is_it)
		*it = (struct json_iter){whole.p + 1, whole.p + whole.n - 1};
	return is_it;
}

bool json_iter_next(struct json_iter *it, struct json_slice *ret_key, struct json_slice *ret_value)
{
	struct json_scan s = {.p = it->p, .end = it->end};
	bool is_object = it->end && *it->end == '}', is_valid = true;

	skip_blank(&s);
	if (is_at(&s, ',')) {
		s.p++;
		skip_blank(&s);
	}
	if (s.p == s.end)
		return false;
	if (is_object) {
		is_valid = scan_key(&s, ret_key);
	}
	is_valid = is_valid && json_scan_value(&s, ret_value);
	it->p = s.p;
	return is_valid;
}

/* The index of the key (a string with its quotes) in keys, or their number. */
static size_t find_key(struct json_slice key, const char *const *keys)
{
	json_t *plain = NULL;
	size_t i;

	if (memchr(key.p, '\\', key.n))
		plain = json_loadb(key.p, key.n, JSON_DECODE_ANY, NULL);
	for (i = 0; keys[i]; i++) {
		size_t n = strlen(keys[i]);

		if (plain ? str_eq(json_string_value(plain), keys[i])
			  : key.n == n + 2 && memcmp(key.p + 1, keys[i], n) == 0)
			break;
	}
	json_decref(plain);
	return i;
}

int json_slice_members(
    struct json_slice object, const char *where, const char *const *keys, struct json_slice *values, struct error *e)
{
	struct json_slice key, value;
	struct json_iter it;

	for (size_t i = 0; keys[i]; i++)
		values[i] = (struct json_slice){NULL, 0};
	if (!json_iter_init(&it, object, '{'))
		return error_set(e, ERR_INVALID, "%s must be an object", *where ? where : "it");
	while (json_iter_next(&it, &key, &value)) {
		size_t i = find_key(key, keys);

		if (!keys[i])
			continue;
		if (values[i].p)
			return error_set(e, ERR_INVALID, "%s%s%s appears twice", where, *where ? "." : "", keys[i]);
		values[i] = value;
	}
	return 0;
}

int json_slice_load(struct json_slice value, const char *where, json_t **ret, struct error *e)
{
	json_error_t why;

	*ret = NULL;
	if (*value.p != '"' && value.n > TREE_MAX_BYTES)
		return error_set(e, ERR_INVALID, "%s is longer than %d KiB", where, TREE_MAX_BYTES >> 10);
	*ret = json_loadb(value.p, value.n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &why);
	if (!*ret)
		return error_set(e, ERR_INVALID, "%s: %s", where, why.text);
	return 0;
}

int json_slice_load_members(
    struct json_slice object, const char *where, const char *const *keys, json_t **ret, struct error *e)
{
	struct json_slice values[MEMBERS_MAX];
	char place[128];
	int rc = 0;

	*ret = json_null();
	if (!object.p || *object.p != '{')
		return 0;
	rc = json_slice_members(object, where, keys, values, e);
	if (rc)
		return rc;
	*ret = json_object();
	for (size_t i = 0; keys[i] && !rc; i++) {
		json_t *v;

		if (!values[i].p)
			continue;
		snprintf(place, sizeof(place), "%s.%s", where, keys[i]);
		rc = json_slice_load(values[i], place, &v, e);
		if (!rc)
			json_object_set_new(*ret, keys[i], v);
	}
	return rc;
}
