#include "base/id.h"

#include <openssl/rand.h>
#include <stdint.h>

#include "base/encode.h"

void random_bytes(void *out, size_t n)
{
	if (n > INT32_MAX || RAND_bytes(out, (int)n) != 1) {
		fputs("libcrypto: no random bytes\n", stderr);
		abort();
	}
}

char *id_new(char out[ID_BYTES])
{
	uint8_t raw[16];

	random_bytes(raw, sizeof(raw));
	return base32_encode(raw, sizeof(raw), out);
}

char *uuid_new(char out[UUID_BYTES])
{
	uint8_t raw[16];
	char hex[33];

	random_bytes(raw, sizeof(raw));
	raw[6] = (uint8_t)((raw[6] & 0x0f) | 0x40);
	raw[8] = (uint8_t)((raw[8] & 0x3f) | 0x80);
	hex_encode(raw, sizeof(raw), hex);
	snprintf(out, UUID_BYTES, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
	    hex + 20);
	return out;
}
