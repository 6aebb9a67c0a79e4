#include <math.h>

#include "base/json_plain.h"

static void begin_value(struct buf *out, const char *key)
{
	char last = out->len ? out->data[out->len - 1] : '[';

	if (last != '{' && last != '[')
		buf_append_char(out, ',');
	if (key) {
		buf_append_char(out, '"');
		buf_append_str(out, key);
		buf_append(out, "\":", 2);
	}
}

void json_out_raw(struct buf *out, const char *key, const char *json)
{
	begin_value(out, key);
	buf_append_str(out, json);
}

void json_out_open(struct buf *out, const char *key, char bracket)
{
	begin_value(out, key);
	buf_append_char(out, bracket);
}

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

static void append_escaped(struct buf *out, const char *text)
{
	const char *end = text + strlen(text);

	while (text < end) {
		const char *plain = json_skip_plain(text, end);

		buf_append(out, text, (size_t)(plain - text));
		text = plain < end ? append_special(out, plain, end) : end;
	}
}

void json_out_text(struct buf *out, const char *key, const char *text)
{
	if (text)
		json_out_texts(out, key, text, NULL);
	else
		json_out_raw(out, key, "null");
}

void json_out_texts(struct buf *out, const char *key, const char *first, ...)
{
	va_list ap;

	begin_value(out, key);
	buf_append_char(out, '"');
	va_start(ap, first);
	for (const char *text = first; text; text = va_arg(ap, const char *))
		append_escaped(out, text);
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
	begin_value(out, key);
	buf_append(out, digits + at, sizeof(digits) - at);
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

	if (!n) {
		json_out_value(out, key, json_real(v));
		return;
	}
	begin_value(out, key);
	buf_append(out, text, n);
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
