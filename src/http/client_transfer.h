/* One exchange in libcurl's terms, for both clients: client.c runs calls on the loop, and client_pull.c has the
 * blocking variant.
 *
 * Thread: the one that runs the client or the puller. */
#pragma once

#include <curl/curl.h>
#include <uv.h>

#include "http/client.h"

/* One easy handle and the call that it serves. */
struct http_transfer {
	TAILQ_ENTRY(http_transfer) link; /* in one of the client's lists */
	struct http_client *client;
	struct http_call *call;
	CURL *easy;
	struct curl_slist *headers;
	bool is_in_multi;
	int64_t n_sent;          /* of call->file */
	int64_t overdue_mono_ms; /* then it ends, even if it still waits for a connection */
	int err;                 /* the reason if this program ended it, which libcurl's does not replace; else 0 */
	char error_text[CURL_ERROR_SIZE];
};

struct http_client {
	uv_loop_t *uv;
	CURLM *multi;
	CURLSH *share; /* TLS sessions, so that a new connection resumes */
	char *user_agent;
	char *ca_file;   /* NULL: libcurl's own */
	char *ca_folder; /* NULL: libcurl's own */
	int max_per_host;
	int confirm_ms;                                   /* 0: not limited */
	uv_timer_t deadline;                              /* libcurl's clock; only libcurl stops it */
	uv_timer_t turn;                                  /* ends calls that must not end inside the caller's call */
	uv_timer_t sweep;                                 /* libcurl does not time calls that wait for a connection */
	uv_timer_t idle;                                  /* frees connections and buffers after a time without calls */
	TAILQ_HEAD(, http_transfer) active, ended, spare; /* spare: for the next calls */
	int n_spare;
	int n_handles; /* timers and sockets that are still open */
	bool is_closing;
	void (*on_closed)(void *owner);
	void *owner;
};

/* ---- client.c ---- */
/* Sets the fields that a transfer reads: the user agent, and the certificates to trust. */
void http_client_init(struct http_client *c, const char *user_agent);
void http_client_release(struct http_client *c);

/* ---- client_transfer.c ---- */
/* With a spare easy handle of the client, or a new one. */
struct http_transfer *http_transfer_new(struct http_client *c);
/* Keeps it as a spare one. */
void http_transfer_put_back(struct http_transfer *t);
void http_transfers_free_spare(struct http_client *c);
void http_transfer_free(struct http_transfer *t);
/* Clears the call's out fields and sets the easy handle up for it. On an error call->why has the reason. */
int http_transfer_prepare(struct http_transfer *t, struct http_call *call) MUST_CHECK;
/* Fills the call's out fields from libcurl's result. */
void http_transfer_conclude(struct http_transfer *t, CURLcode code);
/* Drops the call; the easy handle keeps its memory. */
void http_transfer_reset(struct http_transfer *t);
