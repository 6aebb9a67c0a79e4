#include "store/commits_between.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "store/branch_commits.h"
#include "store/key.h"

/* Both on one branch with no gap between them: *ret_n commits behind the good one. */
static bool is_on_record(struct db *d, const char *key, const char *good_sha, const char *bad_sha,
    int64_t *ret_until, int64_t *ret_n, char **ret_ref)
{
	struct rows *r = db_rows(d,
	    "SELECT g.ref, b.position, b.position - g.position FROM branch_commit g"
	    " JOIN branch_commit b ON b.repository_key = g.repository_key AND b.ref = g.ref"
	    " WHERE g.repository_key = ?1 AND g.sha = ?2 AND b.sha = ?3",
	    V_TEXT(key), V_TEXT(good_sha), V_TEXT(bad_sha));
	bool is_there = false;

	while (!is_there && rows_next(r)) {
		*ret_n = rows_int(r, 2);
		is_there = *ret_n > 0 && *ret_n < BRANCH_GAP;
		if (is_there) {
			*ret_until = rows_int(r, 1);
			*ret_ref = rows_dup(r, 0);
		}
	}
	rows_end(r);
	return is_there;
}

static bool is_on_record_at_all(
    struct db *d, const char *key, const char *good_sha, const char *bad_sha)
{
	int64_t until, n;
	char *ref = NULL;
	bool is_there = is_on_record(d, key, good_sha, bad_sha, &until, &n, &ref);

	free(ref);
	return is_there;
}

static void want(
    struct db *d, const char *repository, const char *good_sha, const char *bad_sha, int64_t now_ms)
{
	struct repository_key key = repository_key(repository);

	if (!is_sha1(good_sha) || !is_sha1(bad_sha)) /* one of them is not known */
		return;
	if (is_on_record_at_all(d, key.text, good_sha, bad_sha))
		return;
	if (db_exec(d,
		"INSERT INTO commits_between (repository_key, good_sha, bad_sha, repository,"
		" n_tries, next_ms, asked_ms) VALUES (?1, ?2, ?3, ?4, 0, ?5, ?5)"
		" ON CONFLICT DO NOTHING",
		V_TEXT(key.text), V_TEXT(good_sha), V_TEXT(bad_sha), V_TEXT(repository),
		V_INT(now_ms)))
		db_tell(d, STORE_ATTRIBUTION);
}

void commits_between_want(
    struct db *d, const char *accelerator, int64_t good_day, int64_t bad_day, int64_t now_ms)
{
	struct rows *r = db_rows(d,
	    "SELECT b.repository, g.upstream_sha, b.upstream_sha FROM history_run g"
	    " JOIN history_run b ON b.accelerator = g.accelerator AND b.day = ?3"
	    " WHERE g.accelerator = ?1 AND g.day = ?2 AND g.upstream_sha <> b.upstream_sha",
	    V_TEXT(accelerator), V_INT(good_day), V_INT(bad_day));

	if (rows_next(r))
		want(d, rows_text(r, 0), rows_text(r, 1), rows_text(r, 2), now_ms);
	rows_end(r);
}

bool commits_between_drop(struct db *d, int64_t before_ms, int limit)
{
	return db_exec(d,
		   "DELETE FROM commits_between WHERE (repository_key, good_sha, bad_sha) IN"
		   " (SELECT repository_key, good_sha, bad_sha FROM commits_between"
		   "  WHERE asked_ms < ?1 LIMIT ?2)",
		   V_INT(before_ms), V_INT(limit)) > 0;
}

/* ---- reading ---- */

static void read_pushes(
    struct db *d, const char *key, const char *ref, int64_t until, struct known_commits *ret)
{
	struct rows *r = db_rows(d,
	    "SELECT sha, title, author FROM branch_commit WHERE repository_key = ?1 AND ref = ?2"
	    " AND position <= ?3 AND position > ?4 ORDER BY position DESC LIMIT ?5",
	    V_TEXT(key), V_TEXT(ref), V_INT(until), V_INT(until - ret->n),
	    V_INT(COMMITS_SHOWN_MAX));

	while (ret->n_listed < COMMITS_SHOWN_MAX && rows_next(r))
		ret->list[ret->n_listed++] = (struct known_commit){
		    .sha = rows_dup(r, 0), .title = rows_dup(r, 1), .author = rows_dup(r, 2)};
	rows_end(r);
}

static void read_json(const char *text, struct known_commits *ret)
{
	json_t *list, *c;
	size_t i;

	if (json_parse(text, strlen(text), &list, NULL))
		return;
	json_array_foreach(list, i, c)
	{
		if (ret->n_listed == COMMITS_SHOWN_MAX)
			break;
		ret->list[ret->n_listed++] = (struct known_commit){
		    .sha = xstrdup_or_null(json_get_str(c, "sha")),
		    .title = xstrdup_or_null(json_get_str(c, "title")),
		    .author = xstrdup_or_null(json_get_str(c, "author")),
		};
	}
	json_decref(list);
}

void commits_between_read(struct db *d, const char *key, const char *good_sha, const char *bad_sha,
    struct known_commits *ret)
{
	struct rows *r;
	char *ref = NULL;
	int64_t until;

	*ret = (struct known_commits){.n = -1};
	if (is_on_record(d, key, good_sha, bad_sha, &until, &ret->n, &ref)) {
		read_pushes(d, key, ref, until, ret);
		free(ref);
		return;
	}
	ret->n = -1;
	r = db_rows(d,
	    "SELECT n, commits FROM commits_between WHERE repository_key = ?1 AND good_sha = ?2"
	    " AND bad_sha = ?3",
	    V_TEXT(key), V_TEXT(good_sha), V_TEXT(bad_sha));
	if (rows_next(r)) {
		ret->n = rows_is_null(r, 0) ? -1 : rows_int(r, 0);
		read_json(rows_text(r, 1), ret);
	}
	rows_end(r);
}

void known_commits_release(struct known_commits *k)
{
	for (size_t i = 0; i < k->n_listed; i++) {
		free(k->list[i].sha);
		free(k->list[i].title);
		free(k->list[i].author);
	}
	*k = (struct known_commits){.n = -1};
}

/* ---- questions to GitHub ---- */

static int claim_run(struct store_query *sq, struct db *d)
{
	struct claim_comparison *q = CONTAINER_OF(sq, struct claim_comparison, q);
	struct rows *r =
	    db_rows(d, "SELECT repository, good_sha, bad_sha, n_tries, next_ms FROM commits_between"
		       " WHERE next_ms IS NOT NULL ORDER BY next_ms LIMIT 1");

	if (rows_next(r)) {
		q->next_ms = rows_int(r, 4);
		if (q->next_ms <= q->now_ms) {
			q->repository = rows_dup(r, 0);
			q->good_sha = rows_dup(r, 1);
			q->bad_sha = rows_dup(r, 2);
			q->n_tries = (int)rows_int(r, 3);
		}
	}
	rows_end(r);
	return q->repository || db_status(d) ? 0 : ERR_NOT_FOUND;
}

int store_claim_comparison(struct store *s, struct claim_comparison *q)
{
	q->repository = q->good_sha = q->bad_sha = NULL;
	q->next_ms = 0;
	q->q.run = claim_run;
	return store_query(s, &q->q);
}

void claim_comparison_release(struct claim_comparison *q)
{
	FREE_AND_NULL(q->repository);
	FREE_AND_NULL(q->good_sha);
	FREE_AND_NULL(q->bad_sha);
}

static int put_run(struct store_op *op, struct db *d)
{
	struct put_comparison *o = CONTAINER_OF(op, struct put_comparison, op);
	struct repository_key key = repository_key(o->repository);

	db_exec(d,
	    "UPDATE commits_between SET n = ?4, commits = ?5, n_tries = n_tries + 1, next_ms = ?6"
	    " WHERE repository_key = ?1 AND good_sha = ?2 AND bad_sha = ?3",
	    V_TEXT(key.text), V_TEXT(o->good_sha), V_TEXT(o->bad_sha),
	    o->n < 0 ? V_NULL : V_INT(o->n), V_TEXT(o->commits), V_INT_OR_NULL(o->again_ms));
	if (!o->again_ms)
		db_tell(d, STORE_CHANGES);
	return 0;
}

int store_put_comparison(struct store *s, struct put_comparison *op)
{
	op->op.run = put_run;
	op->op.bytes = sizeof(*op) + (op->commits ? strlen(op->commits) : 0);
	return store_submit(s, &op->op);
}
