/* What a vendor registers: one accelerator, how its tests get run and when. Plain
 * data; config/ fills it once and nobody changes it after.
 *
 * Thread: any. Plain data and pure functions; the owner of a struct releases it. */
#pragma once

#include "model/experiment.h"
#include "model/platform.h"
#include "model/record.h"

/* L1 silent, L2 dashboard and comment, L3 + check run on label, L4 + check run always. */
enum level { LEVEL_1 = 1, LEVEL_2, LEVEL_3, LEVEL_4 };
extern const struct words level_words;
#define RECORD_C_LEVEL enum level
#define RECORD_T_LEVEL RECORD_RANK, &level_words

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

/* What was given, else 10 min for a webhook runner (its 2xx is the sign) and 0, no such deadline,
 * for the others: GitHub's 204 says nothing of the vendor, a queue of pull runners may be long. */
int64_t deadline_acknowledge_ms(const struct deadlines *d, enum runner_kind kind);

const char *level_name(enum level level);       /* "L1" … "L4" */
const char *trust_name(enum trust trust);       /* as written in a file */
const char *visibility_name(enum visibility v); /* "public", "summary" */
extern const struct words runner_kind_words;
#define RECORD_C_RUNNER_KIND enum runner_kind
#define RECORD_T_RUNNER_KIND RECORD_WORD, &runner_kind_words
const char *runner_kind_name(enum runner_kind k); /* "github", "webhook", "pull", "infra" */
void accelerator_release(struct accelerator *a);  /* wipes secrets */

/* The circuit breaker: an accelerator that is red on most recent unrelated changes says more about
 * itself than about them, and is shown as "unhealthy, not counted" until it recovers. Pure. */

enum { HEALTH_LOOKS_AT = 20 }; /* newest completed changes, one an author's PR or push */

struct health_sample {
	bool is_red; /* FAIL, ERROR or MISS in it that no known issue explains */
	/* All its red is NEW, and nobody else's change is red so: its own fault. It tells nothing of
	 * the accelerator, neither good nor bad, and is passed over. */
	bool is_attributed;
};

/* samples: newest first, of changes that have nothing to do with each other. Hysteresis: trips at
 * 8 red ones of the newest 10 that count, recovers at 3 greens in a row or with less than half of 10
 * red. Fewer than 8 samples never trip it. */
bool health_is_unhealthy(const struct health_sample *samples, size_t n, bool was_unhealthy);

/* How far an accelerator is from the next level, by the criteria of PyTorch's cross-repository CI relay, CRCR
 * (pytorch/rfcs#102, pytorch/test-infra torchci/lib/crcr and clickhouse_queries/crcr_l3_summary). It makes a
 * proposal, never a change: the level is what the vendor's file says. Pure. */

enum {
	PROMOTION_DAYS = 14,
	DEMOTION_DAYS = 7,
};
#define OVERRUN_MS (INT64_C(3) * 3600 * 1000) /* a job that runs longer overruns */

/* What a level demands; 0 of the last two: does not count. */
struct level_thresholds {
	int64_t tenure_ms;     /* registered at L2 or above, at least */
	int64_t data_ms;       /* since the first job that counts, at least */
	int64_t end_to_end_ms; /* half of the workflow runs take less, from the dispatch on */
	int64_t queue_ms;      /* mean wait of a job for the start of its workflow run: less */
	int overrun_percent;   /* of the jobs that did not time out: less */
	int timeout_percent;   /* of jobs: less */
	int pass_percent;      /* of jobs: at least */
	int deadlines_percent; /* of dispatches that met theirs, at least */
	int64_t reaction_ms;   /* from told of a red main to green, on average, at most */
	/* False: the numbers are necessary and do not suffice. CRCR leaves L4 to the core maintainers. */
	bool is_proposed;
};

/* Completed jobs of pull requests, each name's latest attempt, over some days. */
struct level_window {
	int64_t n_jobs, n_passed, n_timed_out, n_overrun;
	int64_t n_upstream;    /* of those that did not pass: failed by nothing but upstream */
	int64_t end_to_end_ms; /* P50; -1: not known */
	int64_t queue_ms;      /* mean; -1: not known */
};

struct level_numbers {
	struct level_window promotion, demotion; /* of PROMOTION_DAYS and DEMOTION_DAYS */
	int64_t tenure_ms, data_ms;              /* -1: not known */
	int64_t n_dispatches, n_deadlines_met;   /* of 30 days, as reaction_ms */
	int64_t reaction_ms;                     /* -1: never red */
};

enum level_criterion { /* the first that fails is named first */
	CRITERION_TENURE,
	CRITERION_DATA,
	CRITERION_END_TO_END,
	CRITERION_OVERRUN,
	CRITERION_QUEUE,
	CRITERION_TIMEOUT,
	CRITERION_PASS,
	CRITERION_DEADLINES,
	CRITERION_REACTION,
	CRITERION_MAINTAINERS, /* more than numbers is needed */
	N_CRITERIA
};
const char *level_criterion_name(enum level_criterion c); /* "pass_rate", "queue_time", … */

enum level_met { MET_UNKNOWN, MET_NO, MET_YES };
enum level_unit { UNIT_SECONDS, UNIT_SHARE };

/* One criterion, measured. */
struct level_finding {
	enum level_criterion criterion;
	enum level_unit unit;
	bool has_measure;
	double measured, target;
	double with_upstream; /* pass rate: with the failures that upstream caused, as CRCR counts; else as measured */
	/* measured >= target meets it, else measured < target (reaction time: <=) */
	bool is_at_least;
	enum level_met met;
};

enum level_step {
	STEP_UP,   /* what the level demands of one that is to reach it */
	STEP_DOWN, /* what it demands of one that has it: pass rate, timeouts, end-to-end time */
};
/* The criteria of `t` in order; returns how many. */
size_t level_findings(const struct level_numbers *n, const struct level_thresholds *t, enum level_step step,
    struct level_finding ret[N_CRITERIA]);

struct level_proposal {
	enum level level;    /* the one that the numbers carry; equal to the present one: stay */
	unsigned unmet_next; /* bits 1 << enum level_criterion: what the next level still needs */
	unsigned unmet_now;  /* what the present level demands and is not met */
	bool is_silent;      /* no job in the time of a demotion: listed, and nothing is proposed */
};

/* thresholds: of L3 and L4; L2 demands nothing but reports, L1 is the operator's choice and is
 * never proposed nor left. One step at a time. */
struct level_proposal level_propose(enum level now, const struct level_numbers *n, const struct level_thresholds *l3,
    const struct level_thresholds *l4);

/* The newest commit of a vendor's own code, which a periodic run is of beside upstream's; and who
 * finds it out. The registry's part knows git, the dispatcher knows when: they meet here. */

struct source_head {
	char *accelerator;
	char *git_url;
	char *branch; /* NULL: whatever the repository's HEAD is */
	char *sha;
};
void source_head_release(struct source_head *h);

/* One question. The caller owns it and its texts until done, which runs once, on the loop, never
 * inside ask(). */
struct head_request {
	/* in */
	const char *git_url, *branch;
	void (*done)(struct head_request *r);
	/* out */
	int err; /* ERR_NOT_FOUND: no such branch; ERR_DENIED: an address that may not be reached;
	          * ERR_NETWORK, ERR_TIMEOUT, ERR_TOO_BIG, …; ERR_CANCELLED */
	struct error why;
	char sha[41];
	/* the other side's own */
	void *work;
};
struct head_reader {
	void (*ask)(void *owner, struct head_request *r);
	/* It ends soon, with ERR_CANCELLED unless it had ended otherwise. */
	void (*cancel)(void *owner, struct head_request *r);
	void *owner;
};

/* ---- an event of the feed: an accelerator broke, or works again. A reader fills it in (views/feed_events.h) ---- */

enum { FEED_EVENTS_MAX = 50, FEED_TESTS_MAX = 10 };

enum feed_event_kind {
	FEED_RED,           /* it became red on a branch of upstream */
	FEED_GREEN,         /* its end: a test of a newer commit, or of the same one again, is green */
	FEED_NOT_RED,       /* its end without a PASS: the red tests are explained */
	FEED_NIGHTLY_RED,   /* tests broke with a periodic run, and are red since */
	FEED_NIGHTLY_GREEN, /* tests work again since one */
};

#define RECORD_C_FEED_KIND enum feed_event_kind
#define RECORD_T_FEED_KIND RECORD_RANK, NULL

/* Of an episode: `red_episode` as e, its accelerator as a, its first bad change as b and its end as g; ?2: is it the end?
 * `ref`: the branch; NULL for a periodic run. `sha`: the commit that broke or repaired it; NULL: not on record any more.
 * `last_good_sha`: FEED_RED. `issue_number` 0: there is no issue. */
#define FEED_EVENT_RECORD(F, S)                                                                                        \
	F(S, FEED_KIND, kind, NULL, "CASE WHEN ?2 = 0 THEN 0 WHEN e.ended_change IS NULL THEN 2 ELSE 1 END", "")       \
	F(S, TEXT, accelerator, NULL, "e.accelerator", "")                                                             \
	F(S, TEXT, title, NULL, "a.title", "")                                                                         \
	F(S, TEXT, ref, NULL, "e.ref", "")                                                                             \
	F(S, TEXT, sha, NULL, "CASE WHEN ?2 <> 0 THEN g.head_sha ELSE b.head_sha END", "")                             \
	F(S, TEXT, last_good_sha, NULL, "CASE WHEN ?2 = 0 THEN e.last_good_sha END", "")                               \
	F(S, TEXT, issue_repository, NULL, "e.issue_repository", "")                                                   \
	F(S, INT, issue_number, NULL, "e.issue_number", "")
/* Of a periodic run: tests that broke or work again with one run (h), which is n. `n_tests`: how many. */
#define FEED_NIGHTLY_RECORD(F, S)                                                                                      \
	F(S, FEED_KIND, kind, NULL, "h.kind", "")                                                                      \
	F(S, INT, id, NULL, "h.day", "")                                                                               \
	F(S, INT, n_tests, NULL, "COUNT(*)", "")                                                                       \
	F(S, TIME, at_ms, NULL, "n.at_ms", "")                                                                         \
	F(S, TEXT, accelerator, NULL, "h.accelerator", "")                                                             \
	F(S, TEXT, title, NULL, "a.title", "")                                                                         \
	F(S, COMMIT, sha, NULL, "n.upstream_sha", "")
struct feed_event {
	/* With the kind (and for a periodic run the accelerator) it names the event for ever: the episode, or the run's day
	 * since 1970. */
	int64_t id;
	int64_t at_ms;
	RECORD_MEMBERS(FEED_EVENT_RECORD)
	/* The tests that were red then, broke or work again, "SUITE/TEST"; NULL-terminated, the first FEED_TESTS_MAX. Not with
	 * FEED_GREEN. */
	char **tests;
	int64_t n_tests; /* all of them */
	bool is_silence; /* FEED_RED: they are all deadlines that passed without a report */
};
RECORD_DECLARE(feed_event);
RECORD_DECLARE(feed_nightly);
void feed_event_release(struct feed_event *e);
