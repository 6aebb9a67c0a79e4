/* Attributes the cells of one accelerator, and marks the changes that have to be attributed again. */
#include "verdict/attribution.h"

#include "db/record_rows.h"
#include "db/settings.h"
#include "store/changes.h"
#include "store/jobs.h"
#include "verdict/attribution_facts.h"
#include "verdict/cells_moved.h"

enum {
	DEFAULT_DISTANCE = 20,
	SIMILAR_MAX = 100,     /* changes that one report makes due */
	SIMILAR_CHANGES = 24,  /* with one message, the newest */
	KEYS_READ = 200,       /* failures whose messages are compared with those of other tests */
	SIMILAR_CELLS = 20,    /* failures of one change that are compared with those of others */
	WRITTEN_AT_ONCE = 500, /* cells, by one statement */
	PART_CELLS = 2000,     /* that a part writes, because its commit takes as long as they are many */
	PART_US = 5000,        /* that a part holds the writer, before its commit */
};
static const int64_t DEFAULT_WINDOW_MS = INT64_C(7) * 24 * 3600 * 1000;

int64_t attribution_distance(const struct view *d) { return setting_int(d, "attribution.distance", DEFAULT_DISTANCE); }

static int64_t read_window_ms(const struct view *d)
{
	return setting_int(d, "attribution.window_ms", DEFAULT_WINDOW_MS);
}

void attribution_configure(struct txn *d, int64_t window_ms, int distance)
{
	if (!window_ms)
		return;
	setting_put_int(d, "attribution.window_ms", window_ms);
	setting_put_int(d, "attribution.distance", distance);
}

/* ---- one accelerator's cells ---- */

struct attribution_look {
	struct attribution_case c;
	char *accelerator;
	bool is_read, has_moved;
	size_t n_done; /* cells */
};

/* The worst of the cell's failures. */
static struct attribution_result decide_cell(const struct attribution_case *c, const struct red_cell *cell)
{
	struct attribution_result worst = {.attribution = N_ATTRIBUTIONS};

	if (cell->n_failures == FAILURES_MAX)
		worst = attribution_without_facts("it failed in too many jobs to compare them all");
	for (size_t i = cell->failure; i != SIZE_MAX; i = c->failures[i].next_of_cell) {
		struct attribution_result r = attribute(&c->failures[i].facts);

		worst = worst.attribution == N_ATTRIBUTIONS ? r : attribution_worse(&worst, &r);
	}
	return worst.attribution == N_ATTRIBUTIONS ? attribution_without_facts("no job that counts shows this failure")
						   : worst;
}

static bool are_same_results(const struct attribution_result *a, const struct attribution_result *b)
{
	return a->attribution == b->attribution && a->evidence_job == b->evidence_job && a->needs == b->needs &&
	       str_eq(a->known_url, b->known_url) && str_eq(a->reason, b->reason);
}

static bool looks_same(const struct red_cell *cell, const struct attribution_result *r)
{
	return cell->was == r->attribution && cell->was_job == r->evidence_job && str_eq(cell->was_url, r->known_url) &&
	       str_eq(cell->was_reason, r->reason);
}

/* Writes the result of the cells [from, end), which are neighbours: no other cell between them is attributed. */
static void put_result(const struct attribution_case *c, size_t from, size_t end, const struct attribution_result *r)
{
	if (from == end)
		return;
	db_exec(c->d,
	    "UPDATE verdict SET attribution = ?5, reason = ?6, evidence_job = ?7, evidence_url = ?8, needs = ?9"
	    " WHERE change_id = ?1 AND accelerator = ?2 AND test_id BETWEEN ?3 AND ?4"
	    " AND attribution IS NOT NULL AND status IN ('FAIL', 'ERROR')",
	    V_INT(c->change_id), V_TEXT(c->accelerator), V_INT(c->cells[from].test_id),
	    V_INT(c->cells[end - 1].test_id), V_TEXT(attribution_name(r->attribution)), V_TEXT(r->reason),
	    V_INT_OR_NULL(r->evidence_job), V_TEXT(r->known_url), V_INT(r->needs));
}

/* first: of this part. All cells are written in one transaction with the steps that follow the attribution, so that a look that ends before
 * leaves nothing half done. Of many cells that is only the last one, because these steps take as long as a part. */
static bool must_pause_before(struct attribution_case *c, size_t cell, size_t first)
{
	if (c->n_cells <= RED_CELLS_AT_ONCE)
		return false;
	if (attribution_must_pause(c))
		return true;
	return c->pause_us && cell > first && (cell - first == PART_CELLS || cell + 1 == c->n_cells);
}

/* Decides the cells and writes those that change. One statement writes neighbours with the same result, which thousands of
 * cells have when a machine fails. */
static void put_results(struct attribution_look *l)
{
	struct attribution_case *c = &l->c;
	struct attribution_result last = {.attribution = N_ATTRIBUTIONS};
	size_t first = l->n_done;
	size_t from = first; /* the first cell that has the result `last` and is not written */

	for (; l->n_done < c->n_cells && !must_pause_before(c, l->n_done, first); l->n_done++) {
		const struct red_cell *cell = &c->cells[l->n_done];
		struct attribution_result r = decide_cell(c, cell);
		bool is_put = looks_same(cell, &r) && cell->was_needs == r.needs;

		l->has_moved |= !looks_same(cell, &r);
		if (is_put || from == l->n_done || l->n_done - from == WRITTEN_AT_ONCE ||
		    !are_same_results(&last, &r)) {
			put_result(c, from, l->n_done, &last);
			from = l->n_done + is_put;
			last = r;
		}
	}
	put_result(c, from, l->n_done, &last);
}

struct attribution_look *attribution_look_new(
    const struct view *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	struct attribution_look *l = xcalloc(1, sizeof(*l));

	l->accelerator = xstrdup(accelerator);
	l->c = (struct attribution_case){
	    .change_id = change_id,
	    .accelerator = l->accelerator,
	    .now_ms = now_ms,
	    .window_ms = read_window_ms(d),
	    .distance = (int)attribution_distance(d),
	};
	return l;
}

bool attribution_look_is_first(const struct attribution_look *l)
{
	for (size_t i = 0; i < l->c.n_cells; i++)
		if (!l->c.cells[i].was_reason)
			return true;
	return false;
}

bool attribution_look_has_changed_many(const struct attribution_look *l)
{
	return l->has_moved && l->c.n_cells > RED_CELLS_AT_ONCE;
}

void attribution_look_free(struct attribution_look *l)
{
	if (!l)
		return;
	attribution_case_release(&l->c);
	free(l->accelerator);
	free(l);
}

/* Up to the next pause. False: there is more to do. */
static bool go_on(struct attribution_look *l, struct txn *d, bool *ret_has_moved)
{
	struct attribution_case *c = &l->c;
	bool has_moved;

	c->d = d;
	if (!l->is_read) {
		l->is_read = true;
		if (!attribution_case_read(c))
			return true;
	}
	if (!attribution_collect_facts(c))
		return false;
	put_results(l);
	if (l->n_done < c->n_cells)
		return false;
	/* a look that was ended may have moved some of so many */
	has_moved = l->has_moved || c->n_cells > RED_CELLS_AT_ONCE;
	if (has_moved)
		(void)jobs_notify(d, db_rows(d,
					 "SELECT id FROM job WHERE change_id = ?1 AND accelerator = ?2"
					 " AND is_current = 1",
					 V_INT(c->change_id), V_TEXT(c->accelerator)));
	*ret_has_moved |= has_moved;
	return true;
}

bool attribution_look(struct attribution_look *l, struct txn *d, bool *ret_has_moved)
{
	attribution_begin_part(&l->c, PART_US);
	return go_on(l, d, ret_has_moved);
}

bool attribution_apply(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	struct attribution_look *l = attribution_look_new(d->view, change_id, accelerator, now_ms);
	bool has_moved = false, is_complete = go_on(l, d, &has_moved);

	assert(is_complete); /* it does not pause */
	attribution_look_free(l);
	return has_moved;
}

/* ---- changes that become due ---- */

void attribution_note_due(struct txn *d, int64_t change_id, int64_t now_ms)
{
	db_exec(d,
	    "INSERT INTO attribution_due (change_id, since_ms, next_ms, n_tries, generation)"
	    " VALUES (?1, ?2, ?2, 0, 1) ON CONFLICT (change_id) DO UPDATE SET"
	    " next_ms = excluded.next_ms, generation = attribution_due.generation + 1",
	    V_INT(change_id), V_INT(now_ms));
	db_notify(d, STORE_ATTRIBUTION);
}

void attribution_restart(struct txn *d, int64_t change_id)
{
	db_exec(d, "UPDATE attribution_due SET generation = generation + 1 WHERE change_id = ?1", V_INT(change_id));
}

/* Ahead of a query for ids in column `id` of other changes, with ?1 the time; and behind it. The others are due a second later, because
 * evidence/ first asks GitHub for the files of the change that failed. Without them Outpost would attribute the others twice, and
 * could start a rerun that the files make needless. */
#define NOTE_ALL                                                                                                       \
	"INSERT INTO attribution_due (change_id, since_ms, next_ms, n_tries, generation)"                              \
	" SELECT DISTINCT id, ?1, ?1 + 1000, 0, 1 FROM ("
#define ALL_NOTED                                                                                                      \
	") noted WHERE true ON CONFLICT (change_id) DO UPDATE SET"                                                     \
	" next_ms = MIN(attribution_due.next_ms, excluded.next_ms), generation = attribution_due.generation + 1"

/* Whether the change is red: asks its jobs, because it may have many cells, most of them green. */
#define IS_RED(change)                                                                                                 \
	" EXISTS (SELECT 1 FROM job j WHERE j.change_id = " change " AND j.accelerator = ?5"                           \
	" AND j.is_current = 1 AND j.verdict IN ('FAIL', 'ERROR', 'MISS'))"

#define PUSHED_COMMIT_RECORD(F, S)                                                                                     \
	F(S, TEXT, repository_key, NULL, "b.repository_key", "")                                                       \
	F(S, TEXT, ref, NULL, "b.ref", "")                                                                             \
	F(S, INT, position, NULL, "b.position", "")                                                                    \
	F(S, INT, distance, NULL,                                                                                      \
	    "COALESCE((SELECT CAST(value AS INTEGER) FROM setting WHERE key = 'attribution.distance'), ?2)", "")
RECORD_LOCAL(pushed_commit, PUSHED_COMMIT_RECORD)

/* Red open changes whose merge base is near the commit, and red later pushes. There is no limit, because the run may remove an
 * excuse. */
void attribution_base_due(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	struct pushed_commit b;

	if (!record_read_first(
		db_rows(d,
		    RECORD_QUERY(PUSHED_COMMIT_RECORD, "FROM change c JOIN branch_commit b"
						       " ON b.repository_key = c.repository_key AND b.sha = c.head_sha"
						       " WHERE c.id = ?1 AND c.kind = 'push'"
						       " ORDER BY b.ref LIMIT 1"),
		    V_INT(change_id), V_INT(DEFAULT_DISTANCE)),
		&pushed_commit_record, &b))
		return;
	if (db_exec_count(d,
		NOTE_ALL
		"SELECT c.id FROM branch_commit b CROSS JOIN change c ON c.repository_key = b.repository_key"
		" AND c.merge_base_sha = b.sha WHERE b.repository_key = ?2 AND b.ref = ?3"
		" AND b.position >= ?4 - ?6 AND b.position <= ?4 + ?6 AND c.state = 'open'"
		" AND c.kind = 'pull_request' AND" IS_RED(
		    "c.id") " UNION ALL"
			    " SELECT c.id FROM branch_commit b CROSS JOIN change c ON c.repository_key = "
			    "b.repository_key"
			    " AND c.head_sha = b.sha AND c.kind = 'push' WHERE b.repository_key = ?2 AND b.ref = ?3"
			    " AND b.position > ?4 AND b.position <= ?4 + ?6 + 1 AND" IS_RED("c.id") ALL_NOTED,
		V_INT(now_ms), V_TEXT(b.repository_key), V_TEXT(b.ref), V_INT(b.position), V_TEXT(accelerator),
		V_INT(b.distance)))
		db_notify(d, STORE_ATTRIBUTION);
	record_release(&pushed_commit_record, &b);
}

void attribution_alike_due(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	/* Open changes with the same failure that this one may explain. If the test is proved to be flaky here, a red base
	 * proves less, too. */
	int64_t n = db_exec_count(d,
	    NOTE_ALL "SELECT DISTINCT f.change_id AS id FROM (SELECT DISTINCT test_id, key"
		     "  FROM failure WHERE change_id = ?2 AND accelerator = ?3 ORDER BY test_id, key LIMIT ?6) o"
		     " CROSS JOIN failure f ON f.accelerator = ?3 AND f.test_id = o.test_id"
		     " AND f.key = o.key AND f.at_ms >= ?4 CROSS JOIN change c ON c.id = f.change_id"
		     " CROSS JOIN verdict v ON v.change_id = c.id AND v.accelerator = ?3  AND v.test_id = f.test_id"
		     " WHERE f.change_id <> ?2 AND c.kind = 'pull_request' AND c.state = 'open'"
		     " AND (v.attribution IN ('NEW', 'UNCLASSIFIED')"
		     "  OR (v.attribution = 'BASE' AND EXISTS (SELECT 1 FROM cell w"
		     "   WHERE w.change_id = ?2 AND w.accelerator = ?3 AND w.test_id = f.test_id"
		     "   AND (w.status = 'PASS' OR w.attribution = 'FLAKY')))) LIMIT ?5" ALL_NOTED,
	    V_INT(now_ms), V_INT(change_id), V_TEXT(accelerator), V_INT(now_ms - read_window_ms(d->view)),
	    V_INT(SIMILAR_MAX), V_INT(SIMILAR_CELLS));

	/* Open changes that are excused and have a message that another test has here: the message may be general. */
	n += db_exec_count(d,
	    NOTE_ALL "WITH RECURSIVE own (key) AS (SELECT DISTINCT key FROM (SELECT key FROM failure"
		     "  WHERE change_id = ?2 AND accelerator = ?3 ORDER BY test_id, key LIMIT ?5) failed),"
		     /* the newest changes that had each key: one step of the index each */
		     " had (key, id, n) AS (SELECT key, (SELECT MAX(change_id) FROM failure f"
		     "   WHERE f.key = own.key), 1 FROM own UNION ALL SELECT key, (SELECT MAX(change_id)"
		     "   FROM failure f WHERE f.key = had.key AND f.change_id < had.id), n + 1 FROM had"
		     "  WHERE id IS NOT NULL AND n < ?4)"
		     " SELECT DISTINCT had.id FROM had CROSS JOIN change c ON c.id = had.id"
		     " WHERE had.id <> ?2 AND c.kind = 'pull_request' AND c.state = 'open'"
		     " AND EXISTS (SELECT 1 FROM (SELECT test_id, accelerator FROM failure"
		     "   WHERE key = had.key AND change_id = had.id ORDER BY test_id, accelerator LIMIT ?6) f"
		     "  CROSS JOIN verdict v ON v.change_id = had.id AND v.accelerator = f.accelerator"
		     "   AND v.test_id = f.test_id WHERE v.attribution IN ('BASE', 'FLAKY')"
		     "  AND NOT EXISTS (SELECT 1 FROM failure s WHERE s.key = had.key"
		     "   AND s.change_id = ?2 AND s.test_id = f.test_id))" ALL_NOTED,
	    V_INT(now_ms), V_INT(change_id), V_TEXT(accelerator), V_INT(SIMILAR_CHANGES), V_INT(KEYS_READ),
	    V_INT(SIMILAR_CELLS));
	/* Open changes that a failure of this change excuses. There is no limit, because an excuse that is no longer valid
	 * must end. */
	n += db_exec_count(d,
	    NOTE_ALL "SELECT v.change_id AS id FROM (SELECT DISTINCT test_id FROM failure"
		     "  WHERE change_id = ?2 AND accelerator = ?3 ORDER BY test_id LIMIT ?4) o"
		     " CROSS JOIN verdict v ON v.accelerator = ?3 AND v.test_id = o.test_id"
		     "  AND v.attribution = 'FLAKY' CROSS JOIN change c ON c.id = v.change_id"
		     " WHERE c.id <> ?2 AND c.kind = 'pull_request' AND c.state = 'open'"
		     " AND (v.evidence_job IN (SELECT job_id FROM failure WHERE change_id = ?2)"
		     "  OR EXISTS (SELECT 1 FROM change WHERE id = ?2 AND kind = 'push'))" ALL_NOTED,
	    V_INT(now_ms), V_INT(change_id), V_TEXT(accelerator), V_INT(COMPARED_MAX));
	if (n)
		db_notify(d, STORE_ATTRIBUTION);
}

void attribution_facts_due(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	if (db_has(d,
		"SELECT 1 FROM change c WHERE c.id = ?1 AND (" CHANGE_NEEDS_MERGE_BASE " OR " CHANGE_NEEDS_FILES
		") AND EXISTS (SELECT 1 FROM verdict WHERE change_id = ?1 AND accelerator = ?2"
		" AND attribution IN ('BASE', 'FLAKY', 'NEW', 'UNCLASSIFIED'))",
		V_INT(change_id), V_TEXT(accelerator)))
		attribution_note_due(d, change_id, now_ms);
}

/* ==== operations ==== */

RECORD_DEFINE(due_change, DUE_CHANGE_RECORD)

int64_t attribution_next_ms(const struct view *d, int64_t now_ms)
{
	return db_int(
	    d, 0, "SELECT next_ms FROM attribution_due WHERE next_ms > ?1 ORDER BY next_ms LIMIT 1", V_INT(now_ms));
}

static int claim_due_changes_run(struct store_query *sq, const struct view *d)
{
	struct claim_due_changes *q = CONTAINER_OF(sq, struct claim_due_changes, q);

	RECORDS_READ(
	    db_rows(d,
		RECORD_QUERY(DUE_CHANGE_RECORD, "FROM attribution_due u CROSS JOIN change c ON c.id = u.change_id"
						" WHERE u.next_ms <= ?1 ORDER BY u.next_ms, u.change_id LIMIT ?2"),
		V_INT(q->now_ms), V_INT(q->limit)),
	    due_change, q->list, q->n);
	for (size_t i = 0; i < q->n; i++)
		q->list[i].number = change_pull(d, q->list[i].change_id);
	q->next_ms = attribution_next_ms(d, q->now_ms);
	return 0;
}
STORE_LIST(claim_due_changes, due_change)

static int attribute_change_run(struct store_op *op, struct txn *d)
{
	struct attribute_change *o = CONTAINER_OF(op, struct attribute_change, op);
	int64_t generation =
	    db_int(d, 0, "SELECT generation FROM attribution_due WHERE change_id = ?1", V_INT(o->change_id));

	if (op->n_parts == 0)
		o->has_moved = false;
	/* It also begins again if its cells or their facts changed between two parts. */
	if (op->n_parts == 0 || generation != o->looked_at) {
		attribute_change_release(o);
		o->looked_at = generation;
		o->look = cells_look_new(
		    d->view, o->change_id, o->has_learnt ? CELLS_EVIDENCE_CAME : CELLS_LOOKED_AGAIN, o->now_ms);
	}
	op->is_unfinished = !cells_look(o->look, d, &o->has_moved);
	if (op->is_unfinished)
		return 0;
	attribute_change_release(o);
	if (o->again_ms)
		db_exec(d,
		    "UPDATE attribution_due SET next_ms = ?3, n_tries = n_tries + 1"
		    " WHERE change_id = ?1 AND generation = ?2",
		    V_INT(o->change_id), V_INT(o->generation), V_INT(o->again_ms));
	else
		db_exec(d, "DELETE FROM attribution_due WHERE change_id = ?1 AND generation = ?2", V_INT(o->change_id),
		    V_INT(o->generation));
	return 0;
}
STORE_OPERATION(attribute_change)

void attribute_change_release(struct attribute_change *o)
{
	cells_look_free(o->look);
	o->look = NULL;
}
