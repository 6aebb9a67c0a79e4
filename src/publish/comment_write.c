/* Puts a text on GitHub: edits our comment where it is known, else looks for it, else creates it.
 *
 * Never here: a create that was not preceded by a look for our own comment. An answer that got
 * lost makes the row come back, and the look finds what that create had made. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "publish/writing.h"

static void find(struct writing *w);

static void on_recorded(struct store_op *op)
{
	struct writing *w = CONTAINER_OF(op, struct writing, put.op);

	if (op->err) {
		claimed_retry(&w->claimed, &op->why, 0);
		return;
	}
	w->claimed.is_uncertain = false;
	claimed_give_back(&w->claimed, OUTBOX_OK, 0, NULL);
}

static void record(struct writing *w)
{
	w->put = (struct put_comment){.op = {.done = on_recorded},
	    .repository = w->claimed.row.target,
	    .number = w->claimed.row.number,
	    .comment_id = w->comment_id,
	    .change_id = w->change_id,
	    .written_ms = clock_wall_ms(),
	    .has_red_written = w->has_red};
	memcpy(w->put.body_hash, w->text.hash, SHA256_BYTES);
	if (store_put_comment(w->claimed.p->deps.store, &w->put)) {
		/* it is written and not recorded: the next try writes the same again */
		claimed_give_back_soon(&w->claimed);
	}
}

static void log_written(const struct writing *w, const char *ev)
{
	log_event(LOG_INFO, ev, LOG_S("repository", w->claimed.row.target),
	    LOG_I("pr", w->claimed.row.number), LOG_I("comment", w->comment_id),
	    LOG_I("bytes", (int64_t)w->text.bytes),
	    LOG_I("rows_left_out", (int64_t)w->text.n_rows_left_out));
}

static void on_created(struct github_call *call)
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
	record(w);
}

static void on_updated(struct github_call *call)
{
	struct writing *w = call->owner;
	bool is_gone = call->result.status == 404 || call->result.status == 410;

	w->claimed.on_wire = NULL;
	if (call->result.err && is_gone && !w->has_searched) {
		find(w);
		return;
	}
	if (call->result.err) {
		claimed_fail(&w->claimed, &call->result);
		return;
	}
	w->claimed.p->counters.n_edited++;
	log_written(w, "comment_edited");
	record(w);
}

static void update(struct writing *w)
{
	if (!claimed_begin_call(&w->claimed, &w->call, on_updated, w))
		return;
	w->claimed.is_uncertain = true;
	github_comment_update(w->claimed.p->deps.github, &w->call, w->claimed.row.target,
	    w->comment_id, w->text.markdown);
}

static void on_found(struct github_call *call)
{
	struct writing *w = call->owner;

	w->claimed.on_wire = NULL;
	if (call->result.err) {
		claimed_fail(&w->claimed, &call->result);
		return;
	}
	w->comment_id = w->search.comment_id;
	if (w->comment_id > 0) {
		update(w);
		return;
	}
	if (!claimed_begin_call(&w->claimed, &w->call, on_created, w))
		return;
	w->claimed.is_uncertain = true;
	github_comment_create(w->claimed.p->deps.github, &w->call, w->claimed.row.target,
	    w->claimed.row.number, w->text.markdown);
}

static void find(struct writing *w)
{
	if (!claimed_begin_call(&w->claimed, &w->search.call, on_found, w))
		return;
	w->has_searched = true;
	github_comment_find(w->claimed.p->deps.github, &w->search, w->claimed.row.target,
	    w->claimed.row.number, COMMENT_MARKER);
}

void writing_write(struct writing *w)
{
	if (w->comment_id > 0)
		update(w);
	else
		find(w);
}
