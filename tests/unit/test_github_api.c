/* One function per call: its request, and the fields that it reads from the answer. */
#include "fake_github.h"

#include "replaces.h"

REPLACES(clock_mono_ms);
extern __typeof__(clock_mono_ms) real_clock_mono_ms __asm__("__real_clock_mono_ms");

static int64_t stands_at_ms; /* of the clock; 0: it runs */

int64_t clock_mono_ms(void) { return stands_at_ms ? stands_at_ms : real_clock_mono_ms(); }

static int set_up(void **state)
{
	stands_at_ms = 0;
	return fake_set_up(state);
}

#define SHA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SHA_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

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

static const char COMMENTS_1[] =
    "[{\"id\":1,\"user\":{\"login\":\"outpost-test[bot]\"},\"body\":\"another\\n"
    "| `<!-- outpost:results -->` | <!-- outpost:results -->\"},"
    "{\"id\":2,\"user\":{\"login\":\"mallory\"},\"body\":\"<!-- outpost:results --> forged\"},"
    "{\"id\":3,\"user\":null,\"body\":\"<!-- outpost:results -->\"}]";
static const char COMMENTS_2[] = "[{\"id\":4,\"user\":{\"login\":\"outpost-test[bot]\"},\"body\":"
				 "\"<!-- outpost:results -->\\nA\"},"
				 "{\"id\":5,\"user\":{\"login\":\"outpost-test[bot]\"},\"body\":\"<"
				 "!-- outpost:results -->\\nB\"}]";

static char *answer_comments(struct fake_github *f, const char *request)
{
	(void)f;
	if (strstr(request, "/issues/9/comments?per_page=100&page=1 "))
		return fake_answer("200 OK",
		    "Link: <http://x/?page=2>; rel=\"next\", <http://x/?page=2>; rel=\"last\"\r\n", COMMENTS_1);
	if (strstr(request, "/issues/9/comments?per_page=100&page=2 "))
		return fake_answer("200 OK", "Link: <http://x/?page=1>; rel=\"prev\"\r\n", COMMENTS_2);
	if (strstr(request, "/issues/10/comments?"))
		return fake_answer("200 OK", "", "[]");
	if (strncmp(request, "POST /repos/owner/name/issues/10/comments ", 42) == 0 &&
	    strstr(request, "\r\n\r\n{\"body\":\"a \\\"b\\\"\\n\"}"))
		return fake_answer("201 Created", "", "{\"id\":77}");
	if (strncmp(request, "PATCH /repos/owner/name/issues/comments/77 ", 43) == 0)
		return fake_answer("200 OK", "", "{\"id\":77,\"body\":\"c\"}");
	if (strncmp(request, "GET /repos/owner/name/issues/comments/77 ", 41) == 0)
		return fake_answer("200 OK", "", "{\"id\":77,\"body\":\"c\"}");
	return fake_answer("400 No", "", "{}");
}

static void test_comment_find(void **state)
{
	struct fake_github *f = *state;
	struct github_comment_search s = {.call = {.done = on_done}};

	fake_set(f, answer, answer_comments);
	assert_null(github_bot_login(f->github));
	github_comment_find(f->github, &s, "owner/name", 9, "<!-- outpost:results -->");
	wait_done(f);
	assert_int_equal(s.call.result.err, 0);
	assert_int_equal(s.comment_id, 4);
	assert_string_equal(s.text, "<!-- outpost:results -->\nA");
	assert_string_equal(github_bot_login(f->github), "outpost-test[bot]");
	assert_string_equal(github_app_slug(f->github), "outpost-test");

	github_comment_find(f->github, &s, "owner/name", 10, "<!-- outpost:results -->");
	wait_done(f);
	assert_int_equal(s.call.result.err, 0);
	assert_int_equal(s.comment_id, 0);
	assert_null(s.text);
	assert_int_equal(fake_count(f, "GET /app"), 1);
	assert_int_equal(fake_count(f, "POST /app/installations"), 1);
	github_comment_search_release(&s);
}

static void test_comment_writes_are_spaced(void **state)
{
	struct fake_github *f = *state;
	struct github_call call = {.done = on_done};
	struct one dispatch = {0};

	fake_set(f, answer, answer_comments);
	stands_at_ms = real_clock_mono_ms();
	github_comment_create(f->github, &call, "owner/name", 10, "a \"b\"\n");
	wait_done(f);
	assert_int_equal(call.result.err, 0);
	assert_int_equal(json_get_int(call.answer, "id", 0), 77);

	github_comment_update(f->github, &call, "owner/name", 77, "c");
	for (int i = 0; i < 2; i++) { /* each looks for requests whose time has come, and a comment delays none */
		github_call_release(&dispatch.call);
		one_dispatch(f, &dispatch, "owner/name");
		one_wait(f, &dispatch);
		assert_false(is_done);
		assert_int_equal(fake_count(f, "PATCH "), 0);
		stands_at_ms += 500;
	}
	wait_done(f);
	assert_int_equal(call.result.err, 0);
	assert_string_equal(json_get_str(call.answer, "body"), "c");
	github_call_release(&call);
	github_call_release(&dispatch.call);
}

static void test_comment_limit_returns_the_retry_time(void **state)
{
	enum { N = 15 };
	struct fake_github *f = *state;
	struct one all[N] = {0};
	int n_busy = 0;

	fake_set(f, answer, answer_comments);
	one_dispatch(f, &all[0], "owner/name");
	one_wait(f, &all[0]);
	for (int i = 0; i < N; i++) {
		all[i].is_done = false;
		all[i].call.done = one_done;
		github_comment_update(f->github, &all[i].call, "owner/name", 77, "c");
	}
	one_wait(f, &all[N - 1]);
	for (int i = 0; i < N; i++) {
		if (all[i].is_done && all[i].call.result.err == ERR_BUSY) {
			assert_true(all[i].call.result.retry_after_ms > 10000);
			assert_false(all[i].call.result.is_final);
			n_busy++;
		}
		github_cancel(f->github, &all[i].call);
	}
	assert_true(n_busy >= 1);
	/* cancelled calls end before their memory is freed */
	for (int i = 0; i < N; i++) {
		one_wait(f, &all[i]);
		github_call_release(&all[i].call);
	}
}

static char *answer_pulls(struct fake_github *f, const char *request)
{
	(void)f;
	if (strstr(request, "/pulls?state=open&sort=updated&direction=desc&per_page=50&page=1 "))
		return fake_answer("200 OK", "Link: <http://x/?page=2>; rel=\"next\"\r\n", "[{}]");
	if (strstr(request, "/pulls?state=open&sort=updated&direction=desc&per_page=50&page=2 "))
		return fake_answer("200 OK", "", "[]");
	if (strstr(request, "/pulls/9/files?per_page=100&page=1 "))
		return fake_answer("200 OK", "Link: <http://x/?page=2>; rel=\"next\"\r\n",
		    "[{\"filename\":\"a.c\"},{\"filename\":\"b.c\",\"previous_filename\":\"old.c\"}"
		    "]");
	if (strstr(request, "/pulls/9/files?per_page=100&page=2 "))
		return fake_answer("200 OK", "", "[{\"filename\":\"c.c\"},{\"filename\":7},null]");
	if (strstr(request, "/pulls/9 "))
		return fake_answer("200 OK", "", "{\"number\":9}");
	return fake_answer("200 OK", "", "{\"no\":\"list\"}");
}

static void test_pulls(void **state)
{
	struct fake_github *f = *state;
	struct github_page page = {.call = {.done = on_done}};

	fake_set(f, answer, answer_pulls);
	github_pulls_open(f->github, &page, "owner/name");
	wait_done(f);
	assert_int_equal(json_array_size(page.call.answer), 1);
	assert_int_equal(page.next_page, 2);
	page.page = page.next_page;
	github_pulls_open(f->github, &page, "owner/name");
	wait_done(f);
	assert_int_equal(json_array_size(page.call.answer), 0);
	assert_int_equal(page.next_page, 0);
	page.page = 3;
	github_pulls_open(f->github, &page, "owner/name");
	wait_done(f);
	assert_int_equal(page.call.result.err, ERR_PROTOCOL);
	github_pull_get(f->github, &page.call, "owner/name", 9);
	wait_done(f);
	assert_int_equal(json_get_int(page.call.answer, "number", 0), 9);
	github_call_release(&page.call);
}

static void test_pull_files(void **state)
{
	static const char *const expected[] = {"a.c", "b.c", "old.c", "c.c"};
	struct fake_github *f = *state;
	struct github_pull_files files = {.call = {.done = on_done}};

	fake_set(f, answer, answer_pulls);
	github_pull_files_get(f->github, &files, "owner/name", 9);
	wait_done(f);
	assert_int_equal(files.call.result.err, 0);
	assert_int_equal(files.n_names, ARRAY_LEN(expected));
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		assert_string_equal(files.names[i], expected[i]);
	assert_null(files.names[files.n_names]);
	assert_false(files.is_incomplete);
	github_pull_files_release(&files);
}

static char *answer_branch(struct fake_github *f, const char *request)
{
	(void)f;
	if (strstr(request, "/compare/release%2F2.1..." SHA_B "?"))
		return fake_answer("200 OK", "",
		    "{\"merge_base_commit\":{\"sha\":\"" SHA_A "\",\"commit\":{\"committer\":"
		    "{\"date\":\"2026-11-20T12:00:00Z\"}}}}");
	if (strstr(request, "If-None-Match: W/\"tag\"\r\n"))
		return xstrdup("HTTP/1.1 304 Not Modified\r\nETag: W/\"tag\"\r\n\r\n");
	if (strstr(request, "/branches/release%2F2.1 "))
		return fake_answer("200 OK", "ETag: W/\"tag\"\r\n", "{\"commit\":{\"sha\":\"" SHA_A "\"}}");
	return fake_answer("200 OK", "", "{\"commit\":{\"sha\":\"../../etc\"}}");
}

static void test_branch(void **state)
{
	struct fake_github *f = *state;
	struct github_branch b = {.call = {.done = on_done}};

	fake_set(f, answer, answer_branch);
	github_branch_get(f->github, &b, "owner/name", "release/2.1");
	wait_done(f);
	assert_string_equal(b.sha, SHA_A);
	assert_string_equal(b.etag, "W/\"tag\"");
	assert_false(b.is_unchanged);
	github_branch_get(f->github, &b, "owner/name", "release/2.1");
	wait_done(f);
	assert_int_equal(b.call.result.err, 0);
	assert_int_equal(b.call.result.status, 304);
	assert_true(b.is_unchanged);
	assert_string_equal(b.sha, SHA_A);
	b.etag[0] = '\0';
	github_branch_get(f->github, &b, "owner/name", "main");
	wait_done(f);
	assert_int_equal(b.call.result.err, ERR_PROTOCOL);
	github_call_release(&b.call);
}

static void test_compare(void **state)
{
	struct fake_github *f = *state;
	struct github_compare c = {.call = {.done = on_done}};
	char date[RFC3339_BYTES];

	fake_set(f, answer, answer_branch);
	github_compare_get(f->github, &c, "owner/name", "release/2.1", SHA_B);
	wait_done(f);
	assert_string_equal(c.merge_base_sha, SHA_A);
	assert_string_equal(rfc3339_format(c.merge_base_wall_ms, date), "2026-11-20T12:00:00Z");
	github_compare_get(f->github, &c, "owner/name", "main", SHA_B);
	wait_done(f);
	assert_int_equal(c.call.result.err, ERR_PROTOCOL);
	assert_string_equal(c.merge_base_sha, "");
	github_call_release(&c.call);
}

static char *answer_commits(struct fake_github *f, const char *request)
{
	(void)f;
	assert_non_null(strstr(request, "?per_page=250 "));
	if (strstr(request, "/compare/" SHA_A "..." SHA_B "?"))
		return fake_answer(
		    "200 OK", "", "{\"status\":\"ahead\",\"total_commits\":1,\"commits\":[{\"sha\":\"x\"}]}");
	if (strstr(request, "/compare/" SHA_B "..." SHA_A "?"))
		return fake_answer("200 OK", "", "{\"status\":\"behind\",\"total_commits\":0,\"commits\":[]}");
	return fake_answer(
	    "200 OK", "", "{\"status\":\"diverged\",\"total_commits\":300,\"commits\":[{\"sha\":\"x\"}]}");
}

static void test_commits_between(void **state)
{
	struct fake_github *f = *state;
	struct github_commits c = {.call = {.done = on_done}};

	fake_set(f, answer, answer_commits);
	github_commits_between(f->github, &c, "owner/name", SHA_A, SHA_B);
	wait_done(f);
	assert_true(c.is_complete && c.is_ahead);
	assert_int_equal(json_array_size(json_object_get(c.call.answer, "commits")), 1);
	github_call_release(&c.call);
	github_commits_between(f->github, &c, "owner/name", SHA_B, SHA_A);
	wait_done(f);
	assert_false(c.is_complete || c.is_ahead);
	github_call_release(&c.call);
	github_commits_between(f->github, &c, "owner/name", SHA_B, SHA_B);
	wait_done(f);
	assert_false(c.is_complete || c.is_ahead);
	github_call_release(&c.call);
	github_commits_between(f->github, &c, "owner/name", "", SHA_B);
	wait_done(f);
	assert_int_equal(c.call.result.err, ERR_INVALID);
}

static char *answer_deliveries(struct fake_github *f, const char *request)
{
	(void)f;
	if (!strstr(request, "Authorization: Bearer eyJ"))
		return fake_answer("401 No", "", "{}");
	if (strstr(request, "GET /app/hook/deliveries?per_page=100 "))
		return fake_answer("200 OK",
		    "Link: <https://x/app/hook/deliveries?per_page=100&cursor=v1_12%3D>; "
		    "rel=\"next\"\r\n",
		    "[{\"id\":12,\"guid\":\"g\",\"status_code\":500}]");
	if (strstr(request, "GET /app/hook/deliveries?per_page=100&cursor=v1_12%3D "))
		return fake_answer("200 OK", "", "[]");
	if (strstr(request, "POST /app/hook/deliveries/12/attempts "))
		return fake_answer("202 Accepted", "", "{}");
	return fake_answer("404 No", "", "{}");
}

static void test_deliveries(void **state)
{
	struct fake_github *f = *state;
	struct github_deliveries d = {.call = {.done = on_done}};

	fake_set(f, answer, answer_deliveries);
	github_deliveries_get(f->github, &d);
	wait_done(f);
	assert_int_equal(d.call.result.err, 0);
	assert_int_equal(json_array_size(d.call.answer), 1);
	assert_string_equal(d.next_cursor, "v1_12%3D");
	memcpy(d.cursor, d.next_cursor, sizeof(d.cursor));
	github_deliveries_get(f->github, &d);
	wait_done(f);
	assert_int_equal(json_array_size(d.call.answer), 0);
	assert_string_equal(d.next_cursor, "");
	github_delivery_redeliver(f->github, &d.call, 12);
	wait_done(f);
	assert_int_equal(d.call.result.err, 0);
	assert_int_equal(d.call.result.status, 202);
	snprintf(d.cursor, sizeof(d.cursor), "x&y=1");
	github_deliveries_get(f->github, &d);
	wait_done(f);
	assert_int_equal(d.call.result.err, ERR_INVALID);
	github_call_release(&d.call);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, fake_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_comment_find),
	    TEST(test_comment_writes_are_spaced),
	    TEST(test_comment_limit_returns_the_retry_time),
	    TEST(test_pulls),
	    TEST(test_pull_files),
	    TEST(test_branch),
	    TEST(test_compare),
	    TEST(test_commits_between),
	    TEST(test_deliveries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
