/* A body that many answers send: one block of memory, however many clients are slow to take it.
 *
 * The memory of all that clients have not taken is bounded (max_total_unsent_bytes), and so is one
 * client's part of it; a body counts for the first client that it is sent to.
 *
 * Thread: loop, every function. */
#ifndef HTTP_SHARED_H
#define HTTP_SHARED_H

#include <stddef.h>

struct http_header_line;
struct http_request;
struct http_shared;

/* Takes `bytes` (free()). The caller has the first reference. */
struct http_shared *http_shared_new(char *bytes, size_t n);
/* Of bytes that live for ever; they are on nobody's account. */
struct http_shared *http_shared_borrow(const char *bytes, size_t n);
struct http_shared *http_shared_ref(struct http_shared *b);
void http_shared_unref(struct http_shared *b); /* NULL is fine */

/* As http_respond(), with references of the body instead of a copy of it: they go back when the
 * client has taken it or is gone. A longer body is answered 503 instead where the memory for
 * answers is full, or this client's part of it. Nothing of a longer body is written inside the
 * call, so that a thousand answers at once do not hold up the loop. */
void http_respond_shared(struct http_request *r, int status, const char *content_type,
    const struct http_header_line *headers, struct http_shared *body);

#endif
