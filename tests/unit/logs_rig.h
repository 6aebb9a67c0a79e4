/* Logs in a temporary folder, and one call for each operation: submit, wait, look. */
#pragma once

#include <setjmp.h>

#include <cmocka.h>

#include <ftw.h>
#include <signal.h>
#include <sys/resource.h>
#include <uv.h>

#include "logs/logs.h"

static struct loop *rig_loop;
static struct logs *rig_logs;
static char rig_dir[64];
static struct log_place_options rig_place; /* of finished logs; empty: they stay */
static struct http_client *rig_client;     /* for S3 */
static struct store *rig_store;            /* where logs grow; NULL: in the folder */

static inline int rig_remove(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)type;
	(void)f;
	return remove(path);
}

static inline void rig_open(void)
{
	struct error e = {0};

	if (logs_open(rig_loop, rig_dir, &rig_logs, &e))
		fail_msg("%s", e.text);
	if (rig_store)
		logs_grow_in(rig_logs, rig_store);
	if (logs_keep_in(rig_logs, &rig_place, rig_client, &e))
		fail_msg("%s", e.text);
}

static inline void rig_closed(void *is_closed)
{
	*(bool *)is_closed = true;
	rig_logs = NULL;
}

static inline void rig_close(void)
{
	bool is_closed = false;

	logs_close(rig_logs, rig_closed, &is_closed);
	loop_run_until(rig_loop, &is_closed);
	assert_true(is_closed);
}

static inline void rig_reopen(void)
{
	rig_close();
	rig_open();
}

/* A loop and an empty folder. */
static inline int rig_setup_folder(void **state)
{
	(void)state;
	/* Tests cause failures on purpose, which the journal logs. */
	log_setup(LOG_ERROR + 1, LOG_TEXT);
	snprintf(rig_dir, sizeof(rig_dir), "/tmp/outpost-logs-XXXXXX");
	assert_non_null(mkdtemp(rig_dir));
	rig_loop = loop_new();
	return 0;
}

static inline int rig_setup(void **state)
{
	rig_setup_folder(state);
	rig_open();
	return 0;
}

/* The path of something under logs/. free() */
static inline char *rig_path(const char *name) { return xasprintf("%s/logs/%s", rig_dir, name); }

/* The same in a subfolder, which is created if necessary. */
static inline char *rig_made_path(const char *name)
{
	char *path = rig_path(name), *slash = strrchr(path, '/');

	*slash = '\0';
	if (mkdir(path, 0700))
		assert_int_equal(errno, EEXIST);
	*slash = '/';
	return path;
}

/* ---- appending ---- */

struct put {
	struct log_append a;
	bool is_done;
	char *owned;
};

static inline void rig_put_done(struct log_append *a) { CONTAINER_OF(a, struct put, a)->is_done = true; }

static inline void rig_put_start(struct put *p, int64_t job, int64_t offset, const char *text, size_t n, bool is_last)
{
	p->is_done = false;
	p->a = (struct log_append){
	    .job_id = job, .offset = offset, .bytes = text, .n = n, .is_last = is_last, .done = rig_put_done};
	logs_append(rig_logs, &p->a);
}

static int64_t put_end;
static bool put_is_complete;

static inline int rig_put(int64_t job, int64_t offset, const char *text, size_t n, bool is_last)
{
	struct put p;

	rig_put_start(&p, job, offset, text, n, is_last);
	loop_run_until(rig_loop, &p.is_done);
	put_end = p.a.end;
	put_is_complete = p.a.is_complete;
	assert_int_equal(p.a.err != 0, *p.a.why.text != '\0');
	return p.a.err;
}

#define ASSERT_PIECE(job, offset, text, is_last, want_err, want_end)                                                   \
	do {                                                                                                           \
		assert_int_equal(rig_put(job, offset, text, strlen(text), is_last), want_err);                         \
		assert_int_equal(put_end, want_end);                                                                   \
	} while (0)
#define ASSERT_PUT(job, offset, text, want_err, want_end)  ASSERT_PIECE(job, offset, text, false, want_err, want_end)
#define ASSERT_LAST(job, offset, text, want_err, want_end) ASSERT_PIECE(job, offset, text, true, want_err, want_end)

/* ---- reading ---- */

static char *read_bytes; /* of the last rig_read(), freed by the next */
static size_t read_n;
static int64_t read_end;
static bool read_is_complete, read_is_done;

static inline void rig_read_done(struct log_read *r)
{
	(void)r;
	read_is_done = true;
}

static inline int rig_read(int64_t job, int64_t offset, size_t n)
{
	struct log_read r = {.job_id = job, .offset = offset, .max_bytes = n, .done = rig_read_done};

	free(read_bytes);
	read_is_done = false;
	logs_read(rig_logs, &r);
	loop_run_until(rig_loop, &read_is_done);
	read_bytes = r.bytes;
	read_n = r.n;
	read_end = r.end;
	read_is_complete = r.is_complete;
	return r.err;
}

#define ASSERT_TEXT(job, text)                                                                                         \
	do {                                                                                                           \
		assert_int_equal(rig_read(job, 0, 1 << 20), 0);                                                        \
		assert_int_equal(read_n, strlen(text));                                                                \
		assert_memory_equal(read_bytes, text, read_n);                                                         \
		assert_int_equal(read_end, strlen(text));                                                              \
	} while (0)

/* Sleeps until the loop has something to do, and does it. */
static inline void rig_turn(void) { uv_run(loop_uv(rig_loop), UV_RUN_ONCE); }

/* Runs the loop until the number of failures since the start is larger than n. Meanwhile the log stays readable. */
#define READ_UNTIL_FAILURE(n, job, text)                                                                               \
	while (logs_stats(rig_logs)->n_failures <= (n)) {                                                              \
		rig_turn();                                                                                            \
		ASSERT_TEXT(job, text);                                                                                \
	}

/* Runs the loop until this number of logs has been compressed since the start. */
static inline void rig_wait_packed(int64_t n)
{
	while (logs_stats(rig_logs)->n_packed < n)
		rig_turn();
}

/* Runs the loop until this number of logs has been moved since the start. */
static inline void rig_wait_moved(int64_t n)
{
	while (logs_stats(rig_logs)->n_moved < n)
		rig_turn();
}

/* ---- dropping ---- */

static bool drop_is_done;

static inline void rig_drop_done(int64_t n, void *owner)
{
	*(int64_t *)owner = n;
	drop_is_done = true;
}

static inline int64_t rig_drop(int64_t before_ms)
{
	int64_t n = -1;

	drop_is_done = false;
	logs_drop_older(rig_logs, before_ms, rig_drop_done, &n);
	loop_run_until(rig_loop, &drop_is_done);
	return n;
}

static inline int rig_teardown(void **state)
{
	(void)state;
	free(read_bytes);
	read_bytes = NULL;
	if (rig_logs)
		rig_close();
	if (rig_client)
		http_client_close(rig_client, NULL, NULL);
	rig_client = NULL;
	rig_place = (struct log_place_options){0};
	loop_stop(rig_loop);
	loop_run(rig_loop);
	loop_free(rig_loop);
	nftw(rig_dir, rig_remove, 8, FTW_DEPTH | FTW_PHYS);
	return 0;
}

#define RIG_TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

/* Text that hardly compresses. free(). */
static inline char *rig_random_text(size_t n)
{
	char *text = xmalloc(n + 1);

	random_bytes(text, n);
	for (size_t i = 0; i < n; i++)
		text[i] = (char)('0' + (unsigned char)text[i] % 64);
	text[n] = '\0';
	return text;
}

static inline void rig_put_whole(int64_t job, const char *text)
{
	assert_int_equal(rig_put(job, 0, text, strlen(text), true), 0);
}

/* A limit on the size of files stands for a full disk. */
static inline void rig_limit_files(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}
