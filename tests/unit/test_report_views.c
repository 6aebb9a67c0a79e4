/* The two other forms of a change: JSON as the contract lists it, and a terminal's table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "report/change_json.h"
#include "report/terminal.h"
#include "view_builder.h"

static struct change_view *make_view(void)
{
	struct change_view *v = view_new();
	size_t npu = view_add_accelerator(v, "npu", "Ascend NPU", LEVEL_3, DISPATCH_DONE);
	size_t hpu = view_add_accelerator(v, "hpu", "Gaudi", LEVEL_2, DISPATCH_HELD);
	size_t lab = view_add_accelerator(v, "lab", "Silent Lab", LEVEL_1, DISPATCH_DONE);

	v->accelerators[hpu].dispatches[0].held_reason = xstrdup("a first-time contributor");
	view_add_job(v, npu, 12, "test", "failure")->completed_ms = VIEW_NOW_MS;
	view_add_verdict(v, npu, "model", "llama3", TEST_FAIL, 12)->message = xstrdup("bo\xFFom");
	view_add_verdict(v, npu, "model", "Qwen", TEST_PASS, 12);
	view_add_verdict(v, lab, "model", "Qwen", TEST_FAIL, 13);
	return v;
}

static void test_json_has_the_contract_s_fields(void **state)
{
	struct change_view *v = make_view();
	json_t *obj = change_json(v, "https://outpost.example.org");
	json_t *accelerators = json_object_get(obj, "accelerators");
	json_t *verdicts = json_object_get(obj, "verdicts");
	json_t *npu = json_array_get(accelerators, 0), *red = json_array_get(verdicts, 0);
	json_t *job = json_array_get(json_object_get(npu, "jobs"), 0);
	json_t *held;

	(void)state;
	assert_string_equal(json_get_str(obj, "repository"), "pytorch/pytorch");
	assert_int_equal(json_get_int(obj, "number", 0), 4711);
	assert_string_equal(json_get_str(obj, "head_sha"), VIEW_HEAD_SHA);
	assert_true(json_is_null(json_object_get(obj, "merge_base_sha")));
	assert_string_equal(json_get_str(obj, "state"), "open");
	assert_int_equal(json_array_size(accelerators), 2);
	assert_string_equal(json_get_str(npu, "name"), "npu");
	assert_string_equal(json_get_str(npu, "level"), "L3");
	assert_string_equal(json_get_str(job, "status"), "completed");
	assert_string_equal(json_get_str(job, "run_id"), "77");
	assert_string_equal(json_get_str(job, "completed_at"), "2026-11-20T12:00:00Z");
	assert_true(json_is_null(json_object_get(job, "started_at")));
	held = json_array_get(json_object_get(json_array_get(accelerators, 1), "dispatches"), 0);
	assert_string_equal(json_get_str(held, "state"), "held");
	assert_string_equal(json_get_str(held, "held_reason"), "a first-time contributor");
	assert_int_equal(json_array_size(verdicts), 2);
	assert_string_equal(json_get_str(red, "accelerator"), "npu");
	assert_string_equal(json_get_str(red, "status"), "FAIL");
	assert_string_equal(json_get_str(red, "attribution"), "UNCLASSIFIED");
	assert_string_equal(json_get_str(red, "message"), "bo\xEF\xBF\xBDom");
	assert_int_equal(json_get_int(red, "job", 0), 12);
	assert_string_equal(
	    json_get_str(red, "evidence_url"), "https://outpost.example.org/jobs/12");
	assert_true(json_is_null(json_object_get(json_array_get(verdicts, 1), "attribution")));
	json_decref(obj);
	change_view_free(v);
}

static void test_terminal_is_aligned(void **state)
{
	struct terminal_options o = {
	    .width = 60, .public_url = "https://outpost.example.org", .now_wall_ms = VIEW_NOW_MS};
	struct change_view *v = make_view();
	struct buf out = BUF_INIT(1 << 20);

	(void)state;
	terminal_render(v, &o, &out);
	assert_string_equal(buf_str(&out),
	    "1 test is red on Ascend NPU, cause not classified yet; 1 accelerator is held.\n\n"
	    "pytorch/pytorch#4711 at 1111111111\n\n"
	    "Test          Ascend NPU\n"
	    "model/llama3      ✗     \n"
	    "model/Qwen        ✓     \n\n"
	    "✗ model/llama3 on Ascend NPU\n"
	    "    bo\xEF\xBF\xBDom\n"
	    "    https://outpost.example.org/jobs/12\n\n"
	    "held  Gaudi: a first-time contributor\n\n"
	    "✓ passed  ✗ failed  ! test broke  ? no report  – skipped  • measured  … running\n"
	    "2026-11-20T12:00:00Z\n");
	buf_release(&out);
	change_view_free(v);
}

static void test_terminal_breaks_into_blocks_and_lets_no_escape_through(void **state)
{
	struct terminal_options o = {
	    .width = 50, .public_url = "https://outpost.example.org", .now_wall_ms = VIEW_NOW_MS};
	struct change_view *v = view_new();
	struct buf out = BUF_INIT(1 << 20);

	(void)state;
	for (int i = 0; i < 10; i++) {
		char name[32];

		snprintf(name, sizeof(name), "Accelerator %d", i);
		view_add_accelerator(v, name, name, LEVEL_2, DISPATCH_DONE);
		view_add_verdict(v, (size_t)i, "s", "日本語\x1b[31m", TEST_PASS, 1);
	}
	terminal_render(v, &o, &out);
	assert_null(strchr(buf_str(&out), '\x1b'));
	assert_non_null(strstr(buf_str(&out), "Test           Accelerator 0  Accelerator 1\n"));
	assert_non_null(strstr(buf_str(&out), "s/日本語 [31m        ✓              ✓      \n"));
	buf_release(&out);
	change_view_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_json_has_the_contract_s_fields),
	    cmocka_unit_test(test_terminal_is_aligned),
	    cmocka_unit_test(test_terminal_breaks_into_blocks_and_lets_no_escape_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
