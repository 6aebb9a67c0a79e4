#include "logs/logs_internal.h"

enum { READ_MAX_BYTES = 1 << 20 };

static size_t bucket_of(int64_t job_id) { return (uint64_t)job_id % LOG_BUCKETS; }

/* ---- life ---- */

int logs_open(struct loop *l, const char *state_dir, struct logs **ret, struct error *e)
{
	struct logs *s = xcalloc(1, sizeof(*s));
	int rc = log_folder_open(state_dir, &s->folder, e);

	if (rc) {
		log_folder_close(&s->folder);
		free(s);
		return rc;
	}
	s->loop = l;
	s->packer = packer_new(s);
	*ret = s;
	return 0;
}

void logs_grow_in(struct logs *s, struct store *store) { s->growing = growing_new(s, store); }

int logs_check_place(const struct log_place_options *o, struct error *e)
{
	return o->folder ? place_folder_check(o->folder, e) : o->s3 ? place_s3_check(o, e) : 0;
}

int logs_keep_in(struct logs *s, const struct log_place_options *o, struct http_client *client, struct error *e)
{
	struct log_place *place = NULL;
	int rc = 0;

	if (o->folder)
		rc = place_folder_new(s, o->folder, &place, e);
	else if (o->s3)
		place = place_s3_new(s->loop, o, client);
	else if (o->is_database)
		place = growing_place(s->growing);
	if (place)
		s->finished = finished_new(s, place);
	if (s->growing && place)
		growing_move_next(s->growing);
	return rc;
}

void logs_use_keys(struct logs *s, const struct log_place_options *o)
{
	struct log_place *place = s->finished ? finished_place(s->finished) : NULL;

	if (place && place->use_keys && o->s3)
		place->use_keys(place, o);
}

static void logs_free(void *p)
{
	struct logs *s = p;
	void (*on_closed)(void *owner) = s->on_closed;
	void *owner = s->closed_owner;

	s->is_freed_soon = false;
	if (s->n_held)
		return; /* a call came meanwhile and has to be refused first */
	for (size_t i = 0; i < LOG_BUCKETS; i++)
		assert(LIST_EMPTY(&s->watches[i]) && LIST_EMPTY(&s->lanes[i]));
	packer_free(s->packer);
	finished_free(s->finished);
	growing_free(s->growing);
	log_folder_close(&s->folder);
	free(s);
	on_closed(owner);
}

void logs_hold(struct logs *s) { s->n_held++; }

void logs_release(struct logs *s)
{
	assert(s->n_held > 0);
	if (--s->n_held || !s->is_closing || s->is_freed_soon)
		return;
	s->is_freed_soon = true;
	loop_reap(s->loop, logs_free, s);
}

void logs_close(struct logs *s, void (*on_closed)(void *owner), void *owner)
{
	logs_hold(s);
	s->is_closing = true;
	s->on_closed = on_closed;
	s->closed_owner = owner;
	packer_stop(s->packer);
	if (s->finished)
		finished_stop(s->finished);
	if (s->growing)
		growing_stop(s->growing);
	logs_release(s);
}

const struct logs_stats *logs_stats(const struct logs *s) { return &s->stats; }

void logs_failed(struct logs *s, const char *ev, int64_t job_id, const struct error *why)
{
	int64_t n_skipped;

	s->stats.n_failures++;
	if (log_limit_pass(&s->failed_lines, loop_now_ms(s->loop), &n_skipped))
		log_event(LOG_ERROR, ev, LOG_I("job", job_id), LOG_S("why", why->text), LOG_I("more", n_skipped));
}

/* ---- work in each job's order ---- */

static void run_in_pool(struct pool_work *w)
{
	struct log_task *t = CONTAINER_OF(w, struct log_task, pool);

	t->work(t);
}

static void after_pool(struct pool_work *w)
{
	struct log_task *t = CONTAINER_OF(w, struct log_task, pool);
	struct log_lane *lane = t->lane;
	struct logs *s = t->logs;

	STAILQ_REMOVE_HEAD(&lane->tasks, link);
	if (STAILQ_EMPTY(&lane->tasks)) {
		LIST_REMOVE(lane, link);
		free(lane);
	} else {
		pool_submit(s->loop, &STAILQ_FIRST(&lane->tasks)->pool);
	}
	t->after(t);
	logs_release(s);
}

static void after_refusal(void *p)
{
	struct log_task *t = p;
	struct logs *s = t->logs;

	t->after(t);
	logs_release(s);
}

void logs_submit(struct logs *s, struct log_task *t)
{
	struct log_lane *lane;

	assert(t->job_id > 0);
	t->logs = s;
	logs_hold(s);
	if (s->is_closing) {
		t->is_refused = true;
		loop_reap(s->loop, after_refusal, t);
		return;
	}
	t->pool = (struct pool_work){.work = run_in_pool, .after = after_pool};
	LIST_FOREACH (lane, &s->lanes[bucket_of(t->job_id)], link)
		if (lane->job_id == t->job_id)
			break;
	if (!lane) {
		lane = xcalloc(1, sizeof(*lane));
		lane->job_id = t->job_id;
		STAILQ_INIT(&lane->tasks);
		LIST_INSERT_HEAD(&s->lanes[bucket_of(t->job_id)], lane, link);
		pool_submit(s->loop, &t->pool);
	}
	t->lane = lane;
	STAILQ_INSERT_TAIL(&lane->tasks, t, link);
}

/* ---- watching ---- */

void logs_watch(struct logs *s, struct log_watch *w) { LIST_INSERT_HEAD(&s->watches[bucket_of(w->job_id)], w, link); }

void logs_unwatch(struct log_watch *w)
{
	if (!w->link.le_prev)
		return;
	LIST_REMOVE(w, link);
	w->link.le_prev = NULL;
}

void logs_notify_watches(struct logs *s, int64_t job_id)
{
	struct log_watches *watches = &s->watches[bucket_of(job_id)], rest = LIST_HEAD_INITIALIZER(rest);
	struct log_watch *w;

	/* The list is moved aside first, so that on_change may remove any watch or add one. */
	while ((w = LIST_FIRST(watches)) != NULL) {
		LIST_REMOVE(w, link);
		LIST_INSERT_HEAD(&rest, w, link);
	}
	while ((w = LIST_FIRST(&rest)) != NULL) {
		LIST_REMOVE(w, link);
		LIST_INSERT_HEAD(watches, w, link);
		if (w->job_id == job_id)
			w->on_change(w);
	}
}

/* ---- appending ---- */

struct append {
	struct log_task task;
	struct log_append *a;
	struct log_state before, after;
};

static void append_work(struct log_task *t)
{
	struct append *x = CONTAINER_OF(t, struct append, task);

	x->a->err = log_file_append(&t->logs->folder, x->a, &x->before, &x->after, &x->a->why);
}

/* Others are the caller's mistakes, or mean that the logs are closing. */
static bool is_place_error(int err)
{
	return (store_is_passing(err) && err != ERR_BUSY) || err == ERR_CORRUPT || err == ERR_NETWORK ||
	       err == ERR_REFUSED;
}

void log_append_end(struct logs *s, struct log_append *a, const struct log_state *before, const struct log_state *after)
{
	bool is_completed = after->is_complete && !before->is_complete;
	int64_t grown = after->end - before->end;

	a->end = after->end;
	a->is_complete = after->is_complete;
	s->stats.n_appends++;
	s->stats.n_bytes_in += grown;
	if (is_place_error(a->err))
		logs_failed(s, "log_not_written", a->job_id, &a->why);
	if (is_completed && !s->is_closing && s->growing)
		growing_move_next(s->growing);
	else if (is_completed && !s->is_closing)
		packer_add(s->packer, a->job_id);
	if (grown > 0 || is_completed)
		logs_notify_watches(s, a->job_id);
	a->done(a);
}

static void append_after(struct log_task *t)
{
	struct append *x = CONTAINER_OF(t, struct append, task);
	const struct append ended = *x;
	bool is_refused = t->is_refused;

	free(x);
	if (is_refused)
		ended.a->err = error_set(&ended.a->why, ERR_CLOSING, "%s", err_text(ERR_CLOSING));
	log_append_end(ended.task.logs, ended.a, &ended.before, &ended.after);
}

void logs_append(struct logs *s, struct log_append *a)
{
	struct append *x;

	a->err = 0;
	a->why = (struct error){0};
	if (s->growing) {
		growing_append(s->growing, a);
		return;
	}
	x = xcalloc(1, sizeof(*x));
	x->a = a;
	x->task = (struct log_task){.job_id = a->job_id, .work = append_work, .after = append_after};
	logs_submit(s, &x->task);
}

/* ---- reading ---- */

static void read_work(struct log_task *t)
{
	struct log_reading *x = CONTAINER_OF(t, struct log_reading, task);
	struct log_read *r = x->r;
	size_t max = r->max_bytes < READ_MAX_BYTES ? r->max_bytes : READ_MAX_BYTES;

	r->bytes = xmalloc(max + 1);
	r->err = log_file_read(&t->logs->folder, r->job_id, r->offset, r->bytes, max, &r->n, &x->state, &x->why);
	if (r->err)
		FREE_AND_NULL(r->bytes);
}

void log_reading_end(struct logs *s, struct log_reading *x)
{
	struct log_read *r = x->r;

	r->end = x->state.end;
	r->is_complete = x->state.is_complete;
	s->stats.n_reads++;
	if (is_place_error(r->err))
		logs_failed(s, "log_not_read", r->job_id, &x->why);
	free(x);
	r->done(r);
}

static void read_after(struct log_task *t)
{
	struct log_reading *x = CONTAINER_OF(t, struct log_reading, task);
	struct logs *s = t->logs;
	struct log_place *place = s->finished ? finished_place(s->finished) : NULL;

	if (t->is_refused)
		x->r->err = ERR_CLOSING;
	/* The database has said already that it has no such log. */
	if (x->r->err == ERR_NOT_FOUND && place && !(s->growing && place == growing_place(s->growing)))
		finished_read(s->finished, x, place);
	else
		log_reading_end(t->logs, x);
}

void log_reading_of_file(struct logs *s, struct log_reading *x)
{
	x->task = (struct log_task){.job_id = x->r->job_id, .work = read_work, .after = read_after};
	logs_submit(s, &x->task);
}

void logs_read(struct logs *s, struct log_read *r)
{
	struct log_reading *x = xcalloc(1, sizeof(*x));

	r->err = 0;
	r->bytes = NULL;
	r->n = 0;
	x->r = r;
	x->task.logs = s;
	if (s->growing)
		growing_read(s->growing, x);
	else
		log_reading_of_file(s, x);
}

/* ---- dropping old logs: one subfolder after the other is listed, and the age of each old log is checked again in
 * its job's order, because a piece may be written to it meanwhile. Then those in the database, and the objects of the other place, which
 * are listed in the order of their ids, which is nearly that of their age, up to the first list in which none is old ---- */

struct dropping {
	struct logs *logs;
	int64_t before_ms;
	int subfolder;
	struct pool_work listing;
	struct log_ids ids;
	size_t at;
	struct log_task task;
	bool is_dropped;
	int err;
	struct error why;
	int64_t n_dropped;
	struct growing_drop rows;
	struct log_request list, removal;
	size_t n_old; /* of the list */
	void (*done)(int64_t n, void *owner);
	void *owner;
};

static void end_dropping(struct dropping *d)
{
	const struct dropping ended = *d;

	free(d);
	ended.done(ended.n_dropped, ended.owner);
	logs_release(ended.logs);
}

static void drop_log(struct log_task *t)
{
	struct dropping *d = CONTAINER_OF(t, struct dropping, task);

	d->err = log_file_drop(&d->logs->folder, t->job_id, d->before_ms, &d->is_dropped, &d->why);
}

static void continue_dropping(void *p);

static void after_drop(struct log_task *t)
{
	struct dropping *d = CONTAINER_OF(t, struct dropping, task);

	if (t->is_refused) {
		FREE_AND_NULL(d->ids.list);
		end_dropping(d);
		return;
	}
	d->n_dropped += d->is_dropped;
	if (d->err)
		logs_failed(d->logs, "log_not_dropped", t->job_id, &d->why);
	continue_dropping(d);
}

static void list_subfolder(struct pool_work *w)
{
	struct dropping *d = CONTAINER_OF(w, struct dropping, listing);

	d->subfolder = log_folder_next(&d->logs->folder, d->subfolder);
	if (d->subfolder < LOG_SUBFOLDERS)
		d->err = log_folder_list(
		    &d->logs->folder, d->subfolder, d->before_ms < 0 ? 0 : d->before_ms, &d->ids, &d->why);
}

static void after_list(struct pool_work *w)
{
	struct dropping *d = CONTAINER_OF(w, struct dropping, listing);

	d->subfolder++;
	if (d->err)
		logs_failed(d->logs, "logs_not_read", 0, &d->why);
	continue_dropping(d);
}

/* ---- in the other place ---- */

static void list_objects(struct dropping *d, int64_t after);

static void remove_next_object(struct dropping *d);

static void on_object_removed(struct log_request *r)
{
	struct dropping *d = CONTAINER_OF(r, struct dropping, removal);

	d->n_dropped += !r->err;
	finished_dropped(d->logs->finished, r->job_id);
	if (r->err && r->err != ERR_NOT_FOUND) {
		if (r->err != ERR_CLOSING)
			logs_failed(d->logs, "log_not_dropped", r->job_id, &r->why);
		/* The others would fail, too. */
		d->at = d->list.n_objects;
		d->n_old = 0;
	}
	remove_next_object(d);
}

static void remove_next_object(struct dropping *d)
{
	struct log_place *place = finished_place(d->logs->finished);

	while (d->at < d->list.n_objects && !d->logs->is_closing) {
		const struct log_object *o = &d->list.objects[d->at++];

		if (o->written_ms >= d->before_ms)
			continue;
		d->n_old++;
		d->removal = (struct log_request){.op = LOG_REMOVE, .job_id = o->job_id, .done = on_object_removed};
		place->start(place, &d->removal);
		return;
	}
	int64_t last = d->n_old ? d->list.objects[d->list.n_objects - 1].job_id : 0;
	free(d->list.objects);
	if (last && !d->logs->is_closing)
		list_objects(d, last);
	else
		end_dropping(d);
}

static void on_objects(struct log_request *r)
{
	struct dropping *d = CONTAINER_OF(r, struct dropping, list);

	if (r->err && r->err != ERR_CLOSING)
		logs_failed(d->logs, "logs_not_listed", 0, &r->why);
	remove_next_object(d);
}

static void list_objects(struct dropping *d, int64_t after)
{
	struct log_place *place = d->logs->finished ? finished_place(d->logs->finished) : NULL;

	d->at = d->n_old = 0;
	d->list = (struct log_request){.op = LOG_LIST, .job_id = after, .done = on_objects};
	if (place && !d->logs->is_closing)
		place->start(place, &d->list);
	else
		end_dropping(d);
}

static void on_rows_dropped(struct growing_drop *rows)
{
	struct dropping *d = CONTAINER_OF(rows, struct dropping, rows);

	d->n_dropped += rows->op.n_dropped;
	if (rows->op.op.err && rows->op.op.err != ERR_CLOSING)
		logs_failed(d->logs, "logs_not_dropped", 0, &rows->op.op.why);
	list_objects(d, 0);
}

static void drop_rows(struct dropping *d)
{
	if (!d->logs->growing || d->logs->is_closing) {
		list_objects(d, 0);
		return;
	}
	d->rows = (struct growing_drop){.op.before_ms = d->before_ms, .done = on_rows_dropped};
	growing_drop_older(d->logs->growing, &d->rows);
}

/* Drops the next log of the list; at its end, lists the next subfolder. */
static void continue_dropping(void *p)
{
	struct dropping *d = p;

	d->why = (struct error){0};
	if (d->at < d->ids.n) {
		d->is_dropped = false;
		d->task = (struct log_task){.job_id = d->ids.list[d->at++], .work = drop_log, .after = after_drop};
		logs_submit(d->logs, &d->task);
		return;
	}
	FREE_AND_NULL(d->ids.list);
	if (d->subfolder >= LOG_SUBFOLDERS || d->logs->is_closing) {
		drop_rows(d);
		return;
	}
	d->ids.n = d->at = 0;
	d->listing = (struct pool_work){.work = list_subfolder, .after = after_list};
	pool_submit(d->logs->loop, &d->listing);
}

void logs_drop_older(struct logs *s, int64_t before_wall_ms, void (*done)(int64_t n, void *owner), void *owner)
{
	struct dropping *d = xcalloc(1, sizeof(*d));

	d->logs = s;
	d->before_ms = before_wall_ms;
	d->done = done;
	d->owner = owner;
	logs_hold(s);
	packer_retry(s->packer);
	if (s->growing)
		growing_move_next(s->growing);
	loop_reap(s->loop, continue_dropping, d);
}
