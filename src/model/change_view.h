/* One change as people get to see it: what the comment, the pages and the API render.
 * The store fills it in one read transaction. */
#ifndef MODEL_CHANGE_VIEW_H
#define MODEL_CHANGE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/accelerator.h"
#include "model/states.h"

struct job_view {
	int64_t id;
	char *workflow, *name, *run_id;
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
	enum dispatch_state state;
	char *held_reason;     /* or NULL */
	bool is_held_for_good; /* no ok-to-test releases it: it runs what was merged only */
	char *last_error;      /* why it failed or expired, or NULL */
	int64_t created_ms, sent_ms, due_ms; /* due: the next deadline, 0 none */
	bool is_current;                     /* of the latest round */
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
};

struct verdict_view {
	size_t accelerator; /* index into accelerators */
	char *suite, *test;
	enum test_status status;
	char *attribution; /* NULL unless red */
	char *message;     /* or NULL */
	int64_t job;       /* evidence; 0: none */
	bool is_late;
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
	int64_t created_ms;
	struct accelerator_view *accelerators; /* those with a dispatch, by name; L1 included */
	size_t n_accelerators;
	struct verdict_view *verdicts; /* by suite, test, accelerator */
	size_t n_verdicts;
	bool is_cut; /* more verdicts exist than were read */
	int64_t n_verdicts_total;
};

void job_view_release(struct job_view *j);
void change_view_free(struct change_view *v);

#endif
