/* The keys by which rows are compared, made of names from GitHub.
 *
 * Thread: any; functions with a struct rows on the thread of its connection. */
#pragma once

#include "db/db.h"

/* In lower-case ASCII, because repositories compare without case. A name longer than any of GitHub's is cut. */
struct repository_key {
	char text[256];
};
struct repository_key repository_key(const char *name);

/* A delivery's GUID as it is stored. The forms never compare equal:
 *   a lower-case UUID of version 1, as GitHub sends it: 0xff, then its 16 bytes with the time first and the time's high
 *     bits in front. So a new GUID is next to the one before it, and a commit changes few pages of the index.
 *   any other lower-case UUID: its 16 bytes.
 *   anything else: the text.
 * Before version 8 of the schema every lower-case UUID was stored as its 16 bytes, and such rows stay. So code that
 * finds a delivery by its GUID looks for both values (delivery_id() in store/deliveries.c).
 * PostgreSQL stores the text. */
struct guid_key {
	uint8_t bytes[17];
	uint8_t n;        /* 0: `text` counts */
	const char *text; /* borrowed */
};
struct guid_key guid_key(const char *guid);
/* The 16 bytes of a GUID that guid_key() stores in another form; otherwise no bytes and no text, which is NULL. */
struct guid_key guid_old_key(const char *guid);
struct value guid_value(const struct guid_key *k);                       /* k lives until the statement ends */
#define V_GUID(guid)     guid_value((struct guid_key[]){guid_key(guid)}) /* for VALUES() */
#define V_OLD_GUID(guid) guid_value((struct guid_key[]){guid_old_key(guid)})
/* The text again, from a column of `guid`. free(). */
char *guid_dup(const struct rows *r, int column);

/* A periodic run whose vendor named no commit is a change as well: in place of a SHA it has this text,
 * the same for all jobs that `reporter` reports of one run, and never 40 hexadecimal digits. */
struct run_key {
	char text[48];
};
struct run_key unknown_commit_key(const char *reporter, const char *run_id);
/* A column that holds a commit, free(). NULL for such a text, and for NULL. */
char *commit_dup(const struct rows *r, int column);
