#include "base/alloc.h"
#include "store/accelerator_page.h"
#include "store/key.h"
#include "store/page_jobs.h"

/* `id > 0` is what the index wants to hear (schema_tables.c). */
#define COLUMNS                                                                                    \
	"SELECT j.id, j.workflow, j.name, j.status, j.conclusion, j.verdict, c.head_sha, c.kind,"  \
	" COALESCE(x.number, 0), j.started_ms, j.completed_ms, j.started_ms -"                     \
	" CASE x.kind WHEN 'pull' THEN x.created_ms ELSE x.sent_ms END, j.is_late,"                \
	" j.n_tests_fail, j.n_tests_error, j.n_tests_miss, j.n_tests_pass, j.n_tests_done,"        \
	" j.n_tests_skip FROM job j JOIN change c ON c.id = j.change_id"                           \
	" LEFT JOIN dispatch x ON x.id = j.dispatch_id AND x.accelerator = j.accelerator"          \
	" AND x.runner = j.runner WHERE j.accelerator = ?1 AND j.id > 0 AND j.id < ?2"             \
	" AND c.kind <> 'experiment'"                                                              \
	" ORDER BY j.id DESC LIMIT ?3"

static struct page_job job_of(const struct rows *r)
{
	struct page_job j = {
	    .id = rows_int(r, 0),
	    .workflow = rows_dup(r, 1),
	    .name = rows_dup(r, 2),
	    .status = rows_dup(r, 3),
	    .conclusion = rows_dup(r, 4),
	    .verdict = rows_dup(r, 5),
	    .head_sha = commit_dup(r, 6),
	    .kind = change_kind_parse(rows_text(r, 7)),
	    .number = rows_int(r, 8),
	    .started_ms = rows_int(r, 9),
	    .completed_ms = rows_int(r, 10),
	    .queued_ms = rows_is_null(r, 11) ? -1 : rows_int(r, 11),
	    .is_late = rows_int(r, 12),
	    .has_counts = !rows_is_null(r, 13),
	};

	if (j.queued_ms < 0) /* the clock was put back, or it was before its dispatch */
		j.queued_ms = -1;
	j.by_status[TEST_FAIL] = rows_int(r, 13);
	j.by_status[TEST_ERROR] = rows_int(r, 14);
	j.by_status[TEST_MISS] = rows_int(r, 15);
	j.by_status[TEST_PASS] = rows_int(r, 16);
	j.by_status[TEST_DONE] = rows_int(r, 17);
	j.by_status[TEST_SKIP] = rows_int(r, 18);
	return j;
}

void page_jobs_read(
    struct db *d, const char *accelerator, int64_t before_id, int limit, struct page_jobs *ret)
{
	struct rows *r = db_rows(d, COLUMNS, V_TEXT(accelerator),
	    V_INT(before_id ? before_id : INT64_MAX), V_INT(limit + 1));

	*ret = (struct page_jobs){.at = xcalloc((size_t)limit, sizeof(*ret->at))};
	while (rows_next(r)) {
		if (ret->n == (size_t)limit) {
			ret->has_more = true;
			break;
		}
		ret->at[ret->n++] = job_of(r);
	}
	rows_end(r);
}

void page_jobs_release(struct page_jobs *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->at[i].workflow);
		free(l->at[i].name);
		free(l->at[i].status);
		free(l->at[i].conclusion);
		free(l->at[i].verdict);
		free(l->at[i].head_sha);
	}
	FREE_AND_NULL(l->at);
	l->n = 0;
}

static int list_run(struct store_query *sq, struct db *d)
{
	struct list_accelerator_jobs *q = CONTAINER_OF(sq, struct list_accelerator_jobs, q);

	page_jobs_read(d, q->accelerator, q->before_id, q->limit, &q->jobs);
	if (db_status(d))
		page_jobs_release(&q->jobs);
	return 0;
}

int store_list_accelerator_jobs(struct store *s, struct list_accelerator_jobs *q)
{
	q->jobs = (struct page_jobs){.n = 0};
	q->q.run = list_run;
	return store_query(s, &q->q);
}
