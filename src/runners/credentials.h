/* Vendors' tokens: which one a request bears, and when each was last used. Every valid one is kept
 * in memory by its SHA-256 hash, so a look-up is synchronous and asks nobody.
 *
 * Comparing hashes needs no constant time: what a guess's timing could tell is how far its hash
 * agrees with a stored one, and nobody can steer towards a hash. A token is 256 random bits, so
 * no salt or slow hash is needed either.
 *
 * Thread: loop, every function. */
#ifndef RUNNERS_CREDENTIALS_H
#define RUNNERS_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/loop.h"
#include "store/tokens.h"

enum {
	CREDENTIAL_TEXT_BYTES = 4 + 43 + 1, /* "ort_" or "oat_", 32 bytes in base64url, the end */
	CREDENTIALS_WRONG_PER_MINUTE = 20,  /* of one address; then 429 */
};

/* ---- a token's text ---- pure */

/* A new token: ort_… for a runner, oat_… for the API. Shown once, then wiped by the caller. */
void credential_make(enum token_kind kind, char out[CREDENTIAL_TEXT_BYTES]);
/* True when it looks like one of ours, of any age. Callback tokens and OIDC tokens never do. */
bool credential_is_shaped(const char *text);
void credential_hash(const char *text, uint8_t out[SHA256_BYTES]);

/* ---- the valid ones ---- */

struct credentials;

/* Whom a token stands for. Borrowed until the loop's next turn. */
struct credential {
	int64_t id;
	enum token_kind kind;
	const char *accelerator;
	const char *name; /* the machine's; "" for an API token */
};

enum credential_verdict {
	CREDENTIAL_GOOD,
	CREDENTIAL_WRONG,     /* 401: unknown or revoked */
	CREDENTIAL_OVER_RATE, /* 429: too many wrong ones from this address lately */
	CREDENTIAL_UNREAD,    /* 503: the tokens are not read from the store yet */
};

/* Reads the tokens at once. Borrows loop and store, which outlive it. */
struct credentials *credentials_new(struct loop *l, struct store *s);
/* Looks a token up; a good one is noted as used now, from `address`. Wrong ones are counted by
 * address (IPv6: by its /64), good ones pass whatever others at that address did: many machines
 * stand behind one address, and one of them with an old token must not lock out the rest. */
enum credential_verdict credentials_check(struct credentials *c, const char *text,
    const char *address, struct credential *ret, int *ret_retry_after_s);
/* False until the tokens have been read once: every one is CREDENTIAL_UNREAD. */
bool credentials_are_read(const struct credentials *c);
/* True while this one is valid, as far as is known. */
bool credentials_has(const struct credentials *c, int64_t id);
/* STORE_TOKENS was told. on_change runs after each read. */
void credentials_on_tokens(struct credentials *c);
void credentials_on_change(struct credentials *c, void (*on_change)(void *owner), void *owner);

/* Waits until what the store holds now is what credentials_check() goes by, so that a command
 * which adds or revokes one is not done before its effect. done runs once, on the loop, never
 * inside the call; err when the tokens cannot be read. */
struct credentials_wait {
	void (*done)(struct credentials_wait *w);
	int err; /* out */
	struct credentials_wait *next;
};
void credentials_await(struct credentials *c, struct credentials_wait *w);

/* The last use that is known here, which the store may learn later. False: none since the
 * start. *ret_address is borrowed until the loop's next turn. */
bool credentials_last_use(
    const struct credentials *c, int64_t id, int64_t *ret_wall_ms, const char **ret_address);
/* Machines (accelerator and name) whose token was used since then. */
int credentials_n_machines_since(const struct credentials *c, int64_t since_wall_ms);
/* Wrong tokens since the start. */
int64_t credentials_n_wrong(const struct credentials *c);

/* Writes the last uses down, then runs on_closed, once, not inside this call. The store is open
 * until then. Waiters are done with ERR_CLOSING. */
void credentials_close(struct credentials *c, void (*on_closed)(void *owner), void *owner);
void credentials_free(struct credentials *c); /* after it is closed; NULL is fine */

#endif
