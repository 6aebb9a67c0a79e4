#include "base/json_plain.h"

#include <math.h>

enum { DEPTH_MAX = 64 };

static const char *digits_end(const char *p, const char *end)
{
	const char *start = p;

	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p > start ? p : NULL;
}

/* RFC 8259 section 6. */
static const char *number_end(const char *p, const char *end)
{
	if (p < end && *p == '-')
		p++;
	p = p < end && *p == '0' ? p + 1 : digits_end(p, end);
	if (p && p < end && *p == '.')
		p = digits_end(p + 1, end);
	if (p && p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		p = digits_end(p, end);
	}
	return p;
}

const char *json_scalar_end(const char *p, const char *end)
{
	size_t left = (size_t)(end - p);

	if (left >= 4 && (memcmp(p, "null", 4) == 0 || memcmp(p, "true", 4) == 0))
		return p + 4;
	if (left >= 5 && memcmp(p, "false", 5) == 0)
		return p + 5;
	return number_end(p, end);
}

int json_parse(const char *p, size_t n, json_t **ret, struct error *e)
{
	json_error_t why;
	int depth = 0;
	bool in_string = false;

	*ret = NULL;
	/* jansson's own limit is 2048. Refuse hostile nesting before jansson recurses. */
	for (size_t i = 0; i < n; i++) {
		char c = p[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > DEPTH_MAX)
				return error_set(e, ERR_INVALID, "nested deeper than %d", DEPTH_MAX);
		} else if (c == '}' || c == ']') {
			depth--;
		}
	}
	*ret = json_loadb(p, n, JSON_REJECT_DUPLICATES, &why);
	if (!*ret)
		return error_set(e, ERR_INVALID, "line %d: %s", why.line, why.text);
	return 0;
}

void json_replace_nuls(char *text, size_t n)
{
	const char *end = text + n;

	for (char *p = text; (p = memchr(p, '\\', (size_t)(end - p))) != NULL && end - p >= 6; p += 2)
		if (memcmp(p + 1, "u0000", 5) == 0)
			memcpy(p + 1, "ufffd", 5);
}

char *json_text(const json_t *v)
{
	char *s = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);

	return s ? s : xstrdup("null");
}

char *json_text_of_strings(const char *const *v)
{
	if (!v)
		return NULL;
	json_t *list = json_array();
	for (; *v; v++)
		json_array_append_new(list, json_string(*v));
	char *text = json_text(list);
	json_decref(list);
	return text;
}

const char *json_get_str(const json_t *obj, const char *key) { return json_string_value(json_object_get(obj, key)); }

int64_t json_get_int(const json_t *obj, const char *key, int64_t fallback)
{
	const json_t *v = json_object_get(obj, key);

	return json_is_integer(v) ? json_integer_value(v) : fallback;
}

bool json_get_bool(const json_t *obj, const char *key, bool fallback)
{
	const json_t *v = json_object_get(obj, key);

	return json_is_boolean(v) ? json_is_true(v) : fallback;
}

json_t *json_at(const json_t *obj, ...)
{
	json_t *v = NULL;
	const char *key;
	va_list ap;

	va_start(ap, obj);
	while ((key = va_arg(ap, const char *)) != NULL) {
		v = json_object_get(obj, key);
		obj = v;
	}
	va_end(ap);
	return v;
}

void json_set_str(json_t *obj, const char *key, const char *text)
{
	json_t *v = text ? json_string(text) : json_null();

	json_object_set_new(obj, key, v ? v : json_null());
}

json_t *json_foreign_text(const char *text)
{
	char *repaired = text && !utf8_is_valid(text, strlen(text)) ? utf8_repair(text) : NULL;
	json_t *v = text ? json_string(repaired ? repaired : text) : json_null();

	free(repaired);
	return v;
}

void json_set_foreign_text(json_t *obj, const char *key, const char *text)
{
	json_object_set_new(obj, key, json_foreign_text(text));
}

void json_set_int(json_t *obj, const char *key, int64_t value) { json_object_set_new(obj, key, json_integer(value)); }

json_t *json_time(int64_t wall_ms)
{
	char text[RFC3339_BYTES];

	return wall_ms ? json_string(rfc3339_format(wall_ms, text)) : json_null();
}

void json_set_time(json_t *obj, const char *key, int64_t wall_ms) { json_object_set_new(obj, key, json_time(wall_ms)); }

json_t *json_foreign_texts(char *const *list)
{
	json_t *v = json_array();

	for (; list && *list; list++)
		json_array_append_new(v, json_foreign_text(*list));
	return v;
}

/* The first 17 digits of v, rounded as printf() rounds them: v × 10^(16 - exponent) as a whole number. 0: it is out of the range
 * that 128 bits permit. */
static uint64_t digits_of(double v, int *ret_exponent)
{
	static const uint64_t LEAST = UINT64_C(10000000000000000), MOST = 10 * LEAST;
	int binary, exponent;
	uint64_t mantissa = (uint64_t)ldexp(frexp(v, &binary), 53);

	binary -= 53;
	exponent = (int)floor(log10(v));
	for (int tries = 0; tries < 3; tries++) {
		int shift = -(binary + 16 - exponent);
		unsigned __int128 x = mantissa;

		if (exponent > 16 || exponent < 16 - 27 || shift < -8 || shift > 120)
			return 0;
		for (int i = 0; i < 16 - exponent; i++)
			x *= 5;
		uint64_t q = (uint64_t)(shift > 0 ? x >> shift : x << -shift);
		if (shift > 0 && q >= LEAST) { /* a number below does not become one by rounding */
			unsigned __int128 half = (unsigned __int128)1 << (shift - 1), left = x & ((half << 1) - 1);

			q += left > half || (left == half && q & 1);
		}
		*ret_exponent = exponent;
		if (q >= LEAST && q < MOST)
			return q;
		exponent += q < LEAST ? -1 : 1;
	}
	return 0;
}

size_t json_real_text(double v, char text[JSON_REAL_BYTES])
{
	char digits[17];
	int exponent = 0, n = 17, at = 0;
	uint64_t q = v == 0 ? 0 : digits_of(fabs(v), &exponent);

	if (!q && v != 0)
		return 0;
	for (int i = 17; i-- > 0; q /= 10)
		digits[i] = (char)('0' + q % 10);
	while (n > 1 && digits[n - 1] == '0')
		n--;
	if (v < 0)
		text[at++] = '-';
	if (exponent < -4) {
		text[at++] = digits[0];
		if (n > 1)
			text[at++] = '.';
		memcpy(text + at, digits + 1, (size_t)n - 1);
		at += n - 1;
		at += snprintf(text + at, JSON_REAL_BYTES - (size_t)at, "e%d", exponent);
	} else {
		if (exponent < 0) {
			memcpy(text + at, "0.0000", (size_t)(1 - exponent));
			at += 1 - exponent;
		}
		for (int i = 0; i < n || i <= exponent; i++) {
			text[at++] = i < n ? digits[i] : '0';
			if (i == exponent)
				text[at++] = '.';
		}
		if (text[at - 1] == '.')
			text[at++] = '0';
	}
	return (size_t)at;
}

/* ---- json_plain.h ---- */

#if defined(__SSE2__)
/* Bit i: p[i] is not plain. */
static uint64_t marks_of_16(const char *p)
{
	__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
	__m128i special = _mm_or_si128(_mm_cmplt_epi8(v, _mm_set1_epi8(0x20)),
	    _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))));

	return (unsigned)_mm_movemask_epi8(special);
}
#endif

const char *json_marks_go_on(struct json_marks *m, const char *p)
{
#if defined(__SSE2__)
	if (p < m->known) /* the known bytes from p on are plain */
		p = m->known;
	for (; m->end - p >= 64; p += 64) {
		m->bits =
		    marks_of_16(p) | marks_of_16(p + 16) << 16 | marks_of_16(p + 32) << 32 | marks_of_16(p + 48) << 48;
		m->known = p + 64;
		if (m->bits)
			return p + __builtin_ctzll(m->bits);
	}
#endif
	return json_skip_plain(p, m->end);
}
