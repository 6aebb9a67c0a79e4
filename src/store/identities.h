/* Which repository is behind a name in an OIDC issuer's tokens. A repository's name can pass to
 * somebody else (renamed and registered again, deleted and made again); its ids never do, so the
 * ids of the first accepted token are kept and every later token is compared with them. */
#ifndef STORE_IDENTITIES_H
#define STORE_IDENTITIES_H

#include "store/store.h"

/* GitHub's numbers of a repository and of its owner; 0: not known. */
struct repository_ids {
	int64_t repository_id, owner_id;
};

enum identity_outcome {
	IDENTITY_ACCEPTED, /* as pinned and as on record; a token without ids where there is neither */
	IDENTITY_RECORDED, /* accepted, the first of its name: its ids are on record from now on */
	IDENTITY_NOT_AS_PINNED,
	IDENTITY_NOT_AS_RECORDED,
};

/* Compares a verified token's ids with the pinned ones and with the record, and makes the record
 * where there is none. A refusal is kept with the record until a token is accepted again. */
struct check_identity {
	struct store_op op;
	const char *issuer, *repository;     /* repositories compare without case */
	struct repository_ids token, pinned; /* pinned: 0: this one is not pinned */
	int64_t now_ms;
	enum identity_outcome outcome;  /* out */
	struct repository_ids recorded; /* out: on record, after this token; 0: nothing is */
};
int store_check_identity(struct store *s, struct check_identity *op) MUST_CHECK;

/* The next accepted token of this name makes a new record, whatever the issuer.
 * ERR_NOT_FOUND: there is nothing on record. */
struct forget_identity {
	struct store_op op;
	const char *repository;
};
int store_forget_identity(struct store *s, struct forget_identity *op) MUST_CHECK;

struct identity_row {
	char *issuer, *repository;
	struct repository_ids recorded; /* 0: nothing is on record: every token was refused */
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

#endif
