/* One accelerator in full, and its jobs a page at a time. */
#ifndef STORE_ACCELERATOR_PAGE_H
#define STORE_ACCELERATOR_PAGE_H

#include "model/dashboard.h"
#include "model/schedule_run.h"
#include "store/registry.h"
#include "store/store.h"

enum { PAGE_TREND_DAYS = 90, PAGE_CALENDAR_DAYS = 365, PAGE_JOBS = 25 };

struct page_job {
	int64_t id;
	char *workflow, *name, *status, *conclusion, *verdict; /* the last two may be NULL */
	char *head_sha;
	enum change_kind kind;
	int64_t number;                   /* 0: no pull request */
	int64_t started_ms, completed_ms; /* 0: not known */
	int64_t queued_ms;                /* -1: not known */
	bool is_late, has_counts;
	int64_t by_status[N_TEST_STATUSES];
};
struct page_jobs {
	struct page_job *at; /* newest first */
	size_t n;
	bool has_more;
};
void page_jobs_release(struct page_jobs *l);

/* Jobs of an accelerator, all attempts. */
struct list_accelerator_jobs {
	struct store_query q;
	const char *accelerator;
	int64_t before_id; /* 0: from the newest */
	int limit;
	struct page_jobs jobs; /* out; page_jobs_release() */
};
int store_list_accelerator_jobs(struct store *s, struct list_accelerator_jobs *q) MUST_CHECK;

struct page_machine {
	char *name;
	int64_t last_seen_ms; /* 0: never */
	char **busy_with;     /* runners whose work it has in hand; NULL-terminated */
};
struct page_commit {
	char *sha; /* NULL: not known */
	int64_t at_ms;
};

struct get_accelerator_page {
	struct store_query q;
	const char *name; /* in */
	int64_t now_ms;   /* in */
	/* out; get_accelerator_page_release() */
	struct accelerator_figures figures;
	int64_t today;
	struct day_view trend[PAGE_TREND_DAYS];
	enum day_outcome calendar[PAGE_CALENDAR_DAYS];
	char *crons; /* a JSON array; NULL: no schedule */
	int64_t next_ms;
	bool is_next_skipped;
	struct schedule_run_view last_run;
	int64_t red_since_ms; /* 0: not red, and nothing below it is set */
	struct page_commit first_bad, last_good;
	char *issue_repository;
	int64_t issue_number;
	char **red_tests; /* "SUITE/TEST" at first_bad; NULL-terminated, RED_TESTS_MAX at most */
	struct page_jobs jobs;
	struct page_machine *machines; /* by name */
	size_t n_machines;
	int64_t n_experiments_pending, experiments_24h_ms; /* the time that their jobs took */
};
/* Of one that nobody has mirrored yet everything is empty. */
int store_get_accelerator_page(struct store *s, struct get_accelerator_page *q) MUST_CHECK;
void get_accelerator_page_release(struct get_accelerator_page *q);

#endif
