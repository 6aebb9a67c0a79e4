/* For any text that a vendor or an author puts into any field, the comment keeps its form: one table of the same
 * shape, only links of Outpost and to the vendor's own evidence, and nothing that GitHub turns into a mention, a
 * reference or an emoji. */
#include <setjmp.h>

#include <cmocka.h>

#include "hostile_view.h"
#include "markdown_oracle.h"
#include "rendering.h"

static const char *const hostile[] = {
    "",
    " ",
    "|",
    "||||",
    "\\|",
    "\\\\|",
    "a | b | c |\n|---|---|---|\n| d",
    "`",
    "``",
    "`|`",
    "``` | ```",
    "\\`|\\`",
    "`````````````````````````````````````",
    "x` @alice `y",
    "[x](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "](https://evil.example)",
    ")](https://evil.example)[",
    "[x]: https://evil.example",
    "[x][y]\n\n[y]: https://evil.example",
    "<https://evil.example>",
    "<a href=https://evil.example>x</a>",
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "</td></tr></table><table>",
    "</details>",
    "<!-- x",
    "--> <b>x</b>",
    "<!-- outpost:results -->",
    "&lt;b&gt; &#64;alice &amp; &nbsp;",
    "&#x202e;",
    "@alice",
    "@pytorch/core",
    "x @alice y",
    "alice@evil.example",
    "mailto:alice@evil.example",
    "#1",
    "#1234 fixed",
    "GH-1",
    "gh-1",
    "pytorch/pytorch#1",
    "JIRA-12",
    "0123456789abcdef0123456789abcdef01234567",
    "deadbeef",
    "pytorch/pytorch@deadbeef",
    "www.evil.example",
    "http://evil.example",
    "see https://evil.example/?a=b#c",
    "https://vendor.example/?a=b&c=d#e",
    "ftp://evil.example",
    "xmpp:a@evil.example",
    ":smile:",
    ":+1: :tada:",
    "*x* **x** _x_ __x__ ***x***",
    "~~x~~",
    "# heading",
    "x\n=====",
    "x\n-----",
    "- list\n- list",
    "1. list",
    "- [ ] task",
    "+ list",
    "> quote",
    "    indented",
    "```\nfence\n```",
    "~~~",
    "---",
    "***",
    "line\nbreak\r\nbreak  \nbreak\\\nbreak",
    "tab\tvertical\vform\f",
    "\x01\x02\x1b[31m\x7f",
    "\xE2\x80\xAE evil",
    "\xE2\x80\x8B\xE2\x80\x8B",
    "\xEF\xBB\xBF",
    "\xFF\xFE\xC0\xAF",
    "\xED\xA0\x80",
    "\xF4\x90\x80\x80",
    "\xE2\x80\xA8line separator",
    "$\\frac{1}{0}$ $$x$$ $`x`$",
    "[^1]",
    "\\",
    "\\\\",
    "\\@alice \\#1",
    "javascript:alert(1)",
    "https://vendor.example/x)|[y](https://evil.example",
    "https://vendor.example/ <b>",
    "https://vendor.example/`|`",
    "https://vendor.example/\n\n# x",
    "https://vendor.example@evil.example/",
    "https://vendor.example/\\",
};

static const char *const allowed[] = {
    "https://outpost.example.org/", "https://github.com/pytorch/pytorch/commit/", "https://vendor.example/", NULL};

static void check_one(enum field f, const char *text)
{
	static const struct comment_options options = {
	    .public_url = "https://outpost.example.org",
	    .github_url = "https://github.com",
	    .bot = "outpost-ci",
	    .now_wall_ms = VIEW_NOW_MS,
	};
	struct change_view *v = hostile_view_new();
	char **field = hostile_view_field(v, f);
	struct comment c;
	struct oracle o;

	free(*field);
	*field = xstrdup(text);
	view_comment(v, &options, &c);
	oracle_read(c.markdown, allowed, &o);
	if (o.n_tables != 1 || o.n_rows != 10 || o.n_cells != 50 || o.n_folds != 4 || o.n_images || o.n_html ||
	    o.n_headings || o.n_fences || o.n_emphasis_in_text || o.n_foreign_links || o.n_references ||
	    !utf8_is_valid(c.markdown, c.bytes))
		fail_msg("field %d, text \"%s\": %zu tables, %zu rows, %zu cells, %zu images, "
			 "%zu html, %zu headings, %zu fences, %zu emphasis, %zu foreign links, "
			 "%zu references (%s) in:\n%s",
		    (int)f, text, o.n_tables, o.n_rows, o.n_cells, o.n_images, o.n_html, o.n_headings, o.n_fences,
		    o.n_emphasis_in_text, o.n_foreign_links, o.n_references, o.last, c.markdown);
	comment_release(&c);
	change_view_free(v);
}

static void test_every_field(void **state)
{
	(void)state;
	for (int f = 0; f < N_FIELDS; f++)
		for (size_t i = 0; i < ARRAY_LEN(hostile); i++)
			check_one((enum field)f, hostile[i]);
}

static void check_name(const char *name, const char *shown)
{
	struct comment_options options = {
	    .public_url = "https://outpost.example.org", .github_url = "https://github.com"};
	struct change_view *v = view_new();
	size_t a = view_add_accelerator(v, "npu", "NPU", LEVEL_2, DISPATCH_DONE);
	struct comment c;
	char *code;

	view_add_verdict(v, a, "s", name, TEST_PASS, 1);
	view_comment(v, &options, &c);
	code = oracle_code(c.markdown, 1); /* the head's SHA is the first */
	assert_string_equal(code, shown);
	free(code);
	comment_release(&c);
	change_view_free(v);
}

static void test_names_stay_readable(void **state)
{
	(void)state;
	check_name("test_add[cpu|cuda]", "s/test_add[cpu|cuda]");
	check_name("a`b``c", "s/a`b``c");
	check_name("`", "s/`");
	check_name("T::f<int>(a, b) && *c", "s/T::f<int>(a, b) && *c");
	check_name("C:\\path\\n", "s/C:\\path\\n");
	check_name("two\nlines", "s/two lines");
	check_name("测试 äöü", "s/测试 äöü");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_every_field),
	    cmocka_unit_test(test_names_stay_readable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
