/* The bodies that dispatches carry, parsed once per change however many targets it has: a
 * few recent ones are kept, and those who wait for the same one share one look-up.
 *
 * Thread: loop. */
#ifndef DISPATCH_PAYLOADS_H
#define DISPATCH_PAYLOADS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "db/store.h"
#include "model/client_payload.h"

struct payloads;
struct payload;

struct payloads *payloads_new(struct store *s);
/* Nobody waits or holds any more. NULL is fine. */
void payloads_free(struct payloads *ps);

/* One wish for a body. The caller owns it and its texts until it has an outcome. */
struct payload_want {
	/* in */
	const char *guid, *event_type, *sent_action;
	void (*done)(struct payload_want *w);
	/* out */
	int err; /* ERR_NOT_FOUND: no such body (any more); ERR_INVALID: it is no JSON object */
	struct error why;
	struct payload *payload; /* payload_release() it */
	/* its own */
	struct payload_want *next;
};
/* True: the outcome is there and done will not run. False: done runs later, once. */
bool payloads_get(struct payloads *ps, struct payload_want *w) MUST_CHECK;

struct client_payload *payload_content(struct payload *p);
size_t payload_body_bytes(const struct payload *p); /* of what GitHub sent */
void payload_release(struct payload *p);

#endif
