#include "store/experiment_use.h"

#include "base/alloc.h"
#include "store/db.h"
#include "store/experiments.h"

enum { ACCELERATORS_MAX = 500 };

#define N_IN(state_)                                                                               \
	"(SELECT COUNT(*) FROM experiment e WHERE e.accelerator = a.name AND "                     \
	"e." EXPERIMENT_IS_OPEN " AND e.state = '" state_ "')"

static int use_run(struct store_query *query, struct db *d)
{
	struct list_experiment_use *q = CONTAINER_OF(query, struct list_experiment_use, q);
	struct rows *r = db_rows(d,
	    "SELECT a.name, " N_IN("planned") ", " N_IN(
		"started") " FROM accelerator a WHERE EXISTS (SELECT 1 FROM runner r"
			   " WHERE r.accelerator = a.name AND " RUNNER_TAKES_EXPERIMENTS ")"
			   " OR EXISTS (SELECT 1 FROM experiment e WHERE e.accelerator = a.name"
			   "  AND e." EXPERIMENT_IS_OPEN ") ORDER BY a.name LIMIT ?1",
	    V_INT(ACCELERATORS_MAX));

	while (rows_next(r)) {
		if ((q->n & (q->n - 1)) == 0)
			q->list = xrealloc(q->list, (q->n ? 2 * q->n : 1) * sizeof(*q->list));
		q->list[q->n++] = (struct experiment_use){.name = rows_dup(r, 0),
		    .n_planned = rows_int(r, 1),
		    .n_started = rows_int(r, 2)};
	}
	for (size_t i = 0; i < q->n; i++)
		experiments_budget(
		    d, q->list[i].name, q->now_ms, &q->list[i].spent_ms, &q->list[i].allowed_ms);
	if (db_status(d))
		list_experiment_use_release(q);
	return 0;
}

int store_list_experiment_use(struct store *s, struct list_experiment_use *q)
{
	q->list = NULL;
	q->n = 0;
	q->q.run = use_run;
	return store_query(s, &q->q);
}

void list_experiment_use_release(struct list_experiment_use *q)
{
	for (size_t i = 0; i < q->n; i++)
		free(q->list[i].name);
	FREE_AND_NULL(q->list);
	q->n = 0;
}
