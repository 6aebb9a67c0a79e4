/* The composition root's struct: every part of the running daemon, and who may see whom is
 * decided in wire.c alone. */
#ifndef DAEMON_WIRE_H
#define DAEMON_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "daemon/callback_key.h"
#include "dispatch/dispatch.h"
#include "evidence/comparing.h"
#include "evidence/evidence.h"
#include "github/github.h"
#include "http/client.h"
#include "http/server.h"
#include "logs/logs.h"
#include "loop/loop.h"
#include "publish/publish.h"
#include "registry/registry.h"
#include "registry/remote_head.h"
#include "runners/runners.h"
#include "store/registry.h"
#include "store/store.h"
#include "web/web.h"
#include "webhook/intake.h"

struct control;
struct known_expiry;
struct log_retention;

struct daemon {
	struct loop *loop;
	struct config *config;       /* the snapshot in force */
	struct config_fixed running; /* of the first one: what a reload cannot change */
	const char *config_path;
	int64_t config_loaded_wall_ms;
	char *config_error; /* why the last reload was refused; NULL: it was not */
	int64_t config_error_wall_ms;
	char *address; /* what listen bound */
	struct secret *callback_key;

	struct store *store;
	struct logs *logs;
	struct log_retention *log_retention;
	struct known_expiry *known_expiry;
	struct http_server *server;
	struct http_client *client;
	struct github *github;
	struct intake *intake;
	struct dispatch *dispatch;
	struct evidence *evidence;
	struct comparing *comparing;
	struct runners *runners;
	struct publisher *publish;
	struct web *web;
	struct control *control;
	struct registry *registry;
	struct remote_heads *heads; /* of vendors' own code */

	struct mirror_registry mirror; /* one at a time */
	struct config *mirrored;       /* what the mirror in hand reads */
	bool is_mirroring;
	struct timer *mirror_again; /* the store could not take it for the moment */

	struct timer *stop_deadline, *watchdog;
	int n_closing; /* parts of the present closing step that are not closed yet */
	int closing_step;
	bool is_reloading, is_reload_wanted, is_stopping;
	char *wanted_commit_folder; /* to be tried after the reload in hand; NULL: none */
};

/* Builds everything on d->loop from d->config and listens. */
int wire_up(struct daemon *d, struct error *e) MUST_CHECK;
/* Hands a new snapshot to every part; the old one is released. ERR_INVALID: a part refused
 * it, and the old one stays in force everywhere. Takes over the reference on 0. */
int wire_configure(struct daemon *d, struct config *config, struct error *e) MUST_CHECK;
/* Closes everything in order, each part once those that use it are gone, then stops the
 * loop. Asynchronous, once. */
void wire_down(struct daemon *d);

#endif
