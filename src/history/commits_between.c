#include "history/commits_between.h"

#include "db/key.h"
#include "db/record_rows.h"
#include "store/branch_commits.h"

/* Two commits of one branch on record. */
#define PUSHED_PAIR_RECORD(F, S)                                                                                       \
	F(S, TEXT, ref, NULL, "g.ref", "")                                                                             \
	F(S, INT, until, NULL, "b.position", "")                                                                       \
	F(S, INT, n, NULL, "b.position - g.position", "The commits after the good one.")
RECORD_LOCAL(pushed_pair, PUSHED_PAIR_RECORD)

/* A branch that has both commits, with no gap between them. False: there is none. Release *ret in any case. */
static bool find_pushed_pair(
    const struct view *d, const char *key, const char *good_sha, const char *bad_sha, struct pushed_pair *ret)
{
	*ret = (struct pushed_pair){0};
	return record_read_first(
	    db_rows(d,
		RECORD_QUERY(PUSHED_PAIR_RECORD, "FROM branch_commit g JOIN branch_commit b"
						 " ON b.repository_key = g.repository_key AND b.ref = g.ref"
						 " WHERE g.repository_key = ?1 AND g.sha = ?2 AND b.sha = ?3"
						 " AND b.position > g.position AND b.position < g.position + ?4"
						 " ORDER BY g.ref LIMIT 1"),
		V_TEXT(key), V_TEXT(good_sha), V_TEXT(bad_sha), V_INT(BRANCH_GAP)),
	    &pushed_pair_record, ret);
}

#define PAIR_OF_DAYS_RECORD(F, S)                                                                                      \
	F(S, TEXT, repository, NULL, "b.repository", "")                                                               \
	F(S, TEXT, good_sha, NULL, "g.upstream_sha", "")                                                               \
	F(S, TEXT, bad_sha, NULL, "b.upstream_sha", "")
RECORD_LOCAL(pair_of_days, PAIR_OF_DAYS_RECORD)

void commits_between_want(struct txn *d, const char *accelerator, int64_t good_day, int64_t bad_day, int64_t now_ms)
{
	struct pair_of_days p;
	struct repository_key key;
	struct pushed_pair pushed = {0};

	if (!record_read_first(db_rows(d,
				   RECORD_QUERY(PAIR_OF_DAYS_RECORD, "FROM history_run g JOIN history_run b"
								     " ON b.accelerator = g.accelerator AND b.day = ?3"
								     " WHERE g.accelerator = ?1 AND g.day = ?2"
								     " AND g.upstream_sha <> b.upstream_sha"),
				   V_TEXT(accelerator), V_INT(good_day), V_INT(bad_day)),
		&pair_of_days_record, &p))
		return;
	key = repository_key(p.repository);
	if (is_sha1(p.good_sha) && is_sha1(p.bad_sha) &&
	    !find_pushed_pair(d->view, key.text, p.good_sha, p.bad_sha, &pushed) &&
	    db_exec_count(d,
		"INSERT INTO commits_between (repository_key, good_sha, bad_sha, repository,"
		" n_tries, next_ms, asked_ms) VALUES (?1, ?2, ?3, ?4, 0, ?5, ?5) ON CONFLICT DO NOTHING",
		V_TEXT(key.text), V_TEXT(p.good_sha), V_TEXT(p.bad_sha), V_TEXT(p.repository), V_INT(now_ms)))
		db_notify(d, STORE_ATTRIBUTION);
	record_release(&pushed_pair_record, &pushed);
	record_release(&pair_of_days_record, &p);
}

bool commits_between_drop(struct txn *d, int64_t before_ms, int limit)
{
	return db_exec_count(d,
		   "DELETE FROM commits_between WHERE (repository_key, good_sha, bad_sha) IN"
		   " (SELECT repository_key, good_sha, bad_sha FROM commits_between  WHERE asked_ms < ?1 LIMIT ?2)",
		   V_INT(before_ms), V_INT(limit)) > 0;
}

/* ---- reading ---- */

RECORD_DEFINE(known_commit, KNOWN_COMMIT_RECORD);

#define ANSWER_RECORD(F, S)                                                                                            \
	F(S, COUNT, n, NULL, "n", "")                                                                                  \
	F(S, TEXT, commits, NULL, "commits", "JSON; NULL: none.")
RECORD_LOCAL(answer, ANSWER_RECORD)

void commits_between_read(
    const struct view *d, const char *key, const char *good_sha, const char *bad_sha, struct known_commits *ret)
{
	struct pushed_pair pushed;
	struct answer answer = {.n = -1};
	json_t *list = NULL, *c;
	struct rows *r;
	size_t i;

	*ret = (struct known_commits){.n = -1};
	if (find_pushed_pair(d, key, good_sha, bad_sha, &pushed)) {
		ret->n = pushed.n;
		r = db_rows(d,
		    RECORD_QUERY(KNOWN_COMMIT_RECORD,
			"FROM branch_commit WHERE repository_key = ?1 AND ref = ?2"
			" AND position <= ?3 AND position > ?4 ORDER BY position DESC LIMIT ?5"),
		    V_TEXT(key), V_TEXT(pushed.ref), V_INT(pushed.until), V_INT(pushed.until - pushed.n),
		    V_INT(COMMITS_SHOWN_MAX));
		while (ret->n_listed < COMMITS_SHOWN_MAX && rows_next(r))
			record_read(r, &known_commit_record, &ret->list[ret->n_listed++]);
		rows_end(r);
	} else if (record_read_first(db_rows(d,
					 RECORD_QUERY(ANSWER_RECORD,
					     "FROM commits_between WHERE repository_key = ?1 AND good_sha = ?2"
					     " AND bad_sha = ?3"),
					 V_TEXT(key), V_TEXT(good_sha), V_TEXT(bad_sha)),
		       &answer_record, &answer)) {
		ret->n = answer.n;
		if (answer.commits && json_parse(answer.commits, strlen(answer.commits), &list, NULL) == 0)
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
		record_release(&answer_record, &answer);
	}
	record_release(&pushed_pair_record, &pushed);
}

/* ---- questions to GitHub ---- */

RECORD_DEFINE(claim_comparison, CLAIM_COMPARISON_RECORD);

static int claim_comparison_run(struct store_query *sq, const struct view *d)
{
	struct claim_comparison *q = CONTAINER_OF(sq, struct claim_comparison, q);

	q->repository = q->good_sha = q->bad_sha = NULL;
	q->next_ms = 0;
	record_read_first(db_rows(d, RECORD_QUERY(CLAIM_COMPARISON_RECORD,
					 "FROM commits_between WHERE next_ms IS NOT NULL"
					 " ORDER BY next_ms, repository_key, good_sha, bad_sha LIMIT 1")),
	    &claim_comparison_record, q);
	if (q->next_ms > q->now_ms)
		claim_comparison_release(q);
	return q->repository || db_status(d) ? 0 : ERR_NOT_FOUND;
}
STORE_QUERY(claim_comparison)

void claim_comparison_release(struct claim_comparison *q) { record_release(&claim_comparison_record, q); }

static int put_commits_run(struct store_op *op, struct txn *d)
{
	struct put_comparison *o = CONTAINER_OF(op, struct put_comparison, op);
	struct repository_key key = repository_key(o->repository);

	db_exec(d,
	    "UPDATE commits_between SET n = ?4, commits = ?5, n_tries = n_tries + 1, next_ms = ?6"
	    " WHERE repository_key = ?1 AND good_sha = ?2 AND bad_sha = ?3",
	    V_TEXT(key.text), V_TEXT(o->good_sha), V_TEXT(o->bad_sha), o->n < 0 ? V_NULL : V_INT(o->n),
	    V_TEXT(o->commits), V_INT_OR_NULL(o->again_ms));
	if (!o->again_ms)
		db_notify(d, STORE_CHANGES);
	return 0;
}

int store_put_comparison(struct store *s, struct put_comparison *op)
{
	op->op.run = put_commits_run;
	op->op.bytes = sizeof(*op) + (op->commits ? strlen(op->commits) : 0);
	return store_submit(s, &op->op);
}
