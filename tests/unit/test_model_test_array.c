/* A report's tests read in one pass are those of the tree, for usual entries, for odd ones and for mistakes. */
#include <setjmp.h>

#include <cmocka.h>

#include "../fuzz/test_array_check.h"

#define ENTRY(more) "{\"suite\":\"ops\",\"name\":\"a\",\"status\":\"FAIL\"" more "}"

static bool is_read_apart(const char *entries)
{
	char *text = xasprintf("{\"a\":[1,{\"tests\":[2]}],\"tests\":[%s],\"b\":\"]\"}", entries);
	char *exact = xmemdup(text, strlen(text)); /* without a NUL, so that a sanitizer sees a byte too far */
	bool is = check_test_array(exact, strlen(text));

	free(exact);
	free(text);
	return is;
}

static void usual_entries_need_no_tree(void **state)
{
	static const char *const entries[] = {
	    ENTRY(""),
	    ENTRY(",\"duration\":0"),
	    ENTRY(",\"duration\":0.1,\"dtype\":\"bf16\""),
	    ENTRY(" , \"duration\" : 1.0010228157043457031 ") ",\n\t" ENTRY(
		",\"duration\":4.6e-05,\"x\":-1.0e-7,\"y\":1e-5,\"z\":1e-3"),
	    ENTRY(",\"duration\":123456789.25") "," ENTRY(",\"duration\":1E2") "," ENTRY(
		",\"duration\":9.999999999999999"),
	    ENTRY(",\"duration\":0.30000000000000004") "," ENTRY(",\"duration\":5e-3") "," ENTRY(",\"duration\":0.0"),
	    ENTRY(",\"x\":-0.1,\"y\":9007199254740993,\"z\":4503599627370497.5,\"w\":9007199254740993.0,\"v\":"
		  "12345678901234567.0"),
	    ENTRY(",\"message\":\"a\\n\\t\\\"\\\\\\/\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\u001f\xc3\xa9\x7f\""),
	    ENTRY(",\"trace\":\"\\n a\\n b\\r\\n "
		  "\",\"log_url\":\"https://example.org/1\",\"file\":\"./a/b.py\",\"line\":12.0"),
	    ENTRY(",\"log_url\":\"http://example.org\",\"file\":\"/etc/passwd\",\"line\":7"),
	    ENTRY(",\"number\":{\"value\":1.5,\"unit\":\"tokens/s\",\"more\":null}"),
	    ENTRY(",\"number\":{\"unit\":null,\"value\":3}") "," ENTRY(",\"number\":null,\"message\":null"),
	    ENTRY(",\"unknown\":true,\"other\":null,\"third\":\"x\""),
	    "{\"status\":\"PASS\",\"name\":\"b\",\"suite\":\"s\"}," ENTRY(
		"") ",{\"name\":\"b\",\"status\":\"PASS\",\"suite\":\"s\"}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(entries); i++)
		if (!is_read_apart(entries[i]))
			fail_msg("not read: %s", entries[i]);
}

static void other_entries_are_left_to_the_tree(void **state)
{
	static const char *const entries[] = {
	    "",
	    "7",
	    "{}",
	    ENTRY("") "," ENTRY("") ",{}", /* nothing of the entries before it */
	    ENTRY("") ",{}," ENTRY(""),
	    ENTRY(",\"number\":{\"value\":1}") "," ENTRY(",\"number\":{\"value\":1}") "," ENTRY(",\"number\":{}"),
	    "null",
	    ENTRY("") ",",
	    ENTRY(","),
	    ENTRY(",\"suite\":\"twice\""),
	    ENTRY(",\"x\":1,\"x\":1"),
	    ENTRY(",\"number\":{\"value\":1,\"value\":1}"),
	    ENTRY(",\"x\":{}"),
	    ENTRY(",\"x\":[]"),
	    ENTRY(",\"message\":7"),
	    ENTRY(",\"duration\":\"1\""),
	    ENTRY(",\"duration\":-1"),
	    ENTRY(",\"duration\":01"),
	    ENTRY(",\"duration\":1."),
	    ENTRY(",\"duration\":1e999"),
	    ENTRY(",\"duration\":-0.0"),
	    ENTRY(",\"line\":1.5"),
	    ENTRY(",\"line\":0"),
	    ENTRY(",\"number\":{}"),
	    ENTRY(",\"number\":{\"value\":1,\"unit\":2}"),
	    ENTRY(",\"number\":7"),
	    ENTRY(",\"x\":1e-300"),
	    ENTRY(",\"x\":1e17"),
	    ENTRY(",\"x\":123456789012345678901234567890"),
	    ENTRY(",\"message\":\"\\ud83d\""),
	    ENTRY(",\"message\":\"\\udc00\""),
	    ENTRY(",\"message\":\"\\u0000\""),
	    ENTRY(",\"message\":\"\\x\""),
	    ENTRY(",\"message\":\"\\u12\""),
	    ENTRY(",\"message\":\"\n\""),
	    ENTRY(",\"message\":\"\xff\""),
	    ENTRY(",\"message\":\"\xed\xa0\x80\""),
	    ENTRY(",\"me\\u0073sage\":\"x\""),
	    ENTRY(",\"message\":\"x"),
	    ENTRY(",\"message\""),
	    ENTRY(",\"message\":"),
	    ENTRY(",\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,\"j\":1,\"k\":1,\"l\":1,"
		  "\"m\":1,\"n\":1"),
	    "{\"suite\":\"\",\"name\":\"a\",\"status\":\"FAIL\"}",
	    "{\"suite\":\"s\",\"name\":\" \",\"status\":\"FAIL\"}",
	    "{\"suite\":\"s\",\"name\":\"a\",\"status\":\"fail\"}",
	    "{\"suite\":\"s\",\"status\":\"FAIL\"}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(entries); i++)
		if (is_read_apart(entries[i]))
			fail_msg("read: %s", entries[i]);
}

static void only_the_array_at_its_path_is_read(void **state)
{
	static const char *const documents[] = {
	    "",
	    "{",
	    "[]",
	    "{\"tests\"",
	    "{\"tests\":{}}",
	    "{\"tests\":[]}",
	    "{\"other\":[" ENTRY("") "]}",
	    "{\"a\":{\"tests\":[" ENTRY("") "]}}",
	    "{\"a\":\"\\\"tests\\\":["
	    "\"}",
	    "{\"te\\u0073ts\":[" ENTRY("") "]}",
	    "{\"tests\":[" ENTRY("") "",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(documents); i++) {
		char *exact = xmemdup(documents[i], strlen(documents[i]));

		assert_false(check_test_array(exact, strlen(documents[i])));
		free(exact);
	}
	/* the rest shows these mistakes */
	assert_true(check_test_array(
	    "{\"tests\":[" ENTRY("") "],\"tests\":[]}", strlen("{\"tests\":[" ENTRY("") "],\"tests\":[]}")));
	assert_true(check_test_array("{\"tests\":[" ENTRY("") "]]", strlen("{\"tests\":[" ENTRY("") "]]")));
}

/* Entries with random members, cut and changed at random. */
static void random_documents_are_the_same_on_both_ways(void **state)
{
	static const char *const members[] = {"\"suite\":\"s\"", "\"name\":\"n\"", "\"status\":\"PASS\"",
	    "\"status\":\"FAIL\"", "\"duration\":%.17g", "\"duration\":%.3f", "\"duration\":%.1e", "\"x\":%.9g",
	    "\"message\":\"\\u00e9\\n\"", "\"trace\":\"\\ud83d\\ude00\\t\"", "\"number\":{\"value\":%.17g}",
	    "\"line\":3", "\"file\":\"a.py\"", "\"dtype\":null"};
	unsigned seed = 1;
	int n_read = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct buf text = BUF_INIT(1 << 16);

		buf_append_str(&text, "{\"tests\":[");
		for (int entry = 0; entry <= rand_r(&seed) % 3; entry++) {
			buf_append_str(&text, entry ? ",{" : "{");
			for (size_t i = 0; i < ARRAY_LEN(members); i++)
				if (i < 3    ? rand_r(&seed) % 50
				    : i == 3 ? rand_r(&seed) % 50 == 0
					     : rand_r(&seed) % 3 == 0) {
					char one[128];
					double v = rand_r(&seed) / (1.0 + rand_r(&seed) % 100000) / 1e3;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
					snprintf(one, sizeof(one), members[i], v);
#pragma GCC diagnostic pop
					buf_append_str(&text, text.data[text.len - 1] == '{' ? "" : ",");
					buf_append_str(&text, one);
				}
			buf_append_str(&text, "}");
		}
		buf_append_str(&text, "]}");
		if (rand_r(&seed) % 4 == 0)
			text.data[(size_t)rand_r(&seed) % text.len] = "\"\\{}[],:x0\n"[rand_r(&seed) % 11];
		n_read += check_test_array(text.data, text.len);
		buf_release(&text);
	}
	assert_true(n_read > 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(usual_entries_need_no_tree),
	    cmocka_unit_test(other_entries_are_left_to_the_tree),
	    cmocka_unit_test(only_the_array_at_its_path_is_read),
	    cmocka_unit_test(random_documents_are_the_same_on_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
