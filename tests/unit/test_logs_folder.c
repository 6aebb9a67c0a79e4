/* Finished logs in a folder that daemons share: moving them there, reading ranges, damage, retention. */
#include "logs_rig.h"

#include <signal.h>
#include <sys/wait.h>

static char *shared; /* the folder */

static int setup_shared(void **state)
{
	rig_setup_folder(state);
	shared = xasprintf("%s/shared", rig_dir);
	assert_int_equal(mkdir(shared, 0700), 0);
	rig_place.folder = shared;
	rig_open();
	return 0;
}

static int teardown_shared(void **state)
{
	rig_teardown(state);
	free(shared);
	return 0;
}

static char *shared_path(const char *name) { return xasprintf("%s/%s", shared, name); }

static bool has_shared(const char *name)
{
	char *path = shared_path(name);
	bool has = access(path, F_OK) == 0;

	free(path);
	return has;
}

static bool has_local(const char *name)
{
	char *path = rig_path(name);
	struct stat st;
	bool has = lstat(path, &st) == 0;

	free(path);
	return has;
}

/* A text that zstd cannot make much shorter. */
static void assert_ranges(int64_t job, const char *text, size_t n)
{
	for (int i = 0; i < 60; i++) {
		int64_t offset = (int64_t)(random_fraction() * (double)(n + 1));
		size_t max = (size_t)(random_fraction() * 300000), left = n - (size_t)offset;

		assert_int_equal(rig_read(job, offset, max), 0);
		assert_int_equal(read_end, n);
		assert_true(read_is_complete);
		assert_true(read_n <= max && read_n <= left);
		assert_true(read_n > 0 || max == 0 || left == 0);
		assert_memory_equal(read_bytes, text + offset, read_n);
	}
	for (size_t at = 0; at < n; at += read_n) {
		assert_int_equal(rig_read(job, (int64_t)at, 128 * 1024), 0);
		assert_true(read_n > 0);
		assert_memory_equal(read_bytes, text + at, read_n);
	}
	assert_int_equal(rig_read(job, (int64_t)n + 1, 10), ERR_RANGE);
	assert_int_equal(rig_read(job, -1, 10), ERR_RANGE);
}

/* ---- moving and reading ---- */

static void a_finished_log_moves_and_every_range_of_it_is_read(void **state)
{
	const size_t n = 3 << 20;
	char *text = rig_random_text(n);

	(void)state;
	rig_put_whole(1234, text);
	rig_put_whole(1, "short");
	rig_put_whole(2, "");
	rig_wait_moved(3);
	assert_true(has_shared("000000001/1234.log.zst"));
	assert_false(has_local("d2/1234.log.zst"));
	assert_true(has_local("d2/1234.log.moved"));
	assert_int_equal(logs_stats(rig_logs)->n_to_move, 0);
	assert_ranges(1234, text, n);
	ASSERT_TEXT(1, "short");
	ASSERT_TEXT(2, "");
	assert_int_equal(rig_read(3, 0, 10), ERR_NOT_FOUND);
	/* The client did not get the answer and sends the end again. */
	ASSERT_LAST(1, 0, "short", 0, 5);
	assert_true(put_is_complete);
	ASSERT_PUT(1, 5, "", 0, 5);
	ASSERT_PUT(1, 5, "more", ERR_EXISTS, 5);
	ASSERT_PUT(1, 9, "", ERR_EXISTS, 5);
	assert_false(has_local("01/1.log"));
	free(text);
}

static void another_daemon_reads_it(void **state)
{
	const size_t n = 1 << 20;
	char *text = rig_random_text(n), *path = rig_path("d2");

	(void)state;
	rig_put_whole(1234, text);
	rig_wait_moved(1);
	rig_close();
	nftw(path, rig_remove, 8, FTW_DEPTH | FTW_PHYS); /* its own folder has nothing of this log */
	rig_open();
	assert_ranges(1234, text, n);
	FREE_ALL(text, path);
}

static void logs_of_an_earlier_time_are_moved_at_a_start(void **state)
{
	(void)state;
	rig_close();
	rig_place.folder = NULL;
	rig_open();
	rig_put_whole(7, "before the place was set");
	rig_put_whole(8, "this one too");
	rig_wait_packed(2);
	rig_close();
	rig_place.folder = shared;
	rig_open();
	rig_wait_moved(2);
	ASSERT_TEXT(7, "before the place was set");
	ASSERT_TEXT(8, "this one too");
	assert_false(has_local("07/7.log.zst"));
}

/* ---- trouble ---- */

/* A limit on a file's size stands for a full folder, and a file in place of a subfolder for any other failure. */
static void a_log_waits_while_the_folder_fails(void **state)
{
	const size_t n = 600000;
	char *text = rig_random_text(n), *path = shared_path("000000000");
	struct error e = {0};

	(void)state;
	rig_close();
	rig_place.folder = NULL;
	rig_open();
	rig_put_whole(5, text);
	rig_wait_packed(1);
	rig_close();
	rig_place.folder = shared;
	rig_limit_files(100000);
	rig_open();
	READ_UNTIL_FAILURE(0, 5, text);
	rig_limit_files(RLIM_INFINITY);
	assert_false(has_shared("000000000/5.log.zst"));
	assert_int_equal(logs_stats(rig_logs)->n_to_move, 1);
	rig_wait_moved(1);
	assert_ranges(5, text, n);
	rig_close();
	nftw(path, rig_remove, 8, FTW_DEPTH | FTW_PHYS);
	assert_int_equal(file_write_atomic(path, "x", 1, 0600, &e), 0);
	rig_open();
	rig_put_whole(6, "waits");
	READ_UNTIL_FAILURE(0, 6, "waits");
	/* It goes on waiting over a restart. */
	rig_reopen();
	READ_UNTIL_FAILURE(0, 6, "waits");
	assert_int_equal(unlink(path), 0);
	rig_wait_moved(1);
	ASSERT_TEXT(6, "waits");
	assert_true(has_shared("000000000/6.log.zst"));
	/* The folder is gone. */
	nftw(shared, rig_remove, 8, FTW_DEPTH | FTW_PHYS);
	rig_put_whole(7, "waits too");
	READ_UNTIL_FAILURE(1, 7, "waits too");
	assert_int_equal(logs_stats(rig_logs)->n_to_move, 1);
	assert_true(has_local("07/7.log.zst"));
	FREE_ALL(text, path);
}

static void overwrite(const char *name, int64_t at, const char *bytes, size_t n, int64_t length)
{
	char *path = shared_path(name);
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, n, at), n);
	if (length >= 0)
		assert_int_equal(ftruncate(fd, length), 0);
	close(fd);
	free(path);
}

static void damage_is_an_error_and_never_a_wrong_text(void **state)
{
	const size_t n = 2 << 20;
	char *text = rig_random_text(n), *path;

	(void)state;
	for (int64_t job = 1; job <= 4; job++)
		rig_put_whole(job, text);
	rig_wait_moved(4);
	overwrite("000000000/1.log.zst", 700000, "damage", 6, -1);
	assert_int_equal(rig_read(1, 0, 10), 0);
	assert_int_equal(rig_read(1, 900000, 200000), ERR_CORRUPT);
	overwrite("000000000/2.log.zst", 0, "", 0, 1000);
	assert_int_equal(rig_read(2, 0, 10), ERR_CORRUPT);
	overwrite("000000000/2.log.zst", 0, "", 0, 3);
	assert_int_equal(rig_read(2, 0, 10), ERR_CORRUPT);
	/* The table of the third is known when it becomes shorter, and of the fourth when it is removed. */
	assert_int_equal(rig_read(3, 0, 10), 0);
	overwrite("000000000/3.log.zst", 0, "", 0, 500000);
	assert_int_equal(rig_read(3, 1500000, 10), ERR_CORRUPT);
	assert_int_equal(rig_read(4, 0, 10), 0);
	path = shared_path("000000000/4.log.zst");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rig_read(4, 1500000, 10), ERR_NOT_FOUND);
	/* A link is not followed. */
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(rig_read(4, 0, 10), ERR_IO);
	FREE_ALL(text, path);
}

static void an_object_that_was_put_once_more_is_read_as_it_is_now(void **state)
{
	char *text = rig_random_text(2 << 20), *other = rig_random_text(1 << 20), *from, *to;

	(void)state;
	rig_put_whole(1, text);
	rig_put_whole(2, other);
	rig_wait_moved(2);
	assert_int_equal(rig_read(1, 0, 10), 0);
	from = shared_path("000000000/2.log.zst");
	to = shared_path("000000000/1.log.zst");
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(rig_read(1, 1000000, 20), 0);
	assert_int_equal(read_end, 1 << 20);
	assert_memory_equal(read_bytes, other + 1000000, read_n);
	FREE_ALL(text, other, from, to);
}

/* Root may write everywhere, so another user asks. */
static void a_folder_that_cannot_be_used_is_refused(void **state)
{
	struct log_place_options o = {.folder = "/nowhere/logs"};
	struct error e = {0};
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(logs_check_place(&o, &e), ERR_IO);
	assert_string_equal(e.text, "/nowhere/logs: No such file or directory");
	o.folder = shared;
	assert_int_equal(logs_check_place(&o, &e), 0);
	assert_int_equal(chmod(rig_dir, 0755) | chmod(shared, 0555), 0);
	child = fork();
	if (child == 0) {
		struct error why = {0};

		if (geteuid() == 0 && setuid(65534))
			_exit(2);
		_exit(logs_check_place(&o, &why) == ERR_IO && strstr(why.text, "not writable") ? 0 : 1);
	}
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	chmod(shared, 0755);
}

/* ---- retention ---- */

static void set_age(const char *name, int64_t wall_ms)
{
	char *path = shared_path(name);
	struct timespec at = {.tv_sec = wall_ms / 1000};

	assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){at, at}, 0), 0);
	free(path);
}

static void old_logs_are_dropped_and_others_stay(void **state)
{
	const int64_t day = 24 * 3600 * 1000, now = clock_wall_ms();
	struct error e = {0};
	char *left, *foreign;

	(void)state;
	for (int64_t job = 1; job <= 12; job++)
		rig_put_whole(job * 400, "a log");
	rig_wait_moved(12);
	set_age("000000000/400.log.zst", now - 100 * day);
	set_age("000000000/800.log.zst", now - 100 * day);
	set_age("000000001/1600.log.zst", now - 99 * day);
	set_age("000000002/2400.log.zst", now - 80 * day);
	left = shared_path("000000001/.1200.0badcafe");
	foreign = shared_path("000000001/README");
	assert_int_equal(file_write_atomic(left, "half", 4, 0600, &e), 0);
	assert_int_equal(file_write_atomic(foreign, "not a log", 9, 0600, &e), 0);
	set_age("000000001/.1200.0badcafe", now - 2 * day);
	assert_int_equal(rig_drop(now - 90 * day), 3);
	assert_false(has_shared("000000000"));
	assert_false(has_shared("000000001/1600.log.zst"));
	assert_false(has_shared("000000001/.1200.0badcafe"));
	assert_true(has_shared("000000001/README"));
	assert_int_equal(rig_read(400, 0, 10), ERR_NOT_FOUND);
	ASSERT_TEXT(1200, "a log");
	ASSERT_TEXT(2400, "a log");
	assert_int_equal(rig_drop(now - 90 * day), 0);
	assert_int_equal(rig_drop(now + day), 9);
	assert_int_equal(rig_read(2400, 0, 10), ERR_NOT_FOUND);
	FREE_ALL(left, foreign);
}

static void more_logs_than_one_list_has_are_dropped(void **state)
{
	char name[160];

	(void)state;
	for (int64_t job = 3000; job < 5500; job++) {
		if (job % 1000 == 0) {
			snprintf(name, sizeof(name), "%s/%09d", shared, (int)(job / 1000));
			assert_int_equal(mkdir(name, 0700), 0);
		}
		snprintf(name, sizeof(name), "%s/%09d/%d.log.zst", shared, (int)(job / 1000), (int)job);
		int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
		assert_true(fd >= 0);
		close(fd);
	}
	assert_int_equal(rig_drop(clock_wall_ms() - 3600 * 1000), 0);
	assert_int_equal(rig_drop(clock_wall_ms() + 3600 * 1000), 2500);
	assert_false(has_shared("000000003"));
}

#define SHARED_TEST(f) cmocka_unit_test_setup_teardown(f, setup_shared, teardown_shared)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    SHARED_TEST(a_finished_log_moves_and_every_range_of_it_is_read),
	    SHARED_TEST(another_daemon_reads_it),
	    SHARED_TEST(logs_of_an_earlier_time_are_moved_at_a_start),
	    SHARED_TEST(a_log_waits_while_the_folder_fails),
	    SHARED_TEST(damage_is_an_error_and_never_a_wrong_text),
	    SHARED_TEST(an_object_that_was_put_once_more_is_read_as_it_is_now),
	    SHARED_TEST(a_folder_that_cannot_be_used_is_refused),
	    SHARED_TEST(old_logs_are_dropped_and_others_stay),
	    SHARED_TEST(more_logs_than_one_list_has_are_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
