/* The store as the loop sees it: opening, bounded queues, topics, figures, closing. The threads of writer.c and reader.c
 * use the database; nothing here does, except before they start. */
#include "db/store.h"

#include "db/notes.h"
#include "db/schema.h"
#include "db/seats.h"
#include "db/store_internal.h"

/* ---- retries (struct store_retry) ---- */

enum { PAUSE_FIRST_MS = 500, PAUSE_LAST_MS = 4000 };

bool store_is_passing(int err)
{
	/* ERR_DENIED: the disk was remounted read-only */
	return err == ERR_BUSY || err == ERR_FULL || err == ERR_IO || err == ERR_TIMEOUT || err == ERR_DENIED ||
	       err == ERR_AWAY || err == ERR_LOGIN || err == ERR_READ_ONLY;
}

/* Submits the operations that are due. After store_stop_retrying() all are due, and none is kept again. */
static void on_retry_timer(struct timer *t)
{
	struct store *s = timer_owner(t);
	struct store_retries waiting = TAILQ_HEAD_INITIALIZER(waiting);
	struct store_retry *r;
	int64_t now_ms = clock_mono_ms();

	TAILQ_CONCAT(&waiting, &s->retries, link);
	while ((r = TAILQ_FIRST(&waiting)) != NULL) {
		TAILQ_REMOVE(&waiting, r, link);
		if (r->due_ms <= now_ms || s->has_stopped_retrying)
			r->submit(r);
		else
			TAILQ_INSERT_TAIL(&s->retries, r, link);
	}
	if (!TAILQ_EMPTY(&s->retries))
		timer_start(t, PAUSE_FIRST_MS);
}

/* Keeps a patient operation for another attempt, and logs why. False: it is not retried. */
static bool retry_later(struct store *s, struct store_retry *r, int err, const char *why)
{
	int64_t pause_ms = PAUSE_LAST_MS;

	if (!r->event || s->has_stopped_retrying || !store_is_passing(err))
		return false;
	if ((r->n_failed & (r->n_failed - 1)) == 0) /* 0, 1, 2, 4, 8, … */
		log_event(LOG_WARN, r->event, LOG_S("error", why), LOG_I("failures", r->n_failed + 1));
	if (r->n_failed < 3)
		pause_ms = (int64_t)PAUSE_FIRST_MS << r->n_failed;
	r->n_failed++;
	r->due_ms = clock_mono_ms() + pause_ms;
	TAILQ_INSERT_TAIL(&s->retries, r, link);
	if (!timer_is_running(s->retry_timer))
		timer_start(s->retry_timer, PAUSE_FIRST_MS);
	return true;
}

void store_stop_retrying(struct store *s)
{
	s->has_stopped_retrying = true;
	if (!TAILQ_EMPTY(&s->retries))
		timer_start(s->retry_timer, 0);
}

/* ---- opening ---- */

/* The last step of closing, and the way out of a failed open: no thread runs any more. */
static void store_release(struct store *s)
{
	inbox_close(s->inbox);
	notes_free(s->notes);
	seats_free(s->seats);
	timer_close(s->retry_timer);
	timer_close(s->beat_timer);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	free(s->path);
	free(s->node_name);
	secret_unref(s->password);
	free(s);
}

static void stop_failed_writer(struct store *s)
{
	if (!s->writer)
		return;
	writer_stop(s->writer, NULL, NULL, NULL);
	writer_join(s->writer);
	s->writer = NULL;
}

/* The threads. When it fails, they have ended. */
static int start_threads(struct store *s, const struct store_options *o, struct error *e)
{
	int rc = writer_start(s, OP_DECIDES, o, &s->writer, e);

	if (!rc && s->node.is_shared)
		rc = writer_start(s, OP_INDEPENDENT, o, &s->independent, e);
	if (rc) {
		stop_failed_writer(s);
		return rc;
	}
	readers_start(s, o->n_readers ? o->n_readers : 2, &s->readers);
	return 0;
}

/* An attempt every half a second would fill the log, so a reason is logged when it is new, and then every ten seconds. */
struct start_log {
	struct error last;
	int64_t logged_ms;
};

static void log_failed_start(struct start_log *l, const struct store_options *o, const struct error *e)
{
	enum { AGAIN_MS = 10000 };
	int64_t now_ms = clock_mono_ms();

	if (str_eq(l->last.text, e->text) && now_ms - l->logged_ms < AGAIN_MS)
		return;
	*l = (struct start_log){*e, now_ms};
	log_event(LOG_WARN, "store_not_reached", LOG_S("why", e->text), LOG_I("gives_up_after_ms", o->patience_ms));
}

/* Whether the cause may go by itself within seconds: other daemons keep this one waiting, a failover is about to end the standby's role, or
 * the server restarts. */
static bool may_start_soon(const struct store *s, int rc)
{
	return rc == ERR_BUSY || rc == ERR_READ_ONLY || db_server_is_away(s->path);
}

/* Repeats the start. When the server answers, it makes one more attempt, because the failure may be older than the answer. */
static int start_threads_patiently(struct store *s, const struct store_options *o, struct error *e)
{
	enum { PAUSE_MS = 500 };
	int64_t began_ms = clock_mono_ms();
	struct start_log lines = {0};
	bool is_last = false;
	int rc;

	while ((rc = start_threads(s, o, e)) != 0 && !is_last && o->database && store_is_passing(rc) &&
	       clock_mono_ms() - began_ms < o->patience_ms) {
		is_last = !may_start_soon(s, rc);
		if (!is_last)
			log_failed_start(&lines, o, e);
		*e = (struct error){0};
		usleep(PAUSE_MS * 1000);
	}
	return rc;
}

int store_open(struct loop *l, const struct store_options *o, struct store **ret, struct error *e)
{
	struct store *s = xcalloc(1, sizeof(*s));
	int rc;

	*ret = NULL;
	s->loop = l;
	s->inbox = inbox_new(l);
	TAILQ_INIT(&s->retries);
	STAILQ_INIT(&s->submitted[OP_DECIDES]);
	STAILQ_INIT(&s->submitted[OP_INDEPENDENT]);
	s->node_name = xstrdup(o->node ? o->node : "outpost");
	s->node = (struct node){.name = s->node_name, .after_silence = o->after_silence};
	snprintf(s->why_replaced, sizeof(s->why_replaced),
	    "another outpostd has `node: %.100s`, too, and started later: set another `node` in outpost.yml",
	    s->node_name);
	s->retry_timer = timer_new(l, on_retry_timer, s);
	s->lock_fd = -1;
	s->path = o->database ? xstrdup(o->database) : path_join(o->state_dir, "outpost.db");
	s->password = o->password ? secret_ref(o->password) : NULL;
	s->max_queue_ops = o->max_queue_ops ? o->max_queue_ops : 8192;
	s->max_queue_bytes = o->max_queue_bytes ? o->max_queue_bytes : 16 << 20;
	s->stats.is_writable = true;
	if (mkdir(o->state_dir, 0700) && errno != EEXIST)
		rc = error_set(e, ERR_IO, "%s: cannot be created: %m", o->state_dir);
	else
		rc = store_lock_folder(o->state_dir, &s->lock_fd, &s->node.ended_epoch, e);
	if (!rc && !o->database)
		rc = schema_examine(s->path, e);
	if (!rc)
		rc = start_threads_patiently(s, o, e);
	if (rc) {
		store_release(s);
		return rc;
	}
	membership_start(s);
	s->seats = seats_new(s);
	s->notes = notes_new(s);
	*ret = s;
	return 0;
}

/* ---- to the writer ---- */

enum { SUBMITTED_MAX = 8, LONG_OPS = 64 };

static void push_all(struct store *s)
{
	if (!STAILQ_EMPTY(&s->submitted[OP_DECIDES]))
		writer_push(s->writer, &s->submitted[OP_DECIDES]);
	if (!STAILQ_EMPTY(&s->submitted[OP_INDEPENDENT]))
		writer_push(s->independent, &s->submitted[OP_INDEPENDENT]);
}

static void push_submitted(void *p)
{
	struct store *s = p;

	s->n_submitted = 0;
	push_all(s);
}

/* The operations of one turn of the loop go to the writer together, so that it writes them with one commit instead of
 * beginning with the first. In a turn with many of them it begins earlier. */
static void push_soon(struct store *s, struct store_op *op)
{
	STAILQ_INSERT_TAIL(&s->submitted[s->independent ? op->class : OP_DECIDES], op, link);
	s->n_submitted++;
	if (s->n_submitted == 1)
		loop_reap(s->loop, push_submitted, s);
	else if (s->n_submitted % SUBMITTED_MAX == 0)
		push_all(s);
}

/* ---- closing ---- */

static void finish_close(void *p)
{
	struct store *s = p;
	void (*on_closed)(void *owner) = s->on_closed;
	void *owner = s->owner;

	store_release(s);
	if (on_closed)
		on_closed(owner);
}

static void on_writer_gone(struct inbox_item *item)
{
	struct store *s = CONTAINER_OF(item, struct store, writer_gone);

	writer_join(s->writer);
	readers_join(s->readers);
	/* Later, because the inbox is still running this item. */
	loop_reap(s->loop, finish_close, s);
}

static void wait_for_threads(void *owner)
{
	struct store *s = owner;

	readers_wait(s->readers);
	notes_wait(s->notes);
}

/* The second writer may still pass operations to the first one. */
static void on_independent_gone(struct inbox_item *item)
{
	struct store *s = CONTAINER_OF(item, struct store, writer_gone);

	writer_join(s->independent);
	s->writer_gone.on_loop = on_writer_gone;
	writer_stop(s->writer, wait_for_threads, s, &s->writer_gone);
}

void store_close(struct store *s, void (*on_closed)(void *owner), void *owner)
{
	assert(!s->is_closing);
	seats_stop(s->seats);
	notes_stop(s->notes);
	s->is_closing = true;
	s->on_closed = on_closed;
	s->owner = owner;
	s->has_stopped_retrying = true;
	on_retry_timer(s->retry_timer); /* s->is_closing: ends those that wait */
	if (s->beat_timer)
		timer_stop(s->beat_timer);
	push_submitted(s);
	readers_stop(s->readers);
	s->writer_gone.on_loop = s->independent ? on_independent_gone : on_writer_gone;
	if (s->independent)
		writer_stop(s->independent, NULL, NULL, &s->writer_gone);
	else
		writer_stop(s->writer, wait_for_threads, s, &s->writer_gone);
}

/* ---- topics ---- */

void store_subscribe(struct store *s, unsigned topics, void (*on_topic)(unsigned topics, void *owner), void *owner)
{
	assert(s->n_subscribers < SUBSCRIBERS_MAX);
	s->subscribers[s->n_subscribers++] = (struct subscriber){topics, on_topic, owner};
}

void store_notify(struct store *s, unsigned topics, const struct store_touched *t)
{
	static const struct store_touched nothing;

	s->touched = t ? t : &nothing;
	for (int i = 0; i < s->n_subscribers; i++)
		if (s->subscribers[i].topics & topics)
			s->subscribers[i].on_topic(s->subscribers[i].topics & topics, s->subscribers[i].owner);
	s->touched = NULL;
}

/* For everybody: without the database's address, users or files. A node's name is public (/api/v1/status). */
static const char *why_commit_failed(const struct store *s, int err)
{
	switch (err) {
	case ERR_FULL:
		return s->node.is_shared ? "the disk of the database is full" : "the disk is full";
	case ERR_DENIED:
		return s->node.is_shared ? "the database does not permit it" : "the disk is read-only";
	case ERR_EXISTS:
		return s->why_replaced;
	case ERR_AWAY:
		return "the database is not reached";
	case ERR_LOGIN:
		return "the database refuses the login of this daemon";
	case ERR_READ_ONLY:
		return "the database is a standby, or it is set to read-only";
	case ERR_TOO_NEW:
		return "a newer release has changed the tables: run the newer outpostd";
	case ERR_BUSY:
		return s->node.is_shared ? "the database is busy, or another program has it alone" : "the file is busy";
	case ERR_TIMEOUT:
		return "the database does not answer";
	case ERR_IO:
		return s->node.is_shared ? "the database is not reached" : "the disk fails";
	default:
		return err_text(err);
	}
}

void store_on_batch(struct inbox_item *item)
{
	struct batch_note *note = CONTAINER_OF(item, struct batch_note, item);
	struct store *s = note->store;

	if (note->err) {
		s->stats.n_failed_commits++;
		s->stats.is_writable = false;
		s->stats.why_not_writable = why_commit_failed(s, note->err);
		s->failure = note->why;
		s->failed_class = note->class;
	} else {
		s->stats.n_commits++;
		s->stats.n_ops += note->n_ops;
		s->stats.last_commit_us = note->commit_us;
		histogram_add(&s->stats.commit_times, note->commit_us);
		if (note->did_write) {
			s->stats.n_writes++;
			/* The independent writer proves nothing for the other one, which alone finds out that this node was replaced. */
			if (note->class == OP_DECIDES || s->failed_class == OP_INDEPENDENT) {
				s->stats.is_writable = true;
				s->stats.why_not_writable = NULL;
			}
		}
	}
	store_notify(s, note->topics, &note->touched);
	free(note);
	membership_look(s);
}

const struct store_touched *store_touched(const struct store *s) { return s->touched; }

/* ---- queues ---- */

static void op_on_loop(struct inbox_item *item)
{
	struct store_op *op = CONTAINER_OF(item, struct store_op, item);
	struct store *s = op->store;

	s->stats.n_queued_ops--;
	s->stats.n_queued_intake -= op->is_intake;
	s->stats.n_queued_bytes -= (int64_t)op->bytes;
	if (!op->err || !retry_later(s, &op->retry, op->err, op->why.text))
		op->done(op);
}

static void submit_op_again(struct store_retry *r)
{
	struct store_op *op = CONTAINER_OF(r, struct store_op, retry);

	if (r->now_ms)
		*r->now_ms = clock_wall_ms();
	int rc = store_submit(op->store, op);
	if (!rc)
		return;
	op->err = error_set(&op->why, rc, "%s", err_text(rc));
	op->done(op);
}

void store_before_submit(struct store *s, void (*fn)(void *owner), void *owner)
{
	s->before_submit = fn;
	s->before_submit_owner = owner;
}

int store_submit(struct store *s, struct store_op *op)
{
	/* Long reports leave room for the others. */
	bool is_long = !op->is_intake && op->bytes > s->max_queue_bytes / LONG_OPS;
	size_t max_bytes = is_long ? s->max_queue_bytes / 2 : s->max_queue_bytes;

	assert(loop_is_this_thread(s->loop) && op->run && op->done);
	if (s->before_submit)
		s->before_submit(s->before_submit_owner);
	if (s->is_closing)
		return ERR_CLOSING;
	op->store = s;
	op->retry.submit = submit_op_again;
	/* Check the queue before adding, so that one operation larger than the limit can still enter an almost empty
	 * queue. */
	if ((size_t)s->stats.n_queued_ops >= s->max_queue_ops || (size_t)s->stats.n_queued_bytes >= max_bytes)
		return retry_later(s, &op->retry, ERR_BUSY, err_text(ERR_BUSY)) ? 0 : ERR_BUSY;
	op->err = 0;
	op->why = (struct error){0};
	op->topics = 0;
	op->n_parts = 0;
	op->item.on_loop = op_on_loop;
	s->stats.n_queued_ops++;
	s->stats.n_queued_intake += op->is_intake;
	s->stats.n_queued_bytes += (int64_t)op->bytes;
	push_soon(s, op);
	return 0;
}

static void query_on_loop(struct inbox_item *item)
{
	struct store_query *q = CONTAINER_OF(item, struct store_query, item);

	q->store->n_queries--;
	if (!q->err || !retry_later(q->store, &q->retry, q->err, q->why.text))
		q->done(q);
}

static void submit_query_again(struct store_retry *r)
{
	struct store_query *q = CONTAINER_OF(r, struct store_query, retry);
	int rc = store_query(q->store, q);

	if (!rc)
		return;
	q->err = error_set(&q->why, rc, "%s", err_text(rc));
	q->done(q);
}

int store_query(struct store *s, struct store_query *q)
{
	assert(loop_is_this_thread(s->loop) && q->run && q->done);
	if (s->is_closing)
		return ERR_CLOSING;
	q->store = s;
	q->retry.submit = submit_query_again;
	if ((size_t)s->n_queries >= s->max_queue_ops)
		return retry_later(s, &q->retry, ERR_BUSY, err_text(ERR_BUSY)) ? 0 : ERR_BUSY;
	q->err = 0;
	q->why = (struct error){0};
	q->item.on_loop = query_on_loop;
	s->n_queries++;
	readers_push(s->readers, q);
	return 0;
}

/* ---- figures ---- */

void store_stats(struct store *s, struct store_stats *ret)
{
	*ret = s->stats;
	if (ret->is_writable && !store_is_acting(s)) {
		ret->is_writable = false;
		ret->why_not_writable = "the database does not answer";
	}
}

void store_limits(const struct store *s, struct store_limits *ret)
{
	*ret = (struct store_limits){s->max_queue_ops, s->max_queue_bytes};
}

static int probe_run(struct store_op *op, struct txn *d)
{
	(void)op;
	db_exec(d, "INSERT INTO setting (key, value) VALUES ('store.probe', '1') "
		   "ON CONFLICT (key) DO UPDATE SET value = CASE setting.value WHEN '1' THEN '2' ELSE '1' END");
	return 0;
}

static void probe_done(struct store_op *op) { op->store->is_probing = false; }

void store_probe(struct store *s)
{
	if (s->stats.is_writable || s->is_probing || s->is_closing)
		return;
	s->probe.run = probe_run;
	s->probe.done = probe_done;
	s->is_probing = store_submit(s, &s->probe) == 0;
}
