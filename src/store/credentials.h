/* Credentials: vendors' tokens, of which only the SHA-256 is stored, and the repositories behind the names in an OIDC
 * issuer's tokens. A repository's name can pass to another owner (renamed and registered again, deleted and created
 * again), but its ids never do. So the ids of the first accepted token are recorded and every later token is compared
 * with them.
 *
 * Thread: loop. Strings are borrowed until done; a query owns its results until its release function. */
#pragma once

#include "db/store.h"
#include "model/record.h"

enum { TOKENS_VALID_MAX = 2 }; /* per (kind, accelerator, name): the old and the new one */

enum token_kind {
	TOKEN_RUNNER, /* one machine of an accelerator: claims work and reports it */
	TOKEN_API,    /* a vendor's own CI: reports for the accelerator */
	N_TOKEN_KINDS
};
const char *token_kind_name(enum token_kind k); /* "runner", "api" */

extern const struct words token_kind_words;
#define RECORD_C_TOKEN_KIND enum token_kind
#define RECORD_T_TOKEN_KIND RECORD_WORD, &token_kind_words

#define TOKEN_ROW_RECORD(F, S)                                                                                         \
	F(S, INT, id, NULL, "id", "")                                                                                  \
	F(S, TOKEN_KIND, kind, NULL, "kind", "")                                                                       \
	F(S, TEXT, accelerator, NULL, "accelerator", "")                                                               \
	F(S, TEXT, name, NULL, "name", "The machine's; empty for an API token.")                                       \
	F(S, DIGEST, hash, NULL, "hash", "")                                                                           \
	F(S, TIME, created_ms, NULL, "created_ms", "")                                                                 \
	F(S, TIME, last_used_ms, NULL, "last_used_ms", "0: never.")                                                    \
	F(S, TEXT, last_address, NULL, "last_address", "")                                                             \
	F(S, TIME, revoked_ms, NULL, "revoked_ms", "0: never.")
RECORD_STRUCT(token_row, TOKEN_ROW_RECORD);

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

/* Revokes one (id), or all valid ones of (kind, accelerator, name) where id is 0. The machine's leases stay. */
struct revoke_token {
	struct store_op op;
	int64_t id;
	enum token_kind kind;
	const char *accelerator, *name;
	int64_t now_ms;
	int n_revoked; /* out */
};
int store_revoke_token(struct store *s, struct revoke_token *op) MUST_CHECK;

/* Stores when tokens were last used; many at once, because every heartbeat is a use. */
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

/* ---- repositories in OIDC tokens ---- */

/* GitHub's numbers of a repository and of its owner; 0: not known. */
struct repository_ids {
	int64_t repository_id, owner_id;
};

enum identity_outcome {
	IDENTITY_ACCEPTED, /* as pinned and as recorded; without ids only when neither exists */
	IDENTITY_RECORDED, /* accepted, the first of its name: its ids are recorded from now on */
	IDENTITY_NOT_AS_PINNED,
	IDENTITY_NOT_AS_RECORDED,
};

/* Compares a verified token's ids with the pinned and the recorded ones, and records them when there is no record. A
 * refusal is stored with the record until the next token is accepted. */
struct check_identity {
	struct store_op op;
	const char *issuer, *repository;     /* repositories compare without case */
	struct repository_ids token, pinned; /* pinned: 0: this one is not pinned */
	int64_t now_ms;
	enum identity_outcome outcome;  /* out */
	struct repository_ids recorded; /* out: the record after this token; 0: there is none */
};
int store_check_identity(struct store *s, struct check_identity *op) MUST_CHECK;

/* Deletes the record, so that the next accepted token of this name makes a new one, whatever the issuer.
 * ERR_NOT_FOUND: there is no record. */
struct forget_identity {
	struct store_op op;
	const char *repository;
};
int store_forget_identity(struct store *s, struct forget_identity *op) MUST_CHECK;

struct identity_row {
	char *issuer, *repository;
	struct repository_ids recorded; /* 0: there is no record: every token was refused */
	int64_t recorded_ms;
	struct repository_ids refused; /* of the last token, if it was refused */
	int64_t refused_ms;            /* 0: it was not */
};
struct list_identities {
	struct store_query q;
	bool only_refused;
	struct identity_row *list; /* out, by repository and issuer; list_identities_release() */
	size_t n;
};
int store_list_identities(struct store *s, struct list_identities *q) MUST_CHECK;
void list_identities_release(struct list_identities *q);
