#include "steps/clean_text.h"

#include <stdbool.h>

#include "base/str.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* How many bytes the character that begins with b has; 0: none does. */
static size_t length_from(unsigned char b)
{
	if (b < 0x80)
		return 1;
	if (b >= 0xc2 && b <= 0xdf)
		return 2;
	if (b >= 0xe0 && b <= 0xef)
		return 3;
	return b >= 0xf0 && b <= 0xf4 ? 4 : 0;
}

/* Whether these bytes may yet become a character. Each of the lowest and highest continuation
 * is tried, so that overlong forms and surrogates are told at their second byte. */
static bool may_become_character(const char *p, size_t n, size_t length)
{
	char low[4], high[4];

	memcpy(low, p, n);
	memcpy(high, p, n);
	memset(low + n, 0x80, length - n);
	memset(high + n, 0xbf, length - n);
	return utf8_is_valid(low, length) || utf8_is_valid(high, length);
}

static void feed_byte(struct clean_text *c, char b, struct buf *out)
{
	size_t length;

	if (!c->n_held && b == '\0')
		return;
	c->held[c->n_held++] = b;
	length = length_from((unsigned char)c->held[0]);
	if (length && c->n_held < length && may_become_character(c->held, c->n_held, length))
		return;
	if (length == c->n_held && utf8_is_valid(c->held, length)) {
		buf_append(out, c->held, length);
		c->n_held = 0;
		return;
	}
	/* the last byte made it wrong: it may begin something itself */
	buf_append_str(out, REPLACEMENT);
	if (c->n_held > 1) {
		c->n_held = 0;
		feed_byte(c, b, out);
	} else {
		c->n_held = 0;
	}
}

void clean_text_feed(struct clean_text *c, const char *p, size_t n, struct buf *out)
{
	size_t i = 0;

	while (i < n) {
		size_t run = i;

		/* ASCII; whether char has a sign differs between machines */
		while (!c->n_held && run < n && p[run] && (unsigned char)p[run] < 0x80)
			run++;
		buf_append(out, p + i, run - i);
		i = run;
		if (i < n)
			feed_byte(c, p[i++], out);
	}
}

void clean_text_end(struct clean_text *c, struct buf *out)
{
	if (c->n_held)
		buf_append_str(out, REPLACEMENT);
	c->n_held = 0;
}
