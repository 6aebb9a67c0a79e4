/* Finished logs in another place than where they grew.
 *
 * Moving a log of state_dir (growing.c moves those of the database): it is compressed here, then put into the place, then removed here. So it is readable at every moment, and a
 * process that dies repeats the last step only: the same object is put once more. Logs that wait are files (JOB.log.zst), and
 * the next start finds them.
 *
 * Reading: one range for the table at the object's end, one range for the frames. The tables of the last logs are kept, each
 * with a few of the frames that follow the last ones, because a reader of a long log asks for one piece after the other. */
#include "logs/logs_internal.h"

#include "logs/seekable.h"

enum {
	KNOWN_LOGS = 16,
	AHEAD_BYTES = 256 * 1024, /* compressed; whole frames, at least one */
	READ_MAX_BYTES = 1 << 20,
	RETRY_MS = 1000,
	RETRY_MAX_MS = 5 * 60 * 1000,
};

/* A log in the other place. The readings that use it and the list of known ones count. */
struct known_log {
	int64_t job_id;
	int n_refs;
	int64_t used;
	struct seekable_index index;
	int64_t object_bytes; /* of the object with this index */
	char *ahead;          /* a part of the object */
	int64_t ahead_at;
	size_t n_ahead;
};

struct finished {
	struct logs *logs;
	struct log_place *place;
	struct known_log *known[KNOWN_LOGS];
	int64_t n_uses;

	struct log_ids waiting; /* from `at` on; failed ones come last */
	size_t at;
	int64_t n_counted;   /* of them, in the figures */
	struct timer *retry; /* runs after a failure: nothing is moved meanwhile */
	int n_failed;        /* since the last success */
	bool is_busy;        /* a task has the fields below */
	bool is_stopped;
	struct pool_work searching;
	struct log_ids found; /* by the search */
	int64_t job_id;
	struct log_task task;
	struct log_request put;
	int err;
	struct error why;
};

/* ---- names ---- */

const char *log_object_name(int64_t job_id, char out[LOG_OBJECT_NAME_BYTES])
{
	snprintf(out, LOG_OBJECT_NAME_BYTES, "%09lld/%lld.log.zst", (long long)(job_id / JOBS_OF_A_FOLDER),
	    (long long)job_id);
	return out;
}

int64_t log_object_job(const char *name)
{
	char digits[24], whole[LOG_OBJECT_NAME_BYTES];
	const char *slash = strchr(name, '/');
	int64_t id;

	snprintf(
	    digits, sizeof(digits), "%.*s", slash ? (int)strspn(slash + 1, "0123456789") : 0, slash ? slash + 1 : "");
	return parse_int64(digits, &id) == 0 && id > 0 && str_eq(log_object_name(id, whole), name) ? id : 0;
}

/* ---- moving ---- */

static void move_next(struct finished *f);

static void end_moving(struct finished *f)
{
	struct logs *s = f->logs;

	if (f->put.fd >= 0)
		close(f->put.fd);
	f->is_busy = false;
	if (!f->err) {
		s->stats.n_moved++;
		f->n_failed = 0;
	} else if (f->err != ERR_NOT_FOUND && f->err != ERR_CLOSING) {
		int64_t wait = f->n_failed < 16 ? RETRY_MS << f->n_failed : RETRY_MAX_MS;

		logs_failed(s, "log_not_moved", f->job_id, &f->why);
		*ARRAY_PUSH(f->waiting.list, f->waiting.n) = f->job_id;
		f->n_failed++;
		wait = wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS;
		if (!f->is_stopped) /* at most a quarter earlier, so that several daemons do not come at once */
			timer_start(f->retry, wait - (int64_t)((double)wait / 4 * random_fraction()));
	}
	move_next(f);
	logs_release(s);
}

static void forget_work(struct log_task *t)
{
	struct finished *f = CONTAINER_OF(t, struct finished, task);

	f->err = log_file_forget(&t->logs->folder, t->job_id, &f->why);
}

static void after_forget(struct log_task *t)
{
	struct finished *f = CONTAINER_OF(t, struct finished, task);

	if (t->is_refused)
		f->err = ERR_CLOSING;
	end_moving(f);
}

static void on_put(struct log_request *r)
{
	struct finished *f = CONTAINER_OF(r, struct finished, put);

	f->err = r->err;
	f->why = r->why;
	if (f->err) {
		end_moving(f);
		return;
	}
	f->task = (struct log_task){.job_id = f->job_id, .work = forget_work, .after = after_forget};
	logs_submit(f->logs, &f->task);
}

static void open_work(struct log_task *t)
{
	struct finished *f = CONTAINER_OF(t, struct finished, task);

	f->err = log_file_open_packed(&t->logs->folder, t->job_id, &f->put.fd, &f->why);
}

static void after_open(struct log_task *t)
{
	struct finished *f = CONTAINER_OF(t, struct finished, task);

	if (t->is_refused || (!f->err && f->is_stopped))
		f->err = ERR_CLOSING;
	if (f->err)
		end_moving(f);
	else
		f->place->start(f->place, &f->put);
}

static void move_next(struct finished *f)
{
	bool is_idle = !f->is_busy && !f->is_stopped && !timer_is_running(f->retry);

	if (f->at == f->waiting.n)
		f->at = f->waiting.n = 0;
	f->logs->stats.n_to_move += (int64_t)(f->waiting.n - f->at) - f->n_counted;
	f->n_counted = (int64_t)(f->waiting.n - f->at);
	if (!is_idle || f->at == f->waiting.n)
		return;
	f->is_busy = true;
	f->job_id = f->waiting.list[f->at++];
	f->err = 0;
	f->why = (struct error){0};
	f->put = (struct log_request){.op = LOG_PUT, .job_id = f->job_id, .fd = -1, .done = on_put};
	f->task = (struct log_task){.job_id = f->job_id, .work = open_work, .after = after_open};
	logs_hold(f->logs);
	logs_submit(f->logs, &f->task);
}

static void on_retry(struct timer *t) { move_next(timer_owner(t)); }

void finished_add(struct finished *f, int64_t job_id)
{
	*ARRAY_PUSH(f->waiting.list, f->waiting.n) = job_id;
	move_next(f);
}

/* Logs that an earlier process left, or that were compressed before the place was configured. */
static void search_work(struct pool_work *w)
{
	struct finished *f = CONTAINER_OF(w, struct finished, searching);

	for (int i = 0; i < LOG_SUBFOLDERS && !f->err; i++)
		f->err = log_folder_list(&f->logs->folder, i, LOGS_TO_MOVE, &f->found, &f->why);
}

static void after_search(struct pool_work *w)
{
	struct finished *f = CONTAINER_OF(w, struct finished, searching);
	struct logs *s = f->logs;

	if (f->err)
		logs_failed(s, "logs_not_read", 0, &f->why);
	for (size_t i = 0; i < f->found.n; i++)
		*ARRAY_PUSH(f->waiting.list, f->waiting.n) = f->found.list[i];
	FREE_AND_NULL(f->found.list);
	f->is_busy = false;
	move_next(f);
	logs_release(s);
}

/* ---- reading ---- */

static void release_known(struct known_log *k)
{
	if (!k || --k->n_refs)
		return;
	seekable_index_release(&k->index);
	FREE_ALL(k->ahead, k);
}

/* The place in the list for this job: its own, or that of the log that was not used for the longest time. */
static struct known_log **known_slot(struct finished *f, int64_t job_id)
{
	struct known_log **oldest = &f->known[0];

	for (size_t i = 0; i < KNOWN_LOGS; i++) {
		struct known_log **k = &f->known[i];

		if (*k && (*k)->job_id == job_id)
			return k;
		if (*oldest && (!*k || (*k)->used < (*oldest)->used))
			oldest = k;
	}
	return oldest;
}

void finished_dropped(struct finished *f, int64_t job_id)
{
	struct known_log **slot = known_slot(f, job_id);

	if (!*slot || (*slot)->job_id != job_id)
		return;
	release_known(*slot);
	*slot = NULL;
}

static void read_table(struct log_reading *x);

static void end_far_reading(struct log_reading *x, int err)
{
	struct finished *f = x->task.logs->finished;
	struct known_log *k = x->log, **slot = known_slot(f, x->r->job_id);
	bool is_outdated = x->was_known && (err == ERR_CORRUPT || err == ERR_NOT_FOUND);

	x->log = NULL;
	FREE_AND_NULL(x->request.bytes);
	if (is_outdated && *slot == k)
		finished_dropped(f, x->r->job_id);
	release_known(k);
	if (is_outdated) { /* another daemon has put the object once more, or it was dropped */
		FREE_AND_NULL(x->r->bytes);
		read_table(x);
		return;
	}
	x->r->err = err;
	if (err)
		FREE_AND_NULL(x->r->bytes);
	log_reading_end(f->logs, x);
	logs_release(f->logs);
}

/* Decodes the frames in request.bytes, which are this reading's own. In the pool. */
static void decode_work(struct log_task *t)
{
	struct log_reading *x = CONTAINER_OF(t, struct log_reading, task);
	struct log_read *r = x->r;
	const struct seekable_source from = {.fd = -1, .p = x->request.bytes, .n = x->request.n, .at = x->request.at};
	size_t max = r->max_bytes < READ_MAX_BYTES ? r->max_bytes : READ_MAX_BYTES;

	r->bytes = xmalloc(max + 1);
	r->err = seekable_read(&from, &x->log->index, r->offset, r->bytes, max, &r->n);
	if (r->err)
		error_set(&x->why, r->err, "the log's object is damaged: Outpost did not write it like this");
}

static void after_decode(struct log_task *t)
{
	struct log_reading *x = CONTAINER_OF(t, struct log_reading, task);

	end_far_reading(x, t->is_refused ? ERR_CLOSING : x->r->err);
}

/* Gives the reading the frames from its first one on, a copy of those that are known. */
static void decode_ahead(struct log_reading *x, const struct seekable_frame *first)
{
	const struct known_log *k = x->log;
	struct logs *s = x->task.logs;
	size_t skip = (size_t)(first->at - k->ahead_at);

	x->request.at = first->at;
	x->request.n = k->n_ahead - skip;
	x->request.bytes = xmemdup(k->ahead + skip, x->request.n);
	x->task = (struct log_task){.job_id = x->r->job_id, .work = decode_work, .after = after_decode};
	logs_submit(s, &x->task);
}

static void on_frames(struct log_request *r)
{
	struct log_reading *x = CONTAINER_OF(r, struct log_reading, request);
	struct known_log *k = x->log;

	if (!r->err && r->object_bytes != k->object_bytes)
		r->err = error_set(&r->why, ERR_CORRUPT, "the log's object changed while Outpost read it");
	if (r->err) {
		x->why = r->why;
		end_far_reading(x, r->err);
		return;
	}
	free(k->ahead);
	k->ahead = r->bytes;
	k->ahead_at = r->at;
	k->n_ahead = r->n;
	decode_ahead(x, &k->index.frames[seekable_frame_with(&k->index, x->r->offset)]);
}

static void read_frames(struct finished *f, struct log_reading *x)
{
	struct known_log *k = x->log;
	const struct seekable_index *index = &k->index;
	size_t i = seekable_frame_with(index, x->r->offset);
	const struct seekable_frame *first = &index->frames[i];
	size_t n = 0;

	k->used = ++f->n_uses;
	x->state = (struct log_state){index->text_bytes, true};
	if (x->r->offset < 0 || x->r->offset > index->text_bytes) {
		end_far_reading(x, error_set(&x->why, ERR_RANGE, "offset: past the end of the log"));
	} else if (x->r->max_bytes == 0 || i == index->n_frames) {
		end_far_reading(x, 0);
	} else if (k->ahead && first->at >= k->ahead_at &&
		   first->at + first->bytes <= k->ahead_at + (int64_t)k->n_ahead) {
		decode_ahead(x, first);
	} else {
		do
			n += index->frames[i++].bytes;
		while (i < index->n_frames && n + index->frames[i].bytes <= AHEAD_BYTES);
		x->request = (struct log_request){
		    .op = LOG_READ, .job_id = x->r->job_id, .at = first->at, .n = n, .done = on_frames};
		x->place->start(x->place, &x->request);
	}
}

static void on_table(struct log_request *r)
{
	struct log_reading *x = CONTAINER_OF(r, struct log_reading, request);
	struct finished *f = x->task.logs->finished;
	struct known_log *k = xcalloc(1, sizeof(*k)), **slot = known_slot(f, r->job_id);
	int rc = r->err;

	k->job_id = r->job_id;
	k->object_bytes = r->object_bytes;
	k->n_refs = 1;
	x->log = k;
	x->why = r->why;
	if (!rc)
		rc = seekable_index_parse(r->bytes, r->n, r->object_bytes, &k->index);
	if (rc) {
		error_set(&x->why, rc, "the log's object is damaged: Outpost did not write it like this");
		end_far_reading(x, rc);
		return;
	}
	FREE_AND_NULL(r->bytes);
	release_known(*slot);
	*slot = k;
	k->n_refs++;
	read_frames(f, x);
}

static void read_table(struct log_reading *x)
{
	x->was_known = false;
	x->why = (struct error){0};
	x->request = (struct log_request){
	    .op = LOG_READ, .job_id = x->r->job_id, .at = -1, .n = SEEKABLE_END_BYTES, .done = on_table};
	x->place->start(x->place, &x->request);
}

void finished_read(struct finished *f, struct log_reading *x, struct log_place *place)
{
	struct known_log *k = *known_slot(f, x->r->job_id);

	logs_hold(f->logs);
	x->place = place;
	x->r->err = 0;
	x->why = (struct error){0};
	if (f->is_stopped) {
		end_far_reading(x, ERR_CLOSING);
	} else if (k && k->job_id == x->r->job_id) {
		x->log = k;
		k->n_refs++;
		x->was_known = true;
		read_frames(f, x);
	} else {
		read_table(x);
	}
}

/* ---- life ---- */

struct log_place *finished_place(struct finished *f) { return f->place; }

struct finished *finished_new(struct logs *s, struct log_place *place)
{
	struct finished *f = xcalloc(1, sizeof(*f));

	f->logs = s;
	f->place = place;
	f->retry = timer_new(s->loop, on_retry, f);
	f->searching = (struct pool_work){.work = search_work, .after = after_search};
	f->is_busy = true;
	logs_hold(s);
	pool_submit(s->loop, &f->searching);
	return f;
}

void finished_stop(struct finished *f)
{
	f->is_stopped = true;
	timer_stop(f->retry);
	if (f->place->stop)
		f->place->stop(f->place);
}

void finished_free(struct finished *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < KNOWN_LOGS; i++)
		release_known(f->known[i]);
	timer_close(f->retry);
	if (f->place->free)
		f->place->free(f->place);
	FREE_ALL(f->waiting.list, f);
}
