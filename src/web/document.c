#include "web/document.h"

void web_document_send(struct http_request *r, const struct web_document *d)
{
	struct http_header_line headers[6];
	char made[ETAG_BYTES];
	const char *etag = d->etag;
	int n = 0;

	if (!etag) {
		etag_of(d->body, d->n, made);
		etag = made;
	}
	headers[n++] = (struct http_header_line){"Access-Control-Allow-Origin", "*"};
	/* Should a browser show it by itself, it loads and runs nothing. */
	headers[n++] = (struct http_header_line){"Content-Security-Policy", "default-src 'none'"};
	headers[n++] = (struct http_header_line){"Cache-Control", d->cache};
	headers[n++] = (struct http_header_line){"ETag", etag};
	if (d->disposition)
		headers[n++] = (struct http_header_line){"Content-Disposition", d->disposition};
	headers[n] = (struct http_header_line){NULL, NULL};
	if (d->status == 200 && etag_is_named(http_header(r, "If-None-Match"), etag))
		http_respond(r, 304, NULL, headers, NULL, 0);
	else
		http_respond(r, d->status, d->type, headers, d->body, d->n);
}
