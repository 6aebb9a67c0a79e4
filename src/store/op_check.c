/* What was last written into each check run. */
#include "store/check_runs.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/strv.h"
#include "store/db.h"
#include "store/key.h"
#include "store/stored_change.h"

/* ---- reading ---- */

/* Older heads that are the present head of another open PR are that one's. */
static void read_checks(struct db *d, struct list_checks *l, const char *repository_key)
{
	struct rows *r = db_rows(d,
	    "SELECT k.head_sha, k.name, k.accelerator, k.check_id, k.job_id, k.digest,"
	    " k.is_completed, k.n_annotations, p.change_id = c.id FROM pull p"
	    " JOIN pull_head h ON h.repository_key = p.repository_key AND h.number = p.number"
	    " JOIN change c ON c.id = h.change_id"
	    " JOIN check_run k ON k.repository_key = p.repository_key AND k.head_sha = c.head_sha"
	    " WHERE p.repository_key = ?1 AND p.number = ?2"
	    " AND (p.change_id = c.id OR (k.is_completed = 0 AND c.state <> 'open'))"
	    " ORDER BY c.id, k.name",
	    V_TEXT(repository_key), V_INT(l->number));

	while (rows_next(r)) {
		struct stored_check *k;
		size_t n;
		const void *digest = rows_blob(r, 5, &n);

		l->list = xrealloc(l->list, (l->n + 1) * sizeof(*l->list));
		k = &l->list[l->n++];
		*k = (struct stored_check){.head_sha = rows_dup(r, 0),
		    .name = rows_dup(r, 1),
		    .accelerator = rows_dup(r, 2),
		    .check_id = rows_int(r, 3),
		    .job_id = rows_int(r, 4),
		    .is_completed = rows_int(r, 6),
		    .n_annotations = (int)rows_int(r, 7),
		    .is_of_head = rows_int(r, 8)};
		if (n == sizeof(k->digest))
			memcpy(k->digest, digest, n);
	}
}

static void add_labels(struct list_checks *l, const char *text)
{
	json_t *labels = NULL, *label;
	size_t i;

	if (!text[0] || json_parse(text, strlen(text), &labels, NULL))
		return;
	json_array_foreach(labels, i, label)
	{
		const char *name = json_string_value(label);

		if (name && !strv_contains((const char *const *)l->labels, name))
			strv_add(&l->labels, name);
	}
	json_decref(labels);
}

/* The PRs that have this head share its check runs, because GitHub hangs them on the commit. */
static void read_sharers(struct db *d, struct list_checks *l, const char *repository_key)
{
	struct rows *r = db_rows(d,
	    "SELECT p.change_id, o.labels FROM pull p JOIN pull o ON o.change_id = p.change_id"
	    " WHERE p.repository_key = ?1 AND p.number = ?2"
	    " AND (o.state = 'open' OR o.number = p.number) ORDER BY o.number",
	    V_TEXT(repository_key), V_INT(l->number));

	while (rows_next(r)) {
		if (!l->named_number)
			l->named_number = change_lead(d, rows_int(r, 0));
		add_labels(l, rows_text(r, 1));
	}
	if (!l->named_number)
		l->named_number = l->number;
}

static int list_run(struct store_query *q, struct db *d)
{
	struct list_checks *l = CONTAINER_OF(q, struct list_checks, q);
	struct repository_key key = repository_key(l->repository);

	read_checks(d, l, key.text);
	read_sharers(d, l, key.text);
	return 0;
}

int store_list_checks(struct store *s, struct list_checks *q)
{
	q->list = NULL;
	q->n = 0;
	q->labels = strv_copy(NULL);
	q->named_number = 0;
	q->q.run = list_run;
	return store_query(s, &q->q);
}

void list_checks_release(struct list_checks *q)
{
	for (size_t i = 0; i < q->n; i++) {
		free(q->list[i].head_sha);
		free(q->list[i].name);
		free(q->list[i].accelerator);
	}
	FREE_AND_NULL(q->list);
	q->n = 0;
	strv_free(q->labels);
	q->labels = NULL;
}

/* ---- writing ---- */

static int put_run(struct store_op *op, struct db *d)
{
	struct put_check *o = CONTAINER_OF(op, struct put_check, op);

	db_exec(d,
	    "INSERT INTO check_run (repository_key, head_sha, name, check_id, accelerator, job_id,"
	    " digest, is_completed, n_annotations, written_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
	    " ON CONFLICT (repository_key, head_sha, name) DO UPDATE SET"
	    " check_id = excluded.check_id, accelerator = excluded.accelerator,"
	    " job_id = excluded.job_id, digest = excluded.digest,"
	    " is_completed = excluded.is_completed, n_annotations = excluded.n_annotations,"
	    " written_ms = excluded.written_ms",
	    V_TEXT(repository_key(o->repository).text), V_TEXT(o->head_sha), V_TEXT(o->name),
	    V_INT(o->check_id), V_TEXT(o->accelerator), V_INT_OR_NULL(o->job_id),
	    V_BLOB(o->digest, sizeof(o->digest)), V_INT(o->is_completed), V_INT(o->n_annotations),
	    V_INT(o->now_ms));
	return 0;
}

int store_put_check(struct store *s, struct put_check *op)
{
	op->op.run = put_run;
	op->op.bytes = sizeof(*op);
	op->op.is_one_statement = true;
	return store_submit(s, &op->op);
}

static int doubt_run(struct store_op *op, struct db *d)
{
	struct doubt_check *o = CONTAINER_OF(op, struct doubt_check, op);

	db_exec(d,
	    "UPDATE check_run SET digest = X'' WHERE repository_key = ?1 AND head_sha = ?2"
	    " AND name = ?3",
	    V_TEXT(repository_key(o->repository).text), V_TEXT(o->head_sha), V_TEXT(o->name));
	return 0;
}

int store_doubt_check(struct store *s, struct doubt_check *op)
{
	op->op.run = doubt_run;
	op->op.bytes = sizeof(*op);
	op->op.is_one_statement = true;
	return store_submit(s, &op->op);
}
