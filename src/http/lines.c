/* The raw lines of a head, byte for byte. Whatever two readers of HTTP could see
 * differently is refused here: bare CR and LF, NUL, folded lines, space before the colon. */
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

static int check_version(const char *p, size_t n, struct http_refusal *refusal)
{
	bool is_shaped = (n == 8 && is_digit(p[5]) && p[6] == '.' && is_digit(p[7])) ||
			 (n == 6 && is_digit(p[5]));

	if (n < 6 || memcmp(p, "HTTP/", 5) != 0 || !is_shaped)
		return http_refuse(refusal, 400, "malformed request line");
	if (n != 8 || p[5] != '1' || p[7] > '1')
		return http_refuse(refusal, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
	return 0;
}

/* method SP target SP version, one space each. */
static int check_request_line(const char *p, size_t n, struct http_refusal *refusal)
{
	size_t method = span(p, n, TOKEN), target;

	if (method == 0 || method == n || p[method] != ' ')
		return http_refuse(refusal, 400, "malformed request line");
	p += method + 1;
	n -= method + 1;
	target = span(p, n, VISIBLE);
	if (target == 0 || target == n || p[target] != ' ')
		return http_refuse(refusal, 400, "malformed request line");
	if (target > HTTP_MAX_TARGET_BYTES)
		return http_refuse(refusal, 414, "request target too long");
	return check_version(p + target + 1, n - target - 1, refusal);
}

static int check_field_line(const char *p, size_t n, struct http_refusal *refusal)
{
	size_t name = span(p, n, TOKEN);

	if (name == 0 && (*p == ' ' || *p == '\t'))
		return http_refuse(refusal, 400, "folded or indented header line");
	if (name < n && (p[name] == ' ' || p[name] == '\t'))
		return http_refuse(refusal, 400, "space before a header's colon");
	if (name == 0 || name == n || p[name] != ':')
		return http_refuse(refusal, 400, "malformed header line");
	if (span(p + name + 1, n - name - 1, TEXT) != n - name - 1)
		return http_refuse(refusal, 400, "control character in a header");
	return 0;
}

int http_lines_check(const char *p, size_t n, size_t *ret_n_fields, struct http_refusal *refusal)
{
	size_t n_lines = 0, at = 0;
	int rc;

	while (at + 2 < n) {
		const char *lf = memchr(p + at, '\n', n - at);
		size_t len;

		if (!lf || lf == p + at || lf[-1] != '\r')
			return http_refuse(refusal, 400, "line does not end in CRLF");
		len = (size_t)(lf - (p + at)) - 1;
		rc = n_lines == 0 ? check_request_line(p + at, len, refusal)
				  : check_field_line(p + at, len, refusal);
		if (rc)
			return rc;
		n_lines++;
		at += len + 2;
	}
	if (n_lines == 0 || n - at != 2 || memcmp(p + at, "\r\n", 2) != 0)
		return http_refuse(refusal, 400, "malformed request line");
	if (n_lines - 1 > HTTP_MAX_FIELDS)
		return http_refuse(refusal, 431, "too many headers");
	*ret_n_fields = n_lines - 1;
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
