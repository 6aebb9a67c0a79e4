#include "history/run_suites.h"

#include <string.h>

#include "base/alloc.h"
#include "db/record_rows.h"
#include "model/attribution.h"
#include "model/dashboard.h"

struct suite {
	char *name;
	int64_t by_status[N_TEST_STATUSES];
	int64_t n_broken;
	enum test_status worst;
	bool is_worst_broken;
	int64_t job_id; /* 0: no job has that status */
};

struct suites {
	struct suite *at;
	size_t n;
};

static bool is_explained(enum attribution a)
{
	return a == ATTRIBUTION_FLAKY || a == ATTRIBUTION_KNOWN;
}

static struct suite *suite_of(struct suites *l, const char *name)
{
	if (l->n && strcmp(l->at[l->n - 1].name, name) == 0)
		return &l->at[l->n - 1];
	*ARRAY_PUSH(l->at, l->n) = (struct suite){.name = xstrdup(name), .worst = N_TEST_STATUSES};
	return &l->at[l->n - 1];
}

static bool is_worse(enum test_status status, bool is_broken, const struct suite *s)
{
	if (is_broken != s->is_worst_broken)
		return is_broken;
	return status < s->worst;
}

/* Its status is the worst one, and a broken test comes before an explained one; the job is the one with that status. */
static void add_to_suite(
    struct suite *s, enum test_status status, bool is_broken, int64_t n, int64_t job_id)
{
	s->by_status[status] += n;
	s->n_broken += is_broken ? n : 0;
	if (is_worse(status, is_broken, s)) {
		s->worst = status;
		s->is_worst_broken = is_broken;
		s->job_id = job_id;
	}
}

static void total_add(struct cell_counts *c, enum test_status s, enum attribution a, int64_t n)
{
	bool is_red = test_status_is_red(s);

	c->by_status[s] += n;
	c->n_flaky += is_red && a == ATTRIBUTION_FLAKY ? n : 0;
	c->n_broken += is_red && !is_explained(a) ? n : 0;
}

#define CELL_GROUP_RECORD(F, S)                                                                    \
	F(S, BORROWED, suite, NULL, "t.suite", "")                                                 \
	F(S, TEST_STATUS, status, NULL, "v.status", "")                                            \
	F(S, ATTRIBUTION, whose, NULL, "v.attribution", "")                                        \
	F(S, INT, n, NULL, "COUNT(*)", "")                                                         \
	F(S, ID, job_id, NULL, "MIN(v.job_id)", "")
RECORD_LOCAL(cell_group, CELL_GROUP_RECORD)

/* The rows of a suite follow each other. */
static void read_suites(struct db *d, int64_t change_id, const char *accelerator, struct suites *l,
    struct cell_counts *total)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(CELL_GROUP_RECORD,
		"FROM verdict v JOIN test t ON t.id = v.test_id"
		" WHERE v.change_id = ?1 AND v.accelerator = ?2"
		" GROUP BY t.suite, v.status, v.attribution ORDER BY t.suite"),
	    V_INT(change_id), V_TEXT(accelerator));
	struct cell_group of;

	while (rows_next(r)) {
		record_read(r, &cell_group_record, &of);
		if (of.status == N_TEST_STATUSES)
			continue;
		add_to_suite(suite_of(l, of.suite), of.status,
		    test_status_is_red(of.status) && !is_explained(of.whose), of.n, of.job_id);
		total_add(total, of.status, of.whose, of.n);
	}
}

static int64_t n_red(const struct suite *s)
{
	return s->by_status[TEST_FAIL] + s->by_status[TEST_ERROR] + s->by_status[TEST_MISS];
}

static int by_worth(const void *x, const void *y)
{
	const struct suite *a = x, *b = y;
	bool is_usual = suite_is_usual(a->name);

	if (is_usual != suite_is_usual(b->name))
		return is_usual ? -1 : 1;
	if (a->n_broken != b->n_broken)
		return a->n_broken < b->n_broken ? 1 : -1;
	if (n_red(a) != n_red(b))
		return n_red(a) < n_red(b) ? 1 : -1;
	return strcmp(a->name, b->name);
}

static void fold(struct suites *l)
{
	struct suite *others;

	if (l->n <= RUN_SUITES_MAX)
		return;
	qsort(l->at, l->n, sizeof(*l->at), by_worth);
	others = &l->at[RUN_SUITES_MAX - 1];
	free(others->name);
	others->name = xstrdup(RUN_SUITES_OTHERS);
	for (size_t i = RUN_SUITES_MAX; i < l->n; i++) {
		struct suite *s = &l->at[i];

		for (int k = 0; k < N_TEST_STATUSES; k++)
			others->by_status[k] += s->by_status[k];
		others->n_broken += s->n_broken;
		if (is_worse(s->worst, s->is_worst_broken, others)) {
			others->worst = s->worst;
			others->is_worst_broken = s->is_worst_broken;
			others->job_id = s->job_id;
		}
		free(s->name);
	}
	l->n = RUN_SUITES_MAX;
}

/* A vendor may have a suite with the name RUN_SUITES_OTHERS: both are added up. */
static void put_suite(
    struct db *d, int64_t change_id, const char *accelerator, const struct suite *s)
{
	db_exec(d,
	    "INSERT INTO run_suite (change_id, accelerator, suite, status, n_fail, n_error, n_miss,"
	    " n_pass, n_done, n_skip, n_broken, job_id)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
	    " ON CONFLICT (change_id, accelerator, suite) DO UPDATE SET"
	    " n_fail = run_suite.n_fail + excluded.n_fail, n_error = run_suite.n_error + "
	    "excluded.n_error,"
	    " n_miss = run_suite.n_miss + excluded.n_miss, n_pass = run_suite.n_pass + "
	    "excluded.n_pass,"
	    " n_done = run_suite.n_done + excluded.n_done, n_skip = run_suite.n_skip + "
	    "excluded.n_skip,"
	    " n_broken = run_suite.n_broken + excluded.n_broken",
	    V_INT(change_id), V_TEXT(accelerator), V_TEXT(s->name),
	    V_TEXT(test_status_name(s->worst)), V_INT(s->by_status[TEST_FAIL]),
	    V_INT(s->by_status[TEST_ERROR]), V_INT(s->by_status[TEST_MISS]),
	    V_INT(s->by_status[TEST_PASS]), V_INT(s->by_status[TEST_DONE]),
	    V_INT(s->by_status[TEST_SKIP]), V_INT(s->n_broken), V_INT_OR_NULL(s->job_id));
}

struct cell_counts run_suites_put(struct db *d, int64_t change_id, const char *accelerator)
{
	struct cell_counts total = {.n_flaky = 0};
	struct suites l = {0};

	read_suites(d, change_id, accelerator, &l, &total);
	fold(&l);
	db_exec(d, "DELETE FROM run_suite WHERE change_id = ?1 AND accelerator = ?2",
	    V_INT(change_id), V_TEXT(accelerator));
	for (size_t i = 0; i < l.n; i++) {
		put_suite(d, change_id, accelerator, &l.at[i]);
		free(l.at[i].name);
	}
	free(l.at);
	return total;
}

void run_suites_drop(struct db *d, int64_t change_id)
{
	db_exec(d, "DELETE FROM run_suite WHERE change_id = ?1", V_INT(change_id));
}
