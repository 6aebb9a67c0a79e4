/* An answer that is neither JSON nor a page: a report document, a badge, the feed. Readable from any
 * site, and 304 for those who have it. For web/ only. */
#ifndef WEB_DOCUMENT_H
#define WEB_DOCUMENT_H

#include <stddef.h>

#include "http/server.h"
#include "web/etag.h"

struct web_document {
	int status;
	const char *type;        /* Content-Type */
	const char *cache;       /* Cache-Control */
	const char *disposition; /* Content-Disposition; NULL: none */
	char *body;              /* free(): web_document_send() takes it */
	size_t n;
	const char *etag; /* of the body; NULL: it is made here, for what is short */
};
/* Thread: loop. Copies everything else. Answers all that wait for r's answer (gate.h). */
void web_document_send(struct http_request *r, const struct web_document *d);

/* 503 with Retry-After, as JSON, to all of them. */
void web_document_busy(struct http_request *r);

#endif
