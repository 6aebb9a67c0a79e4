#include "http/inlet.h"

/* ---- lines ----
 *
 * Splits a head into its lines, byte for byte. Two readers of HTTP may disagree about a bare CR or LF, NUL, a folded
 * line or a space before the colon, so these are refused. */

enum { TOKEN = 1, TEXT = 2, VISIBLE = 4 };

#define T (TOKEN | TEXT | VISIBLE)
#define V (TEXT | VISIBLE)

/* RFC 9110 5.6.2 tokens; field values are HTAB, SP, VCHAR and obs-text. */
static const uint8_t character_class[256] = {
    ['\t'] = TEXT,
    [' '] = TEXT,
    ['!'] = T,
    ['"'] = V,
    ['#' ... '\''] = T,
    ['(' ... ')'] = V,
    ['*' ... '+'] = T,
    [','] = V,
    ['-' ... '.'] = T,
    ['/'] = V,
    ['0' ... '9'] = T,
    [':' ... '@'] = V,
    ['A' ... 'Z'] = T,
    ['[' ... ']'] = V,
    ['^' ... 'z'] = T,
    ['{'] = V,
    ['|'] = T,
    ['}'] = V,
    ['~'] = T,
    [0x80 ... 0xff] = TEXT,
};

#undef T
#undef V

static size_t span(const char *p, size_t n, uint8_t class)
{
	size_t i = 0;

	while (i < n && (character_class[(uint8_t)p[i]] & class))
		i++;
	return i;
}

int http_refuse(struct http_refusal *ret_refusal, int status, const char *why)
{
	*ret_refusal = (struct http_refusal){status, why};
	return ERR_PROTOCOL;
}

static bool is_digit_byte(char c) { return c >= '0' && c <= '9'; }

/* method SP target SP version, one space each. */
static int split_request_line(struct http_head *h, char *p, size_t n, struct http_refusal *refusal)
{
	size_t method = span(p, n, TOKEN), target;

	if (method == 0 || method == n || p[method] != ' ')
		return http_refuse(refusal, 400, "malformed request line");
	h->method = p;
	p[method] = '\0';
	p += method + 1;
	n -= method + 1;
	target = span(p, n, VISIBLE);
	if (target == 0 || target == n || p[target] != ' ')
		return http_refuse(refusal, 400, "malformed request line");
	if (target > HTTP_MAX_TARGET_BYTES)
		return http_refuse(refusal, 414, "request target too long");
	h->target = (uint16_t)(p - h->text);
	p[target] = '\0';
	p += target + 1;
	n -= target + 1;
	bool has_version = (n == 8 || n == 6) && memcmp(p, "HTTP/", 5) == 0 && is_digit_byte(p[5]) &&
			   (n == 6 || (p[6] == '.' && is_digit_byte(p[7])));
	if (!has_version)
		return http_refuse(refusal, 400, "malformed request line");
	if (n != 8 || p[5] != '1' || p[7] > '1')
		return http_refuse(refusal, 505, "only HTTP/1.0 and HTTP/1.1 are supported");
	h->minor = (uint8_t)(p[7] - '0');
	return 0;
}

/* name ":" OWS value OWS (RFC 9112 section 5). p[n] is the line's CR. */
static int split_field_line(struct http_head *h, char *p, size_t n, struct http_refusal *refusal)
{
	size_t name = span(p, n, TOKEN), value, end = n;

	if (name == 0 && (*p == ' ' || *p == '\t'))
		return http_refuse(refusal, 400, "folded or indented header line");
	if (name < n && (p[name] == ' ' || p[name] == '\t'))
		return http_refuse(refusal, 400, "space before a header's colon");
	if (name == 0 || name == n || p[name] != ':')
		return http_refuse(refusal, 400, "malformed header line");
	value = name + 1;
	if (span(p + value, n - value, TEXT) != n - value)
		return http_refuse(refusal, 400, "control character in a header");
	while (value < end && (p[value] == ' ' || p[value] == '\t'))
		value++;
	while (end > value && (p[end - 1] == ' ' || p[end - 1] == '\t'))
		end--;
	p[name] = '\0';
	p[end] = '\0';
	h->fields[h->n_fields++] =
	    (struct http_field){.name = (uint16_t)(p - h->text), .value = (uint16_t)(p + value - h->text)};
	return 0;
}

static int head_split_lines(struct http_head *h, size_t n, size_t max_fields, struct http_refusal *refusal)
{
	size_t at = 0;

	while (at + 2 < n) {
		char *line = h->text + at;
		char *lf = memchr(line, '\n', n - at);

		if (!lf || lf == line || lf[-1] != '\r')
			return http_refuse(refusal, 400, "line does not end in CRLF");
		if (h->n_fields == max_fields)
			return http_refuse(refusal, 431, "too many headers");
		size_t len = (size_t)(lf - line) - 1;
		int rc = at == 0 ? split_request_line(h, line, len, refusal) : split_field_line(h, line, len, refusal);
		if (rc)
			return rc;
		at += len + 2;
	}
	if (at == 0 || n - at != 2 || memcmp(h->text + at, "\r\n", 2) != 0)
		return http_refuse(refusal, 400, "malformed request line");
	return 0;
}

int64_t http_head_find_end(const char *p, size_t n, size_t max_bytes, size_t *scanned, struct http_refusal *refusal)
{
	size_t limit = n < max_bytes ? n : max_bytes;
	size_t at = *scanned;

	if (n && !(character_class[(uint8_t)p[0]] & TOKEN))
		return http_refuse(refusal, 400, "malformed request line");
	while (at < limit) {
		const char *lf = memchr(p + at, '\n', limit - at);

		if (!lf)
			break;
		if (lf == p || lf[-1] != '\r')
			return http_refuse(refusal, 400, "line does not end in CRLF");
		at = (size_t)(lf - p) + 1;
		if (at >= 4 && lf[-2] == '\n')
			return (int64_t)at;
	}
	*scanned = limit;
	if (n < max_bytes)
		return 0;
	if (!memchr(p, '\n', max_bytes))
		return http_refuse(refusal, 414, "request target too long");
	return http_refuse(refusal, 431, "headers too large");
}

/* ---- percent-encoding and the forms of the request target (RFC 9112 section 3.2) ---- */

int64_t http_percent_decode(const char *s, size_t n, enum http_decode how, char *out)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (c == '%') {
			int high = i + 2 < n ? hex_digit(s[i + 1]) : -1;
			int low = i + 2 < n ? hex_digit(s[i + 2]) : -1;

			if (high < 0 || low < 0 || high + low == 0)
				return ERR_INVALID;
			c = (char)(high * 16 + low);
			i += 2;
		} else if (c == '+' && how == HTTP_DECODE_FORM) {
			c = ' ';
		}
		out[len++] = c;
	}
	out[len] = '\0';
	return (int64_t)len;
}

static bool is_plain_host(const char *s, size_t n)
{
	static const char ALLOWED[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+;=:[]%";

	for (size_t i = 0; i < n; i++)
		if (s[i] == '\0' || !strchr(ALLOWED, s[i]))
			return false;
	return true;
}

static int target_check(char **target, const char *method, struct http_refusal *refusal)
{
	char *t = *target;

	if (strcmp(method, "CONNECT") == 0)
		return http_refuse(refusal, 501, "tunnels are not supported");
	if (strchr(t, '#'))
		return http_refuse(refusal, 400, "fragment in the request target");
	if (*t == '/' || (strcmp(t, "*") == 0 && strcmp(method, "OPTIONS") == 0))
		return 0;
	if (strncasecmp(t, "http://", 7) == 0 || strncasecmp(t, "https://", 8) == 0) {
		char *authority = strstr(*target, "://") + 3;
		size_t n = strcspn(authority, "/?");
		char *rest = authority + n;

		/* http://host/path: the authority is checked and dropped, as every name is served alike. */
		if (n == 0 || !is_plain_host(authority, n))
			return http_refuse(refusal, 400, "malformed request target");
		if (*rest != '/') {
			/* "http://host?query" has the path "/": there is room for it in front. */
			rest--;
			*rest = '/';
		}
		*target = rest;
		return 0;
	}
	return http_refuse(refusal, 400, "malformed request target");
}

/* ---- framing ----
 *
 * Checks the fields together. The main question is where the body ends: if two readers disagree, a part of the body
 * becomes a second request that one of them never checked. */

/* Headers that mean nothing, or something dangerous, when they come twice. */
#define SINGLES(X)                                                                                                     \
	X(HOST, "Host")                                                                                                \
	X(LENGTH, "Content-Length")                                                                                    \
	X(CODING, "Transfer-Encoding")                                                                                 \
	X(EXPECT, "Expect")                                                                                            \
	X(AUTHORIZATION, "Authorization")                                                                              \
	X(TYPE, "Content-Type")                                                                                        \
	X(RANGE, "Range")                                                                                              \
	X(SIGNATURE, "X-Hub-Signature-256")                                                                            \
	X(EVENT, "X-GitHub-Event")                                                                                     \
	X(DELIVERY, "X-GitHub-Delivery")

#define X(id, name) SINGLE_##id,
enum single { SINGLES(X) N_SINGLES };
#undef X

static const struct {
	const char *name, *why_twice;
} singles[] = {
#define X(id, name) {name, "more than one " name},
    SINGLES(X)
#undef X
};

/* ---- the head ---- */

/* RFC 9110 section 9.3 and RFC 5789. */
static const char *const METHODS[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};

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

static int split_and_check(struct http_head *h, size_t n, size_t max_fields, struct http_refusal *refusal)
{
	const char *values[N_SINGLES] = {NULL};
	size_t method = 0;
	int rc = head_split_lines(h, n, max_fields, refusal);

	if (rc)
		return rc;
	while (method < ARRAY_LEN(METHODS) && !str_eq(METHODS[method], h->method))
		method++;
	if (method == ARRAY_LEN(METHODS))
		return http_refuse(refusal, 501, "unknown method");
	h->method = METHODS[method];
	h->keeps_alive =
	    !has_connection_option(h, "close") && (h->minor == 1 || has_connection_option(h, "keep-alive"));
	char *target = h->text + h->target;
	rc = target_check(&target, h->method, refusal);
	if (rc)
		return rc;
	h->target = (uint16_t)(target - h->text);
	for (size_t i = 0; i < h->n_fields; i++) {
		const char *name = h->text + h->fields[i].name;

		for (int k = 0; k < N_SINGLES; k++) {
			/* The first letter, without case, rules out nearly all. */
			if ((name[0] | 0x20) != (singles[k].name[0] | 0x20) || strcasecmp(name, singles[k].name) != 0)
				continue;
			if (values[k])
				return http_refuse(refusal, 400, singles[k].why_twice);
			values[k] = h->text + h->fields[i].value;
			break;
		}
	}
	const char *host = values[SINGLE_HOST];
	if (!host && h->minor == 1)
		return http_refuse(refusal, 400, "no Host");
	if (host && !is_plain_host(host, strlen(host)))
		return http_refuse(refusal, 400, "malformed Host");
	const char *length = values[SINGLE_LENGTH];
	const char *coding = values[SINGLE_CODING];
	if (coding && length)
		return http_refuse(refusal, 400, "Content-Length beside Transfer-Encoding");
	if (coding && h->minor == 0)
		return http_refuse(refusal, 400, "Transfer-Encoding in HTTP/1.0");
	if (coding && strcasecmp(coding, "chunked") != 0)
		return http_refuse(refusal, 400, "bad Transfer-Encoding");
	h->is_chunked = coding != NULL;
	h->has_length = length != NULL;
	if (length && *length == '\0')
		return http_refuse(refusal, 400, "bad Content-Length");
	/* Digits only: no sign, no list, no space inside, nothing that overflows. */
	for (const char *s = length; s && *s; s++) {
		if (*s < '0' || *s > '9' || h->content_length > (INT64_MAX - 9) / 10)
			return http_refuse(refusal, 400, "bad Content-Length");
		h->content_length = h->content_length * 10 + (*s - '0');
	}
	/* HTTP/1.0 has no interim answers: RFC 9110 10.1.1 has the field ignored there. */
	if (values[SINGLE_EXPECT] && h->minor == 1) {
		if (strcasecmp(values[SINGLE_EXPECT], "100-continue") != 0)
			return http_refuse(refusal, 417, "unknown expectation");
		h->expects_continue = true;
	}
	return 0;
}

int http_head_parse(const char *p, size_t n, struct http_head **ret, struct http_refusal *refusal)
{
	size_t max_fields = 0;

	if (n > HTTP_MAX_HEAD_BYTES)
		return http_refuse(refusal, 431, "headers too large");
	/* One line more than there are fields, so that the request line is never one too many. */
	for (size_t i = 0; i < n; i++)
		max_fields += p[i] == '\n';
	if (max_fields > HTTP_MAX_FIELDS)
		max_fields = HTTP_MAX_FIELDS;
	struct http_head *h = xmalloc(sizeof(*h) + max_fields * sizeof(*h->fields) + n + 1);
	*h = (struct http_head){0};
	h->fields = (struct http_field *)(void *)(h + 1);
	h->text = (char *)(h->fields + max_fields);
	memcpy(h->text, p, n);
	h->text[n] = '\0';
	int rc = split_and_check(h, n, max_fields, refusal);
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
