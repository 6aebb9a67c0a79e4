/* The experiments of a change: one walk over them, one over their tests. Both are cut at the newest,
 * because a member may ask for many runs by comment. */
#include "store/view_experiment.h"

#include <string.h>

#include "base/alloc.h"

enum { EXPERIMENTS_MAX = 500, RESULTS_MAX = 5000 }; /* of one change */

static void add_experiment(struct accelerator_view *a, const struct rows *r)
{
	struct experiment_view *e;

	a->experiments = xrealloc(a->experiments, (a->n_experiments + 1) * sizeof(*a->experiments));
	e = &a->experiments[a->n_experiments++];
	*e = (struct experiment_view){
	    .id = rows_int(r, 1),
	    .runner = rows_dup(r, 2),
	    .cause = rows_dup(r, 3),
	    .round = rows_int(r, 4),
	    .side = experiment_side_parse(rows_text(r, 5)),
	    .sha = rows_dup(r, 6),
	    .state = rows_dup(r, 7),
	    .reason = rows_dup(r, 8),
	    .created_ms = rows_int(r, 9),
	    .started_ms = rows_int(r, 10),
	    .ended_ms = rows_int(r, 11),
	    .job = rows_int(r, 12),
	    .n_tests = rows_int(r, 13),
	};
	e->is_pending = strcmp(e->state, "planned") == 0 || strcmp(e->state, "started") == 0;
}

static struct experiment_view *find(const struct change_view *v, int64_t id)
{
	for (size_t i = 0; i < v->n_accelerators; i++)
		for (size_t j = 0; j < v->accelerators[i].n_experiments; j++)
			if (v->accelerators[i].experiments[j].id == id)
				return &v->accelerators[i].experiments[j];
	return NULL;
}

static void add_result(struct experiment_view *e, const struct rows *r)
{
	if ((e->n_results & (e->n_results - 1)) == 0)
		e->results = xrealloc(
		    e->results, (e->n_results ? 2 * e->n_results : 1) * sizeof(*e->results));
	e->results[e->n_results++] = (struct experiment_result){
	    .suite = rows_dup(r, 1),
	    .test = rows_dup(r, 2),
	    .dtype = *rows_text(r, 3) ? rows_dup(r, 3) : NULL,
	    .status = rows_is_null(r, 4) ? N_TEST_STATUSES : test_status_parse(rows_text(r, 4)),
	    .job = rows_int(r, 5),
	};
}

void view_read_experiments(struct db *d, struct change_view *v)
{
	int64_t oldest = INT64_MAX;
	struct experiment_view *e = NULL;
	struct rows *r = db_rows(d,
	    "SELECT e.accelerator, e.id, e.runner, e.cause, e.round, e.side, e.sha, e.state,"
	    " e.reason, e.created_ms, e.started_ms, e.ended_ms,"
	    " (SELECT MIN(j.id) FROM job j WHERE j.change_id = e.run_change_id),"
	    " (SELECT COUNT(*) FROM experiment_test x WHERE x.experiment_id = e.id)"
	    " FROM experiment e WHERE e.change_id = ?1 ORDER BY e.id DESC LIMIT ?2",
	    V_INT(v->change_id), V_INT(EXPERIMENTS_MAX));

	while (rows_next(r)) {
		struct accelerator_view *a = change_view_accelerator(v, rows_text(r, 0));

		if (!a)
			continue;
		add_experiment(a, r);
		oldest = rows_int(r, 1);
	}
	if (oldest == INT64_MAX)
		return;
	r = db_rows(d,
	    "SELECT e.id, t.suite, t.name, t.dtype, c.status, c.job_id FROM experiment e"
	    " JOIN experiment_test x ON x.experiment_id = e.id JOIN test t ON t.id = x.test_id"
	    " LEFT JOIN verdict c ON c.change_id = e.run_change_id"
	    " AND c.accelerator = e.accelerator AND c.test_id = x.test_id"
	    " WHERE e.change_id = ?1 AND e.id >= ?2"
	    " ORDER BY e.id DESC, t.suite, t.name, t.dtype LIMIT ?3",
	    V_INT(v->change_id), V_INT(oldest), V_INT(RESULTS_MAX));
	while (rows_next(r)) {
		if (!e || e->id != rows_int(r, 0))
			e = find(v, rows_int(r, 0));
		if (e)
			add_result(e, r);
	}
}
