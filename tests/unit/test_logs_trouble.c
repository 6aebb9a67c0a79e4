/* Logs under failures: a kill at any moment, a full disk, unfinished work at the start. */
#include "logs_rig.h"

#include <signal.h>
#include <sys/wait.h>

enum { AT_ONCE = 4, JOBS = 400, KILLS = 12, PIECE_MAX = 40000, COMPLETE_AT = 300000 };

/* ---- death ---- */

/* The byte of a job's log at an offset: anything out of place shows. */
static char byte_at(int64_t job, int64_t offset)
{
	return (char)('a' + (job * 7 + offset + offset / 251 + offset / 65521) % 26);
}

static void fill(char *out, int64_t job, int64_t offset, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = byte_at(job, offset + (int64_t)i);
}

struct promise {
	int64_t job, end;
	bool is_complete;
};

/* Appends to a few jobs at a time, completes them, and prints the acknowledged bytes, until it is killed. */
static void write_until_killed(int out, unsigned seed)
{
	char *bytes = xmalloc(PIECE_MAX);
	int64_t open[AT_ONCE] = {1, 2, 3, 4};

	for (int turn = 0; open[0] < JOBS - AT_ONCE; turn++) {
		int64_t job = open[turn % AT_ONCE];
		size_t n = (seed = seed * 1103515245 + 12345) / 65536 % PIECE_MAX;
		struct promise p = {.job = job};

		/* The end of the log according to the server. */
		if (rig_put(job, 0, "", 0, false))
			_exit(1);
		if (put_is_complete) {
			open[turn % AT_ONCE] += AT_ONCE;
			continue;
		}
		fill(bytes, job, put_end, n);
		if (rig_put(job, put_end, bytes, n, put_end + (int64_t)n > COMPLETE_AT))
			_exit(2);
		p.end = put_end;
		p.is_complete = put_is_complete;
		if (write(out, &p, sizeof(p)) != sizeof(p))
			_exit(3);
	}
	free(bytes);
}

static void assert_kept(const struct promise *promises)
{
	for (int64_t job = 1; job <= JOBS; job++) {
		const struct promise *p = &promises[job];
		char want[1024];

		if (p->end == 0)
			continue;
		for (int64_t at = 0;;) {
			assert_int_equal(rig_read(job, at, 1 << 20), 0);
			for (size_t i = 0; i < read_n; i += sizeof(want)) {
				size_t n = read_n - i < sizeof(want) ? read_n - i : sizeof(want);

				fill(want, job, at + (int64_t)i, n);
				assert_memory_equal(read_bytes + i, want, n);
			}
			at += (int64_t)read_n;
			if (read_n == 0)
				break;
		}
		assert_true(read_end >= p->end);
		if (p->is_complete)
			assert_true(read_is_complete);
	}
}

/* Runs in a process of its own, because a process with threads cannot fork under ThreadSanitizer. */
static pid_t start_writer(int out, unsigned seed)
{
	pid_t child = fork();

	if (child != 0)
		return child;
	rig_loop = loop_new();
	rig_open();
	write_until_killed(out, seed);
	_exit(4);
}

static void check_in_child(const struct promise *promises)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		rig_loop = loop_new();
		rig_open();
		assert_kept(promises);
		rig_close();
		_exit(0);
	}
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* In the second half of the rounds, the writer also moves its logs to another folder, those of the first half included. */
static void acknowledged_bytes_survive_kills(void **state)
{
	static struct promise promises[JOBS + 1], p;
	char *folder = xasprintf("%s/shared", rig_dir);
	unsigned seed;

	(void)state;
	random_bytes(&seed, sizeof(seed));
	assert_int_equal(mkdir(folder, 0700), 0);
	for (int round = 0; round < KILLS; round++) {
		int pipes[2], status, left = (int)(seed / 7 % 40) + 1;
		pid_t child;

		rig_place.folder = round < KILLS / 2 ? NULL : folder;
		assert_int_equal(pipe(pipes), 0);
		seed = seed * 1103515245 + 12345;
		child = start_writer(pipes[1], seed);
		close(pipes[1]);
		while (left-- > 0 && read(pipes[0], &p, sizeof(p)) == sizeof(p))
			promises[p.job] = p;
		kill(child, SIGKILL);
		while (read(pipes[0], &p, sizeof(p)) == sizeof(p))
			promises[p.job] = p;
		waitpid(child, &status, 0);
		assert_true(WIFSIGNALED(status));
		close(pipes[0]);
		check_in_child(promises);
	}
	rig_open();
	assert_kept(promises);
	rig_close();
	free(folder);
}

/* ---- half-done work ---- */

static void put_file(const char *name, const char *text)
{
	char *path = rig_made_path(name);
	struct error e = {0};

	assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, &e), 0);
	free(path);
}

static bool has_file(const char *name)
{
	char *path = rig_path(name);
	bool has = access(path, F_OK) == 0;

	free(path);
	return has;
}

static void a_half_compressed_log_is_compressed_again(void **state)
{
	(void)state;
	rig_close();
	put_file("05/5.log.done", "was complete");
	put_file("06/6.log.done", "was compressed, but the rest was not removed");
	put_file("06/6.log.zst", "torn: it was never renamed whole, but let us see");
	put_file("compressing", "half a frame");
	rig_open();
	ASSERT_TEXT(5, "was complete");
	rig_wait_packed(2);
	ASSERT_TEXT(5, "was complete");
	ASSERT_TEXT(6, "was compressed, but the rest was not removed");
	assert_true(read_is_complete);
	assert_false(has_file("05/5.log.done"));
	assert_false(has_file("06/6.log.done"));
	assert_false(has_file("compressing"));
	ASSERT_LAST(5, 0, "was complete", 0, 12);
}

static void a_log_dropped_while_it_is_compressed_stays_dropped(void **state)
{
	const size_t n = 30 << 20;
	char *text = xmalloc(n);

	(void)state;
	memset(text, 'x', n);
	assert_int_equal(rig_put(1, 0, text, n, true), 0);
	assert_int_equal(rig_drop(INT64_MAX), 1);
	/* The log may have been dropped before the pool opened it; then it is not compressed at all. The next log is
	 * compressed in any case. */
	assert_int_equal(rig_put(2, 0, "next", 4, true), 0);
	while (!has_file("02/2.log.zst"))
		rig_turn();
	assert_int_equal(rig_read(1, 0, 10), ERR_NOT_FOUND);
	assert_false(has_file("01/1.log.zst"));
	assert_false(has_file("compressing"));
	free(text);
}

static void closing_in_the_middle_of_compressing_loses_nothing(void **state)
{
	const size_t n = 30 << 20;
	char *text = xmalloc(n);

	(void)state;
	memset(text, 'x', n);
	assert_int_equal(rig_put(1, 0, text, n, true), 0);
	rig_reopen();
	assert_int_equal(rig_read(1, (int64_t)n - 5, 10), 0);
	assert_int_equal(read_n, 5);
	rig_wait_packed(1);
	assert_int_equal(rig_read(1, (int64_t)n - 5, 10), 0);
	assert_memory_equal(read_bytes, "xxxxx", 5);
	free(text);
}

/* ---- a full disk, as a limit on a file's size ---- */

static void a_full_disk_leaves_the_log_as_it_was(void **state)
{
	const size_t n = 100000;
	char *text = xmalloc(n + 1);

	(void)state;
	fill(text, 1, 0, n);
	text[n] = '\0';
	assert_int_equal(rig_put(1, 0, text, 50000, false), 0);
	rig_limit_files(70000);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rig_put(1, 50000, text + 50000, 50000, true), ERR_FULL);
		assert_int_equal(put_end, 50000);
		assert_false(put_is_complete);
	}
	assert_int_equal(rig_read(1, 0, n), 0);
	assert_int_equal(read_n, 50000);
	assert_memory_equal(read_bytes, text, 50000);
	/* Bytes that still fit are accepted. */
	assert_int_equal(rig_put(1, 50000, text + 50000, 10000, false), 0);
	rig_limit_files(RLIM_INFINITY);
	assert_int_equal(rig_put(1, 50000, text + 50000, 50000, true), 0);
	ASSERT_TEXT(1, text);
	rig_wait_packed(1);
	ASSERT_TEXT(1, text);
	free(text);
}

static void a_failed_compression_leaves_the_log_readable_and_is_retried(void **state)
{
	const size_t n = 600000;
	char *text = xmalloc(n + 1);

	(void)state;
	random_bytes(text, n);
	for (size_t i = 0; i < n; i++)
		text[i] = (char)('0' + (unsigned char)text[i] % 64);
	text[n] = '\0';
	assert_int_equal(rig_put(1, 0, text, n, false), 0);
	rig_limit_files(100000);
	assert_int_equal(rig_put(1, (int64_t)n, "", 0, true), 0);
	READ_UNTIL_FAILURE(0, 1, text);
	assert_int_equal(logs_stats(rig_logs)->n_packed, 0);
	rig_limit_files(RLIM_INFINITY);
	ASSERT_TEXT(1, text);
	rig_drop(0);
	rig_wait_packed(1);
	ASSERT_TEXT(1, text);
	assert_true(has_file("01/1.log.zst"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    /* This test runs first, before any thread is started. */
	    cmocka_unit_test_setup_teardown(acknowledged_bytes_survive_kills, rig_setup_folder, rig_teardown),
	    RIG_TEST(a_half_compressed_log_is_compressed_again),
	    RIG_TEST(a_log_dropped_while_it_is_compressed_stays_dropped),
	    RIG_TEST(closing_in_the_middle_of_compressing_loses_nothing),
	    RIG_TEST(a_full_disk_leaves_the_log_as_it_was),
	    RIG_TEST(a_failed_compression_leaves_the_log_readable_and_is_retried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
