/* Lists that come in pages: the Link header (RFC 8288), and text inside a path. */
#include <strings.h>

#include "base/alloc.h"
#include "github/github_internal.h"

bool pages_next_url(const struct request *r, char *out, size_t n)
{
	char link[4096];
	const char *at = link, *end;

	if (!http_call_header(&r->http, "Link", link, sizeof(link)))
		return false;
	/* <URL>; rel="next", <URL>; rel="last" */
	while ((at = strchr(at, '<')) && (end = strchr(at, '>'))) {
		const char *next = strchr(end, '<');
		const char *rel = strcasestr(end, "rel=\"next\"");
		size_t len = (size_t)(end - at - 1);

		if (rel && (!next || rel < next)) {
			if (len >= n)
				return false;
			memcpy(out, at + 1, len);
			out[len] = '\0';
			return true;
		}
		at = end;
	}
	return false;
}

char *pages_encode(const char *s)
{
	static const char safe[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	struct buf out = BUF_INIT(4096);

	for (; *s; s++) {
		if (strchr(safe, *s))
			buf_append_char(&out, *s);
		else
			buf_appendf(&out, "%%%02X", (unsigned)(unsigned char)*s);
	}
	return out.data ? buf_take(&out) : xstrdup("");
}
