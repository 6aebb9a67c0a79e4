/* HTTP client: libcurl's multi interface on the loop. It uses HTTP/2 if the server supports it and keeps connections
 * open. It follows no redirect, keeps no cookie, and uses a proxy only if the environment names one.
 *
 * Thread: loop. */
#pragma once

#include "loop/loop.h"

struct http_client;

#define HTTP_CLIENT_CONNECTIONS_PER_HOST 64

/* Certificates are always verified: against the file $CURL_CA_BUNDLE or $SSL_CERT_FILE and the folder $SSL_CERT_DIR if
 * at least one of them is set, else against the system's. Owns: the caller, with http_client_close(). */
struct http_client *http_client_new(struct loop *l, const char *user_agent);
/* Certificates are verified only against this PEM file. */
void http_client_use_ca(struct http_client *c, const char *ca_file);
/* The most connections to one host at a time, 0: no limit. Further calls wait. */
void http_client_limit(struct http_client *c, int connections_per_host);
/* A connection breaks when the peer's kernel has not confirmed sent bytes for so long, so no part of a request arrives later. Of
 * connections that are opened from now on; 0: the kernel's time, many minutes. */
void http_client_confirm_within(struct http_client *c, int ms);
/* Ends every call with ERR_CANCELLED (each done runs inside this call). Then it frees the client and runs on_closed
 * once, later. No call may be started after it. */
void http_client_close(struct http_client *c, void (*on_closed)(void *owner), void *owner);

/* Decides whether an address may be connected to; see struct http_call.allow_address.
 * `address` is 16 bytes, IPv4 mapped. Runs inside libcurl: it starts and cancels no call. */
typedef bool http_allow_address_fn(const uint8_t address[16], void *owner);

/* Signs a request for S3 and services like it (AWS Signature Version 4). The signature covers each header of the call, of
 * which x-amz-content-sha256 is required, and the path and the query as the URL has them: write both in the canonical
 * form, with only unreserved characters in the path. */
struct http_signing {
	const char *region;
	const struct secret *access_key, *secret_key;
};

/* One exchange. The caller zero-initialises it, fills the first half and owns it; the client uses it between
 * http_call_start() and done(). Strings are copied at start. A POST or a PATCH is sent at most once; another method may
 * be sent again if a reused connection turns out to be closed. */
struct http_call {
	/* in */
	const char *method;
	const char *url;
	const char *const *headers; /* "Name: value", NULL-terminated; may be NULL */
	const char *body;           /* borrowed until done; NULL: none */
	size_t body_bytes;
	const struct http_file *file;       /* the body instead; only for a puller, because reading a file blocks */
	const struct http_signing *signing; /* NULL: none */
	const char *unix_socket_path;       /* NULL: TCP */
	size_t max_answer_bytes;            /* 0: 8 MiB; more: ERR_TOO_BIG; headers: 64 KiB */
	/* 0: 30 s. An exchange with less than 100 bytes a second for 45 s ends earlier. */
	int64_t total_timeout_ms;
	/* Runs with each address before a connection to it is opened (after name look-up, so that the name cannot
	 * point elsewhere in between), and before a request goes out on a reused connection. A refusal is ERR_DENIED.
	 * NULL: all addresses are allowed. With a check, proxy variables are ignored. */
	http_allow_address_fn *allow_address;
	void *allow_owner;
	bool allow_plain_http; /* false: https only, or http where allow_address is NULL */
	/* Runs when the connection is there, right before the request goes out on it. False: ERR_CANCELLED, and nothing is sent.
	 * It starts and cancels no call. NULL: the request goes out. */
	bool (*may_go_out)(const void *owner);
	const void *going_owner;
	/* Runs once, on the loop, never inside http_call_start(). It may free the call, after http_call_release(). */
	void (*done)(struct http_call *call);

	/* out */
	int err;    /* 0: an answer of any status; else ERR_NETWORK, … */
	int status; /* 0: no answer; set with ERR_TOO_BIG if the body was too long */
	struct buf answer;
	struct buf answer_headers; /* raw lines; see http_call_header() */
	struct error why;          /* for err != 0: "could not connect to …" */
	bool was_sent;             /* the request may have reached the server */
	void *internal;
};

void http_call_start(struct http_client *c, struct http_call *call);
/* Ends the call: done runs later in this turn with ERR_CANCELLED. */
void http_call_cancel(struct http_client *c, struct http_call *call);
/* Copies the last header of that name into out; false: absent or too long. */
bool http_call_header(const struct http_call *call, const char *name, char *out, size_t n);
/* Frees the contents of the out fields. */
void http_call_release(struct http_call *call);
/* ---- for a thread that may wait: client_pull.c ----
 *
 * The caller, for example a thread of the pool, reads the answer piece by piece, so a long answer is never in memory as a
 * whole.
 *
 * Thread: any, but all calls for one puller come from one thread. */

/* Keeps its connections open from one exchange to the next. */
struct http_puller;

struct http_puller *http_puller_new(const char *user_agent);
/* Closes its connections. NULL: does nothing. */
void http_puller_free(struct http_puller *p);

/* The first `bytes` bytes of a file. */
struct http_file {
	int fd;
	int64_t bytes;
};

/* Sends `call` and waits until its answer begins. A puller has one call at a time; it borrows the call until
 * http_pull_end(). Of the call's fields, max_answer_bytes and done are not used. cancel_fd becomes readable when the
 * exchange is no longer needed; -1: never. Returns 0: call->status and call->answer_headers are set. Else call->err: as
 * for http_call_start(), ERR_CANCELLED also for cancel_fd. */
int http_pull_start(struct http_puller *p, struct http_call *call, int cancel_fd) MUST_CHECK;
/* Waits for the next bytes of the body: at most `size` of them, *ret_n = 0 at its end. Returns 0 or call->err. */
int http_pull_read(struct http_puller *p, void *to, size_t size, size_t *ret_n) MUST_CHECK;
/* Ends the exchange, finished or not. The call is the caller's again: http_call_release(). */
void http_pull_end(struct http_puller *p);

/* For programs without a loop: runs the call as http_call_start() would, but does not run done. ca_file: NULL, or as
 * http_client_use_ca(). Returns call->err. */
int http_call_blocking(struct http_call *call, const char *user_agent, const char *ca_file) MUST_CHECK;
