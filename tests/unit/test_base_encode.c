/* Bytes as text and back: the vectors of RFC 4648, and random identifiers. */
#include <setjmp.h>

#include <cmocka.h>

static void test_hex(void **state)
{
	uint8_t bytes[4];
	char out[9];

	(void)state;
	assert_string_equal(hex_encode("\x00\x0f\xf0\xff", 4, out), "000ff0ff");
	assert_string_equal(hex_encode("", 0, out), "");
	assert_int_equal(hex_decode("000Ff0FF", 8, bytes, 4), 0);
	assert_memory_equal(bytes, "\x00\x0f\xf0\xff", 4);
	assert_int_equal(hex_decode("000ff0f", 7, bytes, 4), ERR_INVALID);
	assert_int_equal(hex_decode("000ff0ff00", 10, bytes, 4), ERR_INVALID);
	assert_int_equal(hex_decode("000ff0fg", 8, bytes, 4), ERR_INVALID);
	assert_int_equal(hex_decode("000ff0 f", 8, bytes, 4), ERR_INVALID);
}

static const struct {
	const char *plain, *base64url, *base32;
} VECTORS[] = {
    {"", "", ""},
    {"f", "Zg", "my"},
    {"fo", "Zm8", "mzxq"},
    {"foo", "Zm9v", "mzxw6"},
    {"foob", "Zm9vYg", "mzxw6yq"},
    {"fooba", "Zm9vYmE", "mzxw6ytb"},
    {"foobar", "Zm9vYmFy", "mzxw6ytboi"},
    {"\xfb\xff\xfe", "-__-", "7p774"},
};

static void test_vectors(void **state)
{
	struct buf b = BUF_INIT(100);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(VECTORS); i++) {
		size_t n = strlen(VECTORS[i].plain);
		char base32[32];

		buf_clear(&b);
		base64url_encode(VECTORS[i].plain, n, &b);
		assert_string_equal(buf_str(&b), VECTORS[i].base64url);
		assert_string_equal(base32_encode(VECTORS[i].plain, n, base32), VECTORS[i].base32);
		buf_clear(&b);
		assert_int_equal(base64url_decode(VECTORS[i].base64url, strlen(VECTORS[i].base64url), &b), 0);
		assert_int_equal(b.len, n);
		assert_string_equal(buf_str(&b), VECTORS[i].plain);
	}
	buf_release(&b);
}

static void test_base64url_is_strict(void **state)
{
	/* the last two have bits after the end of the text */
	static const char *const wrong[] = {"Z", "Zg==", "Zg=", "Zm9+", "Zm9/", "Zm 9", "Zm9v\n", "Zh", "Zm9"};
	struct buf b = BUF_INIT(100), small = BUF_INIT(2);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		if (base64url_decode(wrong[i], strlen(wrong[i]), &b) != ERR_INVALID)
			fail_msg("\"%s\" is accepted", wrong[i]);
	assert_int_equal(base64url_decode("Zg\0A", 4, &b), ERR_INVALID);
	assert_int_equal(base64url_decode("Zm9v", 4, &small), ERR_TOO_BIG);
	buf_release(&b);
	buf_release(&small);
}

static void test_ids(void **state)
{
	char id[ID_BYTES], other[ID_BYTES], uuid[UUID_BYTES];

	(void)state;
	assert_ptr_equal(id_new(id), id);
	assert_int_equal(strlen(id), 26);
	assert_int_equal(strspn(id, "abcdefghijklmnopqrstuvwxyz234567"), 26);
	assert_string_not_equal(id, id_new(other));
	uuid_new(uuid);
	assert_int_equal(strlen(uuid), 36);
	assert_int_equal(strspn(uuid, "0123456789abcdef-"), 36);
	assert_int_equal(uuid[8], '-');
	assert_int_equal(uuid[14], '4');
	assert_non_null(strchr("89ab", uuid[19]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_hex),
	    cmocka_unit_test(test_vectors),
	    cmocka_unit_test(test_base64url_is_strict),
	    cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
