/* Tokens: requested once, cached, renewed, refused. */
#include "fake_github.h"
#include "github/github_internal.h"

static void expect_ok(struct fake_github *f, const char *repository)
{
	struct one o = {0};

	one_dispatch(f, &o, repository);
	one_wait(f, &o);
	assert_int_equal(o.call.result.err, 0);
	assert_int_equal(o.call.result.status, 204);
	assert_true(o.call.result.was_sent);
	github_call_release(&o.call);
}

static void test_single_flight(void **state)
{
	enum { N = 100 };
	struct fake_github *f = *state;
	struct one *all = xcalloc(N, sizeof(*all));

	for (int i = 0; i < N; i++)
		one_dispatch(f, &all[i], "owner/name");
	for (int i = 0; i < N; i++) {
		one_wait(f, &all[i]);
		assert_int_equal(all[i].call.result.err, 0);
	}
	assert_int_equal(fake_count(f, "GET /repos/owner/name/installation"), 1);
	assert_int_equal(fake_count(f, "POST /app/installations/42/access_tokens"), 1);
	assert_int_equal(fake_count(f, "POST /repos/owner/name/dispatches"), N);
	assert_true(f->n_at_once_max <= 50);
	free(all);
}

static void test_warm_token_costs_one_request(void **state)
{
	struct fake_github *f = *state;
	struct github_stats before, after;

	expect_ok(f, "owner/name");
	github_read_stats(f->github, &before);
	expect_ok(f, "owner/name");
	expect_ok(f, "Owner/Name"); /* GitHub's names are case-insensitive */
	github_read_stats(f->github, &after);
	assert_int_equal(before.n_requests, 3);
	assert_int_equal(after.n_requests, 5);
	assert_int_equal(after.n_token_requests, 1);
	assert_int_equal(after.n_tokens, 1);
	assert_int_equal(after.n_in_flight, 0);
	assert_int_equal(after.n_waiting, 0);
}

static void test_one_token_per_repository_and_use(void **state)
{
	struct fake_github *f = *state;
	struct one o = {.call = {.done = one_done}};

	expect_ok(f, "owner/name");
	expect_ok(f, "owner/other");
	github_pull_get(f->github, &o.call, "owner/name", 1);
	one_wait(f, &o);
	assert_int_equal(o.call.result.err, ERR_PROTOCOL); /* 204: no pull request in it */
	assert_int_equal(fake_count(f, "POST /app/installations/42/access_tokens"), 3);
	assert_int_equal(fake_count(f, "GET /repos/owner/name/installation"), 1);
	github_call_release(&o.call);
}

static void test_refused_token_is_renewed_once(void **state)
{
	struct fake_github *f = *state;
	struct one o = {0};

	expect_ok(f, "owner/name");
	fake_set(f, n_bad_tokens, 1);
	expect_ok(f, "owner/name");
	assert_int_equal(fake_count(f, "POST /app/installations"), 2);
	assert_int_equal(fake_count(f, "POST /repos/owner/name/dispatches"), 3);

	fake_set(f, n_bad_tokens, 1000);
	one_dispatch(f, &o, "owner/name");
	one_wait(f, &o);
	assert_int_equal(o.call.result.err, ERR_AUTH);
	assert_int_equal(o.call.result.status, 401);
	assert_true(o.call.result.is_final);
	assert_int_equal(fake_count(f, "POST /app/installations"), 3);
	github_call_release(&o.call);
}

static void test_many_refused_calls_share_one_renewal(void **state)
{
	enum { N = 20 };
	struct fake_github *f = *state;
	struct one all[N] = {0};

	expect_ok(f, "owner/name");
	fake_set(f, n_bad_tokens, 1);
	for (int i = 0; i < N; i++)
		one_dispatch(f, &all[i], "owner/name");
	for (int i = 0; i < N; i++) {
		one_wait(f, &all[i]);
		assert_int_equal(all[i].call.result.err, 0);
		github_call_release(&all[i].call);
	}
	assert_int_equal(fake_count(f, "POST /app/installations"), 2);
}

static void test_renewed_while_in_use(void **state)
{
	struct fake_github *f = *state;
	struct github_stats stats;
	struct one o = {0};
	int n = 0;

	expect_ok(f, "owner/name");
	LIST_FIRST(&f->github->tokens)->refresh_mono_ms = 0; /* its last minutes have begun */
	one_dispatch(f, &o, "owner/name");
	github_read_stats(f->github, &stats); /* both requests were sent without waiting for a new token */
	assert_int_equal(stats.n_in_flight, 2);
	one_wait(f, &o);
	assert_int_equal(o.call.result.err, 0);
	while (fake_count(f, "POST /app/installations") < 2 && n++ < 100)
		expect_ok(f, "owner/name");
	fake_set(f, n_bad_tokens, 1);
	expect_ok(f, "owner/name");
	assert_int_equal(fake_count(f, "POST /app/installations"), 2);
}

/* A lifetime of a few seconds in an answer counts as a minute, of which the last twelfth is not used. So a token is
 * never requested again at once, whatever the clocks show. */
static void test_clock_ahead(void **state)
{
	struct fake_github *f = *state;

	fake_set(f, token_life_s, -7200);
	expect_ok(f, "owner/name");
	expect_ok(f, "owner/name");
	assert_int_equal(fake_count(f, "POST /app/installations"), 1);
}

static void test_not_installed(void **state)
{
	struct fake_github *f = *state;
	struct one o = {0};

	fake_set(f, status_of_installation, 404);
	one_dispatch(f, &o, "owner/name");
	one_wait(f, &o);
	assert_int_equal(o.call.result.err, ERR_NOT_FOUND);
	assert_true(o.call.result.is_final);
	assert_false(o.call.result.was_sent);
	assert_string_equal(o.call.result.why.text, "the App is not installed on owner/name");
	one_dispatch(f, &o, "owner/name"); /* remembered for a minute */
	one_wait(f, &o);
	assert_int_equal(o.call.result.err, ERR_NOT_FOUND);
	assert_int_equal(fake_count(f, "GET /repos/owner/name/installation"), 1);
	github_call_release(&o.call);
}

static void test_no_token(void **state)
{
	static const struct {
		int status, err, n_look_ups;
		bool is_final;
	} cases[] = {
	    {401, ERR_AUTH, 1, false}, /* the operator has to fix it; rows wait */
	    {403, ERR_DENIED, 1, false},
	    {404, ERR_NOT_FOUND, 2, true}, /* looked up again: it may be */
	    {422, ERR_INVALID, 1, true},
	    {500, ERR_NETWORK, 1, false},
	};
	struct fake_github *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *repository = xasprintf("owner/name-%zu", i);
		char *look_up = xasprintf("GET /repos/%s/installation", repository);
		struct one o = {0};

		fake_set(f, status_of_token, cases[i].status);
		one_dispatch(f, &o, repository);
		one_wait(f, &o);
		assert_int_equal(o.call.result.err, cases[i].err);
		assert_int_equal(o.call.result.is_final, cases[i].is_final);
		assert_false(o.call.result.was_sent);
		assert_int_equal(fake_count(f, look_up), cases[i].n_look_ups);
		github_call_release(&o.call);
		free(look_up);
		free(repository);
	}
	assert_int_equal(fake_count(f, "POST /repos/"), 0);
}

static void test_reconfigure(void **state)
{
	struct fake_github *f = *state;
	struct github_options same = fake_options(f), other = fake_options(f);
	struct secret *no_key;
	struct one o = {0};
	struct error e = {0};

	expect_ok(f, "owner/name");
	same.max_concurrent = 1;
	same.writes_per_minute = 10;
	assert_int_equal(github_reconfigure(f->github, &same, &e), 0);
	expect_ok(f, "owner/name");
	assert_int_equal(fake_count(f, "POST /app/installations"), 1);

	other.app_id = 8;
	one_dispatch(f, &o, "owner/name"); /* the call is running: it continues */
	assert_int_equal(github_reconfigure(f->github, &other, &e), 0);
	one_wait(f, &o);
	assert_int_equal(o.call.result.err, 0);
	expect_ok(f, "owner/name");
	assert_int_equal(fake_count(f, "POST /app/installations"), 2);
	assert_int_equal(fake_count(f, "GET /repos/owner/name/installation"), 2);

	other.private_key_pem = no_key = secret_of("no key");
	assert_int_equal(github_reconfigure(f->github, &other, &e), ERR_INVALID);
	expect_ok(f, "owner/name");
	assert_int_equal(fake_count(f, "POST /app/installations"), 2);
	secret_unref(no_key);
	github_call_release(&o.call);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_set_up, fake_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_single_flight),
	    TEST(test_warm_token_costs_one_request),
	    TEST(test_one_token_per_repository_and_use),
	    TEST(test_refused_token_is_renewed_once),
	    TEST(test_many_refused_calls_share_one_renewal),
	    TEST(test_renewed_while_in_use),
	    TEST(test_clock_ahead),
	    TEST(test_not_installed),
	    TEST(test_no_token),
	    TEST(test_reconfigure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
