/* One claimed row of kind COMMENT: reads what is known, renders it, and writes it to GitHub when there is news and its time has
 * come. Every path ends in claimed_end() or a function like it.
 *
 * Thread: loop. */

#include "model/schedule.h"
#include "publish/publish_internal.h"
#include "views/change.h"

enum { EVIDENCE_LOOK_MS = 1000 }; /* mostly the evidence itself makes the row due */

struct writing {
	struct claimed claimed;
	struct get_change change;
	struct get_comment known;
	struct github_call call;
	struct github_comment_search search;
	struct put_comment put;
	struct table table; /* of change.view, as long as that lives */
	struct comment text;
	int64_t comment_id; /* 0: not known */
	int64_t change_id;  /* the head that it shows */
	bool has_red;
	bool has_searched; /* GitHub was asked whether ours is there */
};

/* ---- writing ----
 * A create is always preceded by a look for our own comment. When an answer gets lost, the row comes back and the look
 * finds the comment that the create had made. */

static void find_comment(struct writing *w);

static void on_comment_recorded(struct store_op *op)
{
	struct writing *w = CONTAINER_OF(op, struct writing, put.op);

	if (op->err) {
		claimed_retry(&w->claimed, &op->why, 0);
		return;
	}
	w->claimed.effect.is_uncertain = false;
	claimed_end(&w->claimed, OUTBOX_OK, 0, NULL);
}

static void record_comment(struct writing *w)
{
	w->put = (struct put_comment){.op = {.done = on_comment_recorded},
	    .repository = w->claimed.effect.row.target,
	    .number = w->claimed.effect.row.number,
	    .comment_id = w->comment_id,
	    .change_id = w->change_id,
	    .written_ms = clock_wall_ms(),
	    .has_red_written = w->has_red};
	memcpy(w->put.body_hash, w->text.hash, SHA256_BYTES);
	if (store_put_comment(w->claimed.p->deps.store, &w->put)) {
		/* it is written and not recorded: the next try writes the same again */
		claimed_end_busy(&w->claimed);
	}
}

static void log_written(const struct writing *w, const char *ev)
{
	log_event(LOG_INFO, ev, LOG_S("repository", w->claimed.effect.row.target),
	    LOG_I("pr", w->claimed.effect.row.number), LOG_I("comment", w->comment_id),
	    LOG_I("bytes", (int64_t)w->text.bytes), LOG_I("rows_left_out", (int64_t)w->text.n_rows_left_out));
}

static void on_comment_created(struct github_call *call)
{
	struct writing *w = call->owner;

	w->claimed.on_wire = NULL;
	if (call->result.err) {
		claimed_fail(&w->claimed, &call->result);
		return;
	}
	/* without an id it is found by the marker next time */
	w->comment_id = json_get_int(call->answer, "id", 0);
	w->claimed.p->counters.n_created++;
	log_written(w, "comment_created");
	record_comment(w);
}

static void on_comment_updated(struct github_call *call)
{
	struct writing *w = call->owner;
	bool is_gone = call->result.status == 404 || call->result.status == 410;

	w->claimed.on_wire = NULL;
	if (call->result.err && is_gone && !w->has_searched) {
		find_comment(w);
		return;
	}
	if (call->result.err) {
		claimed_fail(&w->claimed, &call->result);
		return;
	}
	w->claimed.p->counters.n_edited++;
	log_written(w, "comment_edited");
	record_comment(w);
}

static void update_comment(struct writing *w)
{
	if (!claimed_begin_call(&w->claimed, &w->call, on_comment_updated, w))
		return;
	w->claimed.effect.is_uncertain = true;
	github_comment_update(
	    w->claimed.p->deps.github, &w->call, w->claimed.effect.row.target, w->comment_id, w->text.markdown);
}

static void on_comment_found(struct github_call *call)
{
	struct writing *w = call->owner;

	w->claimed.on_wire = NULL;
	if (call->result.err) {
		claimed_fail(&w->claimed, &call->result);
		return;
	}
	w->comment_id = w->search.comment_id;
	if (w->comment_id > 0) {
		update_comment(w);
		return;
	}
	if (!claimed_begin_call(&w->claimed, &w->call, on_comment_created, w))
		return;
	w->claimed.effect.is_uncertain = true;
	github_comment_create(w->claimed.p->deps.github, &w->call, w->claimed.effect.row.target,
	    w->claimed.effect.row.number, w->text.markdown);
}

static void find_comment(struct writing *w)
{
	if (!claimed_begin_call(&w->claimed, &w->search.call, on_comment_found, w))
		return;
	w->has_searched = true;
	github_comment_find(w->claimed.p->deps.github, &w->search, w->claimed.effect.row.target,
	    w->claimed.effect.row.number, COMMENT_MARKER);
}

/* ---- what to say ---- */

/* What was told at an earlier head is no news about this one. */
static bool had_red(const struct writing *w) { return w->known.has_red_written && w->known.change_id == w->change_id; }

static enum write_class comment_class(const struct writing *w, bool is_complete)
{
	if (w->has_red && !had_red(w))
		return WRITE_FIRST_FAILURE;
	if (!w->known.is_known)
		return WRITE_FIRST_COMMENT;
	return is_complete ? WRITE_LAST_RESULT : WRITE_EDIT;
}

static void writing_decide(struct writing *w)
{
	const struct change_view *v = w->change.view;
	struct publish_counters *counters = &w->claimed.p->counters;
	int64_t now_ms = clock_wall_ms(), due_ms;

	struct comment_options options;
	char *github_url;

	publisher_comment_options(w->claimed.p, w->claimed.config, &options, &github_url);
	options.bot = claimed_app_name(&w->claimed);
	comment_render(&w->table, &options, &w->text);
	free(github_url);
	/* What is said to be under way is said anew when it is over, whether or not it moved anything. */
	if (v->is_being_attributed)
		w->claimed.again_ms = now_ms + EVIDENCE_WAIT_MS;
	if (w->known.is_known && w->comment_id > 0 && !w->claimed.effect.is_uncertain &&
	    memcmp(w->known.body_hash, w->text.hash, SHA256_BYTES) == 0) {
		counters->n_unchanged++;
		claimed_end(&w->claimed, OUTBOX_OK, 0, NULL);
		return;
	}
	w->has_red = comment_has_red(&w->table);
	w->change_id = v->change_id;
	bool is_complete = table_is_complete(&w->table);
	/* nobody knows when an uncertain row was written, or what */
	due_ms = debounce_due_ms(
	    &w->claimed.p->debounce, &(struct debounce_question){.number = w->claimed.effect.row.number,
					 .now_wall_ms = now_ms,
					 .written_wall_ms = w->claimed.effect.is_uncertain ? 0 : w->known.written_ms,
					 .min_interval_ms = w->claimed.config->comment_min_interval_ms,
					 .has_red = w->has_red,
					 .had_red = had_red(w),
					 .is_complete = is_complete});
	if (due_ms > now_ms) {
		counters->n_put_off++;
		claimed_end(&w->claimed, OUTBOX_NOT_YET, due_ms, NULL);
		return;
	}
	if (!effect_may_write(&w->claimed.effect, comment_class(w, is_complete)))
		return;
	/* a view may be large, and GitHub slow */
	table_release(&w->table);
	change_view_free(w->change.view);
	w->change.view = NULL;
	if (w->comment_id > 0)
		update_comment(w);
	else
		find_comment(w);
}

/* ---- the App's name, asked once. It does not hold the comment up when GitHub does not answer. ---- */

static void on_learned_app(struct github_call *call)
{
	struct writing *w = call->owner;

	w->claimed.on_wire = NULL;
	github_call_release(call);
	writing_decide(w);
}

/* ---- reading ---- */

/* Where the change branched off and whose a failure is are mostly known within a second or two; a
 * comment that says so afterwards would cost its reader a second look. */
static bool waits_for_evidence(const struct writing *w)
{
	int64_t age_ms = clock_wall_ms() - w->claimed.effect.row.first_ms;

	return w->change.view->is_being_attributed && age_ms >= 0 && age_ms < EVIDENCE_WAIT_MS;
}

static void on_known(struct store_query *q)
{
	struct writing *w = CONTAINER_OF(q, struct writing, known.q);

	if (q->err) {
		claimed_retry(&w->claimed, &q->why, 0);
		return;
	}
	w->comment_id = w->known.comment_id;
	bool is_written = w->known.is_known || w->claimed.effect.is_uncertain;
	if (!w->claimed.config->comment_enabled || (!is_written && !comment_has_news(&w->table)))
		claimed_end(&w->claimed, OUTBOX_OK, 0, NULL);
	else if (waits_for_evidence(w))
		claimed_end(&w->claimed, OUTBOX_NOT_YET, clock_wall_ms() + EVIDENCE_LOOK_MS, NULL);
	else {
		if (github_app_slug(w->claimed.p->deps.github))
			writing_decide(w);
		else if (claimed_begin_call(&w->claimed, &w->call, on_learned_app, w))
			github_app_get(w->claimed.p->deps.github, &w->call);
	}
}

static void on_commented_change(struct store_query *q)
{
	struct writing *w = CONTAINER_OF(q, struct writing, change.q);

	if (q->err == ERR_NOT_FOUND) {
		claimed_end(&w->claimed, OUTBOX_OK, 0, NULL);
	} else if (q->err) {
		claimed_retry(&w->claimed, &q->why, 0);
	} else {
		table_init(&w->table, w->change.view);
		w->known = (struct get_comment){.q = {.done = on_known},
		    .repository = w->claimed.effect.row.target,
		    .number = w->claimed.effect.row.number};
		if (store_get_comment(w->claimed.p->deps.store, &w->known))
			claimed_end_busy(&w->claimed);
	}
}

static void release_comment(struct effect *e)
{
	struct writing *w = CONTAINER_OF(e, struct writing, claimed.effect);

	github_call_release(&w->call);
	github_comment_search_release(&w->search);
	table_release(&w->table);
	change_view_free(w->change.view);
	comment_release(&w->text);
	claimed_release(&w->claimed);
}

static void begin_comment(struct effect *e)
{
	struct writing *w = CONTAINER_OF(e, struct writing, claimed.effect);

	claimed_begin(&w->claimed, "comment");
	w->change = (struct get_change){.q = {.done = on_commented_change},
	    .now_ms = clock_wall_ms(),
	    .repository = w->claimed.effect.row.target,
	    .number = w->claimed.effect.row.number,
	    .max_verdicts = VERDICTS_MAX};
	if (store_get_change(w->claimed.p->deps.store, &w->change))
		claimed_end_busy(&w->claimed);
}

const struct effect_kind comment_kind = {.kind = OUTBOX_COMMENT,
    .lane = COMMENT_LANE,
    .bytes = sizeof(struct writing),
    .begin = begin_comment,
    .cancel = claimed_cancel,
    .release = release_comment};
