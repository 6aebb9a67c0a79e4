/* Lost webhooks: GitHub does not send a failed delivery again by itself, and an outage on
 * either side may last hours. On start and on the interval this looks, in this order, at
 *
 *   1. the App's list of deliveries: those that failed and are not on disk are asked for
 *      again, each at most three times;
 *   2. the open pull requests' heads, and those that are open only in the database;
 *   3. the tips of upstream's branches.
 *
 * What 2 and 3 find is planned from a body made of the API's answer. Nothing is doubled by
 * that: the store gives a head one dispatch per runner and round, whoever told of it first,
 * and leaves aside what is older than what it knows, so a webhook that is on its way while
 * we look needs no special care. The first look at an empty database only notes what is
 * there.
 *
 * One pass at a time, one request at a time. Thread: loop. */
#ifndef DISPATCH_RECONCILE_H
#define DISPATCH_RECONCILE_H

struct dispatch;
struct reconciler;

struct reconciler *reconciler_new(struct dispatch *d);
/* A look now, or after the one that is on. */
void reconciler_ring(struct reconciler *r);
/* The interval may be another one. */
void reconciler_configure(struct reconciler *r);
void reconciler_close(struct reconciler *r);

#endif
