/* What the client's files share. client.c owns the client and the calls' lives,
 * client_transfer.c one exchange in libcurl's terms, client_uv.c sockets and clock. */
#ifndef HTTP_CLIENT_INTERNAL_H
#define HTTP_CLIENT_INTERNAL_H

#include <curl/curl.h>
#include <uv.h>

#include "http/client.h"

/* One easy handle and the call that it serves now. Kept and used again. */
struct http_transfer {
	struct http_transfer *next, **link; /* in one of the client's lists */
	struct http_client *client;
	struct http_call *call;
	CURL *easy;
	struct curl_slist *headers;
	bool is_in_multi;
	int64_t overdue_mono_ms; /* past it, not even its wait for a connection counts */
	int err; /* why we ended it ourselves, before libcurl's own reason; 0: we did not */
	char error_text[CURL_ERROR_SIZE];
};

struct http_client {
	struct loop *loop;
	uv_loop_t *uv;
	CURLM *multi;
	CURLSH *share; /* TLS sessions, so that a new connection resumes */
	char *user_agent;
	char *ca_file;   /* NULL: libcurl's own */
	char *ca_folder; /* NULL: libcurl's own */
	int max_per_host;
	uv_timer_t deadline; /* libcurl's clock; rule: only libcurl stops it */
	uv_timer_t turn;     /* ends calls that must not end inside the caller's call */
	uv_timer_t sweep;    /* libcurl does not time calls that wait for a connection */
	uv_timer_t idle;     /* after a quiet while connections and buffers go */
	struct http_transfer *active, *ended, **ended_tail, *spare;
	int n_spare;
	int n_handles; /* timers and sockets that are still open */
	bool is_closing;
	void (*on_closed)(void *owner);
	void *owner;
};

/* ---- client.c ---- */
/* Sets what a transfer reads of its client: its name and whom it trusts. */
void http_client_init(struct http_client *c, const char *user_agent);
void http_client_release(struct http_client *c);
/* Takes the transfer off the active list; its done runs in http_client_run_ended(). */
void http_client_end(struct http_transfer *t, CURLcode code);
/* Runs done for everything that ended. The last thing a callback of ours does. */
void http_client_run_ended(struct http_client *c);
/* A handle of the client's was closed; the last one frees the client. */
void http_client_handle_closed(struct http_client *c);
/* Ends everything in the air with `err`. */
void http_client_end_all(struct http_client *c, int err, const char *why);

/* ---- client_uv.c ---- */
void http_client_uv_open(struct http_client *c);  /* a new multi handle */
void http_client_uv_close(struct http_client *c); /* its connections go with it */

/* ---- client_transfer.c ---- */
struct http_transfer *http_transfer_new(struct http_client *c);
void http_transfer_free(struct http_transfer *t);
/* Sets the easy handle up for t->call. On an error call->why says what was wrong. */
int http_transfer_prepare(struct http_transfer *t) MUST_CHECK;
/* Fills the call's out fields from what libcurl says. */
void http_transfer_conclude(struct http_transfer *t, CURLcode code);
/* Forgets the call; the easy handle keeps its memory. */
void http_transfer_reset(struct http_transfer *t);

#endif
