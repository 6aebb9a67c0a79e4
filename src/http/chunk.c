#include "http/chunk.h"

#include <stdbool.h>

#define MAX_SIZE_DIGITS    12
#define MAX_OVERHEAD_BYTES 16384

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_control(char ch)
{
	unsigned char c = (unsigned char)ch;

	return (c < 0x20 && c != '\t') || c == 0x7f;
}

static int step_size(struct http_chunked *c, char ch)
{
	int digit = hex_value(ch);

	if (digit >= 0 && c->n_digits < MAX_SIZE_DIGITS) {
		c->left = c->left * 16 + digit;
		c->n_digits++;
		return 0;
	}
	if (c->n_digits == 0)
		return ERR_PROTOCOL;
	if (ch == '\r')
		c->state = HTTP_CHUNK_SIZE_LF;
	else if (ch == ';')
		c->state = HTTP_CHUNK_EXTENSION;
	else
		return ERR_PROTOCOL;
	return 0;
}

/* A line whose content does not matter: an extension or a trailer. */
static int step_ignored(struct http_chunked *c, char ch, enum http_chunk_state at_cr)
{
	if (ch == '\r')
		c->state = at_cr;
	else if (is_control(ch) || ++c->n_overhead > MAX_OVERHEAD_BYTES)
		return ERR_PROTOCOL;
	return 0;
}

static int step_trailer_start(struct http_chunked *c, char ch)
{
	if (ch == '\r') {
		c->state = HTTP_CHUNK_LAST_LF;
		return 0;
	}
	if (ch == ' ' || ch == '\t' || ch == ':' || is_control(ch))
		return ERR_PROTOCOL;
	c->state = HTTP_CHUNK_TRAILER;
	return 0;
}

static int step_lf(struct http_chunked *c, char ch, enum http_chunk_state next)
{
	if (ch != '\n')
		return ERR_PROTOCOL;
	c->state = next;
	return 0;
}

static int step(struct http_chunked *c, char ch)
{
	switch (c->state) {
	case HTTP_CHUNK_SIZE:
		return step_size(c, ch);
	case HTTP_CHUNK_EXTENSION:
		return step_ignored(c, ch, HTTP_CHUNK_SIZE_LF);
	case HTTP_CHUNK_SIZE_LF:
		return step_lf(c, ch, c->left ? HTTP_CHUNK_DATA : HTTP_CHUNK_TRAILER_START);
	case HTTP_CHUNK_DATA_CR:
		if (ch != '\r')
			return ERR_PROTOCOL;
		c->state = HTTP_CHUNK_DATA_LF;
		return 0;
	case HTTP_CHUNK_DATA_LF:
		c->n_digits = 0;
		return step_lf(c, ch, HTTP_CHUNK_SIZE);
	case HTTP_CHUNK_TRAILER_START:
		return step_trailer_start(c, ch);
	case HTTP_CHUNK_TRAILER:
		return step_ignored(c, ch, HTTP_CHUNK_TRAILER_LF);
	case HTTP_CHUNK_TRAILER_LF:
		return step_lf(c, ch, HTTP_CHUNK_TRAILER_START);
	case HTTP_CHUNK_LAST_LF:
		return step_lf(c, ch, HTTP_CHUNK_END);
	case HTTP_CHUNK_DATA:
	case HTTP_CHUNK_END:
		break;
	}
	return ERR_PROTOCOL;
}

enum http_chunk_event http_chunked_feed(struct http_chunked *c, const char *p, size_t n,
    size_t *ret_used, size_t *ret_piece, struct http_refusal *refusal)
{
	size_t i = 0;

	*ret_piece = 0;
	while (i < n) {
		if (c->state == HTTP_CHUNK_DATA) {
			size_t take = n - i;

			if ((int64_t)take >= c->left) {
				take = (size_t)c->left;
				c->state = HTTP_CHUNK_DATA_CR;
			}
			c->left -= (int64_t)take;
			*ret_piece = take;
			*ret_used = i + take;
			return HTTP_CHUNK_PIECE;
		}
		if (step(c, p[i++])) {
			*ret_used = i;
			http_refuse(refusal, 400, "malformed chunk");
			return HTTP_CHUNK_BAD;
		}
		if (c->state == HTTP_CHUNK_END) {
			*ret_used = i;
			return HTTP_CHUNK_DONE;
		}
	}
	*ret_used = n;
	return HTTP_CHUNK_MORE;
}
