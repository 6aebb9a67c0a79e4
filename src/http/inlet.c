#include "http/inlet.h"

void http_inlet_init(struct http_inlet *in, size_t max_head_bytes)
{
	*in = (struct http_inlet){.max_head_bytes = max_head_bytes};
}

static enum http_inlet_event broken(struct http_inlet *in, size_t used, struct http_inlet_out *out)
{
	in->state = HTTP_INLET_BROKEN;
	out->used = used;
	return HTTP_INLET_BAD;
}

static void begin_body(struct http_inlet *in, const struct http_head *head)
{
	in->body_left = head->content_length;
	in->chunked = (struct http_chunked){0};
	if (head->is_chunked)
		in->state = HTTP_INLET_AT_CHUNKS;
	else
		in->state = in->body_left ? HTTP_INLET_AT_LENGTH : HTTP_INLET_AT_END;
}

static enum http_inlet_event feed_head(
    struct http_inlet *in, const char *p, size_t n, struct http_inlet_out *out)
{
	int64_t bytes;

	/* RFC 9112 2.2: some clients send an empty line behind a body. One is forgiven. */
	if (in->scanned == 0 && n >= 1 && p[0] == '\r' && !in->is_blank_taken) {
		if (n == 1)
			return HTTP_INLET_MORE;
		if (p[1] != '\n') {
			http_refuse(&out->refusal, 400, "malformed request line");
			return broken(in, 0, out);
		}
		in->is_blank_taken = true;
		out->used = 2;
		p += 2;
		n -= 2;
	}
	bytes = http_head_find_end(p, n, in->max_head_bytes, &in->scanned, &out->refusal);
	if (bytes == 0)
		return HTTP_INLET_MORE;
	if (bytes < 0 || http_head_parse(p, (size_t)bytes, &out->head, &out->refusal))
		return broken(in, out->used, out);
	out->used += (size_t)bytes;
	in->scanned = 0;
	in->is_blank_taken = false;
	begin_body(in, out->head);
	return HTTP_INLET_HEAD;
}

static enum http_inlet_event feed_length(
    struct http_inlet *in, const char *p, size_t n, struct http_inlet_out *out)
{
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
}

static enum http_inlet_event feed_chunks(
    struct http_inlet *in, const char *p, size_t n, struct http_inlet_out *out)
{
	switch (
	    http_chunked_feed(&in->chunked, p, n, &out->used, &out->piece_bytes, &out->refusal)) {
	case HTTP_CHUNK_PIECE:
		out->piece = p + out->used - out->piece_bytes;
		return HTTP_INLET_PIECE;
	case HTTP_CHUNK_DONE:
		in->state = HTTP_INLET_AT_HEAD;
		return HTTP_INLET_END;
	case HTTP_CHUNK_BAD:
		return broken(in, out->used, out);
	case HTTP_CHUNK_MORE:
		break;
	}
	return HTTP_INLET_MORE;
}

enum http_inlet_event http_inlet_feed(
    struct http_inlet *in, const char *p, size_t n, struct http_inlet_out *out)
{
	*out = (struct http_inlet_out){0};
	switch (in->state) {
	case HTTP_INLET_AT_HEAD:
		return feed_head(in, p, n, out);
	case HTTP_INLET_AT_LENGTH:
		return feed_length(in, p, n, out);
	case HTTP_INLET_AT_CHUNKS:
		return feed_chunks(in, p, n, out);
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
