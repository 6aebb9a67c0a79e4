/* A cell shows one failure, and its test may have failed in several jobs, or more than once in one. To
 * excuse the cell by what excuses that one would hide the others, so all of them are looked at. */
#include "store/attribution_facts.h"

#include <string.h>

#include "base/alloc.h"
#include "model/failure_text.h"
#include "store/verdicts.h"

enum {
	WAYS_MAX = 64, /* of one cell; with more nothing excuses it */
	BASES_MAX = 4, /* runs of the branch that are read in full */
};

/* A test that gave no result is nobody's breakage. The job itself may be one (column 4), of which two
 * runners may each have one under the same name. */
#define THAT_COUNT                                                                                 \
	" j.change_id = ?1 AND j.accelerator = ?2 AND j.is_current = 1 AND j.status = 'completed'" \
	" AND j.digest IS NOT NULL"
#define FAILURES                                                                                   \
	"SELECT r.test_id, r.status, r.message, j.id, 0, NULL, 0 FROM job j CROSS JOIN result r"   \
	" ON r.job_id = j.id WHERE" THAT_COUNT                                                     \
	" AND j.n_red > 0 AND r.status IN ('FAIL', 'ERROR')"                                       \
	" UNION ALL SELECT t.id, j.verdict, j.message, j.id, 1, j.conclusion, j.n_tests"           \
	" FROM job j CROSS JOIN test t ON t.suite = j.workflow AND t.name = j.name AND t.dtype = " \
	"'' WHERE" THAT_COUNT " AND j.n_red = 0 AND j.verdict IN ('FAIL', 'ERROR')"

/* No more failures than red cells: each has its own. Tests without a result, which are cells of other
 * kinds as well, only make it look. */
static bool has_cell_with_more(const struct attribution_case *c)
{
	return db_has(c->d,
	    "SELECT 1 WHERE (SELECT COALESCE(SUM(CASE WHEN j.n_red > 0 THEN j.n_red ELSE 1 END), 0)"
	    " FROM job j WHERE" THAT_COUNT
	    "  AND (j.n_red > 0 OR j.verdict IN ('FAIL', 'ERROR', 'MISS')))"
	    " > (SELECT COUNT(*) FROM verdict v JOIN job j ON j.id = v.job_id"
	    "  WHERE v.change_id = ?1 AND v.accelerator = ?2 AND v.attribution IS NOT NULL"
	    "  AND v.status IN ('FAIL', 'ERROR') AND" THAT_COUNT ")",
	    V_INT(c->change_id), V_TEXT(c->accelerator));
}

static void add_way(struct red_cell *cell, const struct failure_mark *mark, int64_t job_id)
{
	if (!failure_marks_are_alike(mark, &cell->facts.mark))
		cell->facts.has_other_failure = true;
	for (size_t i = 0; i < cell->n_ways; i++)
		if (cell->ways[i].job_id == job_id &&
		    failure_marks_are_alike(&cell->ways[i].mark, mark))
			return;
	if (cell->n_ways == WAYS_MAX)
		return;
	if ((cell->n_ways & (cell->n_ways - 1)) == 0)
		cell->ways = xrealloc(
		    cell->ways, (cell->n_ways ? 2 * cell->n_ways : 1) * sizeof(*cell->ways));
	cell->ways[cell->n_ways++] = (struct red_way){.mark = *mark, .job_id = job_id};
}

static struct failure_mark read_mark(const struct rows *r)
{
	struct job_outcome o = {.conclusion = rows_is_null(r, 5) ? NULL : rows_text(r, 5),
	    .n_tests = rows_int(r, 6),
	    .message = rows_is_null(r, 2) ? NULL : rows_text(r, 2)};
	struct failure_mark mark = attribution_mark(r, 1, 2);
	char *text;

	if (rows_int(r, 4)) { /* as its cell says it */
		text = job_outcome_text(&o);
		mark.key = failure_text_key(text);
		mark.text = failure_text_hash(text);
		free(text);
	}
	return mark;
}

static void settle(struct red_cell *cell)
{
	cell->facts.has_several = cell->n_ways > 1;
	if (cell->n_ways == WAYS_MAX)
		cell->facts.has_other_failure = true;
	if (cell->n_ways > 1 && cell->n_ways < WAYS_MAX)
		return;
	FREE_AND_NULL(cell->ways);
	cell->n_ways = 0;
}

void facts_of_ways(struct attribution_case *c)
{
	struct rows *r;

	if (!has_cell_with_more(c))
		return;
	r = db_rows(c->d, FAILURES, V_INT(c->change_id), V_TEXT(c->accelerator));
	while (rows_next(r)) {
		struct red_cell *cell = attribution_cell(c, rows_int(r, 0));
		struct failure_mark mark;

		if (!cell)
			continue;
		mark = read_mark(r);
		add_way(cell, &mark, rows_int(r, 3));
	}
	for (size_t i = 0; i < c->n; i++)
		settle(&c->cells[i]);
}

/* ---- and on the base ---- */

/* Where one specific failure is all, the run's own cell tells. */
static bool is_looked_for(const struct red_cell *cell)
{
	return cell->n_ways && (cell->facts.has_other_failure || !cell->facts.mark.key);
}

/* The run that the cell is compared with; 0: none. */
static int64_t base_job(const struct red_cell *cell)
{
	for (size_t i = 0; i < cell->facts.n_base; i++)
		if (cell->base[i].distance >= 0)
			return cell->base[i].job;
	return 0;
}

static int64_t base_change(const struct attribution_case *c, const struct red_cell *cell)
{
	return db_int(c->d, 0, "SELECT change_id FROM job WHERE id = ?1", V_INT(base_job(cell)));
}

static bool is_same_job(struct db *d, int64_t a, int64_t b)
{
	return db_has(d,
	    "SELECT 1 FROM job a JOIN job b ON b.id = ?2 AND b.runner = a.runner"
	    " AND b.workflow = a.workflow AND b.name = a.name WHERE a.id = ?1",
	    V_INT(a), V_INT(b));
}

/* A message that would fit any failure is the same one at most in the same job, and no excuse beside
 * another failure. */
static void note_on_base(
    struct db *d, struct red_cell *cell, const struct failure_mark *mark, int64_t job_id)
{
	for (size_t i = 0; i < cell->n_ways; i++) {
		struct red_way *way = &cell->ways[i];

		if (!way->is_on_base && failure_marks_are_alike(&way->mark, mark))
			way->is_on_base = mark->key || (!cell->facts.has_other_failure &&
							   is_same_job(d, way->job_id, job_id));
	}
}

/* One pass over a run of the branch, for all the cells that are compared with it. */
static void read_base(struct attribution_case *c, int64_t change_id)
{
	struct rows *r = db_rows(c->d, FAILURES, V_INT(change_id), V_TEXT(c->accelerator));

	while (rows_next(r)) {
		struct red_cell *cell = attribution_cell(c, rows_int(r, 0));
		struct failure_mark mark;

		if (!cell || !is_looked_for(cell) || base_change(c, cell) != change_id)
			continue;
		mark = read_mark(r);
		note_on_base(c->d, cell, &mark, rows_int(r, 3));
	}
}

static bool are_all_on_base(const struct red_cell *cell)
{
	for (size_t i = 0; i < cell->n_ways; i++)
		if (!cell->ways[i].is_on_base)
			return false;
	return cell->n_ways > 0;
}

void facts_of_ways_on_base(struct attribution_case *c)
{
	int64_t seen[BASES_MAX];
	size_t n_seen = 0;

	for (size_t i = 0; i < c->n; i++) {
		struct red_cell *cell = &c->cells[i];
		int64_t change_id = is_looked_for(cell) ? base_change(c, cell) : 0;
		size_t k = 0;

		while (k < n_seen && seen[k] != change_id)
			k++;
		if (!change_id || (k == n_seen && k == BASES_MAX))
			continue;
		if (k == n_seen) {
			seen[n_seen++] = change_id;
			read_base(c, change_id);
		}
	}
	for (size_t i = 0; i < c->n; i++)
		c->cells[i].facts.are_all_on_base = are_all_on_base(&c->cells[i]);
}
