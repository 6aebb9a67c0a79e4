/* Repositories' ids: compared and recorded, forgotten, listed. */
#include "base/alloc.h"
#include "store/db.h"
#include "store/identities.h"
#include "store/key.h"

/* ---- check ---- */

static struct repository_ids on_record(
    struct db *d, const char *issuer, const char *key, bool *ret_is_refused)
{
	struct repository_ids ids = {0};
	struct rows *r = db_rows(d,
	    "SELECT repository_id, repository_owner_id, refused_ms IS NOT NULL FROM identity"
	    " WHERE issuer = ?1 AND repository_key = ?2",
	    V_TEXT(issuer), V_TEXT(key));

	*ret_is_refused = false;
	if (rows_next(r)) {
		ids = (struct repository_ids){rows_int(r, 0), rows_int(r, 1)};
		*ret_is_refused = rows_int(r, 2);
	}
	rows_end(r);
	return ids;
}

static bool fits(int64_t wanted, int64_t id)
{
	return !wanted || wanted == id;
}

static enum identity_outcome compare(const struct check_identity *o)
{
	const struct repository_ids *token = &o->token, *pinned = &o->pinned;

	if (!fits(pinned->repository_id, token->repository_id) ||
	    !fits(pinned->owner_id, token->owner_id))
		return IDENTITY_NOT_AS_PINNED;
	if (!fits(o->recorded.repository_id, token->repository_id) ||
	    !fits(o->recorded.owner_id, token->owner_id))
		return IDENTITY_NOT_AS_RECORDED;
	if (o->recorded.repository_id || !token->repository_id || !token->owner_id)
		return IDENTITY_ACCEPTED;
	return IDENTITY_RECORDED;
}

static void record(struct db *d, struct check_identity *o, const char *key)
{
	o->recorded = o->token;
	db_exec(d,
	    "INSERT INTO identity (issuer, repository_key, repository, repository_id,"
	    " repository_owner_id, recorded_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
	    " ON CONFLICT (issuer, repository_key) DO UPDATE SET repository = excluded.repository,"
	    " repository_id = excluded.repository_id,"
	    " repository_owner_id = excluded.repository_owner_id,"
	    " recorded_ms = excluded.recorded_ms",
	    V_TEXT(o->issuer), V_TEXT(key), V_TEXT(o->repository), V_INT(o->token.repository_id),
	    V_INT(o->token.owner_id), V_INT(o->now_ms));
}

static void note_refusal(struct db *d, const struct check_identity *o, const char *key)
{
	db_exec(d,
	    "INSERT INTO identity (issuer, repository_key, repository, refused_id,"
	    " refused_owner_id, refused_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
	    " ON CONFLICT (issuer, repository_key) DO UPDATE SET refused_id = excluded.refused_id,"
	    " refused_owner_id = excluded.refused_owner_id, refused_ms = excluded.refused_ms",
	    V_TEXT(o->issuer), V_TEXT(key), V_TEXT(o->repository),
	    V_INT_OR_NULL(o->token.repository_id), V_INT_OR_NULL(o->token.owner_id),
	    V_INT(o->now_ms));
}

static void forget_refusal(struct db *d, const struct check_identity *o, const char *key)
{
	db_exec(d,
	    "UPDATE identity SET refused_id = NULL, refused_owner_id = NULL, refused_ms = NULL"
	    " WHERE issuer = ?1 AND repository_key = ?2",
	    V_TEXT(o->issuer), V_TEXT(key));
}

static int check_run(struct store_op *op, struct db *d)
{
	struct check_identity *o = CONTAINER_OF(op, struct check_identity, op);
	struct repository_key key = repository_key(o->repository);
	bool is_refused;

	o->recorded = on_record(d, o->issuer, key.text, &is_refused);
	o->outcome = compare(o);
	if (o->outcome == IDENTITY_NOT_AS_PINNED || o->outcome == IDENTITY_NOT_AS_RECORDED) {
		note_refusal(d, o, key.text);
		return 0;
	}
	if (o->outcome == IDENTITY_RECORDED)
		record(d, o, key.text);
	if (is_refused)
		forget_refusal(d, o, key.text);
	return 0;
}

int store_check_identity(struct store *s, struct check_identity *op)
{
	op->recorded = (struct repository_ids){0};
	op->op.run = check_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

/* ---- forget ---- */

static int forget_run(struct store_op *op, struct db *d)
{
	struct forget_identity *o = CONTAINER_OF(op, struct forget_identity, op);
	struct repository_key key = repository_key(o->repository);

	if (!db_exec(d, "DELETE FROM identity WHERE repository_key = ?1", V_TEXT(key.text)))
		return db_status(d) ? db_status(d) : ERR_NOT_FOUND;
	return 0;
}

int store_forget_identity(struct store *s, struct forget_identity *op)
{
	op->op.run = forget_run;
	op->op.bytes = sizeof(*op);
	op->op.is_one_statement = true;
	return store_submit(s, &op->op);
}

/* ---- list ---- */

static int list_run(struct store_query *q, struct db *d)
{
	struct list_identities *l = CONTAINER_OF(q, struct list_identities, q);
	struct rows *r = db_rows(d,
	    "SELECT issuer, repository, repository_id, repository_owner_id, recorded_ms,"
	    " refused_id, refused_owner_id, refused_ms FROM identity"
	    " WHERE ?1 = 0 OR refused_ms IS NOT NULL ORDER BY repository_key, issuer",
	    V_INT(l->only_refused));

	while (rows_next(r)) {
		if ((l->n & (l->n - 1)) == 0)
			l->list = xrealloc(l->list, (l->n ? 2 * l->n : 1) * sizeof(*l->list));
		l->list[l->n++] = (struct identity_row){
		    .issuer = rows_dup(r, 0),
		    .repository = rows_dup(r, 1),
		    .recorded = {rows_int(r, 2), rows_int(r, 3)},
		    .recorded_ms = rows_int(r, 4),
		    .refused = {rows_int(r, 5), rows_int(r, 6)},
		    .refused_ms = rows_int(r, 7),
		};
	}
	if (db_status(d))
		list_identities_release(l);
	return 0;
}

int store_list_identities(struct store *s, struct list_identities *q)
{
	q->list = NULL;
	q->n = 0;
	q->q.run = list_run;
	return store_query(s, &q->q);
}

void list_identities_release(struct list_identities *q)
{
	for (size_t i = 0; i < q->n; i++) {
		free(q->list[i].issuer);
		free(q->list[i].repository);
	}
	FREE_AND_NULL(q->list);
	q->n = 0;
}
