/* What has to be known before something is tested again: which change is meant, and which of its
 * runs a check stands for. */
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "store/commands.h"
#include "store/key.h"
#include "store/stored_change.h"

/* ---- a change ---- */

static int64_t by_number(struct find_tested *q, struct db *d)
{
	return db_int(d, 0, "SELECT change_id FROM pull WHERE repository_key = ?1 AND number = ?2",
	    V_TEXT(repository_key(q->repository).text), V_INT(q->number));
}

/* A PR's head before a push, where one commit is both: its comment is what people look at. */
static int64_t by_sha(struct find_tested *q, struct db *d)
{
	char *sha = db_text(d,
	    "SELECT MIN(head_sha) FROM change WHERE repository_key = ?1 AND head_sha >= ?2"
	    " AND head_sha < ?2 || 'g' AND kind IN ('pull_request', 'push')"
	    " HAVING COUNT(DISTINCT head_sha) = 1",
	    V_TEXT(repository_key(q->repository).text), V_TEXT(q->sha));
	int64_t id = 0;

	if (sha)
		id = db_int(d, 0,
		    "SELECT id FROM change WHERE repository_key = ?1 AND head_sha = ?2"
		    " AND kind IN ('pull_request', 'push') ORDER BY kind = 'push' LIMIT 1",
		    V_TEXT(repository_key(q->repository).text), V_TEXT(sha));
	free(sha);
	return id;
}

static bool is_ambiguous(struct find_tested *q, struct db *d)
{
	return db_int(d, 0,
		   "SELECT COUNT(DISTINCT head_sha) FROM change WHERE repository_key = ?1"
		   " AND head_sha >= ?2 AND head_sha < ?2 || 'g' AND kind IN ('pull_request', "
		   "'push')",
		   V_TEXT(repository_key(q->repository).text), V_TEXT(q->sha)) > 1;
}

static void read_change(struct find_tested *q, struct db *d, int64_t id)
{
	struct rows *r = db_rows(
	    d, "SELECT kind, head_sha, ref, title, author FROM change WHERE id = ?1", V_INT(id));

	if (rows_next(r)) {
		q->is_pull = strcmp(rows_text(r, 0), "pull_request") == 0;
		snprintf(q->head_sha, sizeof(q->head_sha), "%s", rows_text(r, 1));
		q->ref = rows_dup(r, 2);
		q->title = rows_dup(r, 3);
		q->author = rows_dup(r, 4);
	}
	rows_end(r);
	q->delivery_guid = db_text(d,
	    "SELECT delivery_guid FROM dispatch WHERE change_id = ?1"
	    " ORDER BY created_ms DESC LIMIT 1",
	    V_INT(id));
}

static void read_pull(struct find_tested *q, struct db *d, int64_t id)
{
	int64_t number = q->number ? q->number : change_lead(d, id);
	struct rows *r = db_rows(d,
	    "SELECT number, state FROM pull WHERE change_id = ?1 AND (?2 = 0 OR number = ?2)"
	    " ORDER BY number DESC LIMIT 1",
	    V_INT(id), V_INT(number));

	if (rows_next(r)) {
		q->pull_number = rows_int(r, 0);
		q->is_open = strcmp(rows_text(r, 1), "open") == 0;
	}
	rows_end(r);
}

static int tested_run(struct store_query *sq, struct db *d)
{
	struct find_tested *q = CONTAINER_OF(sq, struct find_tested, q);
	int64_t id = q->number ? by_number(q, d) : by_sha(q, d);

	if (!id)
		return !q->number && is_ambiguous(q, d) ? ERR_CONFLICT : ERR_NOT_FOUND;
	read_change(q, d, id);
	if (q->is_pull)
		read_pull(q, d, id);
	return 0;
}

int store_find_tested(struct store *s, struct find_tested *q)
{
	q->is_pull = q->is_open = false;
	q->pull_number = 0;
	q->head_sha[0] = '\0';
	q->ref = q->title = q->author = q->delivery_guid = NULL;
	q->q.run = tested_run;
	return store_query(s, &q->q);
}

void find_tested_release(struct find_tested *q)
{
	FREE_AND_NULL(q->ref);
	FREE_AND_NULL(q->title);
	FREE_AND_NULL(q->author);
	FREE_AND_NULL(q->delivery_guid);
}

/* ---- what a check stands for ---- */

#define TARGET_COLUMNS " x.accelerator, x.runner, x.id, x.kind, x.target, j.run_id, j.run_attempt"
#define TARGET_JOINS                                                                               \
	" FROM dispatch x JOIN change c ON c.id = x.change_id"                                     \
	" LEFT JOIN job j ON j.change_id = x.change_id AND j.dispatch_id = x.id"                   \
	"  AND j.accelerator = x.accelerator AND j.is_current = 1"
/* The head of an open PR; a held one stays held, so it is no target. */
#define TARGET_RULES                                                                               \
	" c.repository_key = ?1 AND c.head_sha = ?2 AND c.kind = 'pull_request'"                   \
	" AND c.state = 'open' AND x.is_current = 1 AND x.accelerator <> '' AND x.state <> 'held'"

static bool is_listed(const struct find_rerun *q, const struct rerun_target *t)
{
	for (size_t i = 0; i < q->n; i++)
		if (str_eq(q->list[i].run_id, t->run_id) &&
		    strcmp(q->list[i].dispatch_id, t->dispatch_id) == 0 &&
		    (t->is_github || (strcmp(q->list[i].accelerator, t->accelerator) == 0 &&
					 strcmp(q->list[i].runner, t->runner) == 0)))
			return true;
	return false;
}

static void release_target(struct rerun_target *t)
{
	free(t->accelerator);
	free(t->runner);
	free(t->dispatch_id);
	free(t->repository);
	free(t->run_id);
}

/* A run whose jobs belong to several accelerators is one run. */
static void take(struct find_rerun *q, struct rows *r)
{
	while (rows_next(r)) {
		struct rerun_target t = {
		    .accelerator = rows_dup(r, 0),
		    .runner = rows_dup(r, 1),
		    .dispatch_id = rows_dup(r, 2),
		    .is_github = strcmp(rows_text(r, 3), "github") == 0 ||
				 strcmp(rows_text(r, 3), "infra") == 0,
		    .run_attempt = rows_int(r, 6),
		};

		if (t.is_github) {
			t.repository = rows_dup(r, 4);
			t.run_id = rows_dup(r, 5);
		}
		if (is_listed(q, &t)) {
			release_target(&t);
			continue;
		}
		q->list = xrealloc(q->list, (q->n + 1) * sizeof(*q->list));
		q->list[q->n++] = t;
	}
}

static void find_by_check(struct find_rerun *q, struct db *d, const char *key)
{
	take(q, db_rows(d,
		    "SELECT" TARGET_COLUMNS TARGET_JOINS
		    " JOIN check_run k ON k.job_id = j.id AND k.repository_key = ?1"
		    " AND k.head_sha = ?2 AND k.name = ?3 WHERE" TARGET_RULES,
		    V_TEXT(key), V_TEXT(q->head_sha), V_TEXT(q->check_name)));
}

static int rerun_run(struct store_query *sq, struct db *d)
{
	struct find_rerun *q = CONTAINER_OF(sq, struct find_rerun, q);
	struct repository_key key = repository_key(q->repository);

	q->pull_number =
	    change_lead(d, change_find(d, CHANGE_PULL_REQUEST, q->repository, q->head_sha));
	if (q->check_name)
		find_by_check(q, d, key.text);
	if (q->n)
		return 0;
	if (q->check_name)
		take(q, db_rows(d,
			    "SELECT" TARGET_COLUMNS TARGET_JOINS " WHERE" TARGET_RULES
			    " AND j.run_id = ?3 ORDER BY x.accelerator, x.runner",
			    V_TEXT(key.text), V_TEXT(q->head_sha), V_TEXT(q->run_id)));
	else
		take(q, db_rows(d,
			    "SELECT" TARGET_COLUMNS TARGET_JOINS " WHERE" TARGET_RULES
			    " ORDER BY x.accelerator, x.runner, j.run_id",
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
	for (size_t i = 0; i < q->n; i++)
		release_target(&q->list[i]);
	FREE_AND_NULL(q->list);
	q->n = 0;
}
