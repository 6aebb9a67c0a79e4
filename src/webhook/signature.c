#include "webhook/signature.h"

#include <string.h>

#include "base/encode.h"
#include "base/str.h"

int signature_parse(const char *header, uint8_t ret[SHA256_BYTES])
{
	static const char prefix[] = "sha256=";
	const char *digits;

	if (!header || !str_has_prefix(header, prefix))
		return ERR_INVALID;
	digits = header + strlen(prefix);
	return hex_decode(digits, strlen(digits), ret, SHA256_BYTES);
}

bool signature_is_good(
    struct hmac *h, const void *body, size_t n, const uint8_t signature[SHA256_BYTES])
{
	uint8_t expected[SHA256_BYTES];

	hmac_reset(h);
	hmac_update(h, body, n);
	hmac_final(h, expected);
	return equal_constant_time(expected, signature, SHA256_BYTES);
}
