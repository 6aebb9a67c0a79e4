#include "store/requests.h"

#include <string.h>

#include "base/alloc.h"
#include "base/id.h"
#include "store/delivery_row.h"
#include "store/experiments.h"
#include "store/key.h"
#include "store/outbox.h"

struct request {
	enum outbox_kind kind;
	const char *key, *lane;
	const char *target, *target_key;
	int64_t number, change_id;
	const char *dispatch_id, *runner;
	const char *delivery_guid, *event_type, *sent_action, *original_action;
	const char *accelerator, *text; /* NULL: none */
};

static void insert(struct db *d, const struct request *q, int64_t now_ms)
{
	db_exec(d,
	    "INSERT INTO outbox (kind, key, lane, target, target_key, number, change_id,"
	    " dispatch_id, runner, delivery_guid, event_type, sent_action, original_action, state,"
	    " n_attempts, first_ms, next_ms, generation, is_uncertain, is_dropped, accelerator, "
	    "text)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 'due', 0, ?14, ?14,"
	    " 1, 0, 0, ?15, ?16) ON CONFLICT (key) DO NOTHING",
	    V_TEXT(outbox_kind_name(q->kind)), V_TEXT(q->key), V_TEXT(q->lane), V_TEXT(q->target),
	    V_TEXT(q->target_key), V_INT(q->number), V_INT_OR_NULL(q->change_id),
	    V_TEXT(q->dispatch_id), V_TEXT(q->runner), V_TEXT(q->delivery_guid),
	    V_TEXT(q->event_type), V_TEXT(q->sent_action), V_TEXT(q->original_action),
	    V_INT(now_ms), V_TEXT(q->accelerator), V_TEXT(q->text));
	db_tell(d, STORE_OUTBOX);
}

/* What goes to one target about one PR stays in order; a dispatch without a PR waits for nothing, and its cancel
 * waits for it. */
static char *lane_of(struct db *d, const struct stored_dispatch *s)
{
	char *repository_key, *lane;

	if (!s->number)
		return xasprintf("dispatch:%s", s->id);
	repository_key =
	    db_text(d, "SELECT repository_key FROM change WHERE id = ?1", V_INT(s->change_id));
	lane = xasprintf("%s %s#%lld", s->target_key, repository_key ? repository_key : "",
	    (long long)s->number);
	free(repository_key);
	return lane;
}

static void put(struct db *d, const struct stored_dispatch *s, enum outbox_kind kind,
    const char *key_prefix, int64_t now_ms)
{
	char *key = xasprintf("%s:%s", key_prefix, s->id);
	char *lane = lane_of(d, s);
	struct request q = {
	    .kind = kind,
	    .key = key,
	    .lane = lane,
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
	};

	insert(d, &q, s->not_before_ms > now_ms ? s->not_before_ms : now_ms);
	free(lane);
	free(key);
}

void request_put(struct db *d, const struct stored_dispatch *s, int64_t now_ms)
{
	switch (s->kind) {
	case RUNNER_GITHUB:
	case RUNNER_INFRA:
		put(d, s, OUTBOX_GITHUB_DISPATCH, "dispatch", now_ms);
		break;
	case RUNNER_WEBHOOK:
		put(d, s, OUTBOX_WEBHOOK_DISPATCH, "dispatch", now_ms);
		break;
	case RUNNER_PULL:
		break;
	}
}

/* A repository is told with `closed` that an experiment is over, as it is of pull requests, but under a delivery of
 * its own, so that what its workflow reports for that is not taken for a report of the experiment. */
static void put_experiment_closed(struct db *d, const struct stored_dispatch *s, int64_t now_ms)
{
	char guid[UUID_BYTES];
	struct stored_dispatch closed = *s;

	uuid_new(guid);
	if (delivery_copy(d, s->delivery_guid, guid, now_ms))
		closed.delivery_guid = guid;
	closed.sent_action = (char *)"closed";
	closed.original_action = (char *)"cancel";
	put(d, &closed, OUTBOX_GITHUB_CLOSED, "cancel", now_ms);
}

void request_drop(struct db *d, const struct stored_dispatch *s, int64_t now_ms)
{
	bool may_have_it;

	if (db_has(d, "SELECT 1 FROM dispatch WHERE id = ?1 AND " DISPATCH_IS_AT_WORK " LIMIT 1",
		V_TEXT(s->id)))
		return;
	may_have_it = db_has(d,
	    "SELECT 1 FROM outbox WHERE key = 'dispatch:' || ?1 AND n_attempts > 0"
	    " AND state NOT IN ('dead', 'cancelled')",
	    V_TEXT(s->id));
	db_exec(d,
	    "UPDATE outbox SET is_dropped = 1,"
	    " state = CASE state WHEN 'sending' THEN 'sending' ELSE 'cancelled' END"
	    " WHERE key = 'dispatch:' || ?1 AND state IN ('due', 'waiting', 'sending')",
	    V_TEXT(s->id));
	if (may_have_it && s->kind == RUNNER_WEBHOOK)
		put(d, s, OUTBOX_WEBHOOK_CANCEL, "cancel", now_ms);
	else if (may_have_it && s->kind == RUNNER_GITHUB &&
		 strcmp(s->event_type, EXPERIMENT_EVENT) == 0)
		put_experiment_closed(d, s, now_ms);
	db_tell(d, STORE_OUTBOX); /* its lane may go on */
}

/* The infra repository itself reports nothing: that it has the request is all there is to know. */
static void finish_infra(struct db *d, const char *dispatch_id, int64_t now_ms)
{
	struct dispatch_list l = dispatch_list_take(db_rows(d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE id = ?1 AND accelerator = ''"
	    " AND " DISPATCH_IS_AT_WORK,
	    V_TEXT(dispatch_id)));

	for (size_t i = 0; i < l.n; i++) {
		dispatch_note_sent(d, &l.at[i], now_ms);
		dispatch_enter(d, &l.at[i], DISPATCH_DONE, NULL, now_ms);
	}
	dispatch_list_release(&l);
}

void request_is_proved(struct db *d, const char *dispatch_id, int64_t now_ms)
{
	finish_infra(d, dispatch_id, now_ms);
	if (db_exec(d,
		"UPDATE outbox SET is_dropped = CASE state WHEN 'sending' THEN 1 ELSE 0 END,"
		" state = CASE state WHEN 'sending' THEN 'sending' ELSE 'sent' END"
		" WHERE key = 'dispatch:' || ?1 AND n_attempts > 0"
		" AND state IN ('due', 'waiting', 'sending')",
		V_TEXT(dispatch_id)))
		db_tell(d, STORE_OUTBOX);
}

void request_put_closed(struct db *d, const struct closed_request *c, int64_t now_ms)
{
	struct repository_key upstream = repository_key(c->repository);
	char *key = xasprintf("closed:%s:%s#%lld:%lld", c->target_key, upstream.text,
	    (long long)c->number, (long long)c->event_ms);
	char *lane = xasprintf("%s %s#%lld", c->target_key, upstream.text, (long long)c->number);
	struct request q = {
	    .kind = OUTBOX_GITHUB_CLOSED,
	    .key = key,
	    .lane = lane,
	    .target = c->target,
	    .target_key = c->target_key,
	    .number = c->number,
	    .change_id = c->change_id,
	    .dispatch_id = c->dispatch_id,
	    .runner = "",
	    .delivery_guid = c->delivery_guid,
	    .event_type = c->event_type,
	    .sent_action = "closed",
	    .original_action = c->original_action,
	};

	insert(d, &q, now_ms);
	free(lane);
	free(key);
}

/* ---- comments and check runs ---- */

/* A wish makes the row due at once, except while its text is being written (the generation tells
 * the writer) or while GitHub has asked for patience (attempts that failed). */
#define WISH_AGAIN                                                                                 \
	" generation = outbox.generation + 1,"                                                     \
	" next_ms = CASE WHEN outbox.state IN ('sent', 'dead') THEN ?2"                            \
	"  WHEN outbox.n_attempts > 0 OR outbox.next_ms < ?2 THEN outbox.next_ms ELSE ?2 END,"     \
	" first_ms = CASE WHEN outbox.state IN ('sent', 'dead') THEN ?2 ELSE outbox.first_ms END," \
	" n_attempts = CASE WHEN outbox.state IN ('sent', 'dead') THEN 0"                          \
	"  ELSE outbox.n_attempts END,"                                                            \
	" state = CASE WHEN outbox.state = 'sending' THEN 'sending'"                               \
	"  WHEN outbox.state = 'waiting' AND outbox.n_attempts > 0 THEN 'waiting' ELSE 'due' END"

struct wished {
	enum outbox_kind what;
	const char *key, *target, *target_key;
	int64_t number;
	const char *accelerator; /* NULL: none */
};

static void wish(struct db *d, const struct wished *w, enum wish_kind kind, int64_t now_ms)
{
	if (kind == WISH_FIRST)
		db_exec(d,
		    "INSERT INTO outbox (kind, key, lane, target, target_key, number, change_id,"
		    " dispatch_id, runner, delivery_guid, event_type, sent_action, original_action,"
		    " state, n_attempts, first_ms, next_ms, generation, is_uncertain, is_dropped,"
		    " accelerator)"
		    " VALUES (?6, ?1, ?1, ?3, ?4, ?5, NULL, '', '', '', '', '', '', 'due', 0,"
		    " ?2, ?2, 1, 0, 0, ?7) ON CONFLICT (key) DO UPDATE SET" WISH_AGAIN,
		    V_TEXT(w->key), V_INT(now_ms), V_TEXT(w->target), V_TEXT(w->target_key),
		    V_INT(w->number), V_TEXT(outbox_kind_name(w->what)), V_TEXT(w->accelerator));
	else
		db_exec(d, "UPDATE outbox SET" WISH_AGAIN " WHERE key = ?1", V_TEXT(w->key),
		    V_INT(now_ms));
}

static void wish_of_pull(struct db *d, enum outbox_kind what, const char *repository,
    int64_t number, enum wish_kind kind, int64_t now_ms)
{
	struct repository_key upstream = repository_key(repository);
	char *key =
	    xasprintf("%s:%s#%lld", outbox_kind_name(what), upstream.text, (long long)number);

	wish(d,
	    &(struct wished){.what = what,
		.key = key,
		.target = repository,
		.target_key = upstream.text,
		.number = number},
	    kind, now_ms);
	free(key);
}

void comment_wish_pull(
    struct db *d, const char *repository, int64_t number, enum wish_kind kind, int64_t now_ms)
{
	wish_of_pull(d, OUTBOX_COMMENT, repository, number, kind, now_ms);
	wish_of_pull(d, OUTBOX_CHECKS, repository, number, kind, now_ms);
	db_tell(d, STORE_OUTBOX | STORE_CHANGES);
}

/* A comment names the merge base; evidence/ asks for it, red or not. */
static void note_baseless(struct db *d, int64_t change_id, int64_t now_ms)
{
	if (db_exec(d,
		"INSERT INTO attribution_due (change_id, since_ms, next_ms, n_tries, generation)"
		" SELECT id, ?2, ?2, 0, 1 FROM change WHERE id = ?1 AND kind = 'pull_request'"
		" AND merge_base_sha IS NULL ON CONFLICT (change_id) DO NOTHING",
		V_INT(change_id), V_INT(now_ms)))
		db_tell(d, STORE_ATTRIBUTION);
}

void comment_wish(struct db *d, int64_t change_id, enum wish_kind kind, int64_t now_ms)
{
	struct rows *r = db_rows(
	    d, "SELECT repository, number FROM pull WHERE change_id = ?1", V_INT(change_id));

	db_tell_change(d, change_id);
	while (rows_next(r))
		comment_wish_pull(d, rows_text(r, 0), rows_int(r, 1), kind, now_ms);
	if (kind == WISH_FIRST)
		note_baseless(d, change_id, now_ms);
}

/* ---- what a vendor is told of its episodes ---- */

void red_issue_wish(struct db *d, int64_t episode, const char *accelerator, int64_t now_ms)
{
	char *key = xasprintf("red:%lld", (long long)episode);

	wish(d,
	    &(struct wished){.what = OUTBOX_RED_ISSUE,
		.key = key,
		.target = accelerator,
		.target_key = accelerator,
		.number = episode,
		.accelerator = accelerator},
	    WISH_FIRST, now_ms);
	db_tell(d, STORE_OUTBOX);
	free(key);
}

void request_put_notice(struct db *d, const struct notice_request *n, int64_t now_ms)
{
	char *key = xasprintf("notice:%lld:%s", (long long)n->episode, n->event);
	char *lane = xasprintf("notice:%lld", (long long)n->episode);
	char *id = xasprintf("red-%lld-%s", (long long)n->episode, n->event);

	insert(d,
	    &(struct request){.kind = OUTBOX_WEBHOOK_NOTICE,
		.key = key,
		.lane = lane,
		.target = n->url,
		.target_key = n->url,
		.dispatch_id = id,
		.runner = n->runner,
		.delivery_guid = "",
		.event_type = n->event,
		.sent_action = "",
		.original_action = "",
		.accelerator = n->accelerator,
		.text = n->text},
	    now_ms);
	free(id);
	free(lane);
	free(key);
}
