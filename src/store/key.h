/* How names from GitHub become what rows are compared by. */
#ifndef STORE_KEY_H
#define STORE_KEY_H

#include "store/db.h"

/* Lower-case ASCII: repositories compare without case. Longer names than GitHub has are cut. */
struct repository_key {
	char text[256];
};
struct repository_key repository_key(const char *name);

/* A delivery's GUID as it is stored: 16 bytes for a lower-case UUID, half the size of the
 * index, else the text. The two never compare equal. */
struct guid_key {
	uint8_t bytes[16];
	const char *text; /* borrowed; NULL: `bytes` count */
};
struct guid_key guid_key(const char *guid);
struct value guid_value(const struct guid_key *k);
/* The text again, from a column of `guid`. free(). */
char *guid_dup(const struct rows *r, int column);

#endif
