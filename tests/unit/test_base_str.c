/* Small functions on strings and on lists of them. */
#include <setjmp.h>

#include <cmocka.h>

static void test_compare(void **state)
{
	(void)state;
	assert_true(str_eq(NULL, NULL));
	assert_false(str_eq("", NULL));
	assert_true(str_eq("a", "a"));
	assert_true(str_has_prefix("abc", "ab"));
	assert_true(str_has_prefix("abc", ""));
	assert_false(str_has_prefix("a", "ab"));
	assert_true(str_has_suffix("abc", "bc"));
	assert_false(str_has_suffix("c", "bc"));
}

static void test_int64(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} right[] = {
	    {"0", 0},
	    {"-0", 0},
	    {"007", 7},
	    {"9223372036854775807", INT64_MAX},
	    {"-9223372036854775808", INT64_MIN},
	};
	static const char *const wrong[] = {"", "-", "+1", " 1", "1 ", "1x", "0x10", "1.0", "1e3", "--1",
	    "9223372036854775808", "-9223372036854775809", "99999999999999999999999"};
	int64_t value;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(right); i++) {
		assert_int_equal(parse_int64(right[i].text, &value), 0);
		assert_true(value == right[i].value);
	}
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		if (parse_int64(wrong[i], &value) != ERR_INVALID)
			fail_msg("\"%s\" is accepted", wrong[i]);
}

static void test_utf8(void **state)
{
	static const char *const right[] = {"", "abc", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf",
	    "\xee\x80\x80", "\xf4\x8f\xbf\xbf"};
	static const char *const wrong[] = {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80", "\xe2\x82",
	    "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "ok\xfe"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(right); i++)
		assert_true(utf8_is_valid(right[i], strlen(right[i])));
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		if (utf8_is_valid(wrong[i], strlen(wrong[i])))
			fail_msg("case %zu is accepted", i);
	assert_true(utf8_is_valid("a\0b", 3));
	/* n cuts a sequence, whatever bytes follow it. */
	assert_false(utf8_is_valid("\xe2\x82\xac", 2));
	assert_int_equal(utf8_cut("abc", 3, 10), 3);
	assert_int_equal(utf8_cut("abc", 3, 2), 2);
	assert_int_equal(utf8_cut("a\xe2\x82\xac", 4, 3), 1);
	assert_int_equal(utf8_cut("\xe2\x82\xac", 3, 1), 0);
}

static void test_utf8_repair(void **state)
{
	static const char *const texts[][2] = {{"", ""}, {"a\xe2\x82\xac", "a\xe2\x82\xac"},
	    {"\xff"
	     "a\xe2\x82",
		"\xef\xbf\xbd"
		"a\xef\xbf\xbd\xef\xbf\xbd"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		char *text = utf8_repair(texts[i][0]);

		assert_string_equal(text, texts[i][1]);
		free(text);
	}
}

/* Texts of others are in it, of any length. */
static void test_an_error_ends_with_a_whole_character(void **state)
{
	char euros[3 * 300 + 1] = "";

	(void)state;
	for (size_t i = 0; i < 300; i++)
		memcpy(euros + 3 * i, "\xe2\x82\xac", 4);
	for (int n = 0; n < 4; n++) {
		struct error e = {0};

		error_set(&e, ERR_INVALID, "%.*s%s", n, "abc", euros);
		assert_true(utf8_is_valid(e.text, strlen(e.text)));
		assert_true(strlen(e.text) + 3 >= sizeof(e.text) - 1);
	}
	for (size_t n = 0; n < 3; n++) {
		struct error e = {0};

		error_set(&e, ERR_INVALID, "%.*s", (int)(3 * n), euros);
		assert_int_equal(strlen(e.text), 3 * n);
	}
}

static void test_nearest(void **state)
{
	static const char *const keys[] = {"listen", "public_url", "state_dir", "triggers", NULL};
	static const char *const none[] = {NULL};
	static const char *const tests[] = {"model/e", "model/llama3", "a/long/folder/x", NULL};

	(void)state;
	assert_string_equal(str_nearest("tirggers", keys), "triggers");
	assert_string_equal(str_nearest("listne", keys), "listen");
	assert_string_equal(str_nearest("publicurl", keys), "public_url");
	assert_null(str_nearest("xyz", keys));
	/* finding 25: a common folder does not make the names similar */
	assert_null(str_nearest("model/nope", tests));
	assert_null(str_nearest("a/long/folder/nope", tests));
	assert_string_equal(str_nearest("model/lama3", tests), "model/llama3");
	assert_string_equal(str_nearest("modle/llama3", tests), "model/llama3");
	assert_null(str_nearest("listen", none));
	assert_null(str_nearest("a-word-that-is-longer-than-any-key-and-than-the-table-of-edits-is", keys));
	assert_string_equal(str_least_far("xyz", keys), "listen");
	assert_string_equal(str_least_far("publicurl", keys), "public_url");
	assert_null(str_least_far("listen", none));
	assert_null(str_least_far("a-word-that-is-longer-than-any-key-and-than-the-table-of-edits-is", keys));
}

static void test_names(void **state)
{
	static const char *const repositories[] = {"a/b", "pytorch/pytorch", "O-1/x_y.z-", "a/..."};
	static const char *const others[] = {
	    "", "a", "/", "a/", "/b", "a/b/c", "a b/c", "a/.", "../b", "a/..", "a/b\n", "ä/b"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(repositories); i++)
		assert_true(is_repository_name(repositories[i]));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (is_repository_name(others[i]))
			fail_msg("\"%s\" is accepted", others[i]);
	assert_true(is_sha1("0123456789abcdef0123456789abcdef01234567"));
	assert_false(is_sha1("0123456789ABCDEF0123456789abcdef01234567"));
	assert_false(is_sha1("0123456789abcdef0123456789abcdef0123456"));
	assert_false(is_sha1("0123456789abcdef0123456789abcdef012345678"));
}

static void test_lists(void **state)
{
	char **v = NULL, **copy;

	(void)state;
	strv_add(&v, "one");
	strv_add(&v, "Two");
	assert_int_equal(strv_len((const char *const *)v), 2);
	assert_true(strv_contains((const char *const *)v, "one"));
	assert_false(strv_contains((const char *const *)v, "two"));
	assert_true(strv_contains_nocase((const char *const *)v, "two"));
	copy = strv_copy((const char *const *)v);
	strv_free(v);
	assert_string_equal(copy[1], "Two");
	assert_null(copy[2]);
	strv_free(copy);
	copy = strv_copy(NULL);
	assert_null(copy[0]);
	strv_free(copy);
	strv_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_compare),
	    cmocka_unit_test(test_int64),
	    cmocka_unit_test(test_utf8),
	    cmocka_unit_test(test_utf8_repair),
	    cmocka_unit_test(test_an_error_ends_with_a_whole_character),
	    cmocka_unit_test(test_nearest),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
