#include "model/test_array.h"

#include <math.h>

#include "base/json_plain.h"

enum {
	MEMBERS_MAX = 16,
	NUMBER_MAX_BYTES = 32,
	INTEGER_MAX_DIGITS = 18, /* they fit into 64 bits */
};

/* A key and its value in the text. */
struct member {
	struct json_slice key;   /* between its quotes, without an escape */
	struct json_slice value; /* as it is written */
	struct test_value read;
	size_t n_text;   /* of a text */
	bool is_escaped; /* a text is not the same when it is written again */
	bool is_real;    /* the same of a number */
};

/* The members of an object, and their order. Entries usually have the same keys in the same places. */
struct members {
	struct member at[MEMBERS_MAX], previous[MEMBERS_MAX];
	size_t n, n_previous;
	bool is_alike;               /* the keys are those of the previous object */
	uint8_t sorted[MEMBERS_MAX]; /* by key */
};

struct reader {
	const char *p, *end;
	char *texts; /* where the next one goes */
	struct members entry, number;
	int places[N_TEST_MEMBERS]; /* of an entry's members; -1: absent */
	struct buf *plain;          /* or NULL */
	char *out;                  /* where its next byte goes */
};

/* ---- the place of the array ---- */

static void skip_blank(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t' || *r->p == '\r'))
		r->p++;
}

static bool take(struct reader *r, char c)
{
	skip_blank(r);
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

/* Moves behind the string that begins here. Does not check what it contains. */
static bool skip_string(struct reader *r)
{
	for (r->p++; (r->p = json_skip_plain(r->p, r->end)) < r->end && *r->p != '"'; r->p++)
		if (*r->p == '\\' && ++r->p == r->end)
			return false;
	return r->p++ < r->end;
}

/* Moves to the end of the value that begins here: to the comma or the bracket behind it. */
static bool skip_value(struct reader *r)
{
	for (int depth = 0; r->p < r->end; r->p++) {
		while (r->p < r->end && *r->p == '"')
			if (!skip_string(r))
				return false;
		if (r->p == r->end)
			return false;
		if (*r->p == '{' || *r->p == '[')
			depth++;
		else if ((*r->p == '}' || *r->p == ']') && depth-- == 0)
			return true;
		else if (*r->p == ',' && depth == 0)
			return true;
	}
	return false;
}

/* Moves to the value of the key in the object that begins here. */
static bool find_member(struct reader *r, const char *key)
{
	size_t n = strlen(key);

	if (!take(r, '{'))
		return false;
	do {
		const char *start;

		skip_blank(r);
		start = r->p;
		if (r->p == r->end || *r->p != '"' || !skip_string(r))
			return false;
		bool is_it = (size_t)(r->p - start) == n + 2 && memcmp(start + 1, key, n) == 0;
		if (!take(r, ':'))
			return false;
		skip_blank(r);
		if (is_it)
			return true;
		if (!skip_value(r))
			return false;
	} while (take(r, ','));
	return false;
}

/* ---- values ---- */

static bool read_hex(const char *p, const char *end, uint32_t *ret)
{
	uint32_t v = 0;

	if (end - p < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		if (!isxdigit((unsigned char)p[i]))
			return false;
		v = v << 4 |
		    (uint32_t)(isdigit((unsigned char)p[i]) ? p[i] - '0' : tolower((unsigned char)p[i]) - 'a' + 10);
	}
	*ret = v;
	return true;
}

/* Writes the character of the escape at *p to out and moves *p behind it. Returns its bytes; 0: it is wrong. */
static size_t read_escape(const char **p, const char *end, char *out)
{
	static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *name = end - *p >= 2 && (*p)[1] ? strchr(names, (*p)[1]) : NULL;
	uint32_t c, low;

	if (name) {
		*p += 2;
		*out = meant[name - names];
		return 1;
	}
	if (end - *p < 6 || (*p)[1] != 'u' || !read_hex(*p + 2, end, &c) || c == 0 || (c >= 0xDC00 && c <= 0xDFFF))
		return 0;
	*p += 6;
	if (c >= 0xD800 && c <= 0xDBFF) {
		if (end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u' || !read_hex(*p + 2, end, &low) || low < 0xDC00 ||
		    low > 0xDFFF)
			return 0;
		*p += 6;
		c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
	}
	if (c < 0x80) {
		*out = (char)c;
		return 1;
	}
	size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n; i-- > 1; c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)((0xf0 << (4 - n)) | c);
	return n;
}

/* Decodes a string into the block. It never takes more room there than in the text. */
static bool read_string(struct reader *r, struct member *m)
{
	char *out = r->texts;
	const char *p = r->p + 1;

	for (;;) {
		const char *stop = json_skip_plain(p, r->end);

		memcpy(out, p, (size_t)(stop - p));
		out += stop - p;
		p = stop;
		if (p == r->end || (unsigned char)*p < 0x20)
			return false;
		if (*p == '"')
			break;
		size_t n = *p == '\\' ? read_escape(&p, r->end, out) : utf8_sequence_bytes(p, (size_t)(r->end - p));
		if (!n)
			return false;
		if (p == stop) { /* a character of several bytes */
			memcpy(out, p, n);
			p += n;
		} else {
			m->is_escaped = true;
		}
		out += n;
	}
	*out = '\0';
	m->read = (struct test_value){.kind = VALUE_IS_TEXT, .text = r->texts};
	m->n_text = (size_t)(out - r->texts);
	r->texts = out + 1;
	r->p = p + 1;
	return true;
}

/* The nearest double, as strtod() finds it. */
static double decimal_value(const char *p, size_t n)
{
	static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
	    1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	char text[NUMBER_MAX_BYTES + 1];
	uint64_t digits = 0;
	size_t n_fraction = 0, i = 0;
	bool has_point = false;

	for (; i < n && digits < UINT64_C(1) << 53; i++) {
		if (p[i] == '.') {
			has_point = true;
		} else if (isdigit((unsigned char)p[i])) {
			digits = digits * 10 + (uint64_t)(p[i] - '0');
			n_fraction += has_point;
		} else {
			break;
		}
	}
	/* Both are exact, so the quotient is rounded once. */
	if (i == n && digits < UINT64_C(1) << 53 && n_fraction < ARRAY_LEN(powers))
		return (double)digits / powers[n_fraction];
	memcpy(text, p, n);
	text[n] = '\0';
	return strtod(text, NULL);
}

static bool read_number(struct reader *r, struct member *m)
{
	const char *end = json_scalar_end(r->p, r->end);
	bool is_negative = *r->p == '-';
	size_t n = end ? (size_t)(end - r->p) : 0;
	double v;

	if (n == 0 || n > NUMBER_MAX_BYTES)
		return false;
	m->is_real = memchr(r->p, '.', n) || memchr(r->p, 'e', n) || memchr(r->p, 'E', n);
	if (!m->is_real && n > INTEGER_MAX_DIGITS)
		return false;
	v = decimal_value(r->p + is_negative, n - is_negative);
	if (!isfinite(v) || (is_negative && v == 0))
		return false;
	m->read = (struct test_value){.kind = VALUE_IS_NUMBER, .number = is_negative ? -v : v};
	r->p = end;
	return true;
}

static bool read_word(struct reader *r, struct member *m)
{
	const char *end = json_scalar_end(r->p, r->end);

	if (!end)
		return false;
	m->read.kind = *r->p == 'n' ? VALUE_IS_NULL : VALUE_IS_OTHER;
	r->p = end;
	return true;
}

/* ---- objects ---- */

static int compare_keys(const struct member *a, const struct member *b)
{
	size_t n = a->key.n < b->key.n ? a->key.n : b->key.n;
	int order = memcmp(a->key.p, b->key.p, n);

	return order ? order : (a->key.n > b->key.n) - (a->key.n < b->key.n);
}

/* False: one key is there twice. */
static bool sort_members(struct members *l)
{
	l->is_alike = l->n == l->n_previous;
	for (size_t i = 0; i < l->n && l->is_alike; i++)
		l->is_alike = !compare_keys(&l->at[i], &l->previous[i]);
	if (l->is_alike)
		return true;
	memcpy(l->previous, l->at, l->n * sizeof(l->at[0]));
	l->n_previous = l->n;
	for (size_t i = 0; i < l->n; i++) {
		size_t k = i;

		for (; k > 0; k--) {
			int order = compare_keys(&l->at[l->sorted[k - 1]], &l->at[i]);

			if (order == 0)
				return false;
			if (order < 0)
				break;
			l->sorted[k] = l->sorted[k - 1];
		}
		l->sorted[k] = (uint8_t)i;
	}
	return true;
}

static bool read_members(struct reader *r, struct members *l, struct members *inner);

static bool read_value(struct reader *r, struct member *m, struct members *inner)
{
	const char *start = r->p;
	bool is_read;

	if (r->p == r->end)
		return false;
	if (*r->p == '"') {
		is_read = read_string(r, m);
	} else if (*r->p == '{') {
		/* only the number of a test is an object */
		m->read.kind = VALUE_IS_OTHER;
		is_read = inner && m->key.n == 6 && memcmp(m->key.p, "number", 6) == 0 && read_members(r, inner, NULL);
	} else if (*r->p == '-' || isdigit((unsigned char)*r->p)) {
		is_read = read_number(r, m);
	} else {
		is_read = read_word(r, m);
	}
	m->value = (struct json_slice){start, (size_t)(r->p - start)};
	return is_read;
}

/* Reads the object that begins here, and behind its end. */
static bool read_members(struct reader *r, struct members *l, struct members *inner)
{
	l->n = 0;
	if (!take(r, '{'))
		return false;
	if (take(r, '}'))
		return sort_members(l);
	do {
		struct member *m = &l->at[l->n];
		const char *key, *end;

		if (l->n++ == MEMBERS_MAX || !take(r, '"'))
			return false;
		key = r->p;
		end = json_skip_plain(key, r->end);
		if (end == r->end || *end != '"')
			return false;
		*m = (struct member){.key = {key, (size_t)(end - key)}};
		r->p = end + 1;
		if (!take(r, ':'))
			return false;
		skip_blank(r);
		if (!read_value(r, m, inner))
			return false;
	} while (take(r, ','));
	return take(r, '}') && sort_members(l);
}

/* ---- the plain form ---- */

static void put(struct reader *r, const char *p, size_t n)
{
	memcpy(r->out, p, n);
	r->out += n;
}

/* As json_dumps() escapes it. It takes no more room than in the text. */
static void put_escaped(struct reader *r, const char *s, size_t n)
{
	static const char names[] = "\"\\bfnrt", meant[] = "\"\\\b\f\n\r\t";
	const char *end = s + n, *from = s;

	put(r, "\"", 1);
	while ((s = json_skip_plain(s, end)) < end) {
		unsigned char c = (unsigned char)*s++;
		const char *name = strchr(meant, c);

		if (c >= 0x80)
			continue;
		put(r, from, (size_t)(s - 1 - from));
		from = s;
		if (name)
			put(r, (char[]){'\\', names[name - meant]}, 2);
		else
			put(r, (char[]){'\\', 'u', '0', '0', (char)('0' + c / 16), "0123456789ABCDEF"[c % 16]}, 6);
	}
	put(r, from, (size_t)(end - from));
	put(r, "\"", 1);
}

static bool put_real(struct reader *r, double v)
{
	size_t n = json_real_text(v, r->out);

	r->out += n;
	return n > 0;
}

static bool put_members(struct reader *r, const struct members *l)
{
	put(r, "{", 1);
	for (size_t i = 0; i < l->n; i++) {
		const struct member *m = &l->at[l->sorted[i]];

		put(r, i ? ",\"" : "\"", i ? 2 : 1);
		put(r, m->key.p, m->key.n);
		put(r, "\":", 2);
		if (m->is_escaped)
			put_escaped(r, m->read.text, m->n_text);
		else if (m->is_real ? !put_real(r, m->read.number) : *m->value.p == '{' && !put_members(r, &r->number))
			return false;
		else if (!m->is_real && *m->value.p != '{')
			put(r, m->value.p, m->value.n);
	}
	put(r, "}", 1);
	return true;
}

/* ---- the array ---- */

/* -1: absent. */
static int find_place(const struct members *l, const char *key)
{
	size_t n = strlen(key);

	for (size_t i = 0; i < l->n; i++)
		if (l->at[i].key.n == n && memcmp(l->at[i].key.p, key, n) == 0)
			return (int)i;
	return -1;
}

static struct test_value value_at(const struct members *l, int place)
{
	return place < 0 ? (struct test_value){.kind = VALUE_IS_ABSENT} : l->at[place].read;
}

/* Only a real takes more room than in the text. */
static bool put_entry(struct reader *r, size_t n_text)
{
	if (buf_reserve(r->plain, n_text + (size_t)2 * MEMBERS_MAX * JSON_REAL_BYTES))
		return false;
	r->out = r->plain->data + r->plain->len;
	if (!put_members(r, &r->entry))
		return false;
	r->plain->len = (size_t)(r->out - r->plain->data);
	return true;
}

static bool read_entry(struct reader *r, struct test_result *ret)
{
	struct test_entry entry = {.is_borrowed = true};
	const char *start = r->p;

	r->number.n = 0;
	if (!read_members(r, &r->entry, &r->number) || (r->plain && !put_entry(r, (size_t)(r->p - start))))
		return false;
	for (int i = 0; i < N_TEST_MEMBERS && !r->entry.is_alike; i++)
		r->places[i] = find_place(&r->entry, TEST_MEMBERS[i]);
	for (size_t i = 0; i < N_TEST_MEMBERS; i++)
		entry.of[i] = value_at(&r->entry, r->places[i]);
	entry.number = value_at(&r->number, find_place(&r->number, "value"));
	entry.unit = value_at(&r->number, find_place(&r->number, "unit"));
	return test_result_fill(&entry, "", ret, NULL) == 0;
}

bool test_array_read(const char *text, size_t n, const char *const *path, bool is_plain_wanted, struct test_array *ret)
{
	struct reader *r = xcalloc(1, sizeof(*r));
	const char *start;
	bool is_read = true;

	*ret = (struct test_array){.rest = BUF_INIT(n + 2), .plain = BUF_INIT(8 * n + 2048)};
	*r = (struct reader){.p = text, .end = text + n, .plain = is_plain_wanted ? &ret->plain : NULL};
	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		r->p += 3;
	for (; *path && is_read; path++)
		is_read = find_member(r, *path);
	start = r->p;
	is_read = is_read && take(r, '[');
	/* All at once, because growing copies the text. Only reals can take more room than here. */
	is_read = is_read && !(r->plain && buf_reserve(r->plain, (size_t)(r->end - start)));
	if (is_read) {
		ret->texts = r->texts = xmalloc((size_t)(r->end - r->p) + 1);
		do {
			if (r->plain)
				buf_append_char(r->plain, ret->n ? ',' : '[');
			is_read = read_entry(r, ARRAY_PUSH(ret->tests, ret->n));
		} while (is_read && take(r, ','));
		is_read = is_read && take(r, ']');
	}
	if (is_read) {
		if (r->plain)
			buf_append_char(r->plain, ']');
		buf_append(&ret->rest, text, (size_t)(start - text));
		buf_append(&ret->rest, "[]", 2);
		buf_append(&ret->rest, r->p, (size_t)(r->end - r->p));
		is_read = !buf_status(&ret->plain);
	}
	free(r);
	if (!is_read)
		test_array_release(ret);
	return is_read;
}

void test_array_release(struct test_array *a)
{
	free(a->tests);
	free(a->texts);
	buf_release(&a->rest);
	buf_release(&a->plain);
	*a = (struct test_array){.n = 0};
}
