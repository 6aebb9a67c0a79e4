/* The only way out for everything that is read from the store: status, headers, 304 and form are decided here. */

#include "http/server.h"
#include "web/assets.h"
#include "web/gate.h"
#include "web/page.h"
#include "web/web_internal.h"

enum { RETRY_AFTER_S = 1, TOO_MANY_RETRY_AFTER_S = 5, PAGE_FRAME_BYTES = 64 << 10 };

static const char PAGE_POLICY[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src "
    "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/* ---- the form ---- */

static void release_form(struct web_form *f)
{
	FREE_ALL(f->id, f->api, f->base, f->upstream);
	*f = (struct web_form){0};
}

/* ---- the answer ---- */

struct answer {
	struct web_answer base;
	char etag[ETAG_BYTES];
	int status, retry_after_s; /* 0: no such header */
	bool is_page;
	/* of a document; all static but for the last one */
	const char *type, *cache;
	char *disposition;
};

static const struct answer *answer_of(const struct web_answer *a) { return CONTAINER_OF(a, struct answer, base); }

static void release_answer(struct web_answer *base)
{
	struct answer *a = CONTAINER_OF(base, struct answer, base);

	http_shared_unref(base->body);
	FREE_ALL(a->disposition, a);
}

/* Takes bytes (free()). */
static struct answer *answer_new(
    void (*send)(struct http_request *r, const struct web_answer *a), int status, char *bytes, size_t n)
{
	struct answer *a = xcalloc(1, sizeof(*a));

	a->base = (struct web_answer){
	    .send = send, .release = release_answer, .body = http_shared_new(bytes, n), .n_bytes = n + sizeof(*a)};
	a->status = status;
	return a;
}

/* A client that has the answer already gets 304. */
static void send_whole(
    struct http_request *r, const struct answer *a, const char *type, const struct http_header_line *headers)
{
	if (a->status == 200 && etag_is_named(http_header(r, "If-None-Match"), a->etag))
		http_respond(r, 304, NULL, headers, "", 0);
	else
		http_respond_shared(r, a->status, type, headers, a->base.body);
}

static void send_text(struct http_request *r, const struct web_answer *base)
{
	const struct answer *a = answer_of(base);
	char seconds[16];
	const char *name = a->status == 200 ? "ETag" : a->retry_after_s ? "Retry-After" : NULL;
	const struct http_header_line last = {name, a->status == 200 ? a->etag : seconds};
	/* Any site may read the JSON from a browser: there is no login. */
	const struct http_header_line json[] = {{"Cache-Control", "no-cache"}, {"Access-Control-Allow-Origin", "*"},
	    {"Access-Control-Expose-Headers", "ETag, Retry-After"}, last, {NULL, NULL}};
	const struct http_header_line page[] = {{"Cache-Control", "no-cache"}, {"Content-Security-Policy", PAGE_POLICY},
	    {"Referrer-Policy", "no-referrer"}, {"X-Frame-Options", "DENY"}, {"Vary", "Accept"}, last, {NULL, NULL}};

	snprintf(seconds, sizeof(seconds), "%d", a->retry_after_s);
	if (a->retry_after_s)
		http_count_busy(r);
	send_whole(r, a, a->is_page ? "text/html; charset=utf-8" : "application/json", a->is_page ? page : json);
}

/* ---- the text ---- */

/* Of the answer's JSON. The tag of a page changes every minute, because the page contains the time from which ages are counted, and with
 * each release, because the scripts change. */
static void write_tags(const struct web_form *f, const char *json, size_t n, char *ret_json, char *ret_page)
{
	static _Thread_local char frame[ETAG_BYTES];

	etag_of(json, n, ret_json);
	if (!frame[0])
		etag_of(WEB_PAGE, strlen(WEB_PAGE), frame);
	snprintf(ret_page, ETAG_BYTES, "W/\"%.16s%.8s-%llx\"", ret_json + 1, frame + 1,
	    (unsigned long long)(f->now_ms / 60000));
}

/* Thread: any. Takes json (free()). */
static struct answer *text_answer_new(const struct web_form *f, int status, char *json)
{
	struct buf out = BUF_INIT(6 * (size_t)PAGE_BODY_MAX_BYTES + PAGE_FRAME_BYTES);
	char *title, etag[ETAG_BYTES], page_etag[ETAG_BYTES];
	size_t n = strlen(json);
	struct answer *a;

	write_tags(f, json, n, etag, page_etag);
	if (f->is_page) {
		if (status == 404)
			title = xstrdup("Not found · Outpost");
		else if (!f->title)
			title = f->upstream ? xasprintf("Outpost · %s", f->upstream) : xstrdup("Outpost");
		else
			title = xasprintf(
			    "%s%.*s · Outpost", f->title, f->id && is_sha1(f->id) ? 10 : 200, f->id ? f->id : "");
		page_write(&out, &(struct page){.title = title,
				     .api = f->api,
				     .status = status,
				     .etag = etag,
				     .now_ms = f->now_ms,
				     .base = f->base,
				     .upstream = f->upstream,
				     .body = json,
				     .body_bytes = n});
		FREE_ALL(title, json);
		n = out.len;
		json = buf_detach(&out);
	}
	a = answer_new(send_text, status, json, n);
	a->is_page = f->is_page;
	memcpy(a->etag, f->is_page ? page_etag : etag, ETAG_BYTES);
	return a;
}

static void respond_text(struct http_request *r, int status, char *json, int retry_after_s)
{
	struct web_form form;
	struct answer *a;

	web_form_init(&form, r);
	a = text_answer_new(&form, status, json);
	a->retry_after_s = retry_after_s;
	release_form(&form);
	web_gate_answer(r, &a->base);
}

void web_respond_json(struct http_request *r, int status, json_t *v)
{
	respond_text(r, status, json_text(v), 0);
	json_decref(v);
}

static void respond_error(struct http_request *r, int status, const char *text, int retry_after_s)
{
	json_t *v = json_object();

	json_set_str(v, "error", text);
	respond_text(r, status, json_text(v), retry_after_s);
	json_decref(v);
}

void web_respond_error(struct http_request *r, int status, const char *text) { respond_error(r, status, text, 0); }

void web_respond_not_found(struct http_request *r, const char *text) { web_respond_error(r, 404, text); }

void web_respond_busy(struct http_request *r) { respond_error(r, 503, "busy, try again later", RETRY_AFTER_S); }

void web_respond_too_many(struct http_request *r, const char *text)
{
	respond_error(r, 429, text, TOO_MANY_RETRY_AFTER_S);
}

/* ---- documents ---- */

static void send_document(struct http_request *r, const struct web_answer *base)
{
	const struct answer *a = answer_of(base);
	/* The policy: if a browser shows it as a page, it loads and runs nothing. */
	const struct http_header_line headers[] = {{"Access-Control-Allow-Origin", "*"},
	    {"Content-Security-Policy", "default-src 'none'"}, {"Cache-Control", a->cache}, {"ETag", a->etag},
	    {a->disposition ? "Content-Disposition" : NULL, a->disposition}, {NULL, NULL}};

	send_whole(r, a, a->type, headers);
}

void web_document_send(struct http_request *r, const struct web_document *d)
{
	struct answer *a;
	char etag[ETAG_BYTES];

	if (d->etag)
		memcpy(etag, d->etag, ETAG_BYTES);
	else
		etag_of(d->body, d->n, etag);
	a = answer_new(send_document, d->status, d->body, d->n);
	memcpy(a->etag, etag, ETAG_BYTES);
	a->type = d->type;
	a->cache = d->cache;
	a->disposition = xstrdup_or_null(d->disposition);
	a->base.may_be_kept = d->status == 200;
	web_gate_answer(r, &a->base);
}

static void send_document_busy(struct http_request *r, const struct web_answer *a)
{
	(void)a;
	http_respond_busy(r, RETRY_AFTER_S);
}

void web_document_busy(struct http_request *r)
{
	web_gate_answer(r, &answer_new(send_document_busy, 503, NULL, 0)->base);
}

/* ---- answers that the pool may write ---- */

enum { ITEMS_AT_ONCE = 200 }; /* under a millisecond */

static void write_rendered(struct pool_work *work)
{
	struct web_render *r = CONTAINER_OF(work, struct web_render, work);
	json_t *v = r->make ? r->make(r->owner) : NULL;

	r->answer = &text_answer_new(&r->form, 200, v ? json_text(v) : r->make_text(r->owner))->base;
	r->answer->may_be_kept = true;
	json_decref(v);
}

static void send_rendered(struct pool_work *work)
{
	struct web_render *r = CONTAINER_OF(work, struct web_render, work);

	web_gate_answer(r->request, r->answer);
	release_form(&r->form);
	r->over(r->owner);
}

void web_render(struct loop *l, struct web_render *r, size_t n_items)
{
	web_form_init(&r->form, r->request);
	r->work = (struct pool_work){.work = write_rendered, .after = send_rendered};
	if (n_items > ITEMS_AT_ONCE) {
		pool_submit(l, &r->work);
		return;
	}
	write_rendered(&r->work);
	send_rendered(&r->work);
}

/* ---- requests that read the store ---- */

/* The query follows the struct web_read. */
static struct store_query *query_of(struct web_read *q) { return (struct store_query *)(void *)(q + 1); }

static void on_web_read(struct store_query *query)
{
	struct web_read *q = (struct web_read *)(void *)query - 1;
	const struct web_read_kind *kind = q->kind;
	int err = query->err;

	if (!err && kind->check)
		err = kind->check(q);
	if (err) {
		web_read_await(q, err);
	} else if (kind->answer) {
		kind->answer(q);
	} else {
		q->render.make = kind->make;
		q->render.make_text = kind->make_text;
		q->render.over = web_read_free;
		q->render.owner = q;
		q->render.request = q->request;
		web_render(q->web->deps.loop, &q->render, kind->n_items ? kind->n_items(q) : SIZE_MAX);
	}
}

void *web_read_new(struct web *w, struct http_request *r, const struct web_read_kind *kind)
{
	if (!w->config) {
		web_refuse(r);
		return NULL;
	}
	struct web_read *q = xcalloc(1, kind->bytes);
	q->kind = kind;
	q->web = w;
	q->store = w->deps.store;
	q->request = r;
	q->config = config_ref(w->config);
	q->not_found = kind->not_found;
	query_of(q)->done = on_web_read;
	return q;
}

void web_read_free(void *owner)
{
	struct web_read *q = owner;

	q->kind->release(q);
	config_unref(q->config);
	free(q);
}

void web_read_await(void *owner, int err)
{
	struct web_read *q = owner;

	if (!err)
		return;
	if (err == ERR_NOT_FOUND && q->not_found)
		web_respond_not_found(q->request, q->not_found);
	else
		web_refuse(q->request);
	web_read_free(q);
}
