#include "store/tested.h"

#include "base/alloc.h"
#include "base/str.h"
#include "db/key.h"
#include "db/record_rows.h"
#include "store/changes.h"

/* ---- a change ---- */

RECORD_DEFINE_PART(tested_change, find_tested, TESTED_CHANGE_RECORD);
RECORD_DEFINE_PART(tested_pull, find_tested, TESTED_PULL_RECORD);

#define HEADS_RECORD(F, S)                                                                         \
	F(S, INT, n, NULL, "COUNT(DISTINCT head_sha)", "")                                         \
	F(S, TEXT, first, NULL, "MIN(head_sha)", "")
RECORD_LOCAL(heads, HEADS_RECORD)

static int tested_run(struct store_query *sq, struct db *d)
{
	struct find_tested *q = CONTAINER_OF(sq, struct find_tested, q);
	struct repository_key key = repository_key(q->repository);
	struct heads heads = {0};
	int64_t id;

	find_tested_release(q); /* of a failed attempt */
	if (q->number) {
		id = db_int(d, 0,
		    "SELECT change_id FROM pull WHERE repository_key = ?1 AND number = ?2",
		    V_TEXT(key.text), V_INT(q->number));
	} else {
		record_read_first(
		    db_rows(d,
			RECORD_QUERY(HEADS_RECORD,
			    "FROM change WHERE repository_key = ?1 AND head_sha >= ?2"
			    " AND head_sha < ?2 || 'g' AND kind IN ('pull_request', 'push')"),
			V_TEXT(key.text), V_TEXT(q->sha)),
		    &heads_record, &heads);
		/* If one commit is the head of a pull request and of a push, the pull request counts, because people read
		 * its comment. */
		id = heads.n != 1 ? 0
				  : db_int(d, 0,
					"SELECT id FROM change WHERE repository_key = ?1"
					" AND head_sha = ?2 AND kind IN ('pull_request', 'push')"
					" ORDER BY kind = 'push' LIMIT 1",
					V_TEXT(key.text), V_TEXT(heads.first));
		record_release(&heads_record, &heads);
	}
	if (!id)
		return heads.n > 1 ? ERR_CONFLICT : ERR_NOT_FOUND;
	record_read_first(
	    db_rows(d, RECORD_QUERY(TESTED_CHANGE_RECORD, "FROM change WHERE id = ?1"), V_INT(id)),
	    &tested_change_record, q);
	q->delivery_guid = db_text(d,
	    "SELECT delivery_guid FROM dispatch WHERE change_id = ?1"
	    " ORDER BY created_ms DESC LIMIT 1",
	    V_INT(id));
	if (q->is_pull)
		record_read_first(
		    db_rows(d,
			RECORD_QUERY(TESTED_PULL_RECORD,
			    "FROM pull WHERE change_id = ?1 AND (?2 = 0 OR number = ?2)"
			    " ORDER BY number DESC LIMIT 1"),
			V_INT(id), V_INT(q->number ? q->number : change_lead(d, id))),
		    &tested_pull_record, q);
	return 0;
}

int store_find_tested(struct store *s, struct find_tested *q)
{
	q->is_pull = q->is_open = false;
	q->pull_number = 0;
	q->head_sha = q->ref = q->title = q->author = q->delivery_guid = NULL;
	q->q.run = tested_run;
	return store_query(s, &q->q);
}

void find_tested_release(struct find_tested *q)
{
	record_release(&tested_change_record, q);
	FREE_AND_NULL(q->delivery_guid);
}

/* ---- the runs that a check stands for ---- */

RECORD_DEFINE(rerun_target, RERUN_TARGET_RECORD);

#define TARGET_JOINS                                                                               \
	" FROM dispatch x JOIN change c ON c.id = x.change_id"                                     \
	" LEFT JOIN job j ON j.change_id = x.change_id AND j.dispatch_id = x.id"                   \
	"  AND j.accelerator = x.accelerator AND j.is_current = 1"
/* Dispatches of the head of an open pull request. A held one stays held, so it is not a target. */
#define TARGET_RULES                                                                               \
	" c.repository_key = ?1 AND c.head_sha = ?2 AND c.kind = 'pull_request'"                   \
	" AND c.state = 'open' AND x.is_current = 1 AND x.accelerator <> '' AND x.state <> 'held'"

/* Adds each run once, also if its jobs belong to several accelerators. */
static void add_reruns(struct find_rerun *q, struct rows *r)
{
	while (rows_next(r)) {
		struct rerun_target t;
		bool is_listed = false;

		record_read(r, &rerun_target_record, &t);
		for (const struct rerun_target *o = q->list; o < q->list + q->n; o++)
			is_listed |= str_eq(o->run_id, t.run_id) &&
				     strcmp(o->dispatch_id, t.dispatch_id) == 0 &&
				     (t.is_github || (strcmp(o->accelerator, t.accelerator) == 0 &&
							 strcmp(o->runner, t.runner) == 0));
		if (is_listed)
			record_release(&rerun_target_record, &t);
		else
			*ARRAY_PUSH(q->list, q->n) = t;
	}
}

static int rerun_run(struct store_query *sq, struct db *d)
{
	struct find_rerun *q = CONTAINER_OF(sq, struct find_rerun, q);
	struct repository_key key = repository_key(q->repository);

	find_rerun_release(q); /* of a failed attempt */
	q->pull_number =
	    change_lead(d, change_find(d, CHANGE_PULL_REQUEST, q->repository, q->head_sha));
	if (q->check_name)
		add_reruns(q, db_rows(d,
				  RECORD_SELECT(RERUN_TARGET_RECORD) TARGET_JOINS
				  " JOIN check_run k ON k.job_id = j.id AND k.repository_key = ?1"
				  " AND k.head_sha = ?2 AND k.name = ?3 WHERE" TARGET_RULES,
				  V_TEXT(key.text), V_TEXT(q->head_sha), V_TEXT(q->check_name)));
	if (q->n)
		return 0;
	if (q->check_name)
		add_reruns(q,
		    db_rows(d,
			RECORD_SELECT(RERUN_TARGET_RECORD) TARGET_JOINS
			" WHERE" TARGET_RULES " AND j.run_id = ?3 ORDER BY x.accelerator, x.runner",
			V_TEXT(key.text), V_TEXT(q->head_sha), V_TEXT(q->run_id)));
	else
		add_reruns(
		    q, db_rows(d,
			   RECORD_SELECT(RERUN_TARGET_RECORD) TARGET_JOINS
			   " WHERE" TARGET_RULES " ORDER BY x.accelerator, x.runner, j.run_id",
			   V_TEXT(key.text), V_TEXT(q->head_sha)));
	return 0;
}

int store_find_rerun(struct store *s, struct find_rerun *q)
{
	q->list = NULL;
	q->n = 0;
	q->pull_number = 0;
	q->q.run = rerun_run;
	return store_query(s, &q->q);
}

void find_rerun_release(struct find_rerun *q)
{
	RECORDS_RELEASE(rerun_target, q->list, q->n);
}
