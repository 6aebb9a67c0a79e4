/* outpostctl deliveries, replay, dispatches, retest, comment preview, backup and nightly. */

#include "daemon/control.h"
#include "daemon/wire.h"
#include "store/deliveries.h"
#include "store/dispatches.h"
#include "store/plans.h"
#include "store/registry.h"
#include "store/schedules.h"
#include "views/record_json.h"

enum { NUMBER_MAX_CHARS = 9, SHA_MIN_CHARS = 7, SHA_CHARS = 40 };

struct change_request {
	struct control_request base;
	union {
		struct list_deliveries deliveries;
		struct replay_delivery replay;
		struct list_dispatches dispatches;
		struct retest_request retest;
		struct preview preview;
		struct backup_store backup;
		struct list_schedules schedules;
		struct ask_schedule_run run;
		struct skip_schedule skip;
	};
	const char *accelerator; /* in the body */
	char *text;              /* a text that the struct above borrows */
};

static void release_change(struct control_request *q) { free(CONTAINER_OF(q, struct change_request, base)->text); }

/* ---- deliveries ---- */

static void on_deliveries_read(struct store_query *s)
{
	struct change_request *q = CONTAINER_OF(s, struct change_request, deliveries.q);
	json_t *list = json_array();

	for (size_t i = 0; i < q->deliveries.n; i++) {
		const struct delivery *d = &q->deliveries.list[i];
		json_t *v = json_pack("{s:o}", "guid", json_foreign_text(d->guid));

		record_to_json(v, &delivery_record, d);
		json_array_append_new(list, v);
	}
	list_deliveries_release(&q->deliveries);
	control_answer_list(&q->base, s, "deliveries", list);
}

static int begin_deliveries(struct control_request *base)
{
	struct change_request *q = CONTAINER_OF(base, struct change_request, base);
	char failed[4] = "";

	q->deliveries.only_failed = http_query_get(base->http, "failed", failed, sizeof(failed)) && str_eq(failed, "1");
	q->deliveries.limit = control_limit(base);
	q->deliveries.q.done = on_deliveries_read;
	return store_list_deliveries(base->daemon->store, &q->deliveries);
}

static void on_delivery_replayed(struct store_op *op)
{
	struct change_request *q = CONTAINER_OF(op, struct change_request, replay.op);

	if (!control_goes_on(&q->base, op->err, op->err == ERR_NOT_FOUND ? "no delivery with that GUID" : op->why.text))
		return;
	log_event(LOG_INFO, "replay", LOG_S("delivery", q->text));
	control_answer(&q->base, json_pack("{s:s}", "replayed", q->text));
}

static int begin_replay(struct control_request *base)
{
	struct change_request *q = CONTAINER_OF(base, struct change_request, base);

	base->release = release_change;
	q->text = xstrdup(http_segment(base->http, 0));
	q->replay.guid = q->text;
	q->replay.op.done = on_delivery_replayed;
	return store_replay_delivery(base->daemon->store, &q->replay);
}

/* ---- dispatches ---- */

static void on_dispatches_read(struct store_query *s)
{
	struct change_request *q = CONTAINER_OF(s, struct change_request, dispatches.q);
	json_t *list = json_array();

	for (size_t i = 0; i < q->dispatches.n; i++) {
		const struct dispatch_row *d = &q->dispatches.list[i];
		const char *reason = d->held_reason ? d->held_reason : d->last_error;
		char *void_reason = d->void_reason ? xasprintf("proves nothing: %s", d->void_reason) : NULL;
		json_t *v = record_json(&dispatch_row_record, d);

		/* why it has this state, or why its result does not count */
		json_set_foreign_text(v, "reason", void_reason ? void_reason : reason);
		free(void_reason);
		json_array_append_new(list, v);
	}
	list_dispatches_release(&q->dispatches);
	control_answer_list(&q->base, s, "dispatches", list);
}

static int begin_dispatches(struct control_request *base)
{
	struct change_request *q = CONTAINER_OF(base, struct change_request, base);
	char text[32] = "";

	if (http_query_get(base->http, "pr", text, sizeof(text)) &&
	    (parse_int64(text, &q->dispatches.number) || q->dispatches.number < 1))
		return error_set(&base->why, ERR_INVALID, "pr must be a number");
	base->release = release_change;
	q->text = xstrdup(base->daemon->config->upstream_repository);
	q->dispatches.repository = q->text;
	q->dispatches.limit = control_limit(base);
	q->dispatches.q.done = on_dispatches_read;
	return store_list_dispatches(base->daemon->store, &q->dispatches);
}

/* ---- retest ---- */

static void on_change_retested(struct retest_request *r)
{
	struct change_request *q = r->owner;
	json_t *v, *list = json_array();

	for (size_t i = 0; i < r->n; i++) {
		const struct retested *one = &r->list[i];

		json_array_append_new(
		    list, json_pack("{s:s?, s:s?, s:s, s:s?}", "accelerator", one->accelerator, "runner", one->runner,
			      "result", retest_result_name(one->result), "dispatch", one->id[0] ? one->id : NULL));
	}
	v = json_pack("{s:I, s:s?, s:o}", "pr", (json_int_t)r->pull_number, "head_sha", r->head_sha, "runners", list);
	retested_release(r->list, r->n);
	if (control_goes_on(&q->base, r->err, r->why.text))
		control_answer(&q->base, json_incref(v));
	json_decref(v);
}

/* Reads a PR's number, or a commit's SHA or its first digits. Few decimal digits are a number. */
static bool read_change_reference(struct change_request *q, const char *text)
{
	size_t n = text ? strlen(text) : 0;

	if (n > 0 && n <= NUMBER_MAX_CHARS && strspn(text, "0123456789") == n)
		return !parse_int64(text, &q->retest.number) && q->retest.number > 0;
	if (n < SHA_MIN_CHARS || n > SHA_CHARS || strspn(text, "0123456789abcdefABCDEF") != n)
		return false;
	q->text = xstrdup(text);
	for (char *c = q->text; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	q->retest.sha = q->text;
	return true;
}

static int begin_retest(struct control_request *base)
{
	struct change_request *q = CONTAINER_OF(base, struct change_request, base);
	const char *accelerator = json_get_str(base->body, "accelerator");

	base->release = release_change;
	if (!read_change_reference(q, json_get_str(base->body, "change")))
		return error_set(&base->why, ERR_INVALID,
		    "change must be a pull request's number or a SHA of at least %d digits", (int)SHA_MIN_CHARS);
	if (accelerator && !config_accelerator(base->daemon->config, accelerator))
		return control_unknown_accelerator(base, accelerator);
	q->retest.accelerator = accelerator;
	q->retest.done = on_change_retested;
	q->retest.owner = q;
	return dispatch_retest(base->daemon->dispatch, &q->retest);
}

/* ---- comment preview ---- */

static void on_comment_previewed(struct preview *p)
{
	struct change_request *q = CONTAINER_OF(p, struct change_request, preview);
	char *text = p->text;

	if (control_goes_on(&q->base, p->err, p->err == ERR_NOT_FOUND ? "no such pull request is known" : p->why.text))
		control_answer(&q->base, json_pack("{s:s}", "text", text));
	free(text);
}

static int begin_preview(struct control_request *base)
{
	struct change_request *q = CONTAINER_OF(base, struct change_request, base);
	char format[16] = "", width[16] = "";
	int64_t columns;

	if (parse_int64(http_segment(base->http, 0), &q->preview.number) || q->preview.number < 1)
		return error_set(&base->why, ERR_INVALID, "the pull request must be a number");
	if (http_query_get(base->http, "width", width, sizeof(width)) && !parse_int64(width, &columns) &&
	    columns >= 40 && columns <= 1000)
		q->preview.width = (int)columns;
	(void)http_query_get(base->http, "format", format, sizeof(format));
	q->preview.format = str_eq(format, "colour")     ? PREVIEW_TERMINAL_COLOUR
			    : str_eq(format, "terminal") ? PREVIEW_TERMINAL
							 : PREVIEW_MARKDOWN;
	q->preview.done = on_comment_previewed;
	return publish_preview(base->daemon->publish, &q->preview);
}

/* ---- backup ---- */

static void on_store_backed_up(struct store_query *s)
{
	struct change_request *q = CONTAINER_OF(s, struct change_request, backup.q);

	log_event(s->err ? LOG_ERROR : LOG_INFO, "backup", LOG_S("path", q->backup.path),
	    LOG_I("bytes", q->backup.n_bytes), LOG_S("result", s->err ? err_text(s->err) : "ok"));
	if (control_goes_on(&q->base, s->err, s->why.text))
		control_answer(
		    &q->base, json_pack("{s:s, s:I}", "path", q->backup.path, "bytes", (json_int_t)q->backup.n_bytes));
}

static int begin_backup(struct control_request *base)
{
	struct change_request *q = CONTAINER_OF(base, struct change_request, base);

	q->backup.path = json_get_str(base->body, "path");
	if (!q->backup.path || q->backup.path[0] != '/')
		return error_set(&base->why, ERR_INVALID, "path must be an absolute path");
	q->backup.q.done = on_store_backed_up;
	return store_backup(base->daemon->store, &q->backup);
}

/* ---- nightly: lists the accelerators' periodic runs, starts one, skips one ---- */

static void on_schedules_listed(struct store_query *s)
{
	struct change_request *q = CONTAINER_OF(s, struct change_request, schedules.q);
	json_t *list = json_array();

	for (size_t i = 0; i < q->schedules.n; i++) {
		const struct schedule_row *r = &q->schedules.list[i];
		json_t *crons = NULL;

		if (!r->crons || json_parse(r->crons, strlen(r->crons), &crons, NULL))
			crons = json_array();
		json_array_append_new(
		    list, json_pack("{s:o, s:o, s:o, s:b, s:o}", "accelerator", json_foreign_text(r->accelerator),
			      "cron", crons, "next", json_time(r->next_ms), "skip_next", r->is_next_skipped, "last",
			      r->due_ms ? record_json(&schedule_row_record, r) : json_null()));
	}
	list_schedules_release(&q->schedules);
	control_answer_list(&q->base, s, "schedules", list);
}

static int begin_nightly(struct control_request *base)
{
	struct change_request *q = CONTAINER_OF(base, struct change_request, base);

	q->schedules = (struct list_schedules){.q.done = on_schedules_listed};
	return store_list_schedules(base->daemon->store, &q->schedules);
}

static int read_requested_accelerator(struct change_request *q)
{
	q->accelerator = json_get_str(q->base.body, "accelerator");
	if (!q->accelerator)
		return error_set(&q->base.why, ERR_INVALID, "accelerator is missing");
	if (!config_accelerator(q->base.daemon->config, q->accelerator))
		return control_unknown_accelerator(&q->base, q->accelerator);
	return 0;
}

static void on_run_recorded(struct store_op *op)
{
	struct change_request *q = CONTAINER_OF(op, struct change_request, run.op);

	if (!control_goes_on(&q->base, op->err, op->why.text))
		return;
	log_event(LOG_INFO, "periodic_run_asked", LOG_S("accelerator", q->accelerator));
	control_answer(
	    &q->base, json_pack("{s:s, s:I}", "accelerator", q->accelerator, "run", (json_int_t)q->run.run_id));
}

static int begin_nightly_run(struct control_request *base)
{
	struct change_request *q = CONTAINER_OF(base, struct change_request, base);
	int rc = read_requested_accelerator(q);

	q->run = (struct ask_schedule_run){
	    .op.done = on_run_recorded, .accelerator = q->accelerator, .now_ms = clock_wall_ms()};
	return rc ? rc : store_ask_schedule_run(base->daemon->store, &q->run);
}

static void on_run_skipped(struct store_op *op)
{
	struct change_request *q = CONTAINER_OF(op, struct change_request, skip.op);

	if (!control_goes_on(&q->base, op->err, op->why.text))
		return;
	log_event(LOG_INFO, "periodic_run_left_out", LOG_S("accelerator", q->accelerator));
	control_answer(&q->base, json_pack("{s:s, s:o, s:b}", "accelerator", q->accelerator, "next",
				     json_time(q->skip.next_ms), "was_skipped", q->skip.was_skipped));
}

static int begin_nightly_skip(struct control_request *base)
{
	struct change_request *q = CONTAINER_OF(base, struct change_request, base);
	int rc = read_requested_accelerator(q);

	q->skip = (struct skip_schedule){.op.done = on_run_skipped, .accelerator = q->accelerator};
	return rc ? rc : store_skip_schedule(base->daemon->store, &q->skip);
}

const struct control_route CONTROL_CHANGES[] = {
    {"GET", "/control/deliveries", sizeof(struct change_request), begin_deliveries},
    {"POST", "/control/deliveries/{guid}/replay", sizeof(struct change_request), begin_replay},
    {"GET", "/control/dispatches", sizeof(struct change_request), begin_dispatches},
    {"POST", "/control/retest", sizeof(struct change_request), begin_retest},
    {"GET", "/control/comments/{pr}", sizeof(struct change_request), begin_preview},
    {"POST", "/control/backup", sizeof(struct change_request), begin_backup},
    {"GET", "/control/nightly", sizeof(struct change_request), begin_nightly},
    {"POST", "/control/nightly/run", sizeof(struct change_request), begin_nightly_run},
    {"POST", "/control/nightly/skip", sizeof(struct change_request), begin_nightly_skip},
    {.method = NULL},
};
