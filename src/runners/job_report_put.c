/* PUT /api/v1/jobs/{id}/report: puts a report document into the store. Bodies are read only from callers who may report
 * the job. Their bytes are bounded, of all together and of one accelerator. They are parsed in the pool, a few
 * at a time. */

#include "documents/report_file.h"
#include "model/packed_tests.h"
#include "runners/job_documents.h"

enum { ARRIVES_WITHIN_MS = 5 * 60 * 1000 };

/* The reports of one accelerator that are arriving or being parsed. Freed with the last one. */
struct report_room {
	LIST_ENTRY(report_room) link;
	char *accelerator;
	int n_puts;
	size_t bytes;
};

struct report_put {
	struct job_access access;
	struct job_documents *documents;
	STAILQ_ENTRY(report_put) at; /* in to_be_parsed */
	LIST_ENTRY(report_put) link; /* in report_puts if is_arriving */
	bool is_arriving;
	struct timer *deadline;
	struct report_room *room; /* NULL: access is not granted yet */
	struct buf body;
	bool is_handed; /* the body is complete: the pool or the store has it */
	struct pool_work work;
	int err;
	struct error why;
	enum report_format format;
	struct report_file file;
	struct packed_tests packed; /* its tests */
	struct put_report op;
};

static void unlink_put(struct report_put *p)
{
	if (p->is_arriving)
		LIST_REMOVE(p, link);
	p->is_arriving = false;
}

static void put_free(struct report_put *p)
{
	struct report_room *room = p->room;
	struct runners *r = p->access.runners;

	unlink_put(p);
	if (room) {
		p->documents->report_bytes -= p->body.len;
		room->bytes -= p->body.len;
		room->n_puts--;
	}
	if (room && room->n_puts == 0) {
		LIST_REMOVE(room, link);
		free(room->accelerator);
		free(room);
	}
	timer_close(p->deadline);
	buf_release(&p->body);
	report_file_release(&p->file);
	packed_tests_release(&p->packed);
	job_access_release(&p->access);
	free(p);
	runners_let_go(r);
}

/* ---- into the store ---- */

static void on_stored(struct store_op *op)
{
	struct report_put *p = CONTAINER_OF(op, struct report_put, op.op);
	struct runners_counters *c = &p->access.runners->counters;
	bool is_new = p->op.outcome == REPORT_RECORDED;

	if (op->err) {
		job_access_answer_busy(&p->access, op->err);
	} else if (is_new || p->op.outcome == REPORT_UNCHANGED) {
		c->n_recorded += is_new;
		c->n_unchanged += !is_new;
		log_event(LOG_INFO, is_new ? "document_recorded" : "document_unchanged", LOG_I("job", p->access.job_id),
		    LOG_S("caller", p->access.caller), LOG_S("dispatch", p->access.job.dispatch_id),
		    LOG_S("accelerator", p->access.job.accelerator), LOG_S("format", report_format_name(p->format)),
		    LOG_I("bytes", (int64_t)p->body.len), LOG_I("tests", (int64_t)p->file.n_tests),
		    LOG_I("cut", (int64_t)p->file.n_cut));
		answer_json(p->access.request, 200,
		    json_pack("{s:b, s:I, s:I}", "ok", true, "tests", (json_int_t)p->file.n_tests, "cut",
			(json_int_t)p->file.n_cut));
	} else if (p->op.outcome == REPORT_CONFLICT) {
		job_access_answer(&p->access, 409, "the job has a report already, with other content", NULL);
	} else if (p->op.outcome == REPORT_TOO_MANY_RESULTS) {
		job_access_answer(&p->access, 413, TOO_MANY_RESULTS_TEXT, NULL);
	} else {
		job_access_answer(&p->access, 404, "no such job", NULL);
	}
	put_free(p);
}

/* ---- parsing ---- */

static void parse(struct pool_work *w)
{
	struct report_put *p = CONTAINER_OF(w, struct report_put, work);
	const char *text = buf_str(&p->body);

	sha256(text, p->body.len, p->op.digest);
	p->err = report_file_read(text, p->body.len, &p->format, &p->file, &p->why);
	if (!p->err)
		packed_tests_make(&p->packed, p->file.tests, p->file.n_tests);
}

static void parse_next(struct job_documents *d);

static void after_parse(struct pool_work *w)
{
	struct report_put *p = CONTAINER_OF(w, struct report_put, work);
	int err = job_access_check(&p->access);

	p->documents->n_parsing--;
	parse_next(p->documents);
	if (err) {
		job_access_refuse(&p->access, err);
		put_free(p);
	} else if (p->err) {
		job_access_answer(&p->access, p->err == ERR_TOO_BIG ? 413 : 400, p->why.text, NULL);
		put_free(p);
	} else {
		p->op.op.done = on_stored;
		p->op.job_id = p->access.job_id;
		p->op.tests = p->file.tests;
		p->op.n_tests = p->file.n_tests;
		p->op.packed = &p->packed;
		p->op.n_cut = p->file.n_cut;
		p->op.environment = p->file.environment;
		p->op.now_ms = clock_wall_ms();
		err = store_put_report(p->access.runners->store, &p->op);
		if (err) {
			job_access_answer_busy(&p->access, err);
			put_free(p);
		}
	}
}

static void parse_next(struct job_documents *d)
{
	struct report_put *p = STAILQ_FIRST(&d->to_be_parsed);

	if (!p || d->n_parsing == REPORTS_PARSED_AT_ONCE)
		return;
	STAILQ_REMOVE_HEAD(&d->to_be_parsed, at);
	d->n_parsing++;
	p->work = (struct pool_work){.work = parse, .after = after_parse};
	pool_submit(d->runners->loop, &p->work);
}

/* ---- the body ---- */

static void on_report_body(struct http_request *q, const char *bytes, size_t n, void *owner)
{
	struct report_put *p = http_user(q);
	struct job_documents *d = owner;

	if (n == 0) {
		/* The body is complete and waits to be parsed. */
		p->is_handed = true;
		unlink_put(p);
		timer_stop(p->deadline);
		STAILQ_INSERT_TAIL(&d->to_be_parsed, p, at);
		parse_next(d);
		return;
	}
	if (d->report_bytes + n > REPORTS_MAX_BYTES || p->room->bytes + n > REPORTS_OF_ONE_MAX_BYTES ||
	    buf_append(&p->body, bytes, n)) {
		job_access_answer_busy(&p->access, ERR_BUSY);
		put_free(p);
		return;
	}
	d->report_bytes += n;
	p->room->bytes += n;
}

static void on_report_put_gone(struct http_request *q)
{
	struct report_put *p = http_user(q);

	p->access.request = NULL;
	if (!p->is_handed)
		put_free(p);
}

void job_report_check(struct job_documents *d)
{
	for (struct report_put *p = LIST_FIRST(&d->report_puts), *next; p; p = next) {
		int err = job_access_check(&p->access);

		next = LIST_NEXT(p, link);
		if (!err)
			continue;
		job_access_refuse(&p->access, err);
		put_free(p);
	}
}

static void on_deadline(struct timer *t)
{
	struct report_put *p = timer_owner(t);

	job_access_answer(&p->access, 408, "the report took too long", NULL);
	put_free(p);
}

static void on_access(struct job_access *a)
{
	struct report_put *p = CONTAINER_OF(a, struct report_put, access);
	struct job_documents *d = p->documents;
	struct report_room *room;

	if (!a->is_granted) {
		put_free(p);
		return;
	}
	LIST_INSERT_HEAD(&d->report_puts, p, link);
	p->is_arriving = true;
	LIST_FOREACH (room, &d->rooms, link)
		if (str_eq(room->accelerator, p->access.job.accelerator))
			break;
	if (!room) {
		room = xcalloc(1, sizeof(*room));
		room->accelerator = xstrdup(p->access.job.accelerator);
		LIST_INSERT_HEAD(&d->rooms, room, link);
	}
	room->n_puts++;
	p->room = room;
	timer_start(p->deadline, ARRIVES_WITHIN_MS);
	http_set_user(a->request, p);
	http_on_gone(a->request, on_report_put_gone);
	http_resume_body(a->request);
}

static void on_report_put_request(struct http_request *q, void *owner)
{
	struct job_documents *d = owner;
	struct report_put *p = xcalloc(1, sizeof(*p));

	runners_hold(d->runners);
	p->documents = d;
	p->deadline = timer_new(d->runners->loop, on_deadline, p);
	buf_init(&p->body, REPORT_FILE_MAX_BYTES);
	p->access = (struct job_access){
	    .runners = d->runners, .request = q, .limit = d->runners->registered, .done = on_access};
	job_access_start(&p->access);
}

void job_report_add_route(struct job_documents *d, struct http_server *h)
{
	http_server_route(h, &(struct http_route){
				 .method = "PUT",
				 .pattern = "/api/v1/jobs/{id}/report",
				 .max_body_bytes = REPORT_FILE_MAX_BYTES,
				 .body_mode = HTTP_BODY_STREAM,
				 .on_request = on_report_put_request,
				 .on_body = on_report_body,
				 .owner = d,
			     });
}
