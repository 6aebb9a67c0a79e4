/* What a runner is asked for, as its dispatch carries it. */
#include "base/alloc.h"
#include "base/strv.h"
#include "store/experiment_rows.h"
#include "store/stored_change.h"

enum { REQUEST_JOBS_MAX = 20 };

static bool read_row(
    struct db *d, const char *dispatch_id, struct experiment_request *ret, int64_t *ret_explained)
{
	struct rows *r = db_rows(d,
	    "SELECT e.id, e.dispatch_id, e.side, e.sha, e.change_id FROM dispatch x"
	    " CROSS JOIN change c ON c.id = x.change_id AND c.kind = 'experiment'"
	    " CROSS JOIN experiment e ON e.id = c.experiment_id WHERE x.id = ?1 LIMIT 1",
	    V_TEXT(dispatch_id));
	bool is_found = rows_next(r);

	if (is_found) {
		*ret = (struct experiment_request){
		    .id = rows_int(r, 0),
		    .of = rows_dup(r, 1),
		    .side = experiment_side_parse(rows_text(r, 2)),
		    .sha = rows_dup(r, 3),
		    .tests = strv_copy(NULL),
		    .jobs = strv_copy(NULL),
		};
		*ret_explained = rows_int(r, 4);
	}
	rows_end(r);
	return is_found;
}

/* Each job in which one of these tests is red, as evidence counts per job and test, and the machine of the first that says
 * what it has. A job without tests is one itself: its cell names it. */
static void read_jobs(struct db *d, struct experiment_request *q, int64_t explained)
{
	struct rows *r = db_rows(d,
	    "SELECT j.name, j.environment FROM experiment e CROSS JOIN job j ON j.change_id = ?2"
	    " AND j.accelerator = e.accelerator AND j.is_current = 1 WHERE e.id = ?1"
	    " AND EXISTS (SELECT 1 FROM experiment_test t WHERE t.experiment_id = e.id"
	    "  AND " TEST_IS_RED_IN_JOB("t.test_id",
		"(SELECT v.job_id FROM verdict v WHERE v.change_id = ?2"
		" AND v.accelerator = e.accelerator AND v.test_id = t.test_id)") ") ORDER BY j.id "
										 "LIMIT ?3",
	    V_INT(q->id), V_INT(explained), V_INT(REQUEST_JOBS_MAX));

	while (rows_next(r)) {
		if (!strv_contains((const char *const *)q->jobs, rows_text(r, 0)))
			strv_add(&q->jobs, rows_text(r, 0));
		if (!q->environment)
			q->environment = rows_dup(r, 1);
	}
}

bool experiment_request_read(struct db *d, const char *dispatch_id, struct experiment_request *ret)
{
	int64_t explained = 0;
	struct rows *r;

	*ret = (struct experiment_request){.id = 0};
	if (!read_row(d, dispatch_id, ret, &explained))
		return false;
	r = db_rows(d,
	    "SELECT DISTINCT s.suite || '/' || s.name FROM experiment_test t JOIN test s"
	    " ON s.id = t.test_id WHERE t.experiment_id = ?1 ORDER BY 1",
	    V_INT(ret->id));
	while (rows_next(r))
		strv_add(&ret->tests, rows_text(r, 0));
	read_jobs(d, ret, explained);
	return true;
}

int64_t experiment_pull(struct db *d, int64_t run_change_id)
{
	int64_t explained = db_int(d, 0,
	    "SELECT change_id FROM experiment WHERE run_change_id = ?1", V_INT(run_change_id));

	return explained ? change_pull(d, explained) : 0;
}
