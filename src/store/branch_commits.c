#include "store/branch_commits.h"

#include "db/key.h"
#include "db/record_rows.h"

enum { LIST_MAX = 250 };

/* A new chain begins two gaps further on, because late pushes may fill one of them from below. */
static const int64_t LEAP = INT64_C(2) * BRANCH_GAP;

struct branch {
	struct txn *d;
	struct repository_key key;
	const char *ref;
};

const char *branch_name(const char *ref)
{
	static const char HEADS[] = "refs/heads/";

	return strncmp(ref, HEADS, sizeof(HEADS) - 1) == 0 ? ref + sizeof(HEADS) - 1 : ref;
}

int64_t branch_position(const struct view *d, const char *key, const char *ref, const char *sha)
{
	return db_int(d, -1, "SELECT position FROM branch_commit WHERE repository_key = ?1 AND sha = ?2 AND ref = ?3",
	    V_TEXT(key), V_TEXT(sha), V_TEXT(branch_name(ref)));
}

static int64_t position_of(const struct branch *b, const char *sha)
{
	return branch_position(b->d->view, b->key.text, b->ref, sha);
}

/* The nearest occupied positions; -1: none. */
static int64_t next_above(const struct branch *b, int64_t position)
{
	return db_int(b->d, -1,
	    "SELECT position FROM branch_commit WHERE repository_key = ?1 AND ref = ?2"
	    " AND position > ?3 ORDER BY position LIMIT 1",
	    V_TEXT(b->key.text), V_TEXT(b->ref), V_INT(position));
}

static int64_t next_below(const struct branch *b, int64_t position)
{
	return db_int(b->d, -1,
	    "SELECT position FROM branch_commit WHERE repository_key = ?1 AND ref = ?2"
	    " AND position < ?3 ORDER BY position DESC LIMIT 1",
	    V_TEXT(b->key.text), V_TEXT(b->ref), V_INT(position));
}

/* A commit that was known only as a parent gets its author, title and time now. */
static void put_commit_at(const struct branch *b, int64_t position, const struct branch_commit *c)
{
	if (db_exec_count(b->d,
		"INSERT INTO branch_commit (repository_key, ref, position, sha, at_ms, author, title, files)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
		V_TEXT(b->key.text), V_TEXT(b->ref), V_INT(position), V_TEXT(c->sha), V_INT(c->at_ms),
		V_TEXT(c->author), V_TEXT(c->title), V_TEXT(c->files)))
		return;
	db_exec(b->d,
	    "UPDATE branch_commit SET at_ms = ?4, author = ?5, title = ?6, files = ?7 WHERE repository_key = ?1"
	    " AND ref = ?2 AND sha = ?3 AND (title IS NULL OR (files IS NULL AND ?7 IS NOT NULL))",
	    V_TEXT(b->key.text), V_TEXT(b->ref), V_TEXT(c->sha), V_INT(c->at_ms), V_TEXT(c->author), V_TEXT(c->title),
	    V_TEXT(c->files));
}

/* at: the position of the last commit. */
static void put_chain(const struct branch *b, int64_t at, const struct branch_commit *commits, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_commit_at(b, at - (int64_t)(n - 1 - i), &commits[i]);
}

static void put_parent(const struct branch *b, int64_t at, const char *before, const struct branch_commit *commits)
{
	put_commit_at(b, at, &(struct branch_commit){.sha = before, .at_ms = commits[0].at_ms});
}

/* The end of one chain is the parent of the beginning of another: the second moves behind the first. */
static void join_chains(
    const struct branch *b, int64_t end, int64_t first, const struct branch_commit *commits, size_t n)
{
	struct rows *r = db_rows(b->d,
	    "SELECT position FROM branch_commit WHERE repository_key = ?1 AND ref = ?2"
	    " AND position >= ?3 ORDER BY position",
	    V_TEXT(b->key.text), V_TEXT(b->ref), V_INT(first));
	int64_t last = first, above = next_above(b, end), by = end + (int64_t)n - first;

	while (rows_next(r) && rows_key_number(r) - last < BRANCH_GAP)
		last = rows_key_number(r);
	rows_end(r);
	if (above == first)
		above = next_above(b, last);
	if ((end >= first && end <= last) || (above >= 0 && above - last - by < BRANCH_GAP))
		return;
	/* through negative numbers, so that no two rows have the same number on the way */
	db_exec(b->d,
	    "UPDATE branch_commit SET position = -position WHERE repository_key = ?1 AND ref = ?2"
	    " AND position BETWEEN ?3 AND ?4",
	    V_TEXT(b->key.text), V_TEXT(b->ref), V_INT(first), V_INT(last));
	db_exec(b->d,
	    "UPDATE branch_commit SET position = ?3 - position WHERE repository_key = ?1 AND ref = ?2 AND position < 0",
	    V_TEXT(b->key.text), V_TEXT(b->ref), V_INT(by));
	put_chain(b, end + (int64_t)n, commits, n);
}

/* The head is known: it is the same push again, or later pushes came before it. */
static void close_gap(const struct branch *b, int64_t head_at, int64_t before_at, const char *before,
    const struct branch_commit *commits, size_t n)
{
	int64_t below = next_below(b, head_at), above = next_above(b, before_at);
	bool is_first = below < 0 || head_at - below >= BRANCH_GAP;
	bool is_end = above < 0 || above - before_at >= BRANCH_GAP;
	int64_t room = below < 0 ? head_at : head_at - below - BRANCH_GAP;

	put_commit_at(b, head_at, &commits[n - 1]);
	if (!before || !is_first)
		return;
	if (before_at >= 0 && is_end) {
		join_chains(b, before_at, head_at, commits, n);
	} else if (before_at < 0 && room >= (int64_t)n) {
		put_chain(b, head_at, commits, n);
		put_parent(b, head_at - (int64_t)n, before, commits);
	}
}

void branch_commits_put(struct txn *d, const char *repository, const char *ref, const char *before,
    const struct branch_commit *commits, size_t n)
{
	struct branch b = {d, repository_key(repository), branch_name(ref)};
	int64_t head_at, before_at, above, tip;

	assert(n > 0);
	head_at = position_of(&b, commits[n - 1].sha);
	before_at = before ? position_of(&b, before) : -1;
	if (head_at >= 0) {
		close_gap(&b, head_at, before_at, before, commits, n);
		return;
	}
	/* Skip the first commits, if the last of them is known although `before` is not. */
	for (size_t k = n - 1; k > 0 && before_at < 0; k--) {
		before_at = position_of(&b, commits[k - 1].sha);
		if (before_at >= 0) {
			commits += k;
			n -= k;
			break;
		}
	}
	above = before_at < 0 ? -1 : next_above(&b, before_at);
	if (before_at >= 0 && (above < 0 || above - before_at >= BRANCH_GAP + (int64_t)n)) {
		put_chain(&b, before_at + (int64_t)n, commits, n);
		return;
	}
	/* Begin a new chain. */
	tip = next_below(&b, INT64_MAX);
	tip = (tip < 0 ? 0 : tip) + LEAP;
	if (before && before_at < 0)
		put_parent(&b, tip++, before, commits);
	put_chain(&b, tip + (int64_t)n - 1, commits, n);
}

/* ---- reading ---- */

RECORD_DEFINE(listed_commit, LISTED_COMMIT_RECORD);

static int list_commits_run(struct store_query *sq, const struct view *d)
{
	struct list_commits *q = CONTAINER_OF(sq, struct list_commits, q);
	struct repository_key key = repository_key(q->repository);
	int64_t until = branch_position(d, key.text, q->ref, q->until);
	int64_t after = q->after ? branch_position(d, key.text, q->ref, q->after) : -1, below = after;
	int limit = q->limit > 0 && q->limit < LIST_MAX ? q->limit : LIST_MAX;
	bool is_known = after >= 0 && after < until;
	struct rows *r;

	if (until < 0)
		return 0;
	r = db_rows(d,
	    RECORD_QUERY(LISTED_COMMIT_RECORD,
		"FROM (SELECT * FROM branch_commit WHERE repository_key = ?1 AND ref = ?2 AND position > ?3"
		" AND position <= ?4 ORDER BY position DESC LIMIT ?5) newest ORDER BY position"),
	    V_TEXT(key.text), V_TEXT(branch_name(q->ref)), V_INT(is_known ? after : until - 1), V_INT(until),
	    V_INT(limit));
	RECORDS_READ(r, listed_commit, q->list, q->n);
	q->is_complete = is_known;
	for (size_t i = 0; i < q->n; i++) {
		q->is_complete &= q->list[i].position - below < BRANCH_GAP;
		below = q->list[i].position;
	}
	/* A full list may have been cut; then its oldest commit is not next to `after`. */
	if (q->n == (size_t)limit)
		q->is_complete &= !db_has(d,
		    "SELECT 1 FROM branch_commit WHERE repository_key = ?1 AND ref = ?2"
		    " AND position > ?3 AND position < ?4 LIMIT 1",
		    V_TEXT(key.text), V_TEXT(branch_name(q->ref)), V_INT(after), V_INT(q->list[0].position));
	return 0;
}
STORE_LIST(list_commits, listed_commit)
