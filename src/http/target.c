/* The request target's forms (RFC 9112 section 3.2), and percent-encoding. */
#include "http/head.h"

#include <string.h>
#include <strings.h>

bool http_host_is_plain(const char *s, size_t n)
{
	static const char ALLOWED[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789-._~!$&'()*+;=:[]%";

	for (size_t i = 0; i < n; i++)
		if (s[i] == '\0' || !strchr(ALLOWED, s[i]))
			return false;
	return true;
}

/* http://host/path: the authority is checked and dropped, as every name is served alike. */
static int strip_authority(char **target, struct http_refusal *refusal)
{
	char *authority = strstr(*target, "://") + 3;
	size_t n = strcspn(authority, "/?");
	char *rest = authority + n;

	if (n == 0 || !http_host_is_plain(authority, n))
		return http_refuse(refusal, 400, "malformed request target");
	if (*rest != '/') {
		/* "http://host?query" has the path "/": there is room for it in front. */
		rest--;
		*rest = '/';
	}
	*target = rest;
	return 0;
}

int http_target_check(char **target, const char *method, struct http_refusal *refusal)
{
	char *t = *target;

	if (strcmp(method, "CONNECT") == 0)
		return http_refuse(refusal, 501, "no tunnels here");
	if (strchr(t, '#'))
		return http_refuse(refusal, 400, "fragment in the request target");
	if (*t == '/')
		return 0;
	if (strcmp(t, "*") == 0 && strcmp(method, "OPTIONS") == 0)
		return 0;
	if (strncasecmp(t, "http://", 7) == 0 || strncasecmp(t, "https://", 8) == 0)
		return strip_authority(target, refusal);
	return http_refuse(refusal, 400, "malformed request target");
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int64_t http_percent_decode(const char *s, size_t n, enum http_decode how, char *out)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (c == '%') {
			int high = i + 2 < n ? hex_value(s[i + 1]) : -1;
			int low = i + 2 < n ? hex_value(s[i + 2]) : -1;

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
