#include "web/page.h"

#include "web/assets.h"

/* Escapes the characters that HTML or an old script parser would read as markup. In JSON they occur only inside of strings, where
 * the escapes mean the same. A NUL follows at json[n] or behind. */
static void append_embedded_json(struct buf *out, const char *json, size_t n)
{
	size_t from = 0;

	for (size_t i = strcspn(json, "<>&\xe2"); i < n; i += 1 + strcspn(json + i + 1, "<>&\xe2")) {
		const char *escape = NULL;
		size_t length = 1;

		if (json[i] != '\xe2') {
			escape = json[i] == '<' ? "\\u003c" : json[i] == '>' ? "\\u003e" : "\\u0026";
		} else if (i + 2 < n && json[i + 1] == '\x80' && (json[i + 2] == '\xa8' || json[i + 2] == '\xa9')) {
			escape = json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
			length = 3;
		}
		if (!escape)
			continue;
		buf_append(out, json + from, i - from);
		buf_append_str(out, escape);
		from = i + length;
	}
	buf_append(out, json + from, n - from);
}

static void append_data(struct buf *out, const struct page *p)
{
	json_t *head = json_pack("{s:s?, s:i, s:s?, s:o, s:s?, s:s?, s:s}", "api", p->api, "status", p->status, "etag",
	    p->etag, "now", json_time(p->now_ms), "base", p->base, "upstream", p->upstream, "version", OUTPOST_VERSION);
	char *text = json_text(head);

	json_decref(head);
	append_embedded_json(out, text, strlen(text) - 1); /* without its closing brace */
	free(text);
	buf_append_str(out, ",\"body\":");
	if (p->body_bytes > PAGE_BODY_MAX_BYTES)
		buf_append_str(out, "null");
	else
		append_embedded_json(out, p->body, p->body_bytes);
	buf_append_char(out, '}');
}

/* Links to the script that web/src/main.jsx loads for the answer; none if it is not known. */
static void append_preloads(struct buf *out, const struct page *p)
{
	static const struct {
		const char *prefix, *name;
	} PAGES[] = {{"/api/v1/dashboard", "dashboard"}, {"/api/v1/pulls/", "change"}, {"/api/v1/commits/", "change"},
	    {"/api/v1/accelerators/", "accelerator"}, {"/api/v1/jobs/", "job"}, {"/api/v1/nightly", "nightly"},
	    {"/api/v1/platforms/", "platform"}, {"/api/v1/platforms", "platforms"}};

	const char *name = NULL;

	for (size_t i = 0; p->api && i < ARRAY_LEN(PAGES) && !name; i++)
		if (str_has_prefix(p->api, PAGES[i].prefix))
			name = PAGES[i].name;
	for (const struct web_preload *w = WEB_PRELOADS; name && w->name; w++)
		if (str_eq(w->name, name))
			buf_append_str(out, w->links);
}

/* Fills the frame's places in one pass, so text that was filled in is not searched for places again. */
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

/* ---- entity tags ---- */

enum { DIGEST_BYTES = 16 }; /* of SHA-256's 32: a collision of our own answers has no use */

void etag_of(const void *p, size_t n, char *out)
{
	uint8_t digest[SHA256_BYTES];

	sha256(p, n, digest);
	out[0] = '"';
	hex_encode(digest, DIGEST_BYTES, out + 1);
	memcpy(out + 1 + 2 * (size_t)DIGEST_BYTES, "\"", 2);
}

static const char *opaque_part(const char *tag) { return str_has_prefix(tag, "W/") ? tag + 2 : tag; }

bool etag_is_named(const char *header, const char *etag)
{
	const char *want = opaque_part(etag);
	size_t n = strlen(want);

	if (!header)
		return false;
	header += strspn(header, " \t");
	if (header[0] == '*' && header[1 + strspn(header + 1, " \t")] == '\0')
		return true;
	for (;;) {
		const char *tag, *end;

		header += strspn(header, " \t,");
		tag = opaque_part(header);
		end = tag[0] == '"' ? strchr(tag + 1, '"') : NULL;
		if (!end)
			return false;
		if ((size_t)(end + 1 - tag) == n && memcmp(tag, want, n) == 0)
			return true;
		header = end + 1;
	}
}
