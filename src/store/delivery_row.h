/* Deliveries as rows: what op_delivery.c, op_plan.c and view_delivery.c share. */
#ifndef STORE_DELIVERY_ROW_H
#define STORE_DELIVERY_ROW_H

#include "store/db.h"
#include "store/deliveries.h"

/* Stores a delivery that Outpost made itself (a retest, a reconciled head), planned
 * already: its body is what vendors get. */
void delivery_put_synthetic(struct db *d, const char *guid, const char *event, const char *action,
    const char *repository, const char *body, size_t body_bytes, int64_t now_ms);
/* The same with the body of one that is there. False: its body is gone. */
bool delivery_copy(struct db *d, const char *from_guid, const char *guid, int64_t now_ms);
struct delivery_place {
	char state[16];   /* "" when there is no such delivery */
	bool was_planned; /* ever, also before a replay */
};
struct delivery_place delivery_find(struct db *d, int64_t id);
/* Ends or repeats planning. `state` as stored; error may be NULL. */
void delivery_enter(struct db *d, int64_t id, const char *state, const char *error, int64_t now_ms);

#endif
