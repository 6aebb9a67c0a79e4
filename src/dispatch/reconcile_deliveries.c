/* Requests failed deliveries again.
 *
 * GitHub lists the App's deliveries newest first, a hundred on a page. Each attempt has an id of its own, so a GUID that
 * failed and later arrived has two entries. The walk ends at the newest entry of the last look. A look reads a limited
 * number of pages; if that cuts a walk short, the next look continues it after the new entries. The position is saved
 * only at the end, so a failed look is repeated completely. */

#include "dispatch/reconcile.h"

enum {
	PAGES_MAX = 30, /* a look */
	REQUESTS_MAX = 300,
	REQUESTS_EACH_MAX = 3,
	GUID_MAX_BYTES = 64,
};

static const char KEY[] = "reconcile.deliveries";
static const char GUID_CHARS[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";

static void finish_walk(struct reconciler *r)
{
	json_t *o = json_object();

	json_set_int(o, "seen", r->dl.newest_id);
	if (r->dl.older_cursor[0]) {
		json_set_str(o, "older_cursor", r->dl.older_cursor);
		json_set_int(o, "older_floor", r->dl.older_floor_id);
	}
	reconcile_save_setting(r, xstrdup(KEY), json_text(o), reconcile_part_done);
	json_decref(o);
}

static void request_delivery_page(struct reconciler *r);

/* Continues with the next page or the older walk, or ends. */
static void turn_page(struct reconciler *r)
{
	bool is_exhausted = r->dl.n_pages >= PAGES_MAX || r->dl.n_requested >= REQUESTS_MAX;
	bool is_at_end = r->dl.is_at_floor || !r->dl.next_cursor[0];

	json_decref(r->dl.page);
	r->dl.page = NULL;
	FREE_AND_NULL(r->dl.lost);
	FREE_AND_NULL(r->dl.known);
	r->dl.n_lost = 0;
	if (is_at_end && r->dl.is_older_walk)
		r->dl.older_cursor[0] = '\0';
	if (is_at_end && !r->dl.is_older_walk && r->dl.older_cursor[0] && !is_exhausted) {
		r->dl.is_older_walk = true;
		r->dl.floor_id = r->dl.older_floor_id;
		memcpy(r->dl.cursor, r->dl.older_cursor, sizeof(r->dl.cursor));
		request_delivery_page(r);
	} else if (is_at_end) {
		finish_walk(r);
	} else if (is_exhausted) {
		/* An older walk that was cut short now continues from here, to the same end. */
		if (!r->dl.is_older_walk && !r->dl.older_cursor[0])
			r->dl.older_floor_id = r->dl.floor_id;
		memcpy(r->dl.older_cursor, r->dl.next_cursor, sizeof(r->dl.older_cursor));
		finish_walk(r);
	} else {
		memcpy(r->dl.cursor, r->dl.next_cursor, sizeof(r->dl.cursor));
		request_delivery_page(r);
	}
}

static void next_lost(struct reconciler *r);

static void on_count_taken_back(struct store_op *op)
{
	struct reconciler *r = CONTAINER_OF(op, struct reconciler, op.count.op);

	if (reconcile_op_ended(r, "counting redeliveries", op->err, &op->why))
		reconcile_part_failed(r, "requesting a redelivery", r->dl.request_why.text);
}

static void on_redelivery_requested(struct github_call *call)
{
	struct reconciler *r = CONTAINER_OF(call, struct reconciler, op.call);
	const struct lost_delivery *lost = &r->dl.lost[r->dl.n_lost - 1];
	struct github_result result = call->result;
	bool is_too_late = result.err && result.is_final && result.err != ERR_AUTH;
	bool was_refused = result.err && (result.status >= 400 || !result.was_sent);

	github_call_release(call);
	if (was_refused && !is_too_late && !r->d->is_closing) {
		if (!reconcile_op_ended(r, "", 0, NULL))
			return;
		/* GitHub did not accept the request, so it does not count as an attempt for this delivery. */
		r->dl.request_why = result.why;
		r->op.count = (struct count_redelivery){
		    .op.done = on_count_taken_back,
		    .guid = lost->guid,
		    .is_taken_back = true,
		};
		reconcile_submitted(r, "counting redeliveries", store_count_redelivery(r->d->deps.store, &r->op.count));
		return;
	}
	if (!reconcile_op_ended(r, "requesting a redelivery", is_too_late ? 0 : result.err, &result.why))
		return;
	r->dl.n_requested++;
	r->d->counters.n_redeliveries_asked += !is_too_late;
	log_event(is_too_late ? LOG_WARN : LOG_INFO, is_too_late ? "redelivery_refused" : "redelivery_asked",
	    LOG_S("delivery", lost->guid), LOG_I("id", lost->id), LOG_S("error", result.why.text));
	r->dl.n_lost--;
	next_lost(r);
}

static void on_redelivery_counted(struct store_op *op)
{
	struct reconciler *r = CONTAINER_OF(op, struct reconciler, op.count.op);
	int n_before = r->op.count.n_before;

	if (!reconcile_op_ended(r, "counting redeliveries", op->err, &op->why))
		return;
	if (n_before >= REQUESTS_EACH_MAX) {
		r->dl.n_lost--;
		next_lost(r);
		return;
	}
	r->op.call = (struct github_call){.done = on_redelivery_requested};
	reconcile_goes_to_github(r);
	github_delivery_redeliver(r->d->deps.github, &r->op.call, r->dl.lost[r->dl.n_lost - 1].id);
}

/* A page lists the newest first. Requests the oldest first, so that a comment does not arrive before its pull request. */
static void next_lost(struct reconciler *r)
{
	for (; r->dl.n_lost > 0; r->dl.n_lost--) {
		const char *guid = r->dl.lost[r->dl.n_lost - 1].guid;

		if (!r->dl.known[r->dl.n_lost - 1] && !json_object_get(r->dl.settled, guid)) {
			json_object_set_new(r->dl.settled, guid, json_true());
			r->op.count = (struct count_redelivery){
			    .op.done = on_redelivery_counted,
			    .guid = guid,
			    .now_ms = clock_wall_ms(),
			};
			reconcile_submitted(
			    r, "counting redeliveries", store_count_redelivery(r->d->deps.store, &r->op.count));
			return;
		}
	}
	turn_page(r);
}

static void on_guids_known(struct store_query *q)
{
	struct reconciler *r = CONTAINER_OF(q, struct reconciler, op.known_guids.q);

	free((void *)r->op.known_guids.guids);
	if (reconcile_op_ended(r, "looking up deliveries", q->err, &q->why))
		next_lost(r);
}

/* Collects the failed ones down to the floor, each by its latest attempt. */
static void note_lost(struct reconciler *r)
{
	json_t *entry;
	size_t i, k;

	r->dl.lost = xcalloc(json_array_size(r->dl.page) + 1, sizeof(*r->dl.lost));
	json_array_foreach(r->dl.page, i, entry)
	{
		int64_t id = json_get_int(entry, "id", 0), status = json_get_int(entry, "status_code", 0), at_ms;
		const char *guid = json_get_str(entry, "guid"), *at = json_get_str(entry, "delivered_at");

		if (id <= r->dl.floor_id || (at && rfc3339_parse(at, &at_ms) == 0 && at_ms < r->since_ms)) {
			r->dl.is_at_floor = true;
			return;
		}
		if (id > r->dl.newest_id)
			r->dl.newest_id = id;
		size_t n = guid ? strlen(guid) : 0;
		if (n == 0 || n > GUID_MAX_BYTES || strspn(guid, GUID_CHARS) != n)
			continue;
		for (k = 0; k < r->dl.n_lost && !str_eq(r->dl.lost[k].guid, guid);)
			k++;
		if (status >= 200 && status < 300)
			json_object_set_new(r->dl.settled, guid, json_true());
		else if (k == r->dl.n_lost)
			r->dl.lost[r->dl.n_lost++] = (struct lost_delivery){id, guid};
	}
}

static void on_delivery_page(struct github_call *call)
{
	struct reconciler *r = CONTAINER_OF(call, struct reconciler, op.deliveries.call);
	struct github_result result = call->result;

	r->dl.page = json_incref(call->answer);
	memcpy(r->dl.next_cursor, r->op.deliveries.next_cursor, sizeof(r->dl.next_cursor));
	github_call_release(call);
	if (result.err && result.is_final && r->dl.is_older_walk && !r->d->is_closing) {
		/* The saved cursor is no longer valid. The comparison of heads finds the changes behind it. */
		if (!reconcile_op_ended(r, "", 0, NULL))
			return;
		r->dl.is_at_floor = true;
		turn_page(r);
		return;
	}
	if (!reconcile_op_ended(r, "reading the App's deliveries", result.err, &result.why))
		return;
	r->dl.n_pages++;
	note_lost(r);
	if (r->dl.n_lost) {
		const char **guids = xcalloc(r->dl.n_lost + 1, sizeof(*guids));

		r->dl.known = xcalloc(r->dl.n_lost + 1, sizeof(*r->dl.known));
		for (size_t i = 0; i < r->dl.n_lost; i++)
			guids[i] = r->dl.lost[i].guid;
		r->op.known_guids = (struct known_guids){
		    .q.done = on_guids_known,
		    .guids = guids,
		    .n = r->dl.n_lost,
		    .known = r->dl.known,
		};
		int rc = store_known_guids(r->d->deps.store, &r->op.known_guids);
		if (rc)
			free(guids);
		reconcile_submitted(r, "looking up deliveries", rc);
	} else {
		turn_page(r);
	}
}

static void request_delivery_page(struct reconciler *r)
{
	r->dl.is_at_floor = false;
	r->op.deliveries = (struct github_deliveries){.call.done = on_delivery_page};
	memcpy(r->op.deliveries.cursor, r->dl.cursor, sizeof(r->dl.cursor));
	reconcile_goes_to_github(r);
	github_deliveries_get(r->d->deps.github, &r->op.deliveries);
}

static void have_delivery_memory(struct reconciler *r)
{
	const char *text = r->setting_value ? r->setting_value : "", *cursor;
	json_t *o = NULL;

	if (json_parse(text, strlen(text), &o, NULL) == 0) {
		r->dl.seen_id = json_get_int(o, "seen", 0);
		cursor = json_get_str(o, "older_cursor");
		if (cursor && strlen(cursor) < sizeof(r->dl.older_cursor)) {
			snprintf(r->dl.older_cursor, sizeof(r->dl.older_cursor), "%s", cursor);
			r->dl.older_floor_id = json_get_int(o, "older_floor", 0);
		}
		json_decref(o);
	}
	r->dl.floor_id = r->dl.seen_id;
	r->dl.newest_id = r->dl.seen_id;
	r->dl.settled = json_object();
	request_delivery_page(r);
}

void reconcile_deliveries(struct reconciler *r) { reconcile_load_setting(r, xstrdup(KEY), have_delivery_memory); }
