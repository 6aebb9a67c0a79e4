#include "store/published.h"

#include "db/key.h"
#include "db/record_rows.h"
#include "store/changes.h"
#include "store/outbox.h"

/* ---- comments ---- */

static int put_comment_run(struct store_op *op, struct txn *d)
{
	struct put_comment *o = CONTAINER_OF(op, struct put_comment, op);

	db_exec(d,
	    "INSERT INTO comment (repository_key, number, comment_id, body_hash, written_ms, has_red_written,"
	    " change_id) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE " OUTBOX_IS_SENT_BY(
		"?8", "?9") " ON CONFLICT (repository_key, number) DO UPDATE"
			    " SET comment_id = excluded.comment_id, body_hash = excluded.body_hash, written_ms = "
			    "excluded.written_ms,"
			    " has_red_written = excluded.has_red_written, change_id = excluded.change_id",
	    V_TEXT(repository_key(o->repository).text), V_INT(o->number), V_INT(o->comment_id),
	    V_BLOB(o->body_hash, sizeof(o->body_hash)), V_INT(o->written_ms), V_INT(o->has_red_written),
	    V_INT_OR_NULL(o->change_id), V_INT(o->outbox_id), V_INT(o->epoch));
	return 0;
}
STORE_OPERATION(put_comment)

#define GET_COMMENT_RECORD(F, S)                                                                                       \
	F(S, INT, comment_id, NULL, "comment_id", "")                                                                  \
	F(S, DIGEST, body_hash, NULL, "body_hash", "")                                                                 \
	F(S, TIME, written_ms, NULL, "written_ms", "")                                                                 \
	F(S, BOOL, has_red_written, NULL, "has_red_written", "")                                                       \
	F(S, ID, change_id, NULL, "change_id", "")
RECORD_DEFINE(get_comment, GET_COMMENT_RECORD);

static int get_comment_run(struct store_query *q, const struct view *d)
{
	struct get_comment *g = CONTAINER_OF(q, struct get_comment, q);

	g->is_known = RECORD_READ_FIRST(d, get_comment, GET_COMMENT_RECORD, g,
	    "FROM comment WHERE repository_key = ?1 AND number = ?2", V_TEXT(repository_key(g->repository).text),
	    V_INT(g->number));
	return 0;
}
STORE_QUERY_CLEARED(get_comment, is_known)

/* ---- check runs ---- */

RECORD_DEFINE(stored_check, STORED_CHECK_RECORD);

#define SHARER_RECORD(F, S)                                                                                            \
	F(S, INT, change_id, NULL, "p.change_id", "")                                                                  \
	F(S, TEXTS, labels, NULL, "o.labels", "")
RECORD_LOCAL(sharer, SHARER_RECORD)

static int list_checks_run(struct store_query *q, const struct view *d)
{
	struct list_checks *l = CONTAINER_OF(q, struct list_checks, q);
	struct repository_key key = repository_key(l->repository);
	struct sharer sharer;
	/* An older head that is the current head of another open pull request belongs to that one. */
	struct rows *r = db_rows(d,
	    RECORD_QUERY(STORED_CHECK_RECORD, "FROM pull p JOIN pull_head h ON h.repository_key = p.repository_key AND"
					      " h.number = p.number JOIN change c ON c.id = h.change_id JOIN check_run"
					      " k ON k.repository_key = p.repository_key AND k.head_sha = c.head_sha"
					      " WHERE p.repository_key = ?1 AND p.number = ?2 AND (p.change_id = c.id"
					      " OR (k.is_completed = 0 AND c.state <> 'open')) ORDER BY c.id, k.name"),
	    V_TEXT(key.text), V_INT(l->number));

	RECORDS_READ(r, stored_check, l->list, l->n);
	l->labels = strv_copy(NULL);
	/* The pull requests with this head share its check runs, because check runs belong to the commit. */
	r = db_rows(d,
	    RECORD_QUERY(SHARER_RECORD, "FROM pull p JOIN pull o ON o.change_id = p.change_id"
					" WHERE p.repository_key = ?1 AND p.number = ?2"
					" AND (o.state = 'open' OR o.number = p.number) ORDER BY o.number"),
	    V_TEXT(key.text), V_INT(l->number));
	while (rows_next(r)) {
		record_read(r, &sharer_record, &sharer);
		if (!l->named_number)
			l->named_number = change_lead(d, sharer.change_id);
		for (char **name = sharer.labels; *name; name++)
			if (!strv_contains((const char *const *)l->labels, *name))
				strv_add(&l->labels, *name);
		record_release(&sharer_record, &sharer);
	}
	if (!l->named_number)
		l->named_number = l->number;
	return 0;
}
STORE_QUERY_CLEARED(list_checks, list)

void list_checks_release(struct list_checks *q)
{
	RECORDS_RELEASE(stored_check, q->list, q->n);
	strv_free(q->labels);
	q->labels = NULL;
}

static int put_check_run(struct store_op *op, struct txn *d)
{
	struct put_check *o = CONTAINER_OF(op, struct put_check, op);

	db_exec(d,
	    "INSERT INTO check_run (repository_key, head_sha, name, check_id, accelerator, job_id,"
	    " digest, is_completed, n_annotations, written_ms) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10"
	    " WHERE " OUTBOX_IS_SENT_BY("?11",
		"?12") " ON CONFLICT (repository_key, head_sha, name) DO UPDATE SET check_id = excluded.check_id,"
		       " accelerator = excluded.accelerator, job_id = excluded.job_id, digest = excluded.digest,"
		       " is_completed = excluded.is_completed, n_annotations = excluded.n_annotations,"
		       " written_ms = excluded.written_ms",
	    V_TEXT(repository_key(o->repository).text), V_TEXT(o->head_sha), V_TEXT(o->name), V_INT(o->check_id),
	    V_TEXT(o->accelerator), V_INT_OR_NULL(o->job_id), V_BLOB(o->digest, sizeof(o->digest)),
	    V_INT(o->is_completed), V_INT(o->n_annotations), V_INT(o->now_ms), V_INT(o->outbox_id), V_INT(o->epoch));
	return 0;
}
STORE_INDEPENDENT(put_check)

static int doubt_check_run(struct store_op *op, struct txn *d)
{
	struct doubt_check *o = CONTAINER_OF(op, struct doubt_check, op);

	db_exec(d, "UPDATE check_run SET digest = ?4 WHERE repository_key = ?1 AND head_sha = ?2 AND name = ?3",
	    V_TEXT(repository_key(o->repository).text), V_TEXT(o->head_sha), V_TEXT(o->name), V_BLOB("", 0));
	return 0;
}
STORE_INDEPENDENT(doubt_check)

/* ---- the runs that a check stands for ---- */

RECORD_DEFINE(rerun_target, RERUN_TARGET_RECORD);

#define SELECT_TARGETS                                                                                                 \
	RECORD_SELECT(RERUN_TARGET_RECORD)                                                                             \
	" FROM dispatch x JOIN change c ON c.id = x.change_id"                                                         \
	" LEFT JOIN job j ON j.change_id = x.change_id AND j.dispatch_id = x.id"                                       \
	"  AND j.accelerator = x.accelerator AND j.is_current = 1"
/* Dispatches of the head of an open pull request. A held one stays held, and a release that a member withdrew does not count, so
 * neither is a target. */
#define TARGET_RULES                                                                                                   \
	" c.repository_key = ?1 AND c.head_sha = ?2 AND c.kind = 'pull_request'"                                       \
	" AND c.state = 'open' AND x.is_current = 1 AND x.accelerator <> '' AND x.state <> 'held'"                     \
	" AND (x.held_reason IS NULL OR c.is_released = 1)"                                                            \
	" AND NOT EXISTS (SELECT 1 FROM dispatch h WHERE h.change_id = x.change_id"                                    \
	"  AND h.accelerator = x.accelerator AND h.runner = x.runner AND h.state = 'held')"
#define BY_RUNNER " ORDER BY x.accelerator, x.runner, j.run_id"

/* Adds each run once, also if its jobs belong to several accelerators. */
static void add_reruns(struct find_rerun *q, struct rows *r)
{
	while (rows_next(r)) {
		struct rerun_target t;
		bool is_listed = false;

		record_read(r, &rerun_target_record, &t);
		for (const struct rerun_target *o = q->list; o < q->list + q->n; o++)
			is_listed |= str_eq(o->run_id, t.run_id) && strcmp(o->dispatch_id, t.dispatch_id) == 0 &&
				     (t.is_github || (strcmp(o->accelerator, t.accelerator) == 0 &&
							 strcmp(o->runner, t.runner) == 0));
		if (is_listed)
			record_release(&rerun_target_record, &t);
		else
			*ARRAY_PUSH(q->list, q->n) = t;
	}
}

static int find_rerun_run(struct store_query *sq, const struct view *d)
{
	struct find_rerun *q = CONTAINER_OF(sq, struct find_rerun, q);
	struct repository_key key = repository_key(q->repository);
	struct rows *r;

	find_rerun_release(q); /* of a failed attempt */
	q->pull_number = change_lead(d, change_find(d, CHANGE_PULL_REQUEST, q->repository, q->head_sha));
	if (q->check_name)
		r = db_rows(d,
		    SELECT_TARGETS " JOIN check_run k ON k.job_id = j.id AND k.repository_key = ?1"
				   " AND k.head_sha = ?2 AND k.name = ?3 WHERE" TARGET_RULES BY_RUNNER,
		    V_TEXT(key.text), V_TEXT(q->head_sha), V_TEXT(q->check_name));
	else
		r = db_rows(d, SELECT_TARGETS " WHERE" TARGET_RULES BY_RUNNER, V_TEXT(key.text), V_TEXT(q->head_sha));
	add_reruns(q, r);
	if (q->check_name && !q->n)
		add_reruns(q, db_rows(d, SELECT_TARGETS " WHERE" TARGET_RULES " AND j.run_id = ?3" BY_RUNNER,
				  V_TEXT(key.text), V_TEXT(q->head_sha), V_TEXT(q->run_id)));
	return 0;
}
STORE_QUERY_CLEARED(find_rerun, pull_number)

void find_rerun_release(struct find_rerun *q) { RECORDS_RELEASE(rerun_target, q->list, q->n); }

/* ---- limits ---- */

RECORD_DEFINE(github_limit, GITHUB_LIMIT_RECORD);

enum {
	SAME_LIMIT_MS = 1000,                /* nodes do not agree more exactly */
	LIMIT_MAX_MS = 3600 * 1000 + 100000, /* a later time was written when the clock was wrong */
};

static int share_limits_run(struct store_op *op, struct txn *d)
{
	struct share_limits *o = CONTAINER_OF(op, struct share_limits, op);
	int64_t n_new = 0;

	RECORDS_RELEASE(github_limit, o->list, o->n);
	for (size_t i = 0; i < o->n_own; i++) {
		const struct github_limit *l = &o->own[i];

		n_new += db_exec_count(d,
		    "INSERT INTO github_limit (installation_id, until_ms, remaining, reset_ms) VALUES (?1, ?2, ?3, ?4)"
		    " ON CONFLICT (installation_id) DO UPDATE SET until_ms = excluded.until_ms, remaining = "
		    "excluded.remaining,"
		    " reset_ms = excluded.reset_ms WHERE github_limit.until_ms + ?5 < excluded.until_ms"
		    " OR github_limit.until_ms > ?6",
		    V_INT(l->installation_id), V_INT(l->until_ms), V_INT(l->remaining), V_INT(l->reset_ms),
		    V_INT(SAME_LIMIT_MS), V_INT(o->now_ms + LIMIT_MAX_MS));
	}
	if (n_new)
		db_notify(d, STORE_LIMITS);
	RECORDS_READ(
	    db_rows(d, RECORD_QUERY(GITHUB_LIMIT_RECORD, "FROM github_limit WHERE until_ms > ?1 AND until_ms <= ?2"),
		V_INT(o->now_ms), V_INT(o->now_ms + LIMIT_MAX_MS)),
	    github_limit, o->list, o->n);
	return 0;
}
STORE_OPERATION(share_limits)
