/* Requests failed deliveries again.
 *
 * GitHub lists the App's deliveries newest first, a hundred on a page. Each attempt has an id of its own, so a GUID that
 * failed and later arrived has two entries. The walk ends at the newest entry of the last look. A look reads a limited
 * number of pages; if that cuts a walk short, the next look continues it after the new entries. Failed deliveries go to the
 * database. The position is saved at the end of the walk, so a failed walk is repeated completely.
 *
 * Then the deliveries that are due are requested. One that fails again is due later and later, until GitHub drops it after three
 * days. While every delivery fails, for example because the proxy in front of Outpost is down, attempts do not count: now and then a
 * look requests one delivery, each time another one, to find out whether GitHub reaches Outpost again. */

#include "dispatch/reconcile.h"

enum {
	PAGES_MAX = 30,     /* a look */
	REQUESTS_MAX = 300, /* a look */
	GUID_MAX_BYTES = 64,
	KEPT_MS = 3 * 24 * 3600 * 1000, /* by GitHub */
	PROBE_PAUSE_MAX_MS = 3600 * 1000,
};

static const char KEY[] = "reconcile.deliveries";
static const char GUID_CHARS[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";

/* ---- the requests ---- */

static void next_redelivery(struct reconciler *r);

static void on_redelivery_counted(struct store_op *op)
{
	struct reconciler *r = CONTAINER_OF(op, struct reconciler, op.count.op);

	if (!reconcile_op_ended(r, "counting redeliveries", op->err, &op->why))
		return;
	if (!r->op.count.is_over)
		log_event(LOG_INFO, "redelivery_asked", LOG_S("delivery", r->op.count.guid),
		    LOG_I("n", r->op.count.n_before + 1));
	r->dl.i_due++;
	next_redelivery(r);
}

static void on_redelivery_requested(struct github_call *call)
{
	struct reconciler *r = CONTAINER_OF(call, struct reconciler, op.call);
	const struct redelivery *due = &r->dl.due.list[r->dl.i_due];
	struct github_result result = call->result;
	bool is_too_late = result.err && result.is_final && result.err != ERR_AUTH;

	github_call_release(call);
	if (!reconcile_op_ended(r, "requesting a redelivery", is_too_late ? 0 : result.err, &result.why))
		return;
	r->d->counters.n_redeliveries_asked += !is_too_late;
	if (is_too_late) {
		log_event(LOG_WARN, "redelivery_refused", LOG_S("delivery", due->guid), LOG_I("id", due->attempt_id),
		    LOG_S("error", result.why.text));
	} else if (r->probe_pause_ms) { /* it does not count */
		log_event(LOG_INFO, "redelivery_tried", LOG_S("delivery", due->guid));
		reconcile_part_done(r);
		return;
	}
	r->op.count = (struct count_redelivery){
	    .op.done = on_redelivery_counted,
	    .guid = due->guid,
	    .is_over = is_too_late,
	    .now_ms = clock_wall_ms(),
	};
	reconcile_submitted(r, "counting redeliveries", store_count_redelivery(r->d->deps.store, &r->op.count));
}

static void next_redelivery(struct reconciler *r)
{
	if (r->dl.i_due == r->dl.due.n) {
		reconcile_part_done(r);
		return;
	}
	r->op.call = (struct github_call){.done = on_redelivery_requested};
	reconcile_goes_to_github(r);
	github_delivery_redeliver(r->d->deps.github, &r->op.call, r->dl.due.list[r->dl.i_due].attempt_id);
}

static void on_redeliveries_listed(struct store_query *q)
{
	struct reconciler *r = CONTAINER_OF(q, struct reconciler, op.list_redeliveries.q);

	r->dl.due = r->op.list_redeliveries;
	if (r->probe_pause_ms && r->dl.due.n)
		r->dl.i_due = r->n_probes++ % r->dl.due.n;
	if (reconcile_op_ended(r, "listing redeliveries", q->err, &q->why))
		next_redelivery(r);
}

static void request_redeliveries(struct reconciler *r)
{
	int64_t now_ms = clock_wall_ms(), mono_ms = clock_mono_ms(), interval_ms = r->config->reconcile_interval_ms;

	if (r->dl.has_arrived)
		r->probe_pause_ms = r->probe_mono_ms = 0;
	else if (r->dl.has_failed_again && !r->probe_pause_ms)
		r->probe_pause_ms = interval_ms;
	if (r->probe_pause_ms && mono_ms < r->probe_mono_ms) {
		reconcile_part_done(r);
		return;
	}
	r->op.list_redeliveries = (struct list_redeliveries){
	    .q.done = on_redeliveries_listed,
	    .now_ms = now_ms,
	    .since_ms = now_ms - KEPT_MS,
	    .pause_ms = interval_ms,
	    .limit = REQUESTS_MAX,
	};
	if (r->probe_pause_ms) {
		r->probe_mono_ms = mono_ms + r->probe_pause_ms;
		r->probe_pause_ms =
		    2 * r->probe_pause_ms < PROBE_PAUSE_MAX_MS ? 2 * r->probe_pause_ms : PROBE_PAUSE_MAX_MS;
	}
	reconcile_submitted(
	    r, "listing redeliveries", store_list_redeliveries(r->d->deps.store, &r->op.list_redeliveries));
}

/* ---- the walk ---- */

static void finish_walk(struct reconciler *r)
{
	json_t *o = json_object();

	json_set_int(o, "seen", r->dl.newest_id);
	if (r->dl.older_cursor[0]) {
		json_set_str(o, "older_cursor", r->dl.older_cursor);
		json_set_int(o, "older_floor", r->dl.older_floor_id);
	}
	reconcile_save_setting(r, xstrdup(KEY), json_text(o), request_redeliveries);
	json_decref(o);
}

static void request_delivery_page(struct reconciler *r);

/* Continues with the next page or the older walk, or ends. */
static void turn_page(struct reconciler *r)
{
	bool is_exhausted = r->dl.n_pages >= PAGES_MAX;
	bool is_at_end = r->dl.is_at_floor || !r->dl.next_cursor[0];

	json_decref(r->dl.page);
	r->dl.page = NULL;
	FREE_ALL(r->dl.note.failed, r->dl.note.arrived);
	r->dl.note = (struct note_deliveries){0};
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

static void on_deliveries_noted(struct store_op *op)
{
	struct reconciler *r = CONTAINER_OF(op, struct reconciler, dl.note.op);

	if (reconcile_op_ended(r, "recording deliveries", op->err, &op->why))
		turn_page(r);
}

/* Collects the deliveries of the page down to the floor, each by its latest attempt. */
static void read_delivery_page(struct reconciler *r)
{
	int64_t now_ms = r->dl.note.now_ms;
	json_t *entry;
	size_t i;

	json_array_foreach(r->dl.page, i, entry)
	{
		int64_t id = json_get_int(entry, "id", 0), status = json_get_int(entry, "status_code", 0),
			at_ms = now_ms;
		const char *guid = json_get_str(entry, "guid"), *at = json_get_str(entry, "delivered_at");
		bool is_again = json_get_bool(entry, "redelivery", false), has_arrived = status >= 200 && status < 300;

		if (id <= r->dl.floor_id || (at && rfc3339_parse(at, &at_ms) == 0 && at_ms < r->since_ms)) {
			r->dl.is_at_floor = true;
			return;
		}
		if (id > r->dl.newest_id)
			r->dl.newest_id = id;
		r->dl.has_arrived |= has_arrived && !r->dl.is_older_walk;
		r->dl.has_failed_again |= is_again && !has_arrived && !r->dl.is_older_walk;
		size_t n = guid ? strlen(guid) : 0;
		if (n == 0 || n > GUID_MAX_BYTES || strspn(guid, GUID_CHARS) != n ||
		    json_object_get(r->dl.settled, guid))
			continue;
		json_object_set_new(r->dl.settled, guid, json_true());
		if (!has_arrived)
			*ARRAY_PUSH(r->dl.note.failed, r->dl.note.n_failed) =
			    (struct failed_delivery){id, at_ms < now_ms ? at_ms : now_ms, guid};
		else if (is_again)
			*ARRAY_PUSH(r->dl.note.arrived, r->dl.note.n_arrived) = guid;
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
	r->dl.note.op.done = on_deliveries_noted;
	r->dl.note.now_ms = clock_wall_ms();
	read_delivery_page(r);
	reconcile_submitted(r, "recording deliveries", store_note_deliveries(r->d->deps.store, &r->dl.note));
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
