/* One change as the comment, the pages and the API show it, and one of its jobs in full. Plain data.
 * Thread: a reader fills in a view in one transaction (views/change.h, views/job.h); then one thread at a time owns it.
 * Owns: a view owns everything below it; change_view_free(), job_detail_free(). */
#pragma once

#include "model/accelerator.h"
#include "model/accelerator_state.h"
#include "model/attribution.h"
#include "model/experiment.h"
#include "model/states.h"
#include "model/test_result.h"

/* A job, from the table `job` as j. The times are those at which Outpost received the reports. A self-report has no
 * dispatch (""), and the vendor's repository as its runner. */
#define JOB_VIEW_RECORD(F, S)                                                                                          \
	F(S, INT, id, "id", "j.id", "")                                                                                \
	F(S, TEXT, workflow, "workflow", "j.workflow", "")                                                             \
	F(S, TEXT, name, "name", "j.name", "")                                                                         \
	F(S, TEXT, run_id, "run_id", "j.run_id", "")                                                                   \
	F(S, INT, run_attempt, "run_attempt", "j.run_attempt", "")                                                     \
	F(S, JOB_STATUS, status, "status", "j.status", "")                                                             \
	F(S, TEXT, conclusion, "conclusion", "j.conclusion", "")                                                       \
	F(S, TEXT, url, "url", "j.url", "")                                                                            \
	F(S, TEXT, artifact_url, "artifact_url", "j.artifact_url", "")                                                 \
	F(S, BOOL, has_counts, NULL, "j.n_total IS NOT NULL OR j.n_passed IS NOT NULL", "")                            \
	F(S, INT, n_passed, NULL, "j.n_passed", "")                                                                    \
	F(S, INT, n_failed, NULL, "j.n_failed", "")                                                                    \
	F(S, INT, n_skipped, NULL, "j.n_skipped", "")                                                                  \
	F(S, INT, n_total, NULL, "j.n_total", "")                                                                      \
	F(S, INT, n_cut, "tests_cut", "j.n_cut", "")                                                                   \
	F(S, TIME, started_ms, "started_at", "j.started_ms", "")                                                       \
	F(S, TIME, completed_ms, "completed_at", "j.completed_ms", "")                                                 \
	F(S, BOOL, is_late, "late", "j.is_late", "")                                                                   \
	F(S, TEXT, dispatch_id, NULL, "j.dispatch_id", "")                                                             \
	F(S, TEXT, runner, NULL, "j.runner", "")
RECORD_STRUCT(job_view, JOB_VIEW_RECORD);

/* A dispatch, from the table `dispatch` as x. `repository`: where a github or infra runner's work runs; NULL for
 * others. `is_held_for_good`: no ok-to-test releases it, because it runs only merged code. `last_error`: why it failed
 * or expired, or which person ended it; with is_ended_by_person it says "declined by LOGIN". `is_current`: it is of the
 * latest round. */
#define DISPATCH_VIEW_RECORD(F, S)                                                                                     \
	F(S, TEXT, id, "id", "x.id", "")                                                                               \
	F(S, TEXT, runner, "runner", "x.runner", "")                                                                   \
	F(S, TEXT, runner_kind, "runner_kind", "x.kind", "")                                                           \
	F(S, TEXT, repository, NULL, "CASE WHEN x.kind IN ('github', 'infra') THEN x.target END", "")                  \
	F(S, DISPATCH_STATE, state, "state", "x.state", "")                                                            \
	F(S, TEXT, held_reason, "held_reason", "CASE x.state WHEN 'held' THEN x.held_reason END", "")                  \
	F(S, BOOL, is_held_for_good, NULL, "x.is_held_for_good", "")                                                   \
	F(S, TEXT, last_error, "error", DISPATCH_WHY, "")                                                              \
	F(S, BOOL, is_ended_by_person, NULL, "x.ended_how IS NOT NULL", "")                                            \
	F(S, BOOL, is_current, "current", "x.is_current", "")                                                          \
	F(S, TIME, created_ms, "created_at", "x.created_ms", "")                                                       \
	F(S, TIME, sent_ms, "sent_at", "x.sent_ms", "")                                                                \
	F(S, TIME, due_ms, "due_at", "x.next_due_ms", "")
RECORD_STRUCT(dispatch_view, DISPATCH_VIEW_RECORD);

enum { DELTA_NAMES_MAX = 10 };

/* An accelerator's cells compared with those of the base: the merge base, or the nearest older commit that was tested.
 * `base_sha` NULL: there is nothing to compare with. `distance`: commits before the merge base. The lists have the
 * first DELTA_NAMES_MAX tests each, as "SUITE/TEST", and are never NULL. Computed, so it has no columns. */
#define BASE_DELTA_RECORD(F, S)                                                                                        \
	F(S, TEXT, base_sha, "base_sha", "", "")                                                                       \
	F(S, INT, base_change_id, NULL, "", "")                                                                        \
	F(S, INT, distance, "distance", "", "")                                                                        \
	F(S, INT, n_newly_failing, "newly_failing", "", "")                                                            \
	F(S, INT, n_fixed, "fixed", "", "")                                                                            \
	F(S, INT, n_disappeared, "disappeared", "", "")                                                                \
	F(S, INT, n_newly_skipped, "newly_skipped", "", "")                                                            \
	F(S, TEXTS, fixed, "fixed_tests", "", "")                                                                      \
	F(S, TEXTS, disappeared, "disappeared_tests", "", "")                                                          \
	F(S, TEXTS, newly_skipped, "newly_skipped_tests", "", "")
RECORD_STRUCT(base_delta, BASE_DELTA_RECORD);

/* A test of an experiment and how it ended there: `test` as t, and its cell as c. `status` N_TEST_STATUSES: no result.
 * `job`: the one that reported it. */
#define EXPERIMENT_RESULT_RECORD(F, S)                                                                                 \
	F(S, TEXT, suite, "suite", "t.suite", "")                                                                      \
	F(S, TEXT, test, "test", "t.name", "")                                                                         \
	F(S, TEXT, dtype, "dtype", "NULLIF(t.dtype, '')", "")                                                          \
	F(S, TEST_STATUS, status, "status", "c.status", "")                                                            \
	F(S, ID, job, "job", "c.job_id", "")
RECORD_STRUCT(experiment_result, EXPERIMENT_RESULT_RECORD);

/* Why an experiment e ended as it did. */
#define EXPERIMENT_REASON "CASE WHEN e.cancelled_by IS NULL THEN e.reason ELSE 'cancelled by ' || e.cancelled_by END"

/* Some of the change's tests, run again at its head or its merge base (model/experiment.h): `experiment` as e.
 * `reason`: why it ended without a result that counts. `is_pending`: planned or started. `job`: its first.
 * `not_before_ms`: the earliest start of a planned one that waits for a good machine; 0: it does not wait. */
#define EXPERIMENT_VIEW_RECORD(F, S)                                                                                   \
	F(S, INT, id, "id", "e.id", "")                                                                                \
	F(S, EXPERIMENT_SIDE, side, "side", "e.side", "")                                                              \
	F(S, TEXT, sha, "sha", "e.sha", "")                                                                            \
	F(S, INT, round, "round", "e.round", "")                                                                       \
	F(S, TEXT, cause, "cause", "e.cause", "")                                                                      \
	F(S, TEXT, state, "state", "e.state", "")                                                                      \
	F(S, BOOL, is_pending, NULL, "e.state IN ('planned', 'started')", "")                                          \
	F(S, TEXT, reason, "reason", EXPERIMENT_REASON, "")                                                            \
	F(S, TEXT, runner, "runner", "e.runner", "")                                                                   \
	F(S, INT, n_tests, "tests", "(SELECT COUNT(*) FROM experiment_test x WHERE x.experiment_id = e.id)", "")       \
	F(S, ID, job, "job", "(SELECT MIN(j.id) FROM job j WHERE j.change_id = e.run_change_id)", "")                  \
	F(S, TIME, created_ms, "created_at", "e.created_ms", "")                                                       \
	F(S, TIME, not_before_ms, "not_before_at", "CASE e.state WHEN 'planned' THEN e.not_before_ms END", "")         \
	F(S, TIME, started_ms, "started_at", "e.started_ms", "")                                                       \
	F(S, TIME, ended_ms, "ended_at", "e.ended_ms", "")
struct experiment_view {
	RECORD_MEMBERS(EXPERIMENT_VIEW_RECORD)
	struct experiment_result *results; /* by suite, test, dtype; may be cut */
	size_t n_results;
};
RECORD_DECLARE(experiment_view);

/* An accelerator with a dispatch or a job of the change: its name as u, and the registry's mirror as m. `must_pass`,
 * `skip`: "SUITE/TEST". `required_suites`, `must_pass`: what the registry requires, for the vendor and for PyTorch.
 * `skip`: not supported; such a cell is SKIP, never red. `is_gone`: it is not registered any more. `is_unhealthy`: the
 * circuit breaker; it is red on most recent unrelated changes. The lists are never NULL. */
#define ACCELERATOR_VIEW_RECORD(F, S)                                                                                  \
	F(S, TEXT, name, "name", "u.accelerator", "")                                                                  \
	F(S, TEXT, title, "title", "COALESCE(m.title, u.accelerator)", "")                                             \
	F(S, LEVEL, level, "level", "COALESCE(m.level, 1)", "")                                                        \
	F(S, TEXT, docs_url, NULL, "m.docs_url", "")                                                                   \
	F(S, TEXT, help_url, NULL, "m.help_url", "")                                                                   \
	F(S, TEXTS, oncall, "oncall", "m.oncall", "")                                                                  \
	F(S, TEXTS, required_suites, NULL, "m.required_suites", "")                                                    \
	F(S, TEXTS, must_pass, NULL, "m.must_pass", "")                                                                \
	F(S, TEXTS, skip, NULL, "m.skip", "")                                                                          \
	F(S, BOOL, is_gone, NULL, "m.is_gone", "")                                                                     \
	F(S, BOOL, is_unhealthy, "unhealthy", "m.unhealthy_since_ms IS NOT NULL", "")
struct accelerator_view {
	RECORD_MEMBERS(ACCELERATOR_VIEW_RECORD)
	struct dispatch_view *dispatches; /* newest first */
	size_t n_dispatches;
	struct job_view *jobs; /* current ones, by workflow and name */
	size_t n_jobs;
	/* how many of its verdicts come from a job; only where not all were read, else 0 */
	size_t n_verdicts[N_TEST_STATUSES];
	struct standing at; /* on upstream's branch, as the dashboard shows it */
	struct base_delta delta;
	struct experiment_view *experiments; /* newest first; may be cut */
	size_t n_experiments;
};
RECORD_DECLARE(accelerator_view);

/* The state of the rerun that would help to decide a red cell; RERUN_NONE: none would help, or no runner accepts reruns.
 * X(ENUM, name in the JSON, text for people) */
#define RERUN_STATES(X)                                                                                                \
	X(PENDING, "pending", "re-running") /* by Outpost itself; may be another change's, on the same base */         \
	X(LATER, "later", "rerun waits for a good machine") /* for hours, until a bad machine may be good again */     \
	X(NO_ANSWER, "no_answer", "rerun got no answer")    /* in time, or the vendor could not be reached */          \
	X(NO_ROOM, "no_room", "not rerun: no machine time was free") /* or its turn was given away too often */        \
	X(VOID, "void", "rerun proves nothing")                                                                        \
	X(NO_RESULT, "no_result", "rerun gave no result")              /* of this test */                              \
	X(OVER_LIMIT, "over_limit", "no further rerun: limit reached") /* `experiments.tests` or `.per_head` */        \
	X(CALLED_OFF, "called_off", "rerun called off")                /* by a person */
#define RERUN_VALUE(e, name, text) RERUN_##e,
enum rerun_state { RERUN_NONE, RERUN_STATES(RERUN_VALUE) N_RERUN_STATES };
WORDS_DECLARE(rerun_state);
#define RECORD_C_RERUN enum rerun_state
#define RECORD_T_RERUN RECORD_RANK, &rerun_state_words
const char *rerun_state_text(enum rerun_state s); /* NULL: none */

/* A cell: `verdict` as v, its `test` as t, and the change as c. `dtype` is part of the test's identity. `attribution`:
 * N_ATTRIBUTIONS unless red. `reason`: why it is attributed so, in Outpost's words; NULL unless red. `evidence_job` and
 * `evidence_url` are as stored; verdict_evidence_of() decides what may be shown. `job`: the one that reported the cell.
 * `file`, `line`: where it failed, in upstream's tree. `rerun_job`: the job of a rerun that decided nothing. The reader
 * of the cells defines RERUN_OF_CELL (views/change_cells.c) and looks up the rerun's job itself. */
#define VERDICT_VIEW_RECORD(F, S)                                                                                      \
	F(S, TEXT, suite, "suite", "t.suite", "")                                                                      \
	F(S, TEXT, test, "test", "t.name", "")                                                                         \
	F(S, TEXT, dtype, "dtype", "NULLIF(t.dtype, '')", "")                                                          \
	F(S, TEST_STATUS, status, "status", "v.status", "")                                                            \
	F(S, ATTRIBUTION, attribution, "attribution", "v.attribution", "")                                             \
	F(S, TEXT, reason, "reason", "v.reason", "")                                                                   \
	F(S, TEXT, message, "message", "v.message", "")                                                                \
	F(S, TEXT, file, "file", "v.file", "")                                                                         \
	F(S, ID, line, "line", "v.line", "")                                                                           \
	F(S, ID, job, "job", "v.job_id", "")                                                                           \
	F(S, INT, evidence_job, NULL, "v.evidence_job", "")                                                            \
	F(S, TEXT, evidence_url, NULL, "v.evidence_url", "")                                                           \
	F(S, BOOL, is_late, "late", "v.is_late", "")                                                                   \
	F(S, RERUN, rerun, "rerun", RERUN_OF_CELL, "")                                                                 \
	F(S, ID, rerun_job, "rerun_job", "0", "For void and no_result: a job of that run. null: it has no job.")
struct verdict_view {
	size_t accelerator; /* index into accelerators */
	RECORD_MEMBERS(VERDICT_VIEW_RECORD)
};
RECORD_DECLARE(verdict_view);

/* A change: `change` as c. `number`: the pull request asked for, else one of the change; 0: a push. The title, the
 * author, the base and the labels are those of this pull request. */
#define CHANGE_VIEW_RECORD(F, S)                                                                                       \
	F(S, INT, change_id, NULL, "c.id", "")                                                                         \
	F(S, TEXT, repository, "repository", "c.repository", "")                                                       \
	F(S, ID, number, "number", "0", "")                                                                            \
	F(S, TEXT, head_sha, "head_sha", "c.head_sha", "")                                                             \
	F(S, TEXT, base_ref, NULL, "c.base_ref", "")                                                                   \
	F(S, TEXT, base_sha, NULL, "c.base_sha", "")                                                                   \
	F(S, TEXT, merge_base_sha, "merge_base_sha", "c.merge_base_sha", "")                                           \
	F(S, TIME, merge_base_ms, "merge_base_at", "c.merge_base_ms", "")                                              \
	F(S, CHANGE_STATE, state, "state", "c.state", "")                                                              \
	F(S, CHANGE_KIND, kind, "kind", "c.kind", "")                                                                  \
	F(S, TEXT, title, "title", "c.title", "")                                                                      \
	F(S, TEXT, author, "author", "c.author", "")                                                                   \
	F(S, TEXTS, labels, "labels", "NULL", "")                                                                      \
	F(S, TIME, created_ms, "created_at", "c.created_ms", "")
struct change_view {
	RECORD_MEMBERS(CHANGE_VIEW_RECORD)
	/* red cells whose evidence is still being gathered, so their cause may change */
	bool is_being_attributed;
	struct accelerator_view *accelerators; /* those with a dispatch, by name; L1 included */
	size_t n_accelerators;
	struct verdict_view *verdicts; /* by suite, test, accelerator */
	size_t n_verdicts;
	bool is_cut;          /* not all verdicts were read */
	bool has_only_chosen; /* only the verdicts that an answer needs were read */
	int64_t n_chosen;     /* how many verdicts that answer lists on all its pages */
	int64_t n_verdicts_total;
	int64_t n_tests_total; /* of a cut view: tests that any accelerator reported; else 0 */
};
RECORD_DECLARE(change_view);

/* The evidence for a red cell's attribution. Both members empty: there is none, or the cell has no attribution. It is
 * never the cell's own job, because that shows the failure and not its cause. */
struct verdict_evidence {
	const char *issue_url; /* KNOWN: borrowed from the verdict; NULL: none */
	int64_t job;           /* 0: none */
};
struct verdict_evidence verdict_evidence_of(const struct verdict_view *w);

/* By suite, test, dtype, accelerator; for qsort() and bsearch(). */
int verdict_view_compare(const void *x, const void *y);
/* One of v's accelerators, which are sorted by name; NULL: none has this name. */
struct accelerator_view *change_view_accelerator(const struct change_view *v, const char *name);

void change_view_free(struct change_view *v); /* NULL is fine */

/* ---- one job in full, as its page and /api/v1/jobs/{id} show it ---- */

/* The experiment (model/experiment.h) that a job belongs to: `experiment` as e, and the change that it explains as x. */
#define JOB_EXPERIMENT_RECORD(F, S)                                                                                    \
	F(S, ID, id, "id", "e.id", "")                                                                                 \
	F(S, EXPERIMENT_SIDE, side, "side", "e.side", "")                                                              \
	F(S, INT, round, "round", "e.round", "")                                                                       \
	F(S, TEXT, cause, "cause", "e.cause", "")                                                                      \
	F(S, TEXT, state, "state", "e.state", "")                                                                      \
	F(S, TEXT, reason, "reason", EXPERIMENT_REASON, "")                                                            \
	F(S, TEXT, explained_sha, "explains", "x.head_sha", "The head of the change whose failures it explains.")      \
	F(S, ID, explained_number, NULL, "(SELECT MAX(p.number) FROM pull_head p WHERE p.change_id = x.id)", "")
RECORD_STRUCT(job_experiment, JOB_EXPERIMENT_RECORD); /* id 0: the job belongs to no experiment */

/* The fields that only /api/v1/jobs/{id} has: `job` as j, and its change as c. */
#define JOB_DETAIL_RECORD(F, S)                                                                                        \
	F(S, TEXT, accelerator, "accelerator", "j.accelerator", "")                                                    \
	F(S, TEXT, dispatch, "dispatch", "NULLIF(j.dispatch_id, '')", "")                                              \
	F(S, CHANGE_KIND, kind, "kind", "c.kind", "")                                                                  \
	F(S, TEXT, repository, "repository", "c.repository", "")                                                       \
	F(S, COMMIT, head_sha, "head_sha", "c.head_sha", "")                                                           \
	F(S, ID, number, "number", "(SELECT MAX(p.number) FROM pull_head p WHERE p.change_id = c.id)", "")             \
	F(S, TEXT, message, "message", "j.message", "")                                                                \
	F(S, OBJECT, environment, "environment", "j.environment", "As docs/report.md has it.")                         \
	F(S, OBJECT, triage, "triage", "j.triage", "")                                                                 \
	F(S, TEXT, machine, "machine",                                                                                 \
	    "(SELECT l.machine FROM lease l WHERE l.dispatch_id = j.dispatch_id AND l.job_id = "                       \
	    "j.id)",                                                                                                   \
	    "")                                                                                                        \
	F(S, BOOL, is_current, "current", "j.is_current", "")                                                          \
	F(S, ID, superseded_by, "superseded_by",                                                                       \
	    "CASE WHEN j.is_current = 0 THEN (SELECT n.id FROM job n WHERE n.change_id = "                             \
	    "j.change_id AND n.accelerator = j.accelerator AND n.runner = j.runner AND n.workflow = j.workflow"        \
	    " AND n.name = j.name AND n.is_current = 1 AND n.id <> j.id ORDER BY n.id DESC LIMIT 1) END",              \
	    "")                                                                                                        \
	F(S, COUNT, log_bytes, NULL, "j.log_bytes", "")                                                                \
	F(S, BOOL, is_log_complete, NULL, "j.is_log_complete", "")

/* `number`: a pull request that has this head, or that the experiment explains. `superseded_by`: the job that counts
 * instead of this one. `log_bytes` -1: there is no log. */
struct job_detail {
	struct job_view job;
	RECORD_MEMBERS(JOB_DETAIL_RECORD)
	struct job_experiment experiment;
	struct test_result *tests; /* as reported, in their order */
	/* Why each test is red, as the page of its change says; of an experiment: none. */
	enum attribution *attributions;
	size_t n_tests;
	int64_t n_tests_total; /* with the selected statuses, read or not */
	int64_t next;          /* where the rest begins (`from` of struct get_job); 0: nothing is left */
};
RECORD_DECLARE(job_detail);

void job_detail_free(struct job_detail *d); /* NULL is fine */
