#include <setjmp.h>

#include <cmocka.h>

#include "oidc_token.h"
#include "runners/issuer_keys.h"

static struct test_key key, small_key;

static int set_up(void **state)
{
	(void)state;
	key = test_key_of(EVP_RSA_gen(2048));
	small_key = test_key_of(EVP_RSA_gen(1024));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	test_key_release(&key);
	test_key_release(&small_key);
	return 0;
}

static int parse(const char *text, struct jwks *ret)
{
	struct error e = {0};
	int err = jwks_parse(text, strlen(text), ret, &e);

	assert_int_equal(err, e.code);
	return err;
}

static void test_accepts_a_valid_key(void **state)
{
	static const char message[] = "signed";
	char *text = jwks_text(test_key_jwk(&key, "k1"));
	struct buf signature = BUF_INIT(1024);
	struct jwks set;

	(void)state;
	assert_int_equal(parse(text, &set), 0);
	assert_int_equal(set.n, 1);
	assert_null(jwks_find(&set, "k2"));
	assert_int_equal(rsa_sign(key.private_key, message, strlen(message), &signature), 0);
	assert_int_equal(rsa_verify(jwks_find(&set, "k1"), message, strlen(message), signature.data, signature.len), 0);
	jwks_release(&set);
	buf_release(&signature);
	free(text);
}

static void test_skips_other_keys(void **state)
{
	static const char *const changes[][2] = {
	    {"kty", "\"EC\""},
	    {"kty", "7"},
	    {"use", "\"enc\""},
	    {"alg", "\"RS512\""},
	    {"alg", "\"HS256\""},
	    {"alg", "null"},
	    {"kid", "\"\""},
	    {"kid", "7"},
	    {"n", "\"AQAB\""},
	    {"n", "\"!!\""},
	    {"n", "\"\""},
	    {"n", "[]"},
	    {"e", "\"\""},
	    {"e", "\"AQ\""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		json_t *one = test_key_jwk(&key, "k1"), *set;
		struct jwks keys;
		char *text;

		json_object_set_new(one, changes[i][0], json_loads(changes[i][1], JSON_DECODE_ANY, NULL));
		set = json_pack("{s:[o,o]}", "keys", one, test_key_jwk(&key, "good"));
		text = json_text(set);
		assert_int_equal(parse(text, &keys), 0);
		if (keys.n != 1)
			fail_msg("accepted %s: %s", changes[i][0], changes[i][1]);
		assert_non_null(jwks_find(&keys, "good"));
		jwks_release(&keys);
		free(text);
		json_decref(set);
	}
}

static void test_use_and_alg_may_be_absent(void **state)
{
	json_t *one = test_key_jwk(&key, "k1");
	struct jwks set;
	char *text;

	(void)state;
	json_object_del(one, "use");
	json_object_del(one, "alg");
	text = jwks_text(one);
	assert_int_equal(parse(text, &set), 0);
	jwks_release(&set);
	free(text);
}

static void test_refuses(void **state)
{
	static const char *const wrong[] = {"", "[]", "{}", "{\"keys\":{}}", "{\"keys\":[]}", "{\"keys\":[7]}",
	    "{\"keys\":[{}]}", "{\"keys\":[", "{\"keys\":[],\"keys\":[]}"};
	char *text = jwks_text(test_key_jwk(&small_key, "small"));
	struct jwks set;

	(void)state;
	assert_int_equal(parse(text, &set), ERR_INVALID);
	free(text);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_int_equal(parse(wrong[i], &set), ERR_INVALID);
}

static void test_bounds_size(void **state)
{
	struct buf many = BUF_INIT(JWKS_BYTES_MAX * 2);
	struct jwks set;

	(void)state;
	buf_append_str(&many, "{\"keys\":[{}");
	for (int i = 0; i < JWKS_KEYS_MAX; i++)
		buf_append_str(&many, ",{}");
	buf_append_str(&many, "]}");
	assert_int_equal(parse(buf_str(&many), &set), ERR_TOO_BIG);
	while (many.len <= JWKS_BYTES_MAX)
		buf_append_char(&many, ' ');
	assert_int_equal(parse(buf_str(&many), &set), ERR_TOO_BIG);
	buf_release(&many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_accepts_a_valid_key),
	    cmocka_unit_test(test_skips_other_keys),
	    cmocka_unit_test(test_use_and_alg_may_be_absent),
	    cmocka_unit_test(test_refuses),
	    cmocka_unit_test(test_bounds_size),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
