/* An empty database, which each process makes once and copies for each of its tests. The migrations take four fifths of the time
 * that a new database needs. */
#pragma once

#include <ftw.h>

#include "db/store.h"
#include "loop/loop.h"

static char empty_store_dir[64];
static pid_t empty_store_pid; /* not a child that a test forks */

static inline int empty_store_remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)type;
	(void)f;
	return remove(path);
}

static inline void empty_store_remove(void)
{
	if (getpid() == empty_store_pid)
		nftw(empty_store_dir, empty_store_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void empty_store_on_closed(void *owner) { *(bool *)owner = true; }

static inline void empty_store_make(void)
{
	struct loop *l = loop_new();
	struct error e = {0};
	struct store *s;
	bool is_closed = false;

	snprintf(empty_store_dir, sizeof(empty_store_dir), "/tmp/outpost-empty-XXXXXX");
	assert_non_null(mkdtemp(empty_store_dir));
	empty_store_pid = getpid();
	atexit(empty_store_remove);
	if (store_open(l, &(struct store_options){.state_dir = empty_store_dir}, &s, &e))
		fail_msg("store_open: %s", e.text);
	store_close(s, empty_store_on_closed, &is_closed);
	loop_run_until(l, &is_closed);
	loop_free(l);
}

/* Puts the empty database into the folder of a store, which is created. A database that is there stays. */
static inline void empty_store_put(const char *state_dir)
{
	char from[128], to[PATH_MAX], bytes[1 << 16];
	ssize_t n;

	if (!empty_store_dir[0])
		empty_store_make();
	snprintf(from, sizeof(from), "%s/outpost.db", empty_store_dir);
	snprintf(to, sizeof(to), "%s/outpost.db", state_dir);
	mkdir(state_dir, 0700);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return;
	int in = open(from, O_RDONLY | O_CLOEXEC);
	assert_true(in >= 0);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(out, bytes, (size_t)n), n);
	assert_int_equal(n, 0);
	close(in);
	close(out);
}
