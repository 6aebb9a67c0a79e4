/* Badges: their text for each state, well-formed for any vendor name, readable. */
#include <expat.h>
#include <setjmp.h>

#include <cmocka.h>

#include "web/badge.h"

#define MINUTE INT64_C(60000)
static const int64_t NOW = 1780000000000;

/* The result of expat. */
struct seen {
	struct buf title;
	char label[600];
	int64_t width;
	int n_texts;
	bool is_in_title;
};

static void on_start(void *owner, const XML_Char *element, const XML_Char **attributes)
{
	struct seen *s = owner;

	s->is_in_title = !strcmp(element, "title");
	s->n_texts += !strcmp(element, "text");
	for (; !strcmp(element, "svg") && attributes[0]; attributes += 2) {
		if (!strcmp(attributes[0], "aria-label"))
			snprintf(s->label, sizeof(s->label), "%s", attributes[1]);
		if (!strcmp(attributes[0], "width"))
			assert_int_equal(parse_int64(attributes[1], &s->width), 0);
	}
}

static void on_end(void *owner, const XML_Char *element)
{
	(void)element;
	((struct seen *)owner)->is_in_title = false;
}

static void on_text(void *owner, const XML_Char *text, int n)
{
	struct seen *s = owner;

	if (s->is_in_title)
		buf_append(&s->title, text, (size_t)n);
}

static struct seen look_at(const struct badge *b)
{
	struct buf svg = BUF_INIT(1 << 16);
	struct seen s = {.title = BUF_INIT(4096)};
	XML_Parser xml = XML_ParserCreate(NULL);
	int ok;

	if (b)
		badge_write(&svg, b);
	else
		badge_write_unknown(&svg);
	assert_int_equal(buf_status(&svg), 0);
	assert_null(strstr(buf_str(&svg), "style="));
	assert_null(strstr(buf_str(&svg), "href"));
	XML_SetUserData(xml, &s);
	XML_SetElementHandler(xml, on_start, on_end);
	XML_SetCharacterDataHandler(xml, on_text);
	ok = XML_Parse(xml, buf_str(&svg), (int)svg.len, XML_TRUE);
	if (!ok)
		print_error("%s\n", buf_str(&svg));
	assert_true(ok);
	assert_int_equal(s.n_texts, 4);
	assert_string_equal(s.label, buf_str(&s.title));
	XML_ParserFree(xml);
	buf_release(&svg);
	return s;
}

/* The fill of the half that bears the message. */
static char *color_of(const struct badge *b)
{
	struct buf svg = BUF_INIT(1 << 16);
	const char *at;
	char *color;

	badge_write(&svg, b);
	at = strstr(buf_str(&svg), "height=\"20\" fill=\"#");
	assert_non_null(at);
	at = strstr(at + 1, "height=\"20\" fill=\"#");
	assert_non_null(at);
	at += strlen("height=\"20\" fill=\"");
	color = xstrndup(at, strcspn(at, "\""));
	buf_release(&svg);
	return color;
}

#define GREEN "#1a7f37"
#define AMBER "#8a5a00"
#define RED   "#cf222e"
#define GREY  "#57606a"

static void each_state_has_its_text(void **state)
{
	static const struct {
		enum accelerator_status status;
		int64_t since_ms, n_green, n_runs;
		const char *said, *color;
	} table[] = {
	    {ACCELERATOR_GREEN, 0, 98, 100, "NPU: passing 98 %", GREEN},
	    {ACCELERATOR_GREEN, 0, 1999, 2000, "NPU: passing 99 %", GREEN},
	    {ACCELERATOR_GREEN, 0, 7, 7, "NPU: passing 100 %", GREEN},
	    {ACCELERATOR_GREEN, 0, 89, 100, "NPU: passing 89 %", AMBER},
	    {ACCELERATOR_EXPLAINED, 0, 9, 10, "NPU: passing 90 %", GREEN},
	    {ACCELERATOR_GREEN, 0, 1, 3, "NPU: passing 33 %", RED},
	    /* B2: jobs of pull requests alone are no evidence about the branch */
	    {ACCELERATOR_UNTESTED, 0, 0, 0, "NPU: unknown", GREY},
	    {ACCELERATOR_NO_PASS, 0, 7, 7, "NPU: unknown", GREY},
	    {ACCELERATOR_OFF, 0, 7, 7, "NPU: unknown", GREY},
	    {ACCELERATOR_SILENT, 1, 7, 7, "NPU: silent", AMBER},
	    {ACCELERATOR_NOT_COUNTED, 0, 7, 7, "NPU: unhealthy", AMBER},
	    {ACCELERATOR_RED, 1, 0, 0, "NPU: failing since 1 min", RED},
	    {ACCELERATOR_RED, 40 * MINUTE, 0, 0, "NPU: failing since 40 min", RED},
	    {ACCELERATOR_NO_REPORT, 40 * MINUTE, 1, 1, "NPU: no report for 40 min", AMBER},
	    {ACCELERATOR_STALE, 200 * 60 * MINUTE, 1, 1, "NPU: not tested for 8 d", AMBER},
	    {ACCELERATOR_RED, 47 * 60 * MINUTE, 0, 0, "NPU: failing since 47 h", RED},
	    {ACCELERATOR_OVERDUE, 90 * 60 * MINUTE, 7, 8, "NPU: failing since 3 d", RED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct badge b = {.title = "NPU",
		    .state = {.status = table[i].status},
		    .n_green = table[i].n_green,
		    .n_runs = table[i].n_runs,
		    .now_ms = NOW};
		struct seen s;
		char *color;

		if (table[i].since_ms)
			b.state.since_ms = NOW - table[i].since_ms;
		s = look_at(&b);
		assert_string_equal(s.label, table[i].said);
		buf_release(&s.title);
		color = color_of(&b);
		assert_string_equal(color, table[i].color);
		free(color);
	}
}

/* shields.io: 11 px Verdana, five pixels at both ends of each half. */
static void the_width_fits_the_text(void **state)
{
	struct badge b = {
	    .title = "build", .state = {.status = ACCELERATOR_GREEN}, .n_green = 1, .n_runs = 1, .now_ms = NOW};
	struct seen s = look_at(&b);

	(void)state;
	assert_in_range(s.width, 36 + 80, 38 + 92); /* "build" alone is 37 px wide there */
	buf_release(&s.title);
}

static void a_hostile_title_stays_text(void **state)
{
	static const char *const titles[] = {"</title><script>alert(1)</script>", "a\"b'c&d;<!--", "\x01\x1b[31m\x7f",
	    "\xff\xfe bytes", "\xe2\x80\xaetfel", "\xe6\x98\x87\xe8\x85\xbe NPU", "]]>", "\xef\xbf\xbf", "", "%s%n"};
	char *longest = xmalloc(301);

	(void)state;
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
		struct badge b = {.title = titles[i], .now_ms = NOW};
		struct seen s = look_at(&b);

		assert_non_null(strstr(s.label, ": unknown"));
		buf_release(&s.title);
	}
	memset(longest, 'W', 300);
	longest[300] = '\0';
	{
		struct badge b = {.title = longest, .now_ms = NOW};
		struct seen s = look_at(&b);

		assert_in_range(s.width, 100, 600);
		buf_release(&s.title);
	}
	free(longest);
}

static void an_unknown_accelerator_has_an_unknown_badge(void **state)
{
	struct seen s = look_at(NULL);

	(void)state;
	assert_string_equal(s.label, "accelerator: unknown");
	buf_release(&s.title);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_state_has_its_text),
	    cmocka_unit_test(the_width_fits_the_text),
	    cmocka_unit_test(a_hostile_title_stays_text),
	    cmocka_unit_test(an_unknown_accelerator_has_an_unknown_badge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
