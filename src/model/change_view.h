/* One change as people get to see it: what the comment, the pages and the API render.
 * The store fills it in one read transaction. */
#ifndef MODEL_CHANGE_VIEW_H
#define MODEL_CHANGE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/accelerator.h"
#include "model/accelerator_state.h"
#include "model/attribution.h"
#include "model/experiment.h"
#include "model/states.h"

struct job_view {
	int64_t id;
	char *workflow, *name, *run_id;
	char *dispatch_id, *runner; /* "" and the vendor's repository: a self-report */
	int64_t run_attempt;
	enum job_status status;
	char *conclusion, *url, *artifact_url;
	bool is_late;
	bool has_counts;
	int64_t n_passed, n_failed, n_skipped, n_total;
	int64_t n_cut; /* tests that its report left out: nobody knows how they ended */
	int64_t started_ms, completed_ms; /* our receipt times; 0 unknown */
};

struct dispatch_view {
	char *id, *runner, *runner_kind;
	char *repository; /* where a github or infra runner's work runs; NULL for others */
	enum dispatch_state state;
	char *held_reason;     /* or NULL */
	bool is_held_for_good; /* no ok-to-test releases it: it runs what was merged only */
	char *last_error;      /* why it failed or expired, or NULL */
	int64_t created_ms, sent_ms, due_ms; /* due: the next deadline, 0 none */
	bool is_current;                     /* of the latest round */
};

enum { DELTA_NAMES_MAX = 10 };

/* An accelerator's cells against those of the base: the merge base, or the nearest older commit
 * that was tested. */
struct base_delta {
	char *base_sha; /* NULL: there is nothing to compare with */
	int64_t base_change_id;
	int distance; /* commits before the merge base */
	size_t n_newly_failing, n_fixed, n_disappeared, n_newly_skipped;
	/* the first DELTA_NAMES_MAX each, "SUITE/TEST"; NULL-terminated, never NULL */
	char **fixed, **disappeared, **newly_skipped;
};

/* A test of an experiment, and how it ended there. */
struct experiment_result {
	char *suite, *test, *dtype; /* dtype: NULL: none */
	enum test_status status;    /* N_TEST_STATUSES: no result */
	int64_t job;                /* the one that reported it; 0: none */
};

/* Some of the change's tests, run again at its head or its merge base (model/experiment.h). */
struct experiment_view {
	int64_t id, round;
	enum experiment_side side;
	char *runner, *sha;
	char *cause;     /* "auto", "stress" */
	char *state;     /* "planned", "started", "done", "cancelled", "expired", "void" */
	char *reason;    /* why it ended without a result that counts; NULL: it did not */
	bool is_pending; /* planned or started */
	int64_t job;     /* its first; 0: none has begun */
	int64_t created_ms, started_ms, ended_ms; /* 0: not yet */
	int64_t n_tests;
	struct experiment_result *results; /* by suite, test, dtype; may be cut */
	size_t n_results;
};

struct accelerator_view {
	char *name, *title, *docs_url, *help_url;
	enum level level;
	char **oncall;                    /* NULL-terminated */
	struct dispatch_view *dispatches; /* newest first */
	size_t n_dispatches;
	struct job_view *jobs; /* current ones, by workflow and name */
	size_t n_jobs;
	/* how many of its verdicts come from a job; only where the view is cut, else 0 */
	size_t n_verdicts[N_TEST_STATUSES];
	/* what the registry demands, vendor's and PyTorch's; NULL-terminated, never NULL */
	char **required_suites, **must_pass; /* must_pass: "SUITE/TEST" */
	char **skip;                         /* not supported: a cell of it is SKIP, never red */
	bool is_unhealthy;  /* the circuit breaker: red on most recent unrelated changes */
	bool is_gone;       /* it is not registered any more */
	struct standing at; /* on upstream's branch, as the dashboard shows it */
	struct base_delta delta;
	struct experiment_view *experiments; /* newest first; may be cut */
	size_t n_experiments;
};

/* What became of the rerun that would help to decide a red cell. */
enum rerun_state {
	RERUN_NONE,       /* none would help, or no runner takes reruns */
	RERUN_PENDING,    /* planned or started by Outpost itself */
	RERUN_NO_ANSWER,  /* the vendor did not answer in time, or could not be reached */
	RERUN_NO_ROOM,    /* it never began: no machine was idle, or the share was spent */
	RERUN_VOID,       /* it ran, and its results prove nothing */
	RERUN_NO_RESULT,  /* it ran, and gave no result of this test */
	RERUN_OVER_LIMIT, /* `experiments.tests` or `.per_head` allow no more */
	RERUN_CALLED_OFF, /* a person called reruns off */
	N_RERUN_STATES
};
const char *rerun_state_name(enum rerun_state s);  /* "pending", "no_answer", …; NULL: none */
const char *rerun_state_words(enum rerun_state s); /* "re-running", …, for people; NULL: none */

struct verdict_view {
	size_t accelerator; /* index into accelerators */
	char *suite, *test;
	char *dtype; /* NULL: none; part of the test's identity */
	enum test_status status;
	enum attribution attribution; /* N_ATTRIBUTIONS unless red */
	char *reason;                 /* why it is attributed so, our words; NULL unless red */
	/* as they are stored; verdict_evidence_of() says what may be shown */
	int64_t evidence_job; /* 0: none */
	char *evidence_url;   /* KNOWN: the issue; else NULL */
	char *message;        /* or NULL */
	int64_t job;          /* the one that reported it; 0: none */
	char *file;           /* where it failed, in upstream's tree; or NULL */
	int64_t line;         /* 0: not known */
	bool is_late;
	enum rerun_state rerun;
	int64_t rerun_job; /* the job of a rerun that decided nothing; 0: none */
};

struct change_view {
	int64_t change_id;
	enum change_kind kind;
	enum change_state state;
	char *repository;
	int64_t number; /* the PR asked for, else a PR of the change, else 0 */
	char *head_sha, *base_ref, *base_sha;
	char *merge_base_sha;  /* NULL: unknown */
	int64_t merge_base_ms; /* commit time, 0 unknown */
	char *title, *author;
	char **labels; /* of the PR; NULL-terminated, never NULL */
	/* red cells whose evidence is still being gathered; what it will say is not out yet */
	bool is_being_attributed;
	int64_t created_ms;
	struct accelerator_view *accelerators; /* those with a dispatch, by name; L1 included */
	size_t n_accelerators;
	struct verdict_view *verdicts; /* by suite, test, accelerator */
	size_t n_verdicts;
	bool is_cut; /* more verdicts exist than were read */
	int64_t n_verdicts_total;
	int64_t n_tests_total; /* of a cut view: tests that any accelerator reported; else 0 */
};

/* What shows why a red cell is attributed as it is. Both empty: nothing does, or the cell has no
 * attribution. It is never the cell's own job: that shows the failure, not whose it is. */
struct verdict_evidence {
	const char *issue_url; /* KNOWN: borrowed from the verdict; NULL: none */
	int64_t job;           /* 0: none */
};
struct verdict_evidence verdict_evidence_of(const struct verdict_view *w);

/* One of v's accelerators, which are sorted by name; NULL: none is called so. */
struct accelerator_view *change_view_accelerator(const struct change_view *v, const char *name);

void job_view_release(struct job_view *j);
void change_view_free(struct change_view *v);

#endif
