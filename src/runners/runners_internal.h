/* The state that the files of runners/ share. No other folder includes it.
 *
 * Thread: loop. */
#ifndef RUNNERS_RUNNERS_INTERNAL_H
#define RUNNERS_RUNNERS_INTERNAL_H

#include "base/log.h"
#include "runners/credentials.h"
#include "runners/issuer_keys.h"
#include "runners/runners.h"

enum { REPORT_BODY_MAX_BYTES = 2 * 1024 * 1024, REPORTS_PER_MINUTE = 100 };

struct claims;
struct job_documents;
struct leases;
struct rate_limit;

struct runners {
	struct loop *loop;
	struct store *store;
	struct config *config; /* NULL until configured */
	struct issuer_keys *keys;
	struct credentials *credentials;
	struct claims *claims;
	struct leases *leases;
	struct job_documents *documents; /* NULL: runners_take_documents() was not called */
	/* Any user of GitHub can get a token for a repository of theirs. Strangers are counted apart, so that they
	 * cannot fill the table of the registered callers. */
	struct rate_limit *registered, *strangers;
	const struct secret *callback_key;
	int n_in_hand; /* requests that wait for an issuer's keys or for the store; parts that close */
	bool is_stopping; /* no request is held open any more */
	bool is_closing;
	void (*on_closed)(void *owner);
	void *closed_owner;
	/* strangers can cause these lines */
	struct log_limit refused_lines, ignored_lines, identity_lines;
	struct runners_counters counters;
};

/* Everything that waits for the store or for keys keeps the struct alive: one call of each, in pairs. */
void runners_hold(struct runners *r);
void runners_let_go(struct runners *r);

/* callback.c */
void report_add_routes(struct runners *r, struct http_server *h);

#endif
