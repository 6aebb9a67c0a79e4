/* A submodule's URL, as the author of a change writes it: if it is accepted, libcurl, which git uses to fetch, must
 * find the same host and port in it. */

#include <curl/curl.h>

#include "steps/git.h"

static void same_as_curl(const char *text, const struct git_url *u)
{
	CURLU *url = curl_url();
	char *host = NULL, *port = NULL, *user = NULL, *bare;
	int64_t number = 0;
	size_t n;

	/* git does not fetch a URL that curl refuses */
	if (!curl_url_set(url, CURLUPART_URL, text, 0)) {
		if (curl_url_get(url, CURLUPART_HOST, &host, 0) ||
		    curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) ||
		    !curl_url_get(url, CURLUPART_USER, &user, 0) || parse_int64(port, &number) || number != u->port)
			abort();
		n = strlen(host);
		bare = *host == '[' ? xstrndup(host + 1, n - 2) : xstrdup(host);
		/* curl writes an IPv6 address in its shortest form; here only names can differ */
		if (strcasecmp(bare, u->host) != 0 && !(u->is_address && strchr(bare, ':')))
			abort();
		free(bare);
	}
	curl_free(host);
	curl_free(port);
	curl_free(user);
	curl_url_cleanup(url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xstrndup((const char *)data, size), *line = strchr(text, '\n'), *url;
	struct git_url u;

	/* "WRITTEN" or "WRITTEN\nPARENT" */
	if (line)
		*line++ = '\0';
	url = git_url_resolve(line ? line : "https://h.example/o/r.git", text);
	if (url && git_url_parse(url, &u) == 0) {
		if (u.port < 1 || u.port > 65535 || !*u.host || strpbrk(u.host, "@/?#\\ %"))
			abort();
		same_as_curl(url, &u);
	}
	free(url);
	free(text);
	return 0;
}
