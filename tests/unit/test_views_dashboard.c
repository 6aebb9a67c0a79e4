/* The dashboard and the accelerators' pages: their content after random histories, and that none of their statements
 * scans a table. */
#include "db/db_sqlite.h"

#include "days_rig.h"
#include "history/days.h"
#include "views/accelerator_page.h"
#include "views/dashboard.h"

static const struct dashboard_row *row_of(const struct dashboard *v, const char *name)
{
	for (size_t i = 0; i < v->n_rows; i++)
		if (strcmp(v->rows[i].name, name) == 0)
			return &v->rows[i];
	return NULL;
}

static char *text_of(const char *sql)
{
	char *text = db_text_values(db_view(reader), sql, VALUES());

	if (db_status(reader))
		fail_msg("%s: %s", sql, db_why(reader)->text);
	return text;
}

static void the_dashboard_is_at_the_newest_of_main(void **state)
{
	struct get_dashboard g = {.repository = UPSTREAM, .branch = "main"};
	const struct dashboard_row *a;
	int64_t now, n_green, n_runs;
	char *newest;

	(void)state;
	mirror(LEVEL_1);
	now = random_history(77);
	g.now_ms = now;
	ASK_OK(store_get_dashboard, &g);
	open_handle();
	assert_int_equal(g.view->n_rows, 2);
	assert_null(row_of(g.view, "quiet"));
	a = row_of(g.view, "npu");
	newest = text_of("SELECT c.head_sha FROM run r JOIN change c ON c.id = r.change_id"
			 " WHERE r.accelerator = 'npu' AND c.ref = 'refs/heads/main' ORDER BY c.id DESC");
	assert_string_equal(a->at.sha, newest);
	free(newest);
	newest = text_of("SELECT c.head_sha FROM run r JOIN change c ON c.id = r.change_id"
			 " WHERE c.ref = 'refs/heads/main' ORDER BY c.id DESC");
	assert_string_equal(g.view->sha, newest);
	assert_string_equal(g.view->title, "A commit");
	assert_true(g.view->n_tested >= 1 && g.view->n_tested <= 2);
	free(newest);
	assert_int_equal(a->n_suites, number_of("SELECT COUNT(*) FROM run_suite WHERE accelerator = 'npu' AND"
						" change_id = (SELECT MAX(r.change_id) FROM run r JOIN change c"
						" ON c.id = r.change_id WHERE r.accelerator = 'npu' AND c.ref ="
						" 'refs/heads/main')"));
	n_runs = a->at.facts.n_runs;
	n_green = a->at.facts.n_green;
	assert_int_equal(n_runs, number_of("SELECT SUM(n_runs) FROM day WHERE accelerator = 'npu'"));
	assert_int_equal(n_green, number_of("SELECT SUM(n_green) FROM day WHERE accelerator = 'npu'"));
	assert_int_equal(
	    g.view->n_running_total, number_of("SELECT COUNT(*) FROM dispatch WHERE accelerator IN ('gpu', 'npu') AND "
					       "is_current = 1"
					       " AND state IN ('queued', 'sent', 'acknowledged', 'running', 'held')"));
	assert_true(g.view->n_running_total > 0);
	for (size_t i = 1; i < g.view->n_running; i++)
		assert_true(g.view->running[i - 1].since_ms <= g.view->running[i].since_ms);
	dashboard_free(g.view);
	db_close(reader);
}

static void page_of(struct get_accelerator_page *p, const char *name, int64_t now_ms)
{
	*p = (struct get_accelerator_page){.name = name, .now_ms = now_ms};
	ASK_OK(store_get_accelerator_page, p);
}

static void an_accelerator_in_full(void **state)
{
	struct get_accelerator_page *p = xcalloc(1, sizeof(*p));
	int64_t now, n = 0, before = 0;

	(void)state;
	mirror(LEVEL_1);
	now = random_history(4711);
	page_of(p, "gpu", now);
	open_handle();
	assert_int_equal(p->jobs.n, PAGE_JOBS);
	assert_true(p->jobs.has_more);
	get_accelerator_page_release(p);
	for (;;) { /* every job once, newest first, by cursor */
		struct list_accelerator_jobs l = {.accelerator = "gpu", .before_id = before, .limit = 7};

		ASK_OK(store_list_accelerator_jobs, &l);
		for (size_t i = 0; i < l.jobs.n; i++) {
			assert_true(!before || l.jobs.at[i].id < before);
			before = l.jobs.at[i].id;
			n++;
		}
		bool has_more = l.jobs.has_more;

		page_jobs_release(&l.jobs);
		if (!has_more)
			break;
	}
	assert_int_equal(n, number_of("SELECT COUNT(*) FROM job WHERE accelerator = 'gpu'"));
	page_of(p, "nobody", now);
	assert_int_equal(p->jobs.n + p->n_machines, 0);
	assert_int_equal(p->red.since_ms + p->last_run.id, 0);
	get_accelerator_page_release(p);
	db_close(reader);
	free(p);
}

static void numbers_are_listed_page_by_page(void **state)
{
	struct list_numbers l = {.accelerator = "npu", .since_ms = T0 - DAY, .limit = 3};
	int64_t now, n_series = 0, n_points = 0;
	char unit[64] = "";

	(void)state;
	mirror(LEVEL_1);
	now = random_history(99);
	open_handle();
	do {
		l.after_unit = unit;
		ASK_OK(store_list_numbers, &l);
		assert_true(l.n > 0 && l.n <= 3);
		for (size_t i = 0; i < l.n; i++) {
			n_series++;
			n_points += (int64_t)l.list[i].n;
			for (size_t k = 1; k < l.list[i].n; k++)
				assert_true(l.list[i].points[k - 1].at_ms < l.list[i].points[k].at_ms);
		}
		list_numbers_release(&l);
		l.after_test = l.next_test;
		snprintf(unit, sizeof(unit), "%s", l.next_unit);
	} while (l.has_more);
	assert_int_equal(n_points, number_of("SELECT COUNT(*) FROM number_day WHERE accelerator = 'npu'"));
	assert_int_equal(n_series, number_of("SELECT COUNT(*) FROM (SELECT DISTINCT test_id, unit FROM"
					     " number_day WHERE accelerator = 'npu') series"));
	l = (struct list_numbers){.accelerator = "npu", .since_ms = now + 30 * DAY, .limit = 3};
	ASK_OK(store_list_numbers, &l);
	assert_int_equal(l.n, 0);
	assert_false(l.has_more);
	list_numbers_release(&l);
	db_close(reader);
}

/* ---- plans ---- */

/* Small tables: the registry and unfinished work. */
static bool may_be_walked(const char *step)
{
	return strstr(step, "INDEX dispatch_going") || strstr(step, "INDEX dispatch_held_since") ||
	       strncmp(step, "SCAN accelerator", 16) == 0 || strncmp(step, "SCAN (subquery", 14) == 0 ||
	       strcmp(step, "SCAN CONSTANT ROW") == 0 ||                        /* no table at all */
	       strcmp(step, "SCAN r") == 0 || strcmp(step, "SCAN newest") == 0; /* the newest runs, as a subquery */
}

static int assert_plans(struct db *d)
{
	sqlite3_stmt *s = NULL, *plan;
	int n = 0;

	while ((s = sqlite3_next_stmt(sqlite_of(d)->handle, s)) != NULL) {
		char *sql = xasprintf("EXPLAIN QUERY PLAN %s", sqlite3_sql(s));

		if (strncmp(sqlite3_sql(s), "SELECT", 6) != 0) {
			free(sql);
			continue;
		}
		assert_int_equal(sqlite3_prepare_v2(sqlite_of(reader)->handle, sql, -1, &plan, NULL), SQLITE_OK);
		while (sqlite3_step(plan) == SQLITE_ROW) {
			const char *step = (const char *)sqlite3_column_text(plan, 3);

			if (strncmp(step, "SCAN", 4) == 0 && !may_be_walked(step))
				fail_msg("%s\n%s", sqlite3_sql(s), step);
		}
		sqlite3_finalize(plan);
		free(sql);
		n++;
	}
	return n;
}

static void no_query_scans_a_table(void **state)
{
	struct get_dashboard g = {.repository = UPSTREAM, .branch = "main"};
	struct list_accelerator_jobs jobs = {.accelerator = "npu", .limit = 5};
	struct list_numbers numbers = {.accelerator = "npu", .limit = 5, .after_unit = ""};
	struct get_accelerator_page *p;
	struct get_figures figures = {.now_ms = T0};
	char *path;
	struct db *d;

	(void)state;
	ONLY_ON_SQLITE();
	p = xcalloc(1, sizeof(*p));
	path = rig_path();
	mirror(LEVEL_1);
	g.now_ms = random_history(12);
	/* The rig runs each query once to complete the setup; then it runs again while its statements are recorded. */
	ASK_OK(store_get_dashboard, &g);
	dashboard_free(g.view);
	ASK_OK(store_list_accelerator_jobs, &jobs);
	page_jobs_release(&jobs.jobs);
	ASK_OK(store_list_numbers, &numbers);
	list_numbers_release(&numbers);
	page_of(p, "npu", g.now_ms);
	get_accelerator_page_release(p);
	ASK_OK(store_get_figures, &figures);
	get_figures_release(&figures);
	assert_int_equal(db_open(path, DB_READER, &d, NULL), 0);
	assert_int_equal(db_begin(d, DB_READER), 0);
	assert_int_equal(g.q.run(&g.q, db_view(d)), 0);
	assert_int_equal(jobs.q.run(&jobs.q, db_view(d)), 0);
	assert_int_equal(numbers.q.run(&numbers.q, db_view(d)), 0);
	assert_int_equal(p->q.run(&p->q, db_view(d)), 0);
	assert_int_equal(figures.q.run(&figures.q, db_view(d)), 0);
	open_handle();
	assert_true(assert_plans(d) > 25);
	db_close(reader);
	dashboard_free(g.view);
	page_jobs_release(&jobs.jobs);
	list_numbers_release(&numbers);
	get_accelerator_page_release(p);
	get_figures_release(&figures);
	db_close(d);
	free(path);
	free(p);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(the_dashboard_is_at_the_newest_of_main),
	    TEST(an_accelerator_in_full),
	    TEST(numbers_are_listed_page_by_page),
	    TEST(no_query_scans_a_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
