/* The text of replies: the facts of each result in words, with no markup from a commenter. */
#include <setjmp.h>

#include <cmocka.h>

#include "model/event.h"
#include "publish/publish_internal.h"
#include "view_builder.h"

static const struct comment_options OPTIONS = {.public_url = "https://outpost.example.org",
    .github_url = "https://github.com",
    .bot = "outpost-ci",
    .now_wall_ms = 1};

static char *text_of(const char *kind, const char *word, const char *suite, const char *result, const char *hint,
    const struct change_view *v)
{
	json_t *facts = json_pack("{s:i, s:[{s:s, s:s, s:s, s:s, s:s}]}", "comment", 77, "commands", "kind", kind,
	    "word", word, "suite", suite, "result", result, "hint", hint);
	char *text = answer_text(facts, v, &OPTIONS);

	json_decref(facts);
	return text;
}

static void each_error_has_words(void **state)
{
	(void)state;
	for (int r = 0; r < N_COMMAND_RESULTS; r++) {
		enum command_result result = (enum command_result)r;
		char *text = text_of("retest", "npu", "model", command_result_name(result), "", NULL);
		bool has_text = strlen(text) > strlen("<!-- outpost:reply:77 -->\n");
		bool is_wordless =
		    !command_result_is_error(result) || result == COMMAND_FOR_MEMBERS || result == COMMAND_CLOSED;

		assert_ptr_equal(strstr(text, "<!-- outpost:reply:77 -->\n"), text);
		assert_null(strstr(text, COMMENT_MARKER));
		assert_int_equal(has_text, !is_wordless);
		free(text);
	}
}

static void the_reply_names_the_other_pull_request(void **state)
{
	char *text = text_of("retest", "", "", "shared", "41", NULL);

	(void)state;
	assert_non_null(strstr(text, "Another open pull request, #41, has the same head"));
	assert_non_null(strstr(text, "for members"));
	free(text);
}

static void the_list_of_commands_names_the_bot(void **state)
{
	char *text = text_of("?", "", "", "done", "", NULL);

	(void)state;
	assert_non_null(strstr(text, "- `@outpost-ci retest ACCELERATOR/SUITE`: "));
	assert_non_null(strstr(text, "`@outpost-ci ok-to-test`"));
	free(text);
}

static void typed_text_is_shown_as_code(void **state)
{
	char *text = text_of(
	    "unknown", "`@pytorch/owners` [x](https://evil.example) #1 " COMMENT_MARKER, "", "not_known", "", NULL);

	(void)state;
	assert_null(strstr(text, COMMENT_MARKER));
	assert_non_null(strstr(text, "I do not know `` `@pytorch/owners` [x](https://evil.example) #1"));
	free(text);
	text = text_of("retest", "a`b", "", "no_accelerator", "npu", NULL);
	assert_non_null(strstr(text, "There is no accelerator ``a`b``; did you mean `npu`?"));
	free(text);
}

static void a_status_reply_shows_the_change(void **state)
{
	json_t *facts = json_pack("{s:i, s:[{s:s}]}", "comment", 1, "commands", "kind", "status");
	char *text = text_of("status", "", "", "done", "", NULL);

	(void)state;
	assert_true(answer_needs_view(facts));
	assert_non_null(strstr(text, "Nothing was tested yet."));
	json_decref(facts);
	free(text);
}

static json_t *rates(const char *test, json_t *accelerators)
{
	return json_pack("{s:i, s:{s:s, s:i, s:o}}", "comment", 77, "stress", "test", test, "rounds", 10,
	    "accelerators", accelerators);
}

static json_t *rate_of(
    const char *name, int head_passed, int head_failed, int head_lost, int base_passed, int base_failed)
{
	return json_pack("{s:s, s:{s:s, s:i, s:i, s:i}, s:{s:s, s:i, s:i, s:i}}", "accelerator", name, "head", "sha",
	    "a", "passed", head_passed, "failed", head_failed, "lost", head_lost, "base", "sha", "b", "passed",
	    base_passed, "failed", base_failed, "lost", 0);
}

static void check_line(json_t *accelerator, const char *expected)
{
	json_t *facts = rates("model/llama3", json_pack("[o]", accelerator));
	char *text = answer_text(facts, NULL, &OPTIONS);

	if (!strstr(text, expected))
		fail_msg("not in the reply: %s\n%s", expected, text);
	json_decref(facts);
	free(text);
}

static void a_stress_run_says_both_rates_and_what_they_mean(void **state)
{
	(void)state;
	check_line(rate_of("npu", 3, 7, 0, 10, 0), "- `model/llama3` on npu: head 3 of 10 passed "
						   "(30 %, 11–60 %), merge base 10 of 10 passed "
						   "(100 %, 72–100 %). The intervals are apart: it "
						   "fails more often here than on the merge "
						   "base.\n");
	check_line(rate_of("npu", 10, 0, 0, 3, 7),
	    "The intervals are apart: it passes more often here than on the merge base.\n");
	check_line(rate_of("npu", 8, 2, 0, 10, 0),
	    "head 8 of 10 passed (80 %, 49–94 %), merge base 10 of 10 passed (100 %, 72–100 %). "
	    "The intervals overlap: these runs show no difference.\n");
	check_line(rate_of("npu", 0, 1, 0, 1, 0), "head 0 of 1 passed (0 %, 0–79 %)");
	check_line(rate_of("npu", 0, 0, 10, 5, 0), "head gave no result, merge base 5 of 5 passed "
						   "(100 %, 57–100 %). Without results on both "
						   "sides there is nothing to compare.\n");
	check_line(
	    rate_of("npu", 4, 4, 2, 5, 0), "head 4 of 8 passed (50 %, 22–78 %) and 2 runs gave no result, merge base");
	check_line(
	    json_pack("{s:s, s:{s:i, s:i, s:i}}", "accelerator", "npu", "head", "passed", 2, "failed", 0, "lost", 1),
	    "head 2 of 2 passed (100 %, 34–100 %) and 1 run gave no result, merge base gave no "
	    "result");
}

/* The reply to the comment itself, if there is one, is another comment. */
static void a_stress_run_has_a_reply_of_its_own(void **state)
{
	json_t *facts = rates("`a` <!-- outpost:results --> @pytorch/owners",
	    json_pack("[o, o]", rate_of("npu", 1, 0, 0, 1, 0), rate_of("gone*", 1, 0, 0, 1, 0)));
	struct change_view *v = view_new();
	char *text;

	(void)state;
	view_add_accelerator(v, "npu", "Ascend *NPU*", LEVEL_2, DISPATCH_DONE);
	text = answer_text(facts, v, &OPTIONS);
	assert_true(answer_needs_view(facts));
	assert_ptr_equal(strstr(text, "<!-- outpost:reply:77:stress -->\n"), text);
	assert_null(strstr(text, COMMENT_MARKER));
	assert_non_null(strstr(text, " on `Ascend *NPU*`: head"));
	assert_non_null(strstr(text, " on `gone*`: head"));
	json_decref(facts);
	change_view_free(v);
	free(text);
}

static void an_unknown_test_is_named(void **state)
{
	json_t *facts = json_pack("{s:i, s:[{s:s, s:s, s:s, s:s}]}", "comment", 77, "commands", "kind", "stress",
	    "test", "lama*3", "result", "no_test", "hint", "model/llama3");
	char *text = answer_text(facts, NULL, &OPTIONS);

	(void)state;
	assert_non_null(strstr(text, "No job has reported a test `lama*3` for this head, or "
				     "several suites have one; did you mean "
				     "`model/llama3`?"));
	json_decref(facts);
	free(text);
}

static void an_unknown_test_is_named_with_its_accelerator(void **state)
{
	json_t *facts = json_pack("{s:i, s:[{s:s, s:s, s:s, s:s, s:s}]}", "comment", 77, "commands", "kind", "stress",
	    "word", "npu", "test", "model/lama", "result", "no_test", "hint", "model/llama3");
	char *text = answer_text(facts, NULL, &OPTIONS);

	(void)state;
	assert_non_null(strstr(text, "No job on `npu` has reported a test `model/lama` for this head; did you mean "
				     "`model/llama3`?"));
	json_decref(facts);
	free(text);
}

static void stress_without_a_test_is_not_an_unknown_command(void **state)
{
	char *text = text_of("unknown", "stress", "", "not_known", "", NULL);

	(void)state;
	assert_non_null(strstr(text, "`stress` needs the name of a test.\n"));
	assert_null(strstr(text, "I do not know"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_error_has_words),
	    cmocka_unit_test(the_reply_names_the_other_pull_request),
	    cmocka_unit_test(the_list_of_commands_names_the_bot),
	    cmocka_unit_test(typed_text_is_shown_as_code),
	    cmocka_unit_test(a_status_reply_shows_the_change),
	    cmocka_unit_test(a_stress_run_says_both_rates_and_what_they_mean),
	    cmocka_unit_test(a_stress_run_has_a_reply_of_its_own),
	    cmocka_unit_test(an_unknown_test_is_named),
	    cmocka_unit_test(an_unknown_test_is_named_with_its_accelerator),
	    cmocka_unit_test(stress_without_a_test_is_not_an_unknown_command),
	};

	return cmocka_run_group_tests_name("publish_answer", tests, NULL, NULL);
}
