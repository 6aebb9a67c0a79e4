/* ok-to-test, and its cancel. In doubt a cancel takes back more than was meant rather than less:
 * what is held can be released again, what has run cannot be taken back. */
#include <string.h>

#include "base/alloc.h"
#include "store/cells_moved.h"
#include "store/closing.h"
#include "store/key.h"
#include "store/plan_apply.h"
#include "store/requests.h"
#include "store/starts.h"
#include "store/stored_change.h"

enum { SHA_MIN_CHARS = 7, SHA_CHARS = 40 };

/* The head that a comment means when it names none: the one that was there before it was
 * written. GitHub's times have whole seconds, so a head of the same second may have come
 * after the comment and does not count, unless the PR never had another. */
static int64_t head_as_of(
    struct db *d, const struct repository_key *key, int64_t number, int64_t comment_ms)
{
	int64_t since = db_int(d, 0,
	    "SELECT MAX(since_ms) FROM pull_head WHERE repository_key = ?1 AND number = ?2"
	    " AND since_ms < ?3",
	    V_TEXT(key->text), V_INT(number), V_INT(comment_ms));
	struct rows *r;
	int64_t id = 0, n = 0;

	if (!since && db_int(d, 0,
			  "SELECT COUNT(*) FROM pull_head WHERE repository_key = ?1"
			  " AND number = ?2",
			  V_TEXT(key->text), V_INT(number)) == 1)
		since = comment_ms;
	r = db_rows(d,
	    "SELECT change_id FROM pull_head WHERE repository_key = ?1 AND number = ?2"
	    " AND since_ms = ?3",
	    V_TEXT(key->text), V_INT(number), V_INT(since));
	for (; rows_next(r); n++)
		id = rows_int(r, 0);
	return n == 1 ? id : 0; /* two in one second: nobody can tell which was meant */
}

/* A head of this PR by its SHA, or by a beginning of it that fits only one of them. Commits with a
 * chosen beginning are easy to make, so a beginning means only a head that was there when the
 * comment was written; the whole SHA means that commit whenever it comes. */
static int64_t head_named(
    struct db *d, const struct repository_key *key, const struct comment_place *at, const char *sha)
{
	const size_t n = strlen(sha);
	struct rows *r;
	int64_t id = 0, since_ms = 0;
	bool is_unique = true;

	if (n < SHA_MIN_CHARS)
		return 0;
	r = db_rows(d,
	    "SELECT c.id, MIN(h.since_ms) FROM pull_head h JOIN change c ON c.id = h.change_id"
	    " WHERE h.repository_key = ?1 AND h.number = ?2"
	    " AND substr(c.head_sha, 1, length(?3)) = lower(?3) GROUP BY c.id",
	    V_TEXT(key->text), V_INT(at->number), V_TEXT(sha));
	while (rows_next(r)) {
		is_unique = id == 0;
		id = rows_int(r, 0);
		since_ms = rows_int(r, 1);
	}
	return is_unique && (n == SHA_CHARS || since_ms <= at->comment_ms) ? id : 0;
}

/* Those that wait, and those that were declined, as long as anybody still wants that head. */
static struct dispatch_list releasable_dispatches(struct db *d, int64_t change_id)
{
	return dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE change_id = ?1"
	    " AND is_held_for_good = 0 AND (state = 'held' OR (" DISPATCH_IS_DECLINED
	    "  AND EXISTS (SELECT 1 FROM pull WHERE change_id = ?1 AND state = 'open')"
	    "  AND NOT EXISTS (SELECT 1 FROM dispatch x WHERE x.change_id = ?1"
	    "   AND x.accelerator = dispatch.accelerator AND x.runner = dispatch.runner"
	    "   AND (x.round > dispatch.round OR (x.round = dispatch.round"
	    "    AND x.created_ms > dispatch.created_ms)))))"
	    " ORDER BY accelerator, runner",
	    V_INT(change_id)));
}

int change_release(struct db *d, const struct comment_place *at, const char *sha)
{
	struct repository_key key = repository_key(at->repository);
	int64_t id =
	    sha ? head_named(d, &key, at, sha) : head_as_of(d, &key, at->number, at->comment_ms);
	struct dispatch_list held = id ? releasable_dispatches(d, id) : (struct dispatch_list){0};
	struct starts starts = {0};
	int n = (int)held.n;

	for (size_t i = 0; i < held.n; i++) {
		struct stored_dispatch row = stored_dispatch_copy(&held.at[i]);

		row.round += row.state == DISPATCH_CANCELLED;
		row.state = DISPATCH_QUEUED;
		row.finished_ms = 0;
		FREE_AND_NULL(row.last_error);
		starts_add(&starts, row, &held.at[i]);
	}
	starts_run(d, &starts, at->now_ms);
	starts_release(&starts);
	dispatch_list_release(&held);
	if (!n)
		return 0;
	db_exec(d, "UPDATE change SET is_released = 1, active_ms = ?2 WHERE id = ?1", V_INT(id),
	    V_INT(at->now_ms));
	return n;
}

/* ---- taken back ---- */

/* Waiting for a person, or released but certainly not gone: no machine has taken it, no request was
 * tried. */
#define IS_STILL_HERE                                                                              \
	"(state = 'held' OR (state = 'queued' AND held_reason IS NOT NULL"                         \
	"  AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.key = 'dispatch:' || dispatch.id"        \
	"   AND (o.n_attempts > 0 OR o.state = 'sending'))))"

/* The heads that the writer may have seen. GitHub's times have whole seconds: those of the comment's
 * own count, and so does an only head that became known later than it was written. */
#define HEADS_SEEN                                                                                 \
	"SELECT h.change_id FROM pull_head h WHERE h.repository_key = ?1 AND h.number = ?2"        \
	" AND (h.since_ms <= ?3 OR (SELECT COUNT(*) FROM pull_head x"                              \
	"  WHERE x.repository_key = ?1 AND x.number = ?2) = 1)"

static int decline(struct db *d, struct dispatch_list *l, const char *by, int64_t now_ms)
{
	char *why = xasprintf("declined by %s", by);
	int n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (!dispatch_enter(d, &l->at[i], DISPATCH_CANCELLED, why, now_ms))
			continue;
		request_drop(d, &l->at[i], now_ms);
		cells_moved(d, l->at[i].change_id, l->at[i].accelerator, CELLS_CANCELLED, now_ms);
		n++;
	}
	free(why);
	return n;
}

bool change_decline(struct db *d, const struct comment_place *at, const char *by, int *ret_n)
{
	struct repository_key key = repository_key(at->repository);
	struct dispatch_list l = dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE change_id IN (" HEADS_SEEN ")"
	    " AND (is_current = 1 OR state = 'held') AND is_held_for_good = 0"
	    " AND " IS_STILL_HERE " ORDER BY accelerator, runner",
	    V_TEXT(key.text), V_INT(at->number), V_INT(at->comment_ms)));
	int64_t *taken_back = NULL;
	size_t n_taken_back = 0;
	struct rows *r;

	*ret_n = decline(d, &l, by, at->now_ms);
	dispatch_list_release(&l);
	r = db_rows(d,
	    "UPDATE change SET is_released = 0, active_ms = ?4 WHERE is_released = 1"
	    " AND id IN (" HEADS_SEEN ") RETURNING id",
	    V_TEXT(key.text), V_INT(at->number), V_INT(at->comment_ms), V_INT(at->now_ms));
	while (rows_next(r)) {
		taken_back = xrealloc(taken_back, (n_taken_back + 1) * sizeof(*taken_back));
		taken_back[n_taken_back++] = rows_int(r, 0);
	}
	for (size_t i = 0; i < n_taken_back; i++)
		cells_moved(d, taken_back[i], NULL, CELLS_CHANGE_SETTLED, at->now_ms);
	free(taken_back);
	return *ret_n > 0 || n_taken_back > 0;
}

int change_call_off(struct db *d, const struct comment_place *at, const char *by)
{
	struct stored_pull pull = pull_find(d, at->repository, at->number);
	char *why = xasprintf(CALLED_OFF_BY "%s", by);
	struct plan plan = {
	    .repository = (char *)at->repository,
	    .pull.number = at->number,
	    .event_ms = at->comment_ms,
	    .event_type = "pull_request",
	    .sent_action = "closed",
	    .original_action = (char *)"cancel",
	};
	struct closing closing = {d, &plan, NULL, at->now_ms};
	int n = pull.change_id ? closing_call_off(&closing, pull.change_id, why) : 0;

	free(why);
	return n;
}
