/* One job as a runner reports it: CRCR's `workflow` object, checked and cut to size.
 *
 * Thread: any. Plain data and pure functions; the owner of a struct releases it. */
#pragma once

#include "model/states.h"
#include "model/test_array.h"

struct packed_tests;

struct job_report {
	enum job_status status;
	char *conclusion;      /* NULL while in progress */
	char *workflow, *name; /* name: the job's, else the workflow's */
	char *run_id;
	int64_t run_attempt;              /* 1 when not given */
	char *url, *artifact_url;         /* https, or NULL */
	char *check_run_id;               /* or NULL */
	char *message;                    /* workflow.message: the reason for its end, one line; or NULL */
	char *triage;                     /* the vendor's claim, model/job_report.h; or NULL */
	int64_t started_ms, completed_ms; /* vendor's own times; 0 unknown */
	bool has_counts;
	int64_t n_passed, n_failed, n_skipped, n_total;
	char *accelerator;         /* workflow.accelerator, or NULL */
	struct test_result *tests; /* of `tests`; without an entry there, model/test_result.h */
	size_t n_tests, n_cut;     /* n_cut: left out, because there were more than are kept */
	/* The same, packed, borrowed; NULL: the store packs them. */
	struct packed_tests *packed;
	char *texts;                  /* of the tests that borrow theirs; or NULL */
	uint8_t digest[SHA256_BYTES]; /* of conclusion, tests, failed tests, test_results, artifact_url */
};

/* From the `workflow` object. ERR_INVALID names the field ("workflow.run_id is missing", "workflow.tests[3].status must
 * be …"). Required: status, name, run_id (text or integer). The parser ignores ill-typed optional fields, refuses a
 * wrong entry in tests, and keeps the worst of too many. It cuts names and messages at UTF-8 boundaries and drops
 * control characters. Release also after a failure.
 * read: the array `tests`, read apart, which is empty in the object; moves the tests out. NULL: the object has it. */
int job_report_parse(
    const json_t *workflow, struct test_array *read, struct job_report *ret, struct error *e) MUST_CHECK;
void job_report_release(struct job_report *r);

/* The verdict of a vendor's own tool about the cause of a job's failure: CRCR's `workflow.triage_verdict`
 * (pytorch/test-infra#8673). It is the vendor's claim: pages show it as such, and it is never evidence.
 *
 * Returns the block in a normal form as JSON text, free(). NULL: there is none, or it breaks CRCR's rules. As in CRCR,
 * a wrong type, an unknown word or an unknown schema_version drops the whole block, a text that is too long is cut, and
 * unknown keys are left out. Texts have no control characters except line ends. */
char *triage_verdict_parse(const json_t *value);
