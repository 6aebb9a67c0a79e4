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

/* A delivery's GUID as it is stored: 16 bytes for a lower-case UUID, half the size of the
 * index, else the text. The two never compare equal. */
struct guid_key {
	uint8_t bytes[16];
	const char *text; /* borrowed; NULL: `bytes` count */
};
struct guid_key guid_key(const char *guid);
struct value guid_value(const struct guid_key *k);
#define V_GUID(guid) guid_value((struct guid_key[]){guid_key(guid)}) /* for VALUES() */
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
