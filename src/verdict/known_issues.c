/* Known issues as attribution asks for them, inside a writer's transaction. */
#include "verdict/known_issues.h"

#include "base/alloc.h"
#include "base/str.h"
#include "model/plan.h"
#include "verdict/cells_moved.h"

void known_issue_release(struct known_issue *k)
{
	free(k->pattern);
	free(k->accelerator);
	free(k->url);
	*k = (struct known_issue){0};
}

struct known_issues known_issues_read(struct db *d, int64_t now_ms)
{
	struct known_issues ret = {0};
	struct rows *r = db_rows(d,
	    "SELECT id, pattern, accelerator, url, until_ms, created_ms FROM known_issue"
	    " WHERE until_ms IS NULL OR until_ms > ?1 ORDER BY id",
	    V_INT(now_ms));

	while (rows_next(r)) {
		*ARRAY_PUSH(ret.list, ret.n) = (struct known_issue){
		    .id = rows_int(r, 0),
		    .pattern = rows_dup(r, 1),
		    .accelerator = rows_dup(r, 2),
		    .url = rows_dup(r, 3),
		    .until_ms = rows_int(r, 4),
		    .created_ms = rows_int(r, 5),
		};
	}
	return ret;
}

void known_issues_free(struct known_issues *k)
{
	for (size_t i = 0; i < k->n; i++)
		known_issue_release(&k->list[i]);
	FREE_AND_NULL(k->list);
	k->n = 0;
}

bool known_issue_matches(
    const struct known_issue *k, const char *accelerator, const char *suite, const char *test)
{
	char *path;
	bool is_match;

	if (k->accelerator && !str_eq(k->accelerator, accelerator))
		return false;
	path = xasprintf("%s/%s", suite, test);
	is_match = glob_matches(k->pattern, path);
	free(path);
	return is_match;
}

const struct known_issue *known_issue_find(
    const struct known_issues *k, const char *accelerator, const char *suite, const char *test)
{
	for (size_t i = 0; i < k->n; i++)
		if (known_issue_matches(&k->list[i], accelerator, suite, test))
			return &k->list[i];
	return NULL;
}

void known_issue_matched(struct db *d, int64_t id, int64_t change_id, int64_t now_ms)
{
	bool is_new = !db_has(d, "SELECT 1 FROM known_match WHERE issue_id = ?1 AND change_id = ?2",
	    V_INT(id), V_INT(change_id));

	db_exec(d,
	    "INSERT INTO known_match (issue_id, change_id, at_ms) VALUES (?1, ?2, ?3)"
	    " ON CONFLICT (issue_id, change_id) DO UPDATE SET at_ms = excluded.at_ms",
	    V_INT(id), V_INT(change_id), V_INT(now_ms));
	db_exec(d,
	    "UPDATE known_issue SET last_match_ms = ?2, n_matches = n_matches + ?3 WHERE id = ?1",
	    V_INT(id), V_INT(now_ms), V_INT(is_new));
}

/* ==== operations ==== */

/* ---- the changes that an issue concerns ---- */

struct concerned {
	int64_t ids[KNOWN_DUE_MAX];
	size_t n;
};

static struct rows *red_cells(struct db *d, int64_t now_ms)
{
	return db_rows(d,
	    "SELECT o.id, v.accelerator, t.suite, t.name FROM"
	    " (SELECT change_id AS id FROM pull WHERE state = 'open'"
	    "  UNION SELECT id FROM change WHERE active_ms >= ?1 AND kind = 'push') o"
	    " JOIN verdict v ON v.change_id = o.id AND v.attribution IS NOT NULL"
	    " JOIN test t ON t.id = v.test_id ORDER BY o.id DESC",
	    V_INT(now_ms - KNOWN_RECENT_MS));
}

static void note_concerned(struct db *d, const struct known_issue *k, int64_t now_ms)
{
	struct concerned *c = xcalloc(1, sizeof(*c));
	struct rows *r = red_cells(d, now_ms);

	while (rows_next(r)) {
		int64_t id = rows_int(r, 0);

		if (c->n && c->ids[c->n - 1] == id)
			continue;
		if (c->n == KNOWN_DUE_MAX) {
			rows_end(r);
			break;
		}
		if (known_issue_matches(k, rows_text(r, 1), rows_text(r, 2), rows_text(r, 3)))
			c->ids[c->n++] = id;
	}
	for (size_t i = 0; i < c->n; i++)
		cells_moved(d, c->ids[i], NULL, CELLS_KNOWN_CHANGED, now_ms);
	free(c);
}

/* ---- add ---- */

static int add_known_run(struct store_op *op, struct db *d)
{
	struct add_known *o = CONTAINER_OF(op, struct add_known, op);
	struct known_issue k = {
	    .pattern = (char *)o->pattern,
	    .accelerator = (char *)o->accelerator,
	};

	o->id = db_int(d, 0,
	    "INSERT INTO known_issue (pattern, accelerator, url, until_ms, created_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id",
	    V_TEXT(o->pattern), V_TEXT(o->accelerator), V_TEXT(o->url), V_INT_OR_NULL(o->until_ms),
	    V_INT(o->now_ms));
	note_concerned(d, &k, o->now_ms);
	return 0;
}

int store_add_known(struct store *s, struct add_known *op)
{
	op->id = 0;
	op->op.run = add_known_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

/* ---- remove ---- */

static int remove_known_run(struct store_op *op, struct db *d)
{
	struct remove_known *o = CONTAINER_OF(op, struct remove_known, op);
	struct rows *r =
	    db_rows(d, "SELECT pattern, accelerator FROM known_issue WHERE id = ?1", V_INT(o->id));
	struct known_issue k = {0};

	if (!rows_next(r))
		return db_status(d) ? db_status(d) : ERR_NOT_FOUND;
	k.pattern = rows_dup(r, 0);
	k.accelerator = rows_dup(r, 1);
	rows_end(r);
	db_exec(d, "DELETE FROM known_match WHERE issue_id = ?1", V_INT(o->id));
	db_exec(d, "DELETE FROM known_issue WHERE id = ?1", V_INT(o->id));
	note_concerned(d, &k, o->now_ms);
	known_issue_release(&k);
	return 0;
}

int store_remove_known(struct store *s, struct remove_known *op)
{
	op->op.run = remove_known_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

/* ---- expire ---- */

static bool take_expired_known(struct db *d, int64_t now_ms, struct known_issue *ret)
{
	struct rows *r = db_rows(d,
	    "UPDATE known_issue SET is_over = 1 WHERE id = (SELECT id FROM known_issue"
	    " WHERE is_over = 0 AND until_ms IS NOT NULL AND until_ms <= ?1 LIMIT 1)"
	    " RETURNING pattern, accelerator",
	    V_INT(now_ms));
	bool is_found = rows_next(r);

	if (is_found) {
		ret->pattern = rows_dup(r, 0);
		ret->accelerator = rows_dup(r, 1);
	}
	rows_end(r);
	return is_found;
}

static int expire_known_run(struct store_op *op, struct db *d)
{
	struct expire_known *o = CONTAINER_OF(op, struct expire_known, op);
	struct known_issue k = {0};

	while (take_expired_known(d, o->now_ms, &k)) {
		note_concerned(d, &k, o->now_ms);
		known_issue_release(&k);
		o->n_expired++;
	}
	o->next_ms = db_int(d, 0,
	    "SELECT until_ms FROM known_issue WHERE is_over = 0 AND until_ms IS NOT NULL"
	    " ORDER BY until_ms LIMIT 1");
	return 0;
}

int store_expire_known(struct store *s, struct expire_known *op)
{
	op->n_expired = 0;
	op->next_ms = 0;
	op->op.run = expire_known_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

/* ---- list ---- */

static int list_known_run(struct store_query *q, struct db *d)
{
	struct list_known *l = CONTAINER_OF(q, struct list_known, q);
	struct rows *r = db_rows(d,
	    "SELECT k.id, k.pattern, k.accelerator, k.url, k.until_ms, k.created_ms,"
	    " k.last_match_ms, k.n_matches, COALESCE(k.last_match_ms, 0) >= ?1 OR EXISTS"
	    " (SELECT 1 FROM known_match m JOIN pull p ON p.change_id = m.change_id"
	    "  AND p.state = 'open' JOIN verdict v ON v.change_id = m.change_id"
	    "  AND v.attribution = 'KNOWN' AND v.evidence_url = k.url WHERE m.issue_id = k.id)"
	    " FROM known_issue k ORDER BY k.id",
	    V_INT(l->now_ms - KNOWN_RECENT_MS));

	while (rows_next(r)) {
		*ARRAY_PUSH(l->list, l->n) = (struct known_issue){
		    .id = rows_int(r, 0),
		    .pattern = rows_dup(r, 1),
		    .accelerator = rows_dup(r, 2),
		    .url = rows_dup(r, 3),
		    .until_ms = rows_int(r, 4),
		    .created_ms = rows_int(r, 5),
		    .last_match_ms = rows_int(r, 6),
		    .n_matches = rows_int(r, 7),
		    .is_used = rows_int(r, 8),
		};
	}
	if (db_status(d))
		list_known_release(l);
	return 0;
}

int store_list_known(struct store *s, struct list_known *q)
{
	q->list = NULL;
	q->n = 0;
	q->q.run = list_known_run;
	return store_query(s, &q->q);
}

void list_known_release(struct list_known *q)
{
	for (size_t i = 0; i < q->n; i++)
		known_issue_release(&q->list[i]);
	FREE_AND_NULL(q->list);
	q->n = 0;
}
