#include "runners/jwks.h"

#include <string.h>

#include "base/alloc.h"
#include "base/encode.h"
#include "base/json.h"
#include "base/str.h"

enum { KID_MAX_BYTES = 256, NUMBER_MAX_BYTES = RSA_BITS_MAX / 8 + 1 };

static int read_number(const json_t *key, const char *name, struct buf *out)
{
	const char *text = json_get_str(key, name);

	return text ? base64url_decode(text, strlen(text), out) : ERR_INVALID;
}

static struct rsa_public_key *read_key(const json_t *key)
{
	struct buf modulus = BUF_INIT(NUMBER_MAX_BYTES), exponent = BUF_INIT(NUMBER_MAX_BYTES);
	struct rsa_public_key *ret = NULL;
	int err = read_number(key, "n", &modulus);

	if (!err)
		err = read_number(key, "e", &exponent);
	if (!err)
		err = rsa_public_key_new(
		    modulus.data, modulus.len, exponent.data, exponent.len, &ret, NULL);
	buf_release(&modulus);
	buf_release(&exponent);
	return err ? NULL : ret;
}

static bool is_absent_or(const json_t *key, const char *name, const char *value)
{
	return !json_object_get(key, name) || str_eq(json_get_str(key, name), value);
}

static bool is_for_rs256(const json_t *key)
{
	const char *kid = json_get_str(key, "kid");

	return kid && *kid && strlen(kid) <= KID_MAX_BYTES &&
	       str_eq(json_get_str(key, "kty"), "RSA") && is_absent_or(key, "use", "sig") &&
	       is_absent_or(key, "alg", "RS256");
}

static int read_keys(const json_t *list, struct jwks *ret, struct error *e)
{
	size_t n = json_array_size(list);

	if (!json_is_array(list))
		return error_set(e, ERR_INVALID, "keys is not a list");
	if (n > JWKS_KEYS_MAX)
		return error_set(e, ERR_TOO_BIG, "more than %d keys", JWKS_KEYS_MAX);
	ret->keys = xcalloc(n + 1, sizeof *ret->keys);
	for (size_t i = 0; i < n; i++) {
		const json_t *key = json_array_get(list, i);
		struct rsa_public_key *public_key = is_for_rs256(key) ? read_key(key) : NULL;

		if (public_key)
			ret->keys[ret->n++] = (struct jwk){
			    .kid = xstrdup(json_get_str(key, "kid")),
			    .key = public_key,
			};
	}
	if (ret->n == 0)
		return error_set(e, ERR_INVALID, "no key that RS256 may be trusted with");
	return 0;
}

int jwks_parse(const char *text, size_t n, struct jwks *ret, struct error *e)
{
	json_t *root = NULL;
	int err;

	*ret = (struct jwks){0};
	if (n > JWKS_BYTES_MAX)
		return error_set(e, ERR_TOO_BIG, "more than %d bytes", JWKS_BYTES_MAX);
	err = json_parse(text, n, &root, e);
	if (err)
		return err;
	err = read_keys(json_object_get(root, "keys"), ret, e);
	if (err)
		jwks_release(ret);
	json_decref(root);
	return err;
}

void jwks_release(struct jwks *k)
{
	for (size_t i = 0; i < k->n; i++) {
		free(k->keys[i].kid);
		rsa_public_key_free(k->keys[i].key);
	}
	free(k->keys);
	*k = (struct jwks){0};
}

struct rsa_public_key *jwks_find(const struct jwks *k, const char *kid)
{
	for (size_t i = 0; i < k->n; i++)
		if (strcmp(k->keys[i].kid, kid) == 0)
			return k->keys[i].key;
	return NULL;
}
