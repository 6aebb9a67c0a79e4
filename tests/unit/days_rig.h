/* Some days of random pushes: some accelerators test each, repeat it, and correct their reports later. Also the
 * database itself, so that tests can compare the store's answers with naive statements. */
#pragma once

#include "db/db.h"
#include "store_rig.h"

static char *no_names[] = {NULL};
static const char *const NAMES[] = {"gpu", "npu", "quiet"};
enum { N_NAMES = ARRAY_LEN(NAMES), N_PUSHES = 40 };

static uint32_t seed;

static inline uint32_t chance(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

static inline void mirror(enum level quiet)
{
	struct runner runners[N_NAMES];
	struct accelerator list[N_NAMES];
	struct mirror_registry m = {.list = list, .n = N_NAMES, .now_ms = T0};
	char repository[N_NAMES][32];

	for (int i = 0; i < N_NAMES; i++) {
		snprintf(repository[i], sizeof(repository[i]), "%s/ci", NAMES[i]);
		runners[i] = (struct runner){.name = (char *)"ci", .kind = RUNNER_GITHUB, .repository = repository[i]};
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

static inline const char *sha(int n)
{
	static char text[4][41];
	static int next;
	char *s = text[next++ % 4];

	snprintf(s, 41, "%040x", n + 1);
	return s;
}

static inline void push(int n, const char *ref, int64_t now_ms)
{
	struct plan_want wants[] = {
	    GITHUB_WANT("gpu", "gpu/ci"), GITHUB_WANT("npu", "npu/ci"), GITHUB_WANT("quiet", "quiet/ci")};
	struct push_commit commit = {
	    .sha = (char *)sha(n), .author = (char *)"alice", .title = (char *)"A commit", .at_ms = now_ms - MINUTE};
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
	struct apply_plan op = {.guid = guid, .body = "{}", .body_bytes = 2, .plan = &p, .now_ms = now_ms};

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

static inline void fill(struct content *c)
{
	static const char *const suites[] = {"unit", "model", "build", "benchmark", "own suite"};
	static const enum test_status statuses[] = {TEST_PASS, TEST_PASS, TEST_PASS, TEST_PASS, TEST_PASS, TEST_SKIP,
	    TEST_DONE, TEST_FAIL, TEST_ERROR, TEST_MISS};

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
static inline int64_t report(int n, const char *accelerator, enum job_status status, int attempt, int64_t now_ms)
{
	struct content c;
	struct job_report j = {.status = status,
	    .workflow = (char *)"CI",
	    .name = (char *)"test",
	    .run_id = (char *)"1",
	    .run_attempt = attempt};
	char *id = rig_dispatch_id(sha(n), accelerator);
	struct report_job op = {.dispatch_id = id, .report = &j, .accelerator = accelerator, .now_ms = now_ms};

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

static inline void put_document(int64_t job_id, int64_t now_ms)
{
	struct content c;
	struct put_report p = {.job_id = job_id, .now_ms = now_ms};

	fill(&c);
	p.tests = c.tests;
	p.n_tests = c.n;
	DO_OK(store_put_report, &p);
}

/* Pushes over days, each tested by some accelerators, repeated by some and corrected later. Returns the time after
 * them. */
static inline int64_t random_history(uint32_t from)
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
				report(n, NAMES[i], JOB_COMPLETED, 2, at + 3 * HOUR + chance(30) * HOUR);
		}
		now += chance(9) * HOUR;
	}
	return now;
}

/* ---- the database ---- */

/* A reader of the daemon, because only its connections have the table `cell`. */
static struct db *reader;

/* -1: no row, or NULL. */
static inline int64_t number_of(const char *sql)
{
	int64_t n = db_int_values(db_view(reader), -1, sql, VALUES());

	if (db_status(reader))
		fail_msg("%s: %s", sql, db_why(reader)->text);
	return n;
}

static inline void open_handle(void)
{
	char *path = rig_path();

	assert_int_equal(db_open(path, DB_READER, &reader, NULL), 0);
	free(path);
}

static inline void assert_no_row(const char *sql)
{
	if (number_of(sql) != -1)
		fail_msg("seed %u: a row is wrong: %s", (unsigned)seed, sql);
}

/* The writer itself, in a transaction; the store is closed. db_close(). */
static inline struct db *writer(void)
{
	struct db *d;
	char *path;

	rig_close();
	path = rig_path();
	assert_int_equal(db_open(path, DB_WRITER, &d, NULL), 0);
	free(path);
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	return d;
}
