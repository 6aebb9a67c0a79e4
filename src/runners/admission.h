/* Vendors' tokens at the door: the answers to a request whose token is not good, in one place
 * for every route that takes one. */
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

/* For what only a machine may ask: both of the above for the request's bearer token, which must
 * be a runner's (an API token: 403). */
bool admit_runner(struct runners *r, struct http_request *q, struct credential *ret);

#endif
