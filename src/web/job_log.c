/* GET /api/v1/jobs/{id}/log: the log as plain text, whole, by range, or followed while it grows.
 *
 * A reader costs one piece of memory while it reads and almost nothing while it waits. Anyone may read, so the number of readers of
 * both kinds is bounded, and so is the share of one client. */
#include "web/job_log.h"

#include "store/jobs.h"
#include "views/job.h"
#include "web/params.h"
#include "web/web_internal.h"

/* ---- byte ranges ---- */

/* Reads the digits at *s; false if there are none. A number that is too large becomes the largest. */
static bool read_digits(const char **s, int64_t *ret)
{
	const char *begin = *s;

	for (*ret = 0; **s >= '0' && **s <= '9'; (*s)++)
		*ret = *ret > INT64_MAX / 10 - 1 ? INT64_MAX / 10 : *ret * 10 + (**s - '0');
	return *s != begin;
}

enum byte_range byte_range_parse(const char *text, int64_t bytes, int64_t *ret_from, int64_t *ret_to)
{
	static const char unit[] = "bytes=";
	bool has_from, has_to;
	int64_t from, to;

	if (!text || strncasecmp(text, unit, strlen(unit)) != 0)
		return BYTE_RANGE_NONE;
	text += strlen(unit);
	has_from = read_digits(&text, &from);
	if (*text++ != '-')
		return BYTE_RANGE_NONE;
	has_to = read_digits(&text, &to);
	if (*text || (!has_from && !has_to) || (has_from && has_to && to < from))
		return BYTE_RANGE_NONE;
	if (has_from ? from >= bytes : to == 0 || bytes == 0)
		return BYTE_RANGE_UNSATISFIABLE;
	if (has_from) {
		*ret_from = from;
		*ret_to = has_to && to < bytes - 1 ? to + 1 : bytes;
	} else { /* the last bytes */
		*ret_from = to < bytes ? bytes - to : 0;
		*ret_to = bytes;
	}
	return BYTE_RANGE_PART;
}

/* ---- readers ---- */

enum {
	PIECE_BYTES = 128 * 1024,
	FOLLOWERS_MAX = 256,
	STUCK_MAX = 256,          /* readers that have not taken their piece yet */
	OF_ONE_CLIENT_MAX = 32,   /* readers of both kinds: an eighth of either */
	LOOK_AFTER_MS = 5 * 1000, /* of silence: then it checks whether the job is over */
};

static const char TYPE[] = "text/plain; charset=utf-8";

struct log_get {
	struct web *web;
	struct http_request *request; /* NULL: the client left */
	struct http_client_group client;
	struct config *config; /* as of the request */
	struct find_job job;
	struct log_read read;
	struct log_watch watch;
	struct timer *silence;
	LIST_ENTRY(log_get) link; /* followers */
	int64_t at, to;           /* the bytes still to send; when following, `to` is unknown */
	bool follows, is_begun, is_busy /* the store or the logs have it */;
	bool has_changed; /* since the current read began */
	bool is_stuck;    /* the socket has not taken the last piece */
	bool is_over;     /* the job has ended, so the log does not grow any more */
};

static void set_stuck(struct log_get *g, bool is_stuck)
{
	g->web->n_log_readers_stuck += is_stuck - g->is_stuck;
	g->is_stuck = is_stuck;
}

static void log_get_free(struct log_get *g)
{
	set_stuck(g, false);
	if (g->follows) {
		LIST_REMOVE(g, link);
		g->web->n_followers--;
	}
	http_group_amount_add(g->web->log_readers, &g->client, -1);
	logs_unwatch(&g->watch);
	timer_close(g->silence);
	find_job_release(&g->job);
	config_unref(g->config);
	free(g);
}

static void on_log_reader_gone(struct http_request *q)
{
	struct log_get *g = http_user(q);

	g->request = NULL;
	if (g->is_busy)
		logs_unwatch(&g->watch); /* logs may be closed before the store answers */
	else
		log_get_free(g);
}

/* ---- the head ---- */

static void answer_error(struct log_get *g, int status, const char *text)
{
	http_respond_json1(g->request, status, "error", text);
	log_get_free(g);
}

static void answer_busy(struct log_get *g)
{
	http_respond_busy(g->request, 1);
	log_get_free(g);
}

static void on_drain(struct http_request *q);

static void begin_log(struct log_get *g, int status, const struct http_header_line *headers)
{
	if (!g->follows)
		http_stream_length(g->request, g->to - g->at);
	g->is_begun = true;
	set_stuck(g, true); /* on_drain runs for the head too */
	http_stream_begin(g->request, status, TYPE, headers, on_drain);
}

/* A log that grows has no length for Content-Range yet. */
static void begin_answer(struct log_get *g)
{
	enum byte_range kind = BYTE_RANGE_NONE;
	char length[24] = "*", range[80] = "";

	if (!g->follows) {
		g->to = g->read.end;
		if (!http_header(g->request, "If-Range")) /* a log has no validator that it could match */
			kind = byte_range_parse(http_header(g->request, "Range"), g->read.end, &g->at, &g->to);
		if (g->read.is_complete || kind == BYTE_RANGE_UNSATISFIABLE)
			snprintf(length, sizeof(length), "%" PRId64, g->read.end);
	}
	if (kind == BYTE_RANGE_PART)
		snprintf(range, sizeof(range), "bytes %" PRId64 "-%" PRId64 "/%s", g->at, g->to - 1, length);
	else if (kind == BYTE_RANGE_UNSATISFIABLE)
		snprintf(range, sizeof(range), "bytes */%s", length);
	/* A sandbox: even if a browser showed the log as a page, it would have no scripts, forms or origin. */
	const struct http_header_line headers[] = {
	    {"Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'"},
	    {"Access-Control-Allow-Origin", "*"}, {"Cache-Control", "no-cache"},
	    {g->follows ? NULL : "Accept-Ranges", "bytes"}, {*range ? "Content-Range" : NULL, range}, {NULL, NULL}};
	int status = kind == BYTE_RANGE_PART ? 206 : kind == BYTE_RANGE_UNSATISFIABLE ? 416 : 200;
	if (status != 416 && !str_eq(http_method(g->request), "HEAD")) {
		begin_log(g, status, headers);
		return;
	}
	http_respond(g->request, status, TYPE, headers, "", status == 416 ? 0 : (size_t)(g->to - g->at));
	log_get_free(g);
}

/* ---- the text ---- */

static void on_text(struct log_read *r);
static void on_job_again(struct store_query *q);

static void finish_log_get(struct log_get *g)
{
	http_stream_end(g->request);
	log_get_free(g);
}

static void read_log_on(struct log_get *g)
{
	int64_t n = PIECE_BYTES;

	if (!g->follows && g->to - g->at < n)
		n = g->to - g->at;
	if (n == 0) {
		finish_log_get(g);
		return;
	}
	g->is_busy = true;
	g->has_changed = false;
	g->read = (struct log_read){.job_id = g->job.id, .offset = g->at, .max_bytes = (size_t)n, .done = on_text};
	logs_read(g->web->deps.logs, &g->read);
}

static void on_drain(struct http_request *q)
{
	struct log_get *g = http_user(q);

	set_stuck(g, false);
	if (!g->is_busy)
		read_log_on(g);
}

static void on_text(struct log_read *r)
{
	struct log_get *g = CONTAINER_OF(r, struct log_get, read);
	char *bytes = r->bytes;

	g->is_busy = false;
	if (!g->request) {
		log_get_free(g);
	} else if (g->follows && (r->err == ERR_NOT_FOUND || (!r->err && r->n == 0))) {
		/* Everything so far was sent. */
		if (r->is_complete || g->is_over)
			finish_log_get(g);
		else if (g->has_changed)
			read_log_on(g);
		else
			timer_start(g->silence, LOOK_AFTER_MS);
	} else if (r->err || r->n == 0) {
		/* The log was deleted meanwhile or is damaged: the client must see that its copy is not complete. */
		http_stream_cut(g->request);
	} else {
		g->at += (int64_t)r->n;
		set_stuck(g, true);
		http_stream_write(g->request, bytes, r->n);
	}
	free(bytes); /* g may be gone */
}

static void on_log_change(struct log_watch *w)
{
	struct log_get *g = CONTAINER_OF(w, struct log_get, watch);

	g->has_changed = true;
	if (!g->is_begun || g->is_busy || g->is_stuck)
		return;
	timer_stop(g->silence);
	read_log_on(g);
}

/* ---- a job may end without the end of its log ---- */

static void on_silence(struct timer *t)
{
	struct log_get *g = timer_owner(t);

	find_job_release(&g->job);
	g->job.q.done = on_job_again;
	if (store_find_job(g->web->deps.store, &g->job))
		timer_start(t, LOOK_AFTER_MS);
	else
		g->is_busy = true;
}

static void on_job_again(struct store_query *q)
{
	struct log_get *g = CONTAINER_OF(q, struct log_get, job.q);

	g->is_busy = false;
	if (!g->request) {
		log_get_free(g);
		return;
	}
	if (q->err == ERR_NOT_FOUND || (!q->err && g->job.status == JOB_COMPLETED))
		g->is_over = true;
	read_log_on(g);
}

/* ---- the request ---- */

static void on_size(struct log_read *r)
{
	struct log_get *g = CONTAINER_OF(r, struct log_get, read);
	bool may_come = g->follows && g->job.status != JOB_COMPLETED;

	g->is_busy = false;
	free(r->bytes);
	if (!g->request)
		log_get_free(g);
	else if (r->err == ERR_NOT_FOUND && !may_come)
		answer_error(g, 404, "the job has no log, or its log was deleted after the retention time");
	else if (r->err == ERR_CORRUPT)
		answer_error(g, 500, "the log is damaged on the server's disk");
	else if ((r->err && r->err != ERR_NOT_FOUND) || g->web->is_stopping)
		answer_busy(g);
	else
		begin_answer(g);
}

static void on_job(struct store_query *q)
{
	struct log_get *g = CONTAINER_OF(q, struct log_get, job.q);
	const struct accelerator *a = q->err ? NULL : config_accelerator(g->config, g->job.accelerator);

	g->is_busy = false;
	if (!g->request) {
		log_get_free(g);
	} else if (q->err == ERR_NOT_FOUND || (a && a->level == LEVEL_1)) {
		answer_error(g, 404, "no such job");
	} else if (q->err) {
		answer_busy(g);
	} else {
		g->is_busy = true;
		g->read = (struct log_read){.job_id = g->job.id, .done = on_size};
		logs_read(g->web->deps.logs, &g->read);
	}
}

void web_on_job_log(struct http_request *q, void *owner)
{
	struct web *w = owner;
	char follow[8];
	bool follows =
	    str_eq(http_method(q), "GET") && http_query_get(q, "follow", follow, sizeof(follow)) && str_eq(follow, "1");
	struct http_client_group client = http_client_group(q);
	struct log_get *g;
	struct params p = {.r = q};
	int64_t id, from = params_int(&p, "from", 0, LOG_MAX_BYTES, 0);

	if (!w->config || w->is_stopping || w->n_log_readers_stuck >= STUCK_MAX ||
	    (follows && w->n_followers >= FOLLOWERS_MAX)) {
		http_respond_busy(q, 1);
		return;
	}
	if (parse_int64(http_segment(q, 0), &id) || id <= 0) {
		web_respond_not_found(q, "no such job");
		return;
	}
	if (params_refuse(&p))
		return;
	if (!http_group_amount_reserve(w->log_readers, &client, 1, OF_ONE_CLIENT_MAX)) {
		web_respond_too_many(q, "this address has reached its limit of open logs");
		return;
	}
	g = xcalloc(1, sizeof(*g));
	g->client = client;
	g->web = w;
	g->request = q;
	g->config = config_ref(w->config);
	g->silence = timer_new(w->deps.loop, on_silence, g);
	g->job.id = id;
	g->job.q.done = on_job;
	if (follows) {
		g->at = from; /* a follower may have read a part already */
		g->follows = true;
		LIST_INSERT_HEAD(&w->followers, g, link);
		w->n_followers++;
		g->watch = (struct log_watch){.job_id = g->job.id, .on_change = on_log_change};
		logs_watch(w->deps.logs, &g->watch);
	}
	if (store_find_job(w->deps.store, &g->job)) {
		answer_busy(g);
		return;
	}
	g->is_busy = true;
	http_set_user(q, g);
	http_on_gone(q, on_log_reader_gone);
}

/* Cuts their connections without the end of the text, because the log goes on after a restart. */
void web_cut_followers(struct web *w)
{
	struct log_get *g;

	LIST_FOREACH (g, &w->followers, link)
		if (g->request && g->is_begun)
			http_stream_cut(g->request);
}
