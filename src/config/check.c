#include "config/check.h"

#include <arpa/inet.h>

#include "model/plan.h"
#include "model/schedule.h"

bool check_failed(char why[WHY_BYTES], const char *what)
{
	snprintf(why, WHY_BYTES, "%s", what);
	return false;
}

/* Finds C1 controls, line and paragraph separators and marks of the reading direction: with these, a
 * title could change the text around it. */
static bool has_hidden(const char *s)
{
	for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
		if (*p < 0x20 || *p == 0x7f || (p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f))
			return true;
		if (p[0] == 0xe2 && p[1] == 0x80 && ((p[2] >= 0xa8 && p[2] <= 0xae) || p[2] == 0x8e || p[2] == 0x8f))
			return true;
		if (p[0] == 0xe2 && p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9)
			return true;
	}
	return false;
}

bool check_line(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	(void)r;
	return !has_hidden(s) || check_failed(why, "one line without control characters");
}

bool check_text(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	char *copy = xstrdup(s);

	(void)r;
	for (char *c = copy; *c; c++)
		if (*c == '\n' || *c == '\t')
			*c = ' ';
	bool is_right = !has_hidden(copy);
	free(copy);
	return is_right || check_failed(why, "text without control characters");
}

bool check_name(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	size_t n = strlen(s);

	(void)r;
	return (n > 0 && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n && s[0] != '-' && s[n - 1] != '-') ||
	       check_failed(why, "letters a-z, digits and - between them");
}

bool check_repository(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	(void)r;
	return is_repository_name(s) || check_failed(why, "owner/name");
}

bool check_login(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	size_t n;

	(void)r;
	if (*s == '@')
		s++;
	for (n = 0; s[n]; n++)
		if (!isalnum((unsigned char)s[n]) && s[n] != '-' && s[n] != '_')
			break;
	return (n > 0 && n <= 39 && s[n] == '\0' && s[0] != '-') || check_failed(why, "a GitHub login");
}

bool check_branch(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	(void)r;
	for (const char *c = s; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f || strchr("~^:?*[\\", *c))
			return check_failed(why, "a branch's name");
	if (*s == '\0' || *s == '/' || *s == '-' || strstr(s, "..") || strstr(s, "//") || strstr(s, "@{") ||
	    str_has_suffix(s, "/") || str_has_suffix(s, ".") || str_has_suffix(s, ".lock") ||
	    str_has_prefix(s, "refs/"))
		return check_failed(why, "a branch's name");
	return true;
}

bool check_glob(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	return (glob_is_valid(s) && check_line(r, s, why)) || check_failed(why, "a path pattern such as \"aten/**\"");
}

bool check_cron(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	struct error e = {0};
	struct cron c;

	(void)r;
	if (cron_parse(s, &c, &e) == 0)
		return true;
	snprintf(why, WHY_BYTES, "a cron text such as \"0 2 * * *\" (%.160s)", e.text);
	return false;
}

bool check_test(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	const char *slash = strchr(s, '/');

	return (slash && slash != s && slash[1] && check_line(r, s, why)) || check_failed(why, "SUITE/TEST");
}

bool check_suite(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	return (!strchr(s, '/') && check_line(r, s, why)) || check_failed(why, "a suite's name");
}

bool check_store(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	bool is_server = strncmp(s, "postgresql://", 13) == 0 || strncmp(s, "postgres://", 11) == 0;

	(void)r;
	return str_eq(s, "sqlite") || is_server || check_failed(why, "sqlite or postgresql://…");
}

bool check_logs(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	const char *bucket = s + strlen("s3://"), *part = bucket;
	bool is_right = true;

	if (!str_has_prefix(s, "s3://"))
		return (!strstr(s, "://") && check_line(r, s, why)) ||
		       check_failed(why, "state_dir, database, a folder or s3://BUCKET/PREFIX");
	for (; is_right; part++) {
		size_t n = strspn(part, unreserved);

		is_right =
		    n > 0 && strspn(part, ".") < n && (part[n] == '/' || part[n] == '\0') && (part != bucket || n >= 3);
		part += n;
		if (*part == '\0' || part[1] == '\0')
			break;
	}
	return (is_right && strlen(bucket) <= 512) ||
	       check_failed(why, "s3://BUCKET/PREFIX, with the letters, digits and -._~ in each part");
}

bool check_pipeline(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	const char *slash = strchr(s, '/');

	return (slash && slash != s && slash[1] && !strchr(slash + 1, '/') && check_line(r, s, why)) ||
	       check_failed(why, "ORGANIZATION_ID/PIPELINE_ID");
}

bool check_secret_name(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	bool is_right = *s && *s != '.';

	(void)r;
	for (const char *c = s; *c; c++)
		is_right = is_right && (isalnum((unsigned char)*c) || strchr("._-", *c));
	return is_right || check_failed(why, "the name of a file below secrets/ACCELERATOR/");
}

bool check_workflow(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	static const char folder[] = ".github/workflows/";
	const char *name = s + sizeof(folder) - 1;

	return (str_has_prefix(s, folder) && *name != '.' && !strchr(name, '/') && check_line(r, s, why) &&
		   (str_has_suffix(name, ".yml") || str_has_suffix(name, ".yaml"))) ||
	       check_failed(why, ".github/workflows/NAME.yml");
}

/* The host's part of "host:port" or "[v6]:port": a literal, a name or `*`. */
static bool is_listen_host(const char *s, size_t n)
{
	char host[256];
	uint8_t address[16];

	if (n == 0 || n >= sizeof(host))
		return false;
	memcpy(host, s, n);
	host[n] = '\0';
	if (host[0] == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		return strchr(host, ':') && address_parse(host + 1, address) == 0;
	}
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)host[i]) && !strchr(".-", host[i]))
			return false;
	return true;
}

bool check_listen(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	const char *colon = strrchr(s, ':');
	int64_t port;

	(void)r;
	return (colon && is_listen_host(s, (size_t)(colon - s)) && isdigit((unsigned char)colon[1]) &&
		   !parse_int64(colon + 1, &port) && port <= 65535) ||
	       check_failed(why, "host:port, as 127.0.0.1:8080 or [::1]:8080");
}

bool check_relative_path(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	for (const char *part = s; part; part = strchr(part, '/')) {
		part += *part == '/' && part != s;
		if (*part == '/' || *part == '\0' || strcmp(part, "..") == 0 || str_has_prefix(part, "../"))
			return check_failed(why, "a folder inside the repository");
	}
	return check_line(r, s, why);
}

/* ---- URLs ----
 *
 * Vendors write their files, so a vendor's URL must not lead into the operator's network: an address is refused here,
 * and the addresses of a name are checked at each connection. */

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

/* The C library reads "127.1", "0x7f000001" and "2130706433" as addresses; libcurl also with a dot at the end. */
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

/* scheme://host[:port][/…], with only characters that a request line may have. */
static int parse_url(const char *s, struct url *u)
{
	int64_t number = 1;

	*u = (struct url){.is_tls = strncasecmp(s, "https://", 8) == 0, .is_git = strncasecmp(s, "git://", 6) == 0};
	if (!u->is_tls && !u->is_git && strncasecmp(s, "http://", 7) != 0)
		return ERR_INVALID;
	for (const char *c = s; *c; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f || strchr("\"<>\\^`{|}", *c))
			return ERR_INVALID;
	const char *host = strstr(s, "://") + 3;
	const char *end = host + strcspn(host, "/?#");
	if (memchr(host, '@', (size_t)(end - host)))
		return ERR_INVALID;
	const char *port = end;
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

/* The same for http and https only. */
static int parse_http(const char *s, struct url *u) { return parse_url(s, u) || u->is_git ? ERR_INVALID : 0; }

static bool is_private_address(const struct url *u) { return u->is_address && network_is_private(u->address); }

bool check_service_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	struct url u;

	(void)r;
	return (!parse_http(s, &u) && !strchr(s, '#') && (u.is_tls || is_private_address(&u))) ||
	       check_failed(why, "an https URL (plain http only to localhost or a private address)");
}

bool check_public_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	struct url u;

	(void)r;
	return (!parse_http(s, &u) && !strpbrk(s, "?#")) ||
	       check_failed(why, "an https or http URL without query or fragment");
}

bool check_link_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	struct url u;

	(void)r;
	return (!parse_http(s, &u) && u.is_tls) || check_failed(why, "an https URL");
}

/* plain: names the unencrypted protocols, which are for allowed addresses only. */
static bool check_outside(const struct reader *r, const struct url *u, const char *plain, char why[WHY_BYTES])
{
	const struct network_list *nets = r->allowed;
	bool is_allowed = nets && u->is_address && network_contains(nets->items, nets->n, u->address);

	if (is_private_address(u) && !is_allowed)
		return check_failed(why, "the URL of a public host (outgoing.allow_networks does not list this one)");
	if (!u->is_tls && !is_allowed) {
		snprintf(why, WHY_BYTES, "an https URL (%s only to addresses in outgoing.allow_networks)", plain);
		return false;
	}
	return true;
}

bool check_vendor_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	struct url u;

	if (parse_http(s, &u) || strchr(s, '#'))
		return check_failed(why, "an https URL without user name or fragment");
	return check_outside(r, &u, "plain http", why);
}

bool check_source_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	struct url u;

	if (parse_url(s, &u) || strpbrk(s, "?#"))
		return check_failed(why, "an https URL without user name, query or fragment");
	return check_outside(r, &u, "http and git", why);
}

void url_cut_slashes(char *url)
{
	for (size_t n = url ? strlen(url) : 0; n && url[n - 1] == '/'; n--)
		url[n - 1] = '\0';
}

/* ---- outpost-runner's file ---- */

bool check_server_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	static const char requirement[] = "an https URL without query (plain http only to this machine itself)";

	if (!check_service_url(r, s, why) || strchr(s, '?'))
		return check_failed(why, requirement);
	if (!str_has_prefix(s, "http://"))
		return str_has_prefix(s, "https://") || check_failed(why, requirement);
	const char *host = strstr(s, "://") + 3;
	size_t n = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?");
	char *name = xstrndup(host, n);
	bool is_right = str_eq(name, "localhost") || str_eq(name, "[::1]") ||
			(str_has_prefix(name, "127.") && strspn(name, "0123456789.") == n);
	free(name);
	return is_right || check_failed(why, requirement);
}

/* git runs the word before "::" as a program, and reads a leading - as an option. */
bool check_git_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	static const char *const schemes[] = {"https://", "http://", "ssh://", "git://", "file:///", "/", NULL};
	const char *colon = strchr(s, ':'), *at = strchr(s, '@');
	bool is_known = false;

	for (size_t i = 0; schemes[i]; i++)
		is_known = is_known || str_has_prefix(s, schemes[i]);
	/* git@host:path */
	is_known = is_known || (at && colon && at < colon && at > s && !memchr(s, '/', (size_t)(colon - s)));
	return (is_known && *s != '-' && !strstr(s, "::") && !strchr(s, ' ') && check_line(r, s, why)) ||
	       check_failed(why, "an https, ssh, git or file URL, user@host:path, or a folder's absolute path");
}

bool check_proxy_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	static const char *const schemes[] = {"http://", "https://", "socks5://", "socks5h://", NULL};
	const char *authority = NULL;

	for (size_t i = 0; schemes[i]; i++)
		if (str_has_prefix(s, schemes[i]))
			authority = s + strlen(schemes[i]);
	/* HOST or USER:PASSWORD@HOST. git ignores a proxy without a host, and would connect directly. */
	size_t n = authority ? strcspn(authority, "/") : 0;
	const char *at = authority ? memrchr(authority, '@', n) : NULL;
	const char *host = at ? at + 1 : authority;
	return (authority && host < authority + n && *host != ':' && !strpbrk(s, " ?#\\") && check_line(r, s, why)) ||
	       check_failed(why, "a proxy's URL: http, https, socks5 or socks5h://host:port");
}
