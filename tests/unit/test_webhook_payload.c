#include <setjmp.h>

#include <cmocka.h>

#include "model/plan.h"
#include "webhook/payload.h"
#include "webhook_bodies.h"

/* 2019-05-15T15:21:18Z */
#define UPDATED_MS INT64_C(1557933678000)

static void parse_ok(const char *event, const char *body, struct event *ret)
{
	struct error e = {0};
	int err = event_parse(event, body, strlen(body), ret, &e);

	if (err)
		fail_msg("%s: %s", event, e.text);
}

static void test_pull_request(void **state)
{
	struct event ev;

	(void)state;
	parse_ok("pull_request", BODY_OF_PULL("opened", ""), &ev);
	assert_int_equal(ev.kind, EVENT_PULL_REQUEST);
	assert_int_equal(ev.pull_action, PULL_OPENED);
	assert_string_equal(ev.action, "opened");
	assert_string_equal(ev.repository, "pytorch/pytorch");
	assert_string_equal(ev.sender, "carol");
	assert_int_equal(ev.pull.number, 42);
	assert_string_equal(ev.pull.head_sha, SHA_HEAD);
	assert_string_equal(ev.pull.base_sha, SHA_BASE);
	assert_string_equal(ev.pull.base_ref, "main");
	assert_string_equal(ev.pull.title, "Fix \xe2\x80\x9cquoted\xe2\x80\x9d \xf0\x9f\x98\x80 n\xc3\xa4mes");
	assert_string_equal(ev.pull.author, "alice");
	assert_string_equal(ev.pull.author_association, "CONTRIBUTOR");
	assert_int_equal(strv_len((const char *const *)ev.pull.labels), 2);
	assert_string_equal(ev.pull.labels[0], "ciflow/crcr/ascend-npu");
	assert_false(ev.pull.is_draft);
	assert_true(ev.pull.is_open);
	assert_true(ev.pull.updated_ms == UPDATED_MS);
	assert_null(ev.label);
	event_release(&ev);
}

/* The members of the checked body are read as they are written: with escapes, in keys too, and the place of the action. */
static void test_escapes_and_the_place_of_the_action(void **state)
{
	static const char body[] =
	    "{\"label\" : {\"n\\u0061me\" :\"a\\n\\\"b\\\"\\u00e9\",\"name2\":\"x\"}, \"acti\\u006fn\": "
	    "\"labe\\u006ced\","
	    "\""
	    "sender\":{\"login\":\"\"},\"repository\":{\"full_name\":\"o\\/"
	    "n\"},\"pull_request\":{\"number\":7,\"labels\":[],"
	    "\"state\":\"open\",\"title\":\"\",\"updated_at\":\"2019-05-15T15:21:18Z\",\"author_association\":\"NONE\","
	    "\"user\":null,\"head\":{\"sha\":\"" SHA_HEAD "\"},\"base\":{\"ref\":\"main\",\"sha\":\"" SHA_BASE "\"}}}";
	struct event ev;

	(void)state;
	parse_ok("pull_request", body, &ev);
	assert_string_equal(ev.action, "labeled");
	assert_string_equal(ev.label, "a\n\"b\"\xc3\xa9");
	assert_string_equal(ev.repository, "o/n");
	assert_string_equal(ev.pull.title, "");
	assert_int_equal(ev.action_bytes, strlen("\"labe\\u006ced\""));
	assert_memory_equal(body + ev.action_at, "\"labe\\u006ced\"", ev.action_bytes);
	event_release(&ev);
}

static void test_labels(void **state)
{
	struct event ev;

	(void)state;
	parse_ok("pull_request", BODY_OF_PULL("labeled", "\"label\":{\"name\":\"bug\"},"), &ev);
	assert_int_equal(ev.pull_action, PULL_LABELED);
	assert_string_equal(ev.label, "bug");
	event_release(&ev);
	parse_ok("pull_request", BODY_OF_PULL("unlabeled", ""), &ev);
	assert_string_equal(ev.label, "");
	event_release(&ev);
	parse_ok("pull_request", BODY_OF_PULL("edited", "\"changes\":{\"base\":{}},"), &ev);
	assert_int_equal(ev.pull_action, PULL_BASE_CHANGED);
	event_release(&ev);
}

static void test_push(void **state)
{
	struct event ev;

	(void)state;
	parse_ok("push", BODY_PUSH, &ev);
	assert_int_equal(ev.kind, EVENT_PUSH);
	assert_string_equal(ev.action, "");
	assert_string_equal(ev.ref, "refs/heads/main");
	assert_string_equal(ev.before, SHA_BASE);
	assert_string_equal(ev.after, SHA_HEAD);
	assert_false(ev.is_deleted);
	assert_true(ev.pushed_ms == INT64_C(1557933657000));
	assert_string_equal(ev.head_message, "Land it");
	assert_string_equal(ev.head_author, "alice");
	assert_int_equal(ev.n_commits, 0);
	assert_false(ev.is_forced);
	event_release(&ev);
}

#define COMMIT(sha, more)                                                                                              \
	"{\"id\":\"" sha "\",\"message\":\"Land it\\r\\nmore\",\"timestamp\":"                                         \
	"\"2019-05-15T15:20:21Z\"" more "}"

static void parse_commits(const char *commits, struct event *ret)
{
	struct buf body = BUF_INIT(1 << 20);

	buf_appendf(&body,
	    "{\"ref\":\"refs/heads/main\",\"before\":\"" SHA_BASE "\",\"after\":\"" SHA_HEAD
	    "\",\"deleted\":false,\"forced\":true,\"commits\":%s," BODY_REPOSITORY "}",
	    commits);
	parse_ok("push", buf_str(&body), ret);
	buf_release(&body);
}

static void test_commits_of_a_push(void **state)
{
	struct event ev;

	(void)state;
	parse_commits("[" COMMIT(SHA_BASE, ",\"author\":{\"name\":\"Bob B.\"}") "," COMMIT(
			  SHA_HEAD, ",\"author\":{\"name\":\"Alice A.\",\"username\":\"alice\"}") "]",
	    &ev);
	assert_true(ev.is_forced);
	assert_int_equal(ev.n_commits, 2);
	assert_string_equal(ev.commits[0].sha, SHA_BASE);
	assert_string_equal(ev.commits[0].author, "Bob B.");
	assert_string_equal(ev.commits[0].title, "Land it");
	assert_true(ev.commits[0].at_ms == INT64_C(1557933621000));
	assert_string_equal(ev.commits[1].author, "alice");
	assert_null(ev.commits[1].files);
	event_release(&ev);
	parse_commits("[" COMMIT(SHA_HEAD, ",\"added\":[\"a.c\"],\"removed\":[],\"modified\":[7,\"b.c\"]") "]", &ev);
	assert_string_equal(ev.commits[0].files[0], "a.c");
	assert_string_equal(ev.commits[0].files[1], "b.c");
	assert_null(ev.commits[0].files[2]);
	event_release(&ev);
	parse_commits("[{\"id\":\"" SHA_HEAD "\",\"message\":1,\"timestamp\":\"x\"}]", &ev);
	assert_int_equal(ev.n_commits, 1);
	assert_string_equal(ev.commits[0].title, "");
	assert_true(ev.commits[0].at_ms == 0);
	event_release(&ev);
}

/* The stored paths of one commit are bounded, and the list shows that there are more. */
static void test_files_of_a_large_commit(void **state)
{
	struct buf commit = BUF_INIT(1 << 20);
	struct event ev;
	size_t n = 0;

	(void)state;
	buf_appendf(&commit, "[{\"id\":\"" SHA_HEAD "\",\"added\":[\"first\"],\"modified\":[");
	for (int i = 0; i < 300; i++)
		buf_appendf(&commit, "%s\"f%d\"", i ? "," : "", i);
	buf_appendf(&commit, "]}]");
	parse_commits(buf_str(&commit), &ev);
	while (ev.commits[0].files[n])
		n++;
	assert_int_equal(n, 201);
	assert_string_equal(ev.commits[0].files[0], "first");
	assert_string_equal(ev.commits[0].files[200], FILES_INCOMPLETE);
	event_release(&ev);
	buf_release(&commit);
}

/* An incomplete list of commits is not used; the push itself counts all the same. */
static void test_incomplete_lists_of_commits_are_not_used(void **state)
{
	static const char *const lists[] = {
	    "[]",
	    "{}",
	    "7",
	    "[" COMMIT(SHA_BASE, "") "]", /* does not end with `after` */
	    "[" COMMIT("xyz", "") "," COMMIT(SHA_HEAD, "") "]",
	    "[1," COMMIT(SHA_HEAD, "") "]",
	};
	struct buf many = BUF_INIT(1 << 20);
	struct event ev;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		parse_commits(lists[i], &ev);
		assert_int_equal(ev.n_commits, 0);
		assert_null(ev.commits);
		event_release(&ev);
	}
	buf_append_str(&many, "[");
	for (int i = 0; i < 2047; i++)
		buf_append_str(&many, COMMIT(SHA_BASE, "") ",");
	buf_append_str(&many, COMMIT(SHA_HEAD, "") "]");
	parse_commits(buf_str(&many), &ev);
	assert_int_equal(ev.n_commits, 0);
	event_release(&ev);
	buf_release(&many);
}

static void test_comment_and_checks(void **state)
{
	struct event ev;

	(void)state;
	parse_ok("issue_comment", BODY_COMMENT, &ev);
	assert_int_equal(ev.kind, EVENT_ISSUE_COMMENT);
	assert_int_equal(ev.pull.number, 42);
	assert_true(ev.is_pull_comment);
	assert_int_equal(ev.comment_id, 99);
	assert_string_equal(ev.comment_body, "@outpost retest");
	assert_string_equal(ev.comment_author, "bob");
	assert_string_equal(ev.comment_author_type, "User");
	assert_string_equal(ev.comment_association, "MEMBER");
	assert_string_equal(ev.pull_author, "alice");
	assert_true(ev.comment_created_ms == INT64_C(1557933621000));
	event_release(&ev);
	parse_ok("check_run", BODY_CHECK_RUN, &ev);
	assert_int_equal(ev.kind, EVENT_CHECK_RUN);
	assert_int_equal(ev.check_app_id, 12345);
	assert_string_equal(ev.check_name, "outpost");
	assert_string_equal(ev.check_external_id, "9:42");
	assert_string_equal(ev.check_head_sha, "0123456789abcdef0123456789abcdef01234567");
	event_release(&ev);
	parse_ok("installation_repositories", BODY_INSTALLATION, &ev);
	assert_int_equal(ev.kind, EVENT_INSTALLATION);
	assert_string_equal(ev.repository, "");
	event_release(&ev);
}

/* `body` with the first `from` replaced. */
static char *replaced(const char *body, const char *from, const char *to)
{
	const char *at = strstr(body, from);

	assert_non_null(at);
	return xasprintf("%.*s%s%s", (int)(at - body), body, to, at + strlen(from));
}

static void test_deleted_accounts_and_old_servers(void **state)
{
	static const char *const edits[][2] = {
	    {"\"user\":{\"login\":\"alice\",\"id\":21,\"site_admin\":false}", "\"user\":null"},
	    {"\"sender\":{\"login\":\"carol\",\"type\":\"User\"}", "\"sender\":null"},
	    {",\"draft\":false", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
		char *body = replaced(BODY_OF_PULL("opened", ""), edits[i][0], edits[i][1]);
		struct event ev;

		parse_ok("pull_request", body, &ev);
		assert_string_equal(ev.pull.author, i == 0 ? "" : "alice");
		assert_string_equal(ev.sender, i == 1 ? "" : "carol");
		event_release(&ev);
		free(body);
	}
}

static const struct {
	const char *event, *from, *to, *names;
} wrongs[] = {
    {"pull_request", "\"number\":42,\"state\"", "\"number\":\"42\",\"state\"", "pull_request.number"},
    {"pull_request", "\"number\":42,\"state\"", "\"number\":0,\"state\"", "pull_request.number"},
    {"pull_request", "\"sha\":\"" SHA_HEAD "\"", "\"sha\":7", "pull_request.head.sha"},
    {"pull_request", "\"sha\":\"" SHA_HEAD "\"", "\"sha\":\"abc\"", "pull_request.head.sha"},
    {"pull_request", "\"sha\":\"" SHA_BASE "\"", "\"shb\":1", "pull_request.base.sha is missing"},
    {"pull_request", "\"title\":", "\"titel\":", "pull_request.title is missing"},
    {"pull_request", "\"login\":\"alice\"", "\"login\":[]", "pull_request.user.login"},
    {"pull_request", BODY_LABELS, "\"labels\":{}", "pull_request.labels"},
    {"pull_request", "{\"name\":\"bug\"}", "{\"name\":1}", "pull_request.labels[1].name"},
    {"pull_request", "\"draft\":false", "\"draft\":\"no\"", "pull_request.draft"},
    {"pull_request", "\"updated_at\":\"2019-05-15T15:21:18Z\"", "\"updated_at\":1", "updated_at"},
    {"pull_request", "\"updated_at\":\"2019", "\"updated_at\":\"x019", "updated_at"},
    {"pull_request", "\"action\":\"opened\"", "\"action\":\"locked\"", "action"},
    {"pull_request", "\"action\":\"opened\"", "\"action\":\"edited\"", "changes.base"},
    {"pull_request", "\"action\":\"opened\"", "\"action\":\"labeled\"", "label.name"},
    {"pull_request", "\"full_name\":\"pytorch/pytorch\"", "\"full_name\":\"a/b/c\"", "full_name"},
    {"pull_request", "\"state\":\"open\"", "\"state\":\"open\",\"state\":\"x\"", "duplicate"},
    {"push", "\"ref\":", "\"reff\":", "ref"},
    {"push", "\"after\":\"1", "\"after\":\"Z", "after"},
    {"push", "\"deleted\":false", "\"deleted\":0", "deleted"},
    {"push", "\"username\":\"alice\"", "\"username\":[]", "head_commit.author.username"},
    {"issue_comment", "\"id\":99", "\"id\":-1", "comment.id"},
    {"issue_comment", "\"created_at\"", "\"made_at\"", "comment.created_at"},
};

static void test_names_the_mistake(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrongs); i++) {
		const char *good = str_eq(wrongs[i].event, "pull_request") ? BODY_OF_PULL("opened", "")
				   : str_eq(wrongs[i].event, "push")       ? BODY_PUSH
									   : BODY_COMMENT;
		char *body = replaced(good, wrongs[i].from, wrongs[i].to);
		struct error e = {0};
		struct event ev;

		assert_int_equal(event_parse(wrongs[i].event, body, strlen(body), &ev, &e), ERR_INVALID);
		if (!strstr(e.text, wrongs[i].names))
			fail_msg("case %zu says: %s", i, e.text);
		event_release(&ev);
		free(body);
	}
}

static void test_refuses_others(void **state)
{
	struct error e = {0};
	struct event ev;

	(void)state;
	assert_int_equal(event_parse("star", "{}", 2, &ev, &e), ERR_INVALID);
	event_release(&ev);
	assert_int_equal(event_parse("push", "{", 1, &ev, NULL), ERR_INVALID);
	event_release(&ev);
	assert_int_equal(event_parse("push", "[]", 2, &ev, NULL), ERR_INVALID);
	event_release(&ev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pull_request),
	    cmocka_unit_test(test_escapes_and_the_place_of_the_action),
	    cmocka_unit_test(test_labels),
	    cmocka_unit_test(test_push),
	    cmocka_unit_test(test_commits_of_a_push),
	    cmocka_unit_test(test_files_of_a_large_commit),
	    cmocka_unit_test(test_incomplete_lists_of_commits_are_not_used),
	    cmocka_unit_test(test_comment_and_checks),
	    cmocka_unit_test(test_deleted_accounts_and_old_servers),
	    cmocka_unit_test(test_names_the_mistake),
	    cmocka_unit_test(test_refuses_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
