#include "store/view_verdicts.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

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
		    .is_rerunning = rows_int(r, 14),
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
}
