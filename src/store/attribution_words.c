/* Whether the words of a failure mean anything, learnt from the failures of other changes: a message that other tests
 * have had on unrelated changes says nothing about this one, and one that many tests have at the same time is a
 * machine's. */
#include "base/alloc.h"
#include "store/attribution_facts.h"

enum {
	INCIDENTS_MAX = 24,   /* changes that had one key, the newest */
	OUTAGE_MIN_TESTS = 5, /* of a job, so that "most of its tests" means something */
	OUTAGE_MIN_CHANGES = 3,
	ROWS_OF_CHANGE_MAX = 50, /* that are looked at, of one key */
	ROWS_OF_KEY_MAX = 50000,
};
static const int64_t OUTAGE_MS = INT64_C(12) * 3600 * 1000;

/* How a key did elsewhere. Found once for all failures that have it. */
struct key_use {
	int64_t key;
	struct incident {
		int64_t change_id;
		char *author;
	} incidents[INCIDENTS_MAX];
	size_t n;
};

/* The changes that had the key, except this pull request's and those of its author. One index step each. */
static void find_incidents(const struct attribution_case *c, int64_t key, struct key_use *ret)
{
	int64_t before = INT64_MAX;

	*ret = (struct key_use){.key = key};
	for (int i = 0; i < 2 * INCIDENTS_MAX && ret->n < INCIDENTS_MAX; i++) {
		char *author;

		before = db_int(c->d, 0,
		    "SELECT change_id FROM failure WHERE key = ?1 AND change_id < ?2 ORDER BY "
		    "change_id DESC LIMIT 1",
		    V_INT(key), V_INT(before));
		if (!before)
			return;
		author = db_text(c->d, "SELECT author FROM change WHERE id = ?1", V_INT(before));
		if (before == c->change_id || attribution_is_same_author(author, c->author))
			free(author);
		else
			ret->incidents[ret->n++] = (struct incident){before, author};
	}
}

static void key_use_release(struct key_use *u)
{
	for (size_t i = 0; i < u->n; i++)
		free(u->incidents[i].author);
	u->n = 0;
}

enum relation { SAME_INCIDENT, OTHER_TESTS, OTHER_TESTS_WHILE_IT_PASSED };

/* In one incident many tests may fail with one message, and this test among them; that says nothing about the message.
 * Where others failed with it and this one did not, it is not about this test. */
static enum relation relate(
    const struct attribution_case *c, const struct red_failure *f, int64_t change_id)
{
	if (db_has(c->d,
		"SELECT 1 FROM failure WHERE key = ?1 AND change_id = ?2 AND test_id = ?3 LIMIT 1",
		V_INT(f->facts.mark.key), V_INT(change_id), V_INT(f->test_id)))
		return SAME_INCIDENT;
	if (db_has(c->d,
		"SELECT 1 FROM (SELECT accelerator FROM failure WHERE key = ?1 AND change_id = ?2 "
		"LIMIT ?4) f"
		" CROSS JOIN verdict v ON v.change_id = ?2 AND v.accelerator = f.accelerator"
		" AND v.test_id = ?3 WHERE v.status = 'PASS' LIMIT 1",
		V_INT(f->facts.mark.key), V_INT(change_id), V_INT(f->test_id),
		V_INT(ROWS_OF_CHANGE_MAX)))
		return OTHER_TESTS_WHILE_IT_PASSED;
	return OTHER_TESTS;
}

static bool is_of_now(
    const struct attribution_case *c, const struct red_failure *f, int64_t change_id)
{
	return db_has(c->d,
	    "SELECT 1 FROM (SELECT accelerator, at_ms FROM failure WHERE key = ?1 AND change_id = "
	    "?2 LIMIT ?5)"
	    " WHERE accelerator = ?3 AND at_ms >= ?4 LIMIT 1",
	    V_INT(f->facts.mark.key), V_INT(change_id), V_TEXT(c->accelerator),
	    V_INT(c->now_ms - OUTAGE_MS), V_INT(ROWS_OF_CHANGE_MAX));
}

static bool is_first_of_author(const struct key_use *u, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (attribution_is_same_author(u->incidents[k].author, u->incidents[i].author))
			return false;
	return true;
}

static void judge_words(
    const struct attribution_case *c, const struct key_use *u, struct red_failure *f)
{
	int n_passed = 0, n_unrelated = 0, n_now = 0;

	for (size_t i = 0; i < u->n; i++) {
		enum relation relation;

		if (!is_first_of_author(u, i))
			continue;
		relation = relate(c, f, u->incidents[i].change_id);
		if (relation == SAME_INCIDENT)
			continue;
		n_unrelated++;
		n_passed += relation == OTHER_TESTS_WHILE_IT_PASSED;
		n_now += is_of_now(c, f, u->incidents[i].change_id);
	}
	f->facts.is_specific = !f->facts.mark.is_general && n_passed == 0 && n_unrelated < 2;
	f->facts.is_outage = n_now >= OUTAGE_MIN_CHANGES;
}

/* More than half of a job's tests say the same. */
static void find_outages_of_jobs(struct attribution_case *c)
{
	for (size_t job = 0; job < c->n_jobs; job++) {
		struct red_failure *f = c->failures + c->jobs[job].first_failure;
		size_t n = c->jobs[job].n_failures, n_most = 0;
		int64_t most = 0, n_tests;

		for (size_t i = 0; i < n;
		     i++) { /* the key that more than half of them have, if there is one */
			if (!n_most)
				most = f[i].facts.mark.key;
			n_most += f[i].facts.mark.key == most ? 1 : (size_t)-1;
		}
		n_most = 0;
		for (size_t i = 0; i < n; i++)
			n_most += f[i].facts.mark.key == most;
		n_tests =
		    n ? db_int(c->d, 0, "SELECT n_tests FROM job WHERE id = ?1", V_INT(f->job_id))
		      : 0;
		if (n_tests < OUTAGE_MIN_TESTS || (int64_t)(2 * n_most) <= n_tests)
			continue;
		for (size_t i = 0; i < n; i++)
			if (f[i].facts.mark.key == most)
				f[i].facts.is_outage = f[i].facts.is_job_outage = true;
	}
}

static void find_outages(struct attribution_case *c, int64_t key)
{
	struct rows *r = db_rows(c->d,
	    "SELECT f.at_ms FROM (SELECT job_id, MAX(at_ms) AS at_ms, COUNT(DISTINCT test_id) AS n "
	    "FROM (SELECT job_id, at_ms, test_id FROM failure WHERE key = ?1 AND accelerator = ?2 "
	    "LIMIT ?3) GROUP BY job_id) f CROSS JOIN job j ON j.id = f.job_id WHERE j.n_tests >= "
	    "?4 "
	    "AND 2 * f.n > j.n_tests ORDER BY f.at_ms DESC LIMIT ?5",
	    V_INT(key), V_TEXT(c->accelerator), V_INT(ROWS_OF_KEY_MAX), V_INT(OUTAGE_MIN_TESTS),
	    V_INT(OUTAGES_MAX));

	c->outages = (struct outages){.key = key};
	while (rows_next(r))
		c->outages.at_ms[c->outages.n++] = rows_int(r, 0);
}

bool attribution_is_outage(struct attribution_case *c, int64_t key, int64_t job_id)
{
	int64_t at_ms;

	if (c->outages.key != key)
		find_outages(c, key);
	if (!c->outages.n)
		return false;
	at_ms = db_int(c->d, 0, "SELECT completed_ms FROM job WHERE id = ?1", V_INT(job_id));
	for (size_t i = 0; i < c->outages.n; i++)
		if (c->outages.at_ms[i] >= at_ms - OUTAGE_MS &&
		    c->outages.at_ms[i] <= at_ms + OUTAGE_MS)
			return true;
	return false;
}

void attribution_read_meaning(struct attribution_case *c)
{
	struct key_use use = {.key = 0};

	for (size_t i = 0; i < c->n_failures && i < COMPARED_MAX; i++) {
		struct red_failure *f = &c->failures[i];

		if (!f->facts.mark.key)
			continue;
		if (use.key != f->facts.mark.key) {
			key_use_release(&use);
			find_incidents(c, f->facts.mark.key, &use);
		}
		judge_words(c, &use, f);
	}
	key_use_release(&use);
	find_outages_of_jobs(c);
}
