/* The registry's mirror, so that history keeps names that left it, and figures over it. */
#ifndef STORE_REGISTRY_H
#define STORE_REGISTRY_H

#include "model/accelerator.h"
#include "store/quality.h"
#include "store/standings.h"
#include "store/store.h"

/* Whole registry; those that are not in it are marked gone. Accelerators stay the caller's
 * until done. */
struct mirror_registry {
	struct store_op op;
	const struct accelerator *list;
	size_t n;
	/* what PyTorch requires of each, added to its own; NULL-terminated or NULL */
	const char *const *required_suites, *const *required_must_pass;
	/* what counts as evidence (store/attribution.h); 0: as it was */
	int64_t attribution_window_ms;
	int attribution_distance;
	/* what states refer to (store/standings.h); repository NULL: as it was; branch NULL: none */
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
/* Fills in all but the name. accelerator_figures_release(). Thread: reader. */
void accelerator_figures_read(
    struct db *d, struct accelerator_figures *f, const struct upstream_branch *u, int64_t now_ms);
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

/* Each repository of an accelerator at L3, with its own numbers: several may be one accelerator. */
struct level_repository {
	char *accelerator, *repository;
	struct level_numbers numbers;
};
struct list_level_status {
	struct store_query q;
	int64_t now_ms;
	struct level_repository *list; /* out; list_level_status_release() */
	size_t n;
};
int store_list_level_status(struct store *s, struct list_level_status *q) MUST_CHECK;
void list_level_status_release(struct list_level_status *q);

/* Totals for /api/v1/status, /metrics and outpostctl status. */
struct get_totals {
	struct store_query q;
	int64_t now_ms;
	int64_t n_deliveries_accepted, n_deliveries_planned, n_deliveries_ignored,
	    n_deliveries_failed;
	int64_t n_dispatches[16]; /* by enum dispatch_state */
	int64_t n_jobs, n_results, n_open_changes;
	int64_t n_leases_active, n_leases_done, n_leases_returned, n_leases_expired,
	    n_leases_cancelled;
	/* accelerators: that the breaker does not count; whose state is red */
	int64_t n_unhealthy, n_red;
	int64_t n_experiments[N_EXPERIMENT_STATES]; /* that came into each state so far */
	int64_t oldest_accepted_ms; /* of the deliveries that wait to be planned, 0 none */
	int64_t db_bytes;
};
int store_get_totals(struct store *s, struct get_totals *q) MUST_CHECK;

/* SQLite's online backup into a new file (written beside it, renamed when whole). Runs on
 * a reader's thread; intake goes on. */
struct backup_store {
	struct store_query q;
	const char *path; /* absolute; must not exist */
	int64_t n_bytes;  /* out */
};
int store_backup(struct store *s, struct backup_store *q) MUST_CHECK;

#endif
