/* Untrusted JSON is bounded; the getters tolerate missing fields. */
#include <math.h>
#include <setjmp.h>

#include <cmocka.h>

static json_t *parse(const char *text)
{
	struct error e = {0};
	json_t *v;

	if (json_parse(text, strlen(text), &v, &e))
		fail_msg("%s: %s", text, e.text);
	return v;
}

static void test_refused(void **state)
{
	static const char *const wrong[] = {"", " ", "{", "{}x", "{} {}", "nul", "{\"a\":1,\"a\":2}",
	    "{\"a\":{\"b\":1,\"b\":1}}", "\"\\u0000\"", "\"\\ud800\"", "\"\xff\"", "[1,]", "{a:1}", "NaN", "1e999",
	    "99999999999999999999", "\"a\nb\""};
	struct error e;
	json_t *v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		e = (struct error){0};
		if (json_parse(wrong[i], strlen(wrong[i]), &v, &e) != ERR_INVALID)
			fail_msg("\"%s\" is accepted", wrong[i]);
		assert_null(v);
		assert_true(e.text[0]);
	}
	assert_int_equal(json_parse("{\"a\":\n1,\"a\":2}", 14, &v, &(struct error){0}), ERR_INVALID);
	assert_int_equal(json_parse("{}\0", 3, &v, NULL), ERR_INVALID);
}

static void test_nuls_are_replaced(void **state)
{
	static const char *const texts[][2] = {
	    {"{\"a\":\"\\u0000\"}", "{\"a\":\"\\ufffd\"}"},
	    {"[\"\\\\u0000\",\"\\\\\\u0000\\u0000\"]", "[\"\\\\u0000\",\"\\\\\\ufffd\\ufffd\"]"},
	    {"\"\\u0001\\u000", "\"\\u0001\\u000"},
	    {"\\", "\\"},
	    {"", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		char *text = xstrdup(texts[i][0]);

		json_replace_nuls(text, strlen(text));
		assert_string_equal(text, texts[i][1]);
		free(text);
	}
}

static void test_depth(void **state)
{
	char text[2 * 66 + 8];
	json_t *v;

	(void)state;
	for (int depth = 63; depth <= 66; depth++) {
		memset(text, '[', (size_t)depth);
		memset(text + depth, ']', (size_t)depth);
		assert_int_equal(json_parse(text, 2 * (size_t)depth, &v, NULL), depth <= 64 ? 0 : ERR_INVALID);
		json_decref(v);
	}
	/* Brackets inside a string do not count as nesting. */
	v = parse("[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[\"]");
	json_decref(v);
}

static void test_getters(void **state)
{
	json_t *v = parse("{\"s\":\"text\",\"i\":42,\"t\":true,\"n\":null,\"o\":{\"p\":{\"q\":\"x\"}}}");

	(void)state;
	assert_string_equal(json_get_str(v, "s"), "text");
	assert_null(json_get_str(v, "i"));
	assert_null(json_get_str(v, "none"));
	assert_null(json_get_str(NULL, "s"));
	assert_int_equal(json_get_int(v, "i", -1), 42);
	assert_int_equal(json_get_int(v, "s", -1), -1);
	assert_int_equal(json_get_int(NULL, "i", -1), -1);
	assert_true(json_get_bool(v, "t", false));
	assert_true(json_get_bool(v, "i", true));
	assert_string_equal(json_string_value(json_at(v, "o", "p", "q", NULL)), "x");
	assert_null(json_at(v, "o", "x", "q", NULL));
	assert_null(json_at(v, "s", "x", NULL));
	assert_null(json_at(NULL, "s", NULL));
	json_decref(v);
}

static void test_written(void **state)
{
	json_t *v = json_object();
	char *text;

	(void)state;
	json_set_str(v, "z", "\"ä\n");
	json_set_str(v, "a", NULL);
	json_set_str(v, "bad", "\xff");
	json_set_int(v, "i", INT64_MIN);
	json_set_time(v, "t", 1795176000000);
	json_set_time(v, "never", 0);
	text = json_text(v);
	assert_string_equal(text, "{\"z\":\"\\\"ä\\n\",\"a\":null,\"bad\":null,"
				  "\"i\":-9223372036854775808,\"t\":\"2026-11-20T12:00:00Z\","
				  "\"never\":null}");
	free(text);
	json_decref(v);
}

/* The part of each text that is a number or a word; -1: none. */
static void test_scalar_end(void **state)
{
	static const struct {
		const char *text;
		int n;
	} cases[] = {{"0", 1}, {"-0.5,", 4}, {"12e+3]", 5}, {"1E-2", 4}, {"01", 1}, {"true", 4}, {"false}", 5},
	    {"nulls", 4}, {"1.5.2", 3}, {"", -1}, {"-", -1}, {"1.", -1}, {"1e", -1}, {"1e+", -1}, {".5", -1},
	    {"+1", -1}, {"tru", -1}, {"True", -1}, {"nan", -1}, {"\"a\"", -1}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *text = cases[i].text, *end = json_scalar_end(text, text + strlen(text));

		if ((end ? end - text : -1) != cases[i].n)
			fail_msg("%s", text);
	}
	/* it does not read beyond the end */
	static const char word[] = "true", number[] = "1.5";

	assert_null(json_scalar_end(word, word + 3));
	assert_null(json_scalar_end(number, number + 2));
}

/* ---- text without a tree ---- */

static void assert_out(struct buf *out, json_t *expected)
{
	char *text = json_text(expected);

	assert_string_equal(buf_str(out), text);
	free(text);
	json_decref(expected);
	buf_release(out);
}

static void test_out_has_jansson_s_text(void **state)
{
	static const char *const texts[] = {"", "plain", "a \"quoted\" \\ text/", "\b\t\n\f\r\x01\x1f\x7f",
	    "\xc3\xa9 \xe2\x82\xac", "\xff\xc3", "\xe2\x82",
	    "a long text of more than sixteen bytes, with \xf0\x9f\x98\x80 and \"\n\" in it"};
	static const int64_t numbers[] = {0, 7, -1, 10, INT64_MAX, INT64_MIN};
	static const double reals[] = {0, 1, -2.5, 0.1, 1e22, 1e-7, 123456.789, 5e-324, 1.7976931348623157e308};
	struct buf out = BUF_INIT(1 << 16);
	json_t *obj = json_object(), *list = json_array();

	(void)state;
	json_out_open(&out, NULL, '{');
	json_out_open(&out, "list", '[');
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		json_out_text(&out, NULL, texts[i]);
		json_array_append_new(list, json_foreign_text(texts[i]));
	}
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		json_out_int(&out, NULL, numbers[i]);
		json_array_append_new(list, json_integer(numbers[i]));
	}
	for (size_t i = 0; i < ARRAY_LEN(reals); i++) {
		json_out_real(&out, NULL, reals[i]);
		json_array_append_new(list, json_real(reals[i]));
	}
	json_out_real(&out, NULL, (double)INFINITY);
	json_out_text(&out, NULL, NULL);
	json_out_time(&out, NULL, 0);
	json_out_id(&out, NULL, 0);
	json_out_raw(&out, NULL, "[]");
	json_out_time(&out, NULL, 1700000000000);
	json_out_texts(&out, NULL, "a\"b", "", "/7", NULL);
	json_out_value(&out, NULL, json_pack("{s:[]}", "a"));
	json_out_close(&out, ']');
	json_out_members(&out, json_object());
	json_out_members(&out, json_pack("{s:i, s:n}", "x", 1, "y"));
	json_out_open(&out, "empty", '{');
	json_out_members(&out, json_pack("{s:s}", "colon", ":"));
	json_out_raw(&out, "z", "true");
	json_out_id(&out, "id", 7);
	json_out_close(&out, '}');
	json_out_close(&out, '}');
	for (int i = 0; i < 4; i++)
		json_array_append_new(list, json_null());
	json_array_append_new(list, json_array());
	json_array_append_new(list, json_time(1700000000000));
	json_array_append_new(list, json_string("a\"b/7"));
	json_array_append_new(list, json_pack("{s:[]}", "a"));
	json_object_set_new(obj, "list", list);
	json_object_update_new(
	    obj, json_pack("{s:i, s:n, s:{s:s, s:b, s:i}}", "x", 1, "y", "empty", "colon", ":", "z", 1, "id", 7));
	assert_out(&out, obj);
}

/* The scan of a text looks at sixteen bytes at a time, and at the last sixteen once more. */
static void test_out_finds_each_special_byte(void **state)
{
	(void)state;
	for (size_t n = 1; n < 50; n++)
		for (size_t at = 0; at < n; at++) {
			struct buf out = BUF_INIT(1 << 10);
			char text[50];

			memset(text, 'a', n);
			text[n] = '\0';
			text[at] = '"';
			json_out_text(&out, NULL, text);
			assert_out(&out, json_string(text));
		}
}

static void test_out_repeats_a_part(void **state)
{
	struct buf out = BUF_INIT(1 << 10), full = BUF_INIT(4);

	(void)state;
	json_out_open(&out, NULL, '{');
	json_out_part(&out, "a", "[1]tail", 3);
	json_out_part(&out, "b", "2tail", 1);
	json_out_close(&out, '}');
	assert_out(&out, json_pack("{s:[i], s:i}", "a", 1, "b", 2));
	json_out_text(&full, NULL, "too long");
	assert_int_equal(buf_status(&full), ERR_TOO_BIG);
	buf_release(&full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_nuls_are_replaced),
	    cmocka_unit_test(test_depth),
	    cmocka_unit_test(test_getters),
	    cmocka_unit_test(test_written),
	    cmocka_unit_test(test_scalar_end),
	    cmocka_unit_test(test_out_has_jansson_s_text),
	    cmocka_unit_test(test_out_finds_each_special_byte),
	    cmocka_unit_test(test_out_repeats_a_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
