#include "http/inlet.h"

/* ---- chunked bodies (RFC 9112 section 7.1) ----
 *
 * Strict: CRLF only and plain hexadecimal sizes. Extensions and trailers are checked, bounded and dropped. */

#define MAX_SIZE_DIGITS    12
#define MAX_OVERHEAD_BYTES 16384

static bool is_control(char ch)
{
	unsigned char c = (unsigned char)ch;

	return (c < 0x20 && c != '\t') || c == 0x7f;
}

/* One byte outside of a chunk's data. False: it is not allowed there. */
static bool chunk_step(struct http_chunked *c, char ch)
{
	int digit;

	switch (c->state) {
	case HTTP_CHUNK_SIZE:
		digit = hex_digit(ch);
		if (digit >= 0 && c->n_digits < MAX_SIZE_DIGITS) {
			c->left = c->left * 16 + digit;
			c->n_digits++;
			return true;
		}
		c->state = ch == '\r' ? HTTP_CHUNK_SIZE_LF : HTTP_CHUNK_EXTENSION;
		return c->n_digits > 0 && (ch == '\r' || ch == ';');
	case HTTP_CHUNK_EXTENSION:
	case HTTP_CHUNK_TRAILER:
		if (ch != '\r')
			return !is_control(ch) && ++c->n_overhead <= MAX_OVERHEAD_BYTES;
		c->state = c->state == HTTP_CHUNK_TRAILER ? HTTP_CHUNK_TRAILER_LF : HTTP_CHUNK_SIZE_LF;
		return true;
	case HTTP_CHUNK_SIZE_LF:
		c->state = c->left ? HTTP_CHUNK_DATA : HTTP_CHUNK_TRAILER_START;
		return ch == '\n';
	case HTTP_CHUNK_DATA_CR:
		c->state = HTTP_CHUNK_DATA_LF;
		return ch == '\r';
	case HTTP_CHUNK_DATA_LF:
		c->n_digits = 0;
		c->state = HTTP_CHUNK_SIZE;
		return ch == '\n';
	case HTTP_CHUNK_TRAILER_START:
		c->state = ch == '\r' ? HTTP_CHUNK_LAST_LF : HTTP_CHUNK_TRAILER;
		return ch == '\r' || (ch != ' ' && ch != '\t' && ch != ':' && !is_control(ch));
	case HTTP_CHUNK_TRAILER_LF:
		c->state = HTTP_CHUNK_TRAILER_START;
		return ch == '\n';
	case HTTP_CHUNK_LAST_LF:
		c->state = HTTP_CHUNK_END;
		return ch == '\n';
	case HTTP_CHUNK_DATA:
	case HTTP_CHUNK_END:
		break;
	}
	return false;
}

/* ---- the inlet ---- */

void http_inlet_init(struct http_inlet *in, size_t max_head_bytes)
{
	*in = (struct http_inlet){.max_head_bytes = max_head_bytes};
}

/* out->refusal is set. */
static enum http_inlet_event inlet_break(struct http_inlet *in)
{
	in->state = HTTP_INLET_BROKEN;
	return HTTP_INLET_BAD;
}

static enum http_inlet_event inlet_feed_head(struct http_inlet *in, const char *p, size_t n, struct http_inlet_out *out)
{
	/* RFC 9112 2.2: some clients send an empty line behind a body. One is forgiven. */
	if (in->scanned == 0 && n >= 1 && p[0] == '\r' && !in->is_blank_taken) {
		if (n == 1)
			return HTTP_INLET_MORE;
		if (p[1] != '\n') {
			http_refuse(&out->refusal, 400, "malformed request line");
			return inlet_break(in);
		}
		in->is_blank_taken = true;
		out->used = 2;
		p += 2;
		n -= 2;
	}
	int64_t bytes = http_head_find_end(p, n, in->max_head_bytes, &in->scanned, &out->refusal);
	if (bytes == 0)
		return HTTP_INLET_MORE;
	if (bytes < 0 || http_head_parse(p, (size_t)bytes, &out->head, &out->refusal))
		return inlet_break(in);
	out->used += (size_t)bytes;
	in->scanned = 0;
	in->is_blank_taken = false;
	in->body_left = out->head->content_length;
	in->chunked = (struct http_chunked){0};
	if (out->head->is_chunked)
		in->state = HTTP_INLET_AT_CHUNKS;
	else
		in->state = in->body_left ? HTTP_INLET_AT_LENGTH : HTTP_INLET_AT_END;
	return HTTP_INLET_HEAD;
}

static enum http_inlet_event inlet_feed_chunks(
    struct http_inlet *in, const char *p, size_t n, struct http_inlet_out *out)
{
	struct http_chunked *c = &in->chunked;

	while (out->used < n) {
		if (c->state == HTTP_CHUNK_DATA) {
			out->piece = p + out->used;
			out->piece_bytes = n - out->used;
			if ((int64_t)out->piece_bytes >= c->left) {
				out->piece_bytes = (size_t)c->left;
				c->state = HTTP_CHUNK_DATA_CR;
			}
			c->left -= (int64_t)out->piece_bytes;
			out->used += out->piece_bytes;
			return HTTP_INLET_PIECE;
		}
		if (!chunk_step(c, p[out->used++])) {
			http_refuse(&out->refusal, 400, "malformed chunk");
			return inlet_break(in);
		}
		if (c->state == HTTP_CHUNK_END) {
			in->state = HTTP_INLET_AT_HEAD;
			return HTTP_INLET_END;
		}
	}
	return HTTP_INLET_MORE;
}

enum http_inlet_event http_inlet_feed(struct http_inlet *in, const char *p, size_t n, struct http_inlet_out *out)
{
	*out = (struct http_inlet_out){0};
	switch (in->state) {
	case HTTP_INLET_AT_HEAD:
		return inlet_feed_head(in, p, n, out);
	case HTTP_INLET_AT_LENGTH:
		if (n == 0)
			return HTTP_INLET_MORE;
		if ((int64_t)n > in->body_left)
			n = (size_t)in->body_left;
		in->body_left -= (int64_t)n;
		if (in->body_left == 0)
			in->state = HTTP_INLET_AT_END;
		out->used = n;
		out->piece = p;
		out->piece_bytes = n;
		return HTTP_INLET_PIECE;
	case HTTP_INLET_AT_CHUNKS:
		return inlet_feed_chunks(in, p, n, out);
	case HTTP_INLET_AT_END:
		in->state = HTTP_INLET_AT_HEAD;
		return HTTP_INLET_END;
	case HTTP_INLET_BROKEN:
		break;
	}
	http_refuse(&out->refusal, 400, "malformed request");
	return HTTP_INLET_BAD;
}

bool http_inlet_finish(struct http_inlet *in)
{
	if (in->state == HTTP_INLET_AT_END)
		in->state = HTTP_INLET_AT_HEAD;
	return in->state == HTTP_INLET_AT_HEAD;
}
