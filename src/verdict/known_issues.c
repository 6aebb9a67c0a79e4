#include "verdict/known_issues.h"

#include "db/record_rows.h"
#include "model/plan.h"
#include "verdict/attribution_facts.h"
#include "verdict/cells_moved.h"

RECORD_DEFINE(known_issue, KNOWN_ISSUE_RECORD)

static bool known_issue_matches(
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

/* Records that the issue explains a cell of this change. Counts each change once. */
static void note_match(struct txn *d, int64_t id, int64_t change_id, int64_t now_ms)
{
	bool is_new =
	    !db_has(d, "SELECT 1 FROM known_match WHERE issue_id = ?1 AND change_id = ?2", V_INT(id), V_INT(change_id));

	db_exec(d,
	    "INSERT INTO known_match (issue_id, change_id, at_ms) VALUES (?1, ?2, ?3)"
	    " ON CONFLICT (issue_id, change_id) DO UPDATE SET at_ms = excluded.at_ms",
	    V_INT(id), V_INT(change_id), V_INT(now_ms));
	db_exec(d, "UPDATE known_issue SET last_match_ms = ?2, n_matches = n_matches + ?3 WHERE id = ?1", V_INT(id),
	    V_INT(now_ms), V_INT(is_new));
}

#define NAMED_CELL_RECORD(F, S)                                                                                        \
	F(S, ID, test_id, NULL, "v.test_id", "")                                                                       \
	F(S, BORROWED, suite, NULL, "t.suite", "")                                                                     \
	F(S, BORROWED, test, NULL, "t.name", "")
RECORD_LOCAL(named_cell, NAMED_CELL_RECORD)

/* Sets the issue of each cell that one of them matches. */
static void match_cells(struct attribution_case *c, const struct known_issue *list, size_t n)
{
	struct rows *r = db_rows(c->d,
	    RECORD_QUERY(NAMED_CELL_RECORD, "FROM verdict v JOIN test t ON t.id = v.test_id WHERE v.change_id = ?1"
					    " AND v.accelerator = ?2 AND v.attribution IS NOT NULL"),
	    V_INT(c->change_id), V_TEXT(c->accelerator));

	while (rows_next(r)) {
		const struct red_cell *cell;
		struct named_cell named;
		size_t k = 0;

		record_read(r, &named_cell_record, &named);
		cell = attribution_cell(c, named.test_id);
		while (cell && k < n && !known_issue_matches(&list[k], c->accelerator, named.suite, named.test))
			k++;
		if (!cell || k == n)
			continue;
		c->cells[cell - c->cells].known_url = xstrdup(list[k].url);
		note_match(c->d, list[k].id, c->change_id, c->now_ms);
	}
}

void fact_known(struct attribution_case *c)
{
	struct known_issue *list = NULL;
	size_t n = 0;

	RECORDS_READ(db_rows(c->d,
			 RECORD_QUERY(KNOWN_ISSUE_RECORD,
			     "FROM known_issue WHERE until_ms IS NULL OR until_ms > ?1 ORDER BY id"),
			 V_INT(c->now_ms)),
	    known_issue, list, n);
	if (n)
		match_cells(c, list, n);
	for (size_t i = 0; i < c->n_failures; i++)
		c->failures[i].facts.known_url = c->cells[c->failures[i].cell].known_url;
	RECORDS_RELEASE(known_issue, list, n);
}

/* ---- the changes that an issue concerns ---- */

#define CELL_OF_CHANGE_RECORD(F, S)                                                                                    \
	F(S, ID, change_id, NULL, "o.id", "")                                                                          \
	F(S, BORROWED, accelerator, NULL, "v.accelerator", "")                                                         \
	F(S, BORROWED, suite, NULL, "t.suite", "")                                                                     \
	F(S, BORROWED, test, NULL, "t.name", "")
RECORD_LOCAL(cell_of_change, CELL_OF_CHANGE_RECORD)

static void known_changed(struct txn *d, const struct known_issue *k, int64_t now_ms)
{
	int64_t *ids = NULL;
	size_t n = 0;
	struct rows *r = db_rows(d,
	    RECORD_QUERY(CELL_OF_CHANGE_RECORD,
		"FROM (SELECT change_id AS id FROM pull WHERE state = 'open'"
		"  UNION SELECT id FROM change WHERE active_ms >= ?1 AND kind = 'push') o"
		" JOIN verdict v ON v.change_id = o.id AND v.attribution IS NOT NULL"
		" JOIN test t ON t.id = v.test_id ORDER BY o.id DESC"),
	    V_INT(now_ms - KNOWN_RECENT_MS));

	while (n < KNOWN_DUE_MAX && rows_next(r)) {
		struct cell_of_change cell;

		record_read(r, &cell_of_change_record, &cell);
		if ((!n || ids[n - 1] != cell.change_id) &&
		    known_issue_matches(k, cell.accelerator, cell.suite, cell.test))
			*ARRAY_PUSH(ids, n) = cell.change_id;
	}
	rows_end(r);
	for (size_t i = 0; i < n; i++)
		cells_moved(d, ids[i], NULL, CELLS_KNOWN_CHANGED, now_ms);
	free(ids);
}

/* ---- operations ---- */

static int add_known_run(struct store_op *op, struct txn *d)
{
	struct add_known *o = CONTAINER_OF(op, struct add_known, op);
	struct known_issue k = {.pattern = (char *)o->pattern, .accelerator = (char *)o->accelerator};

	o->id = db_exec_int(d, 0,
	    "INSERT INTO known_issue (pattern, accelerator, url, until_ms, created_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id",
	    V_TEXT(o->pattern), V_TEXT(o->accelerator), V_TEXT(o->url), V_INT_OR_NULL(o->until_ms), V_INT(o->now_ms));
	known_changed(d, &k, o->now_ms);
	return 0;
}
STORE_OPERATION(add_known)

static int remove_known_run(struct store_op *op, struct txn *d)
{
	struct remove_known *o = CONTAINER_OF(op, struct remove_known, op);
	struct known_issue k;

	if (!record_read_first(
		db_rows(d, RECORD_QUERY(KNOWN_ISSUE_RECORD, "FROM known_issue WHERE id = ?1"), V_INT(o->id)),
		&known_issue_record, &k))
		return db_status(d) ? db_status(d) : ERR_NOT_FOUND;
	db_exec(d, "DELETE FROM known_match WHERE issue_id = ?1", V_INT(o->id));
	db_exec(d, "DELETE FROM known_issue WHERE id = ?1", V_INT(o->id));
	known_changed(d, &k, o->now_ms);
	record_release(&known_issue_record, &k);
	return 0;
}
STORE_OPERATION(remove_known)

static int expire_known_run(struct store_op *op, struct txn *d)
{
	struct expire_known *o = CONTAINER_OF(op, struct expire_known, op);
	struct known_issue k;

	o->n_expired = 0;
	while (record_read_first(
	    db_exec_rows(d,
		"UPDATE known_issue SET is_over = 1 WHERE id = (SELECT id FROM known_issue"
		" WHERE is_over = 0 AND until_ms IS NOT NULL AND until_ms <= ?1 ORDER BY until_ms, id LIMIT 1)"
		" RETURNING 0" RECORD_COLUMNS(KNOWN_ISSUE_RECORD),
		V_INT(o->now_ms)),
	    &known_issue_record, &k)) {
		known_changed(d, &k, o->now_ms);
		record_release(&known_issue_record, &k);
		o->n_expired++;
	}
	o->next_ms = db_int(d, 0,
	    "SELECT until_ms FROM known_issue WHERE is_over = 0 AND until_ms IS NOT NULL ORDER BY until_ms LIMIT 1");
	return 0;
}
STORE_OPERATION(expire_known)

static int list_known_run(struct store_query *q, const struct view *d)
{
	struct list_known *l = CONTAINER_OF(q, struct list_known, q);
	struct rows *r = db_rows(d,
	    RECORD_QUERY_BY("COALESCE(k.last_match_ms, 0) >= ?1 OR EXISTS (SELECT 1 FROM known_match m JOIN pull p"
			    "  ON p.change_id = m.change_id AND p.state = 'open' JOIN verdict v"
			    "  ON v.change_id = m.change_id AND v.attribution = 'KNOWN'"
			    "  AND v.evidence_url = k.url WHERE m.issue_id = k.id)",
		KNOWN_ISSUE_RECORD, "FROM known_issue k ORDER BY k.id"),
	    V_INT(l->now_ms - KNOWN_RECENT_MS));

	while (rows_next(r)) {
		struct known_issue *k = ARRAY_PUSH(l->list, l->n);

		record_read(r, &known_issue_record, k);
		k->is_used = rows_key_number(r);
	}
	if (db_status(d))
		list_known_release(l);
	return 0;
}
STORE_LIST(list_known, known_issue)
