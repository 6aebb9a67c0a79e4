/* Random histories in the packed store and in plain tables, one row for each result and each cell. After every step both have
 * to be equal, however the packed one is read. */
#include "packed_rig.h"

#include "db/cell_sets.h"
#include "db/counters.h"
#include "db/packed_tables.h"
#include "replaces.h"
#include "verdict/verdicts.h"

/* In every second history a cursor of `cell` keeps so few tests that it reads each accelerator several times. */
REPLACES(packed_cells_at_once);
static size_t cells_at_once;
size_t packed_cells_at_once(void) { return cells_at_once; }

static char *no_names[] = {NULL};
static char *needed_tests[] = {(char *)"unit/t1", (char *)"model/t5", (char *)"build/h/1", NULL};
static char *unsupported[] = {(char *)"unit/t1", (char *)"model/t2", NULL};
static const char *const NAMES[] = {"npu", "tpu"};
static const char *const JOBS[] = {"shard 1", "shard 2", "benchmark"};
enum { N_NAMES = ARRAY_LEN(NAMES), N_JOBS = ARRAY_LEN(JOBS), TESTS_MAX = 60, STEPS = 70 };

static uint32_t seed;

static uint32_t chance(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* ---- the plain tables ---- */

static int make_plain(struct txn *d, void *with)
{
	(void)with;
	db_exec(d, "CREATE TABLE IF NOT EXISTS plain_result (job_id INTEGER NOT NULL, ordinal INTEGER NOT NULL, "
		   "test_id INTEGER NOT NULL,"
		   " status TEXT NOT NULL, duration_ms INTEGER, message TEXT, number REAL, file TEXT, line INTEGER,"
		   " PRIMARY KEY (job_id, ordinal))");
	db_exec(d, "CREATE TABLE IF NOT EXISTS plain_verdict (change_id INTEGER NOT NULL, accelerator TEXT NOT NULL,"
		   " test_id INTEGER NOT NULL, status TEXT NOT NULL, message TEXT, job_id INTEGER, is_late INTEGER,"
		   " file TEXT, line INTEGER, PRIMARY KEY (change_id, accelerator, test_id))");
	return 0;
}

struct reported {
	int64_t job_id;
	const struct test_result *tests;
	size_t n;
};

static int add_plain(struct txn *d, void *with)
{
	const struct reported *r = with;
	int64_t first = db_int(d, 0, "SELECT COUNT(*) FROM plain_result WHERE job_id = ?1", V_INT(r->job_id));

	for (size_t i = 0; i < r->n; i++) {
		const struct test_result *t = &r->tests[i];

		db_exec(d,
		    "INSERT INTO plain_result (job_id, ordinal, test_id, status, duration_ms, message, number, file, "
		    "line)"
		    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
		    V_INT(r->job_id), V_INT(first + (int64_t)i), V_INT(test_id_of(d, t->suite, t->name, t->dtype)),
		    V_TEXT(test_status_name(t->status)), t->duration_ms < 0 ? V_NULL : V_INT(t->duration_ms),
		    V_TEXT(t->message), t->has_number ? V_REAL(t->number) : V_NULL, V_TEXT(t->file),
		    V_INT_OR_NULL(t->line));
	}
	return 0;
}

#define ORDER "'FAIL ERROR MISS PASS DONE SKIP '"
#define CALLED_OFF                                                                                                     \
	" EXISTS (SELECT 1 FROM dispatch x WHERE x.id = j.dispatch_id AND x.accelerator = j.accelerator"               \
	"  AND x.runner = j.runner AND x.state IN ('superseded', 'cancelled')"                                         \
	"  AND (j.digest IS NULL OR j.completed_ms > x.finished_ms))"
#define WORSE                                                                                                          \
	" ON CONFLICT (change_id, accelerator, test_id) DO UPDATE SET status = excluded.status,"                       \
	" message = excluded.message, job_id = excluded.job_id, is_late = excluded.is_late, file = excluded.file,"     \
	" line = excluded.line WHERE instr(" ORDER ", excluded.status) < instr(" ORDER ", plain_verdict.status)"
#define ATTEMPTS                                                                                                       \
	" FROM job j CROSS JOIN job e ON e.change_id = j.change_id AND e.dispatch_id = j.dispatch_id"                  \
	"  AND e.accelerator = j.accelerator AND e.workflow = j.workflow AND e.name = j.name AND e.run_id = j.run_id"  \
	"  AND e.run_attempt BETWEEN j.run_attempt - 8 AND j.run_attempt WHERE j.change_id = ?1"                       \
	"  AND j.accelerator = ?2 AND j.is_current = 1 AND j.status = 'completed' AND j.run_attempt > 1"               \
	"  AND j.n_tests > 0 AND j.n_cut = 0 AND NOT" CALLED_OFF                                                       \
	"  AND e.status = 'completed' AND e.digest IS NOT NULL"

/* The cells as a store without packing derives them. The cells of jobs and dispatches themselves are not packed. */
static void derive_plain(struct txn *d, int64_t change_id, const char *accelerator)
{
	db_exec(d, "DELETE FROM plain_verdict WHERE change_id = ?1 AND accelerator = ?2", V_INT(change_id),
	    V_TEXT(accelerator));
	db_exec(d,
	    "INSERT INTO plain_verdict (change_id, accelerator, test_id, status, message, job_id, is_late, file, line)"
	    " SELECT change_id, accelerator, test_id, status, message, id, is_late, file, line FROM"
	    " (SELECT j.change_id, j.accelerator, r.test_id, r.status, r.message, j.id, j.is_late, r.file, r.line,"
	    "  ROW_NUMBER() OVER (PARTITION BY r.test_id ORDER BY instr(" ORDER ", r.status), j.id, r.ordinal) AS n"
	    "  FROM job j JOIN plain_result r ON r.job_id = j.id WHERE j.change_id = ?1 AND j.accelerator = ?2"
	    "  AND j.is_current = 1 AND j.status = 'completed' AND j.digest IS NOT NULL AND NOT" CALLED_OFF ") ranked"
	    " WHERE n = 1" WORSE,
	    V_INT(change_id), V_TEXT(accelerator));
	db_exec(d,
	    "WITH attempt AS (SELECT e.id, e.run_attempt, j.id AS last_id, j.run_attempt AS last_attempt,"
	    "  j.is_late" ATTEMPTS "),"
	    " named AS (SELECT a.last_id, a.last_attempt, a.run_attempt, a.is_late, r.test_id, r.file, r.line, "
	    "r.status,"
	    "  ROW_NUMBER() OVER (PARTITION BY a.last_id, r.test_id ORDER BY a.run_attempt DESC, r.status = 'FAIL' "
	    "DESC)"
	    "  AS age FROM attempt a CROSS JOIN plain_result r ON r.job_id = a.id)"
	    " INSERT INTO plain_verdict (change_id, accelerator, test_id, status, message, job_id, is_late, file, line)"
	    " SELECT ?1, ?2, test_id, 'MISS', 'failed in attempt ' || run_attempt || ', and not in the report of "
	    "attempt '"
	    "  || last_attempt, last_id, is_late, file, line FROM named WHERE run_attempt < last_attempt AND age = 1"
	    "  AND status = 'FAIL' ON CONFLICT DO NOTHING",
	    V_INT(change_id), V_TEXT(accelerator));
	db_exec(d,
	    "INSERT INTO plain_verdict (change_id, accelerator, test_id, status, message, job_id, is_late, file, line)"
	    " SELECT v.change_id, v.accelerator, v.test_id, v.status, v.message, v.job_id, v.is_late, v.file, v.line"
	    " FROM verdict v JOIN test t ON t.id = v.test_id WHERE v.change_id = ?1 AND v.accelerator = ?2"
	    " AND t.suite IN ('CI', 'dispatch')" WORSE,
	    V_INT(change_id), V_TEXT(accelerator));
	db_exec(d,
	    "UPDATE plain_verdict SET status = 'SKIP', message = 'not supported by this accelerator', file = NULL,"
	    " line = NULL WHERE change_id = ?1 AND accelerator = ?2 AND test_id IN (SELECT t.id FROM accelerator a,"
	    " json_each(a.skip) s JOIN test t ON t.suite || '/' || t.name = s.value WHERE a.name = ?2)",
	    V_INT(change_id), V_TEXT(accelerator));
}

/* ---- the comparison ---- */

#define CELL(x)                                                                                                        \
	x ".change_id, " x ".accelerator, " x ".test_id, " x ".status, " x ".message, " x ".job_id, " x ".is_late, " x \
	  ".file, " x ".line"
#define RESULT(x)                                                                                                      \
	x ".job_id, " x ".ordinal, " x ".test_id, " x ".status, " x ".duration_ms, " x ".message, " x ".number, " x    \
	  ".file, " x ".line"
/* Each of the two is read once. */
#define DIFFER(a, b)                                                                                                   \
	"WITH a AS MATERIALIZED (" a "), b AS MATERIALIZED (" b                                                        \
	") SELECT (SELECT COUNT(*) FROM (SELECT * FROM a EXCEPT SELECT * FROM b) x)"                                   \
	" + (SELECT COUNT(*) FROM (SELECT * FROM b EXCEPT SELECT * FROM a) y)"

static void assert_none(struct txn *d, const char *what, int64_t n)
{
	if (n != 0 || db_status(d))
		fail_msg("seed %u: %s: %d differ %s", seed, what, (int)n, db_status(d) ? db_why(d)->text : "");
}

/* The cells as numbers are those of the table. */
static void compare_sets(struct txn *d, int64_t change_id, const char *accelerator)
{
	struct cell_sets all, one;
	const struct cell_set *s;
	struct rows *r;
	size_t n = 0;

	cell_sets_read(d->view, change_id, NULL, &all);
	cell_sets_read(d->view, change_id, accelerator, &one);
	s = cell_sets_find(&all, accelerator);
	assert_int_equal(one.n, s ? 1 : 0);
	assert_true(!s || one.at[0].n == s->n);
	r = db_rows(d,
	    "SELECT test_id, status, COALESCE(job_id, 0), attribution IS NULL FROM cell WHERE change_id = ?1"
	    " AND accelerator = ?2",
	    V_INT(change_id), V_TEXT(accelerator));
	while (rows_next(r)) {
		const struct cell *c = s ? cell_set_find(s, rows_int(r, 0)) : NULL;

		assert_non_null(c);
		assert_ptr_not_equal(cell_set_find(&one.at[0], rows_int(r, 0)), NULL);
		assert_string_equal(test_status_name((enum test_status)c->status), rows_text(r, 1));
		assert_int_equal(c->has_job, rows_int(r, 2) != 0);
		assert_int_equal(c->attribution == N_ATTRIBUTIONS, rows_int(r, 3));
		if (!c->is_row)
			assert_int_equal(s->parts[c->part].job_id, rows_int(r, 2));
		n++;
	}
	assert_int_equal(s ? s->n : 0, n);
	assert_int_equal(cell_sets_n_tests(&all),
	    db_int(d, -1, "SELECT COUNT(DISTINCT test_id) FROM cell WHERE change_id = ?1 AND job_id IS NOT NULL",
		V_INT(change_id)));
	cell_sets_release(&all);
	cell_sets_release(&one);
}

/* To read a row by itself is slow. A step reads one of N_SHARES shares of the tests in this way, and the end of a history all. */
enum { N_SHARES = 4 };
#define IN_SHARE "p.test_id % ?1 = ?2"

static int compare_single(struct txn *d, void *with)
{
	const int64_t n_shares = *(const int64_t *)with, share = chance((uint32_t)n_shares);

	assert_none(d, "single cells",
	    db_int(d, -1,
		DIFFER("SELECT " CELL("v") " FROM plain_verdict p CROSS JOIN cell v ON v.change_id = p.change_id"
					   " AND v.accelerator = p.accelerator AND v.test_id = p.test_id"
					   " WHERE " IN_SHARE,
		    "SELECT " CELL("p") " FROM plain_verdict p WHERE " IN_SHARE),
		V_INT(n_shares), V_INT(share)));
	assert_none(d, "cells of a test",
	    db_int(d, -1,
		DIFFER("SELECT " CELL("v") " FROM (SELECT DISTINCT change_id, test_id FROM plain_verdict) p"
					   " CROSS JOIN cell v ON v.change_id = p.change_id AND v.test_id = p.test_id"
					   " WHERE " IN_SHARE,
		    "SELECT " CELL("p") " FROM plain_verdict p WHERE " IN_SHARE),
		V_INT(n_shares), V_INT(share)));
	assert_none(d, "single results",
	    db_int(d, -1,
		DIFFER("SELECT " RESULT("v") " FROM (SELECT DISTINCT job_id, test_id FROM plain_result) p"
					     " CROSS JOIN job_test v ON v.job_id = p.job_id AND v.test_id = p.test_id"
					     " WHERE " IN_SHARE,
		    "SELECT " RESULT("p") " FROM plain_result p WHERE " IN_SHARE),
		V_INT(n_shares), V_INT(share)));
	return 0;
}

static int compare(struct txn *d, void *with)
{
	struct rows *r = db_rows(d, "SELECT id FROM change");
	int64_t from = chance(TESTS_MAX);
	int64_t changes[16];
	size_t n = 0;

	(void)with;
	while (rows_next(r) && n < ARRAY_LEN(changes))
		changes[n++] = rows_int(r, 0);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < N_NAMES; k++) {
			derive_plain(d, changes[i], NAMES[k]);
			compare_sets(d, changes[i], NAMES[k]);
			assert_none(d, "cells of an accelerator",
			    db_int(d, -1,
				DIFFER("SELECT " CELL("v") " FROM cell v WHERE v.change_id = ?1 AND v.accelerator = ?2",
				    "SELECT " CELL(
					"p") " FROM plain_verdict p WHERE p.change_id = ?1 AND p.accelerator = ?2"),
				V_INT(changes[i]), V_TEXT(NAMES[k])));
		}
	assert_none(d, "cells of a change",
	    db_int(d, -1,
		DIFFER("SELECT " CELL("v") " FROM change c CROSS JOIN cell v ON v.change_id = c.id",
		    "SELECT " CELL("p") " FROM plain_verdict p")));
	assert_none(d, "numbers of cells",
	    db_int(d, -1,
		"SELECT (SELECT COUNT(*) FROM change c CROSS JOIN cell v ON v.change_id = c.id)"
		" - (SELECT COUNT(*) FROM plain_verdict)"));
	assert_none(d, "results of a job",
	    db_int(d, -1,
		DIFFER("SELECT " RESULT("v") " FROM job j CROSS JOIN job_test v ON v.job_id = j.id",
		    "SELECT " RESULT("p") " FROM plain_result p")));
	assert_none(d, "results from a place on",
	    db_int(d, -1,
		DIFFER("SELECT " RESULT("v") " FROM job j CROSS JOIN job_test v ON v.job_id = j.id AND v.ordinal >= ?1",
		    "SELECT " RESULT("p") " FROM plain_result p WHERE p.ordinal >= ?1"),
		V_INT(from)));
	assert_none(d, "counts",
	    db_int(d, -1,
		"SELECT (SELECT COUNT(*) FROM plain_result) - (SELECT COALESCE(SUM(n_tests), 0) FROM job)"
		" + (SELECT COUNT(*) FROM plain_result) - (SELECT COUNT(*) FROM job j CROSS JOIN job_test v ON "
		"v.job_id = j.id)"));
	return 0;
}

/* ---- answers in pages ---- */

static json_t *ask_change(const char *head, const struct verdict_choice *choice)
{
	struct get_change g = {.now_ms = T0, .repository = UPSTREAM, .head_sha = head, .choice = choice};
	json_t *v;
	char *text;

	ASK_OK(store_get_change, &g);
	text = change_json(g.view, "https://outpost.example.org", choice);
	assert_int_equal(json_parse(text, strlen(text), &v, NULL), 0);
	free(text);
	change_view_free(g.view);
	return v;
}

/* An answer with a limit reads a part of the cells. All pages together list the cells of the answer without a limit, and are
 * equal to it in everything else. */
static void compare_pages(const char *head)
{
	struct verdict_choice choice = {
	    .statuses = chance(2) ? 0 : chance(64), .attributions = chance(4) ? 0 : chance(32)};
	json_t *whole = ask_change(head, &choice), *listed = json_array();
	struct buf after = BUF_INIT(2000);
	size_t n_pages = 0;
	bool is_more = true;

	choice.limit = 1 + chance(50);
	json_object_del(whole, "next");
	while (is_more) {
		json_t *page = ask_change(head, &choice);
		const char *next = json_string_value(json_object_get(page, "next"));

		is_more = next != NULL;
		buf_clear(&after);
		if (is_more)
			assert_int_equal(base64url_decode(next, strlen(next), &after), 0);
		choice.after = buf_str(&after);
		choice.after_bytes = after.len;
		assert_true(!is_more || json_array_size(json_object_get(page, "verdicts")) == choice.limit);
		json_array_extend(listed, json_object_get(page, "verdicts"));
		json_object_del(page, "next");
		json_object_set(page, "verdicts", json_object_get(whole, "verdicts"));
		assert_true(json_equal(page, whole));
		json_decref(page);
		assert_true(++n_pages < 1000);
	}
	if (!json_equal(listed, json_object_get(whole, "verdicts")))
		fail_msg("seed %u: the pages list other cells", seed);
	json_decref(listed);
	json_decref(whole);
	buf_release(&after);
}

/* ---- a random vendor ---- */

struct content {
	struct test_result tests[TESTS_MAX];
	char names[TESTS_MAX][32];
	size_t n;
	bool is_red;
};

/* A job's list changes little from one report to the next; a hostile one is new each time. */
static void fill(struct content *c, uint32_t job)
{
	static const char *const suites[] = {"unit", "model", "build"};
	static const enum test_status rare[] = {TEST_SKIP, TEST_DONE, TEST_FAIL, TEST_ERROR, TEST_MISS};
	bool is_hostile = chance(12) == 0, is_green = chance(3) == 0;

	c->n = chance(5) ? job == 2 ? 5 : 40 : chance(TESTS_MAX);
	c->is_red = false;
	for (size_t i = 0; i < c->n; i++) {
		struct test_result *t = &c->tests[i];

		snprintf(c->names[i], sizeof(c->names[i]), is_hostile ? "h%u" : "t%u",
		    is_hostile ? (unsigned)chance(100000) : (unsigned)(chance(40) ? i + job * 3 : chance(80)));
		*t = (struct test_result){.suite = (char *)suites[i % 3],
		    .name = c->names[i],
		    .dtype = (char *)(i % 7 == 0 ? "float16" : NULL),
		    .status = is_green || chance(6) ? TEST_PASS : rare[chance(ARRAY_LEN(rare))],
		    .duration_ms = chance(4) ? (int64_t)chance(100000) : -1};
		if (test_status_is_red(t->status)) {
			t->message = (char *)"it differs";
			t->file = (char *)"test/a.py";
			t->line = 7;
			c->is_red = true;
		} else if (t->status == TEST_SKIP && chance(2)) {
			t->message = (char *)"needs a network";
		}
		t->has_number = t->status == TEST_DONE && chance(2);
		t->number = t->has_number ? 4.5 : 0;
	}
}

static void note(int64_t job_id, const struct content *c)
{
	in_writer(add_plain, &(struct reported){job_id, c->tests, c->n});
}

static int64_t now;

static void report(const char *head, const char *accelerator)
{
	struct content c;
	uint32_t job = chance(N_JOBS);
	char *id = rig_dispatch_id(head, accelerator);
	struct job_report j = {.status = chance(5) ? JOB_COMPLETED : JOB_IN_PROGRESS,
	    .workflow = (char *)"CI",
	    .name = (char *)JOBS[job],
	    .run_id = (char *)"1",
	    .run_attempt = 1 + chance(4)};
	struct report_job op = {.dispatch_id = id, .report = &j, .accelerator = accelerator, .now_ms = now};

	if (j.status == JOB_COMPLETED) {
		fill(&c, job);
		j.tests = c.tests;
		j.n_tests = c.n;
		j.conclusion = (char *)(c.is_red || chance(10) == 0 ? "failure" : "success");
		j.digest[0] = (uint8_t)chance(3);
	}
	DO_OK(store_report_job, &op);
	if (op.outcome == REPORT_RECORDED && j.status == JOB_COMPLETED) {
		note(op.job_id, &c);
		if (chance(4) == 0) {
			struct put_report p = {.job_id = op.job_id, .now_ms = now};

			fill(&c, job);
			p.tests = c.tests;
			p.n_tests = c.n;
			DO_OK(store_put_report, &p);
			if (p.outcome == REPORT_RECORDED)
				note(op.job_id, &c);
		}
	}
	free(id);
}

static int require_suites(struct txn *d, void *with)
{
	(void)with;
	db_exec(d, "UPDATE accelerator SET required_suites = '[\"unit\", \"build\", \"no such suite\"]'");
	return 0;
}

static void mirror(bool has_skips)
{
	struct accelerator list[N_NAMES];
	struct mirror_registry m = {.list = list, .n = N_NAMES, .now_ms = now};

	for (size_t i = 0; i < N_NAMES; i++)
		list[i] = (struct accelerator){.name = (char *)NAMES[i],
		    .title = (char *)NAMES[i],
		    .level = LEVEL_2,
		    .oncall = no_names,
		    .must_pass = has_skips ? needed_tests : no_names,
		    .skip = has_skips && i == 0 ? unsupported : no_names};
	DO_OK(store_mirror_registry, &m);
	if (has_skips)
		in_writer(require_suites, NULL);
}

static void a_random_history_is_equal_in_plain_tables(void **state)
{
	static const char *const heads[] = {HEAD_A, HEAD_B};
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), GITHUB_WANT("tpu", "google/pytorch")};
	int64_t n_shares = N_SHARES, all = 1;

	seed = (uint32_t)(uintptr_t)*state;
	cells_at_once = seed % 2 ? 7 : 1000;
	now = T0;
	in_writer(make_plain, NULL);
	mirror(false);
	for (int i = 0; i < 2; i++)
		rig_apply(&(struct rig_plan){.kind = PLAN_START,
		    .number = i + 1,
		    .head = heads[i],
		    .event_ms = now,
		    .wants = wants,
		    .n_wants = N_NAMES});
	free(rig_send(now));
	for (int step = 0; step < STEPS; step++) {
		uint32_t what = chance(20);
		int pull = (int)chance(2);

		now += chance(60) * MINUTE;
		if (what == 0) {
			mirror(chance(2));
		} else if (what == 1) {
			rig_apply(&(struct rig_plan){.kind = PLAN_START,
			    .number = pull + 1,
			    .head = heads[pull],
			    .event_ms = now,
			    .starts_round = true,
			    .action = "reopened",
			    .wants = wants,
			    .n_wants = N_NAMES});
			free(rig_send(now));
		} else if (what == 2) {
			struct expire_dispatches e = {.now_ms = now};

			DO_OK(store_expire_dispatches, &e);
		} else {
			report(heads[pull], NAMES[chance(N_NAMES)]);
		}
		in_writer(compare, NULL);
		in_writer(compare_single, &n_shares);
		if (step % 8 == 7)
			compare_pages(heads[chance(2)]);
	}
	in_writer(compare_single, &all);
	assert_packed_rules();
}

/* ---- damage ---- */

static int64_t damaged_job;

static int damage(struct txn *d, void *with)
{
	db_exec_values(d, with, VALUES(V_INT(damaged_job)));
	return 0;
}

/* Returns the error, and its text in *ret_why. */
static int ask_job(int64_t id, char **ret_why)
{
	struct get_job g = {.id = id};
	int err = ASK(store_get_job, &g);

	*ret_why = xstrdup(g.q.why.text);
	job_detail_free(g.job);
	return err;
}

/* A damaged row is an error that names its job; other jobs stay readable, and new ones are stored. */
static void damage_is_an_error_that_names_the_job(void **state)
{
	static const char *const DAMAGES[] = {
	    "UPDATE packed_job SET cells = x'00' WHERE job_id = ?1",
	    "UPDATE packed_job SET cells = substr(cells, 1, length(cells) - 1) WHERE job_id = ?1",
	    "UPDATE packed_job SET cells = (SELECT o.cells FROM packed_job o WHERE o.job_id <> ?1 AND o.list_id = "
	    "list_id"
	    " LIMIT 1) WHERE job_id = ?1",
	    "UPDATE packed_job SET n = n + 1 WHERE job_id = ?1",
	    "UPDATE packed_job SET list_id = 12345 WHERE job_id = ?1",
	    "UPDATE packed_job SET list_id = (SELECT id FROM test_list WHERE n <> packed_job.n LIMIT 1) WHERE job_id = "
	    "?1",
	    "UPDATE packed_job SET list_id = (SELECT id FROM test_list WHERE n = packed_job.n AND id <> list_id LIMIT "
	    "1)"
	    " WHERE job_id = ?1",
	    "UPDATE packed_job SET first = first + 1 WHERE job_id = ?1",
	};
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct test_result tests[] = {
	    {.suite = (char *)"unit", .name = (char *)"a", .status = TEST_PASS, .duration_ms = 7},
	    {.suite = (char *)"unit", .name = (char *)"b", .status = TEST_PASS, .duration_ms = 9},
	    {.suite = (char *)"unit", .name = (char *)"c", .status = TEST_PASS, .duration_ms = 9}};
	char *why, *id, *name = NULL;
	int64_t other = 0;

	(void)state;
	ONLY_ON_SQLITE(); /* the views of PostgreSQL read the arrays beside these bytes */
	now = T0;
	cells_at_once = 1000;
	mirror(false);
	rig_apply(
	    &(struct rig_plan){.kind = PLAN_START, .head = HEAD_A, .event_ms = now, .wants = wants, .n_wants = 1});
	free(rig_send(now));
	id = rig_dispatch_id(HEAD_A, "npu");
	for (int i = 0; i < (int)ARRAY_LEN(DAMAGES) + 3; i++) {
		struct job_report j = {.status = JOB_COMPLETED,
		    .conclusion = (char *)"success",
		    .workflow = (char *)"CI",
		    .run_id = (char *)"1",
		    .run_attempt = 1,
		    .tests = i == 2 ? tests + 1 : tests,
		    .n_tests = i == 1 ? 1 : 2,
		    .digest = {(uint8_t)i}};
		struct report_job op = {.dispatch_id = id, .report = &j, .accelerator = "npu", .now_ms = now};

		j.name = xasprintf("job %d", i);
		DO_OK(store_report_job, &op);
		assert_int_equal(op.outcome, REPORT_RECORDED);
		free(j.name);
		if (i < 3) {
			other = op.job_id;
			continue;
		}
		damaged_job = op.job_id;
		free(name);
		name = xasprintf("the packed results of job %d are damaged", (int)damaged_job);
		assert_int_equal(ask_job(damaged_job, &why), 0);
		free(why);
		in_writer(damage, (void *)DAMAGES[i - 3]);
		assert_int_equal(ask_job(damaged_job, &why), ERR_INVALID);
		assert_non_null(strstr(why, name));
		free(why);
		assert_int_equal(ask_job(other, &why), 0);
		free(why);
		in_writer(damage, (void *)"UPDATE job SET is_counted = 0 WHERE id = ?1");
	}
	free(id);
	free(name);
}

enum { RUNS_MAX = 100 };

int main(void)
{
	const char *runs = getenv("OUTPOST_PACKED_RUNS"); /* how many histories */
	size_t n = runs ? strtoul(runs, NULL, 10) : 6;
	struct CMUnitTest tests[1 + RUNS_MAX] = {
	    cmocka_unit_test_setup_teardown(damage_is_an_error_that_names_the_job, rig_setup, rig_teardown)};

	n = n < RUNS_MAX ? n : RUNS_MAX;
	for (size_t i = 1; i <= n; i++)
		tests[i] = (struct CMUnitTest){.name = "a_random_history_is_equal_in_plain_tables",
		    .test_func = a_random_history_is_equal_in_plain_tables,
		    .setup_func = rig_setup,
		    .teardown_func = rig_teardown,
		    .initial_state = (void *)i};
	return _cmocka_run_group_tests("histories", tests, 1 + n, NULL, NULL);
}
