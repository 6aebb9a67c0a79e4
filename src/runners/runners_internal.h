/* What the files of runners/ share. No other folder includes it. */
#ifndef RUNNERS_RUNNERS_INTERNAL_H
#define RUNNERS_RUNNERS_INTERNAL_H

#include "base/log.h"
#include "runners/credentials.h"
#include "runners/issuer_keys.h"
#include "runners/rate_limit.h"
#include "runners/runners.h"

enum { REPORT_BODY_MAX_BYTES = 2 * 1024 * 1024, REPORTS_PER_MINUTE = 100 };

struct claims;
struct job_documents;
struct leases;
struct lease_expiry;

struct runners {
	struct loop *loop;
	struct store *store;
	struct config *config; /* NULL until configured */
	struct issuer_keys *keys;
	struct credentials *credentials;
	struct claims *claims;
	struct leases *leases;
	struct lease_expiry *lease_expiry;
	struct job_documents *documents; /* NULL: not asked for */
	/* Anyone on GitHub can mint a token for a repository of theirs: strangers are counted
	 * apart, so that they cannot fill the table that registered ones are in. */
	struct rate_limit *registered, *strangers;
	const struct secret *callback_key;
	int n_in_hand;    /* what waits for an issuer's keys or for the store */
	bool is_stopping; /* nobody is held any more */
	bool is_closing, are_keys_closed, are_credentials_closed;
	void (*on_closed)(void *owner);
	void *closed_owner;
	/* strangers can cause these */
	struct log_limit refused_lines, ignored_lines, identity_lines;
	struct runners_counters counters;
};

/* Whatever waits for the store or for keys holds the struct: one call each, paired. */
void runners_hold(struct runners *r);
void runners_let_go(struct runners *r);

/* The routes. */
void callback_add_route(struct runners *r, struct http_server *h);
void vendor_api_add_route(struct runners *r, struct http_server *h);

#endif
