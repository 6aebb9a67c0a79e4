#include "store/view_delta.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strv.h"
#include "store/attribution.h"
#include "store/branch_commits.h"
#include "store/key.h"

struct place {
	char *ref;
	int64_t position; /* of the merge base, of a push its parent's; -1: not known */
};

static struct place base_of(struct db *d, const struct change_view *v)
{
	struct place p = {.position = -1};
	char *ref = v->base_ref
			? xstrdup(v->base_ref)
			: db_text(d, "SELECT ref FROM change WHERE id = ?1", V_INT(v->change_id));
	const char *sha = v->kind == CHANGE_PUSH ? v->head_sha : v->merge_base_sha;

	if (ref && sha && v->kind != CHANGE_NIGHTLY)
		p.position =
		    branch_position(d, repository_key(v->repository).text, branch_name(ref), sha);
	if (v->kind == CHANGE_PUSH && p.position >= 0)
		p.position--;
	p.ref = xstrdup(ref ? branch_name(ref) : "");
	free(ref);
	return p;
}

/* The nearest commit that the accelerator reported on. */
static bool find_tested(
    struct db *d, const struct change_view *v, const struct place *p, struct accelerator_view *a)
{
	struct rows *r = db_rows(d,
	    "SELECT x.id, b.sha, b.position FROM branch_commit b CROSS JOIN change x"
	    " ON x.repository_key = b.repository_key AND x.head_sha = b.sha AND x.kind = 'push'"
	    " WHERE b.repository_key = ?1 AND b.ref = ?2 AND b.position >= ?3 AND b.position <= ?4"
	    " AND EXISTS (SELECT 1 FROM job j WHERE j.change_id = x.id AND j.accelerator = ?5"
	    "  AND j.is_current = 1 AND j.status = 'completed' AND j.digest IS NOT NULL)"
	    " ORDER BY b.position DESC LIMIT 1",
	    V_TEXT(repository_key(v->repository).text), V_TEXT(p->ref),
	    V_INT(p->position - attribution_distance(d)), V_INT(p->position), V_TEXT(a->name));
	bool is_found = rows_next(r);

	if (is_found) {
		a->delta.base_change_id = rows_int(r, 0);
		a->delta.base_sha = rows_dup(r, 1);
		a->delta.distance = (int)(p->position - rows_int(r, 2));
	}
	rows_end(r);
	return is_found;
}

static bool is_finished(const struct accelerator_view *a)
{
	for (size_t i = 0; i < a->n_dispatches; i++)
		if (a->dispatches[i].is_current && dispatch_is_unfinished(a->dispatches[i].state))
			return false;
	for (size_t i = 0; i < a->n_jobs; i++)
		if (a->jobs[i].status != JOB_COMPLETED)
			return false;
	return a->n_jobs > 0;
}

static void note(size_t *n, char ***names, const struct rows *r)
{
	char *name;

	if (++*n > DELTA_NAMES_MAX || !names)
		return;
	name = xasprintf("%s/%s", rows_text(r, 2), rows_text(r, 3));
	strv_add(names, name);
	free(name);
}

static void compare(struct base_delta *b, const struct rows *r, bool has_ended)
{
	enum test_status before = test_status_parse(rows_text(r, 0));
	enum test_status now = test_status_parse(rows_text(r, 1));

	if (now == N_TEST_STATUSES) {
		if (has_ended)
			note(&b->n_disappeared, &b->disappeared, r);
	} else if (test_status_is_red(now) && before == TEST_PASS) {
		note(&b->n_newly_failing, NULL, r);
	} else if (now == TEST_PASS && test_status_is_red(before)) {
		note(&b->n_fixed, &b->fixed, r);
	} else if (now == TEST_SKIP && (before == TEST_PASS || test_status_is_red(before))) {
		if (has_ended)
			note(&b->n_newly_skipped, &b->newly_skipped, r);
	}
}

/* One walk along the base's cells; what is the same needs no name. */
static void read_delta(struct db *d, int64_t change_id, struct accelerator_view *a)
{
	bool has_ended = is_finished(a);
	struct rows *r = db_rows(d,
	    "SELECT b.status, v.status, t.suite, t.name FROM verdict b LEFT JOIN verdict v"
	    " ON v.change_id = ?1 AND v.accelerator = b.accelerator AND v.test_id = b.test_id"
	    " JOIN test t ON t.id = b.test_id WHERE b.change_id = ?2 AND b.accelerator = ?3"
	    " AND b.job_id IS NOT NULL AND b.status IS NOT v.status",
	    V_INT(change_id), V_INT(a->delta.base_change_id), V_TEXT(a->name));

	while (rows_next(r))
		compare(&a->delta, r, has_ended);
}

void view_read_deltas(struct db *d, struct change_view *v)
{
	struct place p = base_of(d, v);

	for (size_t i = 0; p.position >= 0 && i < v->n_accelerators; i++)
		if (v->accelerators[i].n_jobs && find_tested(d, v, &p, &v->accelerators[i]))
			read_delta(d, v->change_id, &v->accelerators[i]);
	free(p.ref);
}
