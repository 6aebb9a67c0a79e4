#include "http/head.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"

/* RFC 9110 section 9.3 and RFC 5789. */
static const char *const METHODS[] = {
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};

static const char *known_method(const char *text)
{
	for (size_t i = 0; i < ARRAY_LEN(METHODS); i++)
		if (str_eq(METHODS[i], text))
			return METHODS[i];
	return NULL;
}

/* True when a Connection header has the option; options are a list, without case. */
static bool has_connection_option(const struct http_head *h, const char *option)
{
	size_t n = strlen(option);

	for (size_t i = 0; i < h->n_fields; i++) {
		const char *at = h->text + h->fields[i].value;

		if (strcasecmp(h->text + h->fields[i].name, "connection") != 0)
			continue;
		while (*at) {
			size_t len = strcspn(at, ", \t");

			if (len == n && strncasecmp(at, option, n) == 0)
				return true;
			at += len;
			at += strspn(at, ", \t");
		}
	}
	return false;
}

static int split_and_check(
    struct http_head *h, size_t n, size_t max_fields, struct http_refusal *refusal)
{
	char *target;
	int rc = http_lines_split(h, n, max_fields, refusal);

	if (rc)
		return rc;
	h->method = known_method(h->method);
	if (!h->method)
		return http_refuse(refusal, 501, "unknown method");
	h->keeps_alive = !has_connection_option(h, "close") &&
			 (h->minor == 1 || has_connection_option(h, "keep-alive"));
	target = h->text + h->target;
	rc = http_target_check(&target, h->method, refusal);
	if (rc)
		return rc;
	h->target = (uint16_t)(target - h->text);
	return http_framing_check(h, refusal);
}

static size_t n_lines(const char *p, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += p[i] == '\n';
	return count;
}

int http_head_parse(const char *p, size_t n, struct http_head **ret, struct http_refusal *refusal)
{
	struct http_head *h;
	size_t max_fields;
	int rc;

	if (n > HTTP_MAX_HEAD_BYTES)
		return http_refuse(refusal, 431, "headers too large");
	/* One line more than there are fields, so that the request line is never one too many. */
	max_fields = n_lines(p, n);
	if (max_fields > HTTP_MAX_FIELDS)
		max_fields = HTTP_MAX_FIELDS;
	h = xmalloc(sizeof(*h) + max_fields * sizeof(*h->fields) + n + 1);
	*h = (struct http_head){0};
	h->fields = (struct http_field *)(void *)(h + 1);
	h->text = (char *)(h->fields + max_fields);
	memcpy(h->text, p, n);
	h->text[n] = '\0';
	rc = split_and_check(h, n, max_fields, refusal);
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
