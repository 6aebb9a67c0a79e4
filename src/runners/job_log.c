/* PUT /api/v1/jobs/{id}/log: writes a log to disk while it arrives, in one request or in pieces. A piece that was
 * answered 200 is synced.
 *
 * One append runs at a time: bytes that arrive meanwhile are collected up to a bound, then the client waits. A slow body
 * is appended a few times a second and not at every line, because each append is an fdatasync on the disk that webhooks
 * need too. */

#include "runners/job_documents.h"

enum {
	PAUSE_BYTES = 128 * 1024,                     /* collected: then the client waits */
	COLLECT_MAX_BYTES = PAUSE_BYTES + 128 * 1024, /* with the last read */
	APPEND_EVERY_MS = 250,
	SILENCE_MS = 10 * 60 * 1000, /* of a log that is sent while it is written */
	NOTE_EVERY_BYTES = 1 << 20,
};

struct log_put {
	struct job_access access;
	struct job_documents *documents;
	LIST_ENTRY(log_put) link; /* in the documents' list if is_listed */
	bool is_listed;           /* the body is arriving */
	bool wants_last;
	int cut_err;    /* why the rest of the body is not read: ERR_CLOSING, or of job_access_check() */
	int64_t offset; /* of the next byte that is appended */
	struct buf collected, appending;
	bool is_busy;      /* an append is under way */
	bool is_paused;    /* the client waits */
	bool is_body_over; /* the collected bytes are the last ones */
	bool is_final;     /* the append that is under way is the last one */
	struct timer *next_append;
	struct log_append append;
	int64_t noted; /* the length that the store knows */
	struct note_log note;
};

static void unlink_put(struct log_put *p)
{
	if (p->is_listed)
		LIST_REMOVE(p, link);
	p->is_listed = false;
}

static void put_free(struct log_put *p)
{
	struct runners *r = p->access.runners;

	unlink_put(p);
	timer_close(p->next_append);
	buf_release(&p->collected);
	buf_release(&p->appending);
	job_access_release(&p->access);
	free(p);
	runners_let_go(r);
}

/* ---- answers ---- */

/* err 0: the log is written. The client is there. */
static void answer_log_put(struct log_put *p, int err)
{
	json_int_t end = p->append.end;

	if (!err) {
		answer_json(p->access.request, 200, json_pack("{s:b, s:I}", "ok", true, "bytes", end));
	} else if (err == ERR_RANGE || err == ERR_EXISTS) {
		/* The client continues at this length. */
		p->access.runners->counters.n_conflict++;
		answer_json(
		    p->access.request, 409, json_pack("{s:s, s:I}", "detail", p->append.why.text, "bytes", end));
	} else if (err == ERR_AUTH || err == ERR_DENIED) {
		job_access_refuse(&p->access, err);
	} else if (err == ERR_TOO_BIG) {
		job_access_answer(&p->access, 413, p->append.why.text, NULL);
	} else {
		job_access_answer_busy(&p->access, err);
	}
	p->access.request = NULL;
}

/* ---- appends, one after the other ---- */

static void advance(struct log_put *p);

static void finish_log_put(struct log_put *p, int err)
{
	if (p->access.request)
		answer_log_put(p, err ? err : p->cut_err);
	put_free(p);
}

static void next_step(struct log_put *p)
{
	p->is_busy = false;
	buf_release(&p->appending); /* a silent log needs no memory */
	if (p->is_final) {
		finish_log_put(p, 0);
		return;
	}
	if (p->is_paused) {
		p->is_paused = false;
		http_resume_body(p->access.request);
	}
	advance(p);
}

static void on_log_noted(struct store_op *op)
{
	struct log_put *p = CONTAINER_OF(op, struct log_put, note.op);

	/* The store must know that a log is complete before the client may forget the log. */
	if (op->err && p->note.is_complete)
		finish_log_put(p, op->err);
	else
		next_step(p);
}

static void on_appended(struct log_append *a)
{
	struct log_put *p = CONTAINER_OF(a, struct log_put, append);
	bool is_worth_noting =
	    a->is_complete || (p->noted == 0 && a->end > 0) || a->end / NOTE_EVERY_BYTES > p->noted / NOTE_EVERY_BYTES;
	int err = a->err;

	p->offset += (int64_t)a->n;
	if (!err && is_worth_noting) {
		p->noted = a->end;
		p->note = (struct note_log){
		    .op.done = on_log_noted,
		    .job_id = p->access.job_id,
		    .bytes = a->end,
		    .is_complete = a->is_complete,
		};
		err = store_note_log(p->access.runners->store, &p->note);
		if (!err)
			return;
		if (!a->is_complete)
			err = 0;
	}
	if (err)
		finish_log_put(p, err);
	else
		next_step(p);
}

static void advance(struct log_put *p)
{
	bool is_due = p->is_body_over || p->collected.len >= PAUSE_BYTES ||
		      (p->collected.len && !timer_is_running(p->next_append));

	if (p->is_busy || !is_due)
		return;
	p->is_busy = true;
	p->is_final = p->is_body_over;
	p->appending = p->collected;
	buf_init(&p->collected, COLLECT_MAX_BYTES);
	timer_stop(p->next_append);
	timer_start(p->next_append, APPEND_EVERY_MS);
	p->append = (struct log_append){
	    .job_id = p->access.job_id,
	    .offset = p->offset,
	    .bytes = p->appending.data,
	    .n = p->appending.len,
	    .is_last = p->is_final && p->wants_last,
	    .done = on_appended,
	};
	logs_append(p->documents->logs, &p->append);
}

static void on_next_append(struct timer *t) { advance(timer_owner(t)); }

/* ---- the body ---- */

static void on_log_body(struct http_request *q, const char *bytes, size_t n, void *owner)
{
	struct log_put *p = http_user(q);

	(void)owner;
	p->is_body_over = n == 0;
	int err = buf_append(&p->collected, bytes, n);
	assert(err == 0); /* the body was paused in time */
	if (p->collected.len >= PAUSE_BYTES && n) {
		p->is_paused = true;
		http_pause_body(q);
	}
	advance(p);
}

/* Writes the bytes that have arrived; the rest of the body is not read. */
static void end_body_early(struct log_put *p)
{
	p->is_paused = false;
	p->is_body_over = true;
	p->wants_last = false;
	advance(p);
}

/* The client need not send again the bytes that have arrived. */
static void on_log_put_gone(struct http_request *q)
{
	struct log_put *p = http_user(q);

	p->access.request = NULL;
	end_body_early(p);
}

static void on_access(struct job_access *a)
{
	struct log_put *p = CONTAINER_OF(a, struct log_put, access);

	if (a->is_granted && p->documents->is_stopping)
		answer_log_put(p, ERR_CLOSING);
	if (!a->request) {
		put_free(p);
		return;
	}
	LIST_INSERT_HEAD(&p->documents->log_puts, p, link);
	p->is_listed = true;
	http_set_user(a->request, p);
	http_on_gone(a->request, on_log_put_gone);
	http_resume_body(a->request);
}

static void cut_short(struct log_put *p, int err)
{
	unlink_put(p);
	if (p->is_body_over)
		return;
	http_pause_body(p->access.request);
	p->cut_err = err;
	end_body_early(p);
}

void job_documents_stop(struct job_documents *d)
{
	d->is_stopping = true;
	while (!LIST_EMPTY(&d->log_puts))
		cut_short(LIST_FIRST(&d->log_puts), ERR_CLOSING);
}

void job_log_check(struct job_documents *d)
{
	for (struct log_put *p = LIST_FIRST(&d->log_puts), *next; p; p = next) {
		int err = job_access_check(&p->access);

		next = LIST_NEXT(p, link);
		if (err)
			cut_short(p, err);
	}
}

/* ---- the request ---- */

/* Reads "offset" and "last". Without an offset the body is the whole log. */
static void on_log_put_request(struct http_request *q, void *owner)
{
	struct job_documents *d = owner;
	struct log_put *p = xcalloc(1, sizeof(*p));
	char offset[24], last[24];
	bool has_offset = http_query_get(q, "offset", offset, sizeof(offset));
	bool is_too_long = !has_offset && strstr(http_query(q), "offset=");
	const char *mistake = NULL;

	p->wants_last = !has_offset;
	if (!http_query_get(q, "last", last, sizeof(last)))
		memcpy(last, "0", 2);
	if (is_too_long || (has_offset && (offset[0] == '-' || parse_int64(offset, &p->offset))))
		mistake = "offset: not a number of bytes";
	else if (!str_eq(last, "1") && !str_eq(last, "0"))
		mistake = "last: neither 1 nor 0";
	if (mistake) {
		refuse_request(d->runners, q, 400, mistake, NULL);
		free(p);
		return;
	}
	p->wants_last |= str_eq(last, "1");
	runners_hold(d->runners);
	p->documents = d;
	p->noted = p->offset;
	p->next_append = timer_new(d->runners->loop, on_next_append, p);
	buf_init(&p->collected, COLLECT_MAX_BYTES);
	p->access = (struct job_access){.runners = d->runners, .request = q, .limit = d->log_calls, .done = on_access};
	job_access_start(&p->access);
}

void job_log_add_route(struct job_documents *d, struct http_server *h)
{
	http_server_route(h, &(struct http_route){
				 .method = "PUT",
				 .pattern = "/api/v1/jobs/{id}/log",
				 .max_body_bytes = LOG_MAX_BYTES,
				 .body_mode = HTTP_BODY_STREAM,
				 .body_silence_ms = SILENCE_MS,
				 .on_request = on_log_put_request,
				 .on_body = on_log_body,
				 .owner = d,
			     });
}
