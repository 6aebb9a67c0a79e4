/* The messages between outpost-runner and outpostd (docs/runner-protocol.md), as structs: both programs read and write
 * the text with these functions, so they always agree. Every parser treats its input as hostile: bounded and typed;
 * ERR_INVALID names the field.
 *
 * Thread: any. Plain data and pure functions; the owner of a struct releases it. */
#pragma once

#include "model/accelerator.h"
#include "model/experiment.h"
#include "model/states.h"

/* ---- fields: protocol_field.c ----
 *
 * One table of texts per message drives reading and writing, so that a field is written as it is read. A wrong text of
 * a program is refused (ERR_INVALID names the field). A text of people (a title) is corrected instead, because a
 * machine must be able to take any change. */

enum {
	PROTOCOL_ID_MAX_BYTES = 64,
	PROTOCOL_NAME_MAX_BYTES = 256,
	PROTOCOL_TEXT_MAX_BYTES = 1024,
	PROTOCOL_URL_MAX_BYTES = 2048,
	LEASE_MAX_MS = 24 * 3600 * 1000,
};

enum text_rule {
	RULE_ID,         /* letters, digits, '-': part of paths of requests */
	RULE_NAME,       /* those and '.', '_' */
	RULE_LINE,       /* printable, one line */
	RULE_REPOSITORY, /* owner/name */
	RULE_SHA,
	RULE_PROSE, /* people's text: cut to size, control characters become spaces */
};
enum field_presence { FIELD_OPTIONAL /* empty is absent */, FIELD_REQUIRED };

struct text_field {
	const char *key; /* NULL ends the table */
	size_t offset;   /* of a char * */
	enum text_rule rule;
	enum field_presence presence;
	size_t max_bytes;
};

/* Reads the texts of the table into the struct at `base`, and stops at the first that is wrong. The others write and free them. */
int protocol_read_texts(const json_t *obj, const struct text_field *table, void *base, struct error *e) MUST_CHECK;
void protocol_write_texts(json_t *obj, const struct text_field *table, const void *base);
void protocol_release_texts(const struct text_field *table, void *base);
int protocol_check_text(const struct text_field *f, const char *s, struct error *e) MUST_CHECK;

int protocol_read_number(
    const json_t *obj, const char *key, int64_t min, int64_t max, int64_t *ret, struct error *e) MUST_CHECK;
/* null and absent are 0. */
int protocol_read_number_or_null(const json_t *obj, const char *key, int64_t *ret, struct error *e) MUST_CHECK;
void protocol_write_number_or_null(json_t *obj, const char *key, int64_t n);

/* A new reference; `what` is its name in the error if it is not an object. */
int protocol_parse(const char *text, size_t n, const char *what, json_t **ret, struct error *e) MUST_CHECK;
/* free(); takes the reference. */
char *protocol_text(json_t *v);

enum {
	CLAIM_WAIT_MAX_S = 30, /* the longest time for which the server holds a claim open */
	RENEW_WAIT_MAX_S = 20, /* the same for a heartbeat */
	RUNNER_LABELS_MAX = 64,
	RUNNER_NEEDS_MAX = 128, /* runners in a status, and labels of each */
	RUNNER_NAME_MAX_BYTES = 64,
	LEASE_OFFER_MAX_BYTES = 1 << 20, /* the answer to a claim; an experiment lists many tests */
	LOG_PIECE_MAX_BYTES = 1 << 20,   /* in one PUT of outpost-runner */
};

/* POST /api/v1/runner/claim */
struct claim_request {
	char *name;        /* the machine's, as in `runner add` */
	char *claim_id;    /* random; the machine keeps it until the answer, because the same id gets the same lease */
	char *accelerator; /* of the machine's configuration; may be NULL */
	char **labels;     /* NULL-terminated, never NULL */
	int wait_s;        /* 0…CLAIM_WAIT_MAX_S */
	char *version;     /* of outpost-runner; may be NULL */
};
char *claim_request_text(const struct claim_request *c); /* free() */
int claim_request_parse(const char *text, size_t n, struct claim_request *ret, struct error *e) MUST_CHECK;
void claim_request_release(struct claim_request *c);

/* The answer (200): one dispatch, for this machine alone until the lease expires. */
struct lease_offer {
	char *lease_id;
	int64_t lease_ms; /* it expires after this time without a heartbeat */
	int attempt;      /* 1…; the job's run_attempt */
	int64_t job_id;   /* for PUT …/log and …/report; 0: Outpost keeps no results of it (L1) */
	char *dispatch_id;
	char *accelerator;
	char *runner; /* its name in the accelerator's file: the job's workflow */
	char *run_id; /* the job's */
	enum visibility visibility;
	/* the change to test */
	enum change_kind kind;
	char *repository, *head_sha;
	int64_t number;            /* the PR; 0 none */
	char *ref;                 /* push, periodic: refs/heads/main; else NULL */
	char *title, *author;      /* or NULL */
	char *base_ref, *base_sha; /* PRs; or NULL */
	char *event_type, *action; /* as github runners get them */
	char *delivery_id;
	char *change_url; /* for people */
	/* a periodic run: the vendor's own code at that time; or NULL */
	char *source_git_url, *source_branch, *source_sha;
	/* CHANGE_EXPERIMENT: the tests to run; owned; NULL: all. Then head_sha is the commit that it names, number is
	 * the pull request that it explains, and ref is the branch with the merge base (refs/heads/main), for a server
	 * that does not give commits by their names. */
	struct experiment_request *experiment;
};
char *lease_offer_text(const struct lease_offer *o); /* free() */
int lease_offer_parse(const char *text, size_t n, struct lease_offer *ret, struct error *e) MUST_CHECK;
/* The content of OUTPOST_CHANGE_JSON: the offer without the lease's own members. free(). */
char *lease_offer_change_text(const struct lease_offer *o);
void lease_offer_release(struct lease_offer *o);

/* GET /api/v1/runner/status: the server's information about the machine that asks, for `outpost-runner --check --online`. */
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
int runner_status_parse(const char *text, size_t n, struct runner_status *ret, struct error *e) MUST_CHECK;
void runner_status_release(struct runner_status *s);

/* POST /api/v1/runner/leases/{id}/renew {"wait":N} → 200 with one of these. */
enum lease_word {
	LEASE_ACTIVE,    /* go on */
	LEASE_CANCELLED, /* the change was superseded, closed or cancelled, or its deadline passed: stop */
	LEASE_LOST,      /* it expired, and another machine may do the work: stop, and report only finished work */
	N_LEASE_WORDS
};
WORDS_DECLARE(lease_word);
struct lease_answer {
	enum lease_word word;
	int64_t lease_ms; /* ACTIVE */
	char *reason;     /* CANCELLED, LOST: for the log; may be NULL */
};
char *lease_answer_text(const struct lease_answer *a); /* free() */
int lease_answer_parse(const char *text, size_t n, struct lease_answer *ret, struct error *e) MUST_CHECK;
void lease_answer_release(struct lease_answer *a);
