/* Shared by the files of the control socket only. */
#ifndef DAEMON_CONTROL_INTERNAL_H
#define DAEMON_CONTROL_INTERNAL_H

#include "base/json.h"
#include "daemon/wire.h"
#include "store/changes.h"
#include "store/deliveries.h"

struct control {
	struct daemon *daemon;
	struct http_server *server;
	void (*on_closed)(void *owner);
	void *closed_owner;
};

/* One request in hand: the store's or the publisher's struct, and whom to answer. */
struct control_request {
	struct http_request *request;
	struct daemon *daemon;
	union {
		struct list_deliveries deliveries;
		struct list_dispatches dispatches;
		struct replay_delivery replay;
		struct backup_store backup;
		struct preview preview;
	};
	char *text; /* what the struct above borrows */
};

/* A new request in hand; control_end() frees it. */
struct control_request *control_begin(struct http_request *r, struct control *c);
void control_end(struct control_request *q);

/* Sends v (stolen). */
void control_respond(struct http_request *r, int status, json_t *v);
/* {"error": text}, or what err means where text is NULL or empty. */
void control_respond_error(struct http_request *r, int err, const char *text);
/* "no accelerator is called X; did you mean Y?" free(). */
char *control_unknown_accelerator(const struct config *c, const char *name);
/* The query's limit within bounds. */
int control_limit(const struct http_request *r);

/* Handlers; their owner is the struct control. */
void control_on_status(struct http_request *r, void *owner);
void control_on_deliveries(struct http_request *r, void *owner);
void control_on_replay(struct http_request *r, void *owner);
void control_on_dispatches(struct http_request *r, void *owner);
void control_on_retest(struct http_request *r, void *owner);
void control_on_preview(struct http_request *r, void *owner);
void control_on_nightly(struct http_request *r, void *owner);
void control_on_nightly_run(struct http_request *r, void *owner);
void control_on_nightly_skip(struct http_request *r, void *owner);
void control_on_backup(struct http_request *r, void *owner);

#endif
