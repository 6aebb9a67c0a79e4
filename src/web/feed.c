/* /feed.xml: what broke on upstream's branches and what works again. Fifty entries are a third of a
 * millisecond to write: it is done on the loop. */
#include "report/feed.h"

#include "base/alloc.h"
#include "base/str.h"
#include "store/feed_events.h"
#include "web/document.h"
#include "web/web_internal.h"

enum { FEED_MAX_BYTES = 1 << 20 };

struct feed_request {
	struct list_feed_events get;
	struct http_request *request;
	struct config *config; /* as of the request */
	int64_t started_ms;
};

static void feed_request_free(struct feed_request *f)
{
	list_feed_events_release(&f->get);
	config_unref(f->config);
	free(f);
}

/* What was lowered to L1 a moment ago may not be so in the store yet. */
static void drop_silent(struct feed_request *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->get.n; i++) {
		struct feed_event *e = &f->get.list[i];
		const struct accelerator *a = config_accelerator(f->config, e->accelerator);

		if (a && a->level == LEVEL_1)
			feed_event_release(e);
		else
			f->get.list[n++] = *e;
	}
	f->get.n = n;
}

static void events_read(struct store_query *q)
{
	struct feed_request *f = CONTAINER_OF(q, struct feed_request, get.q);
	struct buf out = BUF_INIT(FEED_MAX_BYTES);
	size_t n;

	if (q->err) {
		web_document_busy(f->request);
		feed_request_free(f);
		return;
	}
	drop_silent(f);
	feed_write(&out, &(struct feed){.public_url = f->config->public_url,
			     .upstream = f->config->upstream_repository,
			     .empty_ms = f->started_ms,
			     .events = f->get.list,
			     .n = f->get.n});
	n = out.len;
	web_document_send(f->request, &(struct web_document){.status = 200,
					  .type = "application/atom+xml; charset=utf-8",
					  .cache = "no-cache",
					  .n = n,
					  .body = buf_take(&out)});
	feed_request_free(f);
}

static void on_feed(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct feed_request *f;

	if (!w->config) {
		web_document_busy(r);
		return;
	}
	f = xcalloc(1, sizeof(*f));
	f->request = r;
	f->config = config_ref(w->config);
	f->started_ms = w->started_wall_ms;
	f->get.q.done = events_read;
	if (store_list_feed_events(w->deps.store, &f->get)) {
		web_document_busy(r);
		feed_request_free(f);
	}
}

void web_add_feed_routes(struct web *w)
{
	web_add_document(w, "/feed.xml", on_feed);
}
