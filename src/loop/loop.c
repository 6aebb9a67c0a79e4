/* The event loop and everything that runs on it. A handle of the loop's own keeps it running until
 * loop_stop(), so a daemon without work waits. After that it ends once every owner has closed its handles: a
 * handle that was not closed fails an assertion in loop_free() instead of a crash later. */
#include "loop/loop.h"

#include <signal.h>
#include <sys/resource.h>
#include <uv.h>

struct reap {
	void (*release)(void *p);
	void *p;
};

struct reap_list {
	struct reap *at;
	size_t n;
};

struct signal_watch {
	uv_signal_t uv;
	signal_cb *cb;
	void *owner;
	SLIST_ENTRY(signal_watch) link;
};

struct loop {
	uv_loop_t uv;
	uv_async_t keep_alive;    /* keeps loop_run() running until loop_stop() */
	uv_prepare_t before_poll; /* runs only in loop_run_until() */
	const bool *is_done;      /* of loop_run_until() */
	uv_thread_t thread;
	uv_check_t after_poll;    /* releases the reaped objects */
	uv_idle_t no_wait;        /* active while something waits for release: then the poll does not block */
	struct reap_list reaping; /* waits for release */
	SLIST_HEAD(, signal_watch) signals;
	struct pool *pool; /* NULL until work is submitted */
	bool is_running, is_stopping, is_freeing;
};

static void must_succeed(int rc) { assert(rc == 0); }

static void on_keep_alive(uv_async_t *handle) { (void)handle; /* never sent */ }

/* libuv runs due timers before the poll. Without this check a turn in which a timer sets is_done would still
 * block in the poll until the next event. */
static void on_before_poll(uv_prepare_t *handle)
{
	struct loop *l = CONTAINER_OF(handle, struct loop, before_poll);

	if (*l->is_done)
		uv_stop(&l->uv);
}

/* ---- reaper ---- */

/* A release may reap more objects, which wait for the next round. */
static void release_reaped(struct loop *l)
{
	struct reap_list batch = l->reaping;

	l->reaping = (struct reap_list){0};
	for (size_t i = 0; i < batch.n; i++)
		batch.at[i].release(batch.at[i].p);
	free(batch.at);
}

static void on_no_wait(uv_idle_t *handle) { (void)handle; /* an active idle handle keeps the poll from blocking */ }

/* No callback of this loop is on the stack here. */
static void on_after_poll(uv_check_t *handle)
{
	struct loop *l = CONTAINER_OF(handle, struct loop, after_poll);

	if (l->reaping.n == 0)
		return;
	release_reaped(l);
	if (l->reaping.n == 0)
		uv_idle_stop(&l->no_wait);
}

void loop_reap(struct loop *l, void (*release)(void *p), void *p)
{
	*ARRAY_PUSH(l->reaping.at, l->reaping.n) = (struct reap){release, p};
	if (l->reaping.n == 1 && !l->is_freeing)
		uv_idle_start(&l->no_wait, on_no_wait);
}

/* ---- the loop ---- */

static void pool_free(struct pool *p);

struct loop *loop_new(void)
{
	struct loop *l = xcalloc(1, sizeof(*l));

	signal(SIGPIPE, SIG_IGN);
	must_succeed(uv_loop_init(&l->uv));
	must_succeed(uv_async_init(&l->uv, &l->keep_alive, on_keep_alive));
	uv_prepare_init(&l->uv, &l->before_poll);
	uv_unref((uv_handle_t *)&l->before_poll);
	uv_check_init(&l->uv, &l->after_poll);
	uv_check_start(&l->after_poll, on_after_poll);
	uv_unref((uv_handle_t *)&l->after_poll);
	uv_idle_init(&l->uv, &l->no_wait);
	SLIST_INIT(&l->signals);
	l->thread = uv_thread_self();
	return l;
}

void loop_run(struct loop *l)
{
	l->thread = uv_thread_self();
	l->is_running = true;
	uv_run(&l->uv, UV_RUN_DEFAULT);
	l->is_running = false;
}

void loop_run_until(struct loop *l, const bool *is_done)
{
	l->thread = uv_thread_self();
	l->is_running = true;
	if (!l->is_stopping)
		uv_unref((uv_handle_t *)&l->keep_alive);
	l->is_done = is_done;
	uv_prepare_start(&l->before_poll, on_before_poll);
	while (!*is_done && uv_run(&l->uv, UV_RUN_ONCE))
		continue;
	uv_prepare_stop(&l->before_poll);
	if (!l->is_stopping)
		uv_ref((uv_handle_t *)&l->keep_alive);
	l->is_running = false;
}

void loop_stop(struct loop *l)
{
	if (l->is_stopping)
		return;
	l->is_stopping = true;
	uv_close((uv_handle_t *)&l->keep_alive, NULL);
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	loop_stop(l);
	while (l->reaping.n)
		release_reaped(l);
	l->is_freeing = true;
	pool_free(l->pool);
	uv_close((uv_handle_t *)&l->after_poll, NULL);
	uv_close((uv_handle_t *)&l->no_wait, NULL);
	uv_close((uv_handle_t *)&l->before_poll, NULL);
	/* one turn for the close callbacks, including those of handles that the caller closed */
	uv_run(&l->uv, UV_RUN_NOWAIT);
	must_succeed(uv_loop_close(&l->uv));
	while (l->reaping.n) /* from these callbacks */
		release_reaped(l);
	free(l);
}

struct uv_loop_s *loop_uv(struct loop *l) { return &l->uv; }

int64_t loop_now_ms(const struct loop *l) { return (int64_t)uv_now(&l->uv); }

bool loop_is_this_thread(const struct loop *l)
{
	uv_thread_t self = uv_thread_self();

	return uv_thread_equal(&l->thread, &self) != 0;
}

/* ---- timers ---- */

struct timer {
	uv_timer_t uv;
	timer_cb *cb;
	void *owner;
};

static void on_timer_due(uv_timer_t *handle)
{
	struct timer *t = CONTAINER_OF(handle, struct timer, uv);

	t->cb(t);
}

static void on_timer_closed(uv_handle_t *handle) { free(CONTAINER_OF(handle, struct timer, uv)); }

struct timer *timer_new(struct loop *l, timer_cb *cb, void *owner)
{
	struct timer *t = xcalloc(1, sizeof(*t));

	uv_timer_init(&l->uv, &t->uv);
	t->cb = cb;
	t->owner = owner;
	return t;
}

void *timer_owner(const struct timer *t) { return t->owner; }

void timer_start(struct timer *t, int64_t after_ms)
{
	struct loop *l = CONTAINER_OF(t->uv.loop, struct loop, uv);

	/* The loop's clock stands still between runs. Without an update the timer would count from the last
	 * turn and run too early. */
	if (!l->is_running)
		uv_update_time(&l->uv);
	uv_timer_start(&t->uv, on_timer_due, after_ms > 0 ? (uint64_t)after_ms : 0, 0);
}

void timer_stop(struct timer *t) { uv_timer_stop(&t->uv); }

bool timer_is_running(const struct timer *t) { return uv_is_active((const uv_handle_t *)&t->uv) != 0; }

void timer_close(struct timer *t)
{
	if (!t)
		return;
	assert(!uv_is_closing((uv_handle_t *)&t->uv));
	uv_close((uv_handle_t *)&t->uv, on_timer_closed);
}

/* ---- pool ---- */

enum { N_POOL_THREADS = 4 };
enum { LOW_PRIORITY_NICE = 10 }; /* a tenth of the weight of nice 0 */

struct pool {
	/* shared, under lock */
	uv_mutex_t lock;
	uv_cond_t has_work;
	STAILQ_HEAD(, pool_work) queue;
	bool is_stopping;

	uv_thread_t threads[N_POOL_THREADS];
	struct inbox *done; /* work whose after() is due */
	size_t n_running;   /* loop thread: submitted, and after() has not run */
};

void thread_give_way(void)
{
	/* On Linux this is the nice value of the thread, not of the process: setpriority(2), "C library/kernel
	 * differences". On a failure the thread keeps its priority. */
	(void)setpriority(PRIO_PROCESS, 0, LOW_PRIORITY_NICE);
}

static void pool_thread(void *arg)
{
	struct pool *p = arg;

	thread_give_way();
	uv_mutex_lock(&p->lock);
	for (;;) {
		struct pool_work *w = STAILQ_FIRST(&p->queue);

		if (w) {
			STAILQ_REMOVE_HEAD(&p->queue, link);
			uv_mutex_unlock(&p->lock);
			w->work(w);
			inbox_post(p->done, &w->done);
			uv_mutex_lock(&p->lock);
		} else if (p->is_stopping) {
			break;
		} else {
			uv_cond_wait(&p->has_work, &p->lock);
		}
	}
	uv_mutex_unlock(&p->lock);
}

static struct pool *pool_new(struct loop *l)
{
	struct pool *p = xcalloc(1, sizeof(*p));

	must_succeed(uv_mutex_init(&p->lock));
	must_succeed(uv_cond_init(&p->has_work));
	STAILQ_INIT(&p->queue);
	p->done = inbox_new(l);
	for (size_t i = 0; i < N_POOL_THREADS; i++)
		must_succeed(uv_thread_create(&p->threads[i], pool_thread, p));
	return p;
}

static void pool_free(struct pool *p)
{
	if (!p)
		return;
	assert(p->n_running == 0);
	uv_mutex_lock(&p->lock);
	p->is_stopping = true;
	uv_cond_broadcast(&p->has_work);
	uv_mutex_unlock(&p->lock);
	for (size_t i = 0; i < N_POOL_THREADS; i++)
		uv_thread_join(&p->threads[i]);
	inbox_close(p->done);
	uv_cond_destroy(&p->has_work);
	uv_mutex_destroy(&p->lock);
	free(p);
}

/* Work that runs keeps the loop running; an idle pool does not. */
static void pool_count(struct pool *p, int more)
{
	p->n_running += (size_t)more;
	inbox_keep_loop(p->done, p->n_running > 0);
}

static void on_pool_work_done(struct inbox_item *item)
{
	struct pool_work *w = CONTAINER_OF(item, struct pool_work, done);

	pool_count(w->pool, -1);
	w->after(w);
}

void pool_submit(struct loop *l, struct pool_work *w)
{
	if (!l->pool)
		l->pool = pool_new(l);
	struct pool *p = w->pool = l->pool;
	w->done.on_loop = on_pool_work_done;
	pool_count(p, 1);
	uv_mutex_lock(&p->lock);
	STAILQ_INSERT_TAIL(&p->queue, w, link);
	uv_cond_signal(&p->has_work);
	uv_mutex_unlock(&p->lock);
}

/* ---- signals ---- */

static void on_signal(uv_signal_t *handle, int signum)
{
	struct signal_watch *w = CONTAINER_OF(handle, struct signal_watch, uv);

	w->cb(signum, w->owner);
}

static void on_signal_closed(uv_handle_t *handle) { free(CONTAINER_OF(handle, struct signal_watch, uv)); }

void loop_on_signal(struct loop *l, int signum, signal_cb *cb, void *owner)
{
	struct signal_watch *w = xcalloc(1, sizeof(*w));

	w->cb = cb;
	w->owner = owner;
	must_succeed(uv_signal_init(&l->uv, &w->uv));
	must_succeed(uv_signal_start(&w->uv, on_signal, signum));
	SLIST_INSERT_HEAD(&l->signals, w, link);
}

void loop_close_signals(struct loop *l)
{
	struct signal_watch *w;

	while ((w = SLIST_FIRST(&l->signals))) {
		SLIST_REMOVE_HEAD(&l->signals, link);
		uv_close((uv_handle_t *)&w->uv, on_signal_closed);
	}
}
