/* What a token looks like. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/encode.h"
#include "base/id.h"
#include "base/str.h"
#include "runners/credentials.h"

enum { SECRET_BYTES = 32 };

static const char *prefix_of(enum token_kind kind)
{
	return kind == TOKEN_RUNNER ? "ort_" : "oat_";
}

void credential_make(enum token_kind kind, char out[CREDENTIAL_TEXT_BYTES])
{
	uint8_t secret[SECRET_BYTES];
	struct buf text = BUF_INIT(CREDENTIAL_TEXT_BYTES);

	random_bytes(secret, sizeof(secret));
	buf_append_str(&text, prefix_of(kind));
	base64url_encode(secret, sizeof(secret), &text);
	assert(text.len == CREDENTIAL_TEXT_BYTES - 1);
	memcpy(out, text.data, CREDENTIAL_TEXT_BYTES);
	explicit_bzero(text.data, text.len);
	explicit_bzero(secret, sizeof(secret));
	buf_release(&text);
}

bool credential_is_shaped(const char *text)
{
	return strlen(text) == CREDENTIAL_TEXT_BYTES - 1 &&
	       (str_has_prefix(text, prefix_of(TOKEN_RUNNER)) ||
		   str_has_prefix(text, prefix_of(TOKEN_API))) &&
	       strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") ==
		   CREDENTIAL_TEXT_BYTES - 1;
}

void credential_hash(const char *text, uint8_t out[SHA256_BYTES])
{
	sha256(text, strlen(text), out);
}
