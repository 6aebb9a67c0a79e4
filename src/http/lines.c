/* Splits a head into its lines, byte for byte. What two readers of HTTP could see differently is
 * refused here: bare CR and LF, NUL, folded lines, space before the colon. */
#include "http/head.h"

#include <string.h>

enum { TOKEN = 1, TEXT = 2, VISIBLE = 4 };

#define T (TOKEN | TEXT | VISIBLE)
#define V (TEXT | VISIBLE)

/* RFC 9110 5.6.2 tokens; field values are HTAB, SP, VCHAR and obs-text. */
static const uint8_t class_of[256] = {
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

	while (i < n && (class_of[(uint8_t)p[i]] & class))
		i++;
	return i;
}

int http_refuse(struct http_refusal *ret_refusal, int status, const char *why)
{
	*ret_refusal = (struct http_refusal){status, why};
	return ERR_PROTOCOL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int read_version(struct http_head *h, const char *p, size_t n, struct http_refusal *refusal)
{
	bool is_shaped = (n == 8 && is_digit(p[5]) && p[6] == '.' && is_digit(p[7])) ||
			 (n == 6 && is_digit(p[5]));

	if (n < 6 || memcmp(p, "HTTP/", 5) != 0 || !is_shaped)
		return http_refuse(refusal, 400, "malformed request line");
	if (n != 8 || p[5] != '1' || p[7] > '1')
		return http_refuse(refusal, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
	h->minor = (uint8_t)(p[7] - '0');
	return 0;
}

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
	return read_version(h, p + target + 1, n - target - 1, refusal);
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
	h->fields[h->n_fields++] = (struct http_field){
	    .name = (uint16_t)(p - h->text),
	    .value = (uint16_t)(p + value - h->text),
	};
	return 0;
}

int http_lines_split(struct http_head *h, size_t n, size_t max_fields, struct http_refusal *refusal)
{
	size_t at = 0;

	while (at + 2 < n) {
		char *line = h->text + at;
		char *lf = memchr(line, '\n', n - at);
		size_t len;
		int rc;

		if (!lf || lf == line || lf[-1] != '\r')
			return http_refuse(refusal, 400, "line does not end in CRLF");
		if (h->n_fields == max_fields)
			return http_refuse(refusal, 431, "too many headers");
		len = (size_t)(lf - line) - 1;
		rc = at == 0 ? split_request_line(h, line, len, refusal)
			     : split_field_line(h, line, len, refusal);
		if (rc)
			return rc;
		at += len + 2;
	}
	if (at == 0 || n - at != 2 || memcmp(h->text + at, "\r\n", 2) != 0)
		return http_refuse(refusal, 400, "malformed request line");
	return 0;
}

int64_t http_head_find_end(
    const char *p, size_t n, size_t max_bytes, size_t *scanned, struct http_refusal *refusal)
{
	size_t limit = n < max_bytes ? n : max_bytes;
	size_t at = *scanned;

	if (n && !(class_of[(uint8_t)p[0]] & TOKEN))
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
