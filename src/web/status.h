/* The figures behind /api/v1/status and /metrics, read from the store. For web/ only. */
#ifndef WEB_STATUS_H
#define WEB_STATUS_H

#include "store/experiment_use.h"
#include "store/leases.h"
#include "store/outbox.h"
#include "store/registry.h"
#include "web/web_internal.h"

/* Reads, one after the other, for one answer. Made with calloc; done gets it once, and it is
 * freed after that. */
struct status_request {
	struct get_totals totals;
	struct outbox_stats outbox;
	struct list_leases leases;              /* for how much waits only */
	struct list_experiment_use experiments; /* where has_experiments says so; else empty */
	bool has_experiments;
	struct web *web;
	void (*done)(int err, struct status_request *s);
	struct http_request *request;                          /* /api/v1/status, /metrics */
	void (*on_json)(int err, json_t *status, void *owner); /* web_status() */
	void *owner;
};

/* Sets web and the rest; done runs on the loop, also inside this call when the store is busy. */
void status_read(struct web *w, struct status_request *s);

#endif
