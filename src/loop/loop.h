/* The one event loop. All decisions and all sockets are on it. Blocking work runs on the store's threads or in
 * the pool, and its result comes back through an inbox.
 *
 * Higher layers see timers, inboxes, pool work and signals; only http/ and daemon/ see libuv.
 *
 * Thread: the loop thread, except where a function says otherwise. Times are in milliseconds. */
#pragma once

struct loop;
struct uv_loop_s;

/* ---- inboxes, by which other threads pass results to the loop: inbox.c. The caller owns an inbox until inbox_close() ---- */

struct inbox_item {
	struct inbox_item *next;
	void (*on_loop)(struct inbox_item *item); /* runs once, on the loop thread; it may free the item */
};
struct inbox;
struct inbox *inbox_new(struct loop *l);
/* Queues the item, which its owner keeps alive until on_loop. Items run in order.
 * Thread: any, until inbox_close(). Never blocks on work, never fails. */
void inbox_post(struct inbox *in, struct inbox_item *item);
/* The same for a chain linked by next (NULL-terminated), in that order, with one wake-up. */
void inbox_post_list(struct inbox *in, struct inbox_item *first, struct inbox_item *last);
/* Whether an open inbox keeps loop_run() and loop_run_until() running. A new one does. */
void inbox_keep_loop(struct inbox *in, bool is_kept);
/* Call it after the posting threads were joined. Runs the queued items (inside this call), then frees the
 * inbox. NULL is fine. */
void inbox_close(struct inbox *in);

/* ---- the loop ---- */

/* It also makes the process ignore SIGPIPE, so that writing to a closed connection is an error code.
 * Owns: the caller, with loop_free(). */
struct loop *loop_new(void);
/* Runs until loop_stop() was called and every handle is closed. The calling thread becomes the loop thread. */
void loop_run(struct loop *l);
/* Runs turns until a callback sets *is_done, or until no handle is left that could run a callback; for
 * blocking calls and tests. It may be called again. */
void loop_run_until(struct loop *l, const bool *is_done);
/* Makes loop_run() return once every handle is closed. */
void loop_stop(struct loop *l);
/* Asserts that every handle was closed (uv_loop_close() == 0). NULL is fine. */
void loop_free(struct loop *l);
struct uv_loop_s *loop_uv(struct loop *l); /* for http/ and daemon/ */
/* The time at the beginning of this turn, on a clock that never jumps. */
int64_t loop_now_ms(const struct loop *l);
bool loop_is_this_thread(const struct loop *l); /* any thread */

/* ---- timers ---- */
struct timer;
typedef void timer_cb(struct timer *t);
/* Owns: the caller, with timer_close(), which it calls before it frees `owner`. */
struct timer *timer_new(struct loop *l, timer_cb *cb, void *owner);
void *timer_owner(const struct timer *t);
void timer_start(struct timer *t, int64_t after_ms); /* runs cb once; starts again if it is running */
void timer_stop(struct timer *t);
bool timer_is_running(const struct timer *t);
/* The callback does not run again; the timer frees itself later. NULL is fine. */
void timer_close(struct timer *t);

/* ---- pool: blocking calls outside the store ---- */
struct pool_work {
	void (*work)(struct pool_work *w);  /* on a thread of the pool */
	void (*after)(struct pool_work *w); /* on the loop, once; it may free w */

	/* the pool's own */
	struct pool *pool;
	STAILQ_ENTRY(pool_work) link;
	struct inbox_item done;
};
/* The caller owns w and keeps it until after() runs. */
void pool_submit(struct loop *l, struct pool_work *w);
/* Lowers the priority of the calling thread below all threads that did not call this. It has no effect while
 * a core is free. For work that nothing else waits for. Thread: any except the loop. */
void thread_give_way(void);

/* ---- signals ---- */
typedef void signal_cb(int signum, void *owner);
/* Calls cb for each signal until loop_close_signals(), on the loop and not in a signal handler. */
void loop_on_signal(struct loop *l, int signum, signal_cb *cb, void *owner);
void loop_close_signals(struct loop *l);

/* ---- reaper: frees an object whose callbacks may still be on the stack ---- */
/* Calls release(p) once, after the poll of this turn, when no callback is on the stack, or in loop_free(). */
void loop_reap(struct loop *l, void (*release)(void *p), void *p);
