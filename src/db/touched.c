#include "db/touched.h"

#include "db/db.h"

static void add_id(struct store_touched *t, int64_t *list, int *n, int64_t id)
{
	for (int i = 0; i < *n; i++)
		if (list[i] == id)
			return;
	if (*n == TOUCHED_MAX)
		t->is_all = true;
	else
		list[(*n)++] = id;
}

void touched_add_change(struct store_touched *t, int64_t change_id) { add_id(t, t->changes, &t->n_changes, change_id); }

void touched_add_job(struct store_touched *t, int64_t job_id) { add_id(t, t->jobs, &t->n_jobs, job_id); }

void touched_add_accelerator(struct store_touched *t, const char *name)
{
	for (int i = 0; i < t->n_accelerators; i++)
		if (str_eq(t->accelerators[i], name))
			return;
	if (t->n_accelerators == TOUCHED_NAMES_MAX || strlen(name) >= TOUCHED_NAME_BYTES)
		t->is_all = true;
	else
		snprintf(t->accelerators[t->n_accelerators++], TOUCHED_NAME_BYTES, "%s", name);
}

void touched_merge(struct store_touched *t, const struct store_touched *more)
{
	for (int i = 0; i < more->n_changes; i++)
		touched_add_change(t, more->changes[i]);
	for (int i = 0; i < more->n_jobs; i++)
		touched_add_job(t, more->jobs[i]);
	for (int i = 0; i < more->n_accelerators; i++)
		touched_add_accelerator(t, more->accelerators[i]);
	t->is_all = t->is_all || more->is_all;
}

bool touched_is_empty(const struct store_touched *t)
{
	return !t->n_changes && !t->n_jobs && !t->n_accelerators && !t->is_all;
}

/* ---- their names ---- */

static int name_run(struct store_query *q, const struct view *d)
{
	struct name_touched *n = CONTAINER_OF(q, struct name_touched, q);
	const struct store_touched *t = &n->touched;

	for (int i = 0; i < t->n_changes; i++) {
		char *sha = db_text(d, "SELECT head_sha FROM change WHERE id = ?1", V_INT(t->changes[i]));
		struct rows *r = db_rows(d, "SELECT number FROM pull WHERE change_id = ?1", V_INT(t->changes[i]));

		if (sha)
			strv_add(&n->shas, sha);
		free(sha);
		while (rows_next(r))
			*ARRAY_PUSH(n->numbers, n->n_numbers) = rows_int(r, 0);
	}
	for (int i = 0; i < t->n_jobs; i++) {
		char *name = db_text(d, "SELECT accelerator FROM job WHERE id = ?1", V_INT(t->jobs[i]));

		if (name)
			strv_add(&n->accelerators, name);
		free(name);
	}
	for (int i = 0; i < t->n_accelerators; i++)
		strv_add(&n->accelerators, t->accelerators[i]);
	return 0;
}

int store_name_touched(struct store *s, struct name_touched *q)
{
	q->shas = strv_copy(NULL);
	q->accelerators = strv_copy(NULL);
	q->numbers = NULL;
	q->n_numbers = 0;
	q->q.run = name_run;
	return store_query(s, &q->q);
}

void name_touched_release(struct name_touched *q)
{
	strv_free(q->shas);
	strv_free(q->accelerators);
	free(q->numbers);
	q->shas = q->accelerators = NULL;
	q->numbers = NULL;
}
