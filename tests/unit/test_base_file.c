/* Files are read with a ceiling and replaced whole. */
#include <setjmp.h>

#include <cmocka.h>

static char folder[32];

static int setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/outpost-file-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(folder);
}

static void test_write_and_read(void **state)
{
	char *path = path_join(folder, "x");
	struct buf out = BUF_INIT(100000);
	struct error e = {0};
	struct stat st;
	char large[50000];

	(void)state;
	memset(large, 'x', sizeof(large));
	assert_int_equal(file_write_atomic(path, large, sizeof(large), 0600, &e), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(file_read(path, &out, &e), 0);
	assert_int_equal(out.len, sizeof(large));
	assert_int_equal(file_write_atomic(path, "", 0, 0644, &e), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(st.st_size, 0);
	buf_clear(&out);
	assert_int_equal(file_read(path, &out, &e), 0);
	assert_int_equal(out.len, 0);
	buf_release(&out);
	unlink(path);
	free(path);
}

static void test_ceiling(void **state)
{
	char *path = path_join(folder, "x"), *expected;
	struct buf out = BUF_INIT(4);
	struct error e = {0};

	(void)state;
	assert_int_equal(file_write_atomic(path, "12345", 5, 0600, &e), 0);
	assert_int_equal(file_read(path, &out, &e), ERR_TOO_BIG);
	expected = xasprintf("%s: larger than 4 bytes", path);
	assert_string_equal(e.text, expected);
	free(expected);
	buf_release(&out);
	unlink(path);
	free(path);
}

static void test_failures_name_the_path(void **state)
{
	char *path = path_join(folder, "none/x");
	struct buf out = BUF_INIT(4);
	struct error e = {0};

	(void)state;
	assert_int_equal(file_read(path, &out, &e), ERR_NOT_FOUND);
	assert_non_null(strstr(e.text, "none/x: No such file or directory"));
	e = (struct error){0};
	assert_int_equal(file_write_atomic(path, "x", 1, 0600, &e), ERR_NOT_FOUND);
	assert_non_null(strstr(e.text, "none/x"));
	e = (struct error){0};
	assert_int_equal(file_read(folder, &out, &e), ERR_IO);
	assert_int_equal(file_write_atomic(folder, "x", 1, 0600, NULL), ERR_IO);
	free(path);
}

static void test_paths(void **state)
{
	static const struct {
		const char *path, *folder;
	} cases[] = {{"a/b", "a"}, {"a", "."}, {"/a", "/"}, {"/a/b/c", "/a/b"}, {"./x", "."}};
	char *s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		s = path_folder(cases[i].path);
		assert_string_equal(s, cases[i].folder);
		free(s);
	}
	s = path_join("a/b", "c");
	assert_string_equal(s, "a/b/c");
	free(s);
	s = path_join("a/b", "/c");
	assert_string_equal(s, "/c");
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_write_and_read),
	    cmocka_unit_test(test_ceiling),
	    cmocka_unit_test(test_failures_name_the_path),
	    cmocka_unit_test(test_paths),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
