#include "store/closing.h"

#include "db/key.h"
#include "experiments/experiments.h"
#include "store/changes.h"
#include "store/deliveries.h"
#include "store/requests.h"
#include "store/starts.h"
#include "verdict/cells_moved.h"

/* Requests that arrived or may have arrived, without those that were refused. */
#define GOT_IT " (o.state = 'sent' OR (o.n_attempts > 0 AND o.state <> 'dead'))"

/* Vendors know a run by the pull request of the body that they got. When two pull requests share a head, that may be another
 * one. If it is open with another head now, its newer run must not end, so only GitHub's event about the closing pull
 * request itself is forwarded. */
static void send_closed(struct closing *c, const struct stored_dispatch *s)
{
	const struct plan *p = c->plan;
	struct repository_key key = repository_key(p->repository);
	bool has_moved_on = db_has(c->d,
	    "SELECT 1 FROM pull WHERE repository_key = ?1 AND number = ?2 AND state = 'open' AND change_id <> ?3",
	    V_TEXT(key.text), V_INT(s->number), V_INT(s->change_id));
	int64_t number = !has_moved_on ? s->number : c->guid ? p->pull.number : 0;
	bool is_forwarded = c->guid && number == p->pull.number;
	char guid[UUID_BYTES];
	const struct outbox_request q = {
	    .target = s->target,
	    .target_key = s->target_key,
	    .number = number,
	    .change_id = s->change_id,
	    .dispatch_id = s->id,
	    .delivery_guid = is_forwarded ? c->guid : guid,
	    .event_type = p->event_type,
	    .original_action = p->original_action,
	};

	if (!number)
		return;
	if (!is_forwarded) {
		/* There is no webhook to forward. Outpost sends the last one again with a new id, so that a report about
		 * it is not taken for a report of the dispatch. */
		uuid_new(guid);
		if (!delivery_copy(c->d, s->delivery_guid, guid, c->now_ms))
			snprintf(guid, UUID_BYTES, "%s", s->delivery_guid);
	}
	request_put_closed(c->d, q, p->repository, p->event_ms ? p->event_ms : c->now_ms, c->now_ms);
	/* The notice covers the other heads of this pull request, except one that another pull request still has. Finds
	 * them by the heads, of which a pull request has few. (|| '': keeps SQLite from the index by target, which has
	 * years of them.) */
	db_exec(c->d,
	    "UPDATE dispatch SET is_closed_told = 1 WHERE target_key || '' = ?1 AND change_id IN"
	    " (SELECT change_id FROM pull_head WHERE repository_key = ?2 AND number = ?3)"
	    " AND (change_id = ?4 OR NOT EXISTS (SELECT 1 FROM pull x"
	    "  WHERE x.change_id = dispatch.change_id AND x.state = 'open'))",
	    V_TEXT(s->target_key), V_TEXT(key.text), V_INT(number), V_INT(s->change_id));
}

int closing_send(struct closing *c)
{
	/* Newest first for each target. A head that another open pull request has as well continues. */
	struct dispatch_list l = DISPATCHES_WHERE(c->d,
	    "is_closed_told = 0 AND kind IN ('github', 'infra')"
	    " AND change_id IN (SELECT change_id FROM pull_head WHERE repository_key = ?1 AND number = ?2)"
	    " AND NOT EXISTS (SELECT 1 FROM pull p WHERE p.change_id = dispatch.change_id AND p.state = 'open')"
	    " AND EXISTS (SELECT 1 FROM outbox o WHERE o.key = 'dispatch:' || dispatch.id AND" GOT_IT ")"
	    " ORDER BY target_key, number, created_ms DESC, id",
	    V_TEXT(repository_key(c->plan->repository).text), V_INT(c->plan->pull.number));
	int n = 0;

	for (size_t i = 0; i < l.n; i++) {
		if (i && strcmp(l.at[i].target_key, l.at[i - 1].target_key) == 0 &&
		    l.at[i].number == l.at[i - 1].number)
			continue;
		send_closed(c, &l.at[i]);
		n++;
	}
	dispatch_list_release(&l);
	return n;
}

static bool must_send_closed(struct closing *c, const struct stored_dispatch *s)
{
	return str_eq(c->plan->sent_action, "closed") && (s->kind == RUNNER_GITHUB || s->kind == RUNNER_INFRA) &&
	       !db_has(c->d,
		   "SELECT 1 FROM dispatch WHERE change_id = ?1 AND target_key = ?2 AND accelerator <> ''"
		   " AND is_current = 1 AND " DISPATCH_IS_AT_WORK("") " LIMIT 1",
		   V_INT(s->change_id), V_TEXT(s->target_key)) &&
	       db_has(c->d,
		   "SELECT 1 FROM dispatch x JOIN outbox o ON o.key = 'dispatch:' || x.id"
		   " WHERE x.id = ?1 AND x.is_closed_told = 0 AND" GOT_IT,
		   V_TEXT(s->id));
}

#define OTHER_PULL_RECORD(F, S)                                                                                        \
	F(S, BOOL, is_draft, NULL, "is_draft", "")                                                                     \
	F(S, TEXTS, labels, NULL, "labels", "")
RECORD_LOCAL(other_pull, OTHER_PULL_RECORD)

/* Another open pull request with this head is not a draft, or still has the label. */
static bool dispatch_is_needed_elsewhere(struct closing *c, const struct stored_dispatch *s)
{
	bool is_about_label = str_eq(c->plan->original_action, "unlabeled"), is_needed = false;
	struct rows *r = db_rows(c->d,
	    RECORD_QUERY(OTHER_PULL_RECORD, "FROM pull WHERE change_id = ?1 AND state = 'open' AND number <> ?2"),
	    V_INT(s->change_id), V_INT(c->plan->pull.number));
	struct other_pull pull;

	while (rows_next(r)) {
		record_read(r, &other_pull_record, &pull);
		is_needed |= is_about_label ? pull_has_label(&(struct pull_info){.labels = pull.labels}, s->accelerator)
					    : !pull.is_draft;
		record_release(&other_pull_record, &pull);
	}
	return is_needed;
}

static bool dispatch_is_needed(struct closing *c, const struct stored_dispatch *s)
{
	for (size_t i = 0; i < c->plan->n_wants; i++)
		if (strcmp(c->plan->wants[i].accelerator, s->accelerator) == 0)
			return true;
	if (c->plan->drops && strv_contains((const char *const *)c->plan->drops, s->accelerator))
		return dispatch_is_needed_elsewhere(c, s);
	return db_has(c->d, "SELECT 1 FROM pull WHERE change_id = ?1 AND state = 'open' AND number <> ?2 LIMIT 1",
	    V_INT(s->change_id), V_INT(c->plan->pull.number));
}

void closing_note_needed(struct closing *c, int64_t change_id)
{
	struct dispatch_list l = change_dispatches(c->d->view, change_id);

	for (size_t i = 0; i < l.n; i++) {
		const struct stored_dispatch *s = &l.at[i];

		if (db_exec_count(c->d,
			"UPDATE dispatch SET is_wanted = ?4 WHERE id = ?1 AND accelerator = ?2"
			" AND runner = ?3 AND is_wanted <> ?4",
			V_TEXT(s->id), V_TEXT(s->accelerator), V_TEXT(s->runner), V_INT(dispatch_is_needed(c, s))) > 0)
			cells_moved(c->d, change_id, s->accelerator, CELLS_CHANGE_SETTLED, c->now_ms);
	}
	dispatch_list_release(&l);
}

int closing_drop(struct closing *c, int64_t change_id)
{
	struct dispatch_list l = change_dispatches(c->d->view, change_id);
	int n = 0;

	for (size_t i = 0; i < l.n; i++) {
		struct stored_dispatch *s = &l.at[i];

		if (!strv_contains((const char *const *)c->plan->drops, s->accelerator) ||
		    dispatch_is_needed_elsewhere(c, s))
			continue;
		if (!dispatch_is_unfinished(s->state) && s->state != DISPATCH_EXPIRED)
			continue;
		if (dispatch_end(c->d, s, DISPATCH_CANCELLED, c->now_ms))
			cells_moved(c->d, change_id, s->accelerator, CELLS_WITHDRAWN, c->now_ms);
		if (must_send_closed(c, s)) {
			send_closed(c, s);
			n++;
		}
	}
	dispatch_list_release(&l);
	return n;
}

/* ---- commands ---- */

enum { SHA_MIN_CHARS = 7, SHA_CHARS = 40 };

/* The head that a comment means when it names none: the last one before the comment. GitHub's times have whole seconds, so a
 * head of the same second may be newer than the comment and does not count, unless the pull request never had another. */
static int64_t head_as_of(const struct view *d, const struct repository_key *key, int64_t number, int64_t comment_ms)
{
	int64_t since = db_int(d, 0,
	    "SELECT MAX(since_ms) FROM pull_head WHERE repository_key = ?1 AND number = ?2 AND since_ms < ?3",
	    V_TEXT(key->text), V_INT(number), V_INT(comment_ms));
	struct rows *r;
	int64_t id = 0, n = 0;

	if (!since && db_int(d, 0, "SELECT COUNT(*) FROM pull_head WHERE repository_key = ?1 AND number = ?2",
			  V_TEXT(key->text), V_INT(number)) == 1)
		since = comment_ms;
	r = db_rows(d, "SELECT change_id FROM pull_head WHERE repository_key = ?1 AND number = ?2 AND since_ms = ?3",
	    V_TEXT(key->text), V_INT(number), V_INT(since));
	for (; rows_next(r); n++)
		id = rows_key_number(r);
	return n == 1 ? id : 0; /* two in one second: it is not known which one was meant */
}

#define NAMED_HEAD_RECORD(F, S)                                                                                        \
	F(S, ID, change_id, NULL, "c.id", "")                                                                          \
	F(S, TIME, since_ms, NULL, "MIN(h.since_ms)", "")
RECORD_LOCAL(named_head, NAMED_HEAD_RECORD)

/* A head of this pull request by its SHA, or by a prefix that fits only one of them. A commit with a chosen prefix is easy to
 * make, so a prefix means only a head that was there when the comment was written; the whole SHA means that commit at any
 * time. */
static int64_t head_named(
    const struct view *d, const struct repository_key *key, const struct comment_place *at, const char *sha)
{
	const size_t n = strlen(sha);
	struct rows *r;
	struct named_head head = {0};
	bool is_unique = true;

	if (n < SHA_MIN_CHARS)
		return 0;
	r = db_rows(d,
	    RECORD_QUERY(NAMED_HEAD_RECORD, "FROM pull_head h JOIN change c ON c.id = h.change_id"
					    " WHERE h.repository_key = ?1 AND h.number = ?2"
					    " AND substr(c.head_sha, 1, length(?3)) = lower(?3) GROUP BY c.id"),
	    V_TEXT(key->text), V_INT(at->number), V_TEXT(sha));
	while (rows_next(r)) {
		is_unique = head.change_id == 0;
		record_read(r, &named_head_record, &head);
	}
	return is_unique && (n == SHA_CHARS || head.since_ms <= at->comment_ms) ? head.change_id : 0;
}

int change_release(struct txn *d, const struct comment_place *at, const char *sha)
{
	struct repository_key key = repository_key(at->repository);
	int64_t id = sha ? head_named(d->view, &key, at, sha) : head_as_of(d->view, &key, at->number, at->comment_ms);
	struct dispatch_list held = {0};
	struct starts starts = {0};
	int n;

	/* Held dispatches, and declined ones while an open pull request has that head. */
	if (id)
		held = DISPATCHES_WHERE(d,
		    "change_id = ?1 AND is_held_for_good = 0 AND (state = 'held' OR (ended_how = ?2"
		    "  AND EXISTS (SELECT 1 FROM pull WHERE change_id = ?1 AND state = 'open')"
		    "  AND NOT EXISTS (SELECT 1 FROM dispatch x WHERE x.change_id = ?1"
		    "   AND x.accelerator = dispatch.accelerator AND x.runner = dispatch.runner"
		    "   AND (x.round > dispatch.round OR (x.round = dispatch.round AND x.created_ms > "
		    "dispatch.created_ms)))))"
		    " ORDER BY accelerator, runner, round",
		    V_INT(id), V_TEXT(ended_how_name(ENDED_DECLINED)));
	n = (int)held.n;
	for (size_t i = 0; i < held.n; i++) {
		struct stored_dispatch row = stored_dispatch_copy(&held.at[i]);

		row.round += row.state == DISPATCH_CANCELLED;
		row.state = DISPATCH_QUEUED;
		row.finished_ms = 0;
		FREE_AND_NULL(row.last_error);
		FREE_AND_NULL(row.ended_by);
		row.ended_how = ENDED_OTHERWISE;
		starts_add(&starts, row, &held.at[i]);
	}
	starts_run(d, &starts, at->now_ms);
	starts_release(&starts);
	dispatch_list_release(&held);
	if (n)
		db_exec(
		    d, "UPDATE change SET is_released = 1, active_ms = ?2 WHERE id = ?1", V_INT(id), V_INT(at->now_ms));
	return n;
}

/* ---- ok-to-test cancel, and cancel ---- */

/* A held dispatch, or a released one that certainly was not sent: no machine has claimed it, and no request was tried. */
#define IS_UNSENT                                                                                                      \
	"(state = 'held' OR (state = 'queued' AND held_reason IS NOT NULL"                                             \
	"  AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.key = 'dispatch:' || dispatch.id"                            \
	"   AND (o.n_attempts > 0 OR o.state = 'sending'))))"

/* The heads that the writer of the comment may have seen. GitHub's times have whole seconds, so heads of the same second
 * count, and so does the only head even if it became known after the comment. */
#define HEADS_SEEN                                                                                                     \
	"SELECT h.change_id FROM pull_head h WHERE h.repository_key = ?1 AND h.number = ?2"                            \
	" AND (h.since_ms <= ?3 OR (SELECT COUNT(*) FROM pull_head x"                                                  \
	"  WHERE x.repository_key = ?1 AND x.number = ?2) = 1)"

bool change_decline(struct txn *d, const struct comment_place *at, const char *by, int *ret_n)
{
	struct repository_key key = repository_key(at->repository);
	struct dispatch_list l = DISPATCHES_WHERE(d,
	    "change_id IN (" HEADS_SEEN ") AND (is_current = 1 OR state = 'held') AND is_held_for_good = 0"
	    " AND " IS_UNSENT " ORDER BY accelerator, runner, change_id, round",
	    V_TEXT(key.text), V_INT(at->number), V_INT(at->comment_ms));
	int64_t *heads;
	size_t n_heads;

	*ret_n = 0;
	for (size_t i = 0; i < l.n; i++) {
		if (!dispatch_end_by(d, &l.at[i], ENDED_DECLINED, by, at->now_ms))
			continue;
		request_drop(d, &l.at[i], at->now_ms);
		cells_moved(d, l.at[i].change_id, l.at[i].accelerator, CELLS_CANCELLED, at->now_ms);
		++*ret_n;
	}
	dispatch_list_release(&l);
	heads = rows_key_numbers(
	    db_rows(d, "SELECT id FROM change WHERE is_released = 1 AND id IN (" HEADS_SEEN ") ORDER BY id",
		V_TEXT(key.text), V_INT(at->number), V_INT(at->comment_ms)),
	    &n_heads);
	for (size_t i = 0; i < n_heads; i++)
		db_exec(d, "UPDATE change SET is_released = 0, active_ms = ?2 WHERE id = ?1", V_INT(heads[i]),
		    V_INT(at->now_ms));
	for (size_t i = 0; i < n_heads; i++)
		cells_moved(d, heads[i], NULL, CELLS_CHANGE_SETTLED, at->now_ms);
	free(heads);
	return *ret_n > 0 || n_heads > 0;
}

int change_call_off(struct txn *d, const struct comment_place *at, const char *by)
{
	int64_t change_id = pull_find(d->view, at->repository, at->number).change_id;
	struct plan plan = {
	    .repository = (char *)at->repository,
	    .pull.number = at->number,
	    .event_ms = at->comment_ms,
	    .event_type = "pull_request",
	    .sent_action = "closed",
	    .original_action = (char *)"cancel",
	};
	struct closing closing = {d, &plan, NULL, at->now_ms};
	struct dispatch_list l;
	int n;

	if (!change_id)
		return 0;
	l = change_dispatches(d->view, change_id);
	n = experiments_call_off(d, change_id, NULL, by, at->now_ms);
	for (size_t i = 0; i < l.n; i++) {
		struct stored_dispatch *s = &l.at[i];

		if (!s->accelerator[0] || s->state == DISPATCH_HELD || !dispatch_is_unfinished(s->state) ||
		    !dispatch_end_by(d, s, ENDED_CANCELLED, by, at->now_ms))
			continue;
		n++;
		request_drop(d, s, at->now_ms);
		cells_moved(d, change_id, s->accelerator, CELLS_CANCELLED, at->now_ms);
		if (must_send_closed(&closing, s))
			send_closed(&closing, s);
	}
	dispatch_list_release(&l);
	return n;
}
