#include "db/key.h"

enum { UUID_CHARS = 36 };

struct repository_key repository_key(const char *name)
{
	struct repository_key k = {{0}};

	for (size_t i = 0; name[i] && i < sizeof(k.text) - 1; i++)
		k.text[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] | 0x20) : name[i];
	return k;
}

static bool is_dash(size_t at) { return at == 8 || at == 13 || at == 18 || at == 23; }

struct guid_key guid_key(const char *guid)
{
	struct guid_key k = {.text = guid};
	char digits[33];
	size_t n = 0;

	for (size_t i = 0; i < UUID_CHARS; i++) {
		bool is_digit = (guid[i] >= '0' && guid[i] <= '9') || (guid[i] >= 'a' && guid[i] <= 'f');

		if (is_dash(i) ? guid[i] != '-' : !is_digit)
			return k;
		if (is_digit)
			digits[n++] = guid[i];
	}
	if (guid[UUID_CHARS] == '\0' && hex_decode(digits, n, k.bytes, 16) == 0)
		k.text = NULL;
	return k;
}

struct value guid_value(const struct guid_key *k)
{
	return k->text ? V_TEXT(k->text) : V_BLOB(k->bytes, sizeof(k->bytes));
}

char *guid_dup(const struct rows *r, int column)
{
	size_t n, at = 0;
	const void *p = rows_blob(r, column, &n);
	char hex[33], *s;

	if (!rows_is_blob(r, column))
		return rows_dup(r, column);
	if (n != 16)
		return xstrdup("");
	hex_encode(p, n, hex);
	s = xmalloc(UUID_CHARS + 1);
	for (size_t i = 0; i < UUID_CHARS; i++)
		s[i] = is_dash(i) ? '-' : hex[at++];
	s[UUID_CHARS] = '\0';
	return s;
}

struct run_key unknown_commit_key(const char *reporter, const char *run_id)
{
	enum { DIGEST_BYTES_SHOWN = 16 };
	struct repository_key by = repository_key(reporter);
	char *both = xasprintf("%s\n%s", by.text, run_id);
	uint8_t digest[SHA256_BYTES];
	char hex[2 * DIGEST_BYTES_SHOWN + 1];
	struct run_key k;

	sha256(both, strlen(both), digest);
	free(both);
	snprintf(k.text, sizeof(k.text), "unknown-%s", hex_encode(digest, DIGEST_BYTES_SHOWN, hex));
	return k;
}

char *commit_dup(const struct rows *r, int column)
{
	char *text = rows_dup(r, column);

	if (text && !is_sha1(text))
		FREE_AND_NULL(text);
	return text;
}
