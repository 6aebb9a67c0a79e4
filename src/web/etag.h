/* Entity tags (RFC 9110 section 8.8.3) of what we send, and what If-None-Match says of them. Pure. */
#ifndef WEB_ETAG_H
#define WEB_ETAG_H

#include <stdbool.h>
#include <stddef.h>

#define ETAG_BYTES 40

/* A strong one, with its quotes, of these bytes: into out (ETAG_BYTES). */
void etag_of(const void *p, size_t n, char *out);
/* Does the If-None-Match header name `etag`, compared weakly as section 13.1.2 wants it? header
 * may be NULL. What is malformed names nothing from there on. */
bool etag_is_named(const char *header, const char *etag);

#endif
