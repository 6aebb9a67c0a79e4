/* Facts are gathered, judged and written down here, and who is to be looked at again is noted. */
#include "store/attribution.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "store/attribution_facts.h"
#include "store/job_row.h"
#include "store/known_issues.h"

enum {
	DEFAULT_DISTANCE = 20,
	SIMILAR_MAX = 100,    /* changes that one report makes due */
	SIMILAR_CHANGES = 24, /* that had one message */
	KEYS_READ = 200,      /* failures whose messages are looked for in other tests */
	SIMILAR_CELLS = 20,   /* so many of its cells are looked for elsewhere */
};
static const int64_t DEFAULT_WINDOW_MS = INT64_C(7) * 24 * 3600 * 1000;

static int64_t setting(struct db *d, const char *key, int64_t fallback)
{
	return db_int(
	    d, fallback, "SELECT CAST(value AS INTEGER) FROM setting WHERE key = ?1", V_TEXT(key));
}

int64_t attribution_distance(struct db *d)
{
	return setting(d, "attribution.distance", DEFAULT_DISTANCE);
}

int64_t attribution_window_ms(struct db *d)
{
	return setting(d, "attribution.window_ms", DEFAULT_WINDOW_MS);
}

static void set(struct db *d, const char *key, int64_t value)
{
	db_exec(d,
	    "INSERT INTO setting (key, value) VALUES (?1, CAST(?2 AS TEXT))"
	    " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
	    V_TEXT(key), V_INT(value));
}

void attribution_configure(struct db *d, int64_t window_ms, int distance)
{
	if (!window_ms)
		return;
	set(d, "attribution.window_ms", window_ms);
	set(d, "attribution.distance", distance);
}

/* ---- one accelerator's cells ---- */

static void read_known(struct attribution_case *c)
{
	struct known_issues k = known_issues_read(c->d, c->now_ms);

	for (size_t i = 0; k.n && i < c->n_cells; i++) {
		struct red_cell *cell = &c->cells[i];
		const struct known_issue *issue =
		    known_issue_find(&k, c->accelerator, cell->suite, cell->test);

		if (!issue)
			continue;
		cell->known_url = xstrdup(issue->url);
		known_issue_matched(c->d, issue->id, c->change_id, c->now_ms);
	}
	for (size_t i = 0; i < c->n_failures; i++)
		c->failures[i].facts.known_url = c->cells[c->failures[i].cell].known_url;
	known_issues_free(&k);
}

/* One result for each cell: the worst of its failures. */
static struct attribution_result *judge(const struct attribution_case *c)
{
	struct attribution_result *results = xcalloc(c->n_cells, sizeof(*results));

	for (size_t i = 0; i < c->n_cells; i++) {
		results[i].attribution = N_ATTRIBUTIONS;
		if (c->cells[i].n_failures == FAILURES_MAX)
			results[i] = attribution_without_facts(
			    "it failed in too many jobs to compare them all");
	}
	for (size_t i = 0; i < c->n_failures; i++) {
		struct attribution_result *of_cell = &results[c->failures[i].cell];
		struct attribution_result r = attribute(&c->failures[i].facts);

		*of_cell =
		    of_cell->attribution == N_ATTRIBUTIONS ? r : attribution_worse(of_cell, &r);
	}
	for (size_t i = 0; i < c->n_cells; i++)
		if (results[i].attribution == N_ATTRIBUTIONS)
			results[i] =
			    attribution_without_facts("no job that counts shows this failure");
	return results;
}

/* Whether people are told anything else than before. */
static bool put(const struct attribution_case *c, const struct red_cell *cell,
    const struct attribution_result *r)
{
	bool is_same = cell->was == r->attribution && cell->was_job == r->evidence_job &&
		       str_eq(cell->was_url, r->known_url) && str_eq(cell->was_reason, r->reason);

	if (is_same && cell->was_needs == r->needs)
		return false;
	db_exec(c->d,
	    "UPDATE verdict SET attribution = ?4, reason = ?5, evidence_job = ?6, evidence_url = "
	    "?7, needs = ?8"
	    " WHERE change_id = ?1 AND accelerator = ?2 AND test_id = ?3",
	    V_INT(c->change_id), V_TEXT(c->accelerator), V_INT(cell->test_id),
	    V_TEXT(attribution_name(r->attribution)), V_TEXT(r->reason),
	    V_INT_OR_NULL(r->evidence_job), V_TEXT(r->known_url), V_INT(r->needs));
	return !is_same;
}

static bool judge_and_put(struct attribution_case *c)
{
	struct attribution_result *results = judge(c);
	bool has_moved = false;

	for (size_t i = 0; i < c->n_cells; i++)
		has_moved |= put(c, &c->cells[i], &results[i]);
	free(results);
	return has_moved;
}

bool attribution_apply(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	struct attribution_case c = {
	    .d = d,
	    .change_id = change_id,
	    .accelerator = accelerator,
	    .now_ms = now_ms,
	    .window_ms = attribution_window_ms(d),
	    .distance = (int)attribution_distance(d),
	};
	bool has_moved = false;

	if (attribution_case_read(&c)) {
		read_known(&c);
		attribution_read_own_runs(&c);
		attribution_read_base_runs(&c);
		attribution_read_experiments(&c);
		attribution_read_landed(&c);
		attribution_read_meaning(&c);
		attribution_read_elsewhere(&c);
		has_moved = judge_and_put(&c);
	}
	attribution_case_release(&c);
	if (has_moved)
		(void)jobs_tell(
		    d, db_rows(d,
			   "SELECT id FROM job WHERE change_id = ?1 AND accelerator = ?2"
			   " AND is_current = 1",
			   V_INT(change_id), V_TEXT(accelerator)));
	return has_moved;
}

/* ---- who is looked at again ---- */

void attribution_note_due(struct db *d, int64_t change_id, int64_t now_ms)
{
	db_exec(d,
	    "INSERT INTO attribution_due (change_id, since_ms, next_ms, n_tries, generation)"
	    " VALUES (?1, ?2, ?2, 0, 1) ON CONFLICT (change_id) DO UPDATE SET"
	    " next_ms = excluded.next_ms, generation = attribution_due.generation + 1",
	    V_INT(change_id), V_INT(now_ms));
	db_tell(d, STORE_ATTRIBUTION);
}

/* Ahead of a query for ids in column `id`, with ?1 the time; and behind it. */
#define NOTE_ALL                                                                                   \
	"INSERT INTO attribution_due (change_id, since_ms, next_ms, n_tries, generation)"          \
	" SELECT DISTINCT id, ?1, ?1, 0, 1 FROM ("
#define ALL_NOTED                                                                                  \
	") WHERE true ON CONFLICT (change_id) DO UPDATE SET next_ms = excluded.next_ms,"           \
	" generation = attribution_due.generation + 1"

static void tell(struct db *d, int64_t n_noted)
{
	if (n_noted)
		db_tell(d, STORE_ATTRIBUTION);
}

/* Is it red? By its jobs: its cells may be many, and most of them green. */
#define IS_RED(change)                                                                             \
	" EXISTS (SELECT 1 FROM job j WHERE j.change_id = " change " AND j.accelerator = ?5"       \
	" AND j.is_current = 1 AND j.verdict IN ('FAIL', 'ERROR', 'MISS'))"

/* A run of a base branch reported: the open changes whose merge base may be judged by it, and later
 * pushes, with a red job of that accelerator, are due. All of them: the run may take an excuse away. */
static void base_moved(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	int64_t distance = attribution_distance(d), position;
	char *key = NULL, *ref = NULL;
	struct rows *r = db_rows(d,
	    "SELECT b.repository_key, b.ref, b.position FROM change c JOIN branch_commit b"
	    " ON b.repository_key = c.repository_key AND b.sha = c.head_sha"
	    " WHERE c.id = ?1 AND c.kind = 'push' LIMIT 1",
	    V_INT(change_id));

	if (!rows_next(r))
		return;
	key = rows_dup(r, 0);
	ref = rows_dup(r, 1);
	position = rows_int(r, 2);
	rows_end(r);
	tell(d, db_exec(d,
		    NOTE_ALL "SELECT c.id FROM branch_commit b CROSS JOIN change c"
			     " ON c.repository_key = b.repository_key AND c.merge_base_sha = b.sha"
			     " WHERE b.repository_key = ?2 AND b.ref = ?3 AND b.position >= ?4 - ?6"
			     " AND b.position <= ?4 + ?6 AND c.state = 'open'"
			     " AND c.kind = 'pull_request' AND" IS_RED("c.id") ALL_NOTED,
		    V_INT(now_ms), V_TEXT(key), V_TEXT(ref), V_INT(position), V_TEXT(accelerator),
		    V_INT(distance)));
	tell(d, db_exec(d,
		    NOTE_ALL "SELECT c.id FROM branch_commit b CROSS JOIN change c"
			     " ON c.repository_key = b.repository_key AND c.head_sha = b.sha"
			     " AND c.kind = 'push' WHERE b.repository_key = ?2 AND b.ref = ?3"
			     " AND b.position > ?4 AND b.position <= ?4 + ?6 + 1"
			     " AND" IS_RED("c.id") ALL_NOTED,
		    V_INT(now_ms), V_TEXT(key), V_TEXT(ref), V_INT(position), V_TEXT(accelerator),
		    V_INT(distance)));
	free(key);
	free(ref);
}

/* Open changes with the same failure that this one may explain; where it is proved to be flaky here, a red base says less, too. */
static void explained_by(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	tell(d, db_exec(d,
		    NOTE_ALL
		    "SELECT DISTINCT f.change_id AS id FROM (SELECT DISTINCT test_id, key"
		    "  FROM failure WHERE change_id = ?2 AND accelerator = ?3 LIMIT ?6) o"
		    " CROSS JOIN failure f ON f.accelerator = ?3 AND f.test_id = o.test_id"
		    " AND f.key = o.key AND f.at_ms >= ?4"
		    " CROSS JOIN change c ON c.id = f.change_id"
		    " CROSS JOIN verdict v ON v.change_id = c.id AND v.accelerator = ?3"
		    "  AND v.test_id = f.test_id"
		    " WHERE f.change_id <> ?2 AND c.kind = 'pull_request' AND c.state = 'open'"
		    " AND (v.attribution IN ('NEW', 'UNCLASSIFIED')"
		    "  OR (v.attribution = 'BASE' AND EXISTS (SELECT 1 FROM verdict w"
		    "   WHERE w.change_id = ?2 AND w.accelerator = ?3 AND w.test_id = f.test_id"
		    "   AND (w.status = 'PASS' OR w.attribution = 'FLAKY')))) LIMIT ?5" ALL_NOTED,
		    V_INT(now_ms), V_INT(change_id), V_TEXT(accelerator),
		    V_INT(now_ms - attribution_window_ms(d)), V_INT(SIMILAR_MAX),
		    V_INT(SIMILAR_CELLS)));
}

/* Open changes that are excused by what failed here. All of them: what excuses them no longer must not
 * go on doing so. A branch that failed so may be why others did. */
static void excused_by(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	tell(d, db_exec(d,
		    NOTE_ALL
		    "SELECT v.change_id AS id FROM (SELECT DISTINCT test_id FROM failure"
		    "  WHERE change_id = ?2 AND accelerator = ?3 LIMIT ?4) o"
		    " CROSS JOIN verdict v ON v.accelerator = ?3 AND v.test_id = o.test_id"
		    "  AND v.attribution = 'FLAKY'"
		    " CROSS JOIN change c ON c.id = v.change_id"
		    " WHERE c.id <> ?2 AND c.kind = 'pull_request' AND c.state = 'open'"
		    " AND (v.evidence_job IN (SELECT job_id FROM failure WHERE change_id = ?2)"
		    "  OR EXISTS (SELECT 1 FROM change WHERE id = ?2 AND kind = 'push'))" ALL_NOTED,
		    V_INT(now_ms), V_INT(change_id), V_TEXT(accelerator), V_INT(COMPARED_MAX)));
}

/* Open changes that are excused although a message of theirs failed here in another test: it may mean less than it
 * seemed to. */
static void meant_less_by(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	tell(d,
	    db_exec(d,
		NOTE_ALL
		"WITH RECURSIVE own (key) AS (SELECT DISTINCT key FROM (SELECT key FROM failure"
		"  WHERE change_id = ?2 AND accelerator = ?3 LIMIT ?5)),"
		/* the newest changes that had each key: one step of the index each */
		" had (key, id, n) AS (SELECT key, (SELECT MAX(change_id) FROM failure f"
		"   WHERE f.key = own.key), 1 FROM own UNION ALL SELECT key, (SELECT MAX(change_id)"
		"   FROM failure f WHERE f.key = had.key AND f.change_id < had.id), n + 1 FROM had"
		"  WHERE id IS NOT NULL AND n < ?4)"
		" SELECT DISTINCT had.id FROM had CROSS JOIN change c ON c.id = had.id"
		" WHERE had.id <> ?2 AND c.kind = 'pull_request' AND c.state = 'open'"
		" AND EXISTS (SELECT 1 FROM (SELECT test_id, accelerator FROM failure"
		"   WHERE key = had.key AND change_id = had.id LIMIT ?6) f"
		"  CROSS JOIN verdict v ON v.change_id = had.id AND v.accelerator = f.accelerator"
		"   AND v.test_id = f.test_id WHERE v.attribution IN ('BASE', 'FLAKY')"
		"  AND NOT EXISTS (SELECT 1 FROM failure s WHERE s.key = had.key"
		"   AND s.change_id = ?2 AND s.test_id = f.test_id))" ALL_NOTED,
		V_INT(now_ms), V_INT(change_id), V_TEXT(accelerator), V_INT(SIMILAR_CHANGES),
		V_INT(KEYS_READ), V_INT(SIMILAR_CELLS)));
}

void attribution_alike_due(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	explained_by(d, change_id, accelerator, now_ms);
	meant_less_by(d, change_id, accelerator, now_ms);
	excused_by(d, change_id, accelerator, now_ms);
}

struct attribution_lack attribution_lacks(struct db *d, int64_t change_id)
{
	struct attribution_lack lack = {.merge_base = false};
	struct rows *r = db_rows(d,
	    "SELECT c.merge_base_sha IS NULL, NOT EXISTS (SELECT 1 FROM change_files g"
	    "  WHERE g.repository_key = c.repository_key AND g.head_sha = c.head_sha)"
	    "  AND EXISTS (SELECT 1 FROM failure f WHERE f.change_id = c.id)"
	    " FROM change c WHERE c.id = ?1 AND c.kind = 'pull_request'",
	    V_INT(change_id));

	if (rows_next(r)) {
		lack.merge_base = rows_int(r, 0);
		lack.files = rows_int(r, 1);
	}
	rows_end(r);
	return lack;
}

static bool has_open_question(struct db *d, int64_t change_id, const char *accelerator)
{
	return db_has(d,
	    "SELECT 1 FROM verdict WHERE change_id = ?1 AND accelerator = ?2"
	    " AND attribution IN ('BASE', 'FLAKY', 'NEW', 'UNCLASSIFIED') LIMIT 1",
	    V_INT(change_id), V_TEXT(accelerator));
}

void attribution_others_due(
    struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms)
{
	struct attribution_lack lack;

	if (has_open_question(d, change_id, accelerator)) {
		lack = attribution_lacks(d, change_id);
		if (lack.merge_base || lack.files)
			attribution_note_due(d, change_id, now_ms);
	}
	/* also when none is red any more: what failed and passed on one commit tells of others */
	attribution_alike_due(d, change_id, accelerator, now_ms);
	base_moved(d, change_id, accelerator, now_ms);
}
