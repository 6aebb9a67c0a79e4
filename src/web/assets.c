/* /assets/…: script, style and icon. Each name contains a digest of the bytes, so a browser may cache a file forever and never
 * shows an old one. */
#include "web/assets.h"

#include "http/server.h"
#include "web/page.h"
#include "web/web_internal.h"

enum { MEMBER_BYTES = 64 };

/* The q of "gzip;q=0.5"; -1: the member names another coding. */
static double coding_quality(const char *member, const char *coding)
{
	size_t n = strcspn(member, " \t;");
	const char *q = strchr(member, ';');

	if (n != strlen(coding) || strncasecmp(member, coding, n) != 0)
		return -1;
	if (q)
		q += 1 + strspn(q + 1, " \t");
	return q && strncasecmp(q, "q=", 2) == 0 ? strtod(q + 2, NULL) : 1;
}

bool accepts_gzip(const char *header)
{
	char member[MEMBER_BYTES];
	double any = 0, gzip = -1;

	while (header && *header) {
		header += strspn(header, " \t,");
		size_t n = strcspn(header, ",");
		snprintf(member, sizeof(member), "%.*s", (int)(n < 60 ? n : 60), header);
		header += n;
		double q = coding_quality(member, "*");
		any = q >= 0 ? q : any;
		q = coding_quality(member, "gzip");
		gzip = q >= 0 ? q : gzip;
	}
	return (gzip >= 0 ? gzip : any) > 0;
}

void web_on_asset(struct http_request *r, void *owner)
{
	bool is_gzip = accepts_gzip(http_header(r, "Accept-Encoding"));
	const struct web_asset *a = NULL;
	char etag[ETAG_BYTES];

	(void)owner;
	for (size_t i = 0; i < N_WEB_ASSETS && !a; i++)
		if (str_eq(WEB_ASSETS[i].path, http_path(r)))
			a = &WEB_ASSETS[i];
	if (!a) {
		http_respond_json1(r, 404, "error", "no such path");
		return;
	}
	etag_of(a->path, strlen(a->path), etag); /* the path contains a digest of the bytes */
	if (is_gzip)
		memcpy(etag + strlen(etag) - 1, "z\"", 3); /* another representation */
	const struct http_header_line h[] = {{"Cache-Control", "public, max-age=31536000, immutable"},
	    {"Vary", "Accept-Encoding"}, {"ETag", etag}, {is_gzip ? "Content-Encoding" : NULL, "gzip"}, {NULL, NULL}};
	if (etag_is_named(http_header(r, "If-None-Match"), etag)) {
		http_respond(r, 304, NULL, h, "", 0);
		return;
	}
	struct http_shared *body =
	    http_shared_borrow((const char *)(is_gzip ? a->gzipped : a->bytes), is_gzip ? a->n_gzipped : a->n_bytes);
	http_respond_shared(r, 200, a->content_type, h, body);
	http_shared_unref(body);
}
