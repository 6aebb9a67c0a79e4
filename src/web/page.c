#include "web/page.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/str.h"
#include "base/version.h"
#include "web/assets.h"

/* JSON's own escapes for what HTML or an old script parser would read as more than text. All of it
 * occurs inside of JSON's strings only, where these mean the same. */
static void append_json(struct buf *out, const char *json, size_t n)
{
	size_t from = 0;

	for (size_t i = 0; i < n; i++) {
		const char *escape = NULL;
		size_t length = 1;

		if (json[i] == '<' || json[i] == '>' || json[i] == '&') {
			escape = json[i] == '<'   ? "\\u003c"
				 : json[i] == '>' ? "\\u003e"
						  : "\\u0026";
		} else if (json[i] == '\xe2' && i + 2 < n && json[i + 1] == '\x80' &&
			   (json[i + 2] == '\xa8' || json[i + 2] == '\xa9')) {
			escape = json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
			length = 3;
		}
		if (!escape)
			continue;
		buf_append(out, json + from, i - from);
		buf_append_str(out, escape);
		i += length - 1;
		from = i + 1;
	}
	buf_append(out, json + from, n - from);
}

static void append_data(struct buf *out, const struct page *p)
{
	json_t *head = json_object();
	char *text;

	json_set_str(head, "api", p->api);
	json_set_int(head, "status", p->status);
	json_set_str(head, "etag", p->etag);
	json_set_time(head, "now", p->now_ms);
	json_set_str(head, "base", p->base);
	json_set_str(head, "upstream", p->upstream);
	json_set_str(head, "version", OUTPOST_VERSION);
	text = json_text(head);
	json_decref(head);
	append_json(out, text, strlen(text) - 1); /* without its brace */
	free(text);
	buf_append_str(out, ",\"body\":");
	if (p->body_bytes > PAGE_BODY_MAX_BYTES)
		buf_append_str(out, "null");
	else
		append_json(out, p->body, p->body_bytes);
	buf_append_char(out, '}');
}

/* As web/src/main.jsx chooses; NULL: none. */
static const char *name_of(const char *api)
{
	static const struct {
		const char *prefix, *name;
	} PAGES[] = {{"/api/v1/dashboard", "dashboard"}, {"/api/v1/pulls/", "change"},
	    {"/api/v1/commits/", "change"}, {"/api/v1/accelerators/", "accelerator"},
	    {"/api/v1/jobs/", "job"}, {"/api/v1/nightly", "nightly"},
	    {"/api/v1/platforms/", "platform"}, {"/api/v1/platforms", "platforms"}};

	for (size_t i = 0; api && i < ARRAY_LEN(PAGES); i++)
		if (str_has_prefix(api, PAGES[i].prefix))
			return PAGES[i].name;
	return NULL;
}

static void append_preloads(struct buf *out, const struct page *p)
{
	const char *name = name_of(p->api);

	for (const struct web_preload *w = WEB_PRELOADS; name && w->name; w++)
		if (str_eq(w->name, name))
			buf_append_str(out, w->links);
}

/* The frame's places are filled where they stand: what was filled in is not looked at again. */
void page_write(struct buf *out, const struct page *p)
{
	const char *rest = WEB_PAGE, *at;

	while ((at = strstr(rest, "{{")) != NULL) {
		const char *end = strstr(at, "}}");

		buf_append(out, rest, (size_t)(at - rest));
		if (strncmp(at, "{{title}}", 9) == 0)
			escape_html(out, p->title);
		else if (strncmp(at, "{{api}}", 7) == 0)
			escape_html(out, p->api ? p->api : "/api/v1/dashboard");
		else if (strncmp(at, "{{page}}", 8) == 0)
			append_preloads(out, p);
		else
			append_data(out, p);
		rest = end + 2;
	}
	buf_append_str(out, rest);
}
