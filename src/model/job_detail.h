/* One job in full: what /api/v1/jobs/{id} shows. */
#ifndef MODEL_JOB_DETAIL_H
#define MODEL_JOB_DETAIL_H

#include <stdint.h>

#include "model/change_view.h"
#include "model/job_report.h"

/* The experiment whose run a job belongs to (model/experiment.h). */
struct job_experiment {
	int64_t id; /* 0: it belongs to none */
	int64_t round;
	enum experiment_side side;
	char *cause, *state, *reason; /* as in experiment_view (model/change_view.h) */
	char *explained_sha;          /* the head of the change that it explains */
};

struct job_detail {
	struct job_view job;
	char *dispatch_id; /* "" for a self-report */
	char *accelerator;
	enum change_kind kind;
	char *repository, *head_sha; /* the tested commit */
	int64_t
	    number; /* a pull request that has this head, or that an experiment explains; 0: none */
	struct job_experiment experiment;
	bool is_current; /* false: another attempt or round took its place, and it is not counted */
	int64_t
	    superseded_by; /* the job that counts instead of it; 0: it counts, or none has come */
	char *message;     /* why it ended so, or NULL */
	char *environment; /* JSON object as text, or NULL */
	char *triage;      /* the vendor's claim, JSON object as text, or NULL */
	char *machine;     /* pull: which one has or had the lease, or NULL */
	int64_t log_bytes; /* -1: there is no log */
	bool is_log_complete;
	struct test_result *tests; /* as reported, in their order */
	enum attribution
	    *attributions; /* of each test: why it is red, as its change's page says; of an
					   experiment: none */
	size_t n_tests;
	int64_t n_tests_total; /* with the statuses that were asked for, read or not */
	int64_t next;          /* where the rest begins: get_job's `from`; 0: nothing is left */
};

void job_detail_free(struct job_detail *d); /* NULL is fine */

#endif
