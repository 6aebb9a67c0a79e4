/* Why a rerun that would help to decide a red cell brought nothing. */
#include "db/record_rows.h"
#include "experiments/experiment_rows.h"
#include "views/change.h"

/* The cells of one runner that are not decided (c), each with its newest experiment (e) on a side that would help. ?6: the
 * merge base. If another change's run of it has just ended, Outpost attributes this change again in a moment. */
#define UNSETTLED                                                                                                      \
	"WITH c AS (SELECT v.test_id, t.suite, t.name, t.dtype, v.needs, (SELECT e.id"                                 \
	"  FROM experiment e JOIN experiment_test x ON x.experiment_id = e.id"                                         \
	"  AND x.test_id = v.test_id WHERE e.change_id = v.change_id"                                                  \
	"  AND e.accelerator = v.accelerator AND e.runner = ?4 AND e.cause = 'auto'"                                   \
	"  AND (v.needs & CASE e.side WHEN 'head' THEN 1 ELSE 2 END) <> 0"                                             \
	"  ORDER BY e.id DESC LIMIT 1) AS newest" UNDECIDED ") "
#define RERUN_ENDED_RECORD(F, S)                                                                                       \
	F(S, TEXT, suite, NULL, "c.suite", "")                                                                         \
	F(S, TEXT, test, NULL, "c.name", "")                                                                           \
	F(S, TEXT, dtype, NULL, "NULLIF(c.dtype, '')", "")                                                             \
	F(S, TEXT, state, NULL, "COALESCE(e.state, '')", "")                                                           \
	F(S, BOOL, has_begun, NULL, "e.started_ms IS NOT NULL", "")                                                    \
	F(S, INT, job, NULL, "(SELECT MIN(j.id) FROM job j WHERE j.change_id = e.run_change_id)", "")                  \
	F(S, BOOL, has_result, NULL,                                                                                   \
	    "EXISTS (SELECT 1 FROM cell f WHERE f.change_id = e.run_change_id"                                         \
	    " AND f.accelerator = ?2 AND f.test_id = c.test_id"                                                        \
	    " AND f.status IN ('PASS', 'FAIL', 'ERROR', 'DONE'))",                                                     \
	    "")                                                                                                        \
	F(S, BOOL, could_run, NULL,                                                                                    \
	    "(c.needs & 1) <> 0 OR (?6 IS NOT NULL AND NOT EXISTS (SELECT 1 FROM experiment o"                         \
	    " JOIN experiment_test x ON x.experiment_id = o.id AND x.test_id = c.test_id"                              \
	    " WHERE o.accelerator = ?2 AND o.sha = ?6 AND o.side = 'base' AND o.state = 'done'"                        \
	    " AND o.change_id <> ?1))",                                                                                \
	    "")
RECORD_LOCAL(rerun_ended, RERUN_ENDED_RECORD)

/* Of a runner without an open experiment. */
static enum rerun_state rerun_state_of(const struct rerun_ended *e, bool is_cancelled)
{
	if (strcmp(e->state, "expired") == 0)
		return e->has_begun ? RERUN_NO_ANSWER : RERUN_NO_ROOM;
	if (strcmp(e->state, "void") == 0)
		return RERUN_VOID;
	if (strcmp(e->state, "done") == 0 && !e->has_result)
		return RERUN_NO_RESULT;
	if (is_cancelled)
		return RERUN_CALLED_OFF;
	return e->could_run ? RERUN_OVER_LIMIT : RERUN_NONE;
}

static void read_reruns_of(const struct view *d, struct change_view *v, size_t accelerator, const struct rerunner *u)
{
	const char *name = v->accelerators[accelerator].name;
	bool is_cancelled = db_has(d,
	    "SELECT 1 FROM experiment WHERE change_id = ?1 AND accelerator = ?2 AND runner = ?3"
	    " AND dispatch_id = ?4 AND cause = 'auto' AND cancelled_by IS NOT NULL LIMIT 1",
	    V_INT(v->change_id), V_TEXT(name), V_TEXT(u->runner), V_TEXT(u->dispatch_id));
	struct rows *r =
	    db_rows(d, UNSETTLED RECORD_QUERY(RERUN_ENDED_RECORD, "FROM c LEFT JOIN experiment e ON e.id = c.newest"),
		V_INT(v->change_id), V_TEXT(name), V_TEXT(u->dispatch_id), V_TEXT(u->runner), V_INT(u->is_by_test),
		V_TEXT(u->sha[EXPERIMENT_BASE]));

	while (rows_next(r)) {
		struct rerun_ended e;

		record_read(r, &rerun_ended_record, &e);
		struct verdict_view *w = bsearch(
		    &(struct verdict_view){
			.accelerator = accelerator, .suite = e.suite, .test = e.test, .dtype = e.dtype},
		    v->verdicts, v->n_verdicts, sizeof(*w), verdict_view_compare);
		if (w && w->rerun != RERUN_PENDING && w->rerun != RERUN_LATER) {
			w->rerun = rerun_state_of(&e, is_cancelled);
			w->rerun_job = w->rerun == RERUN_VOID || w->rerun == RERUN_NO_RESULT ? e.job : 0;
		}
		record_release(&rerun_ended_record, &e);
	}
}

/* As long as an experiment of a runner is open, another round may follow, so its other cells get no note. One that waits
 * for a good machine is no such round: other tests do not wait for it. */
static void read_reruns_on(const struct view *d, struct change_view *v, size_t accelerator)
{
	const char *name = v->accelerators[accelerator].name;
	size_t n;

	if (!db_has(d,
		"SELECT 1 FROM verdict WHERE change_id = ?1 AND accelerator = ?2"
		" AND attribution IS NOT NULL AND needs <> 0 LIMIT 1",
		V_INT(v->change_id), V_TEXT(name)))
		return;
	struct rerunner *list = rerunners_of(d, v->change_id, name, &n);
	for (size_t i = 0; i < n; i++)
		if (list[i].has_ended && !db_has(d,
					     "SELECT 1 FROM experiment e WHERE change_id = ?1 AND accelerator = ?2"
					     " AND runner = ?3 AND cause = 'auto' AND " EXPERIMENT_IS_OPEN
					     " AND NOT " WAITS_FOR_GOOD_MACHINE " LIMIT 1",
					     V_INT(v->change_id), V_TEXT(name), V_TEXT(list[i].runner)))
			read_reruns_of(d, v, accelerator, &list[i]);
	rerunners_release(list, n);
}

void change_reruns_read(const struct view *d, struct change_view *v)
{
	DB_PIPELINE (d)
		for (size_t i = 0; i < v->n_accelerators; i++)
			read_reruns_on(d, v, i);
}
