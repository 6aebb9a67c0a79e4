/* The quality dashboard: its query, and its JSON, the answer of /api/v1/dashboard (docs/api.md). It reads aggregates only:
 * their rows grow with accelerators and days, never with results. */
#pragma once

#include "db/store.h"
#include "model/dashboard.h"

/* The accelerators that are in the registry and not at L1. Thread: the query runs on a reader. */
struct get_dashboard {
	struct store_query q;
	const char *repository, *branch; /* in */
	int64_t now_ms;                  /* in */
	struct dashboard *view;          /* out; dashboard_free(); NULL with err */
};
int store_get_dashboard(struct store *s, struct get_dashboard *q) MUST_CHECK;

/* As text, which the caller frees. Its `headline` has the first sentences of the page as plain text: {"symbol": "✗", "tone": "fail",
 * "text": "2 of 3 accelerators are red on main", "rest": "NPU is silent."}. It says that all accelerators are green only
 * if each one is. Thread: any. public_url: without a trailing slash. */
char *dashboard_json(const struct dashboard *d, const char *repository, const char *branch, const char *public_url);
