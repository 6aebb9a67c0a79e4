/* Writes a database as after a busy year, for tests/bench/pages.mjs: pushes of main and pull requests × accelerators ×
 * suites over sixty days, periodic runs with their numbers, open pull requests, running work.
 *
 *   fill FILE RESULTS
 *
 * The store's own code makes the derived rows (cells, runs, days, numbers, episodes, history). This program inserts the
 * copied ones (changes, dispatches, jobs, results) directly. */

#include "db/schema.h"
#include "history/days.h"
#include "history/run_note.h"
#include "model/states.h"
#include "store/branch_commits.h"
#include "store/changes.h"
#include "verdict/verdicts.h"

#define UPSTREAM "pytorch/pytorch"

enum { ACCELERATORS = 8, TESTS = 250, DAYS = 60, PUSHES_OF_TEN = 4, OPEN_PULLS = 300, HELD = 40, BATCH = 50 };

static struct db *db;
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

static void put_tests(void)
{
	static const struct {
		const char *suite;
		int n;
	} SUITES[] = {{"build", 1}, {"unit", 180}, {"model", 40}, {"benchmark", 20}, {"integration", 9}};
	char name[64];

	for (size_t s = 0; s < ARRAY_LEN(SUITES); s++)
		for (int i = 0; i < SUITES[s].n; i++) {
			snprintf(name, sizeof(name), "test_%s.TestCase.test_case_%d", SUITES[s].suite, i);
			test_id_of(txn, SUITES[s].suite, name, NULL);
		}
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

/* A finished dispatch and its one job with all results. */
static int64_t put_job(int64_t change_id, const char *accelerator, int64_t number, bool is_push, int64_t at_ms)
{
	char id[64];
	int64_t job;

	snprintf(id, sizeof(id), "00000000-0000-4000-8000-%012lld", (long long)++n_jobs);
	db_exec(txn,
	    "INSERT INTO dispatch (id, accelerator, runner, change_id, kind, target, target_key, "
	    "round, round_ms,"
	    " is_current, state, is_held_for_good, number, delivery_guid, event_type, sent_action, "
	    "original_action,"
	    " acknowledge_ms, start_ms, finish_ms, created_ms, sent_ms, finished_ms) VALUES (?1, "
	    "?2, 'ci', ?3,"
	    " 'github', ?2 || '/ci', ?2 || '/ci', 1, ?4, 1, 'done', 0, ?5, ?1, 'push', 'push', "
	    "'push', 600000,"
	    " 7200000, 21600000, ?4, ?4 + 500, ?4 + 3600000)",
	    V_TEXT(id), V_TEXT(accelerator), V_INT(change_id), V_INT(at_ms), V_INT(number));
	job = db_exec_int(txn, 0,
	    "INSERT INTO job (change_id, dispatch_id, accelerator, runner, workflow, name, run_id, "
	    "run_attempt,"
	    " status, conclusion, verdict, is_current, is_late, is_push, digest, n_tests, n_red, "
	    "started_ms,"
	    " completed_ms, reported_ms) VALUES (?1, ?2, ?3, 'ci', 'ci', 'test', ?2, 1, "
	    "'completed', 'success',"
	    " 'PASS', 1, 0, ?4, x'00', ?5, 0, ?6, ?7, ?7) RETURNING id",
	    V_INT(change_id), V_TEXT(id), V_TEXT(accelerator), V_INT(is_push), V_INT(TESTS),
	    V_INT(at_ms + 60000 + n_jobs * 7919 % 600000), V_INT(at_ms + 3600000));
	/* One run in twenty has red tests. */
	db_exec(txn,
	    "INSERT INTO result (job_id, ordinal, test_id, status, duration_ms, message, number, "
	    "unit)"
	    " SELECT ?1, id, id, CASE WHEN ?1 % 20 = 0 AND (id + ?1) % 97 = 0 THEN 'FAIL' WHEN id "
	    "% 31 = 0 THEN 'SKIP'"
	    " ELSE 'PASS' END, id * 13 % 5000, CASE WHEN ?1 % 20 = 0 AND (id + ?1) % 97 = 0 THEN"
	    " 'AssertionError: tensors are not close' END, CASE suite WHEN 'benchmark' THEN 100 + "
	    "(id * ?1) % 17 END,"
	    " CASE suite WHEN 'benchmark' THEN 'tokens/s' END FROM test WHERE id <= ?2",
	    V_INT(job), V_INT(TESTS));
	db_exec(txn,
	    "UPDATE job SET (n_tests_fail, n_tests_pass, n_tests_skip, n_tests_error, "
	    "n_tests_miss, n_tests_done,"
	    " n_red) = (SELECT SUM(status = 'FAIL'), SUM(status = 'PASS'), SUM(status = 'SKIP'), "
	    "0, 0, 0,"
	    " SUM(status = 'FAIL') FROM result WHERE job_id = ?1) WHERE id = ?1",
	    V_INT(job));
	return job;
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
	static const struct test_result has_numbers = {.has_number = true};
	int64_t job = put_job(change_id, accelerator, number, is_push, at_ms);

	number_days_note(txn, job, &has_numbers, 1, at_ms + 3600000);
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
		    " 'vendor-' || (?1 % 8), 'lab', change_id, 'webhook', 'https://ci.example.org',"
		    " 'https://ci.example.org', 1, ?2, 1, ?3, 0, number, 'g' || ?1, "
		    "'pull_request', 'opened', 'opened', 0,"
		    " 0, 0, ?2 - ?1 * 1000 FROM pull ORDER BY number DESC LIMIT 1 OFFSET ?1",
		    V_INT(i), V_INT(now_ms), V_TEXT(i < HELD ? "held" : "running"));
}

static void begin(void)
{
	int64_t left;

	if (db_checkpoint(db, CHECKPOINT_PASSIVE, &left))
		check();
	if (db_begin(db, DB_WRITER))
		check();
	txn = db_txn(db);
}

int main(int argc, char **argv)
{
	int64_t now_ms = clock_wall_ms(), n_results, n_changes, day = 0, n = 0;
	struct error e = {0};

	log_setup(LOG_ERROR, LOG_TEXT);
	if (argc != 3 || parse_int64(argv[2], &n_results))
		return fprintf(stderr, "fill FILE RESULTS\n"), 2;
	if (db_open(argv[1], DB_WRITER, &db, &e) || schema_apply(db, argv[1], &e) || days_fill(db, &e) ||
	    nightly_fill(db, &e))
		return fprintf(stderr, "fill: %s\n", e.text), 1;
	first_ms = day_of(now_ms - (DAYS - 1) * DAY_MS) * DAY_MS;
	n_changes = (n_results / TESTS - DAYS * ACCELERATORS) / ACCELERATORS;
	begin();
	put_tests();
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
			if (db_commit(db))
				check();
			begin();
		}
	}
	put_work(now_ms);
	check();
	if (db_commit(db))
		check();
	printf("{\"changes\": %lld, \"jobs\": %lld, \"results\": %lld}\n", (long long)n_changes, (long long)n_jobs,
	    (long long)n_jobs * TESTS);
	db_close(db);
	return 0;
}
