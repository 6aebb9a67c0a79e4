/* For tests with their own fake store and GitHub. Both complete operations at the end of the turn, never inside the
 * call, as the real ones do; subscribers can be notified; and operations are recorded as one line of words. */
#pragma once

#include <setjmp.h>

#include <cmocka.h>

#include "config/config.h"
#include "db/seats.h"
#include "db/store.h"
#include "github/github.h"
#include "loop/loop.h"
#include "replaces.h"

REPLACES(store_subscribe);
REPLACES(store_epoch);
REPLACES(store_is_acting);
REPLACES(store_has_seat);
REPLACES(store_add_part);
REPLACES(config_ref);
REPLACES(config_unref);

static struct {
	void (*on_topic)(unsigned topics, void *owner);
	void *owner;
	unsigned topics;
} subscriber;

static char traced[1024];
static int64_t this_epoch; /* store_epoch() */
static bool is_node_silent;

static inline void stand_ins_reset(void)
{
	memset(&subscriber, 0, sizeof(subscriber));
	this_epoch = 0;
	is_node_silent = false;
	traced[0] = '\0';
}

static inline void PRINTF(1, 2) trace(const char *format, ...)
{
	size_t n = strlen(traced);
	va_list args;

	if (n)
		n += (size_t)snprintf(traced + n, sizeof(traced) - n, " ");
	va_start(args, format);
	vsnprintf(traced + n, sizeof(traced) - n, format, args);
	va_end(args);
}

void store_subscribe(struct store *s, unsigned topics, void (*on_topic)(unsigned topics, void *owner), void *owner)
{
	(void)s;
	subscriber.on_topic = on_topic;
	subscriber.owner = owner;
	subscriber.topics = topics;
}

int64_t store_epoch(const struct store *s)
{
	(void)s;
	return this_epoch;
}

bool store_is_acting(const struct store *s)
{
	(void)s;
	return !is_node_silent;
}

bool store_has_seat(const struct store *s, enum seat seat)
{
	(void)s;
	(void)seat;
	return true;
}

void store_add_part(struct store *s, const struct seat_part *part)
{
	(void)s;
	(void)part;
}

static inline void ring(void) { subscriber.on_topic(subscriber.topics, subscriber.owner); }

/* ---- at the end of the turn ---- */

static inline void op_done(void *p)
{
	struct store_op *op = p;

	op->done(op);
}

static inline void end_op(struct loop *l, struct store_op *op) { loop_reap(l, op_done, op); }

static inline void query_done(void *p)
{
	struct store_query *q = p;

	q->done(q);
}

static inline void end_query(struct loop *l, struct store_query *q) { loop_reap(l, query_done, q); }

static inline void call_done(void *p)
{
	struct github_call *call = p;

	call->done(call);
}

static inline void end_call(struct loop *l, struct github_call *call) { loop_reap(l, call_done, call); }

/* ---- the test's own configuration, which is never freed ---- */

struct config *config_ref(struct config *c) { return c; }

void config_unref(struct config *c) { (void)c; }
