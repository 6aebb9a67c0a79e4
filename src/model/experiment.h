/* An experiment: named tests run again at a named commit, to prove the cause of a failure.
 *
 * A runner gets the request: `outpost.experiment` of a repository_dispatch or webhook, and the same object in the lease
 * of outpost-runner.
 *
 * Thread: any. Plain data and pure functions; the owner of a struct releases it. */
#pragma once

#include "model/test_result.h"

/* Whether Outpost may run red tests of a runner again (`reruns` in the accelerator's file). */
enum reruns {
	RERUNS_NONE,  /* it may not */
	RERUNS_TESTS, /* the runner runs just the named tests */
	RERUNS_WHOLE, /* the runner runs everything again */
	N_RERUNS
};
WORDS_DECLARE(reruns);

/* Which of the two commits of a pull request an experiment tests. */
enum experiment_side { EXPERIMENT_HEAD, EXPERIMENT_BASE, N_EXPERIMENT_SIDES };
#define RECORD_C_EXPERIMENT_SIDE enum experiment_side
#define RECORD_T_EXPERIMENT_SIDE RECORD_WORD, &experiment_side_words
WORDS_DECLARE(experiment_side);

/* The sides that would help to decide a red cell, as bits (verdict.needs). */
enum {
	NEEDS_HEAD = 1 << 0,
	NEEDS_BASE = 1 << 1,
	/* in addition: the failure looks like that of a bad machine, which is bad for hours. A sample of such tests runs first. */
	NEEDS_GOOD_MACHINE = 1 << 2,
};

enum { STRESS_ROUNDS_MAX = 20 }; /* runs of a test on each side that one comment may request */

/* The bounds of a request. A longer list, name or text is refused. */
enum {
	EXPERIMENT_TESTS_MAX = 500,
	EXPERIMENT_JOBS_MAX = 100,
	EXPERIMENT_TEST_MAX_BYTES = REPORT_SUITE_MAX_BYTES + 1 + REPORT_NAME_MAX_BYTES,
	EXPERIMENT_JOB_MAX_BYTES = 256,
	EXPERIMENT_ENVIRONMENT_MAX_BYTES = 16 * 1024,
};

struct experiment_request {
	int64_t id;
	char *of; /* the dispatch that it explains */
	enum experiment_side side;
	char *sha;         /* the commit to test */
	char **tests;      /* "suite/test", NULL-terminated, never NULL */
	char **jobs;       /* names of the jobs in which they failed; NULL-terminated, never NULL */
	char *environment; /* JSON: the failed job's report about its machine; NULL: none */
};
void experiment_request_release(struct experiment_request *r);

/* {"id","of","side","sha","tests","jobs","environment"} with the first n_tests tests at most; "truncated": true
 * if that leaves some out. It has no `environment` if that is not a JSON object within its bound. A new reference. */
json_t *experiment_json(const struct experiment_request *r, size_t n_tests);
/* Reads that object. Every member is checked against its bound, and ERR_INVALID names the one that is wrong.
 * A test's name may hold any text except NUL; see experiment_test_is_line(). Release also after a failure. */
int experiment_parse(const json_t *v, struct experiment_request *ret, struct error *e) MUST_CHECK;
/* False: the name would take more than one line, because it has a control character or one of Unicode's line separators
 * (U+0085, U+2028, U+2029). */
bool experiment_test_is_line(const char *test);
