/* Credentials of vendors: only their SHA-256 is kept. */
#ifndef STORE_TOKENS_H
#define STORE_TOKENS_H

#include "base/hash.h"
#include "store/store.h"

enum { TOKENS_VALID_MAX = 2 }; /* per (kind, accelerator, name): the old and the new one */

enum token_kind {
	TOKEN_RUNNER, /* one machine of an accelerator: claims work and reports it */
	TOKEN_API,    /* a vendor's own CI: reports for the accelerator */
	N_TOKEN_KINDS
};
const char *token_kind_name(enum token_kind k); /* "runner", "api" */

struct token_row {
	int64_t id;
	enum token_kind kind;
	char *accelerator;
	char *name; /* the machine's; "" for an API token */
	uint8_t hash[SHA256_BYTES];
	int64_t created_ms, last_used_ms, revoked_ms; /* 0: never */
	char *last_address;                           /* or NULL */
};

/* ERR_EXISTS: TOKENS_VALID_MAX are valid already. */
struct add_token {
	struct store_op op;
	enum token_kind kind;
	const char *accelerator, *name;
	uint8_t hash[SHA256_BYTES];
	int64_t now_ms;
	int64_t id; /* out */
};
int store_add_token(struct store *s, struct add_token *op) MUST_CHECK;

/* Revokes one (id), or all valid ones of (kind, accelerator, name) where id is 0; the machine's
 * leases are not touched. out: how many. */
struct revoke_token {
	struct store_op op;
	int64_t id;
	enum token_kind kind;
	const char *accelerator, *name;
	int64_t now_ms;
	int n_revoked;
};
int store_revoke_token(struct store *s, struct revoke_token *op) MUST_CHECK;

/* When tokens were last used; many at once, because every heartbeat is a use. */
struct touch_tokens {
	struct store_op op;
	const struct token_use {
		int64_t id, used_ms;
		char address[64];
	} * uses;
	size_t n;
};
int store_touch_tokens(struct store *s, struct touch_tokens *op) MUST_CHECK;

struct list_tokens {
	struct store_query q;
	bool only_valid;
	struct token_row *list; /* out, by accelerator, name, age; list_tokens_release() */
	size_t n;
};
int store_list_tokens(struct store *s, struct list_tokens *q) MUST_CHECK;
void list_tokens_release(struct list_tokens *q);

#endif
