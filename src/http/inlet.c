#include "http/inlet.h"

/* ---- chunked bodies (RFC 9112 section 7.1) ----
 *
 * Strict: CRLF only and plain hexadecimal sizes. Extensions and trailers are checked, bounded and dropped. */

enum chunk_event { CHUNK_MORE, CHUNK_PIECE, CHUNK_DONE, CHUNK_BAD };

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

/* Reads on in p[0..n) and consumes *ret_used bytes of it. On PIECE the last *ret_piece of these are body. After DONE
 * or BAD it must not be called again. */
static enum chunk_event chunked_feed(
    struct http_chunked *c, const char *p, size_t n, size_t *ret_used, size_t *ret_piece, struct http_refusal *refusal)
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
			return CHUNK_PIECE;
		}
		if (!chunk_step(c, p[i++])) {
			*ret_used = i;
			http_refuse(refusal, 400, "malformed chunk");
			return CHUNK_BAD;
		}
		if (c->state == HTTP_CHUNK_END) {
			*ret_used = i;
			return CHUNK_DONE;
		}
	}
	*ret_used = n;
	return CHUNK_MORE;
}

/* ---- the inlet ---- */

void http_inlet_init(struct http_inlet *in, size_t max_head_bytes)
{
	*in = (struct http_inlet){.max_head_bytes = max_head_bytes};
}

static enum http_inlet_event inlet_break(struct http_inlet *in, size_t used, struct http_inlet_out *out)
{
	in->state = HTTP_INLET_BROKEN;
	out->used = used;
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
			return inlet_break(in, 0, out);
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
		return inlet_break(in, out->used, out);
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
		switch (chunked_feed(&in->chunked, p, n, &out->used, &out->piece_bytes, &out->refusal)) {
		case CHUNK_PIECE:
			out->piece = p + out->used - out->piece_bytes;
			return HTTP_INLET_PIECE;
		case CHUNK_DONE:
			in->state = HTTP_INLET_AT_HEAD;
			return HTTP_INLET_END;
		case CHUNK_BAD:
			return inlet_break(in, out->used, out);
		case CHUNK_MORE:
			break;
		}
		return HTTP_INLET_MORE;
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
