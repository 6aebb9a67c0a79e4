/* The tested versions and systems of each accelerator, as the platforms page has them. */
#include "base/alloc.h"
#include "store/db.h"
#include "store/key.h"
#include "store/platform_tests.h"

enum { ROWS_MAX = 20000 };

static void read_standings(struct db *d, struct get_platform_tests *g)
{
	struct upstream_branch u = upstream_branch_read(d);

	g->standings = xcalloc(g->n_names + 1, sizeof(*g->standings));
	for (size_t i = 0; i < g->n_names; i++)
		standing_read(d, g->names[i], &u, g->now_ms, &g->standings[i]);
}

static int platform_tests_run(struct store_query *q, struct db *d)
{
	struct get_platform_tests *g = CONTAINER_OF(q, struct get_platform_tests, q);
	struct rows *r = db_rows(d,
	    "SELECT accelerator, torch, os, head_sha, extension_version, job_id, at_ms,"
	    " red_since_ms, n_passed, n_failed, n_missing FROM platform_test"
	    " WHERE ?1 IS NULL OR accelerator = ?1 ORDER BY accelerator, at_ms DESC, torch, os"
	    " LIMIT ?2",
	    V_TEXT(g->only), V_INT(ROWS_MAX));

	while (rows_next(r)) {
		if ((g->n & (g->n - 1)) == 0)
			g->list = xrealloc(g->list, (g->n ? 2 * g->n : 1) * sizeof(*g->list));
		g->list[g->n++] = (struct platform_test){
		    .accelerator = rows_dup(r, 0),
		    .build = platform_build_of(rows_text(r, 1)),
		    .torch = rows_dup(r, 1),
		    .os = rows_dup(r, 2),
		    .head_sha = commit_dup(r, 3),
		    .extension_version = rows_dup(r, 4),
		    .job_id = rows_int(r, 5),
		    .at_ms = rows_int(r, 6),
		    .red_since_ms = rows_int(r, 7),
		    .n_passed = rows_int(r, 8),
		    .n_failed = rows_int(r, 9),
		    .n_missing = rows_int(r, 10),
		};
	}
	read_standings(d, g);
	if (db_status(d))
		get_platform_tests_release(g);
	return 0;
}

int store_get_platform_tests(struct store *s, struct get_platform_tests *q)
{
	q->list = NULL;
	q->n = 0;
	q->standings = NULL;
	q->q.run = platform_tests_run;
	return store_query(s, &q->q);
}

void get_platform_tests_release(struct get_platform_tests *q)
{
	for (size_t i = 0; i < q->n; i++)
		platform_test_release(&q->list[i]);
	FREE_AND_NULL(q->list);
	q->n = 0;
	for (size_t i = 0; q->standings && i < q->n_names; i++)
		standing_release(&q->standings[i]);
	FREE_AND_NULL(q->standings);
}
