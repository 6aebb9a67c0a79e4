/* The comment as a maintainer reads it: complete bodies for typical cases, its size, and when it counts as changed. */
#include <setjmp.h>

#include <cmocka.h>

#include "markdown_oracle.h"
#include "rendering.h"
#include "view_builder.h"

#define PAGE      "https://outpost.example.org/"
#define HEAD_LINE "Tested commit: [`1111111`](https://github.com/pytorch/pytorch/commit/" VIEW_HEAD_SHA ")"
#define BASE_LINE " · merge base [`aaaaaaa`](https://github.com/pytorch/pytorch/commit/" VIEW_BASE_SHA ") on `main`"
#define UPDATED   "[all results](" PAGE "pulls/4711) · updated 2026-11-20 12:00 UTC\n"
#define AGAIN     "Test again: `@outpost-ci retest` · " UPDATED
#define FOOTER    "---\n" AGAIN

static const struct comment_options options = {
    .public_url = "https://outpost.example.org",
    .github_url = "https://github.com",
    .bot = "outpost-ci",
    .now_wall_ms = VIEW_NOW_MS,
};
static const char *const allowed[] = {PAGE, "https://github.com/", "https://vendor.example/", NULL};

/* Frees the view. */
static void check_body(struct change_view *v, const char *expected)
{
	struct comment c;

	view_comment(v, &options, &c);
	assert_string_equal(c.markdown, expected);
	assert_int_equal(c.bytes, strlen(c.markdown));
	assert_int_equal(c.n_rows_left_out, 0);
	comment_release(&c);
	change_view_free(v);
}

static void test_all_passed(void **state)
{
	struct change_view *v = view_new();
	size_t npu = view_add_accelerator(v, "npu", "Ascend NPU", LEVEL_3, DISPATCH_DONE);
	size_t mlu = view_add_accelerator(v, "mlu", "MLU", LEVEL_2, DISPATCH_DONE);
	size_t silent = view_add_accelerator(v, "lab", "Playground", LEVEL_1, DISPATCH_DONE);

	(void)state;
	view_set_merge_base(v, INT64_C(3) * 24 * 3600 * 1000);
	view_set_contact(v, npu, "https://vendor.example/docs", NULL, NULL);
	view_add_verdict(v, npu, "CI", "test", TEST_PASS, 12);
	view_add_verdict(v, mlu, "CI", "test", TEST_PASS, 13);
	view_add_verdict(v, silent, "CI", "test", TEST_FAIL, 14);
	assert_true(view_has_news(v));
	assert_true(view_is_complete(v));
	assert_false(view_has_red(v));
	check_body(v, COMMENT_MARKER "\n✓ **Both accelerators passed**.\n\n" HEAD_LINE BASE_LINE ", 3 days old\n\n"
				     "| Test | MLU | [Ascend NPU](https://vendor.example/docs) |\n"
				     "|:--|:-:|:-:|\n"
				     "| `CI/test` | [✓](" PAGE "jobs/13) | [✓](" PAGE "jobs/12) |\n\n" FOOTER);
}

/* Tests that were never reported did not pass. */
static void test_a_report_that_leaves_tests_out_says_so(void **state)
{
	struct change_view *v = view_new();
	size_t npu = view_add_accelerator(v, "npu", "Ascend NPU", LEVEL_2, DISPATCH_DONE);
	size_t mlu = view_add_accelerator(v, "mlu", "MLU", LEVEL_2, DISPATCH_DONE);

	(void)state;
	view_add_job(v, npu, 12, "one", "success")->n_cut = 40000;
	view_add_job(v, npu, 13, "two", "success")->n_cut = 2;
	view_add_job(v, mlu, 14, "one", "success");
	view_add_verdict(v, npu, "CI", "one", TEST_PASS, 12);
	view_add_verdict(v, mlu, "CI", "one", TEST_PASS, 14);
	check_body(v, COMMENT_MARKER "\n✓ **Both accelerators passed**.\n\n" HEAD_LINE "\n\n"
				     "| Test | MLU | Ascend NPU |\n|:--|:-:|:-:|\n| `CI/one` | [✓](" PAGE
				     "jobs/14) | [✓](" PAGE "jobs/12) |\n\n"
				     "**Incomplete:** Ascend NPU: its report leaves out 40002 tests\n\n" FOOTER);
}

/* A machine that died and a missing machine: each is named once, in fitting words. */
static void test_pull_runners(void **state)
{
	static const char why[] = "taken by a machine 4 times and never reported back";
	struct change_view *v = view_new();
	size_t npu = view_add_accelerator(v, "a", "Ascend NPU", LEVEL_2, DISPATCH_FAILED);
	size_t hpu = view_add_accelerator(v, "b", "Gaudi", LEVEL_2, DISPATCH_QUEUED);
	struct comment c;

	(void)state;
	v->accelerators[npu].dispatches[0].last_error = xstrdup(why);
	view_add_job(v, npu, 12, "farm", "cancelled");
	view_add_verdict(v, npu, "farm", "tests", TEST_MISS, 12)->message = xstrdup(why);
	free(v->accelerators[hpu].dispatches[0].runner_kind);
	v->accelerators[hpu].dispatches[0].runner_kind = xstrdup("pull");
	view_comment(v, &options, &c);
	assert_non_null(strstr(c.markdown, "\n\n**No report:** Ascend NPU: `taken by a machine 4"));
	assert_null(strstr(c.markdown, "<details>"));
	assert_non_null(strstr(c.markdown, "\n… **No result from Ascend NPU**, for the vendor to look "
					   "at; 1 accelerator waits for a machine.\n"));
	assert_non_null(strstr(c.markdown, "**Waiting for a machine:** Gaudi\n"));
	comment_release(&c);
	change_view_free(v);
}

static void test_everything_at_once(void **state)
{
	struct change_view *v = view_new();
	size_t npu = view_add_accelerator(v, "a", "Ascend NPU", LEVEL_3, DISPATCH_DONE);
	size_t mlu = view_add_accelerator(v, "b", "MLU", LEVEL_2, DISPATCH_EXPIRED);
	size_t xpu = view_add_accelerator(v, "c", "Intel XPU", LEVEL_2, DISPATCH_RUNNING);
	size_t hpu = view_add_accelerator(v, "d", "Gaudi", LEVEL_2, DISPATCH_HELD);

	(void)state;
	v->accelerators[mlu].dispatches[0].last_error = xstrdup("did not start within 2h");
	v->accelerators[hpu].dispatches[0].held_reason = xstrdup("a first-time contributor");
	view_set_contact(v, npu, NULL, "https://vendor.example/help", "alice");
	view_set_contact(v, mlu, NULL, NULL, "bob");
	view_add_job(v, npu, 12, "test", "failure")->url = xstrdup("https://vendor.example/run");
	view_add_job(v, npu, 13, "lint", "timed_out");
	view_add_job(v, xpu, 14, "slow", NULL);
	view_add_verdict(v, npu, "model", "llama3", TEST_FAIL, 12)->message =
	    xstrdup("RuntimeError: no kernel\n  at line 3");
	view_add_verdict(v, npu, "CI", "lint", TEST_MISS, 13);
	view_add_verdict(v, npu, "unit", "ops", TEST_ERROR, 12)->is_late = true;
	view_add_verdict(v, npu, "bench", "gemm", TEST_DONE, 12);
	view_add_verdict(v, npu, "model", "X", TEST_SKIP, 12);
	view_add_verdict(v, npu, "model", "Qwen", TEST_PASS, 12);
	view_add_verdict(v, mlu, "dispatch", "ci", TEST_MISS, 0);
	assert_true(view_has_red(v));
	assert_false(view_is_complete(v));
	check_body(v,
	    COMMENT_MARKER "\n… **2 failures** on Ascend NPU, not classified: this change may have caused them; 1 "
			   "accelerator is still running, 1 is held, 1 gave no result.\n\n" HEAD_LINE "\n\n"
			   "| Test | Ascend NPU | MLU | Intel XPU |\n"
			   "|:--|:-:|:-:|:-:|\n"
			   "| `model/llama3` | [✗](" PAGE "jobs/12) | ? | … |\n"
			   "| `unit/ops` | [!](" PAGE "jobs/12) | ? | … |\n"
			   "| `CI/lint` | [?](" PAGE "jobs/13) | ? | … |\n"
			   "| `CI/slow` |  | ? | […](" PAGE "jobs/14) |\n"
			   "| `bench/gemm` | [•](" PAGE "jobs/12) | ? | … |\n"
			   "| `model/X` | [–](" PAGE "jobs/12) | ? | … |\n"
			   "| `model/Qwen` | [✓](" PAGE "jobs/12) | ? | … |\n\n"
			   "**Not classified**: nothing shows whether this change caused them\n\n"
			   "Ascend NPU · [contact](https://vendor.example/help), on call `alice` · test again: "
			   "`@outpost-ci retest a`\n"
			   "- ✗ `model/llama3`: `RuntimeError: no kernel at line 3` · [this job](" PAGE
			   "jobs/12) · [vendor's run](https://vendor.example/run)\n"
			   "- ! `unit/ops`: the test itself broke, no message was reported · [this job](" PAGE
			   "jobs/12) · [vendor's run](https://vendor.example/run) · reported late\n\n"
			   "**No report:** MLU: `did not start within 2h`, on call `bob`\n\n"
			   "**Held:** Gaudi: `a first-time contributor`. A member of the repository releases this "
			   "commit with the comment `@outpost-ci ok-to-test 111111111122`\n\n"
			   "**Still running:** Intel XPU\n\n"
			   "<details><summary>1 test gave no result, for the vendor to look at</summary>\n\n"
			   "- ? `CI/lint` on Ascend NPU: no result, the job ended as `timed_out` · [this "
			   "job](" PAGE "jobs/13)\n\n</details>\n\n"
			   "---\n✓ passed · ✗ failed · ! the test itself broke · ? no report · • measured only · "
			   "– skipped or not supported · … running or waiting\n\n" AGAIN);
}

static void test_new_head_has_no_results(void **state)
{
	struct change_view *v = view_new();

	(void)state;
	view_add_accelerator(v, "a", "Ascend NPU", LEVEL_3, DISPATCH_SENT);
	view_add_accelerator(v, "b", "MLU", LEVEL_3, DISPATCH_QUEUED);
	assert_false(view_has_news(v));
	assert_false(view_is_complete(v));
	check_body(v, COMMENT_MARKER "\n… **No accelerator has reported yet**; 2 accelerators are still "
				     "running.\n\n" HEAD_LINE "\n\n"
				     "| Test | Ascend NPU | MLU |\n|:--|:-:|:-:|\n"
				     "| every test | … | … |\n\n"
				     "**Still running:** Ascend NPU (asked, no answer yet), MLU (not "
				     "asked yet)\n\n---\n… running or waiting\n\n" UPDATED);
}

static void test_only_held(void **state)
{
	struct change_view *v = view_new();

	(void)state;
	view_add_accelerator(v, "a", "Ascend NPU", LEVEL_3, DISPATCH_HELD);
	assert_true(view_has_news(v));
	assert_false(view_is_complete(v));
	check_body(v, COMMENT_MARKER "\n… **Nothing runs before a member allows it**; 1 accelerator is "
				     "held.\n\n" HEAD_LINE "\n\n"
				     "**Held:** Ascend NPU. A member of the repository releases this "
				     "commit with the comment `@outpost-ci ok-to-test 111111111122`\n\n---\n" UPDATED);
}

static void hold(struct change_view *v, const char *name, const char *title, const char *why, bool is_for_good)
{
	size_t i = view_add_accelerator(v, name, title, LEVEL_2, DISPATCH_HELD);

	v->accelerators[i].dispatches[0].held_reason = xstrdup(why);
	v->accelerators[i].dispatches[0].is_held_for_good = is_for_good;
}

/* Finding 1: a held round hides nothing of the earlier one, and is shown together with it. */
static void test_a_held_round_is_shown_with_the_finished_one(void **state)
{
	struct change_view *v = view_new();
	size_t i = view_add_accelerator(v, "a", "Ascend NPU", LEVEL_2, DISPATCH_DONE);
	struct accelerator_view *a = &v->accelerators[i];
	struct dispatch_view *d = VIEW_PUSH(a->dispatches, a->n_dispatches);
	struct comment c;

	(void)state;
	view_add_job(v, i, 12, "npu", "success");
	view_add_verdict(v, i, "model", "llama3", TEST_PASS, 12);
	d->id = xstrdup("bbbbbbbbbbbbbbbbbbbbbbbbbb");
	d->runner = xstrdup("ci");
	d->runner_kind = xstrdup("github");
	d->state = DISPATCH_HELD;
	d->held_reason = xstrdup("a stranger");
	view_comment(v, &options, &c);
	assert_non_null(strstr(c.markdown, "**Ascend NPU passed**"));
	assert_non_null(strstr(c.markdown, "| `model/llama3` | [✓]"));
	assert_non_null(
	    strstr(c.markdown, "**Held:** Ascend NPU: `a stranger`. A member of the repository releases this commit "
			       "with the comment `@outpost-ci ok-to-test 111111111122`"));
	comment_release(&c);
	change_view_free(v);
}

static void test_held_for_the_same_reason(void **state)
{
	struct change_view *v = view_new();

	(void)state;
	hold(v, "a", "A", "a stranger", false);
	hold(v, "b", "B", "only merged changes run here", true);
	hold(v, "c", "C", "no member", false);
	hold(v, "d", "D", "a stranger", false);
	assert_true(view_has_news(v));
	check_body(v,
	    COMMENT_MARKER "\n… **Nothing runs before a member allows it**; 3 accelerators are held, 1 runs after "
			   "the merge.\n\n" HEAD_LINE "\n\n"
			   "**Held:** A, D: `a stranger`; C: `no member`. A member of the repository "
			   "releases this commit with the comment `@outpost-ci ok-to-test 111111111122`\n\n"
			   "**Held:** B: `only merged changes run here`\n\n---\n" UPDATED);
}

static void test_declined(void **state)
{
	struct change_view *v = view_new();
	size_t i = view_add_accelerator(v, "a", "A", LEVEL_3, DISPATCH_CANCELLED);

	(void)state;
	view_add_accelerator(v, "b", "B", LEVEL_3, DISPATCH_CANCELLED);
	assert_false(view_has_news(v));
	/* no person ended it, for any error text */
	v->accelerators[i + 1].dispatches[0].last_error = xstrdup("cancelled by its vendor");
	assert_false(view_has_news(v));
	free(v->accelerators[i].dispatches[0].last_error);
	v->accelerators[i].dispatches[0].last_error = xstrdup("declined by alice");
	v->accelerators[i].dispatches[0].is_ended_by_person = true;
	assert_true(view_has_news(v));
	check_body(v, COMMENT_MARKER "\n? **Cancelled before anything was reported**.\n\n" HEAD_LINE "\n\n"
				     "**Cancelled:** A: `declined by alice`, B\n\n---\n" UPDATED);
}

/* No reader can act on it, so it causes no comment by itself. */
static void test_held_until_the_merge(void **state)
{
	struct change_view *v = view_new();

	(void)state;
	hold(v, "b", "B", "only merged changes run here", true);
	assert_false(view_has_news(v));
	check_body(v, COMMENT_MARKER "\n? **Nothing runs before this is merged**; 1 accelerator runs after "
				     "the merge.\n\n" HEAD_LINE "\n\n"
				     "**Held:** B: `only merged changes run here`\n\n---\n" UPDATED);
}

/* Tests that passed before a cancel do not make the whole run pass. */
static void test_cancelled_during_a_run(void **state)
{
	struct change_view *v = view_new();
	size_t npu = view_add_accelerator(v, "a", "Ascend NPU", LEVEL_2, DISPATCH_CANCELLED);

	(void)state;
	view_add_job(v, npu, 12, "one", "success");
	view_add_job(v, npu, 13, "two", NULL);
	view_add_verdict(v, npu, "CI", "one", TEST_PASS, 12);
	check_body(v, COMMENT_MARKER "\n? **Cancelled before everything was reported**.\n\n" HEAD_LINE "\n\n"
				     "| Test | Ascend NPU |\n|:--|:-:|\n| `CI/one` | [✓](" PAGE "jobs/12) |\n\n"
				     "**Cancelled:** Ascend NPU\n\n" FOOTER);
}

/* A truncated view shows which accelerators passed, but not which tests. */
static void test_truncated_view_shows_passed_accelerators(void **state)
{
	struct change_view *v = view_new();
	size_t npu = view_add_accelerator(v, "a", "Ascend NPU", LEVEL_2, DISPATCH_DONE);
	size_t mlu = view_add_accelerator(v, "b", "MLU", LEVEL_2, DISPATCH_DONE);
	struct comment c;

	(void)state;
	view_add_verdict(v, npu, "CI", "one", TEST_FAIL, 12);
	v->is_cut = true;
	v->n_verdicts_total = 3;
	v->accelerators[npu].n_verdicts[TEST_FAIL] = 1;
	v->accelerators[npu].n_verdicts[TEST_PASS] = 1;
	v->accelerators[mlu].n_verdicts[TEST_PASS] = 1;
	view_comment(v, &options, &c);
	assert_non_null(strstr(c.markdown, "failure** on Ascend NPU, not classified: this change may "
					   "have caused it; 1 accelerator passed."));
	assert_non_null(strstr(c.markdown, "| Test | Ascend NPU | MLU |"));
	comment_release(&c);
	change_view_free(v);
}

static void test_verdict_lines(void **state)
{
	static const struct {
		enum dispatch_state states[3];
		enum test_status cells[3]; /* N_TEST_STATUSES: none */
		const char *line;
	} cases[] = {
	    {{DISPATCH_DONE, DISPATCH_RUNNING, DISPATCH_SENT}, {TEST_PASS, N_TEST_STATUSES, N_TEST_STATUSES},
		"… **Nothing is red so far**; 1 accelerator passed, 2 are still running."},
	    {{DISPATCH_DONE, DISPATCH_DONE, DISPATCH_HELD}, {TEST_PASS, TEST_PASS, N_TEST_STATUSES},
		"… **2 of 3 accelerators passed**; 1 accelerator is held."},
	    {{DISPATCH_DONE, DISPATCH_DONE, DISPATCH_DONE}, {TEST_PASS, TEST_SKIP, TEST_PASS},
		"✓ **2 of 3 accelerators passed**; 1 accelerator finished without a test that "
		"passed or failed."},
	    {{DISPATCH_DONE, DISPATCH_DONE, DISPATCH_DONE}, {TEST_DONE, TEST_SKIP, TEST_DONE},
		"? **Finished without a test that passed or failed**."},
	    {{DISPATCH_DONE, DISPATCH_DONE, DISPATCH_DONE}, {TEST_FAIL, TEST_ERROR, TEST_FAIL},
		"? **3 failures** on T0, T1 and T2, not classified: this change may have caused "
		"them."},
	    {{DISPATCH_FAILED, DISPATCH_DONE, DISPATCH_EXPIRED}, {N_TEST_STATUSES, TEST_PASS, N_TEST_STATUSES},
		"? **No result from T0 and T2**, for the vendors to look at; 1 accelerator "
		"passed."},
	    {{DISPATCH_CANCELLED, DISPATCH_CANCELLED, DISPATCH_CANCELLED},
		{N_TEST_STATUSES, N_TEST_STATUSES, N_TEST_STATUSES}, "? **Cancelled before anything was reported**."},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct change_view *v = view_new();
		struct comment c;
		char line[512];

		for (size_t j = 0; j < 3; j++) {
			char title[] = {'T', (char)('0' + j), '\0'};
			size_t a = view_add_accelerator(v, title, title, LEVEL_2, cases[i].states[j]);

			if (cases[i].cells[j] != N_TEST_STATUSES)
				view_add_verdict(v, a, "s", "t", cases[i].cells[j], 1);
		}
		view_comment(v, &options, &c);
		snprintf(line, sizeof(line), COMMENT_MARKER "\n%s\n", cases[i].line);
		if (!str_has_prefix(c.markdown, line))
			fail_msg("expected %s in:\n%s", line, c.markdown);
		comment_release(&c);
		change_view_free(v);
	}
}

static void test_hash_ignores_time_only(void **state)
{
	struct change_view *v = view_new();
	size_t a = view_add_accelerator(v, "a", "A", LEVEL_2, DISPATCH_RUNNING);
	struct comment_options later = options;
	struct comment first, second, third;

	(void)state;
	view_set_merge_base(v, 60 * 1000);
	view_add_verdict(v, a, "s", "t", TEST_PASS, 1);
	later.now_wall_ms += INT64_C(200) * 24 * 3600 * 1000;
	view_comment(v, &options, &first);
	view_comment(v, &later, &second);
	assert_string_not_equal(first.markdown, second.markdown);
	assert_memory_equal(first.hash, second.hash, SHA256_BYTES);
	v->verdicts[0].status = TEST_FAIL;
	view_comment(v, &options, &third);
	assert_memory_not_equal(first.hash, third.hash, SHA256_BYTES);
	comment_release(&first);
	comment_release(&second);
	comment_release(&third);
	change_view_free(v);
}

static void test_order_of_the_view_does_not_matter(void **state)
{
	static const char *const names[] = {"b", "a", "c"};
	struct change_view *v = view_new(), *w = view_new();
	struct comment first, second;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		view_add_accelerator(v, names[i], names[i], LEVEL_2, DISPATCH_DONE);
		view_add_accelerator(w, names[2 - i], names[2 - i], LEVEL_2, DISPATCH_DONE);
	}
	for (size_t i = 0; i < 3; i++) {
		view_add_verdict(v, i, "s", names[i], i ? TEST_PASS : TEST_FAIL, 1);
		view_add_verdict(w, i, "s", names[2 - i], 2 - i ? TEST_PASS : TEST_FAIL, 1);
	}
	view_comment(v, &options, &first);
	view_comment(w, &options, &second);
	assert_string_equal(first.markdown, second.markdown);
	comment_release(&first);
	comment_release(&second);
	change_view_free(v);
	change_view_free(w);
}

/* n_tests × n_accelerators cells that share their strings, the suite's is names[n_tests]; every
 * n_red-th test fails. */
static struct change_view *make_large(size_t n_tests, size_t n_accelerators, size_t n_red, char **names)
{
	struct change_view *v = view_new();

	for (size_t i = 0; i < n_accelerators; i++) {
		char name[64];

		snprintf(name, sizeof(name), "Accelerator %02zu", i);
		view_add_accelerator(v, name, name, LEVEL_2, DISPATCH_DONE);
		view_set_contact(v, i, "https://vendor.example/some/longer/path/docs.html", NULL, NULL);
	}
	v->n_verdicts = n_tests * n_accelerators;
	v->n_verdicts_total = (int64_t)v->n_verdicts;
	v->verdicts = xcalloc(v->n_verdicts + 1, sizeof(*v->verdicts));
	for (size_t i = 0; i < v->n_verdicts; i++)
		v->verdicts[i] = (struct verdict_view){.accelerator = i % n_accelerators,
		    .suite = names[n_tests],
		    .test = names[i / n_accelerators],
		    .status = n_red && i / n_accelerators % n_red == 0 ? TEST_FAIL : TEST_PASS,
		    .attribution = (enum attribution)(i % N_ATTRIBUTIONS),
		    .job = (int64_t)(1000000 + i)};
	return v;
}

static void free_large(struct change_view *v)
{
	FREE_AND_NULL(v->verdicts);
	v->n_verdicts = 0;
	change_view_free(v);
}

static void test_sizes(void **state)
{
	static const struct {
		size_t n_tests, n_accelerators, n_red;
	} sizes[] = {{0, 0, 0}, {1, 1, 0}, {100, 3, 0}, {2000, 1, 50}, {20000, 3, 1000}, {300, 61, 7}, {20000, 60, 0},
	    {20000, 60, 2}};
	char **names = xcalloc(20001, sizeof(*names));

	(void)state;
	for (size_t i = 0; i < 20000; i++)
		names[i] = xasprintf("test_case_number_%05zu", i);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		size_t n_tests = sizes[i].n_tests;
		char *suite = names[n_tests];
		struct change_view *v;
		struct comment c;
		struct oracle o;
		clock_t start;

		names[n_tests] = (char[]){"model"};
		v = make_large(n_tests, sizes[i].n_accelerators, sizes[i].n_red, names);
		start = clock();
		view_comment(v, &options, &c);
		assert_true((clock() - start) / CLOCKS_PER_SEC < 20); /* sanitized, of one core */
		assert_true(c.bytes < COMMENT_MAX_BYTES);
		oracle_read(c.markdown, allowed, &o);
		assert_int_equal(o.n_tables, n_tests ? 1 : 0);
		if (n_tests)
			assert_int_equal(o.n_rows, 1 + n_tests - c.n_rows_left_out);
		if (n_tests > 1000)
			assert_true(c.n_rows_left_out > 0);
		assert_int_equal(o.n_foreign_links, 0);
		comment_release(&c);
		free_large(v);
		names[n_tests] = suite;
	}
	for (size_t i = 0; i < 20000; i++)
		free(names[i]);
	free(names);
}

static void test_passed_rows_are_left_out_first(void **state)
{
	struct change_view *v = view_new();
	size_t a = view_add_accelerator(v, "a", "A", LEVEL_2, DISPATCH_DONE);
	struct comment c;
	char name[64];

	(void)state;
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "test_%04d", i);
		view_add_verdict(v, a, "s", name, i == 2999 ? TEST_FAIL : TEST_PASS, 7);
	}
	view_comment(v, &options, &c);
	assert_non_null(strstr(c.markdown, "| `s/test_2999` | [✗]("));
	assert_int_equal(c.n_rows_left_out, 2984);
	assert_non_null(strstr(c.markdown, "\n2,984 more rows, all passed, are not shown. "));
	assert_non_null(strstr(c.markdown, "[The whole table](" PAGE "pulls/4711)"));
	comment_release(&c);
	change_view_free(v);
}

static void test_truncated_view_is_marked(void **state)
{
	struct change_view *v = view_new();
	size_t a = view_add_accelerator(v, "a", "A", LEVEL_2, DISPATCH_DONE);
	struct comment c;

	(void)state;
	view_add_accelerator(v, "b", "B", LEVEL_2, DISPATCH_RUNNING);
	view_add_verdict(v, a, "s", "t", TEST_FAIL, 7);
	v->is_cut = true;
	v->n_verdicts_total = 90000;
	view_comment(v, &options, &c);
	assert_non_null(strstr(c.markdown, "… **At least 1 failure** on A"));
	assert_non_null(strstr(c.markdown, "There are 90,000 results in all."));
	assert_non_null(strstr(c.markdown, ") | · |\n"));
	comment_release(&c);

	/* unread tests are left out as well */
	v->n_tests_total = 20001;
	v->accelerators[a].n_verdicts[TEST_FAIL] = 1;
	v->accelerators[a].n_verdicts[TEST_PASS] = 20000;
	view_comment(v, &options, &c);
	assert_non_null(strstr(c.markdown, "\n20,000 more rows, all passed, are not shown. "));
	comment_release(&c);
	v->accelerators[a].n_verdicts[TEST_SKIP] = 1;
	view_comment(v, &options, &c);
	assert_non_null(strstr(c.markdown, "\n20,000 more rows not shown, at least 0 of them red. "));
	comment_release(&c);
	change_view_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_all_passed),
	    cmocka_unit_test(test_a_report_that_leaves_tests_out_says_so),
	    cmocka_unit_test(test_pull_runners),
	    cmocka_unit_test(test_everything_at_once),
	    cmocka_unit_test(test_new_head_has_no_results),
	    cmocka_unit_test(test_only_held),
	    cmocka_unit_test(test_a_held_round_is_shown_with_the_finished_one),
	    cmocka_unit_test(test_held_for_the_same_reason),
	    cmocka_unit_test(test_declined),
	    cmocka_unit_test(test_held_until_the_merge),
	    cmocka_unit_test(test_cancelled_during_a_run),
	    cmocka_unit_test(test_truncated_view_shows_passed_accelerators),
	    cmocka_unit_test(test_verdict_lines),
	    cmocka_unit_test(test_hash_ignores_time_only),
	    cmocka_unit_test(test_order_of_the_view_does_not_matter),
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_passed_rows_are_left_out_first),
	    cmocka_unit_test(test_truncated_view_is_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
