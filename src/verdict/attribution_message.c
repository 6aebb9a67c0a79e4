/* Failures with the same message: in other changes, which shows whether the message is specific to the test, and in the same
 * job. */

#include "verdict/attribution_facts.h"

enum {
	OUTAGE_MIN_TESTS =
	    5,              /* of a job, so that "most of its tests" has a meaning; also in the index job_mostly_red */
	INCIDENTS_MAX = 24, /* changes that had one key, the newest */
	OUTAGE_MIN_CHANGES = 3,
	ROWS_OF_CHANGE_MAX = 50, /* that are looked at, of one key */
};
static const int64_t OUTAGE_MS = INT64_C(12) * 3600 * 1000;

/* The incidents with one key, read once for all failures that have it. */
struct key_use {
	int64_t key;
	struct incident {
		int64_t change_id;
		char *author;
	} incidents[INCIDENTS_MAX];
	size_t n;
};

/* Reads the changes that had the key, except this one and those of its author. Each takes one step of the index. Key 0:
 * frees the list. */
static void read_incidents(const struct attribution_case *c, int64_t key, struct key_use *u)
{
	int64_t before = INT64_MAX;

	while (u->n)
		free(u->incidents[--u->n].author);
	u->key = key;
	for (int i = 0; key && i < 2 * INCIDENTS_MAX && u->n < INCIDENTS_MAX; i++) {
		char *author;

		before = db_int(c->d, 0,
		    "SELECT change_id FROM failure WHERE key = ?1 AND change_id < ?2 ORDER BY change_id DESC LIMIT 1",
		    V_INT(key), V_INT(before));
		if (!before)
			return;
		author = db_text(c->d, "SELECT author FROM change WHERE id = ?1", V_INT(before));
		if (before == c->change_id || attribution_is_same_author(author, c->author))
			free(author);
		else
			u->incidents[u->n++] = (struct incident){before, author};
	}
}

/* Decides from the other changes with the message, one for each author, whether the message is specific to this test and
 * whether it comes from an outage.
 *
 * If this test failed among others in one incident, that says nothing about the message. If others failed with the message
 * and this test did not, the message is not specific to it. */
static void judge_message(const struct attribution_case *c, const struct key_use *u, struct red_failure *f)
{
	int n_passed = 0, n_unrelated = 0, n_now = 0;

	for (size_t i = 0; i < u->n; i++) {
		int64_t change_id = u->incidents[i].change_id;
		bool is_first_of_author = true;

		for (size_t k = 0; k < i && is_first_of_author; k++)
			is_first_of_author =
			    !attribution_is_same_author(u->incidents[k].author, u->incidents[i].author);
		if (!is_first_of_author ||
		    db_has(c->d, "SELECT 1 FROM failure WHERE key = ?1 AND change_id = ?2 AND test_id = ?3 LIMIT 1",
			V_INT(u->key), V_INT(change_id), V_INT(f->test_id)))
			continue;
		n_unrelated++;
		n_passed += db_has(c->d,
		    "SELECT 1 FROM (SELECT DISTINCT accelerator FROM"
		    "  (SELECT accelerator FROM failure WHERE key = ?1 AND change_id = ?2 ORDER BY test_id, "
		    "accelerator LIMIT ?4) looked_at) f"
		    " CROSS JOIN cell v ON v.change_id = ?2 AND v.accelerator = f.accelerator AND v.test_id = ?3"
		    " WHERE v.status = 'PASS' LIMIT 1",
		    V_INT(u->key), V_INT(change_id), V_INT(f->test_id), V_INT(ROWS_OF_CHANGE_MAX));
		n_now += db_has(c->d,
		    "SELECT 1 FROM (SELECT accelerator, at_ms FROM failure WHERE key = ?1"
		    " AND change_id = ?2 ORDER BY test_id, accelerator LIMIT ?5) looked_at WHERE accelerator = ?3 AND "
		    "at_ms >= ?4 LIMIT 1",
		    V_INT(u->key), V_INT(change_id), V_TEXT(c->accelerator), V_INT(c->now_ms - OUTAGE_MS),
		    V_INT(ROWS_OF_CHANGE_MAX));
	}
	f->facts.is_specific = !f->facts.mark.is_general && n_passed == 0 && n_unrelated < 2;
	f->facts.is_outage = n_now >= OUTAGE_MIN_CHANGES;
}

/* Only jobs that are mostly red can show an outage. The index job_mostly_red has only these. The failures of each are counted, so
 * the answer is remembered. */
bool attribution_is_outage(struct attribution_case *c, int64_t key, int64_t job_id)
{
	struct known_outage *known;

	for (size_t i = 0; i < c->outages.n && i < OUTAGES_KNOWN; i++)
		if (c->outages.at[i].key == key && c->outages.at[i].job_id == job_id)
			return c->outages.at[i].is;
	known = &c->outages.at[c->outages.n++ % OUTAGES_KNOWN];
	*known = (struct known_outage){.key = key, .job_id = job_id};
	known->is = db_has(c->d,
	    "SELECT 1 FROM job b CROSS JOIN job j ON j.accelerator = ?1 AND j.n_tests >= 5"
	    " AND j.n_tests < 2 * j.n_red AND j.completed_ms BETWEEN b.completed_ms - ?4 AND b.completed_ms + ?4"
	    " WHERE b.id = ?3 AND j.n_tests < 2 * (SELECT COUNT(DISTINCT f.test_id) FROM failure f"
	    "  WHERE f.key = ?2 AND f.change_id = j.change_id AND f.job_id = j.id) LIMIT 1",
	    V_TEXT(c->accelerator), V_INT(key), V_INT(job_id), V_INT(OUTAGE_MS));
	return known->is;
}

void fact_message(struct attribution_case *c)
{
	struct key_use use = {.key = 0};

	for (; c->next < c->n_failures && c->next < COMPARED_MAX && !attribution_must_pause(c); c->next++) {
		struct red_failure *f = &c->failures[c->next];

		if (!f->facts.mark.key)
			continue;
		if (use.key != f->facts.mark.key)
			read_incidents(c, f->facts.mark.key, &use);
		judge_message(c, &use, f);
	}
	read_incidents(c, 0, &use);
}

/* ---- in the same job ---- */

/* More than half of a job's tests have the same message. */
static void find_outages_of_jobs(struct attribution_case *c)
{
	for (size_t job = 0; job < c->n_jobs; job++) {
		struct red_failure *f = c->failures + c->jobs[job].first_failure;
		size_t n = c->jobs[job].n_failures, n_most = 0;
		int64_t most = 0, n_tests;

		/* the key that more than half of them have, if any */
		for (size_t i = 0; i < n; i++) {
			if (!n_most)
				most = f[i].facts.mark.key;
			n_most += f[i].facts.mark.key == most ? 1 : (size_t)-1;
		}
		n_most = 0;
		for (size_t i = 0; i < n; i++)
			n_most += f[i].facts.mark.key == most;
		n_tests = n ? db_int(c->d, 0, "SELECT n_tests FROM job WHERE id = ?1", V_INT(f->job_id)) : 0;
		if (n_tests < OUTAGE_MIN_TESTS || (int64_t)(2 * n_most) <= n_tests)
			continue;
		for (size_t i = 0; i < n; i++)
			if (f[i].facts.mark.key == most)
				f[i].facts.is_outage = f[i].facts.is_job_outage = true;
	}
}

static int by_key_and_job(const void *x, const void *y)
{
	const struct red_failure *a = *(struct red_failure *const *)x, *b = *(struct red_failure *const *)y;

	if (a->facts.mark.key != b->facts.mark.key)
		return a->facts.mark.key < b->facts.mark.key ? -1 : 1;
	return (a->job > b->job) - (a->job < b->job);
}

/* Failures of one job with the same message. One test may crash the process, and the others fail because of that. They pass
 * when they run without it, so the pass of one test excuses it only if each of the others passed, too. If none passed again
 * and one failure is proved to be the change's, all are. */
static void compare_in_job(struct red_failure *const *list, size_t n)
{
	bool is_settled = false, is_red = false, is_green = false;

	for (size_t i = 0; i < n; i++) {
		const struct attribution_facts *f = &list[i]->facts;

		is_red |= !f->passed_here_job;
		is_green |= f->passed_here_job != 0;
	}
	for (size_t i = 0; i < n; i++) {
		list[i]->facts.is_alike_green = is_green;
		is_settled |= attribution_is_settled_outage(&list[i]->facts);
	}
	for (size_t i = 0; i < n; i++) {
		list[i]->facts.is_alike_settled = is_settled && list[i]->facts.is_job_outage;
		list[i]->facts.is_alike_red = is_red && !list[i]->facts.mark.is_infrastructure;
	}
}

void fact_same_message(struct attribution_case *c)
{
	struct red_failure **list = xcalloc(c->n_failures + 1, sizeof(*list));
	size_t end, next;

	find_outages_of_jobs(c);
	for (size_t i = 0; i < c->n_failures; i++)
		list[i] = &c->failures[i];
	qsort(list, c->n_failures, sizeof(*list), by_key_and_job);
	for (size_t i = 0; i < c->n_failures; i = end) {
		int64_t key = list[i]->facts.mark.key;
		int n_again = 0;

		for (end = i; end < c->n_failures && list[end]->facts.mark.key == key; end = next) {
			next = end;
			while (next < c->n_failures && !by_key_and_job(&list[end], &list[next]))
				n_again += list[next++]->facts.n_failed_so_again;
			if (key)
				compare_in_job(&list[end], next - end);
		}
		for (size_t k = i; key && k < end; k++)
			list[k]->facts.n_alike_again = n_again;
	}
	free(list);
}
