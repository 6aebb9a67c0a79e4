/* Any bytes on a connection: however they are cut into reads, the same requests, bodies and
 * refusals come out of them, and no read leaves the bytes that are there. The first two
 * bytes choose the cuts. */
#include <assert.h>

#include "base/alloc.h"
#include "http/client_address.h"
#include "http/inlet.h"
#include "http/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct outcome {
	uint64_t digest; /* of heads and body bytes in their order */
	int n_requests, status;
};

static void mix(struct outcome *o, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		o->digest = (o->digest ^ (uint8_t)p[i]) * 1099511628211u;
}

static void take_head(struct outcome *o, struct http_head *h)
{
	const char *target = h->text + h->target;
	size_t n = strcspn(target, "?");
	char *memory = xmalloc(n + 2);
	struct http_segments segments;
	uint8_t address[16];

	assert(*target == '/' || strcmp(target, "*") == 0);
	assert(h->content_length >= 0 && !(h->is_chunked && h->has_length));
	mix(o, h->method, strlen(h->method));
	mix(o, target, strlen(target));
	for (size_t i = 0; i < h->n_fields; i++) {
		const char *value = h->text + h->fields[i].value;

		assert(!strpbrk(value, "\r\n") && !strpbrk(h->text + h->fields[i].name, "\r\n: "));
		mix(o, value, strlen(value));
		if (http_address_parse(value, strlen(value), address) == 0)
			mix(o, (const char *)address, 16);
	}
	if (*target == '/' && http_segments_split(target, n, memory, &segments) == 0)
		for (int i = 0; i < segments.n; i++)
			mix(o, segments.at[i], strlen(segments.at[i]));
	free(memory);
	free(h);
}

static struct outcome run(const char *s, size_t n, size_t step, size_t stride)
{
	struct outcome o = {.digest = 14695981039346656037u};
	struct http_inlet in;
	size_t from = 0, to = 0;

	http_inlet_init(&in, 2048);
	for (;;) {
		struct http_inlet_out out;
		char *p = xmemdup(s + from, to - from);
		enum http_inlet_event ev = http_inlet_feed(&in, p, to - from, &out);

		assert(out.used <= to - from);
		from += out.used;
		if (ev == HTTP_INLET_HEAD)
			take_head(&o, out.head);
		if (ev == HTTP_INLET_PIECE)
			mix(&o, out.piece, out.piece_bytes);
		o.n_requests += ev == HTTP_INLET_END;
		free(p);
		if (ev == HTTP_INLET_BAD) {
			assert(out.refusal.status >= 400 && out.refusal.why);
			o.status = out.refusal.status;
			return o;
		}
		if (ev != HTTP_INLET_MORE)
			continue;
		if (to == n)
			return o;
		to = n - to < step ? n : to + step;
		step = step * 5 % stride + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct outcome whole, cut;

	if (n < 2 || n > 16384)
		return 0;
	whole = run((const char *)data + 2, n - 2, n, n + 1);
	cut = run((const char *)data + 2, n - 2, data[0] + 1u, data[1] + 1u);
	assert(whole.status == cut.status);
	assert(whole.n_requests == cut.n_requests);
	assert(whole.digest == cut.digest);
	return 0;
}
