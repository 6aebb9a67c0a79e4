/* HTTP exchanges for a thread that may wait, such as a thread of the pool: the caller reads the
 * answer piece by piece, so a long answer is never in memory as a whole. The rules of client.h
 * hold: no redirect is followed, certificates are verified, no cookie is kept.
 *
 * Thread: any, but all calls for one puller come from one thread. */
#ifndef HTTP_CLIENT_PULL_H
#define HTTP_CLIENT_PULL_H

#include "http/client.h"

/* Keeps its connections open from one exchange to the next. */
struct http_puller;

struct http_puller *http_puller_new(const char *user_agent);
/* Closes its connections. NULL: does nothing. */
void http_puller_free(struct http_puller *p);

/* Sends `call` and waits until its answer begins. A puller has one call at a time; it borrows the
 * call until http_pull_end(). Of the call's fields, max_answer_bytes and done are not used.
 * cancel_fd becomes readable when the exchange is no longer wanted; -1: never.
 * Returns 0: call->status and call->answer_headers are set. Else call->err: as for http_call_start(),
 * ERR_CANCELLED also for cancel_fd. */
int http_pull_start(struct http_puller *p, struct http_call *call, int cancel_fd) MUST_CHECK;
/* Waits for the next bytes of the body: at most `size` of them, *ret_n = 0 at its end.
 * Returns 0 or call->err. */
int http_pull_read(struct http_puller *p, void *to, size_t size, size_t *ret_n) MUST_CHECK;
/* Ends the exchange, finished or not. The call is the caller's again: http_call_release(). */
void http_pull_end(struct http_puller *p);

#endif
