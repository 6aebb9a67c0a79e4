/* One answer in the two forms that people may ask for: JSON, or a page that carries it. For web/
 * only; handlers call the web_respond…() of web_internal.h. */
#ifndef WEB_ANSWER_H
#define WEB_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/server.h"
#include "web/etag.h"

/* What the request wants, so that the answer can be written down without it. */
struct web_form {
	bool is_page;
	/* page only; owned, but for the first */
	const char *title;
	char *id; /* what the title names */
	char *api, *base, *upstream;
	int64_t now_ms;
};
/* Thread: loop. r came by a route whose owner is the struct web. */
void web_form_take(struct web_form *f, const struct http_request *r);
void web_form_release(struct web_form *f);

struct web_text {
	char *bytes; /* owned */
	size_t n;
	char etag[ETAG_BYTES];
};
/* Thread: any. Takes the JSON text `json` (free()). */
void web_text_write(struct web_text *t, const struct web_form *f, int status, char *json);
/* Thread: loop. Answers r and all that wait for the same (gate.h), each with 304 where it has it
 * already; retry_after_s 0: no such header. Releases t. */
void web_text_send(struct web_text *t, const struct web_form *f, struct http_request *r, int status,
    int retry_after_s);

#endif
