#include "report/xml_out.h"

#include <stdint.h>
#include <string.h>

#include "base/str.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* How many bytes the character at s has; *ret_is_xml: it is one that XML has. */
static size_t character_bytes(const char *s, bool *ret_is_xml)
{
	unsigned char c = (unsigned char)*s;
	size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

	*ret_is_xml = c >= 0x20 || c == '\t' || c == '\n' || c == '\r';
	if (strnlen(s, n) < n || !utf8_is_valid(s, n)) {
		*ret_is_xml = false;
		return 1;
	}
	if (n == 3 && memcmp(s, "\xef\xbf", 2) == 0 && (unsigned char)s[2] >= 0xbe)
		*ret_is_xml = false;
	return n;
}

static const char *entity_of(char c, bool is_value)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;"; /* "]]>" may not stand in content */
	case '"':
		return is_value ? "&quot;" : NULL;
	case '\n':
		return is_value ? "&#10;" : NULL;
	case '\t':
		return is_value ? "&#9;" : NULL;
	case '\r':
		return "&#13;";
	default:
		return NULL;
	}
}

static void put(struct buf *out, const char *s, bool is_value)
{
	while (*s) {
		bool is_xml;
		size_t n = character_bytes(s, &is_xml);
		const char *entity = entity_of(*s, is_value);

		if (!is_xml)
			buf_append_str(out, REPLACEMENT);
		else if (entity)
			buf_append_str(out, entity);
		else
			buf_append(out, s, n);
		s += n;
	}
}

void xml_put_text(struct buf *out, const char *text)
{
	put(out, text, false);
}

void xml_put_attribute(struct buf *out, const char *name, const char *value)
{
	if (!value)
		return;
	buf_append_char(out, ' ');
	buf_append_str(out, name);
	buf_append_str(out, "=\"");
	put(out, value, true);
	buf_append_char(out, '"');
}
