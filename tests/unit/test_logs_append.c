/* Logs while they grow and after: order, offsets, ranges, watching, compressing, dropping. */
#include "logs_rig.h"

enum { JOB = 42, OTHER = 42 + 256 };

static void a_log_grows_by_pieces(void **state)
{
	(void)state;
	ASSERT_PUT(JOB, 0, "one ", 0, 4);
	ASSERT_PUT(JOB, 4, "two ", 0, 8);
	ASSERT_PUT(OTHER, 0, "another", 0, 7);
	ASSERT_TEXT(JOB, "one two ");
	ASSERT_TEXT(OTHER, "another");
	assert_false(put_is_complete);
}

static void bytes_that_are_already_stored_are_skipped(void **state)
{
	(void)state;
	ASSERT_PUT(JOB, 0, "one ", 0, 4);
	ASSERT_PUT(JOB, 0, "one ", 0, 4);
	ASSERT_PUT(JOB, 2, "e two", 0, 7);
	ASSERT_PUT(JOB, 1, "n", 0, 7);
	ASSERT_PUT(JOB, 7, "", 0, 7);
	ASSERT_TEXT(JOB, "one two");
}

static void a_gap_is_refused_with_the_offset_to_continue_at(void **state)
{
	(void)state;
	ASSERT_PUT(JOB, 5, "x", ERR_RANGE, 0);
	ASSERT_PUT(JOB, 0, "abc", 0, 3);
	ASSERT_PUT(JOB, 4, "x", ERR_RANGE, 3);
	ASSERT_PUT(JOB, -1, "x", ERR_RANGE, 3);
	ASSERT_PUT(JOB, 3, "d", 0, 4);
	ASSERT_TEXT(JOB, "abcd");
}

static void an_empty_piece_queries_the_size(void **state)
{
	(void)state;
	ASSERT_PUT(JOB, 0, "", 0, 0);
	assert_int_equal(rig_read(JOB, 0, 10), ERR_NOT_FOUND);
	ASSERT_PUT(JOB, 0, "abc", 0, 3);
	ASSERT_PUT(JOB, 0, "", 0, 3);
}

static void a_complete_log_is_not_changed(void **state)
{
	(void)state;
	ASSERT_PUT(JOB, 0, "abc", 0, 3);
	ASSERT_LAST(JOB, 3, "def", 0, 6);
	assert_true(put_is_complete);
	for (int i = 0; i < 3; i++) {
		ASSERT_LAST(JOB, 3, "def", 0, 6);
		ASSERT_PUT(JOB, 0, "abcdef", 0, 6);
		assert_true(put_is_complete);
		ASSERT_PUT(JOB, 6, "g", ERR_EXISTS, 6);
		ASSERT_PUT(JOB, 9, "g", ERR_EXISTS, 6);
		ASSERT_TEXT(JOB, "abcdef");
		if (i == 0)
			rig_wait_packed(1);
		else
			rig_reopen();
	}
}

static void an_empty_log_can_be_complete(void **state)
{
	(void)state;
	ASSERT_LAST(JOB, 0, "", 0, 0);
	rig_wait_packed(1);
	ASSERT_TEXT(JOB, "");
	assert_true(read_is_complete);
	assert_int_equal(rig_read(JOB, 1, 10), ERR_RANGE);
}

static void a_log_has_a_maximal_size(void **state)
{
	(void)state;
	ASSERT_PUT(JOB, LOG_MAX_BYTES, "x", ERR_TOO_BIG, 0);
	ASSERT_PUT(JOB, INT64_MAX, "x", ERR_TOO_BIG, 0);
	ASSERT_PUT(JOB, LOG_MAX_BYTES, "", ERR_RANGE, 0);
}

static void concurrent_pieces_keep_their_order(void **state)
{
	enum { N = 50 };
	static struct put puts[N];
	struct buf text = BUF_INIT(1 << 20);

	(void)state;
	for (int i = 0; i < N; i++) {
		char *line = xasprintf("line %d of many\n", i);

		puts[i] = (struct put){0};
		rig_put_start(&puts[i], JOB, (int64_t)text.len, line, strlen(line), i == N - 1);
		puts[i].owned = line;
		buf_append_str(&text, line);
		/* Other jobs append at the same time. */
		ASSERT_PUT(1000 + i, 0, "x", 0, 1);
	}
	for (int i = 0; i < N; i++) {
		loop_run_until(rig_loop, &puts[i].is_done);
		assert_int_equal(puts[i].a.err, 0);
		free(puts[i].owned);
	}
	ASSERT_TEXT(JOB, buf_str(&text));
	buf_release(&text);
}

static struct log_watch watch, once;
static int n_notified, n_notified_once;

static void on_change(struct log_watch *w)
{
	(void)w;
	n_notified++;
}

static void on_change_once(struct log_watch *w)
{
	n_notified_once++;
	logs_unwatch(w);
}

static void watchers_are_notified_of_changes(void **state)
{
	(void)state;
	watch = (struct log_watch){.job_id = JOB, .on_change = on_change};
	once = (struct log_watch){.job_id = JOB, .on_change = on_change_once};
	logs_unwatch(&watch);
	logs_watch(rig_logs, &watch);
	logs_watch(rig_logs, &once);
	ASSERT_PUT(JOB, 0, "abc", 0, 3);
	assert_int_equal(n_notified, 1);
	ASSERT_PUT(JOB, 0, "abc", 0, 3);
	ASSERT_PUT(OTHER, 0, "abc", 0, 3);
	ASSERT_PUT(JOB, 9, "abc", ERR_RANGE, 3);
	assert_int_equal(n_notified, 1);
	ASSERT_LAST(JOB, 3, "", 0, 3);
	assert_int_equal(n_notified, 2);
	ASSERT_LAST(JOB, 3, "", 0, 3);
	assert_int_equal(n_notified, 2);
	assert_int_equal(n_notified_once, 1);
	logs_unwatch(&watch);
	logs_unwatch(&once);
}

/* ---- compressed ---- */

/* Text whose position can be recognised anywhere: each 8 bytes contain their offset. */
static char *long_text(size_t n)
{
	char *text = xmalloc(n + 8);

	for (size_t i = 0; i < n; i += 8) {
		char digits[16];

		snprintf(digits, sizeof(digits), "%07zx\n", i & 0xfffffff);
		memcpy(text + i, digits, 8);
	}
	return text;
}

static void assert_ranges(const char *text, size_t n)
{
	static const size_t at[] = {0, 1, 262143, 262144, 262145, 500000, 1048575, 1048576};
	static const size_t bytes[] = {1, 7, 262144, 262145, 1 << 20, 2 << 20};

	for (size_t i = 0; i < ARRAY_LEN(at); i++)
		for (size_t k = 0; k < ARRAY_LEN(bytes); k++) {
			size_t want = bytes[k] < (1 << 20) ? bytes[k] : 1 << 20;

			assert_int_equal(rig_read(JOB, (int64_t)at[i], bytes[k]), 0);
			assert_int_equal(read_n, want < n - at[i] ? want : n - at[i]);
			assert_memory_equal(read_bytes, text + at[i], read_n);
			assert_int_equal(read_end, n);
		}
	assert_int_equal(rig_read(JOB, (int64_t)n, 10), 0);
	assert_int_equal(read_n, 0);
	assert_int_equal(rig_read(JOB, (int64_t)n + 1, 10), ERR_RANGE);
	assert_int_equal(read_end, n);
}

/* The whole log as the zstd tool reads it: frame by frame. */
static void assert_zstd_reads(const char *text, size_t n)
{
	char *path = rig_path("2a/42.log.zst"), *plain = rig_path("plain");
	char *command = xasprintf("zstd -q -d -c %s > %s", path, plain);
	struct buf got = BUF_INIT(8 << 20);
	struct error e = {0};

	if (system("command -v zstd >/dev/null") == 0) {
		assert_int_equal(system(command), 0);
		assert_int_equal(file_read(plain, &got, &e), 0);
		assert_int_equal(got.len, n);
		assert_memory_equal(got.data, text, n);
	}
	buf_release(&got);
	free(command);
	free(plain);
	free(path);
}

static void a_complete_log_is_compressed_and_read_by_range(void **state)
{
	const size_t n = 5 * (1 << 20) + 12345;
	char *text = long_text(n), *raw = rig_path("2a/42.log"), *done = rig_path("2a/42.log.done");

	(void)state;
	assert_int_equal(rig_put(JOB, 0, text, n, false), 0);
	assert_ranges(text, n);
	assert_int_equal(rig_put(JOB, (int64_t)n, "", 0, true), 0);
	assert_ranges(text, n); /* in any state */
	rig_wait_packed(1);
	assert_int_equal(access(raw, F_OK), -1);
	assert_int_equal(access(done, F_OK), -1);
	assert_ranges(text, n);
	assert_zstd_reads(text, n);
	rig_reopen();
	assert_ranges(text, n);
	free(raw);
	free(done);
	free(text);
}

/* Writes without a sync, as damage does. */
static void overwrite(const char *path, const struct buf *file, size_t n)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	assert_int_equal(write(fd, file->data, n), n);
	close(fd);
}

static void damage_is_found(void **state)
{
	const size_t n = 600000;
	char *text = long_text(n), *path = rig_path("2a/42.log.zst");
	struct buf file = BUF_INIT(8 << 20);
	struct error e = {0};

	(void)state;
	assert_int_equal(rig_put(JOB, 0, text, n, true), 0);
	rig_wait_packed(1);
	assert_int_equal(file_read(path, &file, &e), 0);
	for (size_t i = 0; i < file.len; i += file.len / 97) {
		int err;

		file.data[i] ^= 0x10;
		overwrite(path, &file, file.len);
		err = rig_read(JOB, 0, 1 << 20);
		if (err == 0) {
			/* A few header bits have no meaning: then the text is unchanged. */
			assert_int_equal(read_n, n);
			assert_memory_equal(read_bytes, text, n);
		} else {
			assert_int_equal(err, ERR_CORRUPT);
		}
		file.data[i] ^= 0x10;
	}
	for (size_t cut = 0; cut < file.len; cut += file.len / 31) {
		overwrite(path, &file, cut);
		assert_int_equal(rig_read(JOB, 0, 1 << 20), ERR_CORRUPT);
		ASSERT_PUT(JOB, 0, "x", ERR_CORRUPT, 0);
	}
	buf_release(&file);
	free(path);
	free(text);
}

/* ---- dropped ---- */

static void age(const char *name, int64_t wall_s)
{
	const struct timespec times[2] = {{.tv_sec = wall_s}, {.tv_sec = wall_s}};
	char *path = rig_path(name);

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	free(path);
}

static void old_logs_are_dropped(void **state)
{
	(void)state;
	ASSERT_PUT(1, 0, "open and old", 0, 12);
	ASSERT_PUT(2, 0, "open and new", 0, 12);
	ASSERT_LAST(3, 0, "packed and old", 0, 14);
	ASSERT_LAST(259, 0, "packed and new", 0, 14);
	ASSERT_PUT(255, 0, "the last subfolder", 0, 18);
	ASSERT_PUT(256, 0, "the first subfolder", 0, 19);
	rig_wait_packed(2);
	age("01/1.log", 1000);
	age("03/3.log.zst", 1000);
	age("ff/255.log", 1000);
	age("00/256.log", 1000);
	assert_int_equal(rig_drop(1000 * 1000), 0);
	assert_int_equal(rig_drop(1000 * 1000 + 1), 4);
	assert_int_equal(rig_drop(1000 * 1000 + 1), 0);
	assert_int_equal(rig_read(1, 0, 10), ERR_NOT_FOUND);
	assert_int_equal(rig_read(3, 0, 10), ERR_NOT_FOUND);
	assert_int_equal(rig_read(255, 0, 10), ERR_NOT_FOUND);
	assert_int_equal(rig_read(256, 0, 10), ERR_NOT_FOUND);
	ASSERT_TEXT(2, "open and new");
	ASSERT_TEXT(259, "packed and new");
}

/* ---- a hostile folder ---- */

static void links_and_other_things_are_not_followed(void **state)
{
	char *link = rig_made_path("2a/42.log"), *target = rig_path("target"), *pipe_;
	struct error e = {0};

	(void)state;
	assert_int_equal(file_write_atomic(target, "secret", 6, 0600, &e), 0);
	assert_int_equal(symlink(target, link), 0);
	ASSERT_PUT(JOB, 0, "x", ERR_IO, 0);
	assert_int_equal(rig_read(JOB, 0, 10), ERR_IO);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(mkdir(link, 0700), 0);
	ASSERT_PUT(JOB, 0, "x", ERR_IO, 0);
	pipe_ = rig_made_path("2b/43.log");
	assert_int_equal(mkfifo(pipe_, 0600), 0);
	ASSERT_PUT(43, 0, "x", ERR_IO, 0);
	free(pipe_);
	free(link);
	free(target);
}

static void files_with_other_names_are_kept(void **state)
{
	static const char *const names[] = {
	    "2a/.log.done", "2a/x.log", "2a/99999999999999999999.log.done", "2a/1.log.done"};
	struct error e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char *path = rig_made_path(names[i]);

		assert_int_equal(file_write_atomic(path, "x", 1, 0600, &e), 0);
		free(path);
	}
	rig_reopen();
	assert_int_equal(rig_drop(INT64_MAX), 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char *path = rig_path(names[i]);

		assert_int_equal(access(path, F_OK), 0);
		free(path);
	}
}

static void closing_refuses_later_requests(void **state)
{
	struct put p = {0};
	bool is_closed = false;

	(void)state;
	ASSERT_PUT(JOB, 0, "abc", 0, 3);
	logs_close(rig_logs, rig_closed, &is_closed);
	rig_put_start(&p, JOB, 3, "d", 1, false);
	assert_false(p.is_done);
	loop_run_until(rig_loop, &p.is_done);
	assert_int_equal(p.a.err, ERR_CLOSING);
	loop_run_until(rig_loop, &is_closed);
	rig_open();
	ASSERT_TEXT(JOB, "abc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    RIG_TEST(a_log_grows_by_pieces),
	    RIG_TEST(bytes_that_are_already_stored_are_skipped),
	    RIG_TEST(a_gap_is_refused_with_the_offset_to_continue_at),
	    RIG_TEST(an_empty_piece_queries_the_size),
	    RIG_TEST(a_complete_log_is_not_changed),
	    RIG_TEST(an_empty_log_can_be_complete),
	    RIG_TEST(a_log_has_a_maximal_size),
	    RIG_TEST(concurrent_pieces_keep_their_order),
	    RIG_TEST(watchers_are_notified_of_changes),
	    RIG_TEST(a_complete_log_is_compressed_and_read_by_range),
	    RIG_TEST(damage_is_found),
	    RIG_TEST(old_logs_are_dropped),
	    RIG_TEST(links_and_other_things_are_not_followed),
	    RIG_TEST(files_with_other_names_are_kept),
	    RIG_TEST(closing_refuses_later_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
