#include "store/view_verdicts.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "store/experiment_rows.h"
#include "store/plan_apply.h"

#define VERDICT_COLUMNS                                                                            \
	"v.accelerator, t.suite, t.name, v.status, v.attribution, v.message, v.job_id, v.is_late," \
	" t.dtype, v.reason, v.evidence_job, v.evidence_url, v.file, v.line"
/* Of a red cell. */
#define IS_RERUNNING                                                                               \
	"EXISTS (SELECT 1 FROM experiment e JOIN experiment_test x ON x.experiment_id = e.id"      \
	" WHERE e.change_id = v.change_id AND e.accelerator = v.accelerator"                       \
	" AND x.test_id = v.test_id AND e.cause = 'auto' AND e.state IN ('planned', 'started'))"

static void add_verdicts(struct change_view *v, struct rows *r)
{
	while (rows_next(r)) {
		struct accelerator_view *a = change_view_accelerator(v, rows_text(r, 0));

		if (!a)
			continue;
		if ((v->n_verdicts & (v->n_verdicts - 1)) == 0)
			v->verdicts = xrealloc(v->verdicts,
			    (v->n_verdicts ? 2 * v->n_verdicts : 1) * sizeof(*v->verdicts));
		v->verdicts[v->n_verdicts++] = (struct verdict_view){
		    .accelerator = (size_t)(a - v->accelerators),
		    .suite = rows_dup(r, 1),
		    .test = rows_dup(r, 2),
		    .status = test_status_parse(rows_text(r, 3)),
		    .attribution = attribution_parse(rows_is_null(r, 4) ? NULL : rows_text(r, 4)),
		    .message = rows_dup(r, 5),
		    .job = rows_int(r, 6),
		    .is_late = rows_int(r, 7),
		    .dtype = *rows_text(r, 8) ? rows_dup(r, 8) : NULL,
		    .reason = rows_dup(r, 9),
		    .evidence_job = rows_int(r, 10),
		    .evidence_url = rows_dup(r, 11),
		    .file = rows_dup(r, 12),
		    .line = rows_int(r, 13),
		    .rerun = rows_int(r, 14) ? RERUN_PENDING : RERUN_NONE,
		};
	}
}

static int by_test(const void *x, const void *y)
{
	const struct verdict_view *a = x, *b = y;
	int order = strcmp(a->suite, b->suite);

	if (!order)
		order = strcmp(a->test, b->test);
	if (!order)
		order = strcmp(a->dtype ? a->dtype : "", b->dtype ? b->dtype : "");
	if (!order)
		order = (a->accelerator > b->accelerator) - (a->accelerator < b->accelerator);
	return order;
}

/* ---- why a rerun that would help brought nothing ---- */

/* The cells of one runner that are not decided, each with its newest experiment on a side that would help.
 * ?6: the merge base; the tests of other changes' experiments there are not run again. */
#define UNSETTLED                                                                                  \
	"WITH c AS (SELECT v.test_id, t.suite, t.name, t.dtype, v.needs, (SELECT e.id"             \
	"  FROM experiment e JOIN experiment_test x ON x.experiment_id = e.id"                     \
	"  AND x.test_id = v.test_id WHERE e.change_id = v.change_id"                              \
	"  AND e.accelerator = v.accelerator AND e.runner = ?4 AND e.cause = 'auto'"               \
	"  AND v.needs & CASE e.side WHEN 'head' THEN 1 ELSE 2 END"                                \
	"  ORDER BY e.id DESC LIMIT 1) AS newest" UNDECIDED ")"                                    \
	" SELECT c.suite, c.name, c.dtype, e.state, e.started_ms IS NOT NULL,   "                  \
	" (SELECT MIN(j.id) FROM job j WHERE j.change_id = e.run_change_id),"                      \
	" EXISTS (SELECT 1 FROM verdict f WHERE f.change_id = e.run_change_id"                     \
	"  AND f.accelerator = ?2 AND f.test_id = c.test_id AND f.status IN ('PASS', 'FAIL', "     \
	"'ERROR', 'DONE')),"                                                                       \
	" c.needs & 1 OR (?6 IS NOT NULL AND NOT EXISTS (SELECT 1 FROM experiment o"               \
	"  JOIN experiment_test x ON x.experiment_id = o.id AND x.test_id = c.test_id"             \
	"  WHERE o.accelerator = ?2 AND o.sha = ?6 AND o.side = 'base'"                            \
	"  AND o.state IN ('planned', 'started', 'done')))"                                        \
	" FROM c LEFT JOIN experiment e ON e.id = c.newest"

static struct verdict_view *find_verdict(
    struct change_view *v, size_t accelerator, const struct rows *r)
{
	struct verdict_view key = {.accelerator = accelerator,
	    .suite = (char *)rows_text(r, 0),
	    .test = (char *)rows_text(r, 1),
	    .dtype = (char *)rows_text(r, 2)};

	return bsearch(&key, v->verdicts, v->n_verdicts, sizeof(key), by_test);
}

/* A row of UNSETTLED, where nothing of that runner is open any more. */
static enum rerun_state what_came_of_it(const struct rows *r, bool is_called_off)
{
	const char *state = rows_text(r, 3);
	bool has_begun = rows_int(r, 4), has_result = rows_int(r, 6), could_run = rows_int(r, 7);

	if (strcmp(state, "expired") == 0)
		return has_begun ? RERUN_NO_ANSWER : RERUN_NO_ROOM;
	if (strcmp(state, "void") == 0)
		return RERUN_VOID;
	if (strcmp(state, "done") == 0 && !has_result)
		return RERUN_NO_RESULT;
	if (is_called_off)
		return RERUN_CALLED_OFF;
	return could_run ? RERUN_OVER_LIMIT : RERUN_NONE;
}

static void read_reruns_of(
    struct db *d, struct change_view *v, size_t accelerator, const struct rerunner *u)
{
	const char *name = v->accelerators[accelerator].name;
	bool is_called_off = db_has(d,
	    "SELECT 1 FROM experiment WHERE change_id = ?1 AND accelerator = ?2 AND runner = ?3"
	    " AND dispatch_id = ?4 AND cause = 'auto' AND state = 'cancelled'"
	    " AND reason LIKE '" CALLED_OFF_BY "%' LIMIT 1",
	    V_INT(v->change_id), V_TEXT(name), V_TEXT(u->runner), V_TEXT(u->dispatch_id));
	struct rows *r =
	    db_rows(d, UNSETTLED, V_INT(v->change_id), V_TEXT(name), V_TEXT(u->dispatch_id),
		V_TEXT(u->runner), V_INT(u->is_by_test), V_TEXT(u->sha[EXPERIMENT_BASE]));

	while (rows_next(r)) {
		struct verdict_view *w = find_verdict(v, accelerator, r);

		if (!w || w->rerun == RERUN_PENDING)
			continue;
		w->rerun = what_came_of_it(r, is_called_off);
		w->rerun_job =
		    w->rerun == RERUN_VOID || w->rerun == RERUN_NO_RESULT ? rows_int(r, 5) : 0;
	}
}

/* As long as an experiment of a runner is open, another round may follow, so nothing is said of its other cells. */
static void read_reruns(struct db *d, struct change_view *v, size_t accelerator)
{
	const char *name = v->accelerators[accelerator].name;
	struct rerunner *list;
	size_t n;

	if (!db_has(d,
		"SELECT 1 FROM verdict WHERE change_id = ?1 AND accelerator = ?2"
		" AND attribution IS NOT NULL AND needs <> 0 LIMIT 1",
		V_INT(v->change_id), V_TEXT(name)))
		return;
	list = rerunners_of(d, v->change_id, name, &n);
	for (size_t i = 0; i < n; i++)
		if (list[i].has_ended &&
		    !db_has(d,
			"SELECT 1 FROM experiment WHERE change_id = ?1 AND accelerator = ?2"
			" AND runner = ?3 AND cause = 'auto' AND " EXPERIMENT_IS_OPEN " LIMIT 1",
			V_INT(v->change_id), V_TEXT(name), V_TEXT(list[i].runner)))
			read_reruns_of(d, v, accelerator, &list[i]);
	rerunners_release(list, n);
}

/* ---- all of them ---- */

/* So that a cut view knows who passed, although it has not read what. */
static void count_verdicts(struct db *d, struct change_view *v)
{
	struct rows *r = db_rows(d,
	    "SELECT accelerator, status, COUNT(*) FROM verdict WHERE change_id = ?1"
	    " AND job_id IS NOT NULL GROUP BY accelerator, status",
	    V_INT(v->change_id));

	while (rows_next(r)) {
		struct accelerator_view *a = change_view_accelerator(v, rows_text(r, 0));
		enum test_status s = test_status_parse(rows_text(r, 1));

		if (a && s < N_TEST_STATUSES)
			a->n_verdicts[s] = (size_t)rows_int(r, 2);
	}
	v->n_tests_total = db_int(d, 0,
	    "SELECT COUNT(DISTINCT test_id) FROM verdict WHERE change_id = ?1"
	    " AND job_id IS NOT NULL",
	    V_INT(v->change_id));
}

void view_read_verdicts(struct db *d, struct change_view *v, size_t max)
{
	int64_t limit = max ? (int64_t)max : INT64_MAX;

	v->n_verdicts_total =
	    db_int(d, 0, "SELECT COUNT(*) FROM verdict WHERE change_id = ?1", V_INT(v->change_id));
	add_verdicts(v, db_rows(d,
			    "SELECT " VERDICT_COLUMNS ", " IS_RERUNNING
			    " FROM verdict v JOIN test t ON t.id = v.test_id"
			    " WHERE v.change_id = ?1 AND v.attribution IS NOT NULL LIMIT ?2",
			    V_INT(v->change_id), V_INT(limit)));
	add_verdicts(
	    v, db_rows(d,
		   "SELECT " VERDICT_COLUMNS ", 0 FROM verdict v JOIN test t ON t.id = v.test_id"
		   " WHERE v.change_id = ?1 AND v.attribution IS NULL LIMIT ?2",
		   V_INT(v->change_id), V_INT(limit - (int64_t)v->n_verdicts)));
	v->is_cut = (int64_t)v->n_verdicts < v->n_verdicts_total;
	if (v->is_cut)
		count_verdicts(d, v);
	if (v->n_verdicts)
		qsort(v->verdicts, v->n_verdicts, sizeof(*v->verdicts), by_test);
	for (size_t i = 0; i < v->n_accelerators; i++)
		read_reruns(d, v, i);
}
