/* Vendors' tokens at the door: the answers to a request whose token is not good, in one place
 * for every route that takes one.
 *
 * A route that collects a body asks twice: when the headers are there, so that a request without
 * a good token is answered before its body takes memory, and when the body is there, because the
 * token may have been revoked meanwhile. */
#ifndef RUNNERS_ADMISSION_H
#define RUNNERS_ADMISSION_H

#include "http/server.h"
#include "runners/credentials.h"
#include "runners/runners_internal.h"

/* The configuration is there and nothing is being closed; else answers 503. */
bool admit_open(struct runners *r, struct http_request *q);
/* Whom `token` (credential_is_shaped() or not) stands for. False: answered, with 401 (unknown,
 * revoked), 429 (too many wrong ones from this address), 403 (its accelerator has left the
 * registry) or 503 (not read yet). Call admit_open() first. */
bool admit_token(
    struct runners *r, struct http_request *q, const char *token, struct credential *ret);
/* The bearer token, whatever it is; NULL: answered, with 503 (closing, or not configured) or 401
 * (there is none). */
const char *admit_bearer(struct runners *r, struct http_request *q);

/* For what only a machine may ask: both of the above for the request's bearer token, which must
 * be a runner's (an API token: 403). */
bool admit_runner(struct runners *r, struct http_request *q, struct credential *ret);

#endif
