/* One claimed row of kind COMMENT: reads the change, renders it, and writes it to GitHub when the text is new and its time has
 * come. Every path ends in claimed_end() or a function like it.
 *
 * Thread: loop. */

#include "model/schedule.h"
#include "publish/publish_internal.h"

enum { EVIDENCE_LOOK_MS = 1000 }; /* mostly the evidence itself makes the row due */

struct writing {
	struct claimed claimed;
	struct get_comment known;
	struct github_comment_search search;
	struct put_comment put;
	struct table table; /* of claimed.change.view, as long as that lives */
	struct comment text;
	int64_t comment_id; /* 0: not known */
	int64_t change_id;  /* the head that it shows */
	bool has_red;
	bool has_searched; /* GitHub was asked for our comment */
};

/* ---- writing ----
 * A create is always preceded by a look for our own comment. When an answer gets lost, the row comes back and the look
 * finds the comment that the create had made. */

static void find_comment(struct writing *w);

static void on_comment_recorded(struct store_op *op)
{
	struct writing *w = CONTAINER_OF(op, struct writing, put.op);

	if (!claimed_is_stored(&w->claimed, op->err, &op->why))
		return;
	w->claimed.effect.is_uncertain = false;
	claimed_end_ok(&w->claimed);
}

/* GitHub has the text: logs and records that. */
static void record_comment(struct writing *w, const char *ev)
{
	log_event(LOG_INFO, ev, LOG_S("repository", w->claimed.repository), LOG_I("pr", w->claimed.number),
	    LOG_I("comment", w->comment_id), LOG_I("bytes", (int64_t)w->text.bytes),
	    LOG_I("rows_left_out", (int64_t)w->text.n_rows_left_out));
	w->put = (struct put_comment){.op = {.done = on_comment_recorded},
	    .outbox_id = w->claimed.effect.row.id,
	    .epoch = w->claimed.effect.row.epoch,
	    .repository = w->claimed.repository,
	    .number = w->claimed.number,
	    .comment_id = w->comment_id,
	    .change_id = w->change_id,
	    .written_ms = clock_wall_ms(),
	    .has_red_written = w->has_red};
	memcpy(w->put.body_hash, w->text.hash, SHA256_BYTES);
	if (store_put_comment(w->claimed.store, &w->put))
		claimed_end_busy(&w->claimed); /* the next attempt writes the same text again */
}

static void on_comment_created(struct claimed *c, struct github_call *call)
{
	struct writing *w = CONTAINER_OF(c, struct writing, claimed);

	if (!claimed_is_answered(c, &call->result))
		return;
	/* if the answer has no id, the next look finds the comment by its marker */
	w->comment_id = json_get_int(call->answer, "id", 0);
	c->p->counters.n_created++;
	record_comment(w, "comment_created");
}

static void on_comment_updated(struct claimed *c, struct github_call *call)
{
	struct writing *w = CONTAINER_OF(c, struct writing, claimed);
	bool is_gone = call->result.status == 404 || call->result.status == 410;

	if (call->result.err && is_gone && !w->has_searched) {
		find_comment(w);
	} else if (claimed_is_answered(c, &call->result)) {
		c->p->counters.n_edited++;
		record_comment(w, "comment_edited");
	}
}

static void update_comment(struct writing *w)
{
	struct claimed *c = &w->claimed;

	if (!claimed_begin_call(c, &c->call, on_comment_updated))
		return;
	c->effect.is_uncertain = true;
	github_comment_update(c->github, &c->call, c->repository, w->comment_id, w->text.markdown);
}

static void on_comment_found(struct claimed *c, struct github_call *call)
{
	struct writing *w = CONTAINER_OF(c, struct writing, claimed);

	if (!claimed_is_answered(c, &call->result))
		return;
	w->comment_id = w->search.comment_id;
	if (w->comment_id > 0) {
		update_comment(w);
	} else if (claimed_begin_call(c, &c->call, on_comment_created)) {
		c->effect.is_uncertain = true;
		github_comment_create(c->github, &c->call, c->repository, c->number, w->text.markdown);
	}
}

static void find_comment(struct writing *w)
{
	struct claimed *c = &w->claimed;

	if (!claimed_begin_call(c, &w->search.call, on_comment_found))
		return;
	w->has_searched = true;
	github_comment_find(c->github, &w->search, c->repository, c->number, COMMENT_MARKER);
}

/* ---- the text, and whether to write it now ---- */

/* A failure that was written at an earlier head is no news about this one. */
static bool had_red(const struct writing *w) { return w->known.has_red_written && w->known.change_id == w->change_id; }

static enum write_class comment_class(const struct writing *w, bool is_complete)
{
	if (w->has_red && !had_red(w))
		return WRITE_FIRST_FAILURE;
	if (!w->known.is_known)
		return WRITE_FIRST_COMMENT;
	return is_complete ? WRITE_LAST_RESULT : WRITE_EDIT;
}

static void decide_comment(struct claimed *c)
{
	struct writing *w = CONTAINER_OF(c, struct writing, claimed);
	const struct change_view *v = c->change.view;
	struct comment_options options = claimed_comment_options(c);
	int64_t now_ms = options.now_wall_ms;

	options.bot = claimed_app_name(c);
	comment_render(&w->table, &options, &w->text);
	/* The text says that the attribution runs, so it is written again when that is over, even if no cell moved. */
	if (v->is_being_attributed)
		c->again_ms = now_ms + EVIDENCE_WAIT_MS;
	if (w->known.is_known && w->comment_id > 0 && !c->effect.is_uncertain &&
	    memcmp(w->known.body_hash, w->text.hash, SHA256_BYTES) == 0) {
		c->p->counters.n_unchanged++;
		claimed_end_ok(c);
		return;
	}
	w->has_red = comment_has_red(&w->table);
	w->change_id = v->change_id;
	bool is_complete = table_is_complete(&w->table);
	int64_t due_ms = debounce_due_ms(
	    &c->p->debounce, &(struct debounce_question){.number = c->number,
				 .now_wall_ms = now_ms,
				 /* it is not known when an uncertain row was written, or with which text */
				 .written_wall_ms = c->effect.is_uncertain ? 0 : w->known.written_ms,
				 .min_interval_ms = c->config->comment_min_interval_ms,
				 .has_red = w->has_red,
				 .had_red = had_red(w),
				 .is_complete = is_complete});
	if (due_ms > now_ms) {
		c->p->counters.n_put_off++;
		claimed_end(c, OUTBOX_NOT_YET, due_ms, NULL);
		return;
	}
	if (!effect_may_write(&c->effect, comment_class(w, is_complete)))
		return;
	/* a view may be large, and GitHub slow */
	table_release(&w->table);
	claimed_drop_change(c);
	if (w->comment_id > 0)
		update_comment(w);
	else
		find_comment(w);
}

/* ---- reading ---- */

/* GitHub mostly names the merge base, and the attribution ends, within a second or two. A comment that adds them
 * afterwards would cost its reader a second look. */
static bool waits_for_evidence(const struct writing *w)
{
	int64_t age_ms = clock_wall_ms() - w->claimed.effect.row.first_ms;

	return w->claimed.change.view->is_being_attributed && age_ms >= 0 && age_ms < EVIDENCE_WAIT_MS;
}

static void on_known(struct store_query *q)
{
	struct writing *w = CONTAINER_OF(q, struct writing, known.q);
	struct claimed *c = &w->claimed;
	bool is_written = w->known.is_known || c->effect.is_uncertain;

	if (!claimed_is_stored(c, q->err, &q->why))
		return;
	w->comment_id = w->known.comment_id;
	if (!c->config->comment_enabled || (!is_written && !comment_has_news(&w->table)))
		claimed_end_ok(c);
	else if (waits_for_evidence(w))
		claimed_end(c, OUTBOX_NOT_YET, clock_wall_ms() + EVIDENCE_LOOK_MS, NULL);
	else
		claimed_learn_app(c, decide_comment);
}

static void read_known_comment(struct claimed *c)
{
	struct writing *w = CONTAINER_OF(c, struct writing, claimed);

	if (!c->change.view) {
		claimed_end_ok(c);
		return;
	}
	table_init(&w->table, c->change.view);
	w->known = (struct get_comment){.q = {.done = on_known}, .repository = c->repository, .number = c->number};
	if (store_get_comment(c->store, &w->known))
		claimed_end_busy(c);
}

static void release_comment(struct effect *e)
{
	struct writing *w = CONTAINER_OF(e, struct writing, claimed.effect);

	github_comment_search_release(&w->search);
	table_release(&w->table);
	comment_release(&w->text);
	claimed_release(&w->claimed);
}

static void begin_comment(struct effect *e)
{
	struct claimed *c = CONTAINER_OF(e, struct claimed, effect);

	claimed_begin(c, "comment");
	claimed_read_change(c, read_known_comment);
}

const struct effect_kind comment_kind =
    CLAIMED_KIND(OUTBOX_COMMENT, COMMENT_LANE, struct writing, begin_comment, release_comment);
