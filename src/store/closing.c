#include "store/closing.h"

#include "base/alloc.h"
#include "base/id.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"
#include "model/trigger.h"
#include "store/cells_moved.h"
#include "store/delivery_row.h"
#include "store/experiments.h"
#include "store/key.h"
#include "store/plan_apply.h"
#include "store/requests.h"
#include "store/stored_change.h"

/* Requests that arrived, or may have: not those that are known to have been refused. */
#define GOT_IT " (o.state = 'sent' OR (o.n_attempts > 0 AND o.state <> 'dead'))"

/* No webhook came that could be forwarded: what is sent now is what was sent before, under an id
 * of its own, so that whoever reports for it is not taken for a report of the dispatch. */
static void copy_body(struct closing *c, const struct stored_dispatch *s, char guid[UUID_BYTES])
{
	uuid_new(guid);
	if (!delivery_copy(c->d, s->delivery_guid, guid, c->now_ms))
		snprintf(guid, UUID_BYTES, "%s", s->delivery_guid);
}

/* Vendors know a run by the PR whose body came with it, which is another one where two share a head.
 * If that one is open with another head by now, its newer run must not end: then only what GitHub
 * said of the closing PR itself is forwarded. 0: nothing can be told. */
static int64_t number_to_tell(struct closing *c, const struct stored_dispatch *s)
{
	bool has_moved_on = db_has(c->d,
	    "SELECT 1 FROM pull WHERE repository_key = ?1 AND number = ?2 AND state = 'open'"
	    " AND change_id <> ?3",
	    V_TEXT(repository_key(c->plan->repository).text), V_INT(s->number),
	    V_INT(s->change_id));

	if (!has_moved_on)
		return s->number;
	return c->guid ? c->plan->pull.number : 0;
}

static void tell(struct closing *c, const struct stored_dispatch *s)
{
	const struct plan *p = c->plan;
	int64_t number = number_to_tell(c, s);
	bool is_forwarded = c->guid && number == p->pull.number;
	char guid[UUID_BYTES];
	struct closed_request q = {
	    .target = s->target,
	    .target_key = s->target_key,
	    .dispatch_id = s->id,
	    .repository = p->repository,
	    .number = number,
	    .change_id = s->change_id,
	    .event_ms = p->event_ms ? p->event_ms : c->now_ms,
	    .delivery_guid = is_forwarded ? c->guid : guid,
	    .event_type = p->event_type ? p->event_type : "",
	    .original_action = p->original_action ? p->original_action : "",
	};

	if (!number)
		return;
	if (!is_forwarded)
		copy_body(c, s, guid);
	request_put_closed(c->d, &q, c->now_ms);
	/* The other heads of this PR are told with it, but not one that another PR still has. */
	/* By heads, of which a PR has few (+: not by the target, which has years of them). */
	db_exec(c->d,
	    "UPDATE dispatch SET is_closed_told = 1 WHERE +target_key = ?1 AND change_id IN"
	    " (SELECT change_id FROM pull_head WHERE repository_key = ?2 AND number = ?3)"
	    " AND (change_id = ?4 OR NOT EXISTS (SELECT 1 FROM pull x"
	    "  WHERE x.change_id = dispatch.change_id AND x.state = 'open'))",
	    V_TEXT(s->target_key), V_TEXT(repository_key(p->repository).text), V_INT(number),
	    V_INT(s->change_id));
}

/* Newest first for each target. A head that another open PR has as well goes on. */
static struct dispatch_list untold(struct closing *c)
{
	return dispatch_list_take(db_rows(c->d,
	    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE is_closed_told = 0"
	    " AND kind IN ('github', 'infra') AND change_id IN"
	    "  (SELECT change_id FROM pull_head WHERE repository_key = ?1 AND number = ?2)"
	    " AND NOT EXISTS (SELECT 1 FROM pull p"
	    "  WHERE p.change_id = dispatch.change_id AND p.state = 'open')"
	    " AND EXISTS (SELECT 1 FROM outbox o WHERE o.key = 'dispatch:' || dispatch.id"
	    "  AND" GOT_IT ") ORDER BY target_key, number, created_ms DESC, id",
	    V_TEXT(repository_key(c->plan->repository).text), V_INT(c->plan->pull.number)));
}

int closing_tell(struct closing *c)
{
	struct dispatch_list l = untold(c);
	int n = 0;

	for (size_t i = 0; i < l.n; i++) {
		if (i && strcmp(l.at[i].target_key, l.at[i - 1].target_key) == 0 &&
		    l.at[i].number == l.at[i - 1].number)
			continue;
		tell(c, &l.at[i]);
		n++;
	}
	dispatch_list_release(&l);
	return n;
}

static bool must_hear(struct closing *c, const struct stored_dispatch *s)
{
	if (strcmp(c->plan->sent_action ? c->plan->sent_action : "", "closed") != 0)
		return false;
	if (s->kind != RUNNER_GITHUB && s->kind != RUNNER_INFRA)
		return false;
	if (db_has(c->d,
		"SELECT 1 FROM dispatch WHERE change_id = ?1 AND target_key = ?2"
		" AND accelerator <> '' AND is_current = 1 AND " DISPATCH_IS_AT_WORK " LIMIT 1",
		V_INT(s->change_id), V_TEXT(s->target_key)))
		return false;
	return db_has(c->d,
	    "SELECT 1 FROM dispatch x JOIN outbox o ON o.key = 'dispatch:' || x.id"
	    " WHERE x.id = ?1 AND x.is_closed_told = 0 AND" GOT_IT,
	    V_TEXT(s->id));
}

static bool has_label(const char *labels, const char *accelerator)
{
	struct pull_info pull = {.labels = strv_copy(NULL)};
	json_t *list = NULL, *label;
	bool result;
	size_t i;

	if (json_parse(labels, strlen(labels), &list, NULL) == 0)
		json_array_foreach(list, i, label) strv_add(&pull.labels, json_string_value(label));
	json_decref(list);
	result = pull_has_label(&pull, accelerator);
	strv_free(pull.labels);
	return result;
}

/* Another open PR that has this head did not become a draft, or has the label still. */
static bool is_wanted_elsewhere(struct closing *c, const struct stored_dispatch *s)
{
	bool is_about_label = str_eq(c->plan->original_action, "unlabeled"), is_wanted = false;
	struct rows *r = db_rows(c->d,
	    "SELECT is_draft, labels FROM pull WHERE change_id = ?1 AND state = 'open'"
	    " AND number <> ?2",
	    V_INT(s->change_id), V_INT(c->plan->pull.number));

	while (rows_next(r))
		is_wanted |=
		    is_about_label ? has_label(rows_text(r, 1), s->accelerator) : !rows_int(r, 0);
	return is_wanted;
}

static bool is_wanted(struct closing *c, const struct stored_dispatch *s)
{
	for (size_t i = 0; i < c->plan->n_wants; i++)
		if (strcmp(c->plan->wants[i].accelerator, s->accelerator) == 0)
			return true;
	if (c->plan->drops && strv_contains((const char *const *)c->plan->drops, s->accelerator))
		return is_wanted_elsewhere(c, s);
	return db_has(c->d,
	    "SELECT 1 FROM pull WHERE change_id = ?1 AND state = 'open' AND number <> ?2 LIMIT 1",
	    V_INT(s->change_id), V_INT(c->plan->pull.number));
}

void closing_note_wanted(struct closing *c, int64_t change_id)
{
	struct dispatch_list l = change_dispatches(c->d, change_id);

	for (size_t i = 0; i < l.n; i++) {
		const struct stored_dispatch *s = &l.at[i];

		if (db_exec(c->d,
			"UPDATE dispatch SET is_wanted = ?4 WHERE id = ?1 AND accelerator = ?2"
			" AND runner = ?3 AND is_wanted <> ?4",
			V_TEXT(s->id), V_TEXT(s->accelerator), V_TEXT(s->runner),
			V_INT(is_wanted(c, s))) > 0)
			cells_moved(
			    c->d, change_id, s->accelerator, CELLS_CHANGE_SETTLED, c->now_ms);
	}
	dispatch_list_release(&l);
}

int closing_drop(struct closing *c, int64_t change_id)
{
	struct dispatch_list l = change_dispatches(c->d, change_id);
	int n = 0;

	for (size_t i = 0; i < l.n; i++) {
		struct stored_dispatch *s = &l.at[i];

		if (!strv_contains((const char *const *)c->plan->drops, s->accelerator) ||
		    is_wanted_elsewhere(c, s))
			continue;
		if (!dispatch_is_unfinished(s->state) && s->state != DISPATCH_EXPIRED)
			continue;
		if (dispatch_end(c->d, s, DISPATCH_CANCELLED, c->now_ms))
			cells_moved(c->d, change_id, s->accelerator, CELLS_WITHDRAWN, c->now_ms);
		if (must_hear(c, s)) {
			tell(c, s);
			n++;
		}
	}
	dispatch_list_release(&l);
	return n;
}

int closing_call_off(struct closing *c, int64_t change_id, const char *why)
{
	struct dispatch_list l = change_dispatches(c->d, change_id);
	int n = experiments_call_off(c->d, change_id, NULL, why, c->now_ms);

	for (size_t i = 0; i < l.n; i++) {
		struct stored_dispatch *s = &l.at[i];

		if (!s->accelerator[0] || s->state == DISPATCH_HELD ||
		    !dispatch_is_unfinished(s->state) ||
		    !dispatch_enter(c->d, s, DISPATCH_CANCELLED, why, c->now_ms))
			continue;
		n++;
		request_drop(c->d, s, c->now_ms);
		cells_moved(c->d, change_id, s->accelerator, CELLS_CANCELLED, c->now_ms);
		if (must_hear(c, s))
			tell(c, s);
	}
	dispatch_list_release(&l);
	return n;
}
