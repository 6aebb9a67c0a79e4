/* The HTML frame around a JSON answer, from which the page's script paints without a second request, and the entity tags of both.
 * Pure. Thread: any.
 *
 * Everything that vendors wrote comes through here: no text may end the element that contains it. */
#pragma once

enum { PAGE_BODY_MAX_BYTES = 1 << 20 }; /* the script requests longer answers */

/* Everything is borrowed. */
struct page {
	const char *title;    /* plain text */
	const char *api;      /* the path and query of the same answer as JSON; may be NULL */
	int status;           /* of the answer */
	const char *etag;     /* the API's; may be NULL */
	int64_t now_ms;       /* ages are counted from it */
	const char *base;     /* public_url without a slash at its end; NULL: not configured yet */
	const char *upstream; /* owner/repo; NULL: not configured yet */
	const char *body;     /* the answer, a JSON text */
	size_t body_bytes;
};
/* Appends the page. */
void page_write(struct buf *out, const struct page *p);

#define ETAG_BYTES 40

/* Writes a strong entity tag (RFC 9110 section 8.8.3) of these bytes, with its quotes, into out (ETAG_BYTES). */
void etag_of(const void *p, size_t n, char *out);
/* True if the If-None-Match header names `etag`, by weak comparison as in section 13.1.2. header may be NULL. Everything after a
 * syntax error is ignored. */
bool etag_is_named(const char *header, const char *etag);
