#include <setjmp.h>

#include <cmocka.h>

#include "secret_of.h"
#include "test_keys.h"

/* RFC 7515 appendix A.2, whose key is a JWK as RFC 7517 writes them. */
#define A2_HEADER "eyJhbGciOiJSUzI1NiJ9"
#define A2_PAYLOAD                                                                                                     \
	"eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt"                                             \
	"cGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
#define A2_SIGNATURE                                                                                                   \
	"cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7"                                             \
	"AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4"                                             \
	"BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K"                                             \
	"0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqv"                                             \
	"hJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrB"                                             \
	"p0igcN_IoypGlUPQGe77Rw"
#define A2_N                                                                                                           \
	"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-"                                            \
	"Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG"                                            \
	"6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9"                                            \
	"e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT"                                            \
	"6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDT"                                            \
	"W9gb54h4FRWyuXpoQ"

static struct rsa_public_key *jwk(const char *n, const char *e)
{
	struct buf modulus = BUF_INIT(1024), exponent = BUF_INIT(8);
	struct rsa_public_key *k;

	assert_int_equal(base64url_decode(n, strlen(n), &modulus), 0);
	assert_int_equal(base64url_decode(e, strlen(e), &exponent), 0);
	assert_int_equal(rsa_public_key_new(modulus.data, modulus.len, exponent.data, exponent.len, &k, NULL), 0);
	buf_release(&modulus);
	buf_release(&exponent);
	return k;
}

static int verify(const struct jwt *t, struct rsa_public_key *k)
{
	return rsa_verify(k, t->signing_input, t->n_signing_input, t->signature, t->n_signature);
}

static void test_rfc7515_a2(void **state)
{
	static const char token[] = A2_HEADER "." A2_PAYLOAD "." A2_SIGNATURE;
	static const char forged[] = A2_HEADER "."
					       "eyJpc3MiOiJqb2UifQ"
					       "." A2_SIGNATURE;
	struct rsa_public_key *k = jwk(A2_N, "AQAB");
	struct jwt t;

	(void)state;
	assert_int_equal(jwt_parse(token, strlen(token), &t, NULL), 0);
	assert_string_equal(t.alg, "RS256");
	assert_null(t.kid);
	assert_string_equal(json_get_str(t.payload, "iss"), "joe");
	assert_int_equal(json_get_int(t.payload, "exp", 0), 1300819380);
	assert_int_equal(t.n_signature, 256);
	assert_int_equal(verify(&t, k), 0);
	jwt_release(&t);
	assert_int_equal(jwt_parse(forged, strlen(forged), &t, NULL), 0);
	assert_int_equal(verify(&t, k), ERR_AUTH);
	jwt_release(&t);
	rsa_public_key_free(k);
}

static void test_make(void **state)
{
	EVP_PKEY *key = EVP_RSA_gen(2048);
	char *pem = pem_pkcs1(key), *token;
	json_t *claims = json_pack("{s:s,s:i}", "iss", "12345", "iat", 1700000000);
	struct secret *priv = secret_of(pem);
	struct rsa_public_key *pub;
	unsigned char n[256], e[8];
	size_t n_len = key_number(key, OSSL_PKEY_PARAM_RSA_N, n, sizeof(n));
	size_t e_len = key_number(key, OSSL_PKEY_PARAM_RSA_E, e, sizeof(e));
	struct jwt t;

	(void)state;
	assert_int_equal(rsa_public_key_new(n, n_len, e, e_len, &pub, NULL), 0);
	assert_int_equal(jwt_make_rs256(claims, priv, &token), 0);
	assert_int_equal(jwt_parse(token, strlen(token), &t, NULL), 0);
	assert_string_equal(t.alg, "RS256");
	assert_string_equal(json_get_str(t.header, "typ"), "JWT");
	assert_true(json_equal(t.payload, claims));
	assert_int_equal(verify(&t, pub), 0);
	jwt_release(&t);
	free(token);
	secret_unref(priv);
	rsa_public_key_free(pub);
	json_decref(claims);
	EVP_PKEY_free(key);
	free(pem);
}

static char *part(const char *json)
{
	struct buf out = BUF_INIT(65536);

	base64url_encode(json, strlen(json), &out);
	return out.data ? buf_detach(&out) : xstrdup("");
}

static void check(int want, const char *header, const char *payload, const char *signature)
{
	char *h = part(header), *p = part(payload), *text = xasprintf("%s.%s.%s", h, p, signature);
	struct error e = {0};
	struct jwt t;
	int err = jwt_parse(text, strlen(text), &t, &e);

	assert_int_equal(err, want);
	assert_int_equal(e.code, want);
	jwt_release(&t);
	free(h);
	free(p);
	free(text);
}

static void test_headers(void **state)
{
	(void)state;
	check(0, "{\"alg\":\"none\"}", "{}", ""); /* a well-formed token that no issuer will accept */
	check(0, "{\"alg\":\"RS256\",\"kid\":\"k\",\"typ\":\"JWT\"}", "{}", "AAAA");
	check(ERR_INVALID, "{}", "{}", "AAAA");
	check(ERR_INVALID, "{\"alg\":256}", "{}", "AAAA");
	check(ERR_INVALID, "{\"alg\":\"RS256\",\"kid\":1}", "{}", "AAAA");
	check(ERR_INVALID, "{\"alg\":\"RS256\",\"crit\":[\"exp\"]}", "{}", "AAAA");
	check(ERR_INVALID, "{\"alg\":\"RS256\",\"crit\":null}", "{}", "AAAA");
	check(ERR_INVALID, "{\"alg\":\"RS256\",\"alg\":\"none\"}", "{}", "AAAA");
	check(ERR_INVALID, "[]", "{}", "AAAA");
	check(ERR_INVALID, "{\"alg\":\"RS256\"}", "[]", "AAAA");
	check(ERR_INVALID, "{\"alg\":\"RS256\"}", "", "AAAA");
	check(ERR_INVALID, "{\"alg\":\"RS256\"}", "{}x", "AAAA");
}

static void check_text(int want, const char *text)
{
	struct jwt t;

	assert_int_equal(jwt_parse(text, strlen(text), &t, NULL), want);
	jwt_release(&t);
}

static void test_shape(void **state)
{
	char *long_one = xmalloc(JWT_BYTES_MAX + 2);

	(void)state;
	check_text(0, "eyJhbGciOiJSUzI1NiJ9.e30.AAAA");
	check_text(ERR_INVALID, "");
	check_text(ERR_INVALID, "..");
	check_text(ERR_INVALID, "eyJhbGciOiJSUzI1NiJ9.e30");
	check_text(ERR_INVALID, "eyJhbGciOiJSUzI1NiJ9.e30.AAAA.");
	check_text(ERR_INVALID, "eyJhbGciOiJSUzI1NiJ9.e30.AAAA.AAAA.AAAA");
	check_text(ERR_INVALID, "eyJhbGciOiJSUzI1NiJ9.e30.AAA=");
	check_text(ERR_INVALID, "eyJhbGciOiJSUzI1NiJ9.e30.AA+A");
	check_text(ERR_INVALID, "eyJhbGciOiJSUzI1NiJ9.e30.A");
	check_text(ERR_INVALID, "eyJhbGciOiJSUzI1NiJ9.e30.AB"); /* bits beyond the last byte */
	check_text(ERR_INVALID, "eyJhbGciOiJSUzI1NiJ9.e3 0.AAAA");
	check_text(ERR_INVALID, " eyJhbGciOiJSUzI1NiJ9.e30.AAAA");
	memset(long_one, 'A', JWT_BYTES_MAX + 1);
	long_one[JWT_BYTES_MAX + 1] = '\0';
	check_text(ERR_TOO_BIG, long_one);
	memcpy(long_one, "eyJhbGciOiJSUzI1NiJ9.e30.", 25);
	long_one[JWT_BYTES_MAX] = '\0';
	check_text(ERR_TOO_BIG, long_one); /* a signature longer than any key's */
	free(long_one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rfc7515_a2),
	    cmocka_unit_test(test_make),
	    cmocka_unit_test(test_headers),
	    cmocka_unit_test(test_shape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
