/* Issues in vendors' repositories: the requests, their tokens, and how Outpost's own issue is found. */
#include "fake_github.h"

static bool is_done;

static void on_done(struct github_call *call)
{
	(void)call;
	is_done = true;
}

static void wait_done(struct fake_github *f)
{
	loop_run_until(f->loop, &is_done);
	assert_true(is_done);
	is_done = false;
}

#define MARKER    "<!-- outpost:red:12 -->"
#define BY(login) "\"user\":{\"login\":\"" login "\"},\"created_at\":\"2026-11-20T12:00:00Z\""

static const char PAGE_1[] = "[{\"number\":9," BY(
    "outpost-test[bot]") ",\"body\":\"a test called `" MARKER "`\"},"
			 "{\"number\":8," BY("mallory") ",\"body\":\"" MARKER " forged\"},"
							"{\"number\":7," BY("outpost-test[bot]") ",\"body\":null},"
												 "{\"number\":6," BY(
												     "outpost-test["
												     "bot]") ",\"pull_"
													     "request\""
													     ":{},"
													     "\"body\":"
													     "\"" MARKER
													     "\"}]";
static const char PAGE_2[] = "[{\"number\":5," BY("outpost-test[bot]") ",\"body\":\"x\\r\\n" MARKER "\\r\\n\"}]";

#define LIST "/issues?state=all&sort=created&direction=desc&per_page=100&page="

static char *answer(struct fake_github *f, const char *request)
{
	(void)f;
	if (strstr(request, "GET /repos/owner/name" LIST "1 "))
		return fake_answer("200 OK", "Link: <http://x/?page=2>; rel=\"next\"\r\n", PAGE_1);
	if (strstr(request, "GET /repos/owner/name" LIST "2 "))
		return fake_answer("200 OK", "", PAGE_2);
	if (strstr(request, "GET /repos/owner/empty" LIST "1 "))
		return fake_answer("200 OK", "", "[]");
	if (strncmp(request, "POST /repos/owner/name/issues ", 30) == 0 &&
	    strstr(request, "{\"title\":\"a title\",\"body\":\"a \\\"b\\\"\"}"))
		return fake_answer("201 Created", "", "{\"number\":77}");
	if (strncmp(request, "PATCH /repos/owner/name/issues/77 ", 34) == 0 &&
	    strstr(request, "{\"state\":\"closed\",\"state_reason\":\"completed\"}"))
		return fake_answer("200 OK", "", "{\"number\":77}");
	if (strncmp(request, "POST /repos/owner/name/issues/77/comments ", 42) == 0 &&
	    strstr(request, "{\"body\":\"c\"}"))
		return fake_answer("201 Created", "", "{\"id\":1}");
	if (strncmp(request, "POST /repos/owner/off/issues ", 29) == 0)
		return fake_answer("410 Gone", "", "{\"message\":\"Issues are disabled for this repo\"}");
	return fake_answer("400 No", "", "{}");
}

static int64_t find(struct fake_github *f, const char *repository, int64_t since_wall_ms)
{
	struct github_issue_search s = {.call = {.done = on_done}, .since_wall_ms = since_wall_ms};

	github_issue_find(f->github, &s, repository, MARKER);
	wait_done(f);
	assert_int_equal(s.call.result.err, 0);
	github_call_release(&s.call);
	return s.number;
}

static void an_issue_is_found_by_its_marker_and_author(void **state)
{
	struct fake_github *f = *state;
	int64_t created_ms;

	fake_set(f, answer, answer);
	assert_int_equal(rfc3339_parse("2026-11-20T12:00:00Z", &created_ms), 0);
	assert_int_equal(find(f, "owner/name", created_ms), 5);
	assert_int_equal(find(f, "owner/empty", created_ms), 0);
	assert_int_equal(fake_count(f, "GET /app"), 1);
}

static void the_search_ends_at_older_issues(void **state)
{
	struct fake_github *f = *state;
	int64_t created_ms;

	fake_set(f, answer, answer);
	assert_int_equal(rfc3339_parse("2026-11-20T12:00:00Z", &created_ms), 0);
	assert_int_equal(find(f, "owner/name", created_ms + 1000), 0);
	assert_int_equal(fake_count(f, "GET /repos/owner/name" LIST "2"), 0);
}

static void issues_are_created_commented_and_closed(void **state)
{
	struct fake_github *f = *state;
	struct github_call call = {.done = on_done};

	fake_set(f, answer, answer);
	github_issue_create(f->github, &call, "owner/name", "a title", "a \"b\"");
	wait_done(f);
	assert_int_equal(call.result.err, 0);
	assert_int_equal(json_get_int(call.answer, "number", 0), 77);
	github_call_release(&call);
	github_issue_comment(f->github, &call, "owner/name", 77, "c");
	wait_done(f);
	assert_int_equal(call.result.err, 0);
	github_call_release(&call);
	github_issue_close(f->github, &call, "owner/name", 77);
	wait_done(f);
	assert_int_equal(call.result.err, 0);
	github_call_release(&call);
	assert_int_equal(fake_count(f, "POST /app/installations"), 1); /* one token for all */
}

static void a_refusal_is_final(void **state)
{
	struct fake_github *f = *state;
	struct github_call call = {.done = on_done};

	fake_set(f, answer, answer);
	github_issue_create(f->github, &call, "owner/off", "t", "b");
	wait_done(f);
	assert_int_equal(call.result.status, 410);
	assert_true(call.result.is_final);
	github_call_release(&call);
	github_issue_create(f->github, &call, "no repository", "t", "b");
	wait_done(f);
	assert_int_equal(call.result.err, ERR_INVALID);
	github_call_release(&call);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, fake_set_up, fake_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(an_issue_is_found_by_its_marker_and_author),
	    TEST(the_search_ends_at_older_issues),
	    TEST(issues_are_created_commented_and_closed),
	    TEST(a_refusal_is_final),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
