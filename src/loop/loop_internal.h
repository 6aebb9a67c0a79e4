/* What the files of this folder share. No other folder includes it. */
#ifndef LOOP_LOOP_INTERNAL_H
#define LOOP_LOOP_INTERNAL_H

#include <uv.h>

#include "loop/loop.h"

struct reap {
	void (*release)(void *p);
	void *p;
};

struct reap_list {
	struct reap *at;
	size_t n, cap;
};

struct reaper {
	uv_check_t check; /* runs behind the poll of each turn */
	uv_idle_t idle;   /* active while something waits: the poll must not block then */
	struct reap_list waiting;
	struct reap_list spare; /* reused memory */
	bool is_closing;
};

struct loop {
	uv_loop_t uv;
	uv_async_t keep_alive;    /* holds loop_run() until loop_stop() */
	uv_prepare_t before_poll; /* loop_run_until(): looks at is_done before it would block */
	const bool *is_done;
	uv_thread_t thread;
	struct reaper reaper;
	struct signal_watch *signals; /* owned list */
	bool is_running, is_stopping;
};

void reaper_init(struct loop *l);
/* Releases what waits and closes the handles. */
void reaper_close(struct loop *l);
/* Frees the memory; after the handles are closed. */
void reaper_release(struct loop *l);

#endif
