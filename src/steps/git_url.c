#include "steps/git_url.h"

#include <arpa/inet.h>
#include <ctype.h>

#include "base/alloc.h"
#include "base/str.h"
#include "config/network.h"

enum { URL_MAX_BYTES = 2048 };

static bool is_printable(const char *s)
{
	if (strlen(s) > URL_MAX_BYTES)
		return false;
	for (; *s; s++)
		if ((unsigned char)*s <= ' ' || *s == 0x7f || *s == '\\')
			return false;
	return true;
}

static bool is_domain_name(const char *s)
{
	const char *last = strrchr(s, '.');

	for (const char *c = s; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_' &&
		    (*c != '.' || c == s || c[1] == '.' || !c[1]))
			return false;
	/* 127.1, 0x7f000001 and 017700000001 are addresses to some programs and names to others */
	last = last ? last + 1 : s;
	return *s && !isdigit((unsigned char)*last);
}

static int parse_host(const char *p, size_t n, struct git_url *ret)
{
	bool is_bracketed = n > 2 && p[0] == '[' && p[n - 1] == ']';

	if (is_bracketed) {
		p++;
		n -= 2;
	}
	if (n == 0 || n > GIT_HOST_MAX_BYTES)
		return ERR_INVALID;
	for (size_t i = 0; i < n; i++)
		ret->host[i] = (char)tolower((unsigned char)p[i]);
	ret->host[n] = '\0';
	ret->is_address = address_parse(ret->host, ret->address) == 0;
	if (ret->is_address)
		return is_bracketed == !!strchr(ret->host, ':') ? 0 : ERR_INVALID;
	return !is_bracketed && is_domain_name(ret->host) ? 0 : ERR_INVALID;
}

int git_url_parse(const char *text, struct git_url *ret)
{
	const char *host, *end, *colon;
	int64_t port;

	*ret = (struct git_url){.is_plain = str_has_prefix(text, "http://")};
	if ((!ret->is_plain && !str_has_prefix(text, "https://")) || !is_printable(text))
		return ERR_INVALID;
	host = strstr(text, "://") + 3;
	end = host + strcspn(host, "/?#");
	if (*end != '/')
		return ERR_INVALID;
	colon = *host == '[' ? memchr(host, ']', (size_t)(end - host)) : host;
	colon = colon ? memchr(colon, ':', (size_t)(end - colon)) : NULL;
	port = ret->is_plain ? 80 : 443;
	if (colon) {
		char digits[8];

		snprintf(digits, sizeof(digits), "%.*s", (int)(end - colon - 1), colon + 1);
		if (end - colon > 6 || !isdigit((unsigned char)*digits) ||
		    parse_int64(digits, &port) || port < 1 || port > 65535)
			return ERR_INVALID;
	}
	ret->port = (int)port;
	return parse_host(host, (size_t)((colon ? colon : end) - host), ret);
}

/* Takes the last component off; *ret_separator: what stood before it. */
static bool chop(char *url, char *ret_separator)
{
	char *at = strrchr(url, '/');

	if (!at)
		at = strrchr(url, ':');
	if (!at || at == url)
		return false;
	*ret_separator = *at;
	*at = '\0';
	return true;
}

char *git_url_resolve(const char *parent, const char *written)
{
	char *base, *url = NULL, separator = '/';
	bool is_right = true;
	size_t n;

	if (!str_has_prefix(written, "./") && !str_has_prefix(written, "../"))
		return xstrdup(written);
	base = xstrdup(parent);
	n = strlen(base);
	while (n > 0 && base[n - 1] == '/')
		base[--n] = '\0';
	while (is_right && *written == '.') {
		if (str_has_prefix(written, "../")) {
			is_right = chop(base, &separator);
			written += 3;
		} else if (str_has_prefix(written, "./")) {
			written += 2;
		} else {
			break;
		}
	}
	if (is_right)
		url = xasprintf("%s%c%s", base, separator, written);
	free(base);
	return url;
}
