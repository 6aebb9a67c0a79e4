/* The structs and functions that the files of the server share. Thread: loop, every function. Owns: the server, until
 * it has closed. */
#pragma once

#include "http/client_group.h"
#include "http/conn.h"
#include "http/server.h"

#define HTTP_SCRATCH_BYTES 65536

struct http_server {
	struct loop *loop;
	struct http_limits limits;
	struct http_routes routes;
	struct http_counters counters;
	struct http_bodies bodies;
	SLIST_HEAD(, http_listener) listeners; /* owned */
	struct http_tls *tls;                  /* NULL: plain */
	bool (*is_trusted)(const uint8_t address[16], void *owner);
	void *trusted_owner;

	LIST_HEAD(, http_conn) conns; /* all that are not freed */
	int n_conns;
	int n_open;                                 /* those of them that are not closed */
	struct http_group_amounts *open_of;         /* open connections by their peer's group */
	struct http_group_amounts *known_until;     /* by group: mono ms; see http_server_note_known() */
	int64_t forget_known_ms;                    /* when expired ones are removed next */
	size_t unsent_bytes;                        /* copies in libuv's queues, and bodies that answers share */
	struct http_group_amounts *shared_bytes;    /* those bodies, by the client they count for */
	struct http_group_amounts *n_sending;       /* answers that send them, by client */
	TAILQ_HEAD(, http_request) waiting_to_send; /* their heads are sent; in their order */
	uint64_t n_states;                          /* changes of a connection's state, ever */
	TAILQ_HEAD(, http_conn) due;                /* to run at the end of a turn */
	uint64_t due_turn;                          /* the batch that new ones belong to */
	bool is_due_scheduled;
	struct timer *tick; /* runs while there are connections */
	int64_t tick_ms;
	int n_quiet_ticks; /* without a connection */

	char date[32]; /* of date_s */
	int64_t date_s;
	struct log_limit refused_log, evicted_log;
	struct buf out_head; /* reused: an answer's status line and headers */

	int n_listeners;
	bool is_closing;
	bool is_gone; /* on_closed was scheduled */
	int64_t close_by_ms;
	void (*on_closed)(void *owner);
	void *closed_owner;

	char scratch[HTTP_SCRATCH_BYTES]; /* input; the callback that reads it also consumes it */
};

/* Ends the server when it is closing and nothing is left. */
void http_server_check_closed(struct http_server *s);
/* The group authenticated a request: it is known from now on for known_ms. */
void http_server_note_known(struct http_server *s, const struct http_client_group *g);
bool http_server_is_known(const struct http_server *s, const struct http_client_group *g);
/* "Fri, 21 Aug 2026 12:00:00 GMT", computed once a second. */
const char *http_server_date(struct http_server *s);

/* answer.c: status line and headers into s->out_head; length < 0: chunked, or none where
 * the client's version has no chunks. */
struct http_answer {
	int status;
	const char *content_type;
	const struct http_header_line *headers;
	int64_t length;
	int minor; /* the client's HTTP/1.minor */
	bool ends;
};
void http_answer_head(struct http_server *s, const struct http_answer *a);
/* answer.c: on_drain runs when less waits in the socket. */
size_t http_drain_bytes(const struct http_request *r);
/* answer.c: r, which has a shared body, ends. */
void http_shared_leave(struct http_request *r);
