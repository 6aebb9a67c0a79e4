/* Escaped text is harmless and keeps its meaning. */
#include <setjmp.h>

#include <cmocka.h>

struct escape_case {
	const char *in, *out;
};

static void check(struct buf *b, const struct escape_case *c)
{
	assert_string_equal(buf_str(b), c->out);
	buf_release(b);
}

static void test_line(void **state)
{
	static const struct escape_case cases[] = {
	    {"", ""},
	    {"plain", "plain"},
	    {"  two\r\n\tlines \x01\x7f end\n", "two lines end"},
	    {"a\xC2\x85"
	     "b\xE2\x80\xA8"
	     "c\xE3\x80\x80"
	     "d",
		"a b c d"},
	    {"zero\xE2\x80\x8Bwidth", "zero\xEF\xBF\xBDwidth"},
	    {"\xE2\x80\xAEtxet", "\xEF\xBF\xBDtxet"},
	    {"bad \xFF\xC3( utf8 \xE2\x82", "bad \xEF\xBF\xBD\xEF\xBF\xBD( utf8 \xEF\xBF\xBD\xEF\xBF\xBD"},
	    {"surrogate \xED\xA0\x80", "surrogate \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
	    {"e\xCC\x81\xCC\x81\xCC\x81\xCC\x81!", "e\xCC\x81\xCC\x81!"},
	    {"warn \xE2\x9A\xA0\xEF\xB8\x8F", "warn \xE2\x9A\xA0"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf b = BUF_INIT(4096);

		escape_line(&b, cases[i].in, 0);
		check(&b, &cases[i]);
	}
}

static void test_line_is_cut_at_characters(void **state)
{
	struct buf b = BUF_INIT(64);

	(void)state;
	escape_line(&b, "abcdef", 6);
	assert_string_equal(buf_str(&b), "abcdef");
	buf_clear(&b);
	escape_line(&b, "abcdefg", 6);
	assert_string_equal(buf_str(&b), "abcdef…");
	buf_clear(&b);
	escape_line(&b, "日本語", 2);
	assert_string_equal(buf_str(&b), "日本…");
	buf_release(&b);
}

static void test_html(void **state)
{
	struct buf b = BUF_INIT(256);

	(void)state;
	escape_html(&b, "<a href='x' title=\"y\">&amp;\n</a>");
	assert_string_equal(buf_str(&b), "&lt;a href=&#39;x&#39; title=&quot;y&quot;&gt;&amp;amp; &lt;/a&gt;");
	buf_release(&b);
}

static void test_code(void **state)
{
	static const struct escape_case text_cases[] = {
	    {"", "`(empty)`"},
	    {"a|b", "`a|b`"},
	    {"a`b", "``a`b``"},
	    {"`", "`` ` ``"},
	    {"``x", "``` ``x ```"},
	};
	static const struct escape_case cell_cases[] = {
	    {"a|b", "`a\\|b`"},
	    {"a\\|b", "`a\\\\\\|b`"},
	    {"a\\\\|b", "`a\\\\\\|b`"},
	    {"||", "`\\|\\|`"},
	    {"x\\", "`x\\`"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(text_cases); i++) {
		struct buf b = BUF_INIT(256);

		escape_markdown_code(&b, text_cases[i].in, 0, MARKDOWN_TEXT);
		check(&b, &text_cases[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(cell_cases); i++) {
		struct buf b = BUF_INIT(256);

		escape_markdown_code(&b, cell_cases[i].in, 0, MARKDOWN_CELL);
		check(&b, &cell_cases[i]);
	}
}

static void test_label(void **state)
{
	static const char *const harmless[] = {
	    "Ascend NPU", "Gaudi (HPU)", "AMD MI300X, v1.2", "昇腾", "Größe", "C++/SYCL"};
	static const char *const code[] = {"@alice", "www.x", "GH-1", "deadbeef", "1. x", "- x", "+ x", "a_b_c", "*x*",
	    "a:b", "#1", "x@y.z", "[x](y)", "<b>", "~x~", "Team-12", "a|b", "example.com", "Inc. X", "昇1234567"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(harmless); i++) {
		struct buf b = BUF_INIT(256);

		escape_markdown_label(&b, harmless[i], 0, MARKDOWN_CELL);
		assert_string_equal(buf_str(&b), harmless[i]);
		buf_release(&b);
	}
	for (size_t i = 0; i < ARRAY_LEN(code); i++) {
		struct buf b = BUF_INIT(256);

		escape_markdown_label(&b, code[i], 0, MARKDOWN_CELL);
		assert_int_equal(buf_str(&b)[0], '`');
		buf_release(&b);
	}
}

static void test_url(void **state)
{
	static const struct escape_case good[] = {
	    {"https://a.example", "https://a.example"},
	    {"https://a.example:8443/x?y=1&z=2#f", "https://a.example:8443/x?y=1&amp;z=2#f"},
	    {"https://[2001:db8::1]/", "https://[2001:db8::1]/"},
	    {"https://a.example/x)](y", "https://a.example/x%29%5D%28y"},
	    {"https://a.example/a b\n|`<>\"'\\*^$", "https://a.example/a%20b%0A%7C%60%3C%3E%22%27%5C%2A%5E%24"},
	    {"https://a.example/%41%zz%", "https://a.example/%41%25zz%25"},
	    {"https://a.example/\xC3\xA9", "https://a.example/%C3%A9"},
	};
	static const char *const bad[] = {"", "x", "http://a.example/", "javascript:alert(1)", "https:/a.example",
	    "https://", "https:///x", "https://user@a.example/", "https://a.example@evil.example/",
	    "https://a.example\\@evil", "https://a b/", "HTTPS://a.example/", " https://a.example/",
	    "https://a.example:x/", "https://a.example:123456/", "https://[::1/", "https://[]/", "data:text/html,x",
	    "https://\xC3\xA9.example/", "//a.example/"};
	struct buf b = BUF_INIT(256);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_true(escape_url(&b, good[i].in, 200, URL_HTTPS));
		check(&b, &good[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(escape_url(&b, bad[i], 200, URL_HTTPS));
	assert_false(escape_url(&b, "https://a.example/x", 18, URL_HTTPS));
	assert_int_equal(b.len, 0);
	assert_true(escape_url(&b, "http://[::1]:8080", 200, URL_HTTPS_OR_HTTP));
	assert_string_equal(buf_str(&b), "http://[::1]:8080");
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_line),
	    cmocka_unit_test(test_line_is_cut_at_characters),
	    cmocka_unit_test(test_html),
	    cmocka_unit_test(test_code),
	    cmocka_unit_test(test_label),
	    cmocka_unit_test(test_url),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
