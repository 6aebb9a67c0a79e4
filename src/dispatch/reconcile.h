/* Finds lost webhooks: GitHub does not repeat a failed delivery by itself, and an outage on either side may last hours.
 * At the start and at each interval, one look reads in this order
 *
 *   1. the App's list of deliveries: it requests a redelivery of those that failed and are not on disk, until they arrive
 *      or GitHub drops them;
 *   2. the heads of the open pull requests, and those that are open only in the database;
 *   3. the tips of upstream's branches.
 *
 * Steps 2 and 3 plan each missed change from a body that is made from the API's answer. This cannot dispatch a change
 * twice: the store allows one dispatch for each head, runner and round, and ignores events that are older than its
 * own state. So a webhook that arrives during a look needs no special case. The first look at an empty database only
 * records the present state.
 *
 * One look runs at a time, with one request at a time. Thread: loop. Owns: struct dispatch, until
 * reconciler_close(). */
#pragma once

#include "db/settings.h"
#include "dispatch/dispatch_internal.h"
#include "github/github.h"
#include "model/event.h"
#include "store/changes.h"
#include "store/deliveries.h"

/* Private to reconcile_*.c, the three parts of a look. Each part runs by callbacks, with one operation at a time, and
 * ends with reconcile_part_done(). */

struct branch_memory {
	char *name;
	char etag[GITHUB_ETAG_BYTES];
};

struct reconciler {
	struct dispatch *d;
	struct timer *timer;
	bool is_running, was_rung, is_busy, is_on_github;
	bool has_failed; /* a part of this look */
	bool has_looked;
	int64_t looked_mono_ms; /* when the last look ended */
	int part;
	int n_complete_looks;
	/* While GitHub's deliveries fail, and redeliveries with them: the pause between two looks that request one, and when it ends. 0: a
	 * delivery has arrived since. */
	int64_t probe_pause_ms, probe_mono_ms;
	size_t n_probes;
	int64_t since_ms;      /* the beginning of this database: older deliveries are not requested */
	struct config *config; /* of this look */

	/* the running operation */
	void (*then)(struct reconciler *r);
	char *setting_key, *setting_value;
	union {
		struct get_setting get_setting;
		struct put_setting put_setting;
		struct list_redeliveries list_redeliveries;
		struct count_redelivery count;
		struct list_pulls list_pulls;
		struct note_head note;
		struct has_push has_push;
		struct github_deliveries deliveries;
		struct github_page page;
		struct github_branch branch;
		struct github_commits commits;
		struct github_call call;
	} op;

	/* 1: deliveries */
	struct {
		json_t *page;                           /* array */
		json_t *settled;                        /* object: GUIDs whose latest attempt was read in this look */
		int64_t seen_id;                        /* from the last look */
		int64_t newest_id;                      /* of this one */
		int64_t floor_id;                       /* this walk ends there */
		int64_t older_floor_id;                 /* of a walk that was cut short; 0: it ends with the list */
		char older_cursor[GITHUB_CURSOR_BYTES]; /* it continues there; "": no such walk */
		char cursor[GITHUB_CURSOR_BYTES], next_cursor[GITHUB_CURSOR_BYTES];
		bool is_older_walk, is_at_floor;
		bool has_arrived, has_failed_again; /* among the attempts of this look: a delivery; a redelivery */
		int n_pages;
		struct note_deliveries note;  /* of the page; the lists are owned */
		struct list_redeliveries due; /* the list is owned */
		size_t i_due;
	} dl;

	/* 2: pulls */
	struct {
		bool is_first_look;
		bool must_be_complete, is_complete;
		int n_waits, n_requested;
		int64_t seen_ms, newest_ms; /* updated_at */
		struct list_pulls known;    /* open ones; the list is owned */
		bool *is_listed;            /* for each of them */
		struct list_pulls all;      /* also closed ones, when needed */
		bool has_all;
		json_t *page; /* array */
		int next_page;
		size_t i;
		struct event event; /* of a head to be noted */
	} pl;

	/* 3: branches */
	struct {
		size_t i;
		char *tip; /* the recorded one */
		char sha[41];
		char etag[GITHUB_ETAG_BYTES];
		json_t *answer;
		struct branch_memory *memory; /* kept from look to look */
		size_t n_memory;
	} br;
};

/* The part has ended: begins the next one, or ends the look. */
void reconcile_part_done(struct reconciler *r);
/* Ends the part; the look counts as failed. */
void reconcile_part_failed(struct reconciler *r, const char *what, const char *why);

/* Reads a setting into r->setting_value, or writes it, then runs `then`. On a failure the part ends instead. Takes over
 * key and value (free()). */
void reconcile_load_setting(struct reconciler *r, char *key, void (*then)(struct reconciler *r));
void reconcile_save_setting(struct reconciler *r, char *key, char *value, void (*then)(struct reconciler *r));
/* Takes over the body, plans it, and runs `then`. If the body cannot be planned, the planner logs the reason. */
void reconcile_plan(struct reconciler *r, const char *event_name, char *body, void (*then)(struct reconciler *r));
/* For done callbacks: the operation has ended. False: this has ended the part or the look. why may be NULL if err is
 * 0. */
bool reconcile_op_ended(struct reconciler *r, const char *what, int err, const struct error *why);
/* Call it after submitting an operation to the store. */
void reconcile_submitted(struct reconciler *r, const char *what, int rc);
/* Call it before starting a request to GitHub. */
void reconcile_goes_to_github(struct reconciler *r);
/* Runs step after the delay. */
void reconcile_later(struct reconciler *r, void (*step)(struct reconciler *r), int64_t after_ms);

void reconcile_deliveries(struct reconciler *r);
void reconcile_pulls(struct reconciler *r);
void reconcile_branches(struct reconciler *r);
