/* Badges: what they say of each state, well-formed whatever a vendor is called, readable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"
#include "report/badge.h"
#include "report/xml_memory.h"

#define MINUTE INT64_C(60000)
static const int64_t NOW = 1780000000000;

/* What expat makes of it. */
struct seen {
	struct buf title;
	char label[600];
	int64_t width;
	int n_texts;
	bool is_in_title;
};

static void on_start(void *owner, const XML_Char *element, const XML_Char **attributes)
{
	struct seen *s = owner;

	s->is_in_title = !strcmp(element, "title");
	s->n_texts += !strcmp(element, "text");
	for (; !strcmp(element, "svg") && attributes[0]; attributes += 2) {
		if (!strcmp(attributes[0], "aria-label"))
			snprintf(s->label, sizeof(s->label), "%s", attributes[1]);
		if (!strcmp(attributes[0], "width"))
			assert_int_equal(parse_int64(attributes[1], &s->width), 0);
	}
}

static void on_end(void *owner, const XML_Char *element)
{
	(void)element;
	((struct seen *)owner)->is_in_title = false;
}

static void on_text(void *owner, const XML_Char *text, int n)
{
	struct seen *s = owner;

	if (s->is_in_title)
		buf_append(&s->title, text, (size_t)n);
}

static struct seen look_at(const struct badge *b)
{
	struct buf svg = BUF_INIT(1 << 16);
	struct seen s = {.title = BUF_INIT(4096)};
	XML_Parser xml = xml_parser_new(1 << 20);
	int ok;

	if (b)
		badge_write(&svg, b);
	else
		badge_write_unknown(&svg);
	assert_int_equal(buf_status(&svg), 0);
	assert_null(strstr(buf_str(&svg), "style="));
	assert_null(strstr(buf_str(&svg), "href"));
	XML_SetUserData(xml, &s);
	XML_SetElementHandler(xml, on_start, on_end);
	XML_SetCharacterDataHandler(xml, on_text);
	ok = XML_Parse(xml, buf_str(&svg), (int)svg.len, XML_TRUE);
	if (!ok)
		print_error("%s\n", buf_str(&svg));
	assert_true(ok);
	assert_int_equal(s.n_texts, 4);
	assert_string_equal(s.label, buf_str(&s.title));
	XML_ParserFree(xml);
	buf_release(&svg);
	return s;
}

static void each_state_says_so(void **state)
{
	static const struct {
		struct badge badge;
		const char *said;
	} table[] = {
	    {{.n_passed = 98, .n_counted = 100}, "NPU: passing 98 %"},
	    {{.n_passed = 1999, .n_counted = 2000}, "NPU: passing 99 %"},
	    {{.n_passed = 7, .n_counted = 7}, "NPU: passing 100 %"},
	    {{.n_counted = 3}, "NPU: passing 0 %"},
	    {{.n_passed = 0}, "NPU: unknown"},
	    {{.n_passed = 7, .n_counted = 7, .is_silent = true}, "NPU: silent"},
	    {{.red_since_ms = 1, .is_silent = true}, "NPU: failing since 1 min"},
	    {{.red_since_ms = 40 * MINUTE}, "NPU: failing since 40 min"},
	    {{.red_since_ms = 40 * MINUTE, .is_red_in_silence = true}, "NPU: no report for 40 min"},
	    {{.red_since_ms = 47 * 60 * MINUTE}, "NPU: failing since 47 h"},
	    {{.red_since_ms = 50 * 60 * MINUTE, .n_passed = 7, .n_counted = 8},
		"NPU: failing since 2 d"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct badge b = table[i].badge;
		struct seen s;

		b.title = "NPU";
		b.now_ms = NOW;
		if (b.red_since_ms)
			b.red_since_ms = NOW - b.red_since_ms;
		s = look_at(&b);
		assert_string_equal(s.label, table[i].said);
		buf_release(&s.title);
	}
}

/* shields.io: 11 px Verdana, five pixels at both ends of each half. */
static void its_width_is_that_of_its_words(void **state)
{
	struct badge b = {.title = "build", .n_passed = 1, .n_counted = 1, .now_ms = NOW};
	struct seen s = look_at(&b);

	(void)state;
	assert_in_range(s.width, 36 + 80, 38 + 92); /* "build" alone is 37 px wide there */
	buf_release(&s.title);
}

static void any_title_is_only_text(void **state)
{
	static const char *const titles[] = {"</title><script>alert(1)</script>", "a\"b'c&d;<!--",
	    "\x01\x1b[31m\x7f", "\xff\xfe bytes", "\xe2\x80\xaetfel",
	    "\xe6\x98\x87\xe8\x85\xbe NPU", "]]>", "\xef\xbf\xbf", "", "%s%n"};
	char *longest = xmalloc(301);

	(void)state;
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
		struct badge b = {.title = titles[i], .now_ms = NOW};
		struct seen s = look_at(&b);

		assert_non_null(strstr(s.label, ": unknown"));
		buf_release(&s.title);
	}
	memset(longest, 'W', 300);
	longest[300] = '\0';
	{
		struct badge b = {.title = longest, .now_ms = NOW};
		struct seen s = look_at(&b);

		assert_in_range(s.width, 100, 600);
		buf_release(&s.title);
	}
	free(longest);
}

static void who_is_not_known_is_unknown(void **state)
{
	struct seen s = look_at(NULL);

	(void)state;
	assert_string_equal(s.label, "accelerator: unknown");
	buf_release(&s.title);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_state_says_so),
	    cmocka_unit_test(its_width_is_that_of_its_words),
	    cmocka_unit_test(any_title_is_only_text),
	    cmocka_unit_test(who_is_not_known_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
