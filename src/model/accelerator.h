/* What a vendor registers: one accelerator, how its tests get run and when. Plain
 * data; config/ fills it once and nobody changes it after. */
#ifndef MODEL_ACCELERATOR_H
#define MODEL_ACCELERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/secret.h"
#include "model/experiment.h"
#include "model/platform.h"

/* L1 silent, L2 dashboard and comment, L3 + check run on label, L4 + check run always. */
enum level { LEVEL_1 = 1, LEVEL_2, LEVEL_3, LEVEL_4 };

/* Whose changes may run. */
enum trust { TRUST_ANYONE, TRUST_CONTRIBUTORS, TRUST_MEMBERS, TRUST_APPROVED, TRUST_MERGED };

enum runner_kind {
	RUNNER_GITHUB,  /* repository_dispatch to the vendor's repository */
	RUNNER_WEBHOOK, /* signed POST to the vendor's own CI */
	RUNNER_PULL,    /* outpost-runner machines ask for work */
	RUNNER_INFRA,   /* hosted in infra.repository; never written in a file */
};

struct runner {
	char *name; /* unique within its accelerator; "infra" for RUNNER_INFRA */
	enum runner_kind kind;
	bool is_nightly_only; /* gets periodic runs, but neither pull requests nor pushes */
	enum reruns reruns;   /* which experiments it gets; RERUNS_NONE for RUNNER_INFRA */
	char *repository;     /* github, infra: owner/name as configured */
	/* github, infra: pinned, so that only this repository reports under its name; 0: not */
	int64_t repository_id, repository_owner_id;
	char *workflow;        /* github: `.github/workflows/x.yml` or NULL */
	char *url;             /* webhook */
	struct secret *secret; /* webhook: the HMAC key, read at load */
	char **labels;         /* pull: NULL-terminated */
	int max_parallel;      /* pull */
};

/* What of a job's log leaves the vendor's machine. */
enum visibility {
	VISIBILITY_PUBLIC,  /* all of it */
	VISIBILITY_SUMMARY, /* only the excerpt of a failing step */
};

enum label_rule { LABEL_OPTIONAL, LABEL_REQUIRED };

struct triggers {
	bool has_pull_request; /* triggers.pull_request is given (default: yes, without paths) */
	char **paths;          /* NULL-terminated globs; NULL: every path */
	enum label_rule label;
	bool drafts;
	bool has_push;
	char **branches;       /* push: NULL-terminated; NULL: upstream's branches */
	int64_t push_every_ms; /* at most one push run in so long, the newest; 0: each push */
	char **schedules;      /* cron texts, NULL-terminated; NULL: none */
};

struct deadlines {
	/* Each counted from the dispatch. acknowledge_ms 0: not given; see deadline_acknowledge_ms() */
	int64_t acknowledge_ms, start_ms, finish_ms;
};

/* How much of an accelerator's capacity experiments may use. */
struct experiment_budget {
	int tests;          /* at most so many different tests for one head */
	int per_head;       /* at most so many rounds for one head and runner */
	int share_permille; /* of the time that its jobs took; 0: no experiments */
};

struct accelerator {
	char *name;   /* [a-z0-9-]+, unique */
	char *title;  /* column heading, vendor's text */
	char *vendor; /* may be NULL */
	enum level level;
	char *docs_url, *help_url;            /* https or NULL */
	char *source_git_url, *source_branch; /* may be NULL */
	char **oncall; /* GitHub logins without @, NULL-terminated, never NULL */
	enum trust trust;
	enum visibility visibility; /* default public */
	struct runner *runners;     /* at least one: RUNNER_INFRA when the file lists none */
	size_t n_runners;
	struct triggers triggers;
	struct deadlines deadlines;
	struct experiment_budget experiments;
	char **must_pass, **skip;  /* NULL-terminated, never NULL */
	struct platform *platform; /* owned; NULL: the platforms page does not show it */
	char *file;                /* where it was read from, for messages */
	int line;
};

/* What was given, else 10 min for a webhook runner (its 2xx is the sign) and 0, no such deadline,
 * for the others: GitHub's 204 says nothing of the vendor, a queue of pull runners may be long. */
int64_t deadline_acknowledge_ms(const struct deadlines *d, enum runner_kind kind);

const char *level_name(enum level level);         /* "L1" … "L4" */
const char *trust_name(enum trust trust);         /* as written in a file */
const char *visibility_name(enum visibility v);   /* "public", "summary" */
const char *runner_kind_name(enum runner_kind k); /* "github", "webhook", "pull", "infra" */
void accelerator_release(struct accelerator *a);  /* wipes secrets */

#endif
