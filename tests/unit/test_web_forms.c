/* Pages, entity tags, encodings and watches: the pure functions of the web layer. */
#include <setjmp.h>

#include <cmocka.h>

#include "web/assets.h"
#include "web/events.h"
#include "web/page.h"

/* ---- pages ---- */

static char *page_of(const char *body, const char *title)
{
	struct buf out = BUF_INIT(16 << 20);

	page_write(&out, &(struct page){.title = title,
			     .api = "/api/v1/pulls/7?limit=500&q=%3C",
			     .status = 200,
			     .etag = "\"abc\"",
			     .now_ms = 1000,
			     .base = "https://o.example",
			     .upstream = "pytorch/pytorch",
			     .body = body,
			     .body_bytes = strlen(body)});
	assert_int_equal(buf_status(&out), 0);
	return buf_detach(&out);
}

/* As a browser's parser finds it: up to the first end tag, for any content. */
static json_t *data_of(const char *html)
{
	const char *at = strstr(html, "id=\"data\">"), *end;
	struct error e = {0};
	json_t *v = NULL;

	assert_non_null(at);
	at += strlen("id=\"data\">");
	end = strchr(at, '<');
	assert_non_null(end);
	if (json_parse(at, (size_t)(end - at), &v, &e))
		fail_msg("%s", e.text);
	return v;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		n++;
	return n;
}

static void hostile_text_stays_inside_its_element(void **state)
{
	static const char *const hostile[] = {"</script><script>alert(1)</script>", "<!--<script>", "&lt;/script&gt;",
	    "\xe2\x80\xa8\xe2\x80\xa9", "{{data}}{{title}}{{api}}", "\\\"<\\u003c", "\xe2\x80", "]]>"};
	char *harmless = page_of("{}", "harmless");
	size_t n_lt = count(harmless, "<");

	(void)state;
	/* besides the frame, the links to the files that this page loads */
	assert_true(n_lt > count(WEB_PAGE, "<"));
	assert_non_null(strstr(harmless, "<link rel=\"modulepreload\" href=\"/assets/change-"));
	free(harmless);
	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		json_t *v = json_pack("{s:o?}", "text", json_string(hostile[i])), *data, *body;
		char *text = v ? json_text(v) : xstrdup("{}"), *html = page_of(text, hostile[i]);

		assert_int_equal(count(html, "<"), n_lt);
		assert_int_equal(count(html, "\xe2\x80\xa8"), 0);
		data = data_of(html);
		body = json_object_get(data, "body");
		assert_true(!v || json_equal(body, v));
		assert_string_equal(json_get_str(data, "etag"), "\"abc\"");
		assert_string_equal(json_get_str(data, "now"), "1970-01-01T00:00:01Z");
		assert_string_equal(json_get_str(data, "upstream"), "pytorch/pytorch");
		json_decref(data);
		json_decref(v);
		free(text);
		free(html);
	}
}

static void a_link_to_the_api_is_escaped(void **state)
{
	char *html = page_of("{}", "t");

	(void)state;
	assert_non_null(strstr(html, "\"/api/v1/pulls/7?limit=500&amp;q=%3C\""));
	assert_null(strstr(html, "{{"));
	free(html);
}

static void a_long_answer_is_not_embedded_in_its_page(void **state)
{
	char *body = xmalloc(PAGE_BODY_MAX_BYTES + 2), *html;
	json_t *data;

	(void)state;
	memset(body, '<', PAGE_BODY_MAX_BYTES + 1);
	body[PAGE_BODY_MAX_BYTES + 1] = '\0';
	body[0] = body[PAGE_BODY_MAX_BYTES] = '"';
	html = page_of(body, "t");
	data = data_of(html);
	assert_true(json_is_null(json_object_get(data, "body")));
	json_decref(data);
	free(html);
	/* With one byte less it is embedded; each of its bytes takes six. */
	body[PAGE_BODY_MAX_BYTES - 1] = '"';
	body[PAGE_BODY_MAX_BYTES] = '\0';
	html = page_of(body, "t");
	assert_true(strlen(html) > 6 * (size_t)(PAGE_BODY_MAX_BYTES - 2));
	data = data_of(html);
	assert_int_equal(json_string_length(json_object_get(data, "body")), PAGE_BODY_MAX_BYTES - 2);
	json_decref(data);
	free(html);
	free(body);
}

/* ---- entity tags ---- */

static void tags_are_compared_weakly(void **state)
{
	static const struct {
		const char *header;
		bool is_named;
	} cases[] = {
	    {"\"a\"", true},
	    {"W/\"a\"", true},
	    {"\"b\", W/\"a\"", true},
	    {" \"b\" ,,\t\"a\" ", true},
	    {"*", true},
	    {" * ", true},
	    {"\"a,b\", \"a\"", true},
	    {NULL, false},
	    {"", false},
	    {"a", false},
	    {"\"a", false},
	    {"\"ab\"", false},
	    {"\"A\"", false},
	    {"w/\"a\"", false},
	    {"\"b\"", false},
	    {"*, \"b\"", false},
	    {"\"x, \"a\"", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (etag_is_named(cases[i].header, "\"a\"") != cases[i].is_named ||
		    etag_is_named(cases[i].header, "W/\"a\"") != cases[i].is_named)
			fail_msg("If-None-Match: %s", cases[i].header ? cases[i].header : "none");
	}
}

static void a_tag_depends_on_the_bytes(void **state)
{
	char a[ETAG_BYTES], b[ETAG_BYTES];

	(void)state;
	etag_of("x", 1, a);
	etag_of("x", 1, b);
	assert_string_equal(a, b);
	assert_int_equal(strlen(a), 34);
	etag_of("y", 1, b);
	assert_string_not_equal(a, b);
	assert_true(etag_is_named(b, b));
}

/* ---- encodings ---- */

static void gzip_is_sent_to_clients_that_accept_it(void **state)
{
	static const char *const yes[] = {"gzip", "GZIP", "br, gzip", "deflate;q=0.1, gzip;q=0.2", "*",
	    "identity;q=0, *;q=0.5", "gzip ; q=1.0", "gzip;q=0.001"};
	static const char *const no[] = {
	    NULL, "", "br", "gzip;q=0", "gzip; q=0.000", "*;q=0", "gzip;q=0, *", "x-gzipped", "identity"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		if (!accepts_gzip(yes[i]))
			fail_msg("%s", yes[i]);
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if (accepts_gzip(no[i]))
			fail_msg("%s", no[i] ? no[i] : "none");
}

/* ---- watches ---- */

static void only_existing_things_can_be_watched(void **state)
{
	static const char *const good[] = {"pulls/7", "commits/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	    "jobs/9223372036854775807", "accelerators/ascend-npu", "dashboard", "nightly", "platforms",
	    "platforms/cuda", "accelerators"};
	static const char *const bad[] = {"", "/", "pulls", "pulls/", "pulls/0", "pulls/-1", "pulls/x", "pulls/7/x",
	    "commits/abc", "jobs/99999999999999999999", "accelerators/\"}\n\nevent: x", "accelerators/A", "platforms/",
	    "/pulls/7", "dashboard/", "metrics"};
	struct watch w;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (watch_parse(good[i], &w) || strcmp(w.path, good[i]) != 0)
			fail_msg("%s", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (!watch_parse(bad[i], &w))
			fail_msg("%s", bad[i]);
}

static void only_watchers_of_the_changed_thing_are_notified(void **state)
{
	char *shas[] = {(char *)"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL};
	char *accelerators[] = {(char *)"npu", NULL};
	int64_t numbers[] = {7};
	struct name_touched n = {.touched = {.jobs = {3}, .n_jobs = 1},
	    .shas = shas,
	    .accelerators = accelerators,
	    .numbers = numbers,
	    .n_numbers = 1};
	static const struct {
		const char *path;
		bool is_touched;
	} cases[] = {
	    {"pulls/7", true},
	    {"pulls/8", false},
	    {"commits/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true},
	    {"commits/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", false},
	    {"jobs/3", true},
	    {"jobs/7", false},
	    {"accelerators/npu", true},
	    {"accelerators/npu-2", false},
	    {"dashboard", true},
	};
	struct watch w;

	(void)state;
	for (int is_all = 0; is_all < 2; is_all++) {
		n.touched.is_all = is_all;
		for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
			assert_int_equal(watch_parse(cases[i].path, &w), 0);
			if (watch_is_touched(&w, &n) != (cases[i].is_touched || is_all))
				fail_msg("%s", cases[i].path);
		}
	}
}

static void a_frame_is_one_event(void **state)
{
	struct buf out = BUF_INIT(1000);
	struct watch w;

	(void)state;
	assert_int_equal(watch_parse("pulls/7", &w), 0);
	watch_write_event(&out, &w, 255, 16);
	assert_string_equal(buf_str(&out), "id: ff-10\nevent: change\ndata: {\"watch\":\"pulls/7\"}\n\n");
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(hostile_text_stays_inside_its_element),
	    cmocka_unit_test(a_link_to_the_api_is_escaped),
	    cmocka_unit_test(a_long_answer_is_not_embedded_in_its_page),
	    cmocka_unit_test(tags_are_compared_weakly),
	    cmocka_unit_test(a_tag_depends_on_the_bytes),
	    cmocka_unit_test(gzip_is_sent_to_clients_that_accept_it),
	    cmocka_unit_test(only_existing_things_can_be_watched),
	    cmocka_unit_test(only_watchers_of_the_changed_thing_are_notified),
	    cmocka_unit_test(a_frame_is_one_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
