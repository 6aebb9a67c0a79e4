/* The feed is valid Atom (RFC 4287) for any text of vendors and authors. */
#include <expat.h>
#include <setjmp.h>

#include <cmocka.h>

#include "web/feed.h"

#define TEXT(s) ((char *)(uintptr_t)(s))
#define SHA_A   "0123456789abcdef0123456789abcdef01234567"
#define SHA_B   "fedcba9876543210fedcba9876543210fedcba98"

/* The elements that every feed and every entry must have exactly once (sections 4.1.1 and 4.1.2). */
struct checked {
	int depth, n_entries, n_ids, n_titles, n_updated, n_authors, n_alternates;
	char *ids[FEED_EVENTS_MAX + 1];
	struct buf text;
	const char *open;
};

static void begin_part(struct checked *c) { c->n_ids = c->n_titles = c->n_updated = c->n_alternates = 0; }

static void end_part(const struct checked *c)
{
	assert_int_equal(c->n_ids, 1);
	assert_int_equal(c->n_titles, 1);
	assert_int_equal(c->n_updated, 1);
	assert_int_equal(c->n_alternates, 1);
}

static void on_start(void *owner, const XML_Char *element, const XML_Char **attributes)
{
	struct checked *c = owner;

	if (!strcmp(element, "entry")) {
		assert_int_equal(c->depth, 1);
		end_part(c); /* the feed's own come first, or the entry before was whole */
		begin_part(c);
		c->n_entries++;
	}
	c->n_ids += !strcmp(element, "id");
	c->n_titles += !strcmp(element, "title");
	c->n_updated += !strcmp(element, "updated");
	c->n_authors += !strcmp(element, "author");
	for (; !strcmp(element, "link") && attributes[0]; attributes += 2) {
		c->n_alternates += !strcmp(attributes[0], "rel") && !strcmp(attributes[1], "alternate");
		if (!strcmp(attributes[0], "href"))
			assert_true(str_has_prefix(attributes[1], "https://"));
	}
	buf_clear(&c->text);
	c->depth++;
}

static void on_end(void *owner, const XML_Char *element)
{
	struct checked *c = owner;

	c->depth--;
	if (!strcmp(element, "id")) {
		assert_true(str_has_prefix(buf_str(&c->text), "tag:"));
		c->ids[c->n_entries] = xstrdup(buf_str(&c->text));
	}
}

static void on_text(void *owner, const XML_Char *text, int n)
{
	buf_append(&((struct checked *)owner)->text, text, (size_t)n);
}

static char *checked_feed(const struct feed *f)
{
	struct buf out = BUF_INIT(1 << 20);
	struct checked c = {.text = BUF_INIT(1 << 16)};
	XML_Parser xml = XML_ParserCreate(NULL);
	int ok;

	feed_write(&out, f);
	assert_int_equal(buf_status(&out), 0);
	XML_SetUserData(xml, &c);
	XML_SetElementHandler(xml, on_start, on_end);
	XML_SetCharacterDataHandler(xml, on_text);
	ok = XML_Parse(xml, buf_str(&out), (int)out.len, XML_TRUE);
	if (!ok)
		print_error("%s\n", buf_str(&out));
	assert_true(ok);
	end_part(&c);
	assert_int_equal(c.n_entries, f->n);
	assert_int_equal(c.n_authors, 1);
	for (int i = 0; i <= c.n_entries; i++)
		for (int j = 0; j < i; j++)
			assert_string_not_equal(c.ids[i], c.ids[j]);
	for (int i = 0; i <= c.n_entries; i++)
		free(c.ids[i]);
	XML_ParserFree(xml);
	buf_release(&c.text);
	return buf_detach(&out);
}

static const char RED_THEN_GREEN[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<feed xmlns=\"http://www.w3.org/2005/Atom\">\n"
    "<id>tag:outpost.example.org,2026:feed</id>\n"
    "<title type=\"text\">Outpost: accelerators on pytorch/pytorch</title>\n"
    "<updated>2026-05-28T20:27:40Z</updated>\n"
    "<author><name>Outpost</name></author>\n"
    "<link rel=\"self\" type=\"application/atom+xml\" "
    "href=\"https://Outpost.example.org:8443/base/feed.xml\"/>\n"
    "<link rel=\"alternate\" type=\"text/html\" "
    "href=\"https://Outpost.example.org:8443/base/\"/>\n"
    "<entry>\n"
    "<id>tag:outpost.example.org,2026:green/7</id>\n"
    "<title type=\"text\">Ascend NPU is green again on main</title>\n"
    "<updated>2026-05-28T20:27:40Z</updated>\n"
    "<link rel=\"alternate\" type=\"text/html\" "
    "href=\"https://Outpost.example.org:8443/base/accelerators/ascend-npu\"/>\n"
    "<link rel=\"related\" type=\"text/html\" "
    "href=\"https://Outpost.example.org:8443/base/commits/" SHA_B "\"/>\n"
    "<content type=\"text\">With commit fedcba9876.</content>\n"
    "</entry>\n"
    "<entry>\n"
    "<id>tag:outpost.example.org,2026:red/7</id>\n"
    "<title type=\"text\">Ascend NPU is red on main</title>\n"
    "<updated>2026-05-28T20:26:40Z</updated>\n"
    "<link rel=\"alternate\" type=\"text/html\" "
    "href=\"https://Outpost.example.org:8443/base/accelerators/ascend-npu\"/>\n"
    "<link rel=\"related\" type=\"text/html\" "
    "href=\"https://Outpost.example.org:8443/base/commits/" SHA_A "\"/>\n"
    "<link rel=\"related\" type=\"text/html\" "
    "href=\"https://github.com/Ascend/pytorch/issues/12\"/>\n"
    "<content type=\"text\">Since commit 0123456789; the last green one is fedcba9876. "
    "Red: unit/test_add, model/llama3 (bf16) and 3 more.</content>\n"
    "</entry>\n"
    "</feed>\n";

static void an_episode_that_ended_without_a_pass_is_not_called_green(void **state)
{
	const struct feed_event e = {.kind = FEED_NOT_RED,
	    .id = 7,
	    .at_ms = 1780000060000,
	    .accelerator = TEXT("ascend-npu"),
	    .title = TEXT("Ascend NPU"),
	    .ref = TEXT("main")};
	const struct feed f = {
	    .public_url = "https://outpost.example.org", .upstream = "pytorch/pytorch", .events = &e, .n = 1};
	char *text = checked_feed(&f);

	(void)state;
	assert_non_null(strstr(text, ":green/7</id>"));
	assert_non_null(strstr(text, "Ascend NPU is not red any more on main</title>"));
	assert_non_null(strstr(text, "The red tests are explained, and no newer test has passed."));
	free(text);
}

static void the_feed_is_valid_atom(void **state)
{
	char *tests[] = {TEXT("unit/test_add"), TEXT("model/llama3 (bf16)"), NULL};
	const struct feed_event events[] = {
	    {.kind = FEED_GREEN,
		.id = 7,
		.at_ms = 1780000060000,
		.accelerator = TEXT("ascend-npu"),
		.title = TEXT("Ascend NPU"),
		.ref = TEXT("main"),
		.sha = TEXT(SHA_B)},
	    {.kind = FEED_RED,
		.id = 7,
		.at_ms = 1780000000000,
		.accelerator = TEXT("ascend-npu"),
		.title = TEXT("Ascend NPU"),
		.ref = TEXT("main"),
		.sha = TEXT(SHA_A),
		.last_good_sha = TEXT(SHA_B),
		.issue_repository = TEXT("Ascend/pytorch"),
		.issue_number = 12,
		.tests = tests,
		.n_tests = 5},
	};
	const struct feed f = {.public_url = "https://Outpost.example.org:8443/base",
	    .upstream = "pytorch/pytorch",
	    .events = events,
	    .n = 2};
	char *text = checked_feed(&f);

	(void)state;
	assert_string_equal(text, RED_THEN_GREEN);
	free(text);
}

static void periodic_runs_are_listed(void **state)
{
	char *tests[] = {TEXT("unit/a"), NULL};
	const struct feed_event events[] = {
	    {.kind = FEED_NIGHTLY_RED,
		.id = 20779,
		.at_ms = 1795305600000,
		.accelerator = TEXT("npu"),
		.title = TEXT("NPU"),
		.sha = TEXT(SHA_A),
		.tests = tests,
		.n_tests = 1},
	    {.kind = FEED_NIGHTLY_GREEN,
		.id = 20779,
		.at_ms = 1795305600000,
		.accelerator = TEXT("npu"),
		.title = TEXT("NPU"),
		.sha = TEXT(SHA_A),
		.tests = tests,
		.n_tests = 2},
	};
	const struct feed f = {.public_url = "https://o.example", .upstream = "a/b", .events = events, .n = 2};
	char *text = checked_feed(&f);

	(void)state;
	assert_non_null(strstr(text, "<id>tag:o.example,2026:nightly-red/npu/2026-11-22</id>"));
	assert_non_null(strstr(text, "NPU: 1 test is red since the periodic run of 2026-11-22</title>"));
	assert_non_null(strstr(text, "NPU: 2 tests work again since the periodic run of 2026-11-22</title>"));
	assert_non_null(strstr(text, "https://o.example/nightly?accelerator=npu\""));
	assert_non_null(strstr(text, "With commit 0123456789. Green: unit/a and 1 more.<"));
	free(text);
}

static void a_missing_report_is_not_called_red(void **state)
{
	char *tests[] = {TEXT("dispatch/ci"), NULL};
	const struct feed_event events[] = {{.kind = FEED_RED,
	    .id = 1,
	    .at_ms = 1795305600000,
	    .accelerator = TEXT("npu"),
	    .title = TEXT("NPU"),
	    .ref = TEXT("main"),
	    .sha = TEXT(SHA_A),
	    .tests = tests,
	    .n_tests = 1,
	    .is_silence = true}};
	const struct feed f = {.public_url = "https://o.example", .upstream = "a/b", .events = events, .n = 1};
	char *text = checked_feed(&f);

	(void)state;
	assert_non_null(strstr(text, ">NPU: no report on main</title>"));
	assert_non_null(strstr(text, "Since commit 0123456789. No report: dispatch/ci.<"));
	free(text);
}

static void an_empty_feed_is_valid(void **state)
{
	const struct feed f = {.public_url = "https://[2001:db8::1]:1", .upstream = "a/b", .empty_ms = 1780000000000};
	char *text = checked_feed(&f);

	(void)state;
	assert_non_null(strstr(text, "<id>tag:2001-db8--1,2026:feed</id>"));
	assert_non_null(strstr(text, "<updated>2026-05-28T20:26:40Z</updated>"));
	free(text);
}

static void hostile_text_stays_text(void **state)
{
	static const char *const hostile[] = {"</title><script>", "]]>", "a\"b'&amp;c", "\x01\x1b\x7f", "\xff\xc3\x28",
	    "\xef\xbf\xbf\xef\xbf\xbe", "\xe2\x80\xaetfel", "<!--", "", "%s%n"};
	struct feed_event events[FEED_EVENTS_MAX];
	struct feed f = {
	    .public_url = "https://o.example", .upstream = "</title>&", .events = events, .n = FEED_EVENTS_MAX};
	char *text;

	(void)state;
	for (size_t i = 0; i < FEED_EVENTS_MAX; i++) {
		char *words = TEXT(hostile[i % (sizeof(hostile) / sizeof(hostile[0]))]);
		const char *const tests[] = {words, words, NULL};

		events[i] = (struct feed_event){.kind = (enum feed_event_kind)(i % 4),
		    .id = (int64_t)i + 1,
		    .at_ms = 1780000000000 - (int64_t)i,
		    .accelerator = words,
		    .title = words,
		    .ref = words,
		    .sha = words,
		    .last_good_sha = words,
		    .issue_repository = words,
		    .issue_number = 3,
		    .tests = strv_copy(tests),
		    .n_tests = 2};
	}
	text = checked_feed(&f);
	for (size_t i = 0; i < FEED_EVENTS_MAX; i++)
		strv_free(events[i].tests);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_feed_is_valid_atom),
	    cmocka_unit_test(an_episode_that_ended_without_a_pass_is_not_called_green),
	    cmocka_unit_test(periodic_runs_are_listed),
	    cmocka_unit_test(a_missing_report_is_not_called_red),
	    cmocka_unit_test(an_empty_feed_is_valid),
	    cmocka_unit_test(hostile_text_stays_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
