/* From an accepted delivery to the last outgoing request: the planner, the outbox sender,
 * the deadlines and the reconciler, behind one door.
 *
 * Each of them works from the database alone, so a daemon that died anywhere goes on where
 * it was. Thread: loop, every function. */
#ifndef DISPATCH_DISPATCH_H
#define DISPATCH_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "config/config.h"
#include "github/github.h"
#include "http/client.h"
#include "loop/loop.h"
#include "model/event.h"
#include "model/source_head.h"
#include "store/store.h"

struct dispatch;

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

/* Starts at once: what waits in the database is planned and sent from the next turn of the
 * loop on. Takes its own reference to the snapshot. */
struct dispatch *dispatch_new(const struct dispatch_deps *deps, struct config *c);
/* A new snapshot for everything that begins from now on; what is in hand ends with the old
 * one. Takes its own reference. */
void dispatch_configure(struct dispatch *d, struct config *c);
/* Starts nothing new, gives what is on the wire a moment to be answered, cancels the rest
 * (it goes out again after the next start), then runs on_closed once. Close it before the
 * github, the HTTP client and the store; on_closed comes within 4 s as long as the store
 * answers. Asynchronous. */
void dispatch_close(struct dispatch *d, void (*on_closed)(void *owner), void *owner);
/* After it is closed and the store as well, which has it among its subscribers. NULL is fine. */
void dispatch_free(struct dispatch *d);

/* Looks for lost webhooks now; while a look is on, another one follows it. */
void dispatch_reconcile_now(struct dispatch *d);

/* Another round, as if somebody had said so in a comment: outpostctl retest, and what Re-run
 * falls back on. What is held stays held, and what is at work is not doubled. */
struct retested;
struct retest_request {
	/* in; borrowed until done */
	int64_t number;  /* the PR */
	const char *sha; /* else a commit: a PR's head or a push, or 7 digits of it at least */
	const char *accelerator; /* NULL: each that has not come out clean; else this one */
	const char *runner;      /* NULL: any */
	/* Runs once, on the loop, never inside dispatch_retest(); may free the request. */
	void (*done)(struct retest_request *r);
	void *owner;
	/* out */
	int err; /* ERR_NOT_FOUND, ERR_CONFLICT, ERR_NETWORK, …: nothing was started, and why */
	struct error why;
	int64_t pull_number; /* 0: a push */
	char head_sha[41];
	struct retested *list; /* what became of each runner that is meant; retested_release() */
	size_t n;
};
/* 0: the request is in use until done. ERR_CLOSING, ERR_BUSY (nobody knows yet who takes part): it
 * is not. */
int dispatch_retest(struct dispatch *d, struct retest_request *r) MUST_CHECK;

/* Totals since the start, and what is in hand, for /metrics and outpostctl status. */
struct dispatch_counters {
	struct histogram plan_times; /* from a webhook's arrival to its dispatches on record */
	struct histogram send_times; /* from a dispatch on record until it was taken, all tries */
	int64_t n_deliveries_planned, n_deliveries_ignored, n_deliveries_failed;
	int64_t n_dispatches_made;
	int64_t n_files_unread; /* changes planned as if every path matched */
	int64_t n_github_sent,
	    n_webhooks_sent; /* requests that were taken, closed and cancel too */
	int64_t n_retries, n_dead;
	int64_t n_expired;
	int64_t n_clock_jumps;
	int64_t n_redeliveries_asked;
	int64_t n_reconciled; /* changes that no webhook had told of */
	int64_t n_reconcile_failures;
	int64_t last_reconcile_wall_ms; /* the last look that went through; 0: none yet */
	/* periodic runs */
	int64_t n_nightlies_dispatched, n_nightlies_skipped, n_nightlies_failed;
	int64_t n_upstream_heads_asked, n_upstream_heads_unchanged; /* 304: they cost nothing */
	int64_t n_source_heads_asked, n_head_failures;
	int n_planning; /* deliveries in hand now */
	int n_sending;  /* claimed outbox rows in hand now */
};
void dispatch_read_counters(const struct dispatch *d, struct dispatch_counters *ret);

#endif
