/* An accelerator as its vendor registers it, and how and when its tests run. config/ fills it in once, and it does not
 * change afterwards. Also the circuit breaker, the levels, the heads of vendors' sources and the feed's events.
 *
 * Thread: any. Plain data and pure functions; the owner of a struct releases it. */
#pragma once

#include "model/experiment.h"
#include "model/platform.h"
#include "model/record.h"

/* L1 silent, L2 dashboard and comment, L3 + check run on label, L4 + check run always. */
enum level { LEVEL_1 = 1, LEVEL_2, LEVEL_3, LEVEL_4 };
WORDS_DECLARE(level); /* "L1" … "L4" */
#define RECORD_C_LEVEL enum level
#define RECORD_T_LEVEL RECORD_RANK, &level_words

/* The authors whose changes may run. */
enum trust { TRUST_ANYONE, TRUST_CONTRIBUTORS, TRUST_MEMBERS, TRUST_APPROVED, TRUST_MERGED };

enum runner_kind {
	RUNNER_GITHUB,  /* repository_dispatch to the vendor's repository */
	RUNNER_WEBHOOK, /* signed POST to the vendor's own CI */
	RUNNER_PULL,    /* outpost-runner machines ask for work */
	RUNNER_INFRA,   /* hosted in infra.repository; no file has it */
};

struct runner {
	char *name; /* unique within its accelerator; "infra" for RUNNER_INFRA */
	enum runner_kind kind;
	bool is_nightly_only; /* gets periodic runs, but neither pull requests nor pushes */
	enum reruns reruns;   /* which experiments it gets; RERUNS_NONE for RUNNER_INFRA */
	char *repository;     /* github, infra: owner/name as configured */
	/* github, infra: pinned, so that only this repository reports under its name; 0: not pinned */
	int64_t repository_id, repository_owner_id;
	char *workflow;        /* github: `.github/workflows/x.yml` or NULL */
	char *url;             /* webhook */
	struct secret *secret; /* webhook: the HMAC key, read at load */
	char **labels;         /* pull: NULL-terminated */
	int max_parallel;      /* pull */
};

/* How much of a job's log leaves the vendor's machine. */
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
	int64_t push_every_ms; /* at most one push run in each such interval, the newest; 0: each push */
	char **schedules;      /* cron texts, NULL-terminated; NULL: none */
};

/* Each counts from the dispatch. acknowledge_ms 0: not given; see deadline_acknowledge_ms(). */
struct deadlines {
	int64_t acknowledge_ms, start_ms, finish_ms;
};

/* How much of an accelerator's capacity experiments may use. */
struct experiment_budget {
	int tests;          /* the maximum of different tests for one head */
	int per_head;       /* the maximum of rounds for one head and runner */
	int share_permille; /* of the time that its jobs took; 0: no experiments */
};

struct accelerator {
	char *name;   /* [a-z0-9-]+, unique */
	char *title;  /* column heading, vendor's text */
	char *vendor; /* may be NULL */
	enum level level;
	char *docs_url, *help_url;            /* https or NULL */
	char *source_git_url, *source_branch; /* may be NULL */
	char **oncall;                        /* GitHub logins without @, NULL-terminated, never NULL */
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

/* The given deadline. The default is 10 min for a webhook runner, which acknowledges with its 2xx, and 0 (no deadline)
 * for others: GitHub's 204 says nothing about the vendor, and a queue of pull runners may be long. */
int64_t deadline_acknowledge_ms(const struct deadlines *d, enum runner_kind kind);

const char *trust_name(enum trust trust);       /* as written in a file */
const char *visibility_name(enum visibility v); /* "public", "summary" */
WORDS_DECLARE(runner_kind);                     /* "github", "webhook", "pull", "infra" */
#define RECORD_C_RUNNER_KIND enum runner_kind
#define RECORD_T_RUNNER_KIND RECORD_WORD, &runner_kind_words
void accelerator_release(struct accelerator *a); /* wipes secrets */

/* ---- the circuit breaker: an accelerator that is red on most recent unrelated changes says more about itself than about them.
 * It is shown as "unhealthy, not counted" until it recovers ---- */

enum { HEALTH_LOOKS_AT = 20 }; /* newest completed changes, one an author's PR or push */

struct health_sample {
	bool is_red; /* a FAIL, ERROR or MISS that no known issue explains */
	/* All red tests are NEW, and no other author's change is red in this way. The change is the cause, so the
	 * sample is skipped. */
	bool is_attributed;
};

/* samples: of unrelated changes, newest first. The breaker trips when 8 of the newest 10 that count are red, so never
 * with fewer than 8 samples. It recovers after 3 green ones in a row, or when less than half of 10 are red. */
bool health_is_unhealthy(const struct health_sample *samples, size_t n, bool was_unhealthy);

/* ---- the levels: the distance of an accelerator from the next one, by the criteria of PyTorch's cross-repository CI relay, CRCR
 * (pytorch/rfcs#102, pytorch/test-infra torchci/lib/crcr and clickhouse_queries/crcr_l3_summary). The result is a
 * proposal and changes nothing, because the vendor's file has the level ---- */

enum { PROMOTION_DAYS = 14, DEMOTION_DAYS = 7 };
#define OVERRUN_MS (INT64_C(3) * 3600 * 1000) /* a job that runs longer overruns */

/* The criteria of a level; 0 of the last two: does not count. */
struct level_thresholds {
	int64_t tenure_ms;     /* registered at L2 or above, at least */
	int64_t data_ms;       /* since the first job that counts, at least */
	int64_t end_to_end_ms; /* half of the workflow runs take less, from the dispatch on */
	int64_t queue_ms;      /* mean wait of a job for the start of its workflow run: less */
	int overrun_percent;   /* of the jobs that did not time out: less */
	int timeout_percent;   /* of jobs: less */
	int pass_percent;      /* of jobs: at least */
	int deadlines_percent; /* of dispatches that met theirs, at least */
	int64_t reaction_ms;   /* from the notice about a red main to green, on average, at most */
	bool is_proposed;      /* false: the numbers do not suffice; CRCR leaves L4 to the core maintainers */
};

/* Completed jobs of pull requests, each name's latest attempt, over some days. */
struct level_window {
	int64_t n_jobs, n_passed, n_timed_out, n_overrun;
	int64_t n_upstream;    /* of those that did not pass: broken by upstream alone */
	int64_t end_to_end_ms; /* P50; -1: not known */
	int64_t queue_ms;      /* mean; -1: not known */
};

struct level_numbers {
	struct level_window promotion, demotion; /* of PROMOTION_DAYS and DEMOTION_DAYS */
	int64_t tenure_ms, data_ms;              /* -1: not known */
	int64_t n_dispatches, n_deadlines_met;   /* of 30 days, as reaction_ms */
	int64_t reaction_ms;                     /* -1: never red */
};

/* X(ENUM, name of the threshold in outpost.yml), in the order in which pages list those that are not met */
#define LEVEL_CRITERIA(X)                                                                                              \
	X(TENURE, "tenure")                                                                                            \
	X(DATA, "data")                                                                                                \
	X(END_TO_END, "end_to_end_time")                                                                               \
	X(OVERRUN, "overrun_rate")                                                                                     \
	X(QUEUE, "queue_time")                                                                                         \
	X(TIMEOUT, "timeout_rate")                                                                                     \
	X(PASS, "pass_rate")                                                                                           \
	X(DEADLINES, "deadlines_met")                                                                                  \
	X(REACTION, "reaction_time")                                                                                   \
	X(MAINTAINERS, "maintainers") /* more than numbers is needed */
#define CRITERION_VALUE(e, name) CRITERION_##e,
enum level_criterion { LEVEL_CRITERIA(CRITERION_VALUE) N_CRITERIA };
WORDS_DECLARE(level_criterion);

enum level_met { MET_UNKNOWN, MET_NO, MET_YES };
enum level_unit { UNIT_SECONDS, UNIT_SHARE };

/* One criterion, measured. */
struct level_finding {
	enum level_criterion criterion;
	enum level_unit unit;
	bool has_measure;
	double measured, target;
	double with_upstream; /* pass rate: with the failures that upstream caused, as CRCR counts; else as measured */
	bool is_at_least;     /* met by measured >= target, else by measured < target (reaction time: <=) */
	enum level_met met;
};

enum level_step {
	STEP_UP,   /* the criteria for an accelerator to reach the level */
	STEP_DOWN, /* those to keep it: pass rate, timeouts, end-to-end time */
};
/* The criteria of `t` in order; returns their number. */
size_t level_findings(const struct level_numbers *n, const struct level_thresholds *t, enum level_step step,
    struct level_finding ret[N_CRITERIA]);

struct level_proposal {
	enum level level;    /* the level that the numbers suffice for; equal to the present one: stay */
	unsigned unmet_next; /* bits 1 << enum level_criterion: criteria of the next level that are not met */
	unsigned unmet_now;  /* criteria of the present level that are not met */
	bool is_silent;      /* no job in DEMOTION_DAYS: listed, without a proposal */
};

/* l3, l4: the thresholds of L3 and L4. L2 requires only reports. L1 is the operator's choice: it is not proposed, and
 * not left. One step at a time. */
struct level_proposal level_propose(enum level now, const struct level_numbers *n, const struct level_thresholds *l3,
    const struct level_thresholds *l4);

/* ---- the newest commit of a vendor's own code, which a periodic run tests with upstream's. dispatch/ decides when to read it,
 * and registry/ reads it with git ---- */

struct source_head {
	char *accelerator;
	char *git_url;
	char *branch; /* NULL: the repository's HEAD */
	char *sha;
};
void source_head_release(struct source_head *h);

/* One request. The caller owns it and its texts until done(), which runs once, on the loop, never inside ask(). */
struct head_request {
	/* in */
	const char *git_url, *branch;
	void (*done)(struct head_request *r);
	/* out */
	int err; /* ERR_NOT_FOUND: no such branch; ERR_DENIED: a forbidden address; ERR_NETWORK, ERR_CANCELLED, … */
	struct error why;
	char sha[41];
	void *work; /* of the reader */
};
struct head_reader {
	void (*ask)(void *owner, struct head_request *r);
	/* The request ends soon, with ERR_CANCELLED unless it has ended already. */
	void (*cancel)(void *owner, struct head_request *r);
	void *owner;
};

/* ---- an event of the feed: an accelerator broke, or works again. A reader fills it in (views/feed_events.h) ---- */

enum { FEED_EVENTS_MAX = 50, FEED_TESTS_MAX = 10 };

enum feed_event_kind {
	FEED_RED,           /* it became red on a branch of upstream */
	FEED_GREEN,         /* the end of that: a test of a newer commit, or of the same one again, is green */
	FEED_NOT_RED,       /* the end without a PASS: the red tests are explained */
	FEED_NIGHTLY_RED,   /* tests broke with a periodic run, and are red since */
	FEED_NIGHTLY_GREEN, /* tests work again since one */
};

#define RECORD_C_FEED_KIND enum feed_event_kind
#define RECORD_T_FEED_KIND RECORD_RANK, NULL

/* Of an episode: `red_episode` as e, its accelerator as a, its first bad change as b and its end as g; ?2: 1 for the
 * end. `ref`: the branch; NULL for a periodic run. `sha`: the commit that broke or repaired it; NULL: no row has it any
 * more. `last_good_sha`: FEED_RED. `issue_number` 0: there is no issue. */
#define FEED_EVENT_RECORD(F, S)                                                                                        \
	F(S, FEED_KIND, kind, NULL, "CASE WHEN ?2 = 0 THEN 0 WHEN e.ended_change IS NULL THEN 2 ELSE 1 END", "")       \
	F(S, TEXT, accelerator, NULL, "e.accelerator", "")                                                             \
	F(S, TEXT, title, NULL, "a.title", "")                                                                         \
	F(S, TEXT, ref, NULL, "e.ref", "")                                                                             \
	F(S, TEXT, sha, NULL, "CASE WHEN ?2 <> 0 THEN g.head_sha ELSE b.head_sha END", "")                             \
	F(S, TEXT, last_good_sha, NULL, "CASE WHEN ?2 = 0 THEN e.last_good_sha END", "")                               \
	F(S, TEXT, issue_repository, NULL, "e.issue_repository", "")                                                   \
	F(S, INT, issue_number, NULL, "e.issue_number", "")
/* Of a periodic run: tests that broke or work again (h) with the run n. `n_tests`: their number. */
#define FEED_NIGHTLY_RECORD(F, S)                                                                                      \
	F(S, FEED_KIND, kind, NULL, "h.kind", "")                                                                      \
	F(S, INT, id, NULL, "h.day", "")                                                                               \
	F(S, INT, n_tests, NULL, "COUNT(*)", "")                                                                       \
	F(S, TIME, at_ms, NULL, "n.at_ms", "")                                                                         \
	F(S, TEXT, accelerator, NULL, "h.accelerator", "")                                                             \
	F(S, TEXT, title, NULL, "a.title", "")                                                                         \
	F(S, COMMIT, sha, NULL, "n.upstream_sha", "")
struct feed_event {
	int64_t
	    id; /* the episode, or the run's day since 1970; unique with the kind, and for a periodic run the accelerator */
	int64_t at_ms;
	RECORD_MEMBERS(FEED_EVENT_RECORD)
	char **tests; /* red then, broke or work again: "SUITE/TEST", the first FEED_TESTS_MAX; not with FEED_GREEN */
	int64_t n_tests; /* all of them */
	bool is_silence; /* FEED_RED: all are deadlines that passed without a report */
};
RECORD_DECLARE(feed_event);
RECORD_DECLARE(feed_nightly);
void feed_event_release(struct feed_event *e);
