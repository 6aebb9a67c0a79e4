#include "store/attribution_facts.h"

#include <string.h>

#include "base/alloc.h"
#include "model/failure_text.h"
#include "store/branch_commits.h"
#include "store/stored_change.h"

enum {
	FEW_CELLS = 500, /* each is looked up; more are read along with the base's cells */
	OLDER_MAX = 24,
	NEWER_MAX = 8,
	OLDER_FOR_MANY = 3,
	NEWER_FOR_MANY = 2,
	ATTEMPTS_MAX = 20,
};

/* ---- the change and its red cells ---- */

static bool read_change(struct attribution_case *c)
{
	struct rows *r = db_rows(c->d,
	    "SELECT kind, repository_key, head_sha, COALESCE(base_ref, ref), merge_base_sha, "
	    "author FROM change WHERE id = ?1 AND kind <> 'nightly'",
	    V_INT(c->change_id));
	bool is_found = rows_next(r);

	if (is_found) {
		c->is_push = strcmp(rows_text(r, 0), "push") == 0;
		c->key = repository_key(rows_text(r, 1));
		c->head_sha = rows_dup(r, 2);
		c->ref = xstrdup(branch_name(rows_text(r, 3)));
		c->merge_base_sha = rows_dup(r, 4);
		c->author = rows_dup(r, 5);
		c->number = change_pull(c->d, c->change_id);
	}
	rows_end(r);
	return is_found;
}

struct failure_mark attribution_mark(const struct rows *r, int status, int message)
{
	const char *text = rows_is_null(r, message) ? NULL : rows_text(r, message);

	return (struct failure_mark){.status = test_status_parse(rows_text(r, status)),
	    .key = failure_text_key(text),
	    .text = failure_text_hash(text)};
}

static void add_cell(struct attribution_case *c, const struct rows *r)
{
	if ((c->n & (c->n - 1)) == 0)
		c->cells = xrealloc(c->cells, (c->n ? 2 * c->n : 1) * sizeof(*c->cells));
	c->cells[c->n++] = (struct red_cell){
	    .test_id = rows_int(r, 0),
	    .job_id = rows_int(r, 3),
	    .suite = rows_dup(r, 4),
	    .test = rows_dup(r, 5),
	    .facts = {.mark = attribution_mark(r, 1, 2), .is_push = c->is_push, .n_in_row = 1},
	    .was = attribution_parse(rows_text(r, 6)),
	    .was_reason = rows_dup(r, 7),
	    .was_job = rows_int(r, 8),
	    .was_url = rows_dup(r, 9),
	    .was_needs = (unsigned)rows_int(r, 10),
	};
}

bool attribution_case_read(struct attribution_case *c)
{
	struct rows *r;

	if (!read_change(c))
		return false;
	r = db_rows(c->d,
	    "SELECT v.test_id, v.status, v.message, v.job_id, t.suite, t.name, v.attribution,"
	    " v.reason, v.evidence_job, v.evidence_url, v.needs FROM verdict v JOIN test t"
	    " ON t.id = v.test_id WHERE v.change_id = ?1 AND v.accelerator = ?2"
	    " AND v.attribution IS NOT NULL ORDER BY v.test_id",
	    V_INT(c->change_id), V_TEXT(c->accelerator));
	while (rows_next(r))
		if (attribution_applies(test_status_parse(rows_text(r, 1))))
			add_cell(c, r);
	return c->n > 0;
}

void attribution_case_release(struct attribution_case *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->cells[i].suite);
		free(c->cells[i].test);
		free(c->cells[i].base);
		free(c->cells[i].similar);
		free(c->cells[i].ways);
		free(c->cells[i].was_reason);
		free(c->cells[i].was_url);
		free(c->cells[i].known_url);
	}
	free(c->cells);
	free(c->head_sha);
	free(c->ref);
	free(c->merge_base_sha);
	free(c->author);
}

struct attribution_result attribution_judge(
    const struct attribution_case *c, const struct red_cell *cell)
{
	struct attribution_facts f = cell->facts;

	f.base = cell->base;
	f.similar = cell->similar;
	return attribute(&f, c->distance);
}

bool attribution_is_doubtful(const struct attribution_case *c, const struct red_cell *cell)
{
	struct attribution_facts f = cell->facts;

	f.base = cell->base;
	return attribution_is_base_alone(&f, c->distance);
}

static int by_test(const void *id, const void *cell)
{
	int64_t a = *(const int64_t *)id, b = ((const struct red_cell *)cell)->test_id;

	return (a > b) - (a < b);
}

struct red_cell *attribution_cell(const struct attribution_case *c, int64_t test_id)
{
	return bsearch(&test_id, c->cells, c->n, sizeof(*c->cells), by_test);
}

/* ---- how the base did ---- */

struct tested {
	int64_t change_id;
	int distance;
	char sha[41];
};
struct tested_list {
	struct tested at[OLDER_MAX + NEWER_MAX];
	size_t n;
};

/* `r`: position, SHA, change. */
static void take_tested(struct tested_list *l, struct rows *r, int64_t base_position)
{
	while (rows_next(r)) {
		struct tested *t = &l->at[l->n++];

		t->change_id = rows_int(r, 2);
		t->distance = (int)(base_position - rows_int(r, 0));
		snprintf(t->sha, sizeof(t->sha), "%s", rows_text(r, 1));
	}
}

#define TESTED                                                                                     \
	"SELECT b.position, b.sha, x.id FROM branch_commit b CROSS JOIN change x"                  \
	" ON x.repository_key = b.repository_key AND x.head_sha = b.sha AND x.kind = 'push'"       \
	" WHERE b.repository_key = ?1 AND b.ref = ?2 AND b.position > ?3 AND b.position <= ?4"     \
	" AND EXISTS (SELECT 1 FROM verdict v WHERE v.change_id = x.id AND v.accelerator = ?5)"

/* A push has no newer ones: they hold what it brought. */
static void list_newer(
    const struct attribution_case *c, int64_t base_position, struct tested_list *l)
{
	int limit = c->n > FEW_CELLS ? NEWER_FOR_MANY : NEWER_MAX;

	if (c->is_push)
		return;
	take_tested(l,
	    db_rows(c->d, TESTED " ORDER BY b.position LIMIT ?6", V_TEXT(c->key.text),
		V_TEXT(c->ref), V_INT(base_position), V_INT(base_position + c->distance),
		V_TEXT(c->accelerator), V_INT(limit)),
	    base_position);
	for (size_t i = 0; i < l->n / 2; i++) {
		struct tested t = l->at[i];

		l->at[i] = l->at[l->n - 1 - i];
		l->at[l->n - 1 - i] = t;
	}
}

static void list_older(
    const struct attribution_case *c, int64_t base_position, struct tested_list *l)
{
	int limit = c->n > FEW_CELLS ? OLDER_FOR_MANY : OLDER_MAX;

	take_tested(l,
	    db_rows(c->d, TESTED " ORDER BY b.position DESC LIMIT ?6", V_TEXT(c->key.text),
		V_TEXT(c->ref), V_INT(base_position - c->distance - 1), V_INT(base_position),
		V_TEXT(c->accelerator), V_INT(limit)),
	    base_position);
}

/* A merge base of which no push is on record, but that was tested as one. */
static void list_merge_base(const struct attribution_case *c, struct tested_list *l)
{
	struct rows *r = db_rows(c->d,
	    "SELECT 0, head_sha, id FROM change WHERE repository_key = ?1 AND head_sha = ?2"
	    " AND kind = 'push'",
	    V_TEXT(c->key.text), V_TEXT(c->merge_base_sha));

	take_tested(l, r, 0);
}

static void add_run(struct red_cell *cell, const struct tested *t, const struct rows *r, size_t max)
{
	enum test_status status = test_status_parse(rows_text(r, 1));
	struct base_run *run;

	if (!cell || cell->facts.n_base == max ||
	    (status != TEST_PASS && !test_status_is_red(status)))
		return;
	if (!cell->base)
		cell->base = xcalloc(max, sizeof(*cell->base));
	run = &cell->base[cell->facts.n_base++];
	run->is_green = status == TEST_PASS;
	if (!run->is_green)
		run->mark = attribution_mark(r, 1, 2);
	run->distance = t->distance;
	run->job = rows_int(r, 3);
	memcpy(run->sha, t->sha, sizeof(run->sha));
}

static void read_runs(struct attribution_case *c, const struct tested *t, size_t max)
{
	struct rows *r;

	if (c->n > FEW_CELLS) {
		r = db_rows(c->d,
		    "SELECT test_id, status, message, job_id FROM verdict WHERE change_id = ?1"
		    " AND accelerator = ?2",
		    V_INT(t->change_id), V_TEXT(c->accelerator));
		while (rows_next(r))
			add_run(attribution_cell(c, rows_int(r, 0)), t, r, max);
		return;
	}
	for (size_t i = 0; i < c->n; i++) {
		r = db_rows(c->d,
		    "SELECT test_id, status, message, job_id FROM verdict WHERE change_id = ?1"
		    " AND accelerator = ?2 AND test_id = ?3",
		    V_INT(t->change_id), V_TEXT(c->accelerator), V_INT(c->cells[i].test_id));
		if (rows_next(r))
			add_run(&c->cells[i], t, r, max);
		rows_end(r);
	}
}

void facts_of_base(struct attribution_case *c)
{
	struct tested_list l = {.n = 0};
	const char *sha = c->is_push ? c->head_sha : c->merge_base_sha;
	int64_t position = sha ? branch_position(c->d, c->key.text, c->ref, sha) : -1;
	/* Its head as its merge base: it has landed as it is, and what is red there is its own. */
	bool is_known = c->merge_base_sha && strcmp(c->merge_base_sha, c->head_sha) != 0;

	if (c->is_push)
		is_known = position >= 0 &&
			   db_has(c->d,
			       "SELECT 1 FROM branch_commit WHERE repository_key = ?1 AND ref = ?2"
			       " AND position = ?3",
			       V_TEXT(c->key.text), V_TEXT(c->ref), V_INT(--position));
	for (size_t i = 0; i < c->n; i++)
		c->cells[i].facts.is_base_known = is_known;
	if (!is_known)
		return;
	if (position >= 0) {
		list_newer(c, position, &l);
		list_older(c, position, &l);
	} else {
		list_merge_base(c, &l);
	}
	for (size_t i = 0; i < l.n; i++)
		read_runs(c, &l.at[i], l.n);
}

/* ---- other attempts on this commit ---- */

/* The same job, not one of that name elsewhere: another machine may well differ for a reason. */
struct attempt {
	int64_t id;
	char *runner, *workflow, *name;
};

static bool is_of_job(struct db *d, const struct attempt *a, int64_t job_id)
{
	return db_has(d,
	    "SELECT 1 FROM job WHERE id = ?1 AND workflow = ?2 AND name = ?3 AND runner = ?4",
	    V_INT(job_id), V_TEXT(a->workflow), V_TEXT(a->name), V_TEXT(a->runner));
}

enum seen { SEEN_NOTHING, SEEN_PASS, SEEN_RED };

/* Whether each job in which the cell is red has passed it by now. */
static bool has_passed(struct db *d, const struct attempt *a, struct red_cell *cell)
{
	size_t n = 0;

	if (!cell->facts.has_other_failure && !cell->n_ways)
		return is_of_job(d, a, cell->job_id);
	for (size_t i = 0; i < cell->n_ways; i++) {
		struct red_way *way = &cell->ways[i];

		way->has_passed |= is_of_job(d, a, way->job_id);
		n += way->has_passed;
	}
	return cell->n_ways && n == cell->n_ways;
}

static void note_attempt(struct attribution_case *c, const struct attempt *a, const uint8_t *seen)
{
	for (size_t i = 0; i < c->n; i++)
		if (seen[i] == SEEN_PASS && !c->cells[i].facts.passed_here_job &&
		    has_passed(c->d, a, &c->cells[i]))
			c->cells[i].facts.passed_here_job = a->id;
}

static void read_attempt(struct attribution_case *c, const struct attempt *a)
{
	uint8_t *seen = xcalloc(c->n, 1);
	/* its tests, and, where it has none, the cell of its own name */
	struct rows *r = db_rows(c->d,
	    "SELECT test_id, status FROM result WHERE job_id = ?1 UNION ALL"
	    " SELECT t.id, CASE j.conclusion WHEN 'success' THEN 'PASS' ELSE 'MISS' END FROM job j"
	    " JOIN test t ON t.suite = j.workflow AND t.name = j.name AND t.dtype = ''"
	    " WHERE j.id = ?1 AND j.n_tests = 0",
	    V_INT(a->id));

	while (rows_next(r)) {
		struct red_cell *cell = attribution_cell(c, rows_int(r, 0));
		enum test_status s = test_status_parse(rows_text(r, 1));

		if (cell && test_status_is_red(s))
			seen[cell - c->cells] = SEEN_RED;
		else if (cell && s == TEST_PASS && !seen[cell - c->cells])
			seen[cell - c->cells] = SEEN_PASS;
	}
	note_attempt(c, a, seen);
	free(seen);
}

void facts_of_attempts(struct attribution_case *c)
{
	struct attempt list[ATTEMPTS_MAX];
	size_t n = 0;
	struct rows *r = db_rows(c->d,
	    "SELECT id, runner, workflow, name FROM job WHERE change_id = ?1 AND accelerator = ?2"
	    " AND is_current = 0 AND status = 'completed' AND digest IS NOT NULL"
	    " AND completed_ms >= ?3 AND NOT EXISTS (SELECT 1 FROM dispatch e"
	    /* with another base branch it was another test */
	    "  WHERE e.change_id = ?1 AND e.accelerator = ?2 AND e.original_action = 'edited'"
	    "  AND e.created_ms >= job.completed_ms) ORDER BY id DESC LIMIT ?4",
	    V_INT(c->change_id), V_TEXT(c->accelerator), V_INT(c->now_ms - c->window_ms),
	    V_INT(ATTEMPTS_MAX));

	while (rows_next(r))
		list[n++] = (struct attempt){
		    rows_int(r, 0), rows_dup(r, 1), rows_dup(r, 2), rows_dup(r, 3)};
	for (size_t i = 0; i < n; i++) {
		read_attempt(c, &list[i]);
		free(list[i].runner);
		free(list[i].workflow);
		free(list[i].name);
	}
}
