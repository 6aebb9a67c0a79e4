/* Vendors' credentials: issued, used, revoked, listed. */
#include "base/alloc.h"
#include "store/db.h"
#include "store/tokens.h"

const char *token_kind_name(enum token_kind k)
{
	static const char *const names[N_TOKEN_KINDS] = {
	    [TOKEN_RUNNER] = "runner", [TOKEN_API] = "api"};

	return names[k];
}

static enum token_kind kind_parse(const char *name)
{
	return strcmp(name, token_kind_name(TOKEN_API)) == 0 ? TOKEN_API : TOKEN_RUNNER;
}

/* ---- add ---- */

static int add_run(struct store_op *op, struct db *d)
{
	struct add_token *o = CONTAINER_OF(op, struct add_token, op);

	if (db_int(d, 0,
		"SELECT COUNT(*) FROM token WHERE kind = ?1 AND accelerator = ?2 AND name = ?3"
		" AND revoked_ms IS NULL",
		V_TEXT(token_kind_name(o->kind)), V_TEXT(o->accelerator),
		V_TEXT(o->name)) >= TOKENS_VALID_MAX)
		return ERR_EXISTS;
	o->id = db_int(d, 0,
	    "INSERT INTO token (kind, accelerator, name, hash, created_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id",
	    V_TEXT(token_kind_name(o->kind)), V_TEXT(o->accelerator), V_TEXT(o->name),
	    V_BLOB(o->hash, sizeof(o->hash)), V_INT(o->now_ms));
	db_tell(d, STORE_TOKENS);
	return 0;
}

int store_add_token(struct store *s, struct add_token *op)
{
	op->id = 0;
	op->op.run = add_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

/* ---- revoke ---- */

static int revoke_run(struct store_op *op, struct db *d)
{
	struct revoke_token *o = CONTAINER_OF(op, struct revoke_token, op);
	int64_t n;

	if (o->id)
		n = db_exec(d,
		    "UPDATE token SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms IS NULL",
		    V_INT(o->id), V_INT(o->now_ms));
	else
		n = db_exec(d,
		    "UPDATE token SET revoked_ms = ?4 WHERE kind = ?1 AND accelerator = ?2"
		    " AND name = ?3 AND revoked_ms IS NULL",
		    V_TEXT(token_kind_name(o->kind)), V_TEXT(o->accelerator), V_TEXT(o->name),
		    V_INT(o->now_ms));
	o->n_revoked = (int)n;
	if (n)
		db_tell(d, STORE_TOKENS);
	return 0;
}

int store_revoke_token(struct store *s, struct revoke_token *op)
{
	op->n_revoked = 0;
	op->op.run = revoke_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

/* ---- touch ---- */

static int touch_run(struct store_op *op, struct db *d)
{
	struct touch_tokens *o = CONTAINER_OF(op, struct touch_tokens, op);

	for (size_t i = 0; i < o->n; i++)
		db_exec(d,
		    "UPDATE token SET last_used_ms = ?2, last_address = ?3 WHERE id = ?1"
		    " AND COALESCE(last_used_ms, 0) <= ?2",
		    V_INT(o->uses[i].id), V_INT(o->uses[i].used_ms), V_TEXT(o->uses[i].address));
	return 0;
}

int store_touch_tokens(struct store *s, struct touch_tokens *op)
{
	op->op.run = touch_run;
	op->op.bytes = sizeof(*op) + op->n * sizeof(*op->uses);
	return store_submit(s, &op->op);
}

/* ---- list ---- */

static void read_row(const struct rows *r, struct token_row *t)
{
	size_t n;
	const void *hash = rows_blob(r, 4, &n);

	*t = (struct token_row){
	    .id = rows_int(r, 0),
	    .kind = kind_parse(rows_text(r, 1)),
	    .accelerator = rows_dup(r, 2),
	    .name = rows_dup(r, 3),
	    .created_ms = rows_int(r, 5),
	    .last_used_ms = rows_int(r, 6),
	    .last_address = rows_dup(r, 7),
	    .revoked_ms = rows_int(r, 8),
	};
	if (n == sizeof(t->hash))
		memcpy(t->hash, hash, n);
}

static int list_run(struct store_query *q, struct db *d)
{
	struct list_tokens *l = CONTAINER_OF(q, struct list_tokens, q);
	struct rows *r = db_rows(d,
	    "SELECT id, kind, accelerator, name, hash, created_ms, last_used_ms, last_address,"
	    " revoked_ms FROM token WHERE ?1 = 0 OR revoked_ms IS NULL"
	    " ORDER BY accelerator, name, created_ms, id",
	    V_INT(l->only_valid));

	while (rows_next(r)) {
		if ((l->n & (l->n - 1)) == 0)
			l->list = xrealloc(l->list, (l->n ? 2 * l->n : 1) * sizeof(*l->list));
		read_row(r, &l->list[l->n++]);
	}
	if (db_status(d))
		list_tokens_release(l);
	return 0;
}

int store_list_tokens(struct store *s, struct list_tokens *q)
{
	q->list = NULL;
	q->n = 0;
	q->q.run = list_run;
	return store_query(s, &q->q);
}

void list_tokens_release(struct list_tokens *q)
{
	for (size_t i = 0; i < q->n; i++) {
		free(q->list[i].accelerator);
		free(q->list[i].name);
		free(q->list[i].last_address);
	}
	FREE_AND_NULL(q->list);
	q->n = 0;
}
