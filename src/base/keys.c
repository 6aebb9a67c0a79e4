#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>

struct private_key {
	EVP_PKEY *pkey;
};

/* libcrypto would ask for the password at the terminal. */
static int no_password(char *out, int n, int is_writing, void *owner)
{
	(void)out;
	(void)n;
	(void)is_writing;
	*(bool *)owner = true;
	return -1;
}

int private_key_parse(const struct secret *pem, struct private_key **ret, struct error *e)
{
	bool is_encrypted = false;

	*ret = NULL;
	if (secret_bytes(pem) > INT_MAX)
		return error_set(e, ERR_INVALID, "too large for a private key");
	BIO *bio = BIO_new_mem_buf(secret_text(pem), (int)secret_bytes(pem));
	EVP_PKEY *pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, &is_encrypted) : NULL;
	BIO_free(bio);
	/* libcrypto keeps failures in a queue for each thread, and a later TLS connection would report them as its own. */
	ERR_clear_error();
	if (!pkey && is_encrypted)
		return error_set(e, ERR_INVALID,
		    "the private key is encrypted; store it without a password, readable by the service alone");
	if (!pkey)
		return error_set(e, ERR_INVALID, "not a private key in PEM, or damaged");
	*ret = xmalloc(sizeof(**ret));
	(*ret)->pkey = pkey;
	return 0;
}

void private_key_free(struct private_key *k)
{
	if (!k)
		return;
	EVP_PKEY_free(k->pkey);
	free(k);
}

struct evp_pkey_st *private_key_pkey(const struct private_key *k) { return k->pkey; }

/* ---- RS256 ---- */

struct rsa_public_key {
	EVP_PKEY *pkey;
};

/* Clears libcrypto's queue of failures (see private_key_parse()). */
static int rsa_error(struct error *e, int code, const char *text)
{
	ERR_clear_error();
	return error_set(e, code, "%s", text);
}

static int rsa_check_size(const EVP_PKEY *pkey, struct error *e)
{
	int bits = EVP_PKEY_get_bits(pkey);

	if (bits < RSA_BITS_MIN)
		return error_set(e, ERR_INVALID, "the RSA key has %d bits, under %d", bits, RSA_BITS_MIN);
	if (bits > RSA_BITS_MAX)
		return error_set(e, ERR_INVALID, "the RSA key has %d bits, over %d", bits, RSA_BITS_MAX);
	return 0;
}

static int rsa_parse_private_key(const struct secret *pem, struct private_key **ret, struct error *e)
{
	int rc = private_key_parse(pem, ret, e);

	if (rc)
		return rc;
	if (EVP_PKEY_get_base_id(private_key_pkey(*ret)) != EVP_PKEY_RSA)
		rc = error_set(e, ERR_INVALID, "a private key, but not RSA");
	else
		rc = rsa_check_size(private_key_pkey(*ret), e);
	if (rc) {
		private_key_free(*ret);
		*ret = NULL;
	}
	return rc;
}

int rsa_private_key_check(const struct secret *pem, struct error *e)
{
	struct private_key *key;
	int rc = rsa_parse_private_key(pem, &key, e);

	private_key_free(key);
	return rc;
}

int rsa_sign(const struct secret *pem, const void *p, size_t n, struct buf *signature)
{
	unsigned char bytes[RSA_BITS_MAX / 8];
	size_t n_bytes = sizeof(bytes);
	struct private_key *key;
	int rc = rsa_parse_private_key(pem, &key, NULL);

	if (rc)
		return rc;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool is_done = ctx && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, private_key_pkey(key)) == 1 &&
		       EVP_DigestSign(ctx, bytes, &n_bytes, p, n) == 1;
	EVP_MD_CTX_free(ctx);
	private_key_free(key);
	if (!is_done)
		return rsa_error(NULL, ERR_INVALID, "");
	return buf_append(signature, bytes, n_bytes);
}

int rsa_public_key_new(const void *modulus, size_t n_modulus, const void *exponent, size_t n_exponent,
    struct rsa_public_key **ret, struct error *e)
{
	EVP_PKEY *pkey = NULL;
	int err = 0;

	*ret = NULL;
	if (n_modulus > RSA_BITS_MAX / 8 || !n_exponent || n_exponent > 8)
		return error_set(e, ERR_INVALID, "modulus or exponent of an impossible size");
	BIGNUM *m = BN_bin2bn(modulus, (int)n_modulus, NULL), *x = BN_bin2bn(exponent, (int)n_exponent, NULL);
	/* with exponent 1 every message would be its own signature */
	if (!m || !x || !BN_is_odd(m) || !BN_is_odd(x) || BN_is_one(x))
		err = rsa_error(e, ERR_INVALID, "an RSA key cannot have this modulus or exponent");
	if (!err) {
		OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
		OSSL_PARAM *params = NULL;
		EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_id(EVP_PKEY_RSA, NULL);

		if (build && OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, m) &&
		    OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, x))
			params = OSSL_PARAM_BLD_to_param(build);
		if (!params || !ctx || EVP_PKEY_fromdata_init(ctx) != 1 ||
		    EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_PUBLIC_KEY, params) != 1)
			pkey = NULL;
		OSSL_PARAM_free(params);
		OSSL_PARAM_BLD_free(build);
		EVP_PKEY_CTX_free(ctx);
		err = pkey ? rsa_check_size(pkey, e) : rsa_error(e, ERR_INVALID, "not an RSA key");
	}
	BN_free(m);
	BN_free(x);
	if (err) {
		EVP_PKEY_free(pkey);
		return err;
	}
	*ret = xmalloc(sizeof(**ret));
	(*ret)->pkey = pkey;
	return 0;
}

void rsa_public_key_free(struct rsa_public_key *k)
{
	if (!k)
		return;
	EVP_PKEY_free(k->pkey);
	free(k);
}

int rsa_verify(struct rsa_public_key *k, const void *p, size_t n, const void *signature, size_t n_signature)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool is_good = ctx && EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, k->pkey) == 1 &&
		       EVP_DigestVerify(ctx, signature, n_signature, p, n) == 1;

	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	return is_good ? 0 : ERR_AUTH;
}

int jwt_make_rs256(const json_t *claims, const struct secret *private_key_pem, char **ret)
{
	static const char header[] = "{\"alg\":\"RS256\",\"typ\":\"JWT\"}";
	struct buf token = BUF_INIT(JWT_BYTES_MAX), signature = BUF_INIT(RSA_BITS_MAX / 8);
	char *payload = json_text(claims);

	*ret = NULL;
	base64url_encode(header, sizeof(header) - 1, &token);
	buf_append_char(&token, '.');
	base64url_encode(payload, strlen(payload), &token);
	free(payload);
	int err = buf_status(&token);
	if (!err)
		err = rsa_sign(private_key_pem, token.data, token.len, &signature);
	if (!err) {
		buf_append_char(&token, '.');
		base64url_encode(signature.data, signature.len, &token);
		err = buf_status(&token);
	}
	if (!err)
		*ret = buf_detach(&token);
	buf_release(&token);
	buf_release(&signature);
	return err;
}

static int jwt_parse_object(const char *p, size_t n, const char *what, json_t **ret, struct error *e)
{
	struct buf text = BUF_INIT(JWT_BYTES_MAX);
	int err = base64url_decode(p, n, &text);

	if (err)
		err = error_set(e, ERR_INVALID, "the %s is not base64url", what);
	else if (json_parse(buf_str(&text), text.len, ret, NULL) || !json_is_object(*ret))
		err = error_set(e, ERR_INVALID, "the %s is not a JSON object", what);
	buf_release(&text);
	return err;
}

static int jwt_parse_header(struct jwt *t, struct error *e)
{
	const json_t *kid = json_object_get(t->header, "kid");

	t->alg = json_get_str(t->header, "alg");
	t->kid = json_string_value(kid);
	if (!t->alg)
		return error_set(e, ERR_INVALID, "the header has no alg");
	if (kid && !t->kid)
		return error_set(e, ERR_INVALID, "the header's kid is not a text");
	if (json_object_get(t->header, "crit"))
		return error_set(e, ERR_INVALID, "the header requires extensions (crit)");
	return 0;
}

static int jwt_parse_signature(const char *p, size_t n, struct jwt *t, struct error *e)
{
	struct buf bytes = BUF_INIT(sizeof(t->signature));
	int err = base64url_decode(p, n, &bytes);

	if (err) {
		err = error_set(e, err, "the signature is not base64url, or too long");
	} else {
		memcpy(t->signature, buf_str(&bytes), bytes.len);
		t->n_signature = bytes.len;
	}
	buf_release(&bytes);
	return err;
}

int jwt_parse(const char *text, size_t n, struct jwt *ret, struct error *e)
{
	const char *end = text + n;

	memset(ret, 0, sizeof(*ret));
	if (n > JWT_BYTES_MAX)
		return error_set(e, ERR_TOO_BIG, "a token of over %d bytes", JWT_BYTES_MAX);
	const char *dot1 = memchr(text, '.', n), *dot2 = dot1 ? memchr(dot1 + 1, '.', (size_t)(end - dot1 - 1)) : NULL;
	if (!dot2 || memchr(dot2 + 1, '.', (size_t)(end - dot2 - 1)))
		return error_set(e, ERR_INVALID, "a token has three parts");
	int err = jwt_parse_object(text, (size_t)(dot1 - text), "header", &ret->header, e);
	if (!err)
		err = jwt_parse_header(ret, e);
	if (!err)
		err = jwt_parse_object(dot1 + 1, (size_t)(dot2 - dot1 - 1), "payload", &ret->payload, e);
	if (!err)
		err = jwt_parse_signature(dot2 + 1, (size_t)(end - dot2 - 1), ret, e);
	if (err) {
		jwt_release(ret);
		return err;
	}
	ret->signing_input = text;
	ret->n_signing_input = (size_t)(dot2 - text);
	return 0;
}

void jwt_release(struct jwt *t)
{
	json_decref(t->header);
	json_decref(t->payload);
	memset(t, 0, sizeof(*t));
}
