/* The parser library's only home: it splits a complete head, and its opinion that the head
 * is valid is needed besides our own. Another library would replace this file alone. */
#include "http/head.h"

#include <http_parser.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"

struct split {
	http_parser parser;
	struct http_head *head;
	size_t max_fields;
	size_t target_bytes;
	bool is_value_seen; /* of the last field */
	bool is_broken;     /* the library split other fields than the scan saw */
};

static struct split *split_of(http_parser *parser)
{
	return parser->data;
}

static int on_url(http_parser *parser, const char *at, size_t n)
{
	struct split *s = split_of(parser);

	s->head->target = (uint16_t)(at - s->head->text);
	s->target_bytes = n;
	return 0;
}

static int on_field(http_parser *parser, const char *at, size_t n)
{
	struct split *s = split_of(parser);
	struct http_head *h = s->head;

	if (h->n_fields == s->max_fields || n == 0) {
		s->is_broken = true;
		return 1;
	}
	h->fields[h->n_fields].name = (uint16_t)(at - h->text);
	/* An empty value is the NUL that will stand behind its name. */
	h->fields[h->n_fields].value = (uint16_t)(at + n - h->text);
	h->n_fields++;
	s->is_value_seen = false;
	return 0;
}

static int on_value(http_parser *parser, const char *at, size_t n)
{
	struct split *s = split_of(parser);
	struct http_head *h = s->head;

	if (h->n_fields == 0 || s->is_value_seen) {
		s->is_broken = true;
		return 1;
	}
	/* For an empty value the library points at the line behind it: what on_field() left is
	 * right then. */
	if (n)
		h->fields[h->n_fields - 1].value = (uint16_t)(at - h->text);
	s->is_value_seen = true;
	return 0;
}

static int on_headers_complete(http_parser *parser)
{
	(void)parser;
	return 1; /* the body is read by inlet.c, not by the library */
}

static const http_parser_settings SETTINGS = {
    .on_url = on_url,
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_headers_complete = on_headers_complete,
};

/* Ends every name and value with NUL, where ':' and trailing space or CR stood. */
static void terminate_fields(struct http_head *h)
{
	for (size_t i = 0; i < h->n_fields; i++) {
		char *name = h->text + h->fields[i].name;
		char *value = h->text + h->fields[i].value;
		char *colon = strchr(name, ':');
		char *end = strchr(value, '\r');

		while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
			end--;
		*end = '\0';
		*colon = '\0';
	}
}

static int refuse_as_library(http_parser *parser, struct http_refusal *refusal)
{
	enum http_errno why = HTTP_PARSER_ERRNO(parser);

	if (why == HPE_INVALID_METHOD)
		return http_refuse(refusal, 501, "unknown method");
	if (why == HPE_INVALID_VERSION)
		return http_refuse(refusal, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
	if (why == HPE_HEADER_OVERFLOW)
		return http_refuse(refusal, 431, "headers too large");
	if (why == HPE_UNEXPECTED_CONTENT_LENGTH || why == HPE_INVALID_CONTENT_LENGTH)
		return http_refuse(refusal, 400, "bad Content-Length");
	if (why == HPE_INVALID_TRANSFER_ENCODING)
		return http_refuse(refusal, 400, "bad Transfer-Encoding");
	return http_refuse(refusal, 400, "malformed request");
}

static int split(struct http_head *h, size_t n, size_t n_fields, struct http_refusal *refusal)
{
	struct split s = {.head = h, .max_fields = n_fields};
	char *target;
	size_t used;
	int rc;

	http_parser_init(&s.parser, HTTP_REQUEST);
	s.parser.data = &s;
	used = http_parser_execute(&s.parser, &SETTINGS, h->text, n);
	if (HTTP_PARSER_ERRNO(&s.parser) != HPE_OK)
		return refuse_as_library(&s.parser, refusal);
	if (used != n || s.is_broken || h->n_fields != n_fields || s.target_bytes == 0)
		return http_refuse(refusal, 400, "malformed request");
	h->method = http_method_str((enum http_method)s.parser.method);
	h->minor = (uint8_t)s.parser.http_minor;
	h->keeps_alive = !(s.parser.flags & F_CONNECTION_CLOSE) &&
			 (h->minor == 1 || (s.parser.flags & F_CONNECTION_KEEP_ALIVE));
	terminate_fields(h);
	target = h->text + h->target;
	target[s.target_bytes] = '\0';
	rc = http_target_check(&target, h->method, refusal);
	if (rc)
		return rc;
	h->target = (uint16_t)(target - h->text);
	return http_framing_check(h, refusal);
}

int http_head_parse(const char *p, size_t n, struct http_head **ret, struct http_refusal *refusal)
{
	struct http_head *h;
	size_t n_fields;
	int rc;

	if (n > HTTP_MAX_HEAD_BYTES)
		return http_refuse(refusal, 431, "headers too large");
	rc = http_lines_check(p, n, &n_fields, refusal);
	if (rc)
		return rc;
	h = xmalloc(sizeof(*h) + n_fields * sizeof(*h->fields) + n + 1);
	*h = (struct http_head){0};
	h->fields = (struct http_field *)(void *)(h + 1);
	h->text = (char *)(h->fields + n_fields);
	memcpy(h->text, p, n);
	h->text[n] = '\0';
	rc = split(h, n, n_fields, refusal);
	if (rc) {
		free(h);
		return rc;
	}
	*ret = h;
	return 0;
}

const char *http_head_get(const struct http_head *h, const char *name)
{
	for (size_t i = 0; i < h->n_fields; i++)
		if (strcasecmp(h->text + h->fields[i].name, name) == 0)
			return h->text + h->fields[i].value;
	return NULL;
}
