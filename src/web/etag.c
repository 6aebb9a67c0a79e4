#include "web/etag.h"

#include <string.h>

#include "base/encode.h"
#include "base/hash.h"
#include "base/str.h"

enum { DIGEST_BYTES = 16 }; /* of SHA-256's 32: nobody gains by a collision of our own answers */

void etag_of(const void *p, size_t n, char *out)
{
	uint8_t digest[SHA256_BYTES];

	sha256(p, n, digest);
	out[0] = '"';
	hex_encode(digest, DIGEST_BYTES, out + 1);
	memcpy(out + 1 + 2 * (size_t)DIGEST_BYTES, "\"", 2);
}

static const char *opaque_part(const char *tag)
{
	return str_has_prefix(tag, "W/") ? tag + 2 : tag;
}

bool etag_is_named(const char *header, const char *etag)
{
	const char *want = opaque_part(etag);
	size_t n = strlen(want);

	if (!header)
		return false;
	header += strspn(header, " \t");
	if (header[0] == '*' && header[1 + strspn(header + 1, " \t")] == '\0')
		return true;
	for (;;) {
		const char *tag, *end;

		header += strspn(header, " \t,");
		tag = opaque_part(header);
		end = tag[0] == '"' ? strchr(tag + 1, '"') : NULL;
		if (!end)
			return false;
		if ((size_t)(end + 1 - tag) == n && memcmp(tag, want, n) == 0)
			return true;
		header = end + 1;
	}
}
