#include <math.h>

#include "base/json_plain.h"

/* Makes room for a value of n bytes, and writes the text in front of it. Returns the place of the value; NULL: the text is full. */
static char *begin_value(struct buf *out, const char *key, size_t n)
{
	size_t key_bytes = key ? strlen(key) : 0, room = key_bytes + 4 + n;
	char last = out->len ? out->data[out->len - 1] : '[', *at;

	if (out->cap - out->len <= room && buf_reserve(out, room))
		return NULL;
	at = out->data + out->len;
	if (last != '{' && last != '[')
		*at++ = ',';
	if (key) {
		*at++ = '"';
		memcpy(at, key, key_bytes);
		at += key_bytes;
		*at++ = '"';
		*at++ = ':';
	}
	return at;
}

/* The text ends at `at`, which is inside of the room. */
static void end_at(struct buf *out, char *at)
{
	*at = '\0';
	out->len = (size_t)(at - out->data);
}

void json_out_part(struct buf *out, const char *key, const char *json, size_t n)
{
	char *at = begin_value(out, key, n);

	if (!at)
		return;
	memcpy(at, json, n);
	end_at(out, at + n);
}

void json_out_raw(struct buf *out, const char *key, const char *json) { json_out_part(out, key, json, strlen(json)); }

void json_out_open(struct buf *out, const char *key, char bracket) { json_out_part(out, key, &bracket, 1); }

void json_out_close(struct buf *out, char bracket) { buf_append_char(out, bracket); }

/* The end of the sequence at p that has to be written in another way; at a byte from 0x80 on one that is not UTF-8. */
static const char *append_special(struct buf *out, const char *p, const char *end)
{
	static const char SHORT[] = "\bb\tt\nn\ff\rr\"\"\\\\";
	char text[8];
	const char *found;
	size_t n;

	if ((signed char)*p < 0) {
		n = utf8_sequence_bytes(p, (size_t)(end - p));
		buf_append(out, n ? p : "\xEF\xBF\xBD", n ? n : 3);
		return p + (n ? n : 1);
	}
	found = strchr(SHORT, *p);
	if (found && (found - SHORT) % 2 == 0)
		snprintf(text, sizeof(text), "\\%c", found[1]);
	else
		snprintf(text, sizeof(text), "\\u%04X", (unsigned)*p);
	buf_append_str(out, text);
	return p + 1;
}

static void append_escaped(struct buf *out, const char *text, size_t n)
{
	const char *end = text + n;

	while (text < end) {
		const char *plain = json_skip_plain(text, end);

		buf_append(out, text, (size_t)(plain - text));
		text = plain < end ? append_special(out, plain, end) : end;
	}
}

/* Most texts are plain: one scan, and one copy. */
void json_out_text(struct buf *out, const char *key, const char *text)
{
	size_t n = text ? strlen(text) : 0;
	char *at;

	if (!text) {
		json_out_raw(out, key, "null");
		return;
	}
	at = begin_value(out, key, n + 2);
	if (!at)
		return;
	*at++ = '"';
	if (json_skip_plain(text, text + n) < text + n) {
		end_at(out, at);
		append_escaped(out, text, n);
		buf_append_char(out, '"');
		return;
	}
	memcpy(at, text, n);
	at[n] = '"';
	end_at(out, at + n + 1);
}

void json_out_texts(struct buf *out, const char *key, const char *first, ...)
{
	va_list ap;

	json_out_part(out, key, "\"", 1);
	va_start(ap, first);
	for (const char *text = first; text; text = va_arg(ap, const char *))
		append_escaped(out, text, strlen(text));
	va_end(ap);
	buf_append_char(out, '"');
}

void json_out_int(struct buf *out, const char *key, int64_t v)
{
	char digits[24];
	size_t at = sizeof(digits);
	uint64_t left = v < 0 ? -(uint64_t)v : (uint64_t)v;

	do
		digits[--at] = (char)('0' + left % 10);
	while (left /= 10);
	if (v < 0)
		digits[--at] = '-';
	json_out_part(out, key, digits + at, sizeof(digits) - at);
}

void json_out_id(struct buf *out, const char *key, int64_t v)
{
	if (v)
		json_out_int(out, key, v);
	else
		json_out_raw(out, key, "null");
}

void json_out_real(struct buf *out, const char *key, double v)
{
	char text[JSON_REAL_BYTES];
	size_t n = isfinite(v) ? json_real_text(v, text) : 0;

	if (n)
		json_out_part(out, key, text, n);
	else
		json_out_value(out, key, json_real(v));
}

void json_out_time(struct buf *out, const char *key, int64_t ms)
{
	char text[RFC3339_BYTES];

	json_out_text(out, key, ms ? rfc3339_format(ms, text) : NULL);
}

void json_out_value(struct buf *out, const char *key, json_t *v)
{
	char *text = json_text(v);

	json_out_raw(out, key, text);
	free(text);
	json_decref(v);
}

void json_out_members(struct buf *out, json_t *object)
{
	char *text = json_text(object);

	if (json_object_size(object)) {
		text[strlen(text) - 1] = '\0'; /* without its braces */
		json_out_raw(out, NULL, text + 1);
	}
	free(text);
	json_decref(object);
}
