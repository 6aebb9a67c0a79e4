/* The control socket, state_dir/control.sock (mode 0600): what outpostctl asks. JSON over
 * HTTP, so that it is bounded and parsed by what already is.
 *
 *   GET  /control/status
 *   GET  /control/deliveries?failed=1&limit=N
 *   POST /control/deliveries/{guid}/replay
 *   GET  /control/dispatches?pr=N&limit=N
 *   POST /control/retest            {"change": "NUMBER or SHA", "accelerator": NAME?}
 *   GET  /control/comments/{pr}?format=markdown|terminal|colour&width=N
 *   POST /control/backup            {"path": "/absolute/file"}
 *   …    /control/tokens            (control_tokens.h)
 *
 * An error is {"error": TEXT} with a 4xx or 5xx status. */
#ifndef DAEMON_CONTROL_H
#define DAEMON_CONTROL_H

#include "base/err.h"

struct control;
struct daemon;

/* d->server, store, publish, web are there and outlive it. */
int control_new(struct daemon *d, struct control **ret, struct error *e) MUST_CHECK;
/* Closes the socket and frees; on_closed runs once. Asynchronous. */
void control_close(struct control *c, void (*on_closed)(void *owner), void *owner);

#endif
