#include "db/key.h"

enum { UUID_CHARS = 36, GUID_WITH_TIME = 0xff };

struct repository_key repository_key(const char *name)
{
	struct repository_key k = {{0}};

	for (size_t i = 0; name[i] && i < sizeof(k.text) - 1; i++)
		k.text[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] | 0x20) : name[i];
	return k;
}

static bool is_dash(size_t at) { return at == 8 || at == 13 || at == 18 || at == 23; }

/* False: `guid` is not a UUID in lower case. */
static bool uuid_parse(const char *guid, uint8_t ret[16])
{
	char digits[33];
	size_t n = 0;

	for (size_t i = 0; i < UUID_CHARS; i++) {
		bool is_digit = (guid[i] >= '0' && guid[i] <= '9') || (guid[i] >= 'a' && guid[i] <= 'f');

		if (is_dash(i) ? guid[i] != '-' : !is_digit)
			return false;
		if (is_digit)
			digits[n++] = guid[i];
	}
	return guid[UUID_CHARS] == '\0' && hex_decode(digits, n, ret, 16) == 0;
}

static bool is_uuid_with_time(const uint8_t uuid[16]) { return uuid[6] >> 4 == 1; }

/* The stored byte at `i` is this byte of the UUID: time_hi, time_mid, time_low, the rest. */
static const uint8_t TIME_ORDER[16] = {6, 7, 4, 5, 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15};

struct guid_key guid_key(const char *guid)
{
	struct guid_key k = {.text = guid};
	uint8_t uuid[16];

	if (!uuid_parse(guid, uuid))
		return k;
	if (!is_uuid_with_time(uuid)) {
		memcpy(k.bytes, uuid, sizeof(uuid));
		k.n = sizeof(uuid);
		return k;
	}
	k.bytes[0] = GUID_WITH_TIME;
	for (size_t i = 0; i < sizeof(uuid); i++)
		k.bytes[1 + i] = uuid[TIME_ORDER[i]];
	k.n = sizeof(k.bytes);
	return k;
}

struct guid_key guid_old_key(const char *guid)
{
	struct guid_key k = {.text = NULL};

	if (uuid_parse(guid, k.bytes) && is_uuid_with_time(k.bytes))
		k.n = 16;
	return k;
}

struct value guid_value(const struct guid_key *k)
{
	return (struct value){.type = k->n || k->text ? VALUE_GUID : VALUE_NULL_TEXT, .p = k};
}

char *guid_dup(const struct rows *r, int column)
{
	size_t n, at = 0;
	const uint8_t *p = rows_blob(r, column, &n);
	uint8_t uuid[16];
	char hex[33], *s;

	if (!rows_is_blob(r, column))
		return rows_dup(r, column);
	if (n == 17 && p[0] == GUID_WITH_TIME)
		for (size_t i = 0; i < sizeof(uuid); i++)
			uuid[TIME_ORDER[i]] = p[1 + i];
	else if (n == sizeof(uuid))
		memcpy(uuid, p, sizeof(uuid));
	else
		return xstrdup("");
	hex_encode(uuid, sizeof(uuid), hex);
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
