/* What a URL may point to. A vendor's file is written by somebody outside, so its URLs
 * must not lead into the operator's network: what is spelt as an address is refused
 * here, what a name resolves to is checked when it is connected. */
#include <arpa/inet.h>
#include <ctype.h>
#include <strings.h>

#include "base/str.h"
#include "config/check.h"

enum { HOST_MAX = 255 };

struct url {
	bool is_tls, is_git;     /* neither: plain http */
	char host[HOST_MAX + 1]; /* without brackets */
	bool is_address;         /* a literal, or localhost, which counts as loopback */
	uint8_t address[16];
	const char *rest; /* path, query and fragment: points into the text */
};

static bool is_host_name(const char *s)
{
	for (const char *c = s; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-' && *c != '.' && *c != '_')
			return false;
	return *s && *s != '.' && *s != '-' && !strstr(s, "..");
}

static bool is_localhost(const char *s)
{
	size_t n = strlen(s);

	if (n && s[n - 1] == '.')
		n--;
	return (n == 9 && strncasecmp(s, "localhost", 9) == 0) ||
	       (n > 10 && strncasecmp(s + n - 10, ".localhost", 10) == 0);
}

/* "127.1", "0x7f000001" and "2130706433" are addresses to the C library, and to libcurl also
 * with the dot of a full name behind them. */
static bool is_disguised_address(const char *host)
{
	char bare[HOST_MAX + 1];
	struct in_addr any;
	size_t n = strlen(host);

	snprintf(bare, sizeof(bare), "%.*s", (int)(n && host[n - 1] == '.' ? n - 1 : n), host);
	return inet_aton(bare, &any) != 0;
}

static int parse_host(const char *s, size_t n, struct url *u)
{
	bool is_bracketed = n > 2 && s[0] == '[' && s[n - 1] == ']';

	if (is_bracketed) {
		s++;
		n -= 2;
	}
	if (n == 0 || n > HOST_MAX)
		return ERR_INVALID;
	memcpy(u->host, s, n);
	u->host[n] = '\0';
	if (is_bracketed != (strchr(u->host, ':') != NULL))
		return ERR_INVALID;
	u->is_address = address_parse(u->host, u->address) == 0;
	if (u->is_address)
		return 0;
	if (is_bracketed || !is_host_name(u->host) || is_disguised_address(u->host))
		return ERR_INVALID;
	if (is_localhost(u->host)) {
		u->is_address = true;
		return address_parse("127.0.0.1", u->address);
	}
	return 0;
}

/* scheme://host[:port][/…], nothing that a request line could not hold. */
static int parse(const char *s, struct url *u)
{
	const char *host, *end, *port;
	int64_t number = 1;

	*u = (struct url){.is_tls = strncasecmp(s, "https://", 8) == 0,
	    .is_git = strncasecmp(s, "git://", 6) == 0};
	if (!u->is_tls && !u->is_git && strncasecmp(s, "http://", 7) != 0)
		return ERR_INVALID;
	for (const char *c = s; *c; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f ||
		    strchr("\"<>\\^`{|}", *c))
			return ERR_INVALID;
	host = strstr(s, "://") + 3;
	end = host + strcspn(host, "/?#");
	if (memchr(host, '@', (size_t)(end - host)))
		return ERR_INVALID;
	port = end;
	while (port > host && isdigit((unsigned char)port[-1]))
		port--;
	if (port > host && port[-1] == ':' && port < end) {
		char digits[8];

		snprintf(digits, sizeof(digits), "%.*s", (int)(end - port), port);
		if (end - port > 5 || parse_int64(digits, &number) || number < 1 || number > 65535)
			return ERR_INVALID;
		port--;
	} else {
		port = end;
	}
	u->rest = end;
	return parse_host(host, (size_t)(port - host), u);
}

/* The same for what only a web server answers. */
static int parse_http(const char *s, struct url *u)
{
	return parse(s, u) || u->is_git ? ERR_INVALID : 0;
}

static bool no(char why[WHY_BYTES], const char *what)
{
	snprintf(why, WHY_BYTES, "%s", what);
	return false;
}

static bool is_near(const struct url *u)
{
	return u->is_address && network_is_private(u->address);
}

bool check_service_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	struct url u;

	(void)r;
	if (parse_http(s, &u) || strchr(s, '#') || (!u.is_tls && !is_near(&u)))
		return no(why, "an https URL (plain http only to localhost or a private address)");
	return true;
}

bool check_public_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	struct url u;

	(void)r;
	if (parse_http(s, &u) || strpbrk(s, "?#"))
		return no(why, "an https or http URL without query or fragment");
	return true;
}

bool check_link_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	struct url u;

	(void)r;
	if (parse_http(s, &u) || !u.is_tls)
		return no(why, "an https URL");
	return true;
}

/* plain: what goes unencrypted, and only to where the operator allows it. */
static bool check_outside(
    const struct reader *r, const struct url *u, const char *plain, char why[WHY_BYTES])
{
	const struct network_list *nets = r->allowed;
	bool is_allowed =
	    nets && u->is_address && network_contains(nets->items, nets->n, u->address);

	if (is_near(u) && !is_allowed)
		return no(why,
		    "the URL of a public host (outgoing.allow_networks does not list this one)");
	if (!u->is_tls && !is_allowed) {
		snprintf(why, WHY_BYTES,
		    "an https URL (%s only to addresses in outgoing.allow_networks)", plain);
		return false;
	}
	return true;
}

bool check_vendor_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	struct url u;

	if (parse_http(s, &u) || strchr(s, '#'))
		return no(why, "an https URL without user name or fragment");
	return check_outside(r, &u, "plain http", why);
}

bool check_source_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	struct url u;

	if (parse(s, &u) || strpbrk(s, "?#"))
		return no(why, "an https URL without user name, query or fragment");
	return check_outside(r, &u, "http and git", why);
}
