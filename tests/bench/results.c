/* The cost of results in the writer: reports of many tests, one after the other, from the packed report to the verdicts and
 * the figures of the pages. Prints one line of JSON for each kind of report.
 *
 *   results FOLDER [JOBS] [TESTS]      FOLDER gets a database for each kind */

#include <time.h>

#include "db/schema.h"
#include "model/packed_tests.h"
#include "store/changes.h"
#include "store/dispatches.h"
#include "store/job_results.h"
#include "store/jobs.h"
#include "verdict/cells_moved.h"

#define UPSTREAM "pytorch/pytorch"

static struct db *db;
static struct txn *txn;

static void check(void)
{
	if (!db_status(db))
		return;
	fprintf(stderr, "results: %s\n", db_why(db)->text);
	exit(1);
}

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int64_t put_dispatch(int64_t i, int64_t at_ms, char *id)
{
	char sha[41];
	struct change_facts f = {
	    .kind = CHANGE_PULL_REQUEST, .repository = UPSTREAM, .head_sha = sha, .author = "alice"};
	int64_t change;

	snprintf(sha, sizeof(sha), "%040llx", (long long)i);
	snprintf(id, 64, "00000000-0000-4000-8000-%012lld", (long long)i);
	change = change_put(txn, &f, at_ms);
	db_exec(txn,
	    "INSERT INTO dispatch (id, accelerator, runner, change_id, kind, target, target_key, round, round_ms,"
	    " is_current, state, is_held_for_good, number, delivery_guid, event_type, sent_action, original_action,"
	    " acknowledge_ms, start_ms, finish_ms, created_ms, sent_ms, finished_ms) VALUES (?1, 'npu', 'ci', ?2, "
	    "'github',"
	    " 'a/b', 'a/b', 1, ?3, 1, 'done', 0, ?4, ?1, 'pull_request', 'opened', 'opened', 600000, 7200000, 21600000,"
	    " ?3, ?3, ?3)",
	    V_TEXT(id), V_INT(change), V_INT(at_ms), V_INT(i));
	return change;
}

struct kind {
	const char *name;
	int red_of_1000; /* tests */
	bool has_new_lists;
};

static void fill(struct test_result *tests, char (*names)[96], int n, int64_t job, const struct kind *k)
{
	for (int i = 0; i < n; i++) {
		bool is_red = k->red_of_1000 && (i * 7919 + job * 104729) % 1000 < k->red_of_1000;

		if (k->has_new_lists || job == 1)
			snprintf(names[i], sizeof(names[i]), "test_ops.TestCommonPRIVATEUSE1.test_case_%d_of_%lld", i,
			    k->has_new_lists ? (long long)job : 0);
		tests[i] = (struct test_result){.suite = (char *)"test_ops",
		    .name = names[i],
		    .status = is_red ? TEST_FAIL : TEST_PASS,
		    .duration_ms = (i * 37 + (i * job) % 11) % 900 < 850 ? (i * 37 + job * i % 11) % 90 : 1000 + i,
		    .message =
			is_red ? (char *)"AssertionError: Tensor-likes are not close! Greatest difference 0.25" : NULL,
		    .file = is_red ? (char *)"test/test_ops.py" : NULL,
		    .line = is_red ? 412 : 0};
	}
}

static void open_database(const char *path)
{
	struct error e = {0};

	unlink(path);
	if (db_open(path, DB_WRITER, &db, &e) || schema_apply(db, path, &e)) {
		fprintf(stderr, "results: %s\n", e.text);
		exit(1);
	}
	txn = db_txn(db);
	if (db_begin(db, DB_WRITER))
		check();
	db_exec(txn, "INSERT INTO accelerator (name, title, level, oncall, is_gone, first_ms, last_report_ms)"
		     " VALUES ('npu', 'NPU', 2, '[]', 0, 1, 1)");
	if (db_commit(db))
		check();
}

/* Attributes the cells that the report left, as evidence/ does. Returns the CPU time; *worst becomes that of the longest
 * transaction if it was longer. */
static double attribute_the_rest(int64_t change_id, int64_t now_ms, double *worst)
{
	struct cells_look *look = NULL;
	bool is_done = !db_has(txn, "SELECT 1 FROM attribution_due WHERE change_id = ?1", V_INT(change_id));
	double all = 0;

	while (!is_done) {
		double from = cpu_us(), one;

		if (db_begin(db, DB_WRITER))
			check();
		if (!look)
			look = cells_look_new(db_view(db), change_id, CELLS_LOOKED_AGAIN, now_ms);
		is_done = cells_look(look, txn, &(bool){false});
		if (db_commit(db))
			check();
		one = cpu_us() - from;
		all += one;
		*worst = one > *worst ? one : *worst;
	}
	cells_look_free(look);
	return all;
}

static void measure(const char *folder, const struct kind *k, int n_jobs, int n_tests)
{
	struct test_result *tests = xcalloc((size_t)n_tests, sizeof(*tests));
	char(*names)[96] = xcalloc((size_t)n_tests, sizeof(*names));
	char *path = xasprintf("%s/%s.db", folder, k->name);
	int64_t t0 = INT64_C(1760000000000), before, pages;
	double put = 0, move = 0, commit = 0, worst = 0;

	open_database(path);
	before = 0;
	for (int64_t i = 0; i <= n_jobs; i++) {
		struct job_report r = {.status = JOB_COMPLETED,
		    .conclusion = (char *)(k->red_of_1000 ? "failure" : "success"),
		    .workflow = (char *)"ci",
		    .name = (char *)"test",
		    .run_id = (char *)"1",
		    .run_attempt = 1,
		    .tests = tests,
		    .n_tests = (size_t)n_tests};
		struct job_place at = {.accelerator = "npu", .runner = "ci", .is_shown = true};
		struct job_record record;
		struct packed_tests packed;
		char id[64];
		double a, b, c, d, rest;

		fill(tests, names, n_tests, i + 1, k);
		packed_tests_make(&packed, tests, (size_t)n_tests); /* the daemon's pool does it */
		r.packed = &packed;
		if (db_begin(db, DB_WRITER))
			check();
		at.change_id = put_dispatch(i + 1, t0 + i * 1000, id);
		at.dispatch_id = id;
		r.digest[0] = (uint8_t)i;
		a = cpu_us();
		for (int64_t n_parts = 1; (record = job_put(txn, &at, &r, t0 + i * 1000)).outcome == REPORT_IN_PARTS;
		     n_parts++) {
			if (db_commit(db) || db_begin(db, DB_WRITER))
				check();
			b = cpu_us();
			put += i ? b - a : 0;
			worst = i && b - a > worst ? b - a : worst;
			job_results_go_on(&packed, n_parts);
			a = cpu_us();
		}
		b = cpu_us();
		cells_job_added(txn, at.change_id, "npu", CELLS_JOB_COMPLETED, record.job_id, t0 + i * 1000);
		c = cpu_us();
		if (db_commit(db))
			check();
		d = cpu_us();
		worst = i && d - a > worst ? d - a : worst;
		rest = attribute_the_rest(at.change_id, t0 + i * 1000, i ? &worst : &(double){0});
		packed_tests_release(&packed);
		if (i == 0) { /* the first report brings the list */
			before = db_file_bytes(db_view(db));
			continue;
		}
		put += b - a;
		move += c - b + rest;
		commit += d - c;
	}
	pages = db_file_bytes(db_view(db)) - before;
	check();
	printf("{\"kind\":\"%s\",\"results\":%lld,\"bytes\":%.2f,\"put_us\":%.3f,\"cells_us\":%.3f,\"commit_us\":%.3f,"
	       "\"longest_ms\":%.1f}\n",
	    k->name, (long long)n_jobs * n_tests, (double)pages / n_jobs / n_tests, put / n_jobs / n_tests,
	    move / n_jobs / n_tests, commit / n_jobs / n_tests, worst / 1000);
	db_close(db);
	free(tests);
	free(names);
	free(path);
}

int main(int argc, char **argv)
{
	static const struct kind KINDS[] = {
	    {"green", 0, false}, {"mixed", 1, false}, {"half-red", 500, false}, {"new-lists", 0, true}};
	int64_t n_jobs = 200, n_tests = 2000;

	if (argc < 2 || (argc > 2 && parse_int64(argv[2], &n_jobs)) || (argc > 3 && parse_int64(argv[3], &n_tests))) {
		fprintf(stderr, "usage: results FOLDER [JOBS] [TESTS]\n");
		return 2;
	}
	for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
		measure(argv[1], &KINDS[i], (int)n_jobs, (int)n_tests);
	return 0;
}
