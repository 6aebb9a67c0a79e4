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

/* ---- the text ---- */

/* Thread: any. Takes json (free()). */
static void write_text(struct web_text *t, const struct web_form *f, int status, char *json)
{
	static _Thread_local char frame[ETAG_BYTES];
	struct buf out = BUF_INIT(6 * (size_t)PAGE_BODY_MAX_BYTES + PAGE_FRAME_BYTES);
	char *title, api[ETAG_BYTES];

	*t = (struct web_text){.bytes = json, .n = strlen(json)};
	etag_of(json, t->n, t->etag);
	if (!f->is_page)
		return;
	if (status == 404)
		title = xstrdup("Not found · Outpost");
	else if (!f->title)
		title = f->upstream ? xasprintf("Outpost · %s", f->upstream) : xstrdup("Outpost");
	else
		title = xasprintf("%s%.*s · Outpost", f->title, f->id && is_sha1(f->id) ? 10 : 200, f->id ? f->id : "");
	page_write(&out, &(struct page){.title = title,
			     .api = f->api,
			     .status = status,
			     .etag = t->etag,
			     .now_ms = f->now_ms,
			     .base = f->base,
			     .upstream = f->upstream,
			     .body = json,
			     .body_bytes = t->n});
	FREE_ALL(title, json);
	t->n = out.len;
	t->bytes = buf_detach(&out);
	/* The tag changes every minute, because the page contains the time from which ages are counted, and with each release,
	 * because the scripts change. */
	if (!frame[0])
		etag_of(WEB_PAGE, strlen(WEB_PAGE), frame);
	memcpy(api, t->etag, ETAG_BYTES);
	snprintf(
	    t->etag, ETAG_BYTES, "W/\"%.16s%.8s-%llx\"", api + 1, frame + 1, (unsigned long long)(f->now_ms / 60000));
}

/* ---- the answer ---- */

struct answer {
	const struct web_form *form;
	const char *etag;
	struct http_shared *body;
	int status, retry_after_s;
};

static void send_answer(struct http_request *r, void *p)
{
	const struct answer *a = p;
	char seconds[16];
	const char *name = a->status == 200 ? "ETag" : a->retry_after_s ? "Retry-After" : NULL;
	const struct http_header_line last = {name, a->status == 200 ? a->etag : seconds};
	/* Any site may read the JSON from a browser: there is no login. */
	const struct http_header_line json[] = {{"Cache-Control", "no-cache"}, {"Access-Control-Allow-Origin", "*"},
	    {"Access-Control-Expose-Headers", "ETag, Retry-After"}, last, {NULL, NULL}};
	const struct http_header_line page[] = {{"Cache-Control", "no-cache"}, {"Content-Security-Policy", PAGE_POLICY},
	    {"Referrer-Policy", "no-referrer"}, {"X-Frame-Options", "DENY"}, {"Vary", "Accept"}, last, {NULL, NULL}};
	const struct http_header_line *h = a->form->is_page ? page : json;

	snprintf(seconds, sizeof(seconds), "%d", a->retry_after_s);
	if (a->retry_after_s)
		http_count_busy(r);
	if (a->status == 200 && etag_is_named(http_header(r, "If-None-Match"), a->etag))
		http_respond(r, 304, NULL, h, "", 0);
	else
		http_respond_shared(
		    r, a->status, a->form->is_page ? "text/html; charset=utf-8" : "application/json", h, a->body);
}

/* Answers r and all requests that wait for the same answer (gate.h); a client that has it already gets 304. retry_after_s 0:
 * no such header. Releases t. */
static void send_text(
    struct web_text *t, const struct web_form *f, struct http_request *r, int status, int retry_after_s)
{
	struct answer a = {
	    .form = f,
	    .etag = t->etag,
	    .body = http_shared_new(t->bytes, t->n),
	    .status = status,
	    .retry_after_s = retry_after_s,
	};

	t->bytes = NULL;
	web_gate_answer(r, send_answer, &a);
	http_shared_unref(a.body);
}

static void respond_text(struct http_request *r, int status, char *json, int retry_after_s)
{
	struct web_form form;
	struct web_text text;

	web_form_init(&form, r);
	write_text(&text, &form, status, json);
	send_text(&text, &form, r, status, retry_after_s);
	release_form(&form);
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

struct document_answer {
	const struct web_document *d;
	const char *etag;
	struct http_shared *body;
};

static void send_document(struct http_request *r, void *p)
{
	const struct document_answer *a = p;
	const struct web_document *d = a->d;
	/* The policy: if a browser shows it as a page, it loads and runs nothing. */
	const struct http_header_line headers[] = {{"Access-Control-Allow-Origin", "*"},
	    {"Content-Security-Policy", "default-src 'none'"}, {"Cache-Control", d->cache}, {"ETag", a->etag},
	    {d->disposition ? "Content-Disposition" : NULL, d->disposition}, {NULL, NULL}};

	if (d->status == 200 && etag_is_named(http_header(r, "If-None-Match"), a->etag))
		http_respond(r, 304, NULL, headers, NULL, 0);
	else
		http_respond_shared(r, d->status, d->type, headers, a->body);
}

void web_document_send(struct http_request *r, const struct web_document *d)
{
	char made[ETAG_BYTES];
	struct document_answer a = {.d = d, .etag = d->etag};

	if (!a.etag) {
		etag_of(d->body, d->n, made);
		a.etag = made;
	}
	a.body = http_shared_new(d->body, d->n);
	web_gate_answer(r, send_document, &a);
	http_shared_unref(a.body);
}

static void send_document_busy(struct http_request *r, void *p)
{
	(void)p;
	http_respond_busy(r, RETRY_AFTER_S);
}

void web_document_busy(struct http_request *r) { web_gate_answer(r, send_document_busy, NULL); }

/* ---- answers that the pool may write ---- */

enum { ITEMS_AT_ONCE = 200 }; /* under a millisecond */

static void write_rendered(struct pool_work *work)
{
	struct web_render *r = CONTAINER_OF(work, struct web_render, work);
	json_t *v = r->make ? r->make(r->owner) : NULL;

	write_text(&r->text, &r->form, 200, v ? json_text(v) : r->make_text(r->owner));
	json_decref(v);
}

static void send_rendered(struct pool_work *work)
{
	struct web_render *r = CONTAINER_OF(work, struct web_render, work);

	send_text(&r->text, &r->form, r->request, 200, 0);
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
