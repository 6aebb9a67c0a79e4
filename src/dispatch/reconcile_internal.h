/* What the three parts of a look share. Each part runs by callbacks, one operation in the
 * air at a time, and ends with reconcile_part_done(). */
#ifndef DISPATCH_RECONCILE_INTERNAL_H
#define DISPATCH_RECONCILE_INTERNAL_H

#include "base/json.h"
#include "dispatch/dispatch_internal.h"
#include "dispatch/reconcile.h"
#include "github/github.h"
#include "model/event.h"
#include "store/changes.h"
#include "store/deliveries.h"

struct branch_memory { /* survives a look; the rest of the state does not */
	struct branch_memory *next;
	char *name;
	char etag[GITHUB_ETAG_BYTES];
};

struct reconciler {
	struct dispatch *d;
	struct timer *timer;
	bool is_running, was_rung, is_busy, is_on_github;
	bool has_failed; /* some part of this look */
	bool has_looked;
	int64_t looked_mono_ms; /* when the last look ended */
	int part;
	int n_complete_looks;
	int64_t since_ms;      /* when this database began: older losses are not ours */
	struct config *config; /* of this look */

	/* the operation in the air */
	void (*then)(struct reconciler *r);
	char *setting_value; /* of reconcile_load_setting() */
	char *setting_text;  /* of reconcile_save_setting() */
	union {
		struct get_setting get_setting;
		struct put_setting put_setting;
		struct known_guids known_guids;
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
		json_t *page;           /* array */
		json_t *settled;        /* object: GUIDs that need no more in this look */
		int64_t seen_id;        /* from the last look */
		int64_t newest_id;      /* of this one */
		int64_t floor_id;       /* where this walk ends */
		int64_t older_floor_id; /* of a walk that was cut short; 0: its end is open */
		char older_cursor[GITHUB_CURSOR_BYTES]; /* where it goes on; "": there is none */
		char cursor[GITHUB_CURSOR_BYTES], next_cursor[GITHUB_CURSOR_BYTES];
		bool is_older_walk, is_at_floor;
		int n_pages, n_asked;
		struct error ask_why; /* why GitHub did not redeliver */
		struct lost_delivery {
			int64_t id;
			const char *guid; /* of page */
		} * lost;
		size_t n_lost, i;
		bool *known;
	} dl;

	/* 2: pulls */
	struct {
		bool is_first_look;
		bool must_be_complete, is_complete;
		int n_waits, n_asked;
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
		char *tip; /* the one that was known */
		char sha[41];
		char etag[GITHUB_ETAG_BYTES];
		json_t *answer;
		struct branch_memory *memory;
	} br;
};

/* The part ended; the next one begins, or the look ends. */
void reconcile_part_done(struct reconciler *r);
/* The part ends here, and the look counts as failed. */
void reconcile_part_failed(struct reconciler *r, const char *what, const char *why);

/* Submits, then runs `then`, unless it fails: then the part has ended. Keys and values are
 * copied. */
void reconcile_load_setting(
    struct reconciler *r, const char *key, void (*then)(struct reconciler *r));
void reconcile_save_setting(
    struct reconciler *r, const char *key, const char *value, void (*then)(struct reconciler *r));
/* Plans a body (taken), then runs `then`; what the body itself was refused for is logged. */
void reconcile_plan(
    struct reconciler *r, const char *event_name, char *body, void (*then)(struct reconciler *r));
/* For done callbacks: the operation is back. False: it ended the part (or the look). why may be
 * NULL when err is 0. */
bool reconcile_is_back(struct reconciler *r, const char *what, int err, const struct error *why);
/* After submitting an operation of the store's. */
void reconcile_submitted(struct reconciler *r, const char *what, int rc);
/* Before starting a call of github's. */
void reconcile_goes_to_github(struct reconciler *r);
/* Runs step after a while. */
void reconcile_later(struct reconciler *r, void (*step)(struct reconciler *r), int64_t after_ms);

void reconcile_deliveries(struct reconciler *r);
void reconcile_deliveries_release(struct reconciler *r);
void reconcile_pulls(struct reconciler *r);
void reconcile_pulls_release(struct reconciler *r);
void reconcile_branches(struct reconciler *r);
void reconcile_branches_release(struct reconciler *r);

#endif
