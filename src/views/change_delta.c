/* The cells of a change against those of its base: which tests began to fail, were fixed, disappeared or are skipped now. */
#include "db/cell_sets.h"
#include "db/key.h"
#include "db/record_rows.h"
#include "store/branch_commits.h"
#include "verdict/attribution.h"
#include "views/change.h"

#define TESTED_BASE_RECORD(F, S)                                                                                       \
	F(S, INT, change_id, NULL, "x.id", "")                                                                         \
	F(S, TEXT, sha, NULL, "b.sha", "")                                                                             \
	F(S, INT, distance, NULL, "?4 - b.position", "")
RECORD_LOCAL(tested_base, TESTED_BASE_RECORD)

/* The nearest commit with a report of the accelerator. */
static void find_tested_base(const struct view *d, const struct change_view *v, const char *ref, int64_t position,
    int64_t distance, struct accelerator_view *a)
{
	struct tested_base base;

	if (!record_read_first(db_rows(d,
				   RECORD_QUERY(TESTED_BASE_RECORD,
				       "FROM branch_commit b CROSS JOIN change x ON x.repository_key = "
				       "b.repository_key AND x.head_sha = b.sha AND x.kind = 'push' WHERE "
				       "b.repository_key = ?1 AND b.ref = ?2 AND b.position >= ?3 AND b.position "
				       "<= ?4 AND EXISTS (SELECT 1 FROM job j WHERE j.change_id = x.id AND "
				       "j.accelerator = ?5 AND j.is_current = 1 AND j.status = 'completed' AND "
				       "j.digest IS NOT NULL) ORDER BY b.position DESC LIMIT 1"),
				   V_TEXT(repository_key(v->repository).text), V_TEXT(ref), V_INT(position - distance),
				   V_INT(position), V_TEXT(a->name)),
		&tested_base_record, &base))
		return;
	free(a->delta.base_sha);
	a->delta.base_change_id = base.change_id;
	a->delta.base_sha = base.sha;
	a->delta.distance = base.distance;
}

static bool has_ended(const struct accelerator_view *a)
{
	for (size_t i = 0; i < a->n_dispatches; i++)
		if (a->dispatches[i].is_current && dispatch_is_unfinished(a->dispatches[i].state))
			return false;
	for (size_t i = 0; i < a->n_jobs; i++)
		if (a->jobs[i].status != JOB_COMPLETED)
			return false;
	return a->n_jobs > 0;
}

#define TEST_OF_DELTA_RECORD(F, S) F(S, TEXT, name, NULL, "t.suite || '/' || t.name", "")
RECORD_LOCAL(test_of_delta, TEST_OF_DELTA_RECORD)

/* A name that a list shows. */
struct delta_name {
	char ***list;
	int64_t test_id;
	struct test_of_delta test;
};
struct delta_names {
	struct delta_name *at;
	size_t n;
};

/* A test has another status than on the base. now N_TEST_STATUSES: it has no cell. */
static void add_difference(
    struct delta_names *shown, struct base_delta *b, const struct cell *before, enum test_status now, bool is_ended)
{
	bool was_red = test_status_is_red((enum test_status)before->status);
	char ***names;
	int64_t *n;

	if (now == N_TEST_STATUSES && is_ended) {
		n = &b->n_disappeared;
		names = &b->disappeared;
	} else if (now == TEST_PASS && was_red) {
		n = &b->n_fixed;
		names = &b->fixed;
	} else if (now == TEST_SKIP && (before->status == TEST_PASS || was_red) && is_ended) {
		n = &b->n_newly_skipped;
		names = &b->newly_skipped;
	} else {
		b->n_newly_failing += test_status_is_red(now) && before->status == TEST_PASS;
		return;
	}
	if (++*n <= DELTA_NAMES_MAX)
		*ARRAY_PUSH(shown->at, shown->n) = (struct delta_name){.list = names, .test_id = before->test_id};
}

static void read_names(const struct view *d, struct delta_names *shown)
{
	DB_PIPELINE (d)
		for (struct delta_name *t = shown->at; t < shown->at + shown->n; t++) {
			record_release(&test_of_delta_record, &t->test);
			RECORD_READ_FIRST(d, test_of_delta, TEST_OF_DELTA_RECORD, &t->test,
			    "FROM test t WHERE t.id = ?1", V_INT(t->test_id));
		}
	for (size_t i = 0; i < shown->n; i++) {
		if (shown->at[i].test.name)
			strv_add(shown->at[i].list, shown->at[i].test.name);
		record_release(&test_of_delta_record, &shown->at[i].test);
	}
	free(shown->at);
}

/* Both sets are in the order of their tests. now NULL: the accelerator has no cell. */
static void compare_with_base(
    struct delta_names *shown, const struct cell_set *base, const struct cell_set *now, struct accelerator_view *a)
{
	const struct cell *same = now ? now->at : NULL, *end = now ? now->at + now->n : NULL;
	bool is_ended = has_ended(a);

	for (const struct cell *before = base->at; before < base->at + base->n; before++) {
		enum test_status status;

		while (same < end && same->test_id < before->test_id)
			same++;
		status =
		    same < end && same->test_id == before->test_id ? (enum test_status)same->status : N_TEST_STATUSES;
		if (before->status != status && before->has_job)
			add_difference(shown, &a->delta, before, status, is_ended);
	}
}

/* Has the cells of one accelerator of the base at a time, because those of all are more than a processor's cache holds. */
static void read_delta(
    const struct view *d, const struct cell_sets *own, struct accelerator_view *a, struct delta_names *shown)
{
	const struct cell_set *of_base;
	struct cell_sets base;

	if (!a->delta.base_change_id)
		return;
	cell_sets_read(d, a->delta.base_change_id, a->name, &base);
	of_base = cell_sets_find(&base, a->name);
	if (of_base)
		compare_with_base(shown, of_base, cell_sets_find(own, a->name), a);
	cell_sets_release(&base);
}

void change_deltas_read(const struct view *d, struct change_view *v, const struct cell_sets *own)
{
	char *ref = v->base_ref ? xstrdup(v->base_ref)
				: db_text(d, "SELECT ref FROM change WHERE id = ?1", V_INT(v->change_id));
	const char *sha = v->kind == CHANGE_PUSH ? v->head_sha : v->merge_base_sha;
	struct delta_names shown = {.n = 0};
	int64_t distance = attribution_distance(d),
		position = -1; /* of the merge base, or of a push's parent; -1: not known */

	if (ref && sha && v->kind != CHANGE_NIGHTLY)
		position = branch_position(d, repository_key(v->repository).text, branch_name(ref), sha);
	if (v->kind == CHANGE_PUSH && position >= 0)
		position--;
	DB_PIPELINE (d)
		for (size_t i = 0; position >= 0 && i < v->n_accelerators; i++)
			if (v->accelerators[i].n_jobs)
				find_tested_base(d, v, branch_name(ref), position, distance, &v->accelerators[i]);
	for (size_t i = 0; i < v->n_accelerators; i++)
		read_delta(d, own, &v->accelerators[i], &shown);
	read_names(d, &shown);
	free(ref);
}
