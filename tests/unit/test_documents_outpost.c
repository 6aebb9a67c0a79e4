/* tests/data/reports/outpost-cases.json is the table of valid and invalid documents. The test of
 * docs/report.schema.json reads it as well: both must agree on each. */
#include "report_rig.h"

static void a_document_is_read(void **state)
{
	struct report_file r = report_of_file("outpost.json");
	const struct test_result *t = report_case(&r, "llama3");

	(void)state;
	assert_string_equal(t->dtype, "bf16");
	assert_string_equal(t->log_url, "https://ci.vendor.example/log/1");
	assert_true(t->has_number && t->number == 31.2);
	assert_string_equal(t->unit, "tokens/s");
	assert_null(t->message);
	assert_string_equal(report_case(&r, "test_add")->trace, "test_add.py:3: in test_add\n    assert 1 == 2");
	assert_string_equal(r.environment,
	    "{\"accelerator\":\"ascend-npu\",\"device\":\"Ascend 910B\",\"os\":\"Ubuntu 22.04\","
	    "\"driver\":\"24.1.rc2\",\"torch\":\"2.10.0a0+gitabc\","
	    "\"torch_commit\":\"0123456789abcdef0123456789abcdef01234567\","
	    "\"extension\":{\"name\":\"torch_npu\",\"version\":\"2.10.0\"}}");
	assert_report(&r, "PASS model/llama3 (12.5)\n"
			  "FAIL unit/test_add (0.25) 1 != 2\n"
			  "DONE benchmark/matmul\n"
			  "SKIP build/wheel not changed\n");
}

static void each_document_of_the_table_is_judged(void **state)
{
	struct buf text = BUF_INIT(1 << 20);
	json_t *cases, *c;
	size_t i;

	(void)state;
	assert_int_equal(file_read("tests/data/reports/outpost-cases.json", &text, NULL), 0);
	assert_int_equal(json_parse(buf_str(&text), text.len, &cases, NULL), 0);
	assert_true(json_array_size(cases) > 50);
	json_array_foreach(cases, i, c)
	{
		const char *why = json_get_str(c, "error");
		char *document = json_text(json_object_get(c, "document"));
		struct report_file r;

		if (why) {
			assert_refused(REPORT_OUTPOST, document, strlen(document), ERR_INVALID, why);
		} else {
			r = report_of(REPORT_OUTPOST, document);
			report_file_release(&r);
		}
		free(document);
	}
	json_decref(cases);
	buf_release(&text);
}

static void a_place_is_a_path_inside_the_tree(void **state)
{
	static const struct {
		const char *file, *kept;
	} table[] = {
	    {"test/test_ops.py", "test/test_ops.py"},
	    {"./test/test_ops.py", "test/test_ops.py"},
	    {"././a.py", "a.py"},
	    {"..a/b..c/d...py", "..a/b..c/d...py"},
	    {"a b/\xc3\xa4.py", "a b/\xc3\xa4.py"},
	    {"/root/pytorch/test/test_ops.py", NULL},
	    {"../a.py", NULL},
	    {"a/../b.py", NULL},
	    {"a/..", NULL},
	    {"./../a.py", NULL},
	    {".//etc/passwd", NULL},
	    {"C:/a.py", NULL},
	    {"a\\b.py", NULL},
	    {"a\nb.py", NULL},
	    {"a\x7f.py", NULL},
	    {"a/", NULL},
	    {"", NULL},
	    {"./", NULL},
	};
	char longest[REPORT_PATH_MAX_BYTES + 2];
	struct test_result t = {.status = TEST_FAIL};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		test_result_locate(&t, table[i].file, 7);
		if (table[i].kept)
			assert_string_equal(t.file, table[i].kept);
		else
			assert_null(t.file);
		assert_int_equal(t.line, table[i].kept ? 7 : 0);
		FREE_AND_NULL(t.file);
		t.line = 0;
	}
	memset(longest, 'a', sizeof(longest));
	longest[REPORT_PATH_MAX_BYTES + 1] = '\0';
	test_result_locate(&t, longest, 7);
	assert_null(t.file);
	test_result_locate(&t, longest + 1, REPORT_LINE_MAX + 1);
	assert_int_equal(t.line, 0);
	test_result_release(&t);
	t.status = TEST_PASS;
	test_result_locate(&t, "a.py", 7);
	assert_null(t.file);
}

static void a_place_is_written_back(void **state)
{
	struct report_file r =
	    report_of(REPORT_OUTPOST, "{\"schema\":1,\"tests\":[{\"suite\":\"s\",\"name\":\"a\",\"status\":\"FAIL\","
				      "\"file\":\"./a.py\",\"line\":12}]}");
	size_t n;
	char *text = report_file_text(&r, &n);

	(void)state;
	assert_non_null(strstr(text, "\"file\":\"a.py\",\"line\":12"));
	free(text);
	report_file_release(&r);
}

static void invalid_json_is_reported_with_its_line(void **state)
{
	static const struct {
		const char *text, *why;
	} table[] = {
	    {"{\"schema\":1,\n\"tests\":[\n{]}", "line 3: not valid JSON: a string was expected"},
	    {"{\"schema\":1,\n\"tests\":[1,]}", "line 2: not valid JSON: a value was expected"},
	    {"{\"schema\":1,\n\"tests\":[1 2]}", "line 2: not valid JSON: a ',' or ']' was expected"},
	    {"{\"schema\":1\n\"tests\":[]}", "line 2: not valid JSON: a ',' or '}' was expected"},
	    {"{\"schema\" 1}", "a ':' was expected"},
	    {"{\"schema\":1,\n", "line 2: not valid JSON: a string was expected"},
	    {"{\"schema\":1,\"tests\":[", "it ends too early"},
	    {"{\"schema\":01}", "a ',' or '}' was expected"},
	    {"{\"schema\":-}", "a value was expected"},
	    {"{\"schema\":1.}", "a value was expected"},
	    {"{\"schema\":1e}", "a value was expected"},
	    {"{\"schema\":tru}", "a value was expected"},
	    {"{\"schema\":1}\n\n}", "line 3: not valid JSON: text after the end"},
	    {"{\"schema\":\"\n\"}", "line 1: not valid JSON: a control character in a string"},
	    {"{\"schema\":\"\\x\"}", "a wrong escape"},
	    {"{\"schema\":\"\\u12g4\"}", "a wrong escape"},
	    {"{\"schema\":\"\\u00", "a wrong escape"},
	    {"{\"schema\":\"\\", "a wrong escape"},
	    {"{\"schema\":\"a\\u0000b\"}", "a NUL character"},
	    {"{\"schema\":\"", "a string without an end"},
	    {"{\"a\":1,\n\"b\":\"\xff\"}", "line 2: bytes that are not UTF-8"},
	    {"{\"a\":1,\n\"b\":\"\xed\xa0\x80\"}", "line 2: bytes that are not UTF-8"},
	    {"\xff\xfe{", "line 1: this is UTF-16; write it as UTF-8"},
	    {"{\"schema\":1,\"tests\":[{\"suite\":\"s\",\"name\":\"\\ud800\","
	     "\"status\":\"PASS\"}]}",
		"tests[0].name: "},
	    {"{\"schema\":1,\"schema\":1}", "schema appears twice"},
	    {"{\"schema\":1,\"tests\":[{\"suite\":\"s\",\"suite\":\"s\"}]}", "tests[0].suite appears twice"},
	    {"{\"schema\":1,\"environment\":{\"os\":\"a\",\"os\":\"b\"},\"tests\":[]}",
		"environment: duplicate object key"},
	    {"{\"schema\":1,\"tests\":[{\"suite\":\"s\",\"name\":\"n\",\"status\":\"PASS\","
	     "\"duration\":1e999}]}",
		"tests[0].duration: "},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_refused(REPORT_OUTPOST, table[i].text, strlen(table[i].text), ERR_INVALID, table[i].why);
}

static void a_byte_order_mark_is_accepted(void **state)
{
	struct report_file r =
	    report_of(REPORT_OUTPOST, "\xef\xbb\xbf \r\n{\"schema\":1,\"tests\":[{\"suite\":\"s\",\"name\":\"n\","
				      "\"status\":\"PASS\"}]}\n");

	(void)state;
	assert_report(&r, "PASS s/n\n");
}

/* The largest number of small values: a tree of them would take a gigabyte. */
static void hostile_values_are_skipped_without_building_trees(void **state)
{
	static const struct {
		const char *head, *tail, *why;
	} table[] = {
	    {"{\"schema\":1,\"unknown\":[[]", "]}", "tests is missing"},
	    {"{\"schema\":1,\"environment\":[[]", "],\"tests\":[]}", "environment is longer than 64 KiB"},
	    {"{\"schema\":1,\"tests\":[{\"suite\":\"s\",\"number\":[[]", "]}]}",
		"tests[0].number is longer than 64 KiB"},
	    {"{\"schema\":1,\"tests\":[[]", "]}", "tests[0] must be an object"},
	};
	struct buf text = BUF_INIT(REPORT_FILE_MAX_BYTES);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		buf_clear(&text);
		buf_append_str(&text, table[i].head);
		for (int k = 0; k < 4000000; k++)
			buf_append(&text, ",[]", 3);
		buf_append_str(&text, table[i].tail);
		assert_refused(REPORT_OUTPOST, buf_str(&text), text.len, ERR_INVALID, table[i].why);
	}
	buf_clear(&text);
	for (int k = 0; k < 1000000; k++)
		buf_append_str(&text, "[");
	assert_refused(REPORT_OUTPOST, buf_str(&text), text.len, ERR_INVALID, "nested deeper than 64");
	buf_release(&text);
}

static void an_environment_is_bounded(void **state)
{
	struct buf text = BUF_INIT(1 << 20);

	(void)state;
	buf_append_str(&text, "{\"schema\":1,\"environment\":{\"device\":\"");
	for (int i = 0; i < 20000; i++)
		buf_append_char(&text, 'x');
	buf_append_str(&text, "\"},\"tests\":[]}");
	assert_refused(REPORT_OUTPOST, buf_str(&text), text.len, ERR_INVALID, "environment is longer than 16 KiB");
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_document_is_read),
	    cmocka_unit_test(each_document_of_the_table_is_judged),
	    cmocka_unit_test(a_place_is_a_path_inside_the_tree),
	    cmocka_unit_test(a_place_is_written_back),
	    cmocka_unit_test(invalid_json_is_reported_with_its_line),
	    cmocka_unit_test(a_byte_order_mark_is_accepted),
	    cmocka_unit_test(hostile_values_are_skipped_without_building_trees),
	    cmocka_unit_test(an_environment_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
