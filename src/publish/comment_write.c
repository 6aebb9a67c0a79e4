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
		writing_retry(w, &op->why, 0);
		return;
	}
	w->is_uncertain = false;
	writing_give_back(w, OUTBOX_OK, 0, NULL);
}

static void record(struct writing *w)
{
	w->put = (struct put_comment){.op = {.done = on_recorded},
	    .repository = w->row.target,
	    .number = w->row.number,
	    .comment_id = w->comment_id,
	    .written_ms = clock_wall_ms(),
	    .has_red_written = w->has_red};
	memcpy(w->put.body_hash, w->text.hash, SHA256_BYTES);
	if (store_put_comment(w->p->deps.store, &w->put)) {
		/* it is written and not recorded: the next try writes the same again */
		writing_give_back(w, OUTBOX_NOT_YET, clock_wall_ms() + 1000, NULL);
	}
}

static void log_written(const struct writing *w, const char *ev)
{
	log_event(LOG_INFO, ev, LOG_S("repository", w->row.target), LOG_I("pr", w->row.number),
	    LOG_I("comment", w->comment_id), LOG_I("bytes", (int64_t)w->text.bytes),
	    LOG_I("rows_left_out", (int64_t)w->text.n_rows_left_out));
}

static void on_created(struct github_call *call)
{
	struct writing *w = call->owner;

	w->on_wire = NULL;
	if (call->result.err) {
		writing_fail(w, &call->result);
		return;
	}
	/* without an id it is found by the marker next time */
	w->comment_id = json_get_int(call->answer, "id", 0);
	w->p->counters.n_created++;
	log_written(w, "comment_created");
	record(w);
}

static void on_updated(struct github_call *call)
{
	struct writing *w = call->owner;
	bool is_gone = call->result.status == 404 || call->result.status == 410;

	w->on_wire = NULL;
	if (call->result.err && is_gone && !w->has_searched) {
		find(w);
		return;
	}
	if (call->result.err) {
		writing_fail(w, &call->result);
		return;
	}
	w->p->counters.n_edited++;
	log_written(w, "comment_edited");
	record(w);
}

static void update(struct writing *w)
{
	if (!writing_begin_call(w, &w->call, on_updated))
		return;
	w->is_uncertain = true;
	github_comment_update(
	    w->p->deps.github, &w->call, w->row.target, w->comment_id, w->text.markdown);
}

static void on_found(struct github_call *call)
{
	struct writing *w = call->owner;

	w->on_wire = NULL;
	if (call->result.err) {
		writing_fail(w, &call->result);
		return;
	}
	w->comment_id = w->search.comment_id;
	if (w->comment_id > 0) {
		update(w);
		return;
	}
	if (!writing_begin_call(w, &w->call, on_created))
		return;
	w->is_uncertain = true;
	github_comment_create(
	    w->p->deps.github, &w->call, w->row.target, w->row.number, w->text.markdown);
}

static void find(struct writing *w)
{
	if (!writing_begin_call(w, &w->search.call, on_found))
		return;
	w->has_searched = true;
	github_comment_find(
	    w->p->deps.github, &w->search, w->row.target, w->row.number, COMMENT_MARKER);
}

void writing_write(struct writing *w)
{
	if (w->comment_id > 0)
		update(w);
	else
		find(w);
}
