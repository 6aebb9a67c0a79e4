/* The quality dashboard and one accelerator in full, read from aggregates: rows that grow with
 * accelerators and days, never with results. */
#ifndef STORE_DASHBOARD_H
#define STORE_DASHBOARD_H

#include "model/dashboard.h"
#include "store/db.h"
#include "store/registry.h"
#include "store/store.h"

/* Those that are in the registry and not at L1. */
struct get_dashboard {
	struct store_query q;
	const char *repository, *branch; /* in */
	int64_t now_ms;                  /* in */
	struct dashboard *view;          /* out; dashboard_free(); NULL with err */
};
int store_get_dashboard(struct store *s, struct get_dashboard *q) MUST_CHECK;

/* The same rows of tables, for the page of one accelerator: n days up to and with last_day, oldest
 * first; days of which nothing is known are all 0, -1 and DAY_NO_RUN. Thread: reader. */
void days_read(
    struct db *d, const char *accelerator, int64_t last_day, struct day_view *ret, int n);
void nightly_days_read(
    struct db *d, const char *accelerator, int64_t last_day, enum day_outcome *ret, int n);

#endif
