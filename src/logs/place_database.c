/* Finished logs in the database where they have grown, in rows (store/log_rows.h). */
#include "logs/logs_internal.h"

#include "logs/seekable.h"

struct place_database {
	struct log_place base;
	struct logs *logs;
	struct store *store;
};

/* One request. */
struct database_call {
	struct place_database *place;
	struct log_request *r;
	struct put_log_object put;
	struct read_log_object read;
	struct pool_work work; /* PUT */
};

static void end_call(struct database_call *c, int err, const char *why)
{
	struct log_request *r = c->r;
	struct logs *s = c->place->logs;

	if (err && !r->err)
		r->err = error_set(&r->why, err, "%s", why && *why ? why : err_text(err));
	free(c);
	r->done(r);
	logs_release(s);
}

static void end_call_soon(void *p)
{
	struct database_call *c = p;

	end_call(c, 0, NULL);
}

/* The store has not taken the operation. */
static void refuse_call(struct database_call *c, int err)
{
	c->r->err = error_set(&c->r->why, err, "%s", err_text(err));
	loop_reap(c->place->logs->loop, end_call_soon, c);
}

/* ---- putting ---- */

static void on_object_put(struct store_op *op)
{
	struct database_call *c = CONTAINER_OF(op, struct database_call, put.op);

	end_call(c, op->err, op->why.text);
}

/* The lengths of the object and of its text. In the pool. */
static void measure_object(struct pool_work *w)
{
	struct database_call *c = CONTAINER_OF(w, struct database_call, work);
	struct log_request *r = c->r;
	struct seekable_index index;
	struct stat st;
	int rc = fstat(r->fd, &st) ? ERR_IO : seekable_index_read(r->fd, &index);

	if (rc) {
		r->err = error_set(&r->why, rc, "the compressed log cannot be read");
		return;
	}
	c->put = (struct put_log_object){
	    .op.done = on_object_put,
	    .job_id = r->job_id,
	    .fd = r->fd,
	    .object_bytes = st.st_size,
	    .text_bytes = index.text_bytes,
	    .written_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000,
	};
	seekable_index_release(&index);
}

static void after_measuring(struct pool_work *w)
{
	struct database_call *c = CONTAINER_OF(w, struct database_call, work);
	int rc = c->r->err ? 0 : store_put_log_object(c->place->store, &c->put);

	if (rc)
		refuse_call(c, rc);
	else if (c->r->err)
		end_call(c, 0, NULL);
}

/* ---- reading ---- */

static void on_object_read(struct store_query *q)
{
	struct database_call *c = CONTAINER_OF(q, struct database_call, read.q);
	struct log_request *r = c->r;

	r->at = c->read.at;
	r->n = c->read.n;
	r->object_bytes = c->read.object_bytes;
	if (q->err)
		free(c->read.bytes);
	else
		r->bytes = c->read.bytes;
	end_call(c, q->err, q->why.text);
}

/* ---- the place ---- */

static void database_start(struct log_place *p, struct log_request *r)
{
	struct database_call *c = xcalloc(1, sizeof(*c));
	struct place_database *place = CONTAINER_OF(p, struct place_database, base);
	int rc;

	c->place = place;
	c->r = r;
	logs_hold(place->logs);
	if (r->op == LOG_PUT) {
		c->work = (struct pool_work){.work = measure_object, .after = after_measuring};
		pool_submit(place->logs->loop, &c->work);
	} else if (r->op == LOG_READ) {
		c->read =
		    (struct read_log_object){.q.done = on_object_read, .job_id = r->job_id, .at = r->at, .n = r->n};
		rc = store_read_log_object(place->store, &c->read);
		if (rc)
			refuse_call(c, rc);
	} else {
		loop_reap(place->logs->loop, end_call_soon, c);
	}
}

struct log_place *place_database_new(struct logs *s, struct store *store)
{
	struct place_database *p = xcalloc(1, sizeof(*p));

	*p = (struct place_database){.base.start = database_start, .logs = s, .store = store};
	return &p->base;
}

void place_database_free(struct log_place *p) { free(CONTAINER_OF(p, struct place_database, base)); }
