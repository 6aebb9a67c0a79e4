/* Vendors' tokens: the holder of each, and the time of its last use. All valid tokens are kept in memory by their
 * SHA-256 hash, so a look-up is synchronous and needs no query.
 *
 * Comparing hashes needs no constant time: the timing of a guess could only show how far its hash agrees with a stored
 * one, and an attacker cannot choose a hash. A token is 256 random bits, so no salt or slow hash is needed either.
 *
 * Thread: loop, every function. */
#pragma once

#include "loop/loop.h"
#include "store/credentials.h"

enum {
	CREDENTIAL_TEXT_BYTES = 4 + 43 + 1, /* "ort_" or "oat_", 32 bytes in base64url, the end */
	CREDENTIALS_WRONG_PER_MINUTE = 20,  /* of one address; then 429 */
};

/* ---- a token's text ---- pure */

/* A new token: ort_… for a machine, oat_… for the API. The caller shows it once and then wipes it. */
void credential_make(enum token_kind kind, char out[CREDENTIAL_TEXT_BYTES]);
/* True if the text has the form of these tokens. Callback tokens and OIDC tokens never have it. */
bool credential_is_shaped(const char *text);
void credential_hash(const char *text, uint8_t out[SHA256_BYTES]);

/* ---- the valid tokens ---- */

/* The holder of a token. Borrowed until the loop's next turn. */
struct credential {
	int64_t id;
	enum token_kind kind;
	const char *accelerator;
	const char *name; /* the machine's; "" for an API token */
};

enum credential_verdict {
	CREDENTIAL_GOOD,
	CREDENTIAL_WRONG,     /* 401: unknown or revoked */
	CREDENTIAL_OVER_RATE, /* 429: too many wrong tokens from this address lately */
	CREDENTIAL_UNREAD,    /* 503: the tokens are not read from the store yet */
};

/* Begins to read the tokens. Borrows loop and store, which must outlive it. */
struct credentials *credentials_new(struct loop *l, struct store *s);
/* Looks a token up, and notes the use of a good one, from `address`. Wrong tokens are counted by address (IPv6: by its
 * /64). A good token always passes: many machines may share one address, and one of them with an old token must
 * not lock out the others. */
enum credential_verdict credentials_check(
    struct credentials *c, const char *text, const char *address, struct credential *ret, int *ret_retry_after_s);
/* False until the tokens have been read once: until then every token is CREDENTIAL_UNREAD. */
bool credentials_are_read(const struct credentials *c);
/* True while the token is valid, as far as is known. */
bool credentials_has(const struct credentials *c, int64_t id);
/* The store published STORE_TOKENS. on_change runs after each read. */
void credentials_on_tokens(struct credentials *c);
void credentials_on_change(struct credentials *c, void (*on_change)(void *owner), void *owner);

/* Waits until credentials_check() uses the tokens that the store holds now, so that a command that adds or revokes a
 * token ends after its effect. done runs once, on the loop, never inside the call; err: the tokens cannot be read. */
struct credentials_wait {
	void (*done)(struct credentials_wait *w);
	int err; /* out */
	struct credentials_wait *next;
};
void credentials_await(struct credentials *c, struct credentials_wait *w);

/* The last use since the start, which may not be in the store yet. False: there was none. *ret_address is borrowed
 * until the loop's next turn. */
bool credentials_last_use(const struct credentials *c, int64_t id, int64_t *ret_wall_ms, const char **ret_address);
/* The number of machines (accelerator and name) whose token was used since then. */
int credentials_n_machines_since(const struct credentials *c, int64_t since_wall_ms);
/* The number of wrong tokens since the start. */
int64_t credentials_n_wrong(const struct credentials *c);

/* Writes the last uses to the store, then runs on_closed once, not inside this call. The store must be open until then.
 * Waiting calls end with ERR_CLOSING. */
void credentials_close(struct credentials *c, void (*on_closed)(void *owner), void *owner);
void credentials_free(struct credentials *c); /* after on_closed; NULL is fine */
