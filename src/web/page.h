/* The HTML frame around a JSON answer: the page's script finds the answer in it and paints without
 * a second request. Pure.
 *
 * Whatever vendors wrote comes through here: nothing in it may end the element that it is in. */
#ifndef WEB_PAGE_H
#define WEB_PAGE_H

#include <stdint.h>

#include "base/buf.h"

enum { PAGE_BODY_MAX_BYTES = 1 << 20 }; /* longer answers are asked for by the script */

struct page {
	const char *title; /* plain text */
	const char *api;   /* the path and query that give the same as JSON; NULL: there is none */
	int status;        /* of the answer */
	const char *etag;  /* the API's, NULL: none */
	int64_t now_ms;    /* ages are counted from it */
	const char *base;  /* public_url without a slash at its end; NULL: not configured yet */
	const char *upstream; /* owner/repo; NULL too */
	const char *body;     /* the answer, a JSON text */
	size_t body_bytes;
};
/* Appends the page. */
void page_write(struct buf *out, const struct page *p);

#endif
