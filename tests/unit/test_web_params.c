/* Parameters of a query: which are accepted, and which are refused by name. */
#include <setjmp.h>

#include <cmocka.h>

#include "http_rig.h"
#include "views/record_json.h"
#include "web/params.h"

static const char *const NAMES[] = {"one", "two", "three"};
static const struct words WORDS = {NAMES, 3};

/* Answers with the values that it read, so that a client can compare. */
static void on_ask(struct http_request *r, void *owner)
{
	struct params p = {.r = r};
	char text[8], cursor[16], answer[200];
	int64_t number = params_int(&p, "number", -5, 90, 14), limit = params_limit(&p, 100);
	int64_t day = params_day(&p, "day", -1);
	int word = params_word(&p, "word", &WORDS, -1);
	unsigned words = params_words(&p, "words", &WORDS);
	size_t n = params_cursor(&p, cursor, sizeof(cursor));

	(void)owner;
	params_text(&p, "text", text, sizeof(text));
	if (params_refuse(&p))
		return;
	snprintf(answer, sizeof(answer), "%lld %lld %lld %d %u %zu[%s] [%s]", (long long)number, (long long)limit,
	    (long long)day, word, words, n, cursor, text);
	http_respond(r, 200, "text/plain", NULL, answer, strlen(answer));
}

static const struct http_route ROUTES[] = {
    {.method = "GET", .pattern = "/api/v1/ask", .on_request = on_ask},
};

static const struct {
	const char *query;
	int status;
	const char *answer; /* 400: the beginning of its message */
} CASES[] = {
    {"", 200, "14 100 -1 -1 0 0[] []"},
    {"number=-5&limit=500&day=1970-01-02&word=two&words=three,one&text=a%26b+c", 200,
	"-5 500 86400000 1 5 0[] [a&b c]"},
    {"cursor=YWJj&other=1", 200, "14 100 -1 -1 0 3[abc] []"},
    {"number=91", 400, "{\"error\":\"number: must be a whole number from -5 to 90"},
    {"number=1.5", 400, "{\"error\":\"number: "}, {"number=", 400, "{\"error\":\"number: "},
    {"number=99999999999999999999", 400, "{\"error\":\"number: "},
    {"limit=0", 400, "{\"error\":\"limit: must be a whole number from 1 to 500"},
    {"limit=501", 400, "{\"error\":\"limit: "}, {"limit=1&limit=x", 200, "14 1 "},
    {"day=2026-02-30", 400, "{\"error\":\"day: must be a day, YYYY-MM-DD"}, {"day=2026-1-1", 400, "{\"error\":\"day: "},
    {"day=2026-01-01T00:00:00Z", 400, "{\"error\":\"day: "}, {"day=1969-12-31", 400, "{\"error\":\"day: "},
    {"word=four", 400, "{\"error\":\"word: must be one of one, two, three"}, {"word=One", 400, "{\"error\":\"word: "},
    {"words=one,", 400, "{\"error\":\"words: "}, {"words=,", 400, "{\"error\":\"words: "},
    {"text=12345678", 400, "{\"error\":\"text: is too long"}, {"text=%ff", 400, "{\"error\":\"text: must be UTF-8"},
    {"text=%zz", 400, "{\"error\":\"text: "}, {"cursor=", 400, "{\"error\":\"cursor: "},
    {"cursor=!", 400, "{\"error\":\"cursor: "}, {"cursor=YWJj%3D", 400, "{\"error\":\"cursor: "},
    {"cursor=YWFhYWFhYWFhYWFhYWFhYQ", 400, "{\"error\":\"cursor: "},
    {"limit=0&number=x", 400, "{\"error\":\"number: "}, /* the first in the order of the handler */
};

static void asking_client(struct rig *g)
{
	int fd = rig_connect(g);

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		char *request = xasprintf("GET /api/v1/ask?%s HTTP/1.1\r\nHost: x\r\n\r\n", CASES[i].query);
		struct rig_answer a;

		rig_say(fd, request);
		a = rig_answer(fd, false);
		if (a.status != CASES[i].status ||
		    strncmp(buf_str(&a.body), CASES[i].answer, strlen(CASES[i].answer)) != 0)
			fail_msg("%s: %d %s", CASES[i].query, a.status, buf_str(&a.body));
		rig_answer_release(&a);
		free(request);
	}
	close(fd);
}

static void wrong_parameters_are_named(void **state)
{
	struct rig g = {0};

	(void)state;
	rig_open(&g, NULL, ROUTES, ARRAY_LEN(ROUTES));
	rig_run(&g, asking_client);
}

static void a_cursor_may_contain_any_bytes(void **state)
{
	json_t *cursor = cursor_json("a\0\xff?", 4);

	(void)state;
	assert_string_equal(json_string_value(cursor), "YQD_Pw");
	json_decref(cursor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(wrong_parameters_are_named),
	    cmocka_unit_test(a_cursor_may_contain_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
