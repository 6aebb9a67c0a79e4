/* What the values in outpost-runner's file must look like, beyond what check.h knows. */
#include <ctype.h>

#include "base/alloc.h"
#include "base/str.h"
#include "config/runner_file.h"

static bool no(char why[WHY_BYTES], const char *what)
{
	snprintf(why, WHY_BYTES, "%s", what);
	return false;
}

bool check_machine_name(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	(void)r;
	for (const char *c = s; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-._", *c))
			return no(why, "letters, digits, -, . and _");
	return true;
}

/* The host of a URL that check_service_url() has passed. */
static bool is_loopback(const char *url)
{
	const char *host = strstr(url, "://") + 3;
	size_t n = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?");
	char *name = xstrndup(host, n);
	bool is_near = str_eq(name, "localhost") || str_eq(name, "[::1]") ||
		       (str_has_prefix(name, "127.") && strspn(name, "0123456789.") == n);

	free(name);
	return is_near;
}

bool check_server_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	bool is_plain = str_has_prefix(s, "http://");

	if (!check_service_url(r, s, why) || strchr(s, '?') || (is_plain && !is_loopback(s)) ||
	    (!is_plain && !str_has_prefix(s, "https://")))
		return no(
		    why, "an https URL without query (plain http only to this machine itself)");
	return true;
}

/* git runs what stands before "::" as a program, and takes a leading - for an option. */
bool check_git_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	static const char *const schemes[] = {
	    "https://", "http://", "ssh://", "git://", "file:///", "/", NULL};
	const char *colon = strchr(s, ':'), *at = strchr(s, '@');
	char ignored[WHY_BYTES];
	bool is_known = false;

	for (size_t i = 0; schemes[i]; i++)
		is_known = is_known || str_has_prefix(s, schemes[i]);
	/* git@host:path */
	is_known = is_known ||
		   (at && colon && at < colon && at > s && !memchr(s, '/', (size_t)(colon - s)));
	if (!is_known || *s == '-' || strstr(s, "::") || strchr(s, ' ') ||
	    !check_line(r, s, ignored))
		return no(why,
		    "an https, ssh, git or file URL, user@host:path, or a folder's absolute path");
	return true;
}

/* HOST or USER:PASSWORD@HOST, then what follows. git takes a proxy without a host for none and
 * connects by itself. */
static bool has_proxy_host(const char *authority)
{
	size_t n = strcspn(authority, "/");
	const char *at = memrchr(authority, '@', n);
	const char *host = at ? at + 1 : authority;

	return host < authority + n && *host != ':';
}

bool check_proxy_url(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	static const char *const schemes[] = {
	    "http://", "https://", "socks5://", "socks5h://", NULL};
	char ignored[WHY_BYTES];
	const char *authority = NULL;

	for (size_t i = 0; schemes[i]; i++)
		if (str_has_prefix(s, schemes[i]))
			authority = s + strlen(schemes[i]);
	if (!authority || !has_proxy_host(authority) || strpbrk(s, " ?#\\") ||
	    !check_line(r, s, ignored))
		return no(why, "a proxy's URL: http, https, socks5 or socks5h://host:port");
	return true;
}

static bool has_parent_part(const char *s)
{
	for (; s; s = strchr(s, '/') ? strchr(s, '/') + 1 : NULL)
		if (str_has_prefix(s, "..") && (s[2] == '/' || s[2] == '\0'))
			return true;
	return false;
}

bool check_absolute_path(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	char ignored[WHY_BYTES];

	if (*s != '/' || has_parent_part(s) || !check_line(r, s, ignored))
		return no(why, "an absolute path without ..");
	return true;
}

bool check_report_glob(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	char ignored[WHY_BYTES];

	if (*s == '/' || has_parent_part(s) || !check_line(r, s, ignored))
		return no(why, "a path or glob relative to the job's work folder, without ..");
	return true;
}

bool check_script(const struct reader *r, const char *s, char why[WHY_BYTES])
{
	(void)r;
	for (const char *c = s; *c; c++)
		if (((unsigned char)*c < 0x20 && !strchr("\n\t", *c)) || *c == 0x7f)
			return no(why, "text without control characters");
	return true;
}

static const struct {
	const char *unit;
	int64_t bytes;
} SIZE_UNITS[] = {{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};

static int size_parse(const char *s, int64_t *ret)
{
	size_t digits = strspn(s, "0123456789");
	char number[16];
	int64_t n;

	if (digits == 0 || digits > 9)
		return ERR_INVALID;
	snprintf(number, sizeof(number), "%.*s", (int)digits, s);
	if (parse_int64(number, &n))
		return ERR_INVALID;
	for (size_t i = 0; i < ARRAY_LEN(SIZE_UNITS); i++)
		if (str_eq(s + digits, SIZE_UNITS[i].unit)) {
			*ret = n * SIZE_UNITS[i].bytes;
			return 0;
		}
	return ERR_INVALID;
}

/* The largest unit that writes it without a fraction. */
static void size_format(int64_t bytes, char *out, size_t n)
{
	size_t i = ARRAY_LEN(SIZE_UNITS) - 1;

	while (i > 0 && bytes % SIZE_UNITS[i].bytes != 0)
		i--;
	snprintf(out, n, "%lld%s", (long long)(bytes / SIZE_UNITS[i].bytes), SIZE_UNITS[i].unit);
}

void field_size(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	char least[32], most[32], what[WHY_BYTES];
	int64_t bytes;

	if (v->kind == NODE_SCALAR && size_parse(v->text, &bytes) == 0 && bytes >= f->min &&
	    bytes <= f->max) {
		*(int64_t *)target = bytes;
		return;
	}
	size_format(f->min, least, sizeof(least));
	size_format(f->max, most, sizeof(most));
	snprintf(what, sizeof(what), "a size from %s to %s (64KiB, 64MiB, 1GiB)", least, most);
	refuse_kind(r, f, v, what);
}
