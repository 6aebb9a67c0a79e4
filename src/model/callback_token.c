#include "model/callback_token.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/encode.h"
#include "base/hash.h"
#include "base/str.h"

static const char PREFIX[] = CALLBACK_TOKEN_PREFIX;
enum { TOKEN_MAX_BYTES = 512, MAC_TEXT_BYTES = 43 };

static void append_mac(struct buf *text, const struct secret *key)
{
	uint8_t mac[SHA256_BYTES];

	hmac_sha256(secret_text(key), secret_bytes(key), text->data, text->len, mac);
	buf_append_char(text, '.');
	base64url_encode(mac, sizeof(mac), text);
}

char *callback_token_make(const struct secret *key, const char *dispatch_id,
    const char *accelerator, int64_t expires_wall_ms)
{
	struct buf text = BUF_INIT(TOKEN_MAX_BYTES);

	buf_appendf(&text, "%s%s.%s.%lld", PREFIX, dispatch_id, accelerator,
	    (long long)(expires_wall_ms / 1000));
	append_mac(&text, key);
	return buf_take(&text);
}

/* Cuts the next field off; its end becomes a NUL. */
static char *next_field(char **rest)
{
	char *field = *rest, *dot = field ? strchr(field, '.') : NULL;

	if (dot)
		*dot++ = '\0';
	*rest = dot;
	return field;
}

char *callback_token_dispatch(const char *token)
{
	size_t n;

	if (!str_has_prefix(token, PREFIX))
		return NULL;
	token += sizeof(PREFIX) - 1;
	n = strcspn(token, ".");
	return token[n] && n < TOKEN_MAX_BYTES ? xstrndup(token, n) : NULL;
}

int callback_token_check(const struct secret *key, const char *token, const char *dispatch_id,
    int64_t now_wall_ms, char **ret_accelerator)
{
	struct buf signed_part = BUF_INIT(TOKEN_MAX_BYTES);
	size_t n = strnlen(token, TOKEN_MAX_BYTES);
	char *copy, *rest, *id, *accelerator, *expiry;
	int64_t expires_s;
	int rc = ERR_AUTH;

	*ret_accelerator = NULL;
	if (n >= TOKEN_MAX_BYTES || n <= MAC_TEXT_BYTES + 1 || !str_has_prefix(token, PREFIX) ||
	    token[n - MAC_TEXT_BYTES - 1] != '.')
		return ERR_AUTH;
	/* The signature first: nothing of an unsigned token is looked at. */
	buf_append(&signed_part, token, n - MAC_TEXT_BYTES - 1);
	append_mac(&signed_part, key);
	copy = xstrndup(token + sizeof(PREFIX) - 1, n - (sizeof(PREFIX) - 1) - MAC_TEXT_BYTES - 1);
	if (signed_part.len != n || !equal_constant_time(signed_part.data, token, n))
		goto out;
	rest = copy;
	id = next_field(&rest);
	accelerator = next_field(&rest);
	expiry = next_field(&rest);
	if (!id || !accelerator || !expiry || rest || !str_eq(id, dispatch_id) ||
	    parse_int64(expiry, &expires_s))
		goto out;
	if (now_wall_ms / 1000 > expires_s) {
		rc = ERR_TIMEOUT;
		goto out;
	}
	*ret_accelerator = xstrdup(accelerator);
	rc = 0;
out:
	free(copy);
	buf_release(&signed_part);
	return rc;
}
