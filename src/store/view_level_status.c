/* Which repositories are at L3, and the numbers by which each is judged. */
#include "base/alloc.h"
#include "store/db.h"
#include "store/registry.h"
#include "store/run_jobs.h"

enum { REPOSITORIES_MAX = 2000 };

static int level_status_run(struct store_query *q, struct db *d)
{
	struct list_level_status *l = CONTAINER_OF(q, struct list_level_status, q);
	struct rows *r = db_rows(d,
	    "SELECT a.name, r.name, r.target FROM runner r JOIN accelerator a"
	    " ON a.name = r.accelerator WHERE a.is_gone = 0 AND r.is_gone = 0"
	    " AND r.kind = 'github' AND a.level = ?1 ORDER BY lower(r.target), a.name LIMIT ?2",
	    V_INT(LEVEL_3), V_INT(REPOSITORIES_MAX));

	while (rows_next(r)) {
		struct level_repository *one;

		l->list = xrealloc(l->list, (l->n + 1) * sizeof(*l->list));
		one = &l->list[l->n++];
		*one = (struct level_repository){
		    .accelerator = rows_dup(r, 0), .repository = rows_dup(r, 2)};
		level_read(d, rows_text(r, 0), rows_text(r, 1), l->now_ms, &one->numbers);
	}
	rows_end(r);
	if (db_status(d))
		list_level_status_release(l);
	return 0;
}

int store_list_level_status(struct store *s, struct list_level_status *q)
{
	q->list = NULL;
	q->n = 0;
	q->q.run = level_status_run;
	return store_query(s, &q->q);
}

void list_level_status_release(struct list_level_status *q)
{
	for (size_t i = 0; i < q->n; i++) {
		free(q->list[i].accelerator);
		free(q->list[i].repository);
	}
	FREE_AND_NULL(q->list);
	q->n = 0;
}
