/* An issuer for tests: a key that is created when the test runs, its JWKS, and the valid and invalid tokens that a
 * test needs. */
#pragma once

#include "secret_of.h"
#include "test_keys.h"

#define ISSUER   "https://issuer.example"
#define AUDIENCE "pytorch-cross-repo-ci-relay"

struct test_key {
	EVP_PKEY *pair;
	struct secret *private_key;
};

/* Takes over the reference to pair. */
static inline struct test_key test_key_of(EVP_PKEY *pair)
{
	struct test_key k = {.pair = pair};
	char *pem = pem_pkcs8(k.pair);

	k.private_key = secret_of(pem);
	free(pem);
	return k;
}

static inline void test_key_release(struct test_key *k)
{
	secret_unref(k->private_key);
	EVP_PKEY_free(k->pair);
}

static inline char *test_key_number(const struct test_key *k, const char *which)
{
	unsigned char number[2048];
	struct buf text = BUF_INIT(4096);

	base64url_encode(number, key_number(k->pair, which, number, sizeof number), &text);
	return buf_detach(&text);
}

/* The public half as a JWK. */
static inline json_t *test_key_jwk(const struct test_key *k, const char *kid)
{
	char *n = test_key_number(k, "n"), *e = test_key_number(k, "e");
	json_t *jwk = json_pack(
	    "{s:s,s:s,s:s,s:s,s:s,s:s}", "kty", "RSA", "use", "sig", "alg", "RS256", "kid", kid, "n", n, "e", e);

	free(n);
	free(e);
	return jwk;
}

/* {"keys":[one]}; steals the key. free(). */
static inline char *jwks_text(json_t *one)
{
	json_t *set = json_pack("{s:[o]}", "keys", one);
	char *text = json_text(set);

	json_decref(set);
	return text;
}

/* Good claims, valid around now_s; json_decref(). */
static inline json_t *good_claims(int64_t now_s)
{
	return json_pack("{s:s,s:s,s:I,s:I,s:I,s:s,s:s,s:s,s:s}", "iss", ISSUER, "aud", AUDIENCE, "exp",
	    (json_int_t)now_s + 300, "nbf", (json_int_t)now_s - 10, "iat", (json_int_t)now_s - 10, "repository",
	    "Ascend/pytorch", "job_workflow_ref", "Ascend/pytorch/.github/workflows/ci.yml@refs/heads/main",
	    "repository_id", "74", "repository_owner_id", "65");
}

static inline void append_part(struct buf *token, const json_t *part)
{
	char *text = json_text(part);

	base64url_encode(text, strlen(text), token);
	free(text);
}

/* A token with this header, signed by k. free(). */
static inline char *mint_with(const struct test_key *k, const json_t *header, const json_t *claims)
{
	struct buf token = BUF_INIT(64 << 10), signature = BUF_INIT(4096);
	int err;

	append_part(&token, header);
	buf_append_char(&token, '.');
	append_part(&token, claims);
	err = rsa_sign(k->private_key, token.data, token.len, &signature);
	if (err)
		abort();
	buf_append_char(&token, '.');
	base64url_encode(signature.data, signature.len, &token);
	buf_release(&signature);
	return buf_detach(&token);
}

static inline char *mint(const struct test_key *k, const char *kid, const json_t *claims)
{
	json_t *header = json_pack("{s:s,s:s,s:s}", "alg", "RS256", "typ", "JWT", "kid", kid);
	char *token = mint_with(k, header, claims);

	json_decref(header);
	return token;
}
