/* Writes a database as after a busy year, for tests/bench/pages.mjs: pushes of main and pull requests × accelerators × jobs ×
 * tests over sixty days, periodic runs with their numbers, open pull requests, running work.
 *
 *   fill FILE|URL RESULTS          URL: of an empty database of PostgreSQL
 *
 * The store's own code writes the jobs with their packed results, and the derived rows (cells, runs, days, numbers, episodes,
 * history). This program inserts the dispatches directly. */

#include "db/counters.h"
#include "db/schema.h"
#include "history/days.h"
#include "history/run_note.h"
#include "model/states.h"
#include "store/branch_commits.h"
#include "store/changes.h"
#include "store/jobs.h"
#include "verdict/verdicts.h"

#define UPSTREAM "pytorch/pytorch"

enum {
	ACCELERATORS = 20,
	JOBS = 3, /* of an accelerator and a change */
	TESTS = 2000,
	DAYS = 60,
	PUSHES_OF_TEN = 4,
	OPEN_PULLS = 300,
	HELD = 40,
	BATCH = 10, /* changes in a transaction */
	RED_OF_1000 = 1,
};

static struct db *db;
static bool is_file;
static struct txn *txn;
static char names[ACCELERATORS][32];
static int64_t first_ms, n_jobs;

static void check(void)
{
	if (!db_status(db))
		return;
	fprintf(stderr, "fill: %s\n", db_why(db)->text);
	exit(1);
}

static void sha_of(int64_t n, char *out)
{
	snprintf(out, 41, "%08llx%032llx", (unsigned long long)(n * 2654435761 % 4294967296), (unsigned long long)n);
}

/* The tests of each job, in the order of its report. Their statuses, durations and numbers are set for each report. */
static struct test_result tests[JOBS][TESTS];

static void name_tests(void)
{
	/* one suite after the other, in each job */
	static const struct {
		const char *suite;
		int n;
	} SUITES[] = {{"build", 1}, {"unit", 1460}, {"model", 340}, {"benchmark", 20}, {"integration", 179}};

	for (int job = 0; job < JOBS; job++)
		for (size_t s = 0, at = 0; s < ARRAY_LEN(SUITES); s++)
			for (int i = 0; i < SUITES[s].n; i++, at++)
				tests[job][at] = (struct test_result){.suite = (char *)SUITES[s].suite,
				    .name = xasprintf("test_%s_%d.TestCase.test_case_%d", SUITES[s].suite, job, i)};
}

/* A test takes about as long each time: up to an eighth more. Most are short. */
static int64_t duration_of(uint32_t i, uint32_t job)
{
	uint32_t usual = i * 2654435761u >> 16, noise = (i * 40503u + job * 2246822519u) * 3266489917u >> 16;
	int64_t ms = usual % 100 < 95 ? usual % 97 : 1000 + usual % 5000;

	return ms + ms * (noise % 256) / 2048;
}

/* Chooses the results of a report. Returns whether any of them is red. */
static bool choose_results(struct test_result *list, int64_t job)
{
	/* one report in four has red tests, so that one result in a thousand is red */
	bool is_red = job % 4 == 0;
	bool has_red = false;

	for (int i = 0; i < TESTS; i++) {
		struct test_result *t = &list[i];
		bool fails = is_red && (i * 7919 + job * 104729) % 1000 < 4 * RED_OF_1000;

		has_red |= fails;
		t->status = fails ? TEST_FAIL : i / 8 % 31 == 0 ? TEST_SKIP : TEST_PASS; /* often several in a row */
		t->duration_ms = duration_of((uint32_t)i, (uint32_t)job);
		t->message = fails ? (char *)"AssertionError: tensors are not close" : NULL;
		t->file = fails ? (char *)"test/test_ops.py" : NULL;
		t->line = fails ? 412 : 0;
		t->has_number = list == tests[JOBS - 1] && str_eq(t->suite, "benchmark");
		t->number = t->has_number ? 100 + (double)(i * job % 17) : 0;
		t->unit = t->has_number ? (char *)"tokens/s" : NULL;
	}
	return has_red;
}

static void put_accelerators(int64_t now_ms)
{
	for (int i = 0; i < ACCELERATORS; i++) {
		snprintf(names[i], sizeof(names[i]), "vendor-%d", i);
		db_exec(txn,
		    "INSERT INTO accelerator (name, title, level, oncall, is_gone, first_ms, "
		    "last_report_ms)"
		    " VALUES (?1, ?1, 2, '[]', 0, ?2, ?3)",
		    V_TEXT(names[i]), V_INT(first_ms), V_INT(now_ms));
	}
}

static void put_dispatch(const char *id, int64_t change_id, const char *accelerator, int64_t number, int64_t at_ms)
{
	db_exec(txn,
	    "INSERT INTO dispatch (id, accelerator, runner, change_id, kind, target, target_key, round, round_ms,"
	    " is_current, state, is_held_for_good, number, delivery_guid, event_type, sent_action, original_action,"
	    " acknowledge_ms, start_ms, finish_ms, created_ms, sent_ms, finished_ms) VALUES (?1, ?2, 'ci', ?3,"
	    " 'github', ?2 || '/ci', ?2 || '/ci', 1, ?4, 1, 'done', 0, ?5, ?1, 'push', 'push', 'push', 600000,"
	    " 7200000, 21600000, ?4, ?4 + 500, ?4 + 3600000)",
	    V_TEXT(id), V_TEXT(accelerator), V_INT(change_id), V_INT(at_ms), V_INT(number));
}

/* Writes the report of a job. */
static void put_job(const struct job_place *at, int which, int64_t at_ms)
{
	static const char *const NAMES[JOBS] = {"test (1, 3)", "test (2, 3)", "test (3, 3)"};
	bool has_red = choose_results(tests[which], ++n_jobs);
	struct job_report begun = {.status = JOB_IN_PROGRESS,
	    .workflow = (char *)"ci",
	    .name = (char *)NAMES[which],
	    .run_id = (char *)at->dispatch_id,
	    .run_attempt = 1};
	struct job_report report = begun;
	struct job_record written;

	report.status = JOB_COMPLETED;
	report.conclusion = (char *)(has_red ? "failure" : "success");
	report.tests = tests[which];
	report.n_tests = TESTS;
	memcpy(report.digest, &n_jobs, sizeof(n_jobs));
	job_put(txn, at, &begun, at_ms + 60000 + n_jobs * 7919 % 600000);
	written = job_put(txn, at, &report, at_ms + 3600000);
	if (written.outcome != REPORT_RECORDED)
		exit(3);
}

static void attribute(int64_t change_id, const char *accelerator)
{
	static const char *const WHOSE[] = {"FLAKY", "NEW", "UNCLASSIFIED"};

	db_exec(txn,
	    "UPDATE verdict SET attribution = ?3 WHERE change_id = ?1 AND accelerator = ?2"
	    " AND attribution IS NOT NULL",
	    V_INT(change_id), V_TEXT(accelerator), V_TEXT(WHOSE[change_id % 3]));
}

static void put_run(int64_t change_id, const char *accelerator, int64_t number, bool is_push, int64_t at_ms)
{
	char id[64];
	struct job_place at = {.change_id = change_id,
	    .dispatch_id = id,
	    .accelerator = accelerator,
	    .runner = "ci",
	    .is_shown = true,
	    .is_push = is_push};

	snprintf(id, sizeof(id), "00000000-0000-4000-8000-%012lld", (long long)n_jobs);
	put_dispatch(id, change_id, accelerator, number, at_ms);
	for (int i = 0; i < JOBS; i++)
		put_job(&at, i, at_ms);
	verdicts_rebuild(txn, change_id, accelerator);
	attribute(change_id, accelerator);
	run_note(txn, change_id, accelerator, at_ms + 3600000);
	check();
}

static void put_pull(int64_t number, int64_t change_id, const char *sha, int64_t at_ms, bool is_open)
{
	char title[64];
	char *labels[] = {NULL};
	struct pull_info p = {.number = number,
	    .head_sha = (char *)sha,
	    .base_sha = (char *)sha,
	    .base_ref = (char *)"main",
	    .title = title,
	    .author = (char *)"alice",
	    .author_association = (char *)"MEMBER",
	    .labels = labels,
	    .is_open = is_open,
	    .updated_ms = at_ms};

	snprintf(title, sizeof(title), "Change number %lld", (long long)number);
	pull_put(txn, UPSTREAM, &p, change_id, at_ms);
}

static int64_t put_change(int64_t n, bool is_push, int64_t at_ms, bool is_open, int64_t *ret_number)
{
	char sha[41], before[41], title[64];
	struct change_facts f = {.kind = is_push ? CHANGE_PUSH : CHANGE_PULL_REQUEST,
	    .repository = UPSTREAM,
	    .head_sha = sha,
	    .ref = is_push ? "refs/heads/main" : NULL,
	    .title = title,
	    .author = "alice"};
	struct branch_commit c = {.sha = sha, .author = "alice", .title = title, .at_ms = at_ms};
	static int64_t last_push;
	int64_t id;

	sha_of(n, sha);
	snprintf(title, sizeof(title), "Change number %lld", (long long)n);
	id = change_put(txn, &f, at_ms);
	*ret_number = is_push ? 0 : n;
	if (is_push) {
		sha_of(last_push, before);
		branch_commits_put(txn, UPSTREAM, "main", last_push ? before : NULL, &c, 1);
		last_push = n;
	} else {
		put_pull(n, id, sha, at_ms, is_open);
	}
	return id;
}

static void put_nightly(int64_t day, int accelerator)
{
	int64_t at_ms = first_ms + day * DAY_MS + accelerator * 600000;
	char sha[41];
	struct change_facts f = {
	    .kind = CHANGE_NIGHTLY, .repository = UPSTREAM, .head_sha = sha, .ref = "refs/heads/main"};
	int64_t id;

	sha_of(1000000000 + day * ACCELERATORS + accelerator, sha);
	id = change_put(txn, &f, at_ms);
	db_exec(txn,
	    "INSERT INTO schedule_run (accelerator, due_ms, cause, state, upstream_sha, change_id, "
	    "started_ms)"
	    " VALUES (?1, ?2, 'schedule', 'dispatched', ?3, ?4, ?2)",
	    V_TEXT(names[accelerator]), V_INT(at_ms), V_TEXT(sha), V_INT(id));
	put_run(id, names[accelerator], 0, false, at_ms);
}

/* Held and running dispatches. */
static void put_work(int64_t now_ms)
{
	for (int i = 0; i < OPEN_PULLS + HELD; i++)
		db_exec(txn,
		    "INSERT INTO dispatch (id, accelerator, runner, change_id, kind, target, "
		    "target_key, round,"
		    " round_ms, is_current, state, is_held_for_good, number, delivery_guid, "
		    "event_type, sent_action,"
		    " original_action, acknowledge_ms, start_ms, finish_ms, created_ms) SELECT "
		    "'work-' || ?1,"
		    " 'vendor-' || (?1 % 20), 'lab', change_id, 'webhook', 'https://ci.example.org',"
		    " 'https://ci.example.org', 1, ?2, 1, ?3, 0, number, 'g' || ?1, "
		    "'pull_request', 'opened', 'opened', 0,"
		    " 0, 0, ?2 - ?1 * 1000 FROM pull ORDER BY number DESC LIMIT 1 OFFSET ?1",
		    V_INT(i), V_INT(now_ms), V_TEXT(i < HELD ? "held" : "running"));
}

static void begin(void)
{
	if (db_begin(db, DB_WRITER))
		check();
	txn = db_txn(db);
}

static void commit(void)
{
	int64_t left;

	check();
	counters_write(txn);
	if (db_commit(db) || (is_file && db_checkpoint(db, CHECKPOINT_PASSIVE, &left)))
		check();
}

int main(int argc, char **argv)
{
	int64_t now_ms = clock_wall_ms(), n_results, n_changes, day = 0, n = 0;
	struct error e = {0};

	log_setup(LOG_ERROR, LOG_TEXT);
	if (argc != 3 || parse_int64(argv[2], &n_results))
		return fprintf(stderr, "fill FILE|URL RESULTS\n"), 2;
	is_file = !db_is_server(argv[1]);
	if (db_open(argv[1], DB_WRITER, &db, &e) || db_migrate(db, &e) || days_fill(db, &e) || nightly_fill(db, &e))
		return fprintf(stderr, "fill: %s\n", e.text), 1;
	first_ms = day_of(now_ms - (DAYS - 1) * DAY_MS) * DAY_MS;
	n_changes = (n_results / (TESTS * JOBS) - DAYS * ACCELERATORS) / ACCELERATORS;
	if (n_changes < 1)
		n_changes = 1;
	begin();
	platform_tests_fill(txn); /* nothing is left to fill for the daemon */
	name_tests();
	put_accelerators(now_ms);
	for (n = 1; n <= n_changes; n++) {
		int64_t at_ms = first_ms + (now_ms - 7200000 - first_ms) / n_changes * n, number;
		bool is_push = n % 10 < PUSHES_OF_TEN;
		int64_t id = put_change(n, is_push, at_ms, n > n_changes - OPEN_PULLS, &number);

		for (int i = 0; i < ACCELERATORS; i++)
			put_run(id, names[i], number, is_push, at_ms);
		for (; day <= day_of(at_ms) - day_of(first_ms); day++)
			for (int i = 0; i < ACCELERATORS; i++)
				put_nightly(day, i);
		if (n % BATCH == 0) {
			commit();
			begin();
		}
	}
	put_work(now_ms);
	/* the daemon has nothing to send and nothing to ask GitHub */
	db_exec(txn, "DELETE FROM outbox");
	db_exec(txn, "DELETE FROM attribution_due");
	db_exec(txn, "UPDATE commits_between SET next_ms = NULL");
	commit();
	printf("{\"changes\": %lld, \"jobs\": %lld, \"results\": %lld}\n", (long long)n_changes, (long long)n_jobs,
	    (long long)n_jobs * TESTS);
	db_close(db);
	return 0;
}
