/* HTTP client: libcurl multi driven by the loop, HTTP/2 where the server has it,
 * connections reused. No redirect is followed, no cookie kept, nothing proxied but by the
 * environment's proxy variables.
 *
 * Thread: loop. */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "loop/loop.h"

struct http_client;

#define HTTP_CLIENT_CONNECTIONS_PER_HOST 64

/* Certificates are always verified: against the file $CURL_CA_BUNDLE or $SSL_CERT_FILE and the folder
 * $SSL_CERT_DIR if at least one of them is set, else against the system's. */
struct http_client *http_client_new(struct loop *l, const char *user_agent);
/* Certificates are verified against this PEM file alone. */
void http_client_use_ca(struct http_client *c, const char *ca_file);
/* Connections to one host at a time, 0: no limit. Calls above it wait their turn. */
void http_client_limit(struct http_client *c, int connections_per_host);
/* Ends every transfer with ERR_CANCELLED (their done run now), then closes. Asynchronous.
 * No call may be started after it. */
void http_client_close(struct http_client *c, void (*on_closed)(void *owner), void *owner);

/* Decides whether an address may be connected to; see struct http_call.allow_address.
 * `address` is 16 bytes, IPv4 mapped. Runs inside libcurl: it starts and cancels no call. */
typedef bool http_allow_address_fn(const uint8_t address[16], void *owner);

/* One exchange. The caller zero-initialises it, fills the first half and owns it; between
 * http_call_start() and done() the client uses it. Strings are copied at start. A POST or a
 * PATCH goes out once at most; another method perhaps again, where a connection that had served
 * before turns out to be closed. */
struct http_call {
	/* in */
	const char *method;
	const char *url;
	const char *const *headers; /* "Name: value", NULL-terminated; may be NULL */
	const char *body;           /* borrowed until done; NULL: none */
	size_t body_bytes;
	const char *unix_socket_path; /* NULL: TCP */
	size_t max_answer_bytes;      /* 0: 8 MiB; more: ERR_TOO_BIG; headers: 64 KiB */
	int64_t connect_timeout_ms;   /* 0: 10 s */
	/* 0: 30 s. Under 100 bytes a second for 45 s ends a longer one before it. */
	int64_t total_timeout_ms;
	/* Called with each address before a connection to it is opened, after name
	 * look-up, so that a name cannot be pointed elsewhere in between, and again before
	 * a request goes out on a connection that is reused. A refusal is ERR_DENIED.
	 * NULL: all. With a check in place proxy variables are ignored. */
	http_allow_address_fn *allow_address;
	void *allow_owner;
	bool allow_plain_http; /* false: https only, or http where allow_address is NULL */
	/* Runs once, on the loop, never inside http_call_start(). The call is the caller's
	 * again and may be freed in it (after http_call_release()). */
	void (*done)(struct http_call *call);

	/* out */
	int err;    /* 0: an answer came, whatever its status; else ERR_NETWORK, … */
	int status; /* 0 without an answer; with ERR_TOO_BIG that of a body that is too long */
	struct buf answer;
	struct buf answer_headers; /* raw lines; see http_call_header() */
	struct error why;          /* for err != 0: "could not connect to …" */
	bool was_sent;             /* the request may have reached the server */
	void *internal;
};

void http_call_start(struct http_client *c, struct http_call *call);
/* Ends it early: done runs later in this turn with ERR_CANCELLED. */
void http_call_cancel(struct http_client *c, struct http_call *call);
/* The last header of that name into out; false when absent or too long. */
bool http_call_header(const struct http_call *call, const char *name, char *out, size_t n);
/* Frees what `out` fields hold. */
void http_call_release(struct http_call *call);
/* Blocking variant for outpostctl: runs the call on a loop of its own; done is not called.
 * Returns call->err. */
int http_call_blocking(struct http_call *call) MUST_CHECK;

#endif
