/* The registry's mirror, so that old results keep the names of accelerators that left it; figures of accelerators; and
 * totals and the backup of the whole database.
 *
 * Thread: functions with a struct view run on its thread; store_*() functions run on the loop. */
#pragma once

#include "db/seats.h"
#include "db/store.h"
#include "experiments/experiments.h"
#include "history/standings.h"
#include "model/accelerator.h"
#include "model/record_states.h"
#include "store/outbox.h"

/* Writes the whole registry; accelerators that are not in it are marked gone. The list stays the caller's until done. */
struct mirror_registry {
	struct store_op op;
	const struct accelerator *list;
	size_t n;
	/* upstream's requirements for each accelerator, added to its own; NULL-terminated or NULL */
	const char *const *required_suites, *const *required_must_pass;
	/* limits of evidence (verdict/attribution.h); 0: unchanged */
	int64_t attribution_window_ms;
	int attribution_distance;
	/* the branch that states refer to (history/standings.h); repository NULL: unchanged; branch NULL: none */
	const char *upstream_repository, *upstream_branch;
	int64_t now_ms;
};
int store_mirror_registry(struct store *s, struct mirror_registry *op) MUST_CHECK;

struct accelerator_figures {
	char *name;
	int64_t n_dispatches, n_expired; /* last 30 days */
	struct quality quality;
	struct standing at;
};
/* Fills in all but the name. accelerator_figures_release(). */
void accelerator_figures_read(
    const struct view *d, struct accelerator_figures *f, const struct upstream_branch *u, int64_t now_ms);
void accelerator_figures_release(struct accelerator_figures *f);
struct get_figures {
	struct store_query q;
	int64_t now_ms;
	const char *only;                 /* in: this one; NULL: all */
	struct accelerator_figures *list; /* out, by name; get_figures_release() */
	size_t n;
};
int store_get_figures(struct store *s, struct get_figures *q) MUST_CHECK;
void get_figures_release(struct get_figures *q);

/* Totals for /api/v1/status, /metrics and outpostctl status, from one snapshot of the store. */
struct get_totals {
	struct store_query q;
	int64_t now_ms;
	bool has_experiments; /* in: read the members that say so; it costs a walk over the jobs of a day */
	int64_t n_deliveries_accepted, n_deliveries_planned, n_deliveries_ignored, n_deliveries_failed;
	int64_t n_dispatches[16]; /* by enum dispatch_state */
	int64_t n_jobs, n_results, n_open_changes;
	int64_t n_leases_active, n_leases_done, n_leases_returned, n_leases_expired, n_leases_cancelled;
	int64_t n_experiments[N_EXPERIMENT_STATES]; /* that entered each state so far */
	int64_t oldest_accepted_ms;                 /* of the deliveries that wait to be planned, 0 none */
	int64_t n_queued;                           /* pull dispatches that wait for a machine */
	struct outbox_stats outbox;
	struct experiment_use_list experiments; /* with has_experiments; get_totals_release(), as the next */
	struct seat_nodes nodes;                /* with has_experiments */
	int64_t n_attribution_due;              /* changes to attribute again now; with has_experiments */
	int64_t next_attribution_ms;            /* when the next one after those is due, 0 none; with has_experiments */
	int64_t db_bytes;
};
int store_get_totals(struct store *s, struct get_totals *q) MUST_CHECK;
void get_totals_release(struct get_totals *q);
/* The same inside of another query: reads now_ms and has_experiments. Thread: reader. */
void totals_read(const struct view *d, struct get_totals *g);

/* SQLite's online backup into a new file, written under another name and renamed when complete. It runs on the
 * thread of long queries, so intake and pages go on. */
struct backup_store {
	struct store_query q;
	const char *path; /* absolute; must not exist */
	int64_t n_bytes;  /* out */
};
int store_backup(struct store *s, struct backup_store *q) MUST_CHECK;
