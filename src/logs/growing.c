/* Logs that grow in the database (store/log_rows.h), so that each daemon appends to them and reads them.
 *
 * Moving: one finished log at a time is read, compressed into a file without a name, and put into the place of finished logs. Then its pieces
 * are dropped. The pieces stay until the place has the object, so a daemon that dies loses nothing: the claim on its log ends, and another
 * daemon moves it. Two daemons that move one log at the same time put the same object. */
#include "logs/logs_internal.h"

#include "logs/seekable.h"

enum {
	READ_MAX_BYTES = 1 << 20,
	STEP_BYTES = 4 * LOG_FRAME_BYTES, /* compressed in one turn of the pool */
	LEVEL = 3,
	CLAIM_MS = 10 * 60 * 1000,
	LOOK_EVERY_MS = 60 * 1000, /* for logs that another daemon left */
	RETRY_MS = 1000,
	RETRY_MAX_MS = 5 * 60 * 1000,
	WATCH_EVERY_MS = 1000,
};

struct growing {
	struct logs *logs;
	struct store *store;
	struct log_place *database;
	bool is_stopped;

	/* moving */
	struct timer *look; /* runs while nothing is moved */
	bool is_busy;       /* a call has the fields below */
	bool has_more;      /* a log was finished meanwhile */
	int n_failed;       /* since the last success */
	struct claim_log claim;
	struct read_log_pieces text;
	struct pool_work packing;
	struct compressor *compressor;
	struct seekable_writer writer;
	int fd;     /* -1: not open */
	int64_t at; /* the text that is compressed */
	struct log_request put;
	struct finish_log finish;
	int err;
	struct error why;

	/* watching */
	struct timer *watching;
	bool is_watching; /* a query has the fields below */
	struct read_log_ends ends;
	int64_t *ids;
};

/* ---- appending ---- */

struct growing_append {
	struct put_log_piece op;
	struct log_append *a;
	struct logs *logs;
	bool is_possible;
};

static struct log_state state_of(const struct log_row *row) { return (struct log_state){row->bytes, row->is_complete}; }

static void end_append(void *p)
{
	struct growing_append *x = p;
	struct logs *s = x->logs;
	struct log_append *a = x->a;
	struct log_state before = state_of(&x->op.before), after = state_of(&x->op.after);
	int err = x->op.op.err;

	if (err)
		a->err = error_set(&a->why, err, "%s", *x->op.op.why.text ? x->op.op.why.text : err_text(err));
	else
		a->err = log_piece_check(a, &before, &a->why);
	if (err)
		after = before;
	free(x);
	log_append_end(s, a, &before, &after);
	logs_release(s);
}

static void on_piece_put(struct store_op *op) { end_append(CONTAINER_OF(op, struct growing_append, op.op)); }

void growing_append(struct growing *g, struct log_append *a)
{
	static const struct log_state longest = {.end = INT64_MAX};
	struct growing_append *x = xcalloc(1, sizeof(*x));
	struct error ignored = {0};
	int rc = ERR_CLOSING;

	x->logs = g->logs;
	x->a = a;
	x->op = (struct put_log_piece){.op.done = on_piece_put, .job_id = a->job_id, .now_ms = clock_wall_ms()};
	/* A piece that no log can have only asks for the length. */
	if (!log_piece_check(a, &longest, &ignored)) {
		x->op.offset = a->offset;
		x->op.bytes = a->bytes;
		x->op.n = a->n;
		x->op.is_last = a->is_last;
	}
	logs_hold(g->logs);
	if (!g->is_stopped)
		rc = store_put_log_piece(g->store, &x->op);
	if (rc) {
		x->op.op.err = rc;
		loop_reap(g->logs->loop, end_append, x);
	}
}

/* ---- reading ---- */

static void end_reading(void *p)
{
	struct log_reading *x = p;
	struct logs *s = x->task.logs;
	struct log_read *r = x->r;
	const struct log_row *row = &x->pieces.row;

	r->err = x->pieces.q.err;
	if (r->err == ERR_NOT_FOUND) {
		log_reading_of_file(s, x); /* of the time before the database */
	} else if (!r->err && row->place != LOG_IN_PIECES) {
		finished_read(s->finished, x,
		    row->place == LOG_IN_OBJECT ? growing_place(s->growing) : finished_place(s->finished));
	} else {
		x->state = state_of(row);
		if (!r->err && (r->offset < 0 || r->offset > row->bytes))
			r->err = error_set(&x->why, ERR_RANGE, "offset: past the end of the log");
		else if (r->err)
			error_set(
			    &x->why, r->err, "%s", *x->pieces.q.why.text ? x->pieces.q.why.text : err_text(r->err));
		r->bytes = x->pieces.bytes;
		r->n = x->pieces.n;
		if (r->err)
			FREE_AND_NULL(r->bytes);
		log_reading_end(s, x);
	}
	logs_release(s);
}

static void on_pieces_read(struct store_query *q) { end_reading(CONTAINER_OF(q, struct log_reading, pieces.q)); }

void growing_read(struct growing *g, struct log_reading *x)
{
	const struct log_read *r = x->r;
	int rc = ERR_CLOSING;

	x->pieces = (struct read_log_pieces){.q.done = on_pieces_read,
	    .job_id = r->job_id,
	    .offset = r->offset,
	    .max = r->max_bytes < READ_MAX_BYTES ? r->max_bytes : READ_MAX_BYTES};
	logs_hold(g->logs);
	if (!g->is_stopped)
		rc = store_read_log_pieces(g->store, &x->pieces);
	if (rc) {
		x->pieces.q.err = rc;
		loop_reap(g->logs->loop, end_reading, x);
	}
}

/* ---- moving ---- */

static void release_move(struct growing *g)
{
	if (g->fd >= 0)
		close(g->fd);
	g->fd = -1;
	seekable_writer_release(&g->writer);
	g->writer = (struct seekable_writer){.fd = -1};
	FREE_AND_NULL(g->text.bytes);
}

/* The log is moved, or the attempt failed; err 0 without a log: there is none to move. */
static void end_move(struct growing *g, int err, const char *why)
{
	struct logs *s = g->logs;
	int64_t pause = LOOK_EVERY_MS;
	bool has_moved = !err && g->claim.job_id;

	release_move(g);
	g->is_busy = false;
	if (err == ERR_CONFLICT) { /* another daemon moves it */
		has_moved = true;
	} else if (err && err != ERR_CLOSING) {
		error_set(&g->why, err, "%s", why && *why ? why : err_text(err));
		logs_failed(s, "log_not_moved", g->claim.job_id, &g->why);
		pause = g->n_failed < 16 ? RETRY_MS << g->n_failed : RETRY_MAX_MS;
		pause = pause < RETRY_MAX_MS ? pause : RETRY_MAX_MS;
		pause -= (int64_t)((double)pause / 4 * random_fraction());
		g->n_failed++;
	} else if (has_moved) {
		s->stats.n_moved++;
		g->n_failed = 0;
	}
	if (g->claim.job_id && (!err || err == ERR_CONFLICT)) {
		s->stats.n_to_move--;
		g->claim.job_id = 0;
	}
	if (!g->is_stopped)
		timer_start(g->look, pause);
	if (has_moved || (!err && g->has_more))
		growing_move_next(g);
	logs_release(s);
}

static void on_finished(struct store_op *op)
{
	end_move(CONTAINER_OF(op, struct growing, finish.op), op->err, op->why.text);
}

/* The place has the text: drops the pieces. */
static void finish_move(struct growing *g, bool is_elsewhere)
{
	g->finish =
	    (struct finish_log){.op.done = on_finished, .job_id = g->claim.job_id, .is_elsewhere = is_elsewhere};
	int rc = store_finish_log(g->store, &g->finish);
	if (rc)
		end_move(g, rc, NULL);
}

static void on_moved(struct log_request *r)
{
	struct growing *g = CONTAINER_OF(r, struct growing, put);

	if (r->err)
		end_move(g, r->err, r->why.text);
	else if (finished_place(g->logs->finished) == g->database)
		end_move(g, 0, NULL); /* with its pieces */
	else
		finish_move(g, true);
}

/* Compresses the piece of text. In the pool. */
static void pack_text(struct pool_work *w)
{
	struct growing *g = CONTAINER_OF(w, struct growing, packing);
	const struct timespec written = {
	    .tv_sec = g->claim.row.written_ms / 1000, .tv_nsec = g->claim.row.written_ms % 1000 * 1000000};
	int rc = 0;

	if (g->fd < 0) {
		rc = log_file_open_unnamed(&g->logs->folder, &g->fd, &g->why);
		seekable_writer_init(&g->writer, g->fd, g->compressor);
	}
	for (size_t done = 0, n; !rc && done < g->text.n; done += n) {
		n = g->text.n - done < LOG_FRAME_BYTES ? g->text.n - done : LOG_FRAME_BYTES;
		rc = seekable_add(&g->writer, g->text.bytes + done, n);
	}
	g->at += (int64_t)g->text.n;
	if (!rc && g->at == g->claim.row.bytes) {
		rc = seekable_end(&g->writer);
		/* The object is as old as the log, so that moving it does not prolong its life. */
		if (!rc && futimens(g->fd, (struct timespec[]){written, written}))
			rc = ERR_IO;
	}
	g->err = rc;
}

static void read_text(struct growing *g);

static void after_packing(struct pool_work *w)
{
	struct growing *g = CONTAINER_OF(w, struct growing, packing);

	FREE_AND_NULL(g->text.bytes);
	if (g->is_stopped)
		g->err = ERR_CLOSING;
	if (g->err) {
		end_move(g, g->err, g->why.text);
	} else if (g->at < g->claim.row.bytes) {
		read_text(g);
	} else {
		struct log_place *place = finished_place(g->logs->finished);

		g->logs->stats.n_packed++;
		g->put = (struct log_request){.op = LOG_PUT, .job_id = g->claim.job_id, .fd = g->fd, .done = on_moved};
		place->start(place, &g->put);
	}
}

static void on_pieces_text(struct store_query *q)
{
	struct growing *g = CONTAINER_OF(q, struct growing, text.q);

	if (g->is_stopped)
		end_move(g, ERR_CLOSING, NULL);
	else if (q->err)
		end_move(
		    g, q->err == ERR_NOT_FOUND ? ERR_CONFLICT : q->err, q->why.text); /* not found: it was dropped */
	else if (g->text.row.place != LOG_IN_PIECES)
		end_move(g, ERR_CONFLICT, NULL);
	else
		pool_submit(g->logs->loop, &g->packing);
}

static void read_text(struct growing *g)
{
	g->text = (struct read_log_pieces){
	    .q.done = on_pieces_text, .job_id = g->claim.job_id, .offset = g->at, .max = STEP_BYTES};
	int rc = store_read_log_pieces(g->store, &g->text);
	if (rc)
		end_move(g, rc, NULL);
}

static void begin_move(struct growing *g)
{
	g->at = 0;
	g->why = (struct error){0};
	g->packing = (struct pool_work){.work = pack_text, .after = after_packing};
	if (g->claim.row.place == LOG_IN_PIECES)
		read_text(g);
	else
		finish_move(g, false); /* a daemon died between the two steps */
}

static void on_claimed(struct store_op *op)
{
	struct growing *g = CONTAINER_OF(op, struct growing, claim.op);

	if (op->err)
		g->claim.job_id = 0;
	g->logs->stats.n_to_move += g->claim.job_id != 0;
	if (op->err || g->is_stopped || !g->claim.job_id)
		end_move(g, g->is_stopped ? ERR_CLOSING : op->err, op->why.text);
	else
		begin_move(g);
}

void growing_move_next(struct growing *g)
{
	int rc;

	g->has_more = g->is_busy;
	if (g->is_busy || g->is_stopped || !g->logs->finished)
		return;
	/* After a failure the place rests, too. */
	if (g->n_failed && timer_is_running(g->look))
		return;
	timer_stop(g->look);
	g->is_busy = true;
	logs_hold(g->logs);
	if (g->claim.job_id) { /* it failed */
		begin_move(g);
		return;
	}
	g->claim = (struct claim_log){.op.done = on_claimed, .hold_ms = CLAIM_MS};
	rc = store_claim_log(g->store, &g->claim);
	if (rc)
		end_move(g, rc, NULL);
}

static void on_look(struct timer *t) { growing_move_next(timer_owner(t)); }

/* ---- watching: other daemons write, too ---- */

static void look_at_watched(struct timer *t);

static void on_ends(struct store_query *q)
{
	struct growing *g = CONTAINER_OF(q, struct growing, ends.q);
	struct logs *s = g->logs;

	g->is_watching = false;
	for (size_t i = 0; i < g->ends.n && !q->err && !g->is_stopped; i++) {
		struct log_watch *w;
		bool has_changed = false;

		LIST_FOREACH (w, &s->watches[(uint64_t)g->ids[i] % LOG_BUCKETS], link) {
			if (w->job_id != g->ids[i] || w->seen_end == g->ends.ends[i])
				continue;
			w->seen_end = g->ends.ends[i];
			has_changed = true;
		}
		if (has_changed)
			logs_notify_watches(s, g->ids[i]);
	}
	FREE_AND_NULL(g->ends.ends);
	FREE_AND_NULL(g->ids);
	if (!g->is_stopped)
		timer_start(g->watching, WATCH_EVERY_MS);
	logs_release(s);
}

static void look_at_watched(struct timer *t)
{
	struct growing *g = timer_owner(t);
	struct log_watch *w;
	size_t n = 0;

	for (size_t i = 0; i < LOG_BUCKETS; i++)
		LIST_FOREACH (w, &g->logs->watches[i], link)
			if (n == 0 || g->ids[n - 1] != w->job_id)
				*ARRAY_PUSH(g->ids, n) = w->job_id;
	timer_start(t, WATCH_EVERY_MS);
	if (n == 0)
		return;
	g->ends =
	    (struct read_log_ends){.q.done = on_ends, .job_ids = g->ids, .n = n, .ends = xcalloc(n, sizeof(int64_t))};
	if (store_read_log_ends(g->store, &g->ends)) {
		FREE_AND_NULL(g->ends.ends);
		FREE_AND_NULL(g->ids);
		return;
	}
	timer_stop(t);
	g->is_watching = true;
	logs_hold(g->logs);
}

/* ---- dropping ---- */

static void end_drop(void *p)
{
	struct growing_drop *d = p;
	struct logs *s = d->logs;

	d->done(d);
	logs_release(s);
}

static void on_dropped(struct store_op *op) { end_drop(CONTAINER_OF(op, struct growing_drop, op.op)); }

void growing_drop_older(struct growing *g, struct growing_drop *d)
{
	d->logs = g->logs;
	d->op.op.done = on_dropped;
	logs_hold(g->logs);
	int rc = store_drop_logs(g->store, &d->op);
	if (rc) {
		d->op.op.err = error_set(&d->op.op.why, rc, "%s", err_text(rc));
		loop_reap(g->logs->loop, end_drop, d);
	}
}

/* ---- life ---- */

struct log_place *growing_place(struct growing *g) { return g->database; }

struct growing *growing_new(struct logs *s, struct store *store)
{
	struct growing *g = xcalloc(1, sizeof(*g));

	g->logs = s;
	g->store = store;
	g->fd = -1;
	g->writer.fd = -1;
	g->database = place_database_new(s, store);
	g->compressor = compressor_new(LEVEL);
	compressor_add_checksums(g->compressor);
	g->look = timer_new(s->loop, on_look, g);
	g->watching = timer_new(s->loop, look_at_watched, g);
	timer_start(g->watching, WATCH_EVERY_MS);
	return g;
}

void growing_stop(struct growing *g)
{
	g->is_stopped = true;
	timer_stop(g->look);
	timer_stop(g->watching);
}

void growing_free(struct growing *g)
{
	if (!g)
		return;
	release_move(g);
	timer_close(g->look);
	timer_close(g->watching);
	compressor_free(g->compressor);
	place_database_free(g->database);
	free(g);
}
