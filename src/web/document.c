#include "web/document.h"

#include "http/shared.h"
#include "web/gate.h"

enum { RETRY_AFTER_S = 1 };

struct answer {
	const struct web_document *d;
	const char *etag;
	struct http_shared *body;
};

static void send_one(struct http_request *r, void *p)
{
	const struct answer *a = p;
	const struct web_document *d = a->d;
	struct http_header_line headers[6];
	int n = 0;

	headers[n++] = (struct http_header_line){"Access-Control-Allow-Origin", "*"};
	/* Should a browser show it by itself, it loads and runs nothing. */
	headers[n++] = (struct http_header_line){"Content-Security-Policy", "default-src 'none'"};
	headers[n++] = (struct http_header_line){"Cache-Control", d->cache};
	headers[n++] = (struct http_header_line){"ETag", a->etag};
	if (d->disposition)
		headers[n++] = (struct http_header_line){"Content-Disposition", d->disposition};
	headers[n] = (struct http_header_line){NULL, NULL};
	if (d->status == 200 && etag_is_named(http_header(r, "If-None-Match"), a->etag))
		http_respond(r, 304, NULL, headers, NULL, 0);
	else
		http_respond_shared(r, d->status, d->type, headers, a->body);
}

void web_document_send(struct http_request *r, const struct web_document *d)
{
	char made[ETAG_BYTES];
	struct answer a = {.d = d, .etag = d->etag};

	if (!a.etag) {
		etag_of(d->body, d->n, made);
		a.etag = made;
	}
	a.body = http_shared_new(d->body, d->n);
	web_gate_answer(r, send_one, &a);
	http_shared_unref(a.body);
}

static void send_busy(struct http_request *r, void *p)
{
	(void)p;
	http_respond_busy(r, RETRY_AFTER_S);
}

void web_document_busy(struct http_request *r)
{
	web_gate_answer(r, send_busy, NULL);
}
