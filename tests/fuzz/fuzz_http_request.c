/* Any bytes on a connection: the requests, bodies and refusals do not depend on how the bytes are cut into reads, and
 * no read goes past the end. An accepted head has, line by line, the method, target and fields that a second, naive
 * reader finds in the raw bytes. The first two bytes choose the cuts. */

#include "http/client_group.h"
#include "http/inlet.h"
#include "http/request.h"

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

static bool is_same_text(const char *s, const char *raw, size_t n) { return strlen(s) == n && memcmp(s, raw, n) == 0; }

/* The naive reader: lines end at CRLF, a name ends at the first colon, blanks around a value do not count. Its copy
 * of the head is text, so a NUL would end a field early. */
static void check_split(const struct http_head *h, const char *raw, size_t n)
{
	char *copy = xstrndup(raw, n), *line = copy, *end = strstr(line, "\r\n");
	char *target = memchr(line, ' ', (size_t)(end - line)), *version;

	assert(strlen(copy) == n);
	assert(is_same_text(h->method, line, (size_t)(target - line)));
	version = strchr(target + 1, ' ');
	assert(version + 9 == end && version[6] == '1' && version[8] == '0' + h->minor);
	if (target[1] == '/')
		assert(is_same_text(h->text + h->target, target + 1, (size_t)(version - target - 1)));
	for (size_t i = 0; i < h->n_fields; i++) {
		char *colon, *value;

		line = end + 2;
		end = strstr(line, "\r\n");
		colon = strchr(line, ':');
		assert(end && end > line && colon && colon < end);
		assert(is_same_text(h->text + h->fields[i].name, line, (size_t)(colon - line)));
		value = colon + 1 + strspn(colon + 1, " \t");
		while (end > value && strchr(" \t", end[-1]))
			*--end = '\r';
		assert(is_same_text(h->text + h->fields[i].value, value, end > value ? (size_t)(end - value) : 0));
		end = strchr(end, '\n') - 1;
	}
	assert(strcmp(end, "\r\n\r\n") == 0);
	free(copy);
}

/* `raw` is the received head, perhaps with the empty line that may precede it. */
static void take_head(struct outcome *o, struct http_head *h, const char *raw, size_t raw_bytes)
{
	const char *target = h->text + h->target;
	size_t n = strcspn(target, "?");
	char *memory = xmalloc(n + 2);
	struct http_segments segments;
	uint8_t address[16];

	if (*raw == '\r') {
		raw += 2;
		raw_bytes -= 2;
	}
	check_split(h, raw, raw_bytes);
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
			take_head(&o, out.head, p, out.used);
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
