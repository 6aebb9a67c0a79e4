#include "base/jwt.h"

#include "base/alloc.h"
#include "base/encode.h"

int jwt_make_rs256(const json_t *claims, const struct secret *private_key_pem, char **ret)
{
	static const char header[] = "{\"alg\":\"RS256\",\"typ\":\"JWT\"}";
	struct buf token = BUF_INIT(JWT_BYTES_MAX), signature = BUF_INIT(RSA_BITS_MAX / 8);
	char *payload = json_text(claims);
	int err;

	*ret = NULL;
	base64url_encode(header, sizeof(header) - 1, &token);
	buf_append_char(&token, '.');
	base64url_encode(payload, strlen(payload), &token);
	free(payload);
	err = buf_status(&token);
	if (!err)
		err = rsa_sign(private_key_pem, token.data, token.len, &signature);
	if (!err) {
		buf_append_char(&token, '.');
		base64url_encode(signature.data, signature.len, &token);
		err = buf_status(&token);
	}
	if (!err)
		*ret = buf_take(&token);
	buf_release(&token);
	buf_release(&signature);
	return err;
}

static int jwt_parse_object(
    const char *p, size_t n, const char *what, json_t **ret, struct error *e)
{
	struct buf text = BUF_INIT(JWT_BYTES_MAX);
	int err = base64url_decode(p, n, &text);

	if (err) {
		err = error_set(e, ERR_INVALID, "the %s is not base64url", what);
	} else {
		err = json_parse(buf_str(&text), text.len, ret, NULL);
		if (err || !json_is_object(*ret))
			err = error_set(e, ERR_INVALID, "the %s is not a JSON object", what);
	}
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
	const char *end = text + n, *dot1, *dot2 = NULL;
	int err;

	memset(ret, 0, sizeof(*ret));
	if (n > JWT_BYTES_MAX)
		return error_set(e, ERR_TOO_BIG, "a token of over %d bytes", JWT_BYTES_MAX);
	dot1 = memchr(text, '.', n);
	if (dot1)
		dot2 = memchr(dot1 + 1, '.', (size_t)(end - dot1 - 1));
	if (!dot2 || memchr(dot2 + 1, '.', (size_t)(end - dot2 - 1)))
		return error_set(e, ERR_INVALID, "a token has three parts");
	err = jwt_parse_object(text, (size_t)(dot1 - text), "header", &ret->header, e);
	if (!err)
		err = jwt_parse_header(ret, e);
	if (!err)
		err = jwt_parse_object(
		    dot1 + 1, (size_t)(dot2 - dot1 - 1), "payload", &ret->payload, e);
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
