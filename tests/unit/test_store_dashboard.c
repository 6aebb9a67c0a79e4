/* Aggregates against what they are made of, after random histories; the views that are read from
 * them; and that none of their statements walks over a table. */
#include <sqlite3.h>

#include "base/file.h"
#include "store/accelerator_page.h"
#include "store/dashboard.h"
#include "store/days.h"
#include "store/db_sqlite.h"
#include "store/number_days.h"
#include "store/percentile.h"
#include "store/run_suites.h"
#include "store_rig.h"

static char *no_names[] = {NULL};
static const char *const NAMES[] = {"gpu", "npu", "quiet"};
enum { N_NAMES = ARRAY_LEN(NAMES), N_PUSHES = 40 };

static uint32_t seed;

static uint32_t chance(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

static void mirror(enum level quiet)
{
	struct runner runners[N_NAMES];
	struct accelerator list[N_NAMES];
	struct mirror_registry m = {.list = list, .n = N_NAMES, .now_ms = T0};
	char repository[N_NAMES][32];

	for (int i = 0; i < N_NAMES; i++) {
		snprintf(repository[i], sizeof(repository[i]), "%s/ci", NAMES[i]);
		runners[i] = (struct runner){
		    .name = (char *)"ci", .kind = RUNNER_GITHUB, .repository = repository[i]};
		list[i] = (struct accelerator){.name = (char *)NAMES[i],
		    .title = (char *)NAMES[i],
		    .level = i == N_NAMES - 1 ? quiet : LEVEL_2,
		    .oncall = no_names,
		    .runners = &runners[i],
		    .n_runners = 1,
		    .must_pass = no_names,
		    .skip = no_names};
	}
	DO_OK(store_mirror_registry, &m);
}

static const char *sha(int n)
{
	static char text[4][41];
	static int next;
	char *s = text[next++ % 4];

	snprintf(s, 41, "%040x", n + 1);
	return s;
}

static void push(int n, const char *ref, int64_t now_ms)
{
	struct plan_want wants[] = {GITHUB_WANT("gpu", "gpu/ci"), GITHUB_WANT("npu", "npu/ci"),
	    GITHUB_WANT("quiet", "quiet/ci")};
	struct push_commit commit = {.sha = (char *)sha(n),
	    .author = (char *)"alice",
	    .title = (char *)"A commit",
	    .at_ms = now_ms - MINUTE};
	struct plan p = {.kind = PLAN_START,
	    .change_kind = CHANGE_PUSH,
	    .repository = (char *)UPSTREAM,
	    .head_sha = commit.sha,
	    .before = (char *)sha(n - 1),
	    .ref = (char *)ref,
	    .commits = &commit,
	    .n_commits = 1,
	    .event_type = "push",
	    .wants = wants,
	    .n_wants = N_NAMES};
	char guid[64];
	struct apply_plan op = {
	    .guid = guid, .body = "{}", .body_bytes = 2, .plan = &p, .now_ms = now_ms};

	snprintf(guid, sizeof(guid), "push-%d", n);
	DO_OK(store_apply_plan, &op);
}

/* ---- reports of random content ---- */

enum { TESTS_MAX = 14 };
struct content {
	struct test_result tests[TESTS_MAX];
	char names[TESTS_MAX][16];
	size_t n;
	bool is_red;
};

static void fill(struct content *c)
{
	static const char *const suites[] = {"unit", "model", "build", "benchmark", "own suite"};
	static const enum test_status statuses[] = {TEST_PASS, TEST_PASS, TEST_PASS, TEST_PASS,
	    TEST_PASS, TEST_SKIP, TEST_DONE, TEST_FAIL, TEST_ERROR, TEST_MISS};

	c->n = chance(TESTS_MAX);
	c->is_red = false;
	for (size_t i = 0; i < c->n; i++) {
		snprintf(c->names[i], sizeof(c->names[i]), "t%u", (unsigned)chance(5));
		c->tests[i] = (struct test_result){.suite = (char *)suites[chance(5)],
		    .name = c->names[i],
		    .status = statuses[chance(ARRAY_LEN(statuses))],
		    .duration_ms = -1,
		    .message = (char *)"it differs",
		    .has_number = chance(3) == 0,
		    .number = chance(1000),
		    .unit = (char *)(chance(2) ? "tokens/s" : NULL)};
		c->is_red |= test_status_is_red(c->tests[i].status);
	}
}

/* The job's id. */
static int64_t report(
    int n, const char *accelerator, enum job_status status, int attempt, int64_t now_ms)
{
	struct content c;
	struct job_report j = {.status = status,
	    .workflow = (char *)"CI",
	    .name = (char *)"test",
	    .run_id = (char *)"1",
	    .run_attempt = attempt};
	char *id = rig_dispatch_id(sha(n), accelerator);
	struct report_job op = {
	    .dispatch_id = id, .report = &j, .accelerator = accelerator, .now_ms = now_ms};

	if (status == JOB_COMPLETED) {
		fill(&c);
		j.tests = c.tests;
		j.n_tests = c.n;
		j.conclusion = (char *)(c.is_red || chance(10) == 0 ? "failure" : "success");
	}
	j.digest[0] = (uint8_t)attempt;
	DO_OK(store_report_job, &op);
	assert_int_equal(op.outcome, REPORT_RECORDED);
	free(id);
	return op.job_id;
}

static void put_document(int64_t job_id, int64_t now_ms)
{
	struct content c;
	struct put_report p = {.job_id = job_id, .now_ms = now_ms};

	fill(&c);
	p.tests = c.tests;
	p.n_tests = c.n;
	DO_OK(store_put_report, &p);
}

/* Pushes over days, each tested by some, again by some, corrected later. Returns the time after. */
static int64_t random_history(uint32_t from)
{
	int64_t now = T0;

	seed = from;
	for (int n = 0; n < N_PUSHES; n++) {
		push(n, chance(6) ? "refs/heads/main" : "refs/heads/release/2.9", now);
		for (int i = 0; i < N_NAMES; i++) {
			int64_t at = now + chance(6 * 3600) * 1000, job = 0;

			if (i == N_NAMES - 1 || chance(5) == 0)
				continue;
			if (chance(3))
				report(n, NAMES[i], JOB_IN_PROGRESS, 1, at);
			job = report(n, NAMES[i], JOB_COMPLETED, 1, at + chance(3600) * 1000);
			if (chance(3) == 0)
				put_document(job, at + 2 * HOUR);
			if (chance(4) == 0)
				report(n, NAMES[i], JOB_COMPLETED, 2,
				    at + 3 * HOUR + chance(30) * HOUR);
		}
		now += chance(9) * HOUR;
	}
	return now;
}

/* ---- the oracle: the same, said in one naive statement ---- */

static sqlite3 *handle;

static int64_t number_of(const char *sql)
{
	sqlite3_stmt *s;
	int64_t n = -1;

	if (sqlite3_prepare_v2(handle, sql, -1, &s, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(handle));
	if (sqlite3_step(s) == SQLITE_ROW)
		n = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return n;
}

static void open_handle(void)
{
	char *path = path_join(rig_dir, "outpost.db");

	assert_int_equal(sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	free(path);
}

static void assert_no_row(const char *sql)
{
	if (number_of(sql) != -1)
		fail_msg("seed %u: a row is wrong: %s", (unsigned)seed, sql);
}

#define CELLS(where)                                                                               \
	"(SELECT COUNT(*) FROM verdict v JOIN test t ON t.id = v.test_id"                          \
	" WHERE v.change_id = x.change_id AND v.accelerator = x.accelerator AND " where ")"
#define BROKEN "v.attribution NOT IN ('FLAKY', 'KNOWN')"

static void assert_runs_are_right(void)
{
	assert_true(number_of("SELECT COUNT(*) FROM run WHERE is_push = 1") > N_PUSHES);
	assert_true(number_of("SELECT SUM(n_fail) * SUM(n_pass) FROM run") > 0);
	assert_no_row("SELECT 1 FROM run x WHERE n_fail <> " CELLS(
	    "v.status = 'FAIL'") " OR n_error "
				 "<> " CELLS(
				     "v."
				     "status "
				     "= "
				     "'ERROR'") " OR n_miss <> " CELLS("v.status = 'MISS'") " OR "
											    "n_"
											    "pass "
											    "<>"
											    " " CELLS("v.status = 'PASS'") " OR n_done <> " CELLS(
												"v."
												"st"
												"at"
												"us"
												" ="
												" "
												"'D"
												"ON"
												"E"
												"'") " OR "
												     "n_"
												     "skip "
												     "<>"
												     " " CELLS("v.status = 'SKIP'") " OR n_flaky <> " CELLS(
													 "v.attribution = 'FLAKY'"));
	assert_no_row("SELECT 1 FROM run_suite x WHERE n_fail <> " CELLS(
	    "t.suite = x.suite AND v.status = "
	    "'FAIL'") " OR n_pass <> " CELLS("t."
					     "su"
					     "it"
					     "e "
					     "= "
					     "x."
					     "su"
					     "it"
					     "e "
					     "AN"
					     "D "
					     "v."
					     "st"
					     "at"
					     "us"
					     " ="
					     " '"
					     "PA"
					     "SS"
					     "'") " OR n_skip <> " CELLS("t.suite = x.suite "
									 "AND v.status = "
									 "'SKIP'") " OR "
										   "n_broken "
										   "<> " CELLS(
										       "t.suite = "
										       "x.suite "
										       "AND"
										       " " BROKEN));
	assert_no_row(
	    "SELECT 1 FROM run x WHERE (SELECT COUNT(*) FROM run_suite s WHERE s.change_id ="
	    " x.change_id AND s.accelerator = x.accelerator) <> (SELECT COUNT(DISTINCT t.suite)"
	    " FROM verdict v JOIN test t ON t.id = v.test_id WHERE v.change_id = x.change_id"
	    " AND v.accelerator = x.accelerator)");
	/* What it shows is as bad as the suite is, and broken where anything is. */
	assert_no_row(
	    "SELECT 1 FROM run_suite x WHERE job_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM"
	    " verdict v JOIN test t ON t.id = v.test_id WHERE v.change_id = x.change_id AND"
	    " v.accelerator = x.accelerator AND t.suite = x.suite AND v.job_id = x.job_id AND"
	    " v.status = x.status AND (x.n_broken = 0 OR " BROKEN "))");
}

#define OF_DAY "FROM run r WHERE r.accelerator = d.accelerator AND r.ended_ms / 86400000 = d.day"
/* Not the smallest value that so many percent do not pass, nor NULL where there is none. */
#define NOT_RANK(of_day, column, percent)                                                          \
	"(SELECT COUNT(r." column ") > 0 AND (" of_day " IS NULL OR 100 * SUM(r." column           \
	" <= " of_day ") < COUNT(r." column ") * " percent " OR 100 * SUM(r." column " < " of_day  \
	") >= COUNT(r." column ") * " percent ") OR (COUNT(r." column ") = 0 AND " of_day          \
	" IS NOT NULL) " OF_DAY ")"

static void assert_days_are_right(void)
{
	assert_int_equal(number_of("SELECT COUNT(*) FROM day"),
	    number_of("SELECT COUNT(DISTINCT accelerator || (ended_ms / 86400000)) FROM run"));
	assert_true(number_of("SELECT COUNT(*) FROM day") > 6);
	assert_no_row(
	    "SELECT 1 FROM day d WHERE n_runs <> (SELECT COUNT(*) " OF_DAY
	    " AND is_push = 1 AND outcome <> 'nothing') OR n_green <> (SELECT COUNT(*) " OF_DAY
	    " AND is_push = 1 AND outcome = 'green') OR n_fail <> (SELECT SUM(n_fail) " OF_DAY
	    ") OR n_error <> (SELECT SUM(n_error) " OF_DAY
	    ") OR n_miss <> (SELECT SUM(n_miss) " OF_DAY
	    ") OR n_pass <> (SELECT SUM(n_pass) " OF_DAY
	    ") OR n_done <> (SELECT SUM(n_done) " OF_DAY
	    ") OR n_skip <> (SELECT SUM(n_skip) " OF_DAY
	    ") OR n_flaky <> (SELECT SUM(n_flaky) " OF_DAY ")");
	assert_no_row("SELECT 1 FROM day d WHERE " NOT_RANK("d.queue_p50_ms", "queue_ms", "50"));
	assert_no_row("SELECT 1 FROM day d WHERE " NOT_RANK("d.queue_p90_ms", "queue_ms", "90"));
	assert_no_row("SELECT 1 FROM day d WHERE " NOT_RANK("d.run_p50_ms", "run_ms", "50"));
	assert_no_row("SELECT 1 FROM day d WHERE " NOT_RANK("d.run_p90_ms", "run_ms", "90"));
	assert_true(number_of("SELECT COUNT(run_p90_ms) FROM day") > 3);
}

/* The newest result of a day is that of the job that reported last; within it the last in place.
 * Reports of one job at two times are the later one's. */
static void assert_numbers_are_right(void)
{
	assert_true(number_of("SELECT COUNT(*) FROM number_day") > 20);
	assert_no_row(
	    "SELECT 1 FROM number_day n WHERE NOT EXISTS (SELECT 1 FROM result r JOIN job j"
	    " ON j.id = r.job_id JOIN change c ON c.id = j.change_id WHERE r.job_id = n.job_id"
	    " AND r.test_id = n.test_id AND COALESCE(r.unit, '') = n.unit AND r.number = n.value"
	    " AND c.head_sha = n.head_sha AND c.id = n.change_id AND j.accelerator ="
	    " n.accelerator)");
	/* Every number of a job that is the newest of its day is there, but for those that a later
	 * one of the day took over. */
	assert_no_row(
	    "SELECT 1 FROM result r JOIN job j ON j.id = r.job_id WHERE r.number IS NOT NULL"
	    " AND j.is_current = 1 AND NOT EXISTS (SELECT 1 FROM number_day n WHERE"
	    " n.accelerator = j.accelerator AND n.test_id = r.test_id AND n.unit ="
	    " COALESCE(r.unit, '') AND n.at_ms >= j.reported_ms)");
	assert_no_row("SELECT 1 FROM number_day WHERE day <> at_ms / 86400000");
}

static void assert_jobs_are_right(void)
{
	assert_no_row(
	    "SELECT 1 FROM job j WHERE status = 'completed' AND (n_tests_fail <> (SELECT COUNT(*)"
	    " FROM result WHERE job_id = j.id AND status = 'FAIL') OR n_tests_pass IS NOT (SELECT"
	    " COUNT(*) FROM result WHERE job_id = j.id AND status = 'PASS') OR n_tests_fail +"
	    " n_tests_error + n_tests_miss <> n_red)");
	assert_true(number_of("SELECT SUM(n_tests_skip) FROM job") > 0);
}

static void aggregates_are_what_they_are_made_of(void **state)
{
	(void)state;
	for (uint32_t from = 1; from <= 3; from++) {
		mirror(LEVEL_1);
		random_history(from * 7919);
		open_handle();
		assert_runs_are_right();
		assert_days_are_right();
		assert_numbers_are_right();
		assert_jobs_are_right();
		assert_no_row("SELECT 1 FROM run WHERE accelerator = 'quiet'");
		sqlite3_close(handle);
		rig_teardown(NULL);
		rig_setup(NULL);
	}
}

/* ---- the views ---- */

static const struct dashboard_row *row_of(const struct dashboard *v, const char *name)
{
	for (size_t i = 0; i < v->n_rows; i++)
		if (strcmp(v->rows[i].name, name) == 0)
			return &v->rows[i];
	return NULL;
}

static char *text_of(const char *sql)
{
	sqlite3_stmt *s;
	char *text = NULL;

	assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &s, NULL), SQLITE_OK);
	if (sqlite3_step(s) == SQLITE_ROW)
		text = xstrdup((const char *)sqlite3_column_text(s, 0));
	sqlite3_finalize(s);
	return text;
}

static void the_dashboard_is_at_the_newest_of_main(void **state)
{
	struct get_dashboard g = {.repository = UPSTREAM, .branch = "main"};
	const struct dashboard_row *a;
	int64_t now, n_green = 0, n_runs = 0;
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
	newest = text_of(
	    "SELECT c.head_sha FROM run r JOIN change c ON c.id = r.change_id"
	    " WHERE r.accelerator = 'npu' AND c.ref = 'refs/heads/main' ORDER BY c.id DESC");
	assert_string_equal(a->sha, newest);
	free(newest);
	newest = text_of("SELECT c.head_sha FROM run r JOIN change c ON c.id = r.change_id"
			 " WHERE c.ref = 'refs/heads/main' ORDER BY c.id DESC");
	assert_string_equal(g.view->sha, newest);
	assert_string_equal(g.view->title, "A commit");
	assert_true(g.view->n_tested >= 1 && g.view->n_tested <= 2);
	free(newest);
	assert_int_equal(
	    a->n_suites, number_of("SELECT COUNT(*) FROM run_suite WHERE accelerator = 'npu' AND"
				   " change_id = (SELECT MAX(r.change_id) FROM run r JOIN change c"
				   " ON c.id = r.change_id WHERE r.accelerator = 'npu' AND c.ref ="
				   " 'refs/heads/main')"));
	dashboard_row_runs(a, &n_runs, &n_green);
	assert_int_equal(
	    n_runs, number_of("SELECT SUM(n_runs) FROM day WHERE accelerator = 'npu'"));
	assert_int_equal(
	    n_green, number_of("SELECT SUM(n_green) FROM day WHERE accelerator = 'npu'"));
	assert_int_equal(g.view->n_running_total,
	    number_of("SELECT COUNT(*) FROM dispatch WHERE accelerator IN ('gpu', 'npu') AND "
		      "is_current = 1"
		      " AND state IN ('queued', 'sent', 'acknowledged', 'running', 'held')"));
	assert_true(g.view->n_running_total > 0);
	for (size_t i = 1; i < g.view->n_running; i++)
		assert_true(g.view->running[i - 1].since_ms <= g.view->running[i].since_ms);
	dashboard_free(g.view);
	sqlite3_close(handle);
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
		struct list_accelerator_jobs l = {
		    .accelerator = "gpu", .before_id = before, .limit = 7};

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
	assert_int_equal(p->red_since_ms + p->last_run.id, 0);
	get_accelerator_page_release(p);
	sqlite3_close(handle);
	free(p);
}

static void numbers_come_page_by_page(void **state)
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
				assert_true(
				    l.list[i].points[k - 1].at_ms < l.list[i].points[k].at_ms);
		}
		list_numbers_release(&l);
		l.after_test = l.next_test;
		snprintf(unit, sizeof(unit), "%s", l.next_unit);
	} while (l.has_more);
	assert_int_equal(
	    n_points, number_of("SELECT COUNT(*) FROM number_day WHERE accelerator = 'npu'"));
	assert_int_equal(
	    n_series, number_of("SELECT COUNT(*) FROM (SELECT DISTINCT test_id, unit FROM"
				" number_day WHERE accelerator = 'npu')"));
	l = (struct list_numbers){.accelerator = "npu", .since_ms = now + 30 * DAY, .limit = 3};
	ASK_OK(store_list_numbers, &l);
	assert_int_equal(l.n, 0);
	assert_false(l.has_more);
	list_numbers_release(&l);
	sqlite3_close(handle);
}

/* ---- what goes and what stays ---- */

static void days_outlive_what_they_are_made_of(void **state)
{
	struct apply_retention r = {.deliveries_before_ms = T0 + 300 * DAY,
	    .results_before_ms = T0 + 300 * DAY,
	    .failures_before_ms = T0 + 300 * DAY};
	int64_t n_days, sum, n_numbers;

	(void)state;
	mirror(LEVEL_1);
	random_history(5);
	open_handle();
	n_days = number_of("SELECT COUNT(*) FROM day");
	sum = number_of("SELECT SUM(n_runs + n_pass) FROM day");
	n_numbers = number_of("SELECT COUNT(*) FROM number_day");
	free(rig_send(T0 + 299 * DAY));
	do
		DO_OK(store_apply_retention, &r);
	while (r.has_more);
	assert_true(
	    number_of("SELECT COUNT(*) FROM run") < 10); /* what has something to send stays */
	assert_no_row(
	    "SELECT 1 FROM run_suite s WHERE NOT EXISTS (SELECT 1 FROM run r WHERE r.change_id ="
	    " s.change_id)");
	assert_int_equal(number_of("SELECT COUNT(*) FROM day"), n_days);
	assert_int_equal(number_of("SELECT SUM(n_runs + n_pass) FROM day"), sum);
	assert_int_equal(number_of("SELECT COUNT(*) FROM number_day"), n_numbers);
	assert_no_row(
	    "SELECT 1 FROM number_day n WHERE job_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM job"
	    " WHERE id = n.job_id)");
	sqlite3_close(handle);
}

static struct db *writer(void)
{
	struct db *d;
	char *path;

	rig_close();
	path = path_join(rig_dir, "outpost.db");
	assert_int_equal(db_open(path, DB_WRITER, &d, NULL), 0);
	free(path);
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	return d;
}

static void a_day_that_lost_a_run_is_final(void **state)
{
	struct db *d = writer();

	(void)state;
	db_exec(d, "INSERT INTO run (accelerator, ended_ms, change_id, is_push, outcome, "
		   "n_dispatches, n_met)"
		   " VALUES ('npu', 1000, 1, 1, 'green', 1, 1), ('npu', 2000, 2, 1, 'red', 1, 1)");
	day_note(d, "npu", 1000);
	days_close(d, 1);
	db_exec(d, "DELETE FROM run WHERE change_id = 1");
	day_note(d, "npu", 2000);
	assert_int_equal(
	    db_int(d, 0, "SELECT n_runs FROM day WHERE accelerator = 'npu' AND day = 0"), 2);
	/* and without that it loses it, and with its last run itself */
	db_exec(d, "UPDATE day SET is_closed = 0");
	day_note(d, "npu", 2000);
	assert_int_equal(db_int(d, 0, "SELECT n_runs FROM day"), 1);
	db_exec(d, "DELETE FROM run");
	day_note(d, "npu", 2000);
	assert_false(db_has(d, "SELECT 1 FROM day"));
	assert_int_equal(day_of(-1), -1);
	assert_int_equal(day_of(DAY_MS), 1);
	db_close(d);
}

static void old_days_go_piece_by_piece(void **state)
{
	struct db *d = writer();

	(void)state;
	for (int64_t day = 0; day < 5; day++) {
		db_exec(d,
		    "INSERT INTO run (accelerator, ended_ms, change_id, is_push, outcome, "
		    "n_dispatches, n_met)"
		    " VALUES ('npu', ?1, ?1, 1, 'green', 1, 1)",
		    V_INT(day * DAY_MS));
		day_note(d, "npu", day * DAY_MS);
		db_exec(d,
		    "INSERT INTO number_day (accelerator, test_id, unit, day, at_ms, value, "
		    "change_id, head_sha)"
		    " VALUES ('npu', 1, '', ?1, 1, 1, 1, '')",
		    V_INT(day));
	}
	assert_true(days_drop(d, 3 * DAY_MS + 5, 2));
	assert_int_equal(db_int(d, 0, "SELECT COUNT(*) FROM day"), 3);
	assert_true(days_drop(d, 3 * DAY_MS + 5, 2));
	assert_false(days_drop(d, 3 * DAY_MS + 5, 2));
	assert_int_equal(db_int(d, 0, "SELECT MIN(day) * 10 + COUNT(*) FROM day"), 32);
	assert_int_equal(db_int(d, 0, "SELECT MIN(day) * 10 + COUNT(*) FROM number_day"), 32);
	db_close(d);
}

static void thousands_of_suites_are_folded(void **state)
{
	struct db *d = writer();
	struct cell_counts c;
	char name[32];

	(void)state;
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "file_%03d.py", i);
		db_exec(d, "INSERT INTO test (id, suite, name, dtype) VALUES (?1, ?2, 't', '')",
		    V_INT(i + 1),
		    V_TEXT(i == 250   ? "unit"
			   : i == 251 ? RUN_SUITES_OTHERS
				      : name));
		db_exec(d,
		    "INSERT INTO verdict (change_id, accelerator, test_id, status, attribution, "
		    "job_id, is_late)"
		    " VALUES (1, 'npu', ?1, ?2, ?3, ?1, 0)",
		    V_INT(i + 1),
		    V_TEXT(i == 499   ? "FAIL"
			   : i == 498 ? "ERROR"
				      : "PASS"),
		    i == 499   ? V_TEXT("NEW")
		    : i == 498 ? V_TEXT("FLAKY")
			       : V_NULL);
	}
	c = run_suites_put(d, 1, "npu");
	assert_int_equal(c.by_status[TEST_PASS], 498);
	assert_int_equal(c.n_broken, 1);
	assert_int_equal(c.n_flaky, 1);
	assert_int_equal(db_int(d, 0, "SELECT COUNT(*) FROM run_suite"), RUN_SUITES_MAX);
	assert_int_equal(db_int(d, 0, "SELECT SUM(n_pass) FROM run_suite"), 498);
	assert_true(db_has(d, "SELECT 1 FROM run_suite WHERE suite = 'unit'"));
	assert_true(
	    db_has(d, "SELECT 1 FROM run_suite WHERE suite = 'file_499.py' AND n_broken = 1"));
	assert_true(db_has(d, "SELECT 1 FROM run_suite WHERE suite = 'file_498.py' AND n_broken = 0"
			      " AND status = 'ERROR'"));
	assert_true(db_has(d, "SELECT 1 FROM run_suite WHERE suite = 'other suites'"));
	assert_int_equal(db_status(d), 0);
	db_close(d);
}

/* ---- what older versions recorded ---- */

static void days_are_filled_from_what_is_there(void **state)
{
	struct error e = {0};
	struct db *d;

	(void)state;
	mirror(LEVEL_1);
	random_history(31);
	d = writer();
	db_exec(d, "UPDATE run SET n_fail = 0, n_error = 0, n_miss = 0, n_pass = 0, n_done = 0, "
		   "n_skip = 0,"
		   " n_flaky = 0");
	db_exec(d, "UPDATE job SET n_tests_fail = NULL, n_tests_error = NULL, n_tests_miss = NULL,"
		   " n_tests_pass = NULL, n_tests_done = NULL, n_tests_skip = NULL");
	db_exec(d, "DELETE FROM run_suite");
	db_exec(d, "DELETE FROM day");
	db_exec(d, "DELETE FROM number_day");
	db_exec(d, "DELETE FROM setting WHERE key = 'days.filled'");
	assert_int_equal(db_commit(d), 0);
	assert_int_equal(days_fill(d, &e), 0);
	db_close(d);
	rig_open();
	open_handle();
	assert_runs_are_right();
	assert_days_are_right();
	assert_numbers_are_right();
	assert_jobs_are_right();
	sqlite3_close(handle);
}

/* ---- plans ---- */

/* Small by their nature: the registry, and what is in hand. */
static bool may_be_walked(const char *step)
{
	return strstr(step, "INDEX dispatch_going") || strstr(step, "INDEX dispatch_held_since") ||
	       strncmp(step, "SCAN accelerator", 16) == 0 ||
	       strncmp(step, "SCAN (subquery", 14) == 0 ||
	       strcmp(step, "SCAN r") == 0; /* the newest runs, as a subquery */
}

static int assert_plans(struct db *d)
{
	sqlite3_stmt *s = NULL, *plan;
	int n = 0;

	while ((s = sqlite3_next_stmt(d->handle, s)) != NULL) {
		char *sql = xasprintf("EXPLAIN QUERY PLAN %s", sqlite3_sql(s));

		if (strncmp(sqlite3_sql(s), "SELECT", 6) != 0) {
			free(sql);
			continue;
		}
		assert_int_equal(sqlite3_prepare_v2(handle, sql, -1, &plan, NULL), SQLITE_OK);
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

static void no_view_walks_over_a_table(void **state)
{
	struct get_dashboard g = {.repository = UPSTREAM, .branch = "main"};
	struct list_accelerator_jobs jobs = {.accelerator = "npu", .limit = 5};
	struct list_numbers numbers = {.accelerator = "npu", .limit = 5, .after_unit = ""};
	struct get_accelerator_page *p = xcalloc(1, sizeof(*p));
	struct get_figures figures = {.now_ms = T0};
	char *path = path_join(rig_dir, "outpost.db");
	struct db *d;

	(void)state;
	mirror(LEVEL_1);
	g.now_ms = random_history(12);
	/* Asked once by the rig, so that they are whole; then again where their statements are seen. */
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
	assert_int_equal(g.q.run(&g.q, d), 0);
	assert_int_equal(jobs.q.run(&jobs.q, d), 0);
	assert_int_equal(numbers.q.run(&numbers.q, d), 0);
	assert_int_equal(p->q.run(&p->q, d), 0);
	assert_int_equal(figures.q.run(&figures.q, d), 0);
	open_handle();
	assert_true(assert_plans(d) > 25);
	sqlite3_close(handle);
	dashboard_free(g.view);
	page_jobs_release(&jobs.jobs);
	list_numbers_release(&numbers);
	get_accelerator_page_release(p);
	get_figures_release(&figures);
	db_close(d);
	free(path);
	free(p);
}

static void percentiles_are_of_what_is_there(void **state)
{
	struct times t = times_new(3);

	(void)state;
	assert_int_equal(percentile(&t, 50), -1);
	t.ms = xcalloc(1, sizeof(*t.ms));
	t.ms[0] = 7;
	t.n = 1;
	assert_int_equal(percentile(&t, 1), 7);
	assert_int_equal(percentile(&t, 100), 7);
	times_release(&t);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(aggregates_are_what_they_are_made_of),
	    TEST(the_dashboard_is_at_the_newest_of_main),
	    TEST(an_accelerator_in_full),
	    TEST(numbers_come_page_by_page),
	    TEST(days_outlive_what_they_are_made_of),
	    TEST(a_day_that_lost_a_run_is_final),
	    TEST(old_days_go_piece_by_piece),
	    TEST(thousands_of_suites_are_folded),
	    TEST(days_are_filled_from_what_is_there),
	    TEST(no_view_walks_over_a_table),
	    TEST(percentiles_are_of_what_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
