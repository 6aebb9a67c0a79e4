/* The interface of the planner, the outbox sender, the deadlines, the reconciler and the scheduler: together they
 * turn accepted deliveries into outgoing requests.
 *
 * Each part keeps its state in the database, so a restarted daemon continues where it stopped.
 *
 * Thread: loop, every function. Owns: the caller, with dispatch_close() and then dispatch_free(). */
#pragma once

#include "config/config.h"
#include "db/store.h"
#include "github/github.h"
#include "http/client.h"
#include "loop/loop.h"
#include "model/accelerator.h"
#include "model/event.h"

struct delivery;

/* Everything is borrowed and outlives the dispatch. */
struct dispatch_deps {
	struct loop *loop;
	struct store *store;
	struct github *github;
	struct http_client *http_client; /* for vendors' webhooks */
	event_parse_fn *parse_event;
	struct head_reader heads;          /* of vendors' own code, for periodic runs; copied */
	const struct secret *callback_key; /* signs callback tokens */
};

/* Starts at once: plans and sends the work that waits in the database from the next turn of the loop on. Takes its own
 * reference to the snapshot. */
struct dispatch *dispatch_new(const struct dispatch_deps *deps, struct config *c);
/* Uses a new snapshot for all work that begins from now on; work that has begun ends with the old one. Takes its own
 * reference. */
void dispatch_configure(struct dispatch *d, struct config *c);
/* Starts no more work, waits a moment for answers to requests that were sent, and cancels the others, which the next
 * start sends again. Then runs on_closed once. Close it before the github, the HTTP client and the store; on_closed
 * runs within 4 s as long as the store answers. Asynchronous. */
void dispatch_close(struct dispatch *d, void (*on_closed)(void *owner), void *owner);
/* Call it after both the dispatch and the store are closed, because the dispatch subscribes to the store. NULL is fine. */
void dispatch_free(struct dispatch *d);

/* A delivery that was just written, and that no topic announces: plans it now, or soon. May take its guid, event and body
 * (free()), and sets them to NULL then. */
void dispatch_accept(struct dispatch *d, struct delivery *delivery);
/* Looks for lost webhooks now, or again after a look that is running. */
void dispatch_reconcile_now(struct dispatch *d);

/* Another round, like the command `retest` in a comment: for outpostctl retest, and for Re-run on a runner whose runs
 * cannot be started again. Held runners stay held, and a runner that is at work is not started twice. */
struct retest_request {
	/* in; borrowed until done */
	int64_t number;          /* the PR */
	const char *sha;         /* else a commit: a PR's head or a push, or at least its first 7 digits */
	const char *accelerator; /* only this one; NULL: each whose results are not clean */
	const char *runner;      /* NULL: any */
	/* Runs once, on the loop, never inside dispatch_retest(); may free the request. */
	void (*done)(struct retest_request *r);
	void *owner;
	/* out */
	int err; /* ERR_NOT_FOUND, ERR_CONFLICT, ERR_NETWORK, …: nothing was started. ERR_AWAY: the database failed, perhaps for now only */
	struct error why;    /* may be empty */
	int64_t pull_number; /* 0: a push */
	char head_sha[41];
	struct retested *list; /* the result for each selected runner; retested_release() */
	size_t n;
};
/* 0: the request is in use until done. ERR_CLOSING, or ERR_BUSY while the registry has not been read: it is not in use. */
int dispatch_retest(struct dispatch *d, struct retest_request *r) MUST_CHECK;

/* Totals since the start, and the work in progress, for /metrics and outpostctl status. */
struct dispatch_counters {
	/* from a webhook's arrival until its dispatches are recorded; from then until it is accepted, all attempts */
	struct histogram plan_times, send_times;
	int64_t n_deliveries_planned, n_deliveries_ignored, n_deliveries_failed;
	int64_t n_dispatches_made;
	int64_t n_files_unread;                 /* changes planned as if every path matched */
	int64_t n_github_sent, n_webhooks_sent; /* accepted requests, including closed and cancel */
	int64_t n_retries, n_dead;
	int64_t n_expired;
	int64_t n_clock_jumps;
	int64_t n_redeliveries_asked;
	int64_t n_reconciled; /* changes found without a webhook */
	int64_t n_reconcile_failures;
	int64_t last_reconcile_wall_ms; /* the last successful look; 0: none yet */
	/* periodic runs */
	int64_t n_nightlies_dispatched, n_nightlies_skipped, n_nightlies_failed;
	int64_t n_upstream_heads_asked, n_upstream_heads_unchanged; /* 304: they cost nothing */
	int64_t n_source_heads_asked, n_head_failures;
	int n_planning; /* deliveries that are being planned now */
	int n_sending;  /* outbox rows that are claimed now */
};
void dispatch_read_counters(const struct dispatch *d, struct dispatch_counters *ret);
