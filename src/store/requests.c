#include "store/requests.h"

#include "db/key.h"
#include "experiments/experiments.h"
#include "store/deliveries.h"

/* Requests to one target about one pull request stay in order. A dispatch without a pull request waits for nothing, and its
 * cancel waits for it. */
static void put_request(struct txn *d, const struct stored_dispatch *s, enum outbox_kind kind, const char *key_prefix,
    struct outbox_offer *offer, int64_t now_ms)
{
	char *key = xasprintf("%s:%s", key_prefix, s->id), *repository_key = NULL, *lane;
	struct outbox_request q = {
	    .kind = kind,
	    .key = key,
	    .target = s->target,
	    .target_key = s->target_key,
	    .number = s->number,
	    .change_id = s->change_id,
	    .dispatch_id = s->id,
	    .runner = s->runner,
	    .delivery_guid = s->delivery_guid,
	    .event_type = s->event_type,
	    .sent_action = s->sent_action,
	    .original_action = s->original_action,
	    .offer = s->not_before_ms > now_ms ? NULL : offer,
	};

	if (s->number)
		repository_key = db_text(d, "SELECT repository_key FROM change WHERE id = ?1", V_INT(s->change_id));
	lane = s->number
		   ? xasprintf("%s %s#%lld", s->target_key, repository_key ? repository_key : "", (long long)s->number)
		   : xasprintf("dispatch:%s", s->id);
	q.lane = lane;
	outbox_insert(d, &q, s->not_before_ms > now_ms ? s->not_before_ms : now_ms);
	free(repository_key);
	free(lane);
	free(key);
}

void request_put(struct txn *d, const struct stored_dispatch *s, struct outbox_offer *offer, int64_t now_ms)
{
	if (s->kind != RUNNER_PULL)
		put_request(d, s, s->kind == RUNNER_WEBHOOK ? OUTBOX_WEBHOOK_DISPATCH : OUTBOX_GITHUB_DISPATCH,
		    "dispatch", offer, now_ms);
}

static struct outbox_place find_request(const struct view *d, const char *dispatch_id)
{
	char *key = xasprintf("dispatch:%s", dispatch_id);
	struct outbox_place at = outbox_find(d, key);

	free(key);
	return at;
}

void request_drop(struct txn *d, const struct stored_dispatch *s, int64_t now_ms)
{
	struct stored_dispatch closed = *s;
	struct outbox_place at;
	char guid[UUID_BYTES];
	bool may_have_it;

	if (db_has(d, "SELECT 1 FROM dispatch WHERE id = ?1 AND " DISPATCH_IS_AT_WORK("") " LIMIT 1", V_TEXT(s->id)))
		return;
	at = find_request(d->view, s->id);
	may_have_it = at.id && at.n_attempts > 0 && at.state != OUTBOX_IS_DEAD && at.state != OUTBOX_IS_CANCELLED;
	if (outbox_is_unsent(&at)) {
		at.is_dropped = true;
		outbox_enter(d, &at, at.state == OUTBOX_IS_SENDING ? at.state : OUTBOX_IS_CANCELLED, NULL);
	}
	if (may_have_it && s->kind == RUNNER_WEBHOOK) {
		put_request(d, s, OUTBOX_WEBHOOK_CANCEL, "cancel", NULL, now_ms);
	} else if (may_have_it && s->kind == RUNNER_GITHUB && strcmp(s->event_type, EXPERIMENT_EVENT) == 0) {
		/* A repository gets `closed` at the end of an experiment, as for a pull request, but with a delivery of its
		 * own, so that a report of the workflow that this starts is not taken for a report of the experiment. */
		uuid_new(guid);
		if (delivery_copy(d, s->delivery_guid, guid, now_ms))
			closed.delivery_guid = guid;
		closed.sent_action = (char *)"closed";
		closed.original_action = (char *)"cancel";
		put_request(d, &closed, OUTBOX_GITHUB_CLOSED, "cancel", NULL, now_ms);
	}
	db_notify(d, STORE_OUTBOX); /* its lane may go on */
}

void request_is_proved(struct txn *d, const char *dispatch_id, int64_t now_ms)
{
	struct outbox_place at = find_request(d->view, dispatch_id);
	/* The infra repository itself does not report: when it has the request, its dispatch is done. */
	struct dispatch_list l =
	    DISPATCHES_WHERE(d, "id = ?1 AND accelerator = '' AND " DISPATCH_IS_AT_WORK(""), V_TEXT(dispatch_id));

	for (size_t i = 0; i < l.n; i++) {
		dispatch_note_sent(d, &l.at[i], now_ms);
		dispatch_enter(d, &l.at[i], DISPATCH_DONE, NULL, now_ms);
	}
	dispatch_list_release(&l);
	if (at.n_attempts == 0 || !outbox_is_unsent(&at))
		return;
	at.is_dropped = at.state == OUTBOX_IS_SENDING;
	outbox_enter(d, &at, at.is_dropped ? OUTBOX_IS_SENDING : OUTBOX_IS_SENT, NULL);
	db_notify(d, STORE_OUTBOX);
}

void request_put_closed(
    struct txn *d, struct outbox_request q, const char *repository, int64_t event_ms, int64_t now_ms)
{
	struct repository_key upstream = repository_key(repository);
	char *lane = xasprintf("%s %s#%lld", q.target_key, upstream.text, (long long)q.number);
	char *key =
	    xasprintf("closed:%s:%s#%lld:%lld", q.target_key, upstream.text, (long long)q.number, (long long)event_ms);

	q.kind = OUTBOX_GITHUB_CLOSED;
	q.key = key;
	q.lane = lane;
	q.sent_action = "closed";
	outbox_insert(d, &q, now_ms);
	free(lane);
	free(key);
}

/* ---- comments and check runs ---- */

/* Makes the row with this key due at once, except while its text is being written (the generation shows the request to the
 * writer), or after failed attempts, whose pause continues. q has no lane: the row has a lane of its own. */
static void request_update(struct txn *d, struct outbox_request q, enum comment_request kind, int64_t now_ms)
{
	struct outbox_place at = outbox_find(d->view, q.key);

	if (at.id) {
		bool has_ended = at.state == OUTBOX_IS_SENT || at.state == OUTBOX_IS_DEAD;
		bool is_kept = at.state == OUTBOX_IS_SENDING || (at.state == OUTBOX_IS_WAITING && at.n_attempts > 0);

		at.generation++;
		if (has_ended) {
			at.first_ms = now_ms;
			at.n_attempts = 0;
		}
		if (has_ended || (at.n_attempts == 0 && at.next_ms > now_ms))
			at.next_ms = now_ms;
		outbox_enter(d, &at, is_kept ? at.state : OUTBOX_IS_DUE, NULL);
		db_notify(d, STORE_COMMENTS);
	} else if (kind == COMMENT_CREATE) {
		q.lane = q.key;
		outbox_insert(d, &q, now_ms);
	}
}

void comment_request_pull(
    struct txn *d, const char *repository, int64_t number, enum comment_request kind, int64_t now_ms)
{
	static const enum outbox_kind kinds[] = {OUTBOX_COMMENT, OUTBOX_CHECKS};
	struct repository_key upstream = repository_key(repository);

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		char *key = xasprintf("%s:%s#%lld", outbox_kind_name(kinds[i]), upstream.text, (long long)number);
		struct outbox_request q = {
		    .kind = kinds[i], .key = key, .target = repository, .target_key = upstream.text, .number = number};

		request_update(d, q, kind, now_ms);
		free(key);
	}
	db_notify(d, STORE_CHANGES);
}

#define COMMENTED_PULL_RECORD(F, S)                                                                                    \
	F(S, BOOL, needs_merge_base, NULL, "c.kind = 'pull_request' AND c.merge_base_sha IS NULL", "")                 \
	F(S, BORROWED, repository, NULL, "p.repository", "")                                                           \
	F(S, ID, number, NULL, "p.number", "0: the change has none.")
RECORD_LOCAL(commented_pull, COMMENTED_PULL_RECORD)

void comment_request(struct txn *d, int64_t change_id, enum comment_request kind, int64_t now_ms)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(COMMENTED_PULL_RECORD, "FROM change c LEFT JOIN pull p ON p.change_id = c.id WHERE c.id = ?1"
						" ORDER BY p.number"),
	    V_INT(change_id));
	struct commented_pull pull = {.number = 0};

	db_notify_change(d, change_id);
	while (rows_next(r)) {
		record_read(r, &commented_pull_record, &pull);
		if (pull.number)
			comment_request_pull(d, pull.repository, pull.number, kind, now_ms);
	}
	/* A comment names the merge base, also when no cell is red; evidence/ gets it from GitHub. */
	if (kind == COMMENT_CREATE && pull.needs_merge_base &&
	    db_exec_count(d,
		"INSERT INTO attribution_due (change_id, since_ms, next_ms, n_tries, generation)"
		" VALUES (?1, ?2, ?2, 0, 1) ON CONFLICT (change_id) DO NOTHING",
		V_INT(change_id), V_INT(now_ms)))
		db_notify(d, STORE_ATTRIBUTION);
}

/* ---- notices to a vendor about its red episodes ---- */

void red_issue_request(struct txn *d, int64_t episode, const char *accelerator, int64_t now_ms)
{
	char *key = xasprintf("red:%lld", (long long)episode);
	struct outbox_request q = {
	    .kind = OUTBOX_RED_ISSUE,
	    .key = key,
	    .target = accelerator,
	    .target_key = accelerator,
	    .number = episode,
	    .accelerator = accelerator,
	};

	request_update(d, q, COMMENT_CREATE, now_ms);
	free(key);
}

void request_put_notice(struct txn *d, const struct notice_request *n, int64_t now_ms)
{
	char *key = xasprintf("notice:%lld:%s", (long long)n->episode, n->event);
	char *lane = xasprintf("notice:%lld", (long long)n->episode);
	char *id = xasprintf("red-%lld-%s", (long long)n->episode, n->event);

	outbox_insert(d,
	    &(struct outbox_request){.kind = OUTBOX_WEBHOOK_NOTICE,
		.key = key,
		.lane = lane,
		.target = n->url,
		.target_key = n->url,
		.dispatch_id = id,
		.runner = n->runner,
		.event_type = n->event,
		.accelerator = n->accelerator,
		.text = n->text},
	    now_ms);
	free(id);
	free(lane);
	free(key);
}
