/* SHA-256 and HMAC against the vectors of FIPS 180 and RFC 4231. */
#include <setjmp.h>

#include <cmocka.h>

static void assert_digest(const uint8_t digest[SHA256_BYTES], const char *expected)
{
	char hex[2 * SHA256_BYTES + 1];

	assert_string_equal(hex_encode(digest, SHA256_BYTES, hex), expected);
}

static void test_sha256(void **state)
{
	uint8_t out[SHA256_BYTES];

	(void)state;
	sha256("", 0, out);
	assert_digest(out, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	sha256("abc", 3, out);
	assert_digest(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void test_sha256_of_a_file(void **state)
{
	static const char path[] = "/usr/bin/openssl"; /* longer than a piece */
	struct buf text = BUF_INIT(64 << 20);
	uint8_t whole[SHA256_BYTES], pieces[SHA256_BYTES];
	struct error e = {0};
	int fd = open(path, O_RDONLY);

	(void)state;
	assert_int_equal(file_read(path, &text, &e), 0);
	assert_true(text.len > 300000);
	sha256(text.data, text.len, whole);
	assert_int_equal(sha256_file(fd, pieces), 0);
	assert_memory_equal(pieces, whole, SHA256_BYTES);
	close(fd);
	assert_int_equal(sha256_file(-1, pieces), ERR_IO);
	buf_release(&text);
}

static void test_hmac(void **state)
{
	static const struct {
		const char *key, *message, *digest;
	} cases[] = {
	    {"Jefe", "what do ya want for nothing?",
		"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
	    {"\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b", "Hi There",
		"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
	    {"", "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"},
	    /* GitHub's own example in its documentation of X-Hub-Signature-256 */
	    {"It's a Secret to Everybody", "Hello, World!",
		"757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
	};
	uint8_t out[SHA256_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		hmac_sha256(cases[i].key, strlen(cases[i].key), cases[i].message, strlen(cases[i].message), out);
		assert_digest(out, cases[i].digest);
	}
}

static void test_digest_of_pieces_equals_digest_of_the_whole(void **state)
{
	struct hmac *h = hmac_new("Jefe", 4);
	uint8_t out[SHA256_BYTES];

	(void)state;
	for (int round = 0; round < 3; round++) {
		hmac_reset(h);
		hmac_update(h, "what do ya ", 11);
		hmac_update(h, "", 0);
		hmac_update(h, "want for nothing?", 17);
		hmac_final(h, out);
		assert_digest(out, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	}
	hmac_free(h);
	hmac_free(NULL);
}

static void test_constant_time(void **state)
{
	(void)state;
	assert_true(equal_constant_time("abcd", "abcd", 4));
	assert_false(equal_constant_time("abcd", "abce", 4));
	assert_true(equal_constant_time("abcd", "abce", 3));
	assert_true(equal_constant_time("", "", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sha256),
	    cmocka_unit_test(test_sha256_of_a_file),
	    cmocka_unit_test(test_hmac),
	    cmocka_unit_test(test_digest_of_pieces_equals_digest_of_the_whole),
	    cmocka_unit_test(test_constant_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
