#include <setjmp.h>

#include <cmocka.h>

#include "skim_oracle.h"
#include "webhook_bodies.h"

static const char *const bodies[] = {
    BODY_OF_PULL("opened", ""),
    BODY_OF_PULL("edited", "\"changes\":{\"base\":{\"ref\":{\"from\":\"old\"}}},"),
    BODY_OF_PULL("edited", "\"changes\":{\"title\":{\"from\":\"a\\u0000b\"}},"),
    BODY_PUSH,
    BODY_COMMENT,
    BODY_CHECK_RUN,
    BODY_INSTALLATION,
    "{\"zen\":\"Keep it.\",\"hook_id\":1,\"numbers\":[0,-1,2.5,1e9,-0.1E-2]}",
};

static void skim_ok(const char *body, struct skim *ret)
{
	struct error e = {0};
	int err = skim(body, strlen(body), ret, &e);

	if (err)
		fail_msg("%s in %s", e.text, body);
}

static void test_reads_the_fields(void **state)
{
	struct skim s;

	(void)state;
	skim_ok(bodies[0], &s);
	assert_string_equal(s.action, "opened");
	assert_string_equal(s.repository, "pytorch/pytorch");
	assert_string_equal(s.ref, "");
	assert_false(s.has_base_change);
	assert_false(s.has_nul);
	skim_ok(bodies[1], &s);
	assert_true(s.has_base_change);
	skim_ok(bodies[2], &s);
	assert_false(s.has_base_change);
	assert_true(s.has_nul);
	skim_ok("{\"a\":\"\\\\u0000 \\u0001\"}", &s);
	assert_false(s.has_nul);
	skim_ok(BODY_PUSH, &s);
	assert_string_equal(s.ref, "refs/heads/main");
	assert_false(s.is_deleted);
	skim_ok(BODY_COMMENT, &s);
	assert_true(s.is_pull_comment);
	skim_ok(" { \"deleted\" : true , \"r\\u0065f\" : \"a\\/b\\n\\ud83d\\ude00\" }\r\n\t", &s);
	assert_true(s.is_deleted);
	assert_string_equal(s.ref, "a/b\n\xf0\x9f\x98\x80");
}

static void test_drops_unusable_fields(void **state)
{
	struct buf long_text = BUF_INIT(4096);
	struct skim s;

	(void)state;
	skim_ok("{\"action\":7,\"ref\":null,\"repository\":\"x/y\",\"changes\":[],\"issue\":{}}", &s);
	assert_string_equal(s.action, "");
	assert_string_equal(s.ref, "");
	assert_string_equal(s.repository, "");
	skim_ok("{\"action\":\"op\\u0000ened\"}", &s);
	assert_string_equal(s.action, "");
	skim_ok("{\"changes\":{\"base\":null},\"issue\":{\"pull_request\":null}}", &s);
	assert_false(s.has_base_change);
	assert_false(s.is_pull_comment);
	skim_ok("{\"x\":{\"action\":\"a\",\"full_name\":\"b\",\"base\":{}},\"y\":[{\"ref\":\"c\"}]}", &s);
	assert_string_equal(s.action, "");
	assert_string_equal(s.repository, "");
	assert_string_equal(s.ref, "");
	buf_append_str(&long_text, "{\"action\":\"");
	for (size_t i = 0; i < sizeof s.action; i++)
		buf_append_char(&long_text, 'a');
	buf_append_str(&long_text, "\"}");
	skim_ok(buf_str(&long_text), &s);
	assert_string_equal(s.action, "");
	buf_release(&long_text);
}

static void test_refuses(void **state)
{
	static const char *const wrong[] = {
	    "",
	    " ",
	    "[]",
	    "7",
	    "\"a\"",
	    "null",
	    "{",
	    "{}}",
	    "{} x",
	    "{,}",
	    "{\"a\"}",
	    "{\"a\":}",
	    "{\"a\":1,}",
	    "{\"a\":1 \"b\":2}",
	    "{a:1}",
	    "{'a':1}",
	    "{\"a\":[1,]}",
	    "{\"a\":[1 2]}",
	    "{\"a\":[}",
	    "{\"a\":{]",
	    "{\"a\":01}",
	    "{\"a\":-}",
	    "{\"a\":+1}",
	    "{\"a\":1.}",
	    "{\"a\":.5}",
	    "{\"a\":1e}",
	    "{\"a\":1e+}",
	    "{\"a\":0x1}",
	    "{\"a\":NaN}",
	    "{\"a\":tru}",
	    "{\"a\":nulL}",
	    "{\"a\":truefalse}",
	    "{\"a\":\"}",
	    "{\"a\":\"\\x\"}",
	    "{\"a\":\"\\u12g4\"}",
	    "{\"a\":\"\\u12\"}",
	    "{\"a\":\"\\ud800\"}",
	    "{\"a\":\"\\ud800\\u0041\"}",
	    "{\"a\":\"\\ud800\\ud800\"}",
	    "{\"a\":\"\\udc00\"}",
	    "{\"a\":\"\t\"}",
	    "{\"a\":\"\n\"}",
	    "{\"a\":\"\x7f\xff\"}",
	    "{\"a\":\"\xc0\xaf\"}",
	    "{\"a\":\"\xe0\x80\xaf\"}",
	    "{\"a\":\"\xed\xa0\x80\"}",
	    "{\"a\":\"\xf4\x90\x80\x80\"}",
	    "{\"a\":\"\xc3\"}",
	    "{\"a\":\"\xf0\x9f\x98\"}",
	    "\xef\xbb\xbf{}",
	    "{\"a\":1}\x0c",
	    "{/**/}",
	    "{\"action\":\"a\",\"action\":\"b\"}",
	    "{\"action\":\"a\",\"\\u0061ction\":\"b\"}",
	    "{\"repository\":{\"full_name\":\"a/b\",\"full_name\":\"c/d\"}}",
	    "{\"repository\":{},\"repository\":{}}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct error e = {0};
		struct skim s;

		if (skim(wrong[i], strlen(wrong[i]), &s, &e) != ERR_INVALID)
			fail_msg("accepted %s", wrong[i]);
		assert_non_null(strstr(e.text, "byte "));
		assert_null(skim_disagrees(wrong[i], strlen(wrong[i])));
	}
}

static void test_refuses_a_nul(void **state)
{
	static const char inside[] = "{\"a\":\"b\0c\"}", behind[] = "{}\0", between[] = "{\0}";
	struct skim s;

	(void)state;
	assert_int_equal(skim(inside, sizeof inside - 1, &s, NULL), ERR_INVALID);
	assert_int_equal(skim(behind, sizeof behind - 1, &s, NULL), ERR_INVALID);
	assert_int_equal(skim(between, sizeof between - 1, &s, NULL), ERR_INVALID);
}

static void test_bounds_depth(void **state)
{
	(void)state;
	for (int levels = 63; levels <= 66; levels++) {
		struct buf b = BUF_INIT(4096);
		struct skim s;

		buf_append_str(&b, "{\"a\":");
		for (int i = 1; i < levels; i++)
			buf_append_str(&b, i % 2 ? "[" : "{\"k\":");
		buf_append_str(&b, "1");
		for (int i = levels - 1; i >= 1; i--)
			buf_append_char(&b, i % 2 ? ']' : '}');
		buf_append_char(&b, '}');
		assert_int_equal(skim(buf_str(&b), b.len, &s, NULL), levels <= 64 ? 0 : ERR_INVALID);
		buf_release(&b);
	}
}

/* xorshift: the same mutations in every run. */
static uint32_t next_random(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

static size_t mutate(char *text, size_t n, uint32_t *x)
{
	static const char interesting[] = "\"\\{}[],:0-.eE u\t\xc3\xa4\xed\xff";
	size_t at = next_random(x) % n;

	switch (next_random(x) % 4) {
	case 0:
		text[at] = interesting[next_random(x) % (sizeof interesting - 1)];
		return n;
	case 1:
		text[at] = (char)next_random(x);
		return n;
	case 2:
		memmove(text + at, text + at + 1, n - at - 1);
		return n - 1;
	default:
		return at + 1;
	}
}

static void test_agrees_with_jansson(void **state)
{
	uint32_t x = 20260101;

	(void)state;
	for (size_t b = 0; b < ARRAY_LEN(bodies); b++) {
		size_t n = strlen(bodies[b]);

		assert_null(skim_disagrees(bodies[b], n));
		for (int round = 0; round < 3000; round++) {
			/* exactly sized, so that the sanitizer sees a read behind the end */
			char *text = xmalloc(n + 1);
			size_t m = n;
			const char *wrong;

			memcpy(text, bodies[b], n);
			for (int i = 1 + round % 3; i > 0 && m > 1; i--)
				m = mutate(text, m, &x);
			text = xrealloc(text, m + 1);
			text[m] = '\0';
			wrong = skim_disagrees(text, m);
			if (wrong)
				fail_msg("%s: %s", wrong, text);
			free(text);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_reads_the_fields),
	    cmocka_unit_test(test_drops_unusable_fields),
	    cmocka_unit_test(test_refuses),
	    cmocka_unit_test(test_refuses_a_nul),
	    cmocka_unit_test(test_bounds_depth),
	    cmocka_unit_test(test_agrees_with_jansson),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
