/* The one event loop. Everything that decides or talks to a socket runs on it; what
 * blocks runs on the store's threads or in the pool and comes back through an inbox.
 *
 * Layers above see timers, inboxes, pool work and signals; only http/ and daemon/ see uv. */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct loop;
struct uv_loop_s;

/* Also makes the process ignore SIGPIPE: a peer that left is an error code here. */
struct loop *loop_new(void);
/* Runs until loop_stop() and until every handle is closed. Thread: the caller's becomes
 * the loop thread. */
void loop_run(struct loop *l);
/* Runs turns until *is_done, which a callback sets, or until nothing is left that could
 * ever happen; for blocking calls and tests. May be called again. */
void loop_run_until(struct loop *l, const bool *is_done);
/* Asks loop_run() to return once nothing is left open. Thread: loop. */
void loop_stop(struct loop *l);
/* Asserts that no handle leaked (uv_loop_close() == 0). NULL is fine. */
void loop_free(struct loop *l);
struct uv_loop_s *loop_uv(struct loop *l); /* for http/ and daemon/ */
/* Milliseconds that never jump, as of this turn of the loop. */
int64_t loop_now_ms(const struct loop *l);
bool loop_is_this_thread(const struct loop *l);

/* ---- timers: new, start; close before the owner's memory goes ---- */
struct timer;
typedef void timer_cb(struct timer *t);
struct timer *timer_new(struct loop *l, timer_cb *cb, void *owner);
void *timer_owner(const struct timer *t);
void timer_start(struct timer *t, int64_t after_ms); /* once; restarts when running */
void timer_stop(struct timer *t);
bool timer_is_running(const struct timer *t);
/* Asynchronous; the callback will not run again. NULL is fine. The timer frees itself. */
void timer_close(struct timer *t);

/* ---- inbox: other threads hand finished work to the loop ---- */
struct inbox_item {
	struct inbox_item *next;
	void (*on_loop)(struct inbox_item *item); /* runs once, on the loop thread */
};
struct inbox;
struct inbox *inbox_new(struct loop *l);
/* Thread: any, until inbox_close(). Never blocks, never fails. Items run in order. */
void inbox_post(struct inbox *in, struct inbox_item *item);
/* A whole chain linked by next (NULL-terminated), in that order, with one wake-up. */
void inbox_post_list(struct inbox *in, struct inbox_item *first, struct inbox_item *last);
/* Thread: loop, after the threads that post were joined. Runs what is queued (inside this
 * call), then closes and frees itself. NULL is fine. */
void inbox_close(struct inbox *in);

/* ---- pool: blocking calls that are not the store's ---- */
struct pool_work {
	void (*work)(struct pool_work *w);  /* in the pool */
	void (*after)(struct pool_work *w); /* on the loop, once; last use of w by the pool */
	void *internal;
};
/* The caller owns w until after() runs. */
void pool_submit(struct loop *l, struct pool_work *w);

/* ---- signals ---- */
typedef void signal_cb(int signum, void *owner);
/* Until loop_close_signals(). The callback runs on the loop, not in a signal handler. */
void loop_on_signal(struct loop *l, int signum, signal_cb *cb, void *owner);
void loop_close_signals(struct loop *l);

/* ---- reaper: nothing is freed inside its own callback ---- */
/* Calls release(p) once, at the end of this turn of the loop, or in loop_free(). */
void loop_reap(struct loop *l, void (*release)(void *p), void *p);

#endif
