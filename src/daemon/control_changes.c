/* outpostctl deliveries, replay, dispatches, retest, comment preview, backup and nightly. */
#include <ctype.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/control.h"
#include "daemon/wire.h"
#include "store/deliveries.h"
#include "store/dispatches.h"
#include "store/plans.h"
#include "store/registry.h"
#include "store/schedules.h"

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
	};
	char *text; /* a text that the struct above borrows */
};

static void release_change(struct control_request *q)
{
	free(CONTAINER_OF(q, struct change_request, base)->text);
}

/* ---- deliveries ---- */

static void on_deliveries_read(struct store_query *s)
{
	struct change_request *q = CONTAINER_OF(s, struct change_request, deliveries.q);
	json_t *list = json_array();

	for (size_t i = 0; i < q->deliveries.n; i++) {
		const struct delivery *d = &q->deliveries.list[i];
		json_t *v = json_object();

		json_set_str(v, "guid", d->guid);
		json_set_time(v, "received", d->received_ms);
		json_set_str(v, "event", d->event);
		json_set_str(v, "action", d->action);
		json_set_str(v, "repository", d->repository);
		json_set_str(v, "state", d->state);
		json_set_int(v, "bytes", d->body_bytes);
		json_set_str(v, "error", d->error);
		json_array_append_new(list, v);
	}
	list_deliveries_release(&q->deliveries);
	if (s->err)
		control_fail(&q->base, s->err, s->why.text);
	else
		control_answer(&q->base, json_pack("{s:O}", "deliveries", list));
	json_decref(list);
}

static int begin_deliveries(struct control_request *base)
{
	struct change_request *q = CONTAINER_OF(base, struct change_request, base);
	char failed[4] = "";

	q->deliveries.only_failed =
	    http_query_get(base->http, "failed", failed, sizeof(failed)) && str_eq(failed, "1");
	q->deliveries.limit = control_limit(base);
	q->deliveries.q.done = on_deliveries_read;
	return store_list_deliveries(base->daemon->store, &q->deliveries);
}

static void on_delivery_replayed(struct store_op *op)
{
	struct change_request *q = CONTAINER_OF(op, struct change_request, replay.op);

	if (op->err) {
		control_fail(&q->base, op->err,
		    op->err == ERR_NOT_FOUND ? "no delivery with that GUID" : op->why.text);
		return;
	}
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
		char *void_reason =
		    d->void_reason ? xasprintf("proves nothing: %s", d->void_reason) : NULL;
		json_t *v = json_object();

		json_set_str(v, "id", d->id);
		json_set_str(v, "event", d->event);
		json_set_str(v, "side", d->side);
		json_set_int(v, "pr", d->number);
		json_set_str(v, "head_sha", d->head_sha);
		json_set_str(v, "accelerator", d->accelerator);
		json_set_str(v, "runner", d->runner);
		json_set_str(v, "kind", d->kind);
		json_set_str(v, "target", d->target);
		json_set_str(v, "state", d->state);
		json_set_int(v, "round", d->round);
		json_set_int(v, "attempts", d->n_attempts);
		json_set_time(v, "created", d->created_ms);
		json_set_time(v, "sent", d->sent_ms);
		json_set_time(v, "finished", d->finished_ms);
		/* why it has this state, or why its result does not count */
		json_set_str(v, "reason", void_reason ? void_reason : reason);
		free(void_reason);
		json_array_append_new(list, v);
	}
	list_dispatches_release(&q->dispatches);
	if (s->err)
		control_fail(&q->base, s->err, s->why.text);
	else
		control_answer(&q->base, json_pack("{s:O}", "dispatches", list));
	json_decref(list);
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
	json_t *v = json_object(), *list = json_array();

	for (size_t i = 0; i < r->n; i++) {
		const struct retested *one = &r->list[i];
		json_t *o = json_object();

		json_set_str(o, "accelerator", one->accelerator);
		json_set_str(o, "runner", one->runner);
		json_set_str(o, "result", retest_result_name(one->result));
		json_set_str(o, "dispatch", one->id[0] ? one->id : NULL);
		json_array_append_new(list, o);
	}
	json_set_int(v, "pr", r->pull_number);
	json_set_str(v, "head_sha", r->head_sha);
	json_object_set_new(v, "runners", list);
	retested_release(r->list, r->n);
	if (r->err) {
		control_fail(&q->base, r->err, r->why.text);
		json_decref(v);
	} else {
		control_answer(&q->base, v);
	}
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
		    "change must be a pull request's number or a SHA of at least %d digits",
		    (int)SHA_MIN_CHARS);
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

	if (p->err)
		control_fail(&q->base, p->err,
		    p->err == ERR_NOT_FOUND ? "no such pull request is known" : NULL);
	else
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
	if (http_query_get(base->http, "width", width, sizeof(width)) &&
	    !parse_int64(width, &columns) && columns >= 40 && columns <= 1000)
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
	if (s->err)
		control_fail(&q->base, s->err, s->why.text);
	else
		control_answer(&q->base, json_pack("{s:s, s:I}", "path", q->backup.path, "bytes",
					     (json_int_t)q->backup.n_bytes));
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

struct nightly_request {
	struct control_request base;
	const char *accelerator;
	union {
		struct list_schedules list;
		struct ask_schedule_run run;
		struct skip_schedule skip;
	};
};

static void on_schedules_listed(struct store_query *s)
{
	struct nightly_request *q = CONTAINER_OF(s, struct nightly_request, list.q);
	json_t *list;

	if (s->err) {
		control_fail(&q->base, s->err, s->why.text);
		return;
	}
	list = json_array();
	for (size_t i = 0; i < q->list.n; i++) {
		const struct schedule_row *r = &q->list.list[i];
		json_t *o = json_object(), *last = json_null(), *crons = NULL;

		if (r->due_ms) {
			last = json_object();
			json_set_time(last, "due_at", r->due_ms);
			json_set_time(last, "started_at", r->started_ms);
			json_set_time(last, "ended_at", r->ended_ms);
			json_set_str(last, "cause", r->cause);
			json_set_str(last, "state", r->state);
			json_set_str(last, "outcome", r->outcome);
			json_set_str(last, "reason", r->reason);
			json_set_str(last, "upstream_sha", r->upstream_sha);
			json_set_str(last, "source_sha", r->source_sha);
		}
		if (!r->crons || json_parse(r->crons, strlen(r->crons), &crons, NULL))
			crons = json_array();
		json_set_str(o, "accelerator", r->accelerator);
		json_object_set_new(o, "cron", crons);
		json_set_time(o, "next", r->next_ms);
		json_object_set_new(o, "skip_next", json_boolean(r->is_next_skipped));
		json_object_set_new(o, "last", last);
		json_array_append_new(list, o);
	}
	list_schedules_release(&q->list);
	control_answer(&q->base, json_pack("{s:o}", "schedules", list));
}

static int begin_nightly(struct control_request *base)
{
	struct nightly_request *q = CONTAINER_OF(base, struct nightly_request, base);

	q->list = (struct list_schedules){.q.done = on_schedules_listed};
	return store_list_schedules(base->daemon->store, &q->list);
}

static int read_requested_accelerator(struct nightly_request *q)
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
	struct nightly_request *q = CONTAINER_OF(op, struct nightly_request, run.op);

	if (op->err) {
		control_fail(&q->base, op->err, op->why.text);
		return;
	}
	log_event(LOG_INFO, "periodic_run_asked", LOG_S("accelerator", q->accelerator));
	control_answer(&q->base, json_pack("{s:s, s:I}", "accelerator", q->accelerator, "run",
				     (json_int_t)q->run.run_id));
}

static int begin_nightly_run(struct control_request *base)
{
	struct nightly_request *q = CONTAINER_OF(base, struct nightly_request, base);
	int rc = read_requested_accelerator(q);

	q->run = (struct ask_schedule_run){
	    .op.done = on_run_recorded,
	    .accelerator = q->accelerator,
	    .now_ms = clock_wall_ms(),
	};
	return rc ? rc : store_ask_schedule_run(base->daemon->store, &q->run);
}

static void on_run_skipped(struct store_op *op)
{
	struct nightly_request *q = CONTAINER_OF(op, struct nightly_request, skip.op);
	json_t *v;

	if (op->err) {
		control_fail(&q->base, op->err, op->why.text);
		return;
	}
	log_event(LOG_INFO, "periodic_run_left_out", LOG_S("accelerator", q->accelerator));
	v = json_object();
	json_set_str(v, "accelerator", q->accelerator);
	json_set_time(v, "next", q->skip.next_ms);
	json_object_set_new(v, "was_skipped", json_boolean(q->skip.was_skipped));
	control_answer(&q->base, v);
}

static int begin_nightly_skip(struct control_request *base)
{
	struct nightly_request *q = CONTAINER_OF(base, struct nightly_request, base);
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
    {"GET", "/control/nightly", sizeof(struct nightly_request), begin_nightly},
    {"POST", "/control/nightly/run", sizeof(struct nightly_request), begin_nightly_run},
    {"POST", "/control/nightly/skip", sizeof(struct nightly_request), begin_nightly_skip},
    {.method = NULL},
};
