/* What replies say: the facts of each result in words, and nothing of a commenter's as markup. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/json.h"
#include "model/command.h"
#include "publish/answer_text.h"

static const struct comment_options OPTIONS = {.public_url = "https://outpost.example.org",
    .github_url = "https://github.com",
    .bot = "outpost-ci",
    .now_wall_ms = 1};

static char *text_of(const char *kind, const char *word, const char *suite, const char *result,
    const char *hint, const struct change_view *v)
{
	json_t *facts = json_pack("{s:i, s:[{s:s, s:s, s:s, s:s, s:s}]}", "comment", 77, "commands",
	    "kind", kind, "word", word, "suite", suite, "result", result, "hint", hint);
	char *text = answer_text(facts, v, &OPTIONS);

	json_decref(facts);
	return text;
}

static void each_error_has_words(void **state)
{
	(void)state;
	for (int r = 0; r < N_COMMAND_RESULTS; r++) {
		enum command_result result = (enum command_result)r;
		char *text =
		    text_of("retest", "npu", "model", command_result_name(result), "", NULL);
		bool is_told = strlen(text) > strlen("<!-- outpost:reply:77 -->\n");
		bool is_wordless = !command_result_is_error(result) ||
				   result == COMMAND_FOR_MEMBERS || result == COMMAND_CLOSED;

		assert_ptr_equal(strstr(text, "<!-- outpost:reply:77 -->\n"), text);
		assert_null(strstr(text, COMMENT_MARKER));
		assert_int_equal(is_told, !is_wordless);
		free(text);
	}
}

static void it_names_the_other_pull_request(void **state)
{
	char *text = text_of("retest", "", "", "shared", "41", NULL);

	(void)state;
	assert_non_null(strstr(text, "Another open pull request, #41, has the same head"));
	assert_non_null(strstr(text, "for members"));
	free(text);
}

static void the_list_names_the_bot(void **state)
{
	char *text = text_of("?", "", "", "done", "", NULL);

	(void)state;
	assert_non_null(strstr(text, "- `@outpost-ci retest ACCELERATOR/SUITE`: "));
	assert_non_null(strstr(text, "`@outpost-ci ok-to-test`"));
	free(text);
}

static void what_was_typed_is_code(void **state)
{
	char *text =
	    text_of("unknown", "`@pytorch/owners` [x](https://evil.example) #1 " COMMENT_MARKER, "",
		"not_known", "", NULL);

	(void)state;
	assert_null(strstr(text, COMMENT_MARKER));
	assert_non_null(
	    strstr(text, "I do not know `` `@pytorch/owners` [x](https://evil.example) #1"));
	free(text);
	text = text_of("retest", "a`b", "", "no_accelerator", "npu", NULL);
	assert_non_null(strstr(text, "There is no accelerator ``a`b``; did you mean `npu`?"));
	free(text);
}

static void status_needs_the_change(void **state)
{
	json_t *facts = json_pack("{s:i, s:[{s:s}]}", "comment", 1, "commands", "kind", "status");
	char *text = text_of("status", "", "", "done", "", NULL);

	(void)state;
	assert_true(answer_needs_view(facts));
	assert_non_null(strstr(text, "Nothing was tested yet."));
	json_decref(facts);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_error_has_words),
	    cmocka_unit_test(it_names_the_other_pull_request),
	    cmocka_unit_test(the_list_names_the_bot),
	    cmocka_unit_test(what_was_typed_is_code),
	    cmocka_unit_test(status_needs_the_change),
	};

	return cmocka_run_group_tests_name("publish_answer", tests, NULL, NULL);
}
