/* The parts of the running daemon. wire.c alone decides which part gets which other.
 *
 * Thread: loop. Owns: the daemon owns its parts, until wire_down(). */
#pragma once

#include "config/config.h"
#include "db/store.h"
#include "dispatch/dispatch.h"
#include "evidence/evidence.h"
#include "github/github.h"
#include "http/client.h"
#include "http/server.h"
#include "logs/logs.h"
#include "loop/loop.h"
#include "publish/publish.h"
#include "registry/registry.h"
#include "registry/remote_head.h"
#include "runners/credentials.h"
#include "runners/runners.h"
#include "store/registry.h"
#include "web/web.h"
#include "webhook/intake.h"

struct control;
struct space_watch;
struct upkeep;

struct daemon {
	struct loop *loop;
	struct config *config;       /* the snapshot in force */
	struct config_fixed running; /* the keys of the first one that a reload cannot change */
	const char *config_path;
	int64_t config_loaded_wall_ms;
	char *config_error; /* why the last reload was refused; NULL: it was accepted */
	int64_t config_error_wall_ms;
	char *address; /* the bound address */
	struct secret *callback_key;

	struct store *store;
	struct logs *logs;
	struct upkeep *upkeep;
	struct space_watch *space;
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
	struct remote_heads *heads; /* reads the heads of vendors' own repositories */

	struct mirror_registry mirror;
	struct config *mirrored; /* the snapshot that the store is copying; NULL: none */

	struct timer *stop_deadline, *watchdog;
	int n_closing; /* parts of the current closing step that are still open */
	int closing_step;
	bool is_reloading, is_reload_pending, is_stopping;
	char *next_commit_folder; /* to try after the current reload; NULL: none */
};

/* Where finished logs lie. Borrows from the configuration. Any thread. */
struct log_place_options log_place_of(const struct config *c);
/* Builds every part on d->loop from d->config, and listens. */
int wire_up(struct daemon *d, struct error *e) MUST_CHECK;
/* Hands a new snapshot to every part and releases the old one. Returns 0 and takes over the
 * reference, or ERR_INVALID when a part refuses it: then the old one stays in force everywhere. */
int wire_configure(struct daemon *d, struct config *config, struct error *e) MUST_CHECK;
/* Closes every part after its users, then stops the loop. Asynchronous; call it once, also after a
 * failed wire_up(). */
void wire_down(struct daemon *d);

/* ---- the figures and the state of all parts (metrics.c): Prometheus text for /metrics, JSON for `outpostctl status`, with the
 * store's figures, which web/ collects, and for the public status ---- */

/* Appends the counters of all parts to out. owner: the struct daemon. */
void metrics_write(struct buf *out, void *owner);
/* Adds "registry", the state of accelerators.git, to the public status: null without accelerators.git, and
 * without texts that name the operator's own files. owner: the struct daemon. */
void status_add_public(json_t *status, void *owner);

/* ---- regular work (upkeep.c): known issues expire, logs without a write for retention.logs are deleted, and the nodes share the
 * limits that GitHub names; the daemon owns it, with upkeep_free() ---- */

/* The daemon's store, logs and github exist and are closed between upkeep_stop() and upkeep_free(). Begins
 * with the known issues that expired while the daemon was down. */
struct upkeep *upkeep_new(struct daemon *d);
/* A known issue was added: schedules its expiry. */
void upkeep_on_known_issue(struct upkeep *u);
/* Starts no more work. The store and the logs end the operations that were begun. NULL is fine. */
void upkeep_stop(struct upkeep *u);
void upkeep_free(struct upkeep *u); /* NULL is fine */
