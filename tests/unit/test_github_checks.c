/* Check runs: the requests to GitHub, their tokens, and the fields that are read back. */
#include "fake_github.h"

#define HEAD "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LIST "GET /repos/owner/name/commits/" HEAD "/check-runs?app_id=7&filter=latest&per_page=100&page="

static bool is_done;
static char last_body[8192];

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

static char *answer_checks(struct fake_github *f, const char *request)
{
	const char *body = strstr(request, "\r\n\r\n");

	(void)f;
	snprintf(last_body, sizeof(last_body), "%s", body ? body + 4 : "");
	if (strncmp(request, "POST /repos/owner/name/check-runs ", 34) == 0)
		return fake_answer("201 Created", "", "{\"id\":77}");
	if (strncmp(request, "PATCH /repos/owner/name/check-runs/77 ", 38) == 0)
		return fake_answer("200 OK", "", "{\"id\":77}");
	if (strncmp(request, LIST "1 ", strlen(LIST) + 2) == 0)
		return fake_answer("200 OK", "Link: <http://x/?page=2>; rel=\"next\"\r\n",
		    "{\"total_count\":2,\"check_runs\":[{\"id\":5,\"name\":\"a\","
		    "\"external_id\":\"1:2\",\"output\":{\"annotations_count\":50}},"
		    "{\"id\":0,\"name\":\"none\"},{\"id\":6},17]}");
	if (strncmp(request, LIST "2 ", strlen(LIST) + 2) == 0)
		return fake_answer("200 OK", "", "{\"check_runs\":[{\"id\":9,\"name\":\"b\",\"external_id\":null}]}");
	return fake_answer("400 No", "", "{}");
}

static void test_written(void **state)
{
	struct fake_github *f = *state;
	struct github_annotation a = {.path = "x.py", .line = 3, .level = "failure", .title = "t", .message = "m"};
	struct github_check check = {.name = "n",
	    .head_sha = HEAD,
	    .external_id = "1:2",
	    .details_url = "https://o/jobs/1",
	    .title = "T",
	    .summary = "S \"q\""};
	struct github_call call = {.done = on_done};

	fake_set(f, answer, answer_checks);
	github_check_create(f->github, &call, "owner/name", &check);
	wait_done(f);
	assert_int_equal(call.result.err, 0);
	assert_int_equal(json_get_int(call.answer, "id", 0), 77);
	assert_string_equal(last_body,
	    "{\"head_sha\":\"" HEAD "\",\"name\":\"n\",\"external_id\":\"1:2\",\"details_url\":"
	    "\"https://o/jobs/1\",\"status\":\"in_progress\",\"output\":{\"title\":\"T\","
	    "\"summary\":\"S \\\"q\\\"\"}}");
	check.conclusion = "failure";
	check.external_id = check.details_url = NULL;
	check.text = "X";
	check.annotations = &a;
	check.n_annotations = 1;
	github_check_update(f->github, &call, "owner/name", 77, &check);
	wait_done(f);
	assert_int_equal(call.result.err, 0);
	assert_string_equal(last_body,
	    "{\"name\":\"n\",\"status\":\"completed\",\"conclusion\":\"failure\",\"output\":"
	    "{\"title\":\"T\",\"summary\":\"S \\\"q\\\"\",\"text\":\"X\",\"annotations\":["
	    "{\"path\":\"x.py\",\"start_line\":3,\"end_line\":3,\"annotation_level\":\"failure\","
	    "\"title\":\"t\",\"message\":\"m\"}]}}");
	assert_int_equal(fake_count(f, "POST /app/installations"), 1);
	github_check_create(f->github, &call, "owner/../name", &check);
	wait_done(f);
	assert_int_equal(call.result.err, ERR_INVALID);
	github_call_release(&call);
}

static void test_read_back(void **state)
{
	struct fake_github *f = *state;
	struct github_check_list l = {.call = {.done = on_done}};

	fake_set(f, answer, answer_checks);
	github_checks_list(f->github, &l, "owner/name", HEAD);
	wait_done(f);
	assert_int_equal(l.call.result.err, 0);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.list[0].id, 5);
	assert_string_equal(l.list[0].external_id, "1:2");
	assert_int_equal(l.list[0].n_annotations, 50);
	assert_string_equal(l.list[1].name, "b");
	assert_string_equal(l.list[1].external_id, "");
	github_checks_list(f->github, &l, "owner/name", "main?x=");
	wait_done(f);
	assert_int_equal(l.call.result.err, ERR_INVALID);
	assert_int_equal(l.n, 0);
	github_check_list_release(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_written, fake_set_up, fake_tear_down),
	    cmocka_unit_test_setup_teardown(test_read_back, fake_set_up, fake_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
