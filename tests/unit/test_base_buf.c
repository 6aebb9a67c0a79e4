/* A buffer grows, stops at its ceiling and remembers that it did. */
#include <setjmp.h>

#include <cmocka.h>

static void test_grows(void **state)
{
	struct buf b = BUF_INIT(1 << 20);

	(void)state;
	assert_string_equal(buf_str(&b), "");
	for (int i = 0; i < 10000; i++)
		assert_int_equal(buf_append_char(&b, (char)('a' + i % 26)), 0);
	assert_int_equal(b.len, 10000);
	assert_int_equal(b.data[b.len], '\0');
	assert_int_equal(b.data[9999], 'a' + 9999 % 26);
	assert_int_equal(buf_append_str(&b, "-end"), 0);
	assert_int_equal(buf_append(&b, NULL, 0), 0);
	assert_int_equal(buf_status(&b), 0);
	buf_clear(&b);
	assert_string_equal(buf_str(&b), "");
	assert_int_equal(buf_appendf(&b, "%s=%d", "x", 42), 0);
	assert_string_equal(buf_str(&b), "x=42");
	buf_release(&b);
	assert_null(b.data);
	assert_int_equal(b.max, 1 << 20);
}

static void test_ceiling(void **state)
{
	struct buf b = BUF_INIT(8);

	(void)state;
	assert_int_equal(buf_append_str(&b, "12345678"), 0);
	assert_int_equal(buf_append_char(&b, '9'), ERR_TOO_BIG);
	assert_string_equal(buf_str(&b), "12345678");
	assert_int_equal(buf_status(&b), ERR_TOO_BIG);
	buf_clear(&b);
	assert_int_equal(buf_status(&b), 0);
	assert_int_equal(buf_appendf(&b, "%09d", 1), ERR_TOO_BIG);
	assert_int_equal(b.len, 0);
	assert_int_equal(buf_append_str(&b, "ok"), 0);
	assert_int_equal(buf_status(&b), ERR_TOO_BIG);
	assert_int_equal(buf_reserve(&b, SIZE_MAX), ERR_TOO_BIG);
	buf_release(&b);
	buf_init(&b, 0);
	assert_int_equal(buf_append_str(&b, ""), 0);
	assert_int_equal(buf_append_char(&b, 'x'), ERR_TOO_BIG);
	buf_release(&b);
}

static void test_take_and_consume(void **state)
{
	struct buf b = BUF_INIT(100);
	char *s;

	(void)state;
	s = buf_detach(&b);
	assert_string_equal(s, "");
	free(s);
	buf_append_str(&b, "abcdef");
	buf_consume(&b, 2);
	assert_string_equal(buf_str(&b), "cdef");
	s = buf_detach(&b);
	assert_string_equal(s, "cdef");
	assert_null(b.data);
	free(s);
	buf_append_str(&b, "xyz");
	buf_consume(&b, 99);
	assert_int_equal(b.len, 0);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_grows),
	    cmocka_unit_test(test_ceiling),
	    cmocka_unit_test(test_take_and_consume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
