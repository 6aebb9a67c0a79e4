/* The outcome of a request: every kind of answer, and a cancel at every stage. */
#include "fake_github.h"

/* The server's answer to a dispatch in the current case; guarded by the lock. */
static struct {
	const char *status, *headers, *body;
} next_answer;

static char *send_next_answer(struct fake_github *f, const char *request)
{
	(void)f;
	(void)request;
	return fake_answer(next_answer.status, next_answer.headers, next_answer.body);
}

static void set_next_answer(struct fake_github *f, const char *status, const char *headers, const char *body)
{
	pthread_mutex_lock(&f->lock);
	next_answer.status = status;
	next_answer.headers = headers;
	next_answer.body = body;
	f->answer = send_next_answer;
	pthread_mutex_unlock(&f->lock);
}

static void dispatch(struct fake_github *f, struct one *o, const char *repository)
{
	one_dispatch(f, o, repository);
	one_wait(f, o);
	github_call_release(&o->call);
}

static void test_final_and_temporary_errors(void **state)
{
	static const struct {
		const char *status, *headers;
		int err;
		bool is_final;
		int64_t retry_after_ms;
	} cases[] = {
	    {"400 Bad Request", "", ERR_INVALID, true, 0},
	    {"403 Forbidden", "", ERR_DENIED, false, 0},
	    {"404 Not Found", "", ERR_NOT_FOUND, true, 0},
	    {"408 Request Timeout", "", ERR_TIMEOUT, false, 0},
	    {"409 Conflict", "", ERR_CONFLICT, true, 0},
	    {"422 Unprocessable", "", ERR_INVALID, true, 0},
	    {"301 Moved", "Location: /repositories/1/dispatches\r\n", ERR_NOT_FOUND, true, 0},
	    {"500 Oops", "", ERR_NETWORK, false, 0},
	    {"502 Bad Gateway", "", ERR_NETWORK, false, 0},
	    {"503 Busy", "Retry-After: 7\r\n", ERR_NETWORK, false, 7000},
	    {"503 Busy", "Retry-After: soon\r\n", ERR_NETWORK, false, 0},
	};
	struct fake_github *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct one o = {0};

		set_next_answer(
		    f, cases[i].status, cases[i].headers, "{\"message\":\"said GitHub\",\"text\":\"\\u0000\"}");
		dispatch(f, &o, "owner/name");
		assert_int_equal(o.call.result.err, cases[i].err);
		assert_int_equal(o.call.result.is_final, cases[i].is_final);
		assert_int_equal(o.call.result.retry_after_ms, cases[i].retry_after_ms);
		assert_true(o.call.result.was_sent);
		assert_non_null(strstr(o.call.result.why.text, "dispatch, owner/name: GitHub"));
		if (cases[i].err == ERR_INVALID)
			assert_non_null(strstr(o.call.result.why.text, "said GitHub"));
		if (cases[i].err == ERR_NOT_FOUND && !*cases[i].headers)
			assert_non_null(strstr(o.call.result.why.text, "not installed"));
	}
}

/* A refusal of one request is no trouble: GitHub works. */
static void test_trouble_is_of_the_last_answer(void **state)
{
	static const struct {
		const char *status, *trouble;
	} cases[] = {{"502 Bad Gateway", "502"}, {"404 Not Found", ""}, {"503 Busy", "503"}, {"204 No Content", ""}};
	struct fake_github *f = *state;
	struct github_stats s;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct one o = {0};

		set_next_answer(f, cases[i].status, "", "{}");
		dispatch(f, &o, "owner/name");
		github_read_stats(f->github, &s);
		if (*cases[i].trouble ? !strstr(s.trouble, cases[i].trouble) : *s.trouble != '\0')
			fail_msg("%s: %s", cases[i].status, s.trouble);
		assert_true(!*s.trouble || s.trouble_wall_ms > 0);
	}
}

/* A rate limit delays one installation only, for the time that GitHub names. */
static void test_limits(void **state)
{
	static const struct {
		const char *status, *headers, *body;
		int64_t wait_ms;
	} cases[] = {
	    {"429 Too Many", "Retry-After: 30\r\n", "", 30000},
	    {"403 Forbidden", "Retry-After: 72\r\n", "{\"message\":\"slow down\"}", 72000},
	    {"403 Forbidden", "X-RateLimit-Remaining: 4000\r\n",
		"{\"message\":\"You have exceeded a secondary rate limit.\"}", 60000},
	    {"403 Forbidden", "x-ratelimit-remaining: 0\r\nx-ratelimit-reset: 99999999999\r\n",
		"{\"message\":\"API rate limit exceeded\"}", 3600000},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fake_github *f = *state;
		struct github_stats stats;
		struct github_budget_stats budgets[3];
		struct one o = {0};

		set_next_answer(f, cases[i].status, cases[i].headers, cases[i].body);
		dispatch(f, &o, "owner/name");
		assert_int_equal(o.call.result.err, ERR_BUSY);
		assert_false(o.call.result.is_final);
		assert_int_equal(o.call.result.retry_after_ms, cases[i].wait_ms);

		dispatch(f, &o, "owner/name");
		assert_int_equal(o.call.result.err, ERR_BUSY);
		assert_int_equal(o.call.result.status, 0);
		assert_false(o.call.result.was_sent);
		assert_true(o.call.result.retry_after_ms > cases[i].wait_ms - 10000);
		assert_int_equal(fake_count(f, "POST /repos/owner/name/dispatches"), 1);

		fake_set(f, answer, NULL);
		dispatch(f, &o, "other/name");
		assert_int_equal(o.call.result.err, 0);
		github_read_stats(f->github, &stats);
		assert_int_equal(stats.n_rate_limited, 1);
		assert_int_equal(github_read_budgets(f->github, budgets, 3), 3);
		assert_true(budgets[1].blocked_ms > 0);
		assert_int_equal(budgets[2].blocked_ms, 0);

		fake_tear_down(state);
		assert_int_equal(fake_set_up(state), 0);
	}
}

static void count_limit(void *owner) { ++*(int *)owner; }

/* One daemon meets a limit, and another one learns it. */
static void test_limits_are_shared(void **state)
{
	static const struct github_budget_stats known = {
	    .installation_id = 42, .remaining = 3, .reset_wall_ms = 9, .blocked_ms = 60000};
	struct fake_github *f = *state;
	struct github_budget_stats budgets[3];
	struct one o = {0};
	int n_limits = 0;

	github_on_limit(f->github, count_limit, &n_limits);
	dispatch(f, &o, "other/name");
	assert_int_equal(n_limits, 0);
	set_next_answer(f, "200 OK", "x-ratelimit-remaining: 0\r\nx-ratelimit-reset: 99999999999\r\n", "{}");
	dispatch(f, &o, "other/name"); /* the last request of the quota */
	assert_int_equal(o.call.result.err, 0);
	assert_int_equal(n_limits, 1);

	set_next_answer(f, "204 No Content", "", "");
	dispatch(f, &o, "owner/name");
	github_learn_limit(f->github, &known);
	dispatch(f, &o, "owner/name");
	assert_int_equal(o.call.result.err, ERR_BUSY);
	assert_false(o.call.result.was_sent);
	assert_true(o.call.result.retry_after_ms > 50000);
	assert_int_equal(fake_count(f, "POST /repos/owner/name/dispatches"), 1);
	assert_int_equal(n_limits, 1);
	assert_int_equal(github_read_budgets(f->github, budgets, 3), 3);
	assert_int_equal(budgets[2].installation_id, 42);
	assert_int_equal(budgets[2].remaining, 3);
	assert_int_equal(budgets[2].reset_wall_ms, 9);
}

static char *check_headers(struct fake_github *f, const char *request)
{
	static const char *const expected[] = {"Accept: application/vnd.github+json\r\n",
	    "X-GitHub-Api-Version: 2022-11-28\r\n", "User-Agent: outpost/test\r\n",
	    "Content-Type: application/json\r\n", "Authorization: Bearer token-1\r\n", "\r\n\r\n{}"};

	(void)f;
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		if (!strstr(request, expected[i]))
			return fake_answer("400 Missing", "", expected[i]);
	return NULL;
}

static void test_headers(void **state)
{
	struct fake_github *f = *state;
	struct one o = {0};

	fake_set(f, answer, check_headers);
	dispatch(f, &o, "owner/name");
	assert_int_equal(o.call.result.status, 204);
}

static void test_no_answer(void **state)
{
	struct fake_github *f = *state;
	struct github_options o = fake_options(f);
	struct one one = {0};

	dispatch(f, &one, "owner/name");
	o.api_url = "http://127.0.0.1:1";
	assert_int_equal(github_reconfigure(f->github, &o, NULL), 0);
	dispatch(f, &one, "owner/name");
	assert_int_equal(one.call.result.err, ERR_NETWORK);
	assert_int_equal(one.call.result.status, 0);
	assert_false(one.call.result.is_final);
	assert_false(one.call.result.was_sent);
}

static void test_bad_names(void **state)
{
	static const char *const names[] = {"", "owner", "owner/name/x", "owner/../x", "o/n?x=1"};
	struct fake_github *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct one o = {0};

		dispatch(f, &o, names[i]);
		assert_int_equal(o.call.result.err, ERR_INVALID);
		assert_true(o.call.result.is_final);
	}
	assert_int_equal(f->lb->n_requests, 0);
}

static void test_concurrency(void **state)
{
	enum { N = 60 };
	struct fake_github *f = *state;
	struct github_options o = fake_options(f);
	struct one *all = xcalloc(N, sizeof(*all));
	struct github_stats stats;

	o.max_concurrent = 3;
	assert_int_equal(github_reconfigure(f->github, &o, NULL), 0);
	for (int i = 0; i < N; i++)
		one_dispatch(f, &all[i], i % 2 ? "owner/name" : "other/name");
	github_read_stats(f->github, &stats);
	assert_true(stats.n_in_flight <= 3);
	for (int i = 0; i < N; i++) {
		one_wait(f, &all[i]);
		assert_int_equal(all[i].call.result.err, 0);
	}
	assert_true(f->n_at_once_max <= 3);
	free(all);
}

static void test_cancel(void **state)
{
	struct fake_github *f = *state;
	struct github_options options = fake_options(f);
	struct one cold = {0}, warm = {0}, queued = {0};

	one_dispatch(f, &cold, "owner/name"); /* waits for its token */
	github_cancel(f->github, &cold.call);
	github_cancel(f->github, &cold.call);
	one_wait(f, &cold);
	assert_int_equal(cold.call.result.err, ERR_CANCELLED);
	assert_false(cold.call.result.was_sent);
	github_cancel(f->github, &cold.call);
	dispatch(f, &warm, "owner/name");
	assert_int_equal(warm.call.result.err, 0);

	options.max_concurrent = 1;
	assert_int_equal(github_reconfigure(f->github, &options, NULL), 0);
	one_dispatch(f, &warm, "owner/name");   /* in the air */
	one_dispatch(f, &queued, "owner/name"); /* waits for it */
	github_cancel(f->github, &queued.call);
	github_cancel(f->github, &warm.call);
	one_wait(f, &queued);
	one_wait(f, &warm);
	assert_int_equal(queued.call.result.err, ERR_CANCELLED);
	assert_int_equal(warm.call.result.err, ERR_CANCELLED);
	dispatch(f, &warm, "owner/name");
	assert_int_equal(warm.call.result.err, 0);
}

static bool may_go_out(const void *owner) { return *(const bool *)owner; }

/* The answer changes while the request waits for its token, or for another one to end. */
static void test_may_go_out(void **state)
{
	struct fake_github *f = *state;
	struct github_options options = fake_options(f);
	bool may = true;
	struct one cold = {.call = {.may_go_out = may_go_out, .going_owner = &may}}, queued = cold, warm = {0};

	one_dispatch(f, &cold, "owner/name");
	may = false;
	one_wait(f, &cold);
	assert_int_equal(cold.call.result.err, ERR_CANCELLED);
	assert_false(cold.call.result.was_sent || cold.call.result.is_final);
	assert_int_equal(fake_count(f, "POST /repos/owner/name/dispatches"), 0);

	options.max_concurrent = 1;
	assert_int_equal(github_reconfigure(f->github, &options, NULL), 0);
	may = true;
	one_dispatch(f, &warm, "owner/name");
	one_dispatch(f, &queued, "owner/name");
	may = false;
	one_wait(f, &warm);
	one_wait(f, &queued);
	assert_int_equal(warm.call.result.err, 0);
	assert_int_equal(queued.call.result.err, ERR_CANCELLED);
	assert_int_equal(fake_count(f, "POST /repos/owner/name/dispatches"), 1);
	github_call_release(&warm.call);
}

static void test_close_with_running_calls(void **state)
{
	enum { N = 20 };
	struct fake_github *f = *state;
	struct one all[N] = {0}, warm = {0};

	dispatch(f, &warm, "owner/name");
	for (int i = 0; i < N; i++)
		one_dispatch(f, &all[i], i % 2 ? "owner/name" : "other/name");
	fake_close_github(f);
	for (int i = 0; i < N; i++) {
		assert_true(all[i].is_done);
		assert_int_equal(all[i].call.result.err, ERR_CANCELLED);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_set_up, fake_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_final_and_temporary_errors),
	    TEST(test_trouble_is_of_the_last_answer),
	    TEST(test_limits),
	    TEST(test_limits_are_shared),
	    TEST(test_headers),
	    TEST(test_no_answer),
	    TEST(test_bad_names),
	    TEST(test_concurrency),
	    TEST(test_cancel),
	    TEST(test_may_go_out),
	    TEST(test_close_with_running_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
