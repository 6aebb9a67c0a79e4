/* A log is text without secrets and of bounded length, however the output is split into pieces. */
#include "steps_rig.h"

#include <sys/resource.h>

#include "steps/job_log.h"

static struct masks *masks;
static struct job_log *job_log;

static int setup(void **state)
{
	masks = masks_new();
	job_log = NULL;
	return rig_setup(state);
}

static int teardown(void **state)
{
	struct error e = {0};

	if (job_log && job_log_close(job_log, &e))
		print_error("%s\n", e.text);
	masks_free(masks);
	return rig_teardown(state);
}

static void open_log(int64_t max_bytes)
{
	struct error e = {0};

	assert_int_equal(job_log_open(rig_folder, max_bytes, masks, &job_log, &e), 0);
}

static const char *close_log(void)
{
	struct error e = {0};
	struct job_log *l = job_log;

	job_log = NULL;
	assert_int_equal(job_log_close(l, &e), 0);
	return rig_read("log");
}

static void put(const char *text) { job_log_output(job_log, text, strlen(text)); }

/* Passes the text through a stream in pieces of `piece` bytes. free(). */
static char *mask_in_pieces(const char *text, size_t n, size_t piece)
{
	struct buf out = BUF_INIT(1 << 20);
	struct mask_stream s;

	mask_stream_init(&s, masks);
	for (size_t i = 0; i < n; i += piece)
		mask_stream_feed(&s, text + i, n - i < piece ? n - i : piece, &out);
	mask_stream_end(&s, &out);
	mask_stream_release(&s);
	return out.data ? buf_detach(&out) : xstrdup("");
}

static void check_mask(const char *text, const char *expected)
{
	for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
		char *got = mask_in_pieces(text, strlen(text), piece);
		bool is_equal = str_eq(got, expected);

		if (!is_equal)
			print_error("%s in pieces of %zu: %s\n", text, piece, got);
		free(got);
		assert_true(is_equal);
	}
}

static void test_masks(void **state)
{
	(void)state;
	masks_add(masks, "hunter2");
	masks_add(masks, "hunter2222");
	masks_add(masks, "22xyz");
	masks_add(masks, "abc"); /* too short to be a secret */
	masks_add(masks, "top line\n-\nlow line\n");
	masks_add(masks, "aaab");
	check_mask("", "");
	check_mask("plain", "plain");
	check_mask("say hunter2 now", "say *** now");
	check_mask("hunter2hunter2", "***");
	check_mask("hunter22x", "***2x");
	check_mask("hunter2222x", "***x");
	check_mask("hunter22xyz!", "***!"); /* two that overlap */
	check_mask("abc", "abc");
	check_mask("top line\nand low line", "***\nand ***");
	check_mask("top line\n-\nlow line", "***");
	check_mask("aaaaaab", "aaa***");
	check_mask("it ends in hunt", "it ends in ***");
	check_mask("it ends in hun", "it ends in hun");
}

static void test_masks_of_nothing(void **state)
{
	(void)state;
	masks_add(masks, "");
	masks_add(masks, "\n\n\n");
	masks_add(masks, "a\nb\nc\n");
	check_mask("anything\n\n", "anything\n\n");
	check_mask("a\nb\nc", "***");
}

static void test_a_long_secret_delays_output_for_a_limited_time(void **state)
{
	char *secret = xcalloc(1, 10001), *text;

	(void)state;
	memset(secret, 'k', 10000);
	masks_add(masks, secret);
	secret[9999] = 'x';
	text = mask_in_pieces(secret, 10000, 100);
	assert_string_equal(text, secret);
	free(text);
	free(secret);
}

static void check_clean(const char *text, size_t n, const char *expected)
{
	for (size_t piece = 1; piece <= n; piece++) {
		struct clean_text c = {.n_held = 0};
		struct buf out = BUF_INIT(4096);

		for (size_t i = 0; i < n; i += piece)
			clean_text_feed(&c, text + i, n - i < piece ? n - i : piece, &out);
		clean_text_end(&c, &out);
		assert_string_equal(buf_str(&out), expected);
		buf_release(&out);
	}
}

#define BAD            "\xef\xbf\xbd"
#define CLEAN(in, out) check_clean(in, sizeof(in) - 1, out)

static void test_clean_text(void **state)
{
	(void)state;
	CLEAN("plain\x1b[31m red\r\n", "plain\x1b[31m red\r\n");
	CLEAN("a\0b", "ab");
	CLEAN("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
	CLEAN("x\xff\xfey", "x" BAD BAD "y");
	CLEAN("\xe2\x82z", BAD "z");
	CLEAN("\xe2\xe2\x82\xac", BAD "\xe2\x82\xac");
	CLEAN("\xed\xa0\x80", BAD BAD BAD);
	CLEAN("\xc0\xaf", BAD BAD);
	CLEAN("end\xf0\x9f", "end" BAD);
	CLEAN("\xf4\x90\x80\x80", BAD BAD BAD BAD);
}

static void test_own_lines_stand_alone(void **state)
{
	(void)state;
	masks_add(masks, "secret");
	open_log(1 << 20);
	put("no line break");
	job_log_say(job_log, "ours, %s", "with a\nbreak and secret");
	put("sec");
	job_log_say(job_log, "between");
	put("ret\n");
	assert_string_equal(close_log(), "no line break\n== ours, with a break and ***\nsec\n== between\nret\n");
}

static void test_limit(void **state)
{
	const char *log, *end;

	(void)state;
	open_log(100 * 1000);
	for (int i = 0; i < 20000; i++) {
		char line[32];

		snprintf(line, sizeof(line), "line %05d \xc3\xa4\n", i);
		put(line);
	}
	log = close_log();
	assert_true(strlen(log) <= 100 * 1000);
	assert_true(strlen(log) > 95 * 1000);
	assert_true(utf8_is_valid(log, strlen(log)));
	assert_non_null(strstr(log, "line 00000"));
	assert_non_null(strstr(log, "\n== the log has 7"));
	end = strstr(log, " bytes were left out here\n");
	assert_non_null(end);
	assert_non_null(strstr(end, "line 19999"));
	assert_null(strstr(end, "line 10000"));
}

static void test_limit_reached_exactly_loses_nothing(void **state)
{
	char *text = xcalloc(1, 74488 + 1), *log;

	(void)state;
	memset(text, 'x', 74488); /* 100,000 less the tail and the marks */
	open_log(100 * 1000);
	put(text);
	log = (char *)close_log();
	assert_string_equal(log, text);
	free(text);
}

static void test_a_log_just_over_the_limit_is_kept_whole(void **state)
{
	const char *log;

	(void)state;
	open_log(100 * 1000);
	for (int i = 0; i < 8000; i++)
		put("0123456789");
	log = close_log();
	assert_null(strstr(log, "were left out here"));
	assert_non_null(strstr(log, "only its end is kept"));
}

static void test_excerpt(void **state)
{
	char *text;

	(void)state;
	open_log(1 << 20);
	put("before\n");
	job_log_begin_excerpt(job_log);
	text = job_log_excerpt(job_log);
	assert_string_equal(text, "");
	free(text);
	for (int i = 0; i < 100; i++) {
		char line[32];

		snprintf(line, sizeof(line), "line %d\n", i);
		put(line);
	}
	job_log_say(job_log, "not in it");
	text = job_log_excerpt(job_log);
	assert_int_equal(strncmp(text, "line 40\n", 8), 0);
	assert_non_null(strstr(text, "line 99\n"));
	assert_null(strstr(text, "not in it"));
	free(text);
}

static void test_excerpt_of_long_lines(void **state)
{
	char *text, line[1500];

	(void)state;
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\0';
	open_log(1 << 20);
	for (int i = 0; i < 10; i++) {
		put(line);
		put("\n");
	}
	text = job_log_excerpt(job_log);
	assert_int_equal(strlen(text), 2 * sizeof(line)); /* only whole ones */
	free(text);
	for (int i = 0; i < 10; i++)
		put(line);
	text = job_log_excerpt(job_log);
	assert_true(strlen(text) <= EXCERPT_MAX_BYTES && strlen(text) > 1000);
	free(text);
}

/* A limit on the size of files acts like a full disk: the job continues, and closing the log returns the error. */
static void test_a_log_that_cannot_be_written(void **state)
{
	struct rlimit old, small = {.rlim_cur = 1000};
	struct error e = {0};
	struct job_log *l;

	(void)state;
	open_log(1 << 20);
	l = job_log;
	job_log = NULL;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (int i = 0; i < 200; i++)
		job_log_output(l, "0123456789", 10);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(job_log_close(l, &e), ERR_IO);
	assert_non_null(strstr(e.text, "/log: File too large"));
	assert_int_equal(strlen(rig_read("log")), 1000);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_masks), TEST(test_masks_of_nothing),
	    TEST(test_a_long_secret_delays_output_for_a_limited_time), TEST(test_clean_text),
	    TEST(test_own_lines_stand_alone), TEST(test_limit), TEST(test_limit_reached_exactly_loses_nothing),
	    TEST(test_a_log_just_over_the_limit_is_kept_whole), TEST(test_excerpt), TEST(test_excerpt_of_long_lines),
	    TEST(test_a_log_that_cannot_be_written)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
