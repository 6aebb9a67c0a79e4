/* What the database knows of the red cells of one accelerator's test of one change, as the rules of
 * model/attribution.h want it. Inside a writer's transaction; every question has an index and a
 * bound, so that a report of 20,000 red tests holds nobody up. */
#ifndef STORE_ATTRIBUTION_FACTS_H
#define STORE_ATTRIBUTION_FACTS_H

#include "model/attribution.h"
#include "store/db.h"
#include "store/key.h"

enum {
	/* so many red cells of one accelerator are compared with other changes; more at once are
	 * no flakes */
	CELLS_COMPARED_MAX = 2000,
};

/* One way in which a test failed in one job that counts. */
struct red_way {
	struct failure_mark mark;
	int64_t job_id;
	bool has_passed; /* in another attempt of that job */
	bool is_on_base;
};

struct red_cell {
	int64_t test_id, job_id;
	char *suite, *test;
	struct attribution_facts facts; /* its lists are these: */
	struct base_run *base;
	struct similar_failure *similar;
	struct red_way *ways; /* where there are several, each once; else none */
	size_t n_ways;
	bool has_witness; /* one of them speaks for it, whatever others do */
	/* as it stands; was_reason NULL: not looked at yet. known_url: facts.known_url */
	enum attribution was;
	char *was_reason, *was_url, *known_url;
	int64_t was_job;
	unsigned was_needs;
};

struct attribution_case {
	struct db *d;
	int64_t change_id, number, now_ms; /* number: a PR of it, 0: none */
	const char *accelerator;
	bool is_push;
	struct repository_key key;
	char *head_sha, *ref, *merge_base_sha, *author; /* ref: the branch, without refs/heads/ */
	int64_t window_ms;
	int distance;
	struct red_cell *cells; /* by test_id */
	size_t n;
};

/* False: there is no such change, or it has no cell to attribute (attribution_applies()). attribution_case_release() either way. */
bool attribution_case_read(struct attribution_case *c);
void attribution_case_release(struct attribution_case *c);

struct red_cell *attribution_cell(const struct attribution_case *c, int64_t test_id); /* or NULL */
/* A failure as it is compared; columns of the row. */
struct failure_mark attribution_mark(const struct rows *r, int status, int message);

/* ways, has_other_failure: before the others. */
void facts_of_ways(struct attribution_case *c);
void facts_of_ways_on_base(
    struct attribution_case *c);                    /* are_all_on_base: behind facts_of_base() */
void facts_of_base(struct attribution_case *c);     /* base, is_base_known */
void facts_of_attempts(struct attribution_case *c); /* passed_here_job */
struct attribution_result attribution_judge(
    const struct attribution_case *c, const struct red_cell *cell);

/* BASE by a single red run: what others say of it counts first. */
bool attribution_is_doubtful(const struct attribution_case *c, const struct red_cell *cell);

/* similar, mixed_elsewhere_job, is_first_seen_on_own, n_in_row; of those cells only that nothing
 * else explains. */
void facts_of_others(struct attribution_case *c);

#endif
