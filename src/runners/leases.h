/* The leases of machines. POST /api/v1/runner/leases/{lease}/renew: heartbeats, which are held open so that a cancel
 * reaches the machine at once. …/return: work that is handed back. GET /api/v1/runner/status.
 *
 * Thread: loop, every function. */
#pragma once

#include "runners/runners_internal.h"

/* Adds the routes, and ends leases of an earlier process whose time is over. r is borrowed. */
struct leases *leases_new(struct runners *r, struct http_server *h);
/* The store published STORE_LEASES: answers the heartbeats whose lease ended. */
void leases_on_ended(struct leases *l);
/* Answers 401 to every heartbeat whose token is no longer valid. */
void leases_on_tokens(struct leases *l);
/* Answers all heartbeats: their leases are active. r->is_stopping is set. */
void leases_stop(struct leases *l);
int leases_n_waiting(const struct leases *l);
/* After leases_stop() and the last operation. NULL is fine. */
void leases_free(struct leases *l);

/* This node ends leases from now on. */
void leases_on_seat(struct leases *l);
/* A lease was granted or renewed for this time. When the time is over, the lease ends, so that other machines can claim
 * the work. */
void leases_note_expiry(struct leases *l, int64_t lease_ms);

/* ---- machine.c: the bodies of a heartbeat and of a return, parsed; pure ---- */

#define NO_LEASE "no such lease" /* 404 */
enum { LEASE_ID_MAX_BYTES = 64, LEASE_REASON_MAX_BYTES = 160 };

/* 1 to 64 letters, digits and '-'. */
bool lease_id_is_valid(const char *id);
/* {"wait": SECONDS}; without it, or without a body, 0. ERR_INVALID names the mistake. */
int lease_wait_parse(const char *body, size_t n, int *ret_wait_s, struct error *e) MUST_CHECK;
/* {"reason": TEXT}; without it, "". *ret is one line of at most LEASE_REASON_MAX_BYTES characters; free() on 0. */
int lease_reason_parse(const char *body, size_t n, char **ret, struct error *e) MUST_CHECK;

/* ---- machine.c: requests ---- */

/* POST /api/v1/runner/leases/{lease}/return; and GET /api/v1/runner/status: a machine checks its settings before it claims
 * work. The answer is struct runner_status of model/runner_protocol.h. */
void machine_add_routes(struct runners *r, struct http_server *h);
/* Returns a lease to the queue, and answers q. q NULL: the machine left before it had the lease, which was granted until
 * granted_until_ms; if the store is busy, the lease expires later. Copies the texts. */
void lease_hand_back(struct runners *r, struct http_request *q, const char *lease_id, const char *accelerator,
    const char *machine, const char *reason, int64_t granted_until_ms);
