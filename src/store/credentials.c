#include "store/credentials.h"

#include "db/db.h"
#include "db/key.h"
#include "db/record_rows.h"

static const char *const token_kind_names[N_TOKEN_KINDS] = {[TOKEN_RUNNER] = "runner", [TOKEN_API] = "api"};
const struct words token_kind_words = {token_kind_names, N_TOKEN_KINDS};

RECORD_DEFINE(token_row, TOKEN_ROW_RECORD);

const char *token_kind_name(enum token_kind k) { return token_kind_names[k]; }

static int add_token_run(struct store_op *op, struct txn *d)
{
	struct add_token *o = CONTAINER_OF(op, struct add_token, op);

	if (db_int(d, 0,
		"SELECT COUNT(*) FROM token WHERE kind = ?1 AND accelerator = ?2 AND name = ?3 AND revoked_ms IS NULL",
		V_TEXT(token_kind_name(o->kind)), V_TEXT(o->accelerator), V_TEXT(o->name)) >= TOKENS_VALID_MAX)
		return ERR_EXISTS;
	o->id = db_exec_int(d, 0,
	    "INSERT INTO token (kind, accelerator, name, hash, created_ms) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id",
	    V_TEXT(token_kind_name(o->kind)), V_TEXT(o->accelerator), V_TEXT(o->name), V_BLOB(o->hash, sizeof(o->hash)),
	    V_INT(o->now_ms));
	db_notify(d, STORE_TOKENS);
	return 0;
}
STORE_OPERATION(add_token)

static int revoke_token_run(struct store_op *op, struct txn *d)
{
	struct revoke_token *o = CONTAINER_OF(op, struct revoke_token, op);
	int64_t n;

	if (o->id)
		n = db_exec_count(d, "UPDATE token SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms IS NULL",
		    V_INT(o->id), V_INT(o->now_ms));
	else
		n = db_exec_count(d,
		    "UPDATE token SET revoked_ms = ?4 WHERE kind = ?1 AND accelerator = ?2"
		    " AND name = ?3 AND revoked_ms IS NULL",
		    V_TEXT(token_kind_name(o->kind)), V_TEXT(o->accelerator), V_TEXT(o->name), V_INT(o->now_ms));
	o->n_revoked = (int)n;
	if (n)
		db_notify(d, STORE_TOKENS);
	return 0;
}
STORE_OPERATION(revoke_token)

static int touch_tokens_run(struct store_op *op, struct txn *d)
{
	struct touch_tokens *o = CONTAINER_OF(op, struct touch_tokens, op);

	for (size_t i = 0; i < o->n; i++)
		db_exec(d,
		    "UPDATE token SET last_used_ms = ?2, last_address = ?3 WHERE id = ?1"
		    " AND COALESCE(last_used_ms, 0) <= ?2",
		    V_INT(o->uses[i].id), V_INT(o->uses[i].used_ms), V_TEXT(o->uses[i].address));
	return 0;
}
STORE_SUBMIT(touch_tokens, OP_INDEPENDENT, op->n * sizeof(*op->uses)) /* each use counts by itself */

static int list_tokens_run(struct store_query *q, const struct view *d)
{
	struct list_tokens *l = CONTAINER_OF(q, struct list_tokens, q);
	struct rows *r = db_rows(d,
	    RECORD_QUERY(TOKEN_ROW_RECORD,
		"FROM token WHERE ?1 = 0 OR revoked_ms IS NULL ORDER BY accelerator, name, created_ms, id"),
	    V_INT(l->only_valid));

	RECORDS_READ(r, token_row, l->list, l->n);
	return 0;
}
STORE_LIST(list_tokens, token_row)

/* ---- repositories in OIDC tokens ---- */

#define RECORDED_IDS_RECORD(F, S)                                                                                      \
	F(S, ID, repository_id, NULL, "repository_id", "")                                                             \
	F(S, ID, owner_id, NULL, "repository_owner_id", "")                                                            \
	F(S, BOOL, is_refused, NULL, "refused_ms IS NOT NULL", "")
RECORD_LOCAL(recorded_ids, RECORDED_IDS_RECORD)

static bool id_fits(int64_t recorded, int64_t id) { return !recorded || recorded == id; }

static enum identity_outcome compare_ids(const struct check_identity *o)
{
	const struct repository_ids *token = &o->token, *pinned = &o->pinned;

	if (!id_fits(pinned->repository_id, token->repository_id) || !id_fits(pinned->owner_id, token->owner_id))
		return IDENTITY_NOT_AS_PINNED;
	if (!id_fits(o->recorded.repository_id, token->repository_id) ||
	    !id_fits(o->recorded.owner_id, token->owner_id))
		return IDENTITY_NOT_AS_RECORDED;
	if (o->recorded.repository_id || !token->repository_id || !token->owner_id)
		return IDENTITY_ACCEPTED;
	return IDENTITY_RECORDED;
}

static int check_identity_run(struct store_op *op, struct txn *d)
{
	struct check_identity *o = CONTAINER_OF(op, struct check_identity, op);
	struct repository_key key = repository_key(o->repository);
	struct recorded_ids ids = {0};

	RECORD_READ_FIRST(d, recorded_ids, RECORDED_IDS_RECORD, &ids,
	    "FROM identity WHERE issuer = ?1 AND repository_key = ?2", V_TEXT(o->issuer), V_TEXT(key.text));
	o->recorded = (struct repository_ids){ids.repository_id, ids.owner_id};
	o->outcome = compare_ids(o);
	if (o->outcome == IDENTITY_NOT_AS_PINNED || o->outcome == IDENTITY_NOT_AS_RECORDED) {
		db_exec(d,
		    "INSERT INTO identity (issuer, repository_key, repository, refused_id,"
		    " refused_owner_id, refused_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
		    " ON CONFLICT (issuer, repository_key) DO UPDATE SET refused_id = excluded.refused_id,"
		    " refused_owner_id = excluded.refused_owner_id, refused_ms = excluded.refused_ms",
		    V_TEXT(o->issuer), V_TEXT(key.text), V_TEXT(o->repository), V_INT_OR_NULL(o->token.repository_id),
		    V_INT_OR_NULL(o->token.owner_id), V_INT(o->now_ms));
		return 0;
	}
	if (o->outcome == IDENTITY_RECORDED) {
		o->recorded = o->token;
		db_exec(d,
		    "INSERT INTO identity (issuer, repository_key, repository, repository_id, repository_owner_id,"
		    " recorded_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (issuer, repository_key) DO UPDATE"
		    " SET repository = excluded.repository, repository_id = excluded.repository_id,"
		    " repository_owner_id = excluded.repository_owner_id, recorded_ms = excluded.recorded_ms",
		    V_TEXT(o->issuer), V_TEXT(key.text), V_TEXT(o->repository), V_INT(o->token.repository_id),
		    V_INT(o->token.owner_id), V_INT(o->now_ms));
	}
	if (ids.is_refused)
		db_exec(d,
		    "UPDATE identity SET refused_id = NULL, refused_owner_id = NULL,"
		    " refused_ms = NULL WHERE issuer = ?1 AND repository_key = ?2",
		    V_TEXT(o->issuer), V_TEXT(key.text));
	return 0;
}
STORE_OPERATION(check_identity)

static int forget_identity_run(struct store_op *op, struct txn *d)
{
	struct forget_identity *o = CONTAINER_OF(op, struct forget_identity, op);
	struct repository_key key = repository_key(o->repository);

	if (!db_exec_count(d, "DELETE FROM identity WHERE repository_key = ?1", V_TEXT(key.text)))
		return db_status(d) ? db_status(d) : ERR_NOT_FOUND;
	return 0;
}
STORE_INDEPENDENT(forget_identity)

#define IDENTITY_ROW_RECORD(F, S)                                                                                      \
	F(S, TEXT, issuer, NULL, "issuer", "")                                                                         \
	F(S, TEXT, repository, NULL, "repository", "")                                                                 \
	F(S, ID, recorded.repository_id, NULL, "repository_id", "")                                                    \
	F(S, ID, recorded.owner_id, NULL, "repository_owner_id", "")                                                   \
	F(S, TIME, recorded_ms, NULL, "recorded_ms", "")                                                               \
	F(S, ID, refused.repository_id, NULL, "refused_id", "")                                                        \
	F(S, ID, refused.owner_id, NULL, "refused_owner_id", "")                                                       \
	F(S, TIME, refused_ms, NULL, "refused_ms", "")
RECORD_DEFINE(identity_row, IDENTITY_ROW_RECORD);

static int list_identities_run(struct store_query *q, const struct view *d)
{
	struct list_identities *l = CONTAINER_OF(q, struct list_identities, q);
	struct rows *r = db_rows(d,
	    RECORD_QUERY(IDENTITY_ROW_RECORD,
		"FROM identity WHERE ?1 = 0 OR refused_ms IS NOT NULL ORDER BY repository_key, issuer"),
	    V_INT(l->only_refused));

	RECORDS_READ(r, identity_row, l->list, l->n);
	return 0;
}
STORE_LIST(list_identities, identity_row)
