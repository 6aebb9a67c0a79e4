/* Comments: which text is a command to the bot, and which text only looks like one. */
#include <setjmp.h>

#include <cmocka.h>

#include "dispatch/planning.h"

#define SHA "0123456789abcdef0123456789abcdef01234567"

static const enum command_kind NONE = N_COMMAND_KINDS;

static struct command first_of(const char *text)
{
	struct command list[COMMANDS_MAX] = {{.kind = N_COMMAND_KINDS}};

	if (commands_find(text, "outpost-bot", list) == 0)
		list[0].kind = NONE;
	return list[0];
}

static enum command_kind kind_of(const char *text) { return first_of(text).kind; }

/* "retest npu/model, status": all of a comment. free(). */
static char *all_of(const char *text)
{
	struct command list[COMMANDS_MAX];
	size_t n = commands_find(text, "outpost-bot", list);
	struct buf out = BUF_INIT(65536);

	for (size_t i = 0; i < n; i++) {
		const struct command *c = &list[i];

		buf_appendf(&out, "%s%s", i ? ", " : "", command_kind_name(c->kind));
		if (c->word[0] || c->sha[0])
			buf_appendf(&out, " %s%s", c->word, c->sha);
		if (c->suite[0])
			buf_appendf(&out, "/%s", c->suite);
	}
	return out.data ? buf_detach(&out) : xstrdup("");
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
	    "$$\nx^2\n$$\n\n@outpost-bot ok-to-test",
	    "```sh\nkill $$\n```\n@outpost-bot ok-to-test",
	    "It costs $5.\n\n@outpost-bot ok-to-test\n\nAnd $6.",
	    "So it is.[^1]\n\n[^1]: a footnote\n\n@outpost-bot ok-to-test",
	    "<div title='a'>\n\n@outpost-bot ok-to-test\n\n</div>",
	    "| a | b |\n| - | - |\n| 1 | 2 |\n\n@outpost-bot ok-to-test",
	    "[see]: https://example.org 'a title'\n\n@outpost-bot ok-to-test",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (kind_of(texts[i]) != COMMAND_OK_TO_TEST)
			fail_msg("not found in: %s", texts[i]);
		assert_string_equal(first_of(texts[i]).sha, "");
	}
}

static void finds_no_command_in_other_text(void **state)
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
	    "a `code\n@outpost-bot hello` ends",
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
	    "<blockquote><blockquote>a</blockquote>\n\n@outpost-bot ok-to-test\n\n</blockquote>",
	    "<blockquote>\n<blockquote>\na\n</blockquote>\n\n@outpost-bot "
	    "ok-to-test\n\n</blockquote>",
	    "<q cite=\"https://example.org\">\n\n@outpost-bot ok-to-test\n\n</q>",
	    "<s title=\"a\">\n\n@outpost-bot ok-to-test\n\n</s>",
	    /* finding 15: maths and footnotes */
	    "$$\n@outpost-bot ok-to-test\n$$",
	    "$$\n\n@outpost-bot ok-to-test\n\n$$",
	    "see $$ x\n@outpost-bot ok-to-test\ny $$",
	    "see `$$` and $$\n\n@outpost-bot ok-to-test\n\n$$",
	    "see $x\n@outpost-bot ok-to-test\ny$",
	    "see $`x\n@outpost-bot ok-to-test\ny`$",
	    "```math\n@outpost-bot ok-to-test\n```",
	    "[^1]: a\n@outpost-bot ok-to-test",
	    "[^1]: a\n\n    @outpost-bot ok-to-test",
	    "text[^note]\n\n[^note]: a\nb\n@outpost-bot ok-to-test",
	    "- [^1]: a\n@outpost-bot ok-to-test",
	    /* the title or the name of a link's definition */
	    "[see]: https://example.org '\n@outpost-bot ok-to-test\n'",
	    "[see\n@outpost-bot ok-to-test\n]: https://example.org",
	    /* struck out, or shown as code */
	    "~~no\n@outpost-bot ok-to-test\nno~~",
	    "<del>\n\n@outpost-bot ok-to-test\n\n</del>",
	    "<samp>\n@outpost-bot ok-to-test\n</samp>",
	    /* an attribute goes on behind the blank line */
	    "<div title='\n\n@outpost-bot ok-to-test\n\n'>",
	    "- <div title=\"a>\n\n@outpost-bot ok-to-test\n\n\">",
	    "> <div title='\n\n@outpost-bot ok-to-test\n\n'>",
	    /* and in the same paragraph */
	    "<div title=\"\n@outpost-bot ok-to-test",
	    "<div\n@outpost-bot ok-to-test\n>",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (kind_of(texts[i]) != NONE)
			fail_msg("a command was found in: %s", texts[i]);
}

static void reads_the_sha_of_a_head(void **state)
{
	struct command c = first_of("@outpost-bot ok-to-test " SHA);

	(void)state;
	assert_int_equal(c.kind, COMMAND_OK_TO_TEST);
	assert_string_equal(c.sha, SHA);
	c = first_of("@outpost-bot ok-to-test 0123ABC");
	assert_int_equal(c.kind, COMMAND_OK_TO_TEST);
	assert_string_equal(c.sha, "0123abc");
}

static void reads_ok_to_test_cancel(void **state)
{
	static const char *const texts[] = {
	    "@outpost-bot ok-to-test cancel",
	    "@outpost-bot OK-to-test  Cancel \n",
	    "@outpost-bot ok-to-test\n@outpost-bot ok-to-test cancel",
	    "@outpost-bot ok-to-test cancel\n@outpost-bot ok-to-test",
	    "@outpost-bot ok-to-test " SHA "\n\n@outpost-bot ok-to-test cancel",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (kind_of(texts[i]) != COMMAND_DECLINE)
			fail_msg("not read as a cancel: %s", texts[i]);
	assert_int_equal(kind_of("> @outpost-bot ok-to-test cancel\n\n@outpost-bot ok-to-test"), COMMAND_OK_TO_TEST);
}

static void reads_a_stress_run(void **state)
{
	static const struct {
		const char *text, *test, *accelerator;
		int n_rounds;
	} cases[] = {
	    {"model/llama3", "model/llama3", "", 10},
	    {"model/llama3 ×5", "model/llama3", "", 5},
	    {"model/llama3 x20", "model/llama3", "", 20},
	    {"model/llama3  X7  \r\n", "model/llama3", "", 7},
	    {"model/llama3 on NPU", "model/llama3", "npu", 10},
	    {"model/llama3 on npu ×3", "model/llama3", "npu", 3},
	    {"model/llama3 x3 on npu", "model/llama3", "npu", 3},
	    {"`model/llama3` on npu", "model/llama3", "npu", 10},
	    {"``a`b`` ×2", "a`b", "", 2},
	    /* a name is kept unchanged, with its spaces, its dtype and its brackets */
	    {"unit/test_Op[cpu-a b] (bf16) ×2", "unit/test_Op[cpu-a b] (bf16)", "", 2},
	    {"unit/runs on it on npu", "unit/runs on it", "npu", 10},
	    {"unit/a x3 x4", "unit/a x3", "", 4},
	    {"x3", "x3", "", 10},
	    {"on npu", "on npu", "", 10},
	    /* the reply says whether a number is allowed */
	    {"a ×0", "a", "", 0},
	    {"a ×21", "a", "", 21},
	    {"a x99999999999999999999", "a", "", 999999},
	    {"a ×-1", "a ×-1", "", 10},
	    {"a ×1.5", "a ×1.5", "", 10},
	    {"a ×", "a ×", "", 10},
	    {"a x", "a x", "", 10},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *text = xasprintf("@outpost-bot stress %s", cases[i].text);
		struct command c = first_of(text);

		assert_int_equal(c.kind, COMMAND_STRESS);
		assert_string_equal(c.test, cases[i].test);
		assert_string_equal(c.word, cases[i].accelerator);
		assert_int_equal(c.n_rounds, cases[i].n_rounds);
		free(text);
	}
}

static void a_stress_run_names_a_test_that_fits(void **state)
{
	struct buf b = BUF_INIT(1 << 20);

	(void)state;
	assert_int_equal(kind_of("@outpost-bot stress"), COMMAND_UNKNOWN);
	assert_int_equal(kind_of("@outpost-bot stress   "), COMMAND_UNKNOWN);
	assert_int_equal(kind_of("@outpost-bot stressed a"), COMMAND_UNKNOWN);
	assert_int_equal(kind_of("@outpost-bot stress a\x01 on npu"), COMMAND_STRESS);
	buf_append_str(&b, "@outpost-bot stress ");
	for (int i = 0; i < COMMAND_TEST_BYTES - 1; i++)
		buf_append_char(&b, 'a');
	assert_int_equal(strlen(first_of(buf_str(&b)).test), COMMAND_TEST_BYTES - 1);
	buf_append_char(&b, 'a');
	assert_int_equal(kind_of(buf_str(&b)), COMMAND_UNKNOWN);
	buf_release(&b);
}

static void refuses_unknown_commands(void **state)
{
	static const char *const texts[] = {
	    "@outpost-bot",
	    "@outpost-bot hello",
	    "@outpost-bot retest a b",
	    "@outpost-bot retest /model",
	    "@outpost-bot retest npu/",
	    "@outpost-bot cancel it",
	    "@outpost-bot status please",
	    "@outpost-bot ok-to-test cancel now",
	    "@outpost-bot help",
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
		struct command c = first_of(texts[i]);

		if (c.kind != COMMAND_UNKNOWN)
			fail_msg("%s", texts[i]);
		assert_string_equal(c.sha, "");
	}
}

static void is_quick_on_hostile_text(void **state)
{
	struct buf b = BUF_INIT(1 << 20);
	clock_t before_us;

	(void)state;
	for (int i = 0; i < 20000; i++)
		buf_append_str(&b, i % 2 ? "`` " : "` ");
	for (int i = 0; i < 200; i++)
		buf_append_str(&b, "\n@outpost-bot ok-to-test");
	buf_append_str(&b, "\n`");
	assert_int_equal(kind_of(buf_str(&b)), NONE);
	buf_clear(&b);
	buf_append_str(&b, "<\n");
	for (int i = 0; i < 4000; i++)
		buf_append_str(&b, "@outpost-bot x\n");
	buf_append_str(&b, ">");
	before_us = clock();
	assert_int_equal(kind_of(buf_str(&b)), NONE);
	assert_true(clock() - before_us < CLOCKS_PER_SEC);
	buf_release(&b);
}

static void reads_each_command(void **state)
{
	static const char *const table[][2] = {
	    {"@outpost-bot retest", "retest"},
	    {"@outpost-bot ReTest", "retest"},
	    {"@outpost-bot retest Ascend-NPU", "retest ascend-npu"},
	    {"@outpost-bot retest ascend-npu/Model", "retest ascend-npu/model"},
	    {"@outpost-bot retest npu/a/b", "retest npu/a/b"},
	    {"@outpost-bot retest please", "retest please"},
	    {"@outpost-bot cancel", "cancel"},
	    {"@outpost-bot status", "status"},
	    {"@outpost-bot ?", "?"},
	    {"@outpost-bot ok-to-test 0123ABC", "ok-to-test 0123abc"},
	    {"@outpost-bot make me a coffee", "unknown make me a coffee"},
	    {"@outpost-bot", "unknown"},
	    {"@outpost-bot retest\n@outpost-bot status\r\n@outpost-bot ?", "retest, status, ?"},
	    {"@outpost-bot cancel\nand then\n\n@outpost-bot retest npu", "cancel, retest npu"},
	    {"> @outpost-bot cancel\n\n@outpost-bot retest", "retest"},
	    {"@outpost-bot ok-to-test\n@outpost-bot retest\n@outpost-bot ok-to-test cancel",
		"retest, ok-to-test cancel"},
	    {"Thanks!\n\n```\n@outpost-bot cancel\n```\n", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		char *got = all_of(table[i][0]);

		assert_string_equal(got, table[i][1]);
		free(got);
	}
}

static void reads_at_most_ten_of_a_comment(void **state)
{
	struct command list[COMMANDS_MAX];
	struct buf text = BUF_INIT(65536);

	(void)state;
	for (int i = 0; i < 30; i++)
		buf_append_str(&text, "@outpost-bot retest\n");
	assert_int_equal(commands_find(buf_str(&text), "outpost-bot", list), COMMANDS_MAX);
	buf_release(&text);
}

/* A command that is too long is unknown, and is cut between two characters. */
static void cuts_long_commands(void **state)
{
	char text[1024] = "@outpost-bot retest ";
	struct command c;

	(void)state;
	for (size_t n = strlen(text); n < 1000; n += 2)
		memcpy(text + n, "\xc3\xa9", 2);
	c = first_of(text);
	assert_int_equal(c.kind, COMMAND_UNKNOWN);
	assert_true(strlen(c.word) < COMMAND_WORD_BYTES);
	assert_true(utf8_is_valid(c.word, strlen(c.word)));
	assert_true(strlen(c.word) > COMMAND_WORD_BYTES - 4);
}

/* Without a name, any bot may be addressed. */
static void recognizes_a_comment_that_addresses_the_bot(void **state)
{
	struct command list[COMMANDS_MAX];

	(void)state;
	assert_int_equal(commands_find("@somebody retest", NULL, list), 1);
	assert_int_equal(list[0].kind, COMMAND_RETEST);
	assert_int_equal(commands_find("@somebody thanks", NULL, list), 1);
	assert_int_equal(list[0].kind, COMMAND_UNKNOWN);
	assert_int_equal(commands_find("mail me@example.org\n@", NULL, list), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(finds_commands),
	    cmocka_unit_test(finds_no_command_in_other_text),
	    cmocka_unit_test(reads_the_sha_of_a_head),
	    cmocka_unit_test(reads_ok_to_test_cancel),
	    cmocka_unit_test(reads_a_stress_run),
	    cmocka_unit_test(a_stress_run_names_a_test_that_fits),
	    cmocka_unit_test(refuses_unknown_commands),
	    cmocka_unit_test(reads_each_command),
	    cmocka_unit_test(reads_at_most_ten_of_a_comment),
	    cmocka_unit_test(cuts_long_commands),
	    cmocka_unit_test(recognizes_a_comment_that_addresses_the_bot),
	    cmocka_unit_test(is_quick_on_hostile_text),
	};

	return cmocka_run_group_tests_name("dispatch_command", tests, NULL, NULL);
}
