/* Comments: what is a command to the bot, and what only looks like one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "dispatch/command.h"

#define SHA "0123456789abcdef0123456789abcdef01234567"

static enum command_kind kind_of(const char *text)
{
	return command_find(text, "outpost-bot").kind;
}

static void finds_commands(void **state)
{
	static const char *const texts[] = {
	    "@outpost-bot ok-to-test",
	    "@outpost-bot ok-to-test\n",
	    "@outpost-bot ok-to-test\r\n",
	    "@Outpost-Bot OK-to-test",
	    "  @outpost-bot   ok-to-test  ",
	    "@outpost-bot\tok-to-test",
	    "Looks good to me.\n\n@outpost-bot ok-to-test",
	    "Looks good to me.\n@outpost-bot ok-to-test\nThanks",
	    "> quoted\n\n@outpost-bot ok-to-test",
	    "> quoted\r\n\r\n@outpost-bot ok-to-test",
	    "```\ncode\n```\n@outpost-bot ok-to-test",
	    "~~~~\n~~~\n~~~~\n@outpost-bot ok-to-test",
	    "Use `foo` and `bar`.\n@outpost-bot ok-to-test",
	    "[see](https://example.org)\n@outpost-bot ok-to-test\n\n(thanks)",
	    "<details>\n\n@outpost-bot ok-to-test\n\n</details>",
	    "a lonely ` tick\n@outpost-bot ok-to-test",
	    "<!-- hidden -->\n@outpost-bot ok-to-test",
	    "<!--\nhidden\n-->\n@outpost-bot ok-to-test",
	    "@outpost-bot retest\n@outpost-bot ok-to-test",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (kind_of(texts[i]) != COMMAND_OK_TO_TEST)
			fail_msg("not found in: %s", texts[i]);
		assert_string_equal(command_find(texts[i], "outpost-bot").sha, "");
	}
}

static void finds_none(void **state)
{
	static const char *const texts[] = {
	    "",
	    "\n\n",
	    "ok-to-test",
	    "@outpost-bo ok-to-test",
	    "@outpost-bots ok-to-test",
	    "please @outpost-bot ok-to-test",
	    "- @outpost-bot ok-to-test",
	    "> @outpost-bot ok-to-test",
	    "> quoted\n@outpost-bot ok-to-test", /* still the quoted paragraph */
	    "- > quoted\n@outpost-bot ok-to-test",
	    "    @outpost-bot ok-to-test",
	    "\t@outpost-bot ok-to-test",
	    "`@outpost-bot ok-to-test`",
	    "`code\n@outpost-bot ok-to-test\nends`",
	    "``code ` \r\n@outpost-bot ok-to-test\r\nends``",
	    "```\n@outpost-bot ok-to-test\n```",
	    "```\n@outpost-bot ok-to-test",
	    "```sh\n\n@outpost-bot ok-to-test\n```",
	    "~~~\n```\n@outpost-bot ok-to-test\n~~~",
	    "````\n```\n@outpost-bot ok-to-test\n````",
	    "1. ```\n   @outpost-bot ok-to-test\n   ```",
	    "> quoted\n```\n\n@outpost-bot ok-to-test\n```",
	    "- ```\ncode\n```\n@outpost-bot ok-to-test",
	    "[text\n@outpost-bot ok-to-test\n](https://example.org)",
	    "<a title='\n@outpost-bot ok-to-test\n'>",
	    "<?\n@outpost-bot ok-to-test\n?>",
	    "<!-- a --> <!-- b\n@outpost-bot ok-to-test",
	    "text\r```\r@outpost-bot ok-to-test\r```",
	    "<!--\n@outpost-bot ok-to-test\n-->",
	    "<!-- one\n\n@outpost-bot ok-to-test\n\n-->",
	    "<PRE>\n@outpost-bot ok-to-test\n</PRE>",
	    "<blockquote>\n\n@outpost-bot ok-to-test\n\n</blockquote>",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (kind_of(texts[i]) != COMMAND_NONE)
			fail_msg("a command was found in: %s", texts[i]);
}

static void names_a_head(void **state)
{
	struct command c = command_find("@outpost-bot ok-to-test " SHA, "outpost-bot");

	(void)state;
	assert_int_equal(c.kind, COMMAND_OK_TO_TEST);
	assert_string_equal(c.sha, SHA);
	c = command_find("@outpost-bot ok-to-test 0123ABC", "outpost-bot");
	assert_int_equal(c.kind, COMMAND_OK_TO_TEST);
	assert_string_equal(c.sha, "0123abc");
}

static void hears_that_it_is_taken_back(void **state)
{
	static const char *const texts[] = {
	    "@outpost-bot ok-to-test cancel",
	    "@outpost-bot OK-to-test  Cancel \n",
	    "@outpost-bot hello\n@outpost-bot ok-to-test cancel",
	    "@outpost-bot ok-to-test\n@outpost-bot ok-to-test cancel",
	    "@outpost-bot ok-to-test cancel\n@outpost-bot ok-to-test",
	    "@outpost-bot ok-to-test " SHA "\n\n@outpost-bot ok-to-test cancel",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (kind_of(texts[i]) != COMMAND_DECLINE)
			fail_msg("not taken back: %s", texts[i]);
	assert_int_equal(kind_of("> @outpost-bot ok-to-test cancel\n\n@outpost-bot ok-to-test"),
	    COMMAND_OK_TO_TEST);
}

static void refuses_what_it_does_not_know(void **state)
{
	static const char *const texts[] = {
	    "@outpost-bot",
	    "@outpost-bot hello",
	    "@outpost-bot retest",
	    "@outpost-bot ok-to-test cancel it",
	    "@outpost-bot ok-to-test 012345",
	    "@outpost-bot ok-to-test 012345g",
	    "@outpost-bot ok-to-test " SHA "0",
	    "@outpost-bot ok-to-test " SHA " " SHA,
	    "@outpost-bot ok-to-test please",
	    "@outpost-bot ok-to-testing",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct command c = command_find(texts[i], "outpost-bot");

		if (c.kind != COMMAND_UNKNOWN)
			fail_msg("%s", texts[i]);
		assert_string_equal(c.sha, "");
	}
}

static void is_quick_on_hostile_text(void **state)
{
	struct buf b = BUF_INIT(1 << 20);

	(void)state;
	for (int i = 0; i < 20000; i++)
		buf_append_str(&b, i % 2 ? "`` " : "` ");
	for (int i = 0; i < 200; i++)
		buf_append_str(&b, "\n@outpost-bot ok-to-test");
	buf_append_str(&b, "\n`");
	assert_int_equal(kind_of(buf_str(&b)), COMMAND_NONE);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(finds_commands),
	    cmocka_unit_test(finds_none),
	    cmocka_unit_test(names_a_head),
	    cmocka_unit_test(hears_that_it_is_taken_back),
	    cmocka_unit_test(refuses_what_it_does_not_know),
	    cmocka_unit_test(is_quick_on_hostile_text),
	};

	return cmocka_run_group_tests_name("dispatch_command", tests, NULL, NULL);
}
