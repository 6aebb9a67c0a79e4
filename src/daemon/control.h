/* The control socket, state_dir/control.sock (mode 0600): outpostctl's requests, as JSON over HTTP.
 *
 *   GET  /control/status
 *   GET  /control/deliveries?failed=1&limit=N
 *   POST /control/deliveries/{guid}/replay
 *   GET  /control/dispatches?pr=N&limit=N
 *   POST /control/retest             {"change": "NUMBER or SHA", "accelerator": NAME?}
 *   GET  /control/comments/{pr}?format=markdown|terminal|colour&width=N
 *   POST /control/backup             {"path": "/absolute/file"}
 *   GET  /control/tokens?kind=runner|api&accelerator=A
 *   POST /control/tokens             {"kind", "accelerator", "name"} → {"id", "token", …}
 *   POST /control/tokens/revoke      {"kind", "accelerator", "name", "id"} → {"revoked": N}
 *   GET  /control/identities         → {"identities": […]}
 *   POST /control/identities/forget  {"repository"} → {"repository"}
 *   GET  /control/known              → as /api/v1/known
 *   POST /control/known              {"test", "accelerator", "url", "until"} → {"id", "until"}
 *   POST /control/known/remove       {"id"} → {"id"}
 *   GET  /control/nightly            → {"schedules": […]}
 *   POST /control/nightly/run        {"accelerator"} → {"accelerator", "run"}
 *   POST /control/nightly/skip       {"accelerator"} → {"accelerator", "next", "was_skipped"}
 *
 * An error is {"error": TEXT} with a 4xx or 5xx status.
 *
 * Thread: loop, everything. Owns: the daemon, with control_close(). */
#pragma once

#include "config/config.h"
#include "http/server.h"
#include "store/credentials.h"

struct control;
struct daemon;

/* The daemon's server, store, dispatch, publish, runners and web exist and outlive the socket.
 * *ret is set after a failure too, and must be closed. */
int control_new(struct daemon *d, struct control **ret, struct error *e) MUST_CHECK;
/* Closes the socket and frees c. on_closed runs once, after this call has returned. */
void control_close(struct control *c, void (*on_closed)(void *owner), void *owner);

/* ---- for control_*.c ---- */

/* One request until its answer. A route's own struct has it as its first member, `base`. */
struct control_request {
	struct http_request *http;
	struct daemon *daemon;
	json_t *body; /* NULL: no body. Texts of it stay valid until the answer. */
	struct error why;
	/* frees the content of the route's struct; or NULL */
	void (*release)(struct control_request *q);
};

struct control_route {
	const char *method, *pattern;
	size_t bytes; /* of the route's own struct, which begins zeroed */
	/* Returns 0 when the request is answered, or will be, with control_answer() or
	 * control_goes_on(). Returns a code to fail with it, and with q->why where that is set. */
	int (*begin)(struct control_request *q);
};

/* Each ends with a method of NULL. */
extern const struct control_route CONTROL_CHANGES[], CONTROL_CREDENTIALS[], CONTROL_KNOWN[], CONTROL_STATUS[];

/* Sends v (stolen) with status 200, and frees the request. */
void control_answer(struct control_request *q, json_t *v);
/* Sends {key: list} when the query has succeeded, else its error; frees the request. list: stolen. */
void control_answer_list(struct control_request *q, const struct store_query *s, const char *key, json_t *list);
/* Returns true if err is 0. Else it sends {"error": text}, or the general text of err where text is NULL or empty, and
 * frees the request. */
bool control_goes_on(struct control_request *q, int err, const char *text);
/* Fails a request that names an accelerator which is not registered. Returns ERR_NOT_FOUND, with
 * q->why "no accelerator is called X; did you mean Y?". */
int control_unknown_accelerator(struct control_request *q, const char *name);
/* The query's limit within bounds. */
int control_limit(const struct control_request *q);

/* The rows as an array, also for the status. */
json_t *identities_json(const struct list_identities *l);
