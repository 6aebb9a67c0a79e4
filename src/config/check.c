#include "config/check.h"

#include <ctype.h>

#include "base/alloc.h"
#include "base/str.h"
#include "model/cron.h"
#include "model/trigger.h"

/* A message's phrase; the check that calls it has failed. */
static bool no(char why[WHY_BYTES], const char *what)
{
	snprintf(why, WHY_BYTES, "%s", what);
	return false;
}

/* C1 controls, line and paragraph separators and the marks that turn the reading
 * direction would let a title rewrite what stands around it. */
static bool has_hidden(const char *s)
{
	for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
		if (*p < 0x20 || *p == 0x7f || (p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f))
			return true;
		if (p[0] == 0xe2 && p[1] == 0x80 &&
		    ((p[2] >= 0xa8 && p[2] <= 0xae) || p[2] == 0x8e || p[2] == 0x8f))
			return true;
		if (p[0] == 0xe2 && p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9)
			return true;
	}
	return false;
}

bool check_line(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	(void)r;
	return !has_hidden(s) || no(why, "one line without control characters");
}

bool check_text(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	char *copy = xstrdup(s);
	bool is_right;

	(void)r;
	for (char *c = copy; *c; c++)
		if (*c == '\n' || *c == '\t')
			*c = ' ';
	is_right = !has_hidden(copy);
	free(copy);
	return is_right || no(why, "text without control characters");
}

bool check_name(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	size_t n = strlen(s);

	(void)r;
	if (n == 0 || strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") != n || s[0] == '-' ||
	    s[n - 1] == '-')
		return no(why, "letters a-z, digits and - between them");
	return true;
}

bool check_repository(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	(void)r;
	return is_repository_name(s) || no(why, "owner/name");
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
	if (n == 0 || n > 39 || s[n] != '\0' || s[0] == '-')
		return no(why, "a GitHub login");
	return true;
}

bool check_branch(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	(void)r;
	for (const char *c = s; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f || strchr("~^:?*[\\", *c))
			return no(why, "a branch's name");
	if (*s == '\0' || *s == '/' || *s == '-' || strstr(s, "..") || strstr(s, "//") ||
	    strstr(s, "@{") || str_has_suffix(s, "/") || str_has_suffix(s, ".") ||
	    str_has_suffix(s, ".lock") || str_has_prefix(s, "refs/"))
		return no(why, "a branch's name");
	return true;
}

bool check_glob(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	if (!glob_is_valid(s) || !check_line(r, s, why))
		return no(why, "a path pattern such as \"aten/**\"");
	return true;
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

	if (!slash || slash == s || slash[1] == '\0' || !check_line(r, s, why))
		return no(why, "SUITE/TEST");
	return true;
}

bool check_suite(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	if (strchr(s, '/') || !check_line(r, s, why))
		return no(why, "a suite's name");
	return true;
}

bool check_store(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	(void)r;
	return str_eq(s, "sqlite") || no(why, "sqlite");
}

bool check_pipeline(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	const char *slash = strchr(s, '/');

	if (!slash || slash == s || slash[1] == '\0' || strchr(slash + 1, '/') ||
	    !check_line(r, s, why))
		return no(why, "ORGANIZATION_ID/PIPELINE_ID");
	return true;
}

bool check_secret_name(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	(void)r;
	for (const char *c = s; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			return no(why, "the name of a file below secrets/ACCELERATOR/");
	if (*s == '\0' || *s == '.')
		return no(why, "the name of a file below secrets/ACCELERATOR/");
	return true;
}

bool check_workflow(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	static const char folder[] = ".github/workflows/";
	const char *name = s + sizeof(folder) - 1;

	if (!str_has_prefix(s, folder) || *name == '.' || strchr(name, '/') ||
	    !check_line(r, s, why) ||
	    (!str_has_suffix(name, ".yml") && !str_has_suffix(name, ".yaml")))
		return no(why, ".github/workflows/NAME.yml");
	return true;
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
	if (!colon || !is_listen_host(s, (size_t)(colon - s)) ||
	    !isdigit((unsigned char)colon[1]) || parse_int64(colon + 1, &port) || port > 65535)
		return no(why, "host:port, as 127.0.0.1:8080 or [::1]:8080");
	return true;
}

bool check_relative_path(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	for (const char *part = s; part; part = strchr(part, '/')) {
		part += *part == '/' && part != s;
		if (*part == '/' || *part == '\0' || strcmp(part, "..") == 0 ||
		    str_has_prefix(part, "../"))
			return no(why, "a folder inside the repository");
	}
	return check_line(r, s, why);
}
