/* /feed.xml: failures that began on upstream's branches, and those that ended. Fifty entries take a third of
 * a millisecond, so the loop writes them. */
#include "web/feed.h"

#include "views/days.h"
#include "views/feed_events.h"
#include "web/web_internal.h"

enum { TEXT_MAX_BYTES = 32 << 10, NAME_MAX_CHARS = 120, SHA_SHOWN = 10 };

/* RFC 4151 requires a date on which we owned the host; it never changes. */
#define TAG_YEAR "2026"

/* "tag:outpost.example.org,2026:red/7": a tag may contain letters, digits, "." and "-". */
static void put_id(struct buf *out, const struct feed *f, const char *what)
{
	const char *host = strstr(f->public_url, "://");

	host = host ? host + 3 : f->public_url;
	size_t n = strcspn(host, *host == '[' ? "]/" : ":/");
	buf_append_str(out, "<id>tag:");
	for (size_t i = 0; i < n; i++)
		if (isalnum((unsigned char)host[i]) || host[i] == '.' || host[i] == '-')
			buf_append_char(out, (char)tolower((unsigned char)host[i]));
		else if (host[i] == ':')
			buf_append_char(out, '-');
	buf_append_str(out, "," TAG_YEAR ":");
	escape_xml_text(out, what);
	buf_append_str(out, "</id>\n");
}

static void put_time(struct buf *out, int64_t at_ms)
{
	char text[RFC3339_BYTES];

	buf_appendf(out, "<updated>%s</updated>\n", rfc3339_format(at_ms, text));
}

/* free()s href. */
static void put_link(struct buf *out, const char *rel, const char *type, char *href)
{
	buf_append_str(out, "<link");
	escape_xml_attribute(out, "rel", rel);
	escape_xml_attribute(out, "type", type);
	escape_xml_attribute(out, "href", href);
	buf_append_str(out, "/>\n");
	free(href);
}

static void put_element(struct buf *out, const char *element, const char *text)
{
	buf_appendf(out, "<%s type=\"text\">", element);
	escape_xml_text(out, text);
	buf_appendf(out, "</%s>\n", element);
}

static void append_event_name(struct buf *out, const char *name)
{
	escape_line(out, name ? name : "?", NAME_MAX_CHARS);
}

static bool is_nightly(const struct feed_event *e)
{
	return e->kind == FEED_NIGHTLY_RED || e->kind == FEED_NIGHTLY_GREEN;
}

static void put_title(struct buf *out, const struct feed_event *e)
{
	struct buf text = BUF_INIT(TEXT_MAX_BYTES);
	bool is_one = e->n_tests == 1;
	char day[DAY_TEXT_BYTES];

	append_event_name(&text, e->title);
	if (is_nightly(e)) {
		const char *state = e->kind == FEED_NIGHTLY_RED ? is_one ? "test is red" : "tests are red"
				    : is_one                    ? "test works again"
								: "tests work again";

		buf_appendf(&text, ": %lld %s since the periodic run of %s", (long long)e->n_tests, state,
		    day_text(e->id, day));
	} else {
		buf_append_str(&text, e->is_silence           ? ": no report on "
				      : e->kind == FEED_RED   ? " is red on "
				      : e->kind == FEED_GREEN ? " is green again on "
							      : " is not red any more on ");
		append_event_name(&text, e->ref);
	}
	put_element(out, "title", buf_str(&text));
	buf_release(&text);
}

static void put_content(struct buf *out, const struct feed_event *e)
{
	struct buf text = BUF_INIT(TEXT_MAX_BYTES);
	bool is_red = e->kind == FEED_RED || e->kind == FEED_NIGHTLY_RED;
	size_t n = 0;

	if (e->sha)
		buf_appendf(&text, is_red ? "Since commit %.*s" : "With commit %.*s", SHA_SHOWN, e->sha);
	else if (e->kind == FEED_NOT_RED)
		buf_append_str(&text, "The red tests are explained, and no newer test has passed");
	else
		buf_append_str(&text, "The commit is not on record any more");
	if (is_red && e->last_good_sha)
		buf_appendf(&text, "; the last green one is %.*s", SHA_SHOWN, e->last_good_sha);
	buf_append_char(&text, '.');
	if (e->n_tests) {
		buf_append_str(&text, e->kind == FEED_NIGHTLY_GREEN ? " Green: "
				      : e->is_silence               ? " No report: "
								    : " Red: ");
		for (; e->tests && e->tests[n]; n++) {
			buf_append_str(&text, n ? ", " : "");
			append_event_name(&text, e->tests[n]);
		}
		if (e->n_tests > (int64_t)n)
			buf_appendf(&text, " and %lld more", (long long)e->n_tests - (long long)n);
		buf_append_char(&text, '.');
	}
	put_element(out, "content", buf_str(&text));
	buf_release(&text);
}

static void put_entry(struct buf *out, const struct feed *f, const struct feed_event *e)
{
	static const char *const words[] = {[FEED_RED] = "red",
	    [FEED_GREEN] = "green",
	    [FEED_NOT_RED] = "green",
	    [FEED_NIGHTLY_RED] = "nightly-red",
	    [FEED_NIGHTLY_GREEN] = "nightly-green"};
	char day[DAY_TEXT_BYTES];
	char *id = is_nightly(e) ? xasprintf("%s/%s/%s", words[e->kind], e->accelerator, day_text(e->id, day))
				 : xasprintf("%s/%lld", words[e->kind], (long long)e->id);

	buf_append_str(out, "<entry>\n");
	put_id(out, f, id);
	free(id);
	put_title(out, e);
	put_time(out, e->at_ms);
	put_link(out, "alternate", "text/html",
	    is_nightly(e) ? xasprintf("%s/nightly?accelerator=%s", f->public_url, e->accelerator)
			  : xasprintf("%s/accelerators/%s", f->public_url, e->accelerator));
	if (e->sha)
		put_link(out, "related", "text/html", xasprintf("%s/commits/%s", f->public_url, e->sha));
	if (e->issue_repository && e->issue_number)
		put_link(out, "related", "text/html",
		    xasprintf("https://github.com/%s/issues/%lld", e->issue_repository, (long long)e->issue_number));
	put_content(out, e);
	buf_append_str(out, "</entry>\n");
}

void feed_write(struct buf *out, const struct feed *f)
{
	struct buf title = BUF_INIT(TEXT_MAX_BYTES);

	buf_appendf(&title, "Outpost: accelerators on %s", f->upstream);
	buf_append_str(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			    "<feed xmlns=\"http://www.w3.org/2005/Atom\">\n");
	put_id(out, f, "feed");
	put_element(out, "title", buf_str(&title));
	put_time(out, f->n ? f->events[0].at_ms : f->empty_ms);
	buf_append_str(out, "<author><name>Outpost</name></author>\n");
	put_link(out, "self", "application/atom+xml", xasprintf("%s/feed.xml", f->public_url));
	put_link(out, "alternate", "text/html", xasprintf("%s/", f->public_url));
	for (size_t i = 0; i < f->n; i++)
		put_entry(out, f, &f->events[i]);
	buf_append_str(out, "</feed>\n");
	buf_release(&title);
}

/* ---- the request ---- */

enum { FEED_MAX_BYTES = 1 << 20 };

struct feed_request {
	struct web_read read;
	struct list_feed_events get;
};

static void release_feed(void *f) { list_feed_events_release(&((struct feed_request *)f)->get); }

static void answer_feed(void *owner)
{
	struct feed_request *f = owner;
	const struct config *c = f->read.config;
	struct buf out = BUF_INIT(FEED_MAX_BYTES);
	size_t n = 0, n_bytes;

	/* The store may not know yet that an accelerator went down to L1. */
	for (size_t i = 0; i < f->get.n; i++) {
		struct feed_event *e = &f->get.list[i];
		const struct accelerator *a = config_accelerator(c, e->accelerator);

		if (a && a->level == LEVEL_1)
			feed_event_release(e);
		else
			f->get.list[n++] = *e;
	}
	f->get.n = n;
	feed_write(&out, &(struct feed){.public_url = c->public_url,
			     .upstream = c->upstream_repository,
			     .empty_ms = f->read.web->started_wall_ms,
			     .events = f->get.list,
			     .n = n});
	n_bytes = out.len;
	web_document_send(f->read.request, &(struct web_document){.status = 200,
					       .type = "application/atom+xml; charset=utf-8",
					       .cache = "no-cache",
					       .n = n_bytes,
					       .body = buf_detach(&out)});
	web_read_free(f);
}

static const struct web_read_kind FEED = {sizeof(struct feed_request), release_feed, .answer = answer_feed};

void web_on_feed(struct http_request *r, void *owner)
{
	struct feed_request *f = web_read_new(owner, r, &FEED);

	if (f)
		web_read_await(f, store_list_feed_events(f->read.store, &f->get));
}
