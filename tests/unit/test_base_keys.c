#include <setjmp.h>

#include <cmocka.h>

#include "secret_of.h"
#include "test_keys.h"

static EVP_PKEY *key; /* 2048 bits */

static int make_key(void **state)
{
	(void)state;
	key = EVP_RSA_gen(2048);
	return key ? 0 : -1;
}

static int free_key(void **state)
{
	(void)state;
	EVP_PKEY_free(key);
	return 0;
}

static struct rsa_public_key *public_half(void)
{
	unsigned char n[512], e[8];
	size_t n_len = key_number(key, OSSL_PKEY_PARAM_RSA_N, n, sizeof(n));
	size_t e_len = key_number(key, OSSL_PKEY_PARAM_RSA_E, e, sizeof(e));
	struct rsa_public_key *k;

	assert_int_equal(rsa_public_key_new(n, n_len, e, e_len, &k, NULL), 0);
	return k;
}

static void check_pair(char *pem)
{
	static const char text[] = "signed text";
	struct buf signature = BUF_INIT(1024);
	struct rsa_public_key *pub = public_half();
	struct secret *priv = secret_of(pem);

	assert_int_equal(rsa_private_key_check(priv, NULL), 0);
	assert_int_equal(rsa_sign(priv, text, sizeof(text), &signature), 0);
	assert_int_equal(signature.len, 256);
	assert_int_equal(rsa_verify(pub, text, sizeof(text), signature.data, 256), 0);
	assert_int_equal(rsa_verify(pub, text, sizeof(text) - 1, signature.data, 256), ERR_AUTH);
	assert_int_equal(rsa_verify(pub, text, sizeof(text), signature.data, 255), ERR_AUTH);
	assert_int_equal(rsa_verify(pub, text, sizeof(text), "", 0), ERR_AUTH);
	signature.data[7] ^= 1;
	assert_int_equal(rsa_verify(pub, text, sizeof(text), signature.data, 256), ERR_AUTH);
	secret_unref(priv);
	rsa_public_key_free(pub);
	buf_release(&signature);
	free(pem);
}

static void test_sign_and_verify(void **state)
{
	(void)state;
	check_pair(pem_pkcs8(key));
	check_pair(pem_pkcs1(key));
}

static void check_refused(char *pem, const char *why)
{
	struct secret *k = secret_of(pem);
	struct buf signature = BUF_INIT(1024);
	struct error e = {0};

	assert_int_equal(rsa_private_key_check(k, &e), ERR_INVALID);
	assert_non_null(strstr(e.text, why));
	assert_int_equal(rsa_sign(k, "", 0, &signature), ERR_INVALID);
	assert_int_equal(signature.len, 0);
	secret_unref(k);
	free(pem);
}

static void test_refuses_other_text_as_a_key(void **state)
{
	EVP_PKEY *small = EVP_RSA_gen(1024), *ec = EVP_EC_gen("P-256");
	char *cut = pem_pkcs8(key);

	(void)state;
	cut[strlen(cut) / 2] = '\0';
	check_refused(cut, "not a private key");
	check_refused(xstrdup(""), "not a private key");
	check_refused(xstrdup("no key at all"), "not a private key");
	check_refused(pem_public(key), "not a private key");
	check_refused(pem_encrypted(key), "encrypted");
	check_refused(pem_pkcs8(ec), "not RSA");
	check_refused(pem_pkcs8(small), "under 2048");
	EVP_PKEY_free(small);
	EVP_PKEY_free(ec);
}

static void test_public_numbers(void **state)
{
	static const uint8_t e3[] = {1, 0, 1}, one[] = {1}, even[] = {4};
	struct rsa_public_key *k;
	struct error err = {0};
	unsigned char n[4096];
	size_t len = key_number(key, OSSL_PKEY_PARAM_RSA_N, n, sizeof(n));

	(void)state;
	assert_int_equal(rsa_public_key_new(n, len, one, 1, &k, NULL), ERR_INVALID);
	assert_int_equal(rsa_public_key_new(n, len, even, 1, &k, NULL), ERR_INVALID);
	assert_int_equal(rsa_public_key_new(n, len, e3, 0, &k, NULL), ERR_INVALID);
	assert_int_equal(rsa_public_key_new(n, 0, e3, 3, &k, NULL), ERR_INVALID);
	assert_int_equal(rsa_public_key_new(n, len / 2, e3, 3, &k, &err), ERR_INVALID);
	assert_null(k);
	n[len - 1] ^= 1;
	assert_int_equal(rsa_public_key_new(n, len, e3, 3, &k, NULL), ERR_INVALID);
	memset(n, 0xff, sizeof(n));
	assert_int_equal(rsa_public_key_new(n, sizeof(n), e3, 3, &k, NULL), ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sign_and_verify),
	    cmocka_unit_test(test_refuses_other_text_as_a_key),
	    cmocka_unit_test(test_public_numbers),
	};

	return cmocka_run_group_tests(tests, make_key, free_key);
}
