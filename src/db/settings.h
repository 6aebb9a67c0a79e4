/* The table of settings: texts and numbers by key, which outlive a restart.
 *
 * Thread: functions with a connection on its thread (db/db.h); store_*() functions on the loop. */
#pragma once

#include "db/db.h"
#include "db/store.h"

/* The setting with the key of the callback tokens, in hexadecimal, for a database that several daemons share. The file of this name in the
 * state directory has its bytes. */
#define CALLBACK_KEY "callback.key"
enum { CALLBACK_KEY_BYTES = 32 };

char *setting_text(const struct view *d, const char *key); /* NULL: there is none; free() */
int64_t setting_int(const struct view *d, const char *key, int64_t fallback);
void setting_put_text(struct txn *d, const char *key, const char *value); /* NULL deletes it */
void setting_put_int(struct txn *d, const char *key, int64_t value);

/* ---- operations ---- */

/* value NULL deletes. Strings are borrowed until done. */
struct put_setting {
	struct store_op op;
	const char *key, *value;
};
int store_put_setting(struct store *s, struct put_setting *op) MUST_CHECK;
/* Several daemons agree on a value: the first one sets it. */
struct share_setting {
	struct store_op op;
	const char *key;
	char *value; /* in: the own one; out: the one that counts; free() */
};
int store_share_setting(struct store *s, struct share_setting *op) MUST_CHECK;
struct get_setting {
	struct store_query q;
	const char *key;
	char *value; /* out; free(); NULL: unset */
};
int store_get_setting(struct store *s, struct get_setting *q) MUST_CHECK;
