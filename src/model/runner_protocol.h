/* What outpost-runner and outpostd say to each other (docs/runner-protocol.md), as structs:
 * both programs read and write the same text through these functions, so neither can drift.
 *
 * Pure. Every parser treats its input as hostile: bounded, typed, ERR_INVALID names the field. */
#ifndef MODEL_RUNNER_PROTOCOL_H
#define MODEL_RUNNER_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/accelerator.h"
#include "model/experiment.h"
#include "model/states.h"

enum {
	CLAIM_WAIT_MAX_S = 30, /* a claim is held open so long at most */
	RENEW_WAIT_MAX_S = 20, /* a heartbeat too */
	RUNNER_LABELS_MAX = 64,
	RUNNER_NEEDS_MAX = 128, /* runners in a status, and labels of each */
	RUNNER_NAME_MAX_BYTES = 64,
	LEASE_OFFER_MAX_BYTES = 1 << 20, /* the answer to a claim; an experiment lists many tests */
	LOG_PIECE_MAX_BYTES = 1 << 20,   /* what outpost-runner sends in one PUT */
};

/* POST /api/v1/runner/claim */
struct claim_request {
	char *name;        /* the machine's, as in `runner add` */
	char *claim_id;    /* random, kept by the machine until it has the answer: asked again with
	                 * the same one it gets the same lease */
	char *accelerator; /* which one the machine thinks that it is for; may be NULL */
	char **labels;     /* NULL-terminated, never NULL */
	int wait_s;        /* 0…CLAIM_WAIT_MAX_S */
	char *version;     /* of outpost-runner; may be NULL */
};
char *claim_request_text(const struct claim_request *c); /* free() */
int claim_request_parse(
    const char *text, size_t n, struct claim_request *ret, struct error *e) MUST_CHECK;
void claim_request_release(struct claim_request *c);

/* The answer (200): one dispatch, for this machine alone until the lease runs out. */
struct lease_offer {
	char *lease_id;
	int64_t lease_ms; /* how long it is good for without a heartbeat */
	int attempt;      /* 1…; the job's run_attempt */
	int64_t job_id;   /* for PUT …/log and …/report; 0: nothing is kept of it (L1) */
	char *dispatch_id;
	char *accelerator;
	char *runner; /* its name in the accelerator's file: the job's workflow */
	char *run_id; /* the job's */
	enum visibility visibility;
	/* what is to be tested */
	enum change_kind kind;
	char *repository, *head_sha;
	int64_t number;            /* the PR; 0 none */
	char *ref;                 /* push, periodic: refs/heads/main; else NULL */
	char *title, *author;      /* or NULL */
	char *base_ref, *base_sha; /* PRs; or NULL */
	char *event_type, *action; /* as github runners get them */
	char *delivery_id;
	char *change_url; /* for people */
	/* a periodic run: the vendor's own code as it was then; or NULL */
	char *source_git_url, *source_branch, *source_sha;
	/* CHANGE_EXPERIMENT: which tests are to run; owned; NULL: all. head_sha is then the commit that
	 * it names, number the pull request that it explains, and ref the branch on which a server that
	 * gives no commit by its name has the merge base (refs/heads/main). */
	struct experiment_request *experiment;
};
char *lease_offer_text(const struct lease_offer *o); /* free() */
int lease_offer_parse(
    const char *text, size_t n, struct lease_offer *ret, struct error *e) MUST_CHECK;
/* What OUTPOST_CHANGE_JSON holds: the offer without what belongs to the lease. free(). */
char *lease_offer_change_text(const struct lease_offer *o);
void lease_offer_release(struct lease_offer *o);

/* GET /api/v1/runner/status: what the server knows of the machine that asks, for
 * `outpost-runner --check --online`. */
struct runner_status {
	char *version;            /* of outpostd */
	int64_t time_ms;          /* its wall clock, to the second */
	char *name, *accelerator; /* the token's */
	struct runner_need {
		char *name;
		char **labels; /* a machine needs all of them; NULL-terminated, never NULL */
		int64_t max_parallel, n_waiting, n_active;
	} * runners; /* the accelerator's pull runners */
	size_t n_runners;
};
char *runner_status_text(const struct runner_status *s); /* free() */
int runner_status_parse(
    const char *text, size_t n, struct runner_status *ret, struct error *e) MUST_CHECK;
void runner_status_release(struct runner_status *s);

/* POST /api/v1/runner/leases/{id}/renew {"wait":N} → 200 with one of these. */
enum lease_word {
	LEASE_ACTIVE,    /* go on */
	LEASE_CANCELLED, /* the change was superseded, closed, cancelled or its time is over: stop */
	LEASE_LOST,      /* it ran out, and the work may be another machine's: stop, report nothing
	                  * that is not finished */
	N_LEASE_WORDS
};
const char *lease_word_name(enum lease_word w);
struct lease_answer {
	enum lease_word word;
	int64_t lease_ms; /* ACTIVE */
	char *reason;     /* CANCELLED, LOST: for the log; may be NULL */
};
char *lease_answer_text(const struct lease_answer *a); /* free() */
int lease_answer_parse(
    const char *text, size_t n, struct lease_answer *ret, struct error *e) MUST_CHECK;
void lease_answer_release(struct lease_answer *a);

#endif
