/* Machines that wait for work: how often they cause a query, which machine gets the result, and what happens to the
 * result when the machine has left. */
#include "pull_rig.h"

#define GPU "[\"gpu\"]"
#define ALL "[\"big\",\"gpu\",\"more\"]"

static void ring(struct pull *p) { claims_on_queue(p->runners->claims); }

static void test_answers(void **state)
{
	struct pull *p = *state;
	struct ask a;

	pull_ask(p, &a, CLAIM, CLAIM_BODY("a", GPU, "0"));
	until(p, &fake.n_claims, 1);
	assert_string_equal(fake.chosen, "small:1 ");
	assert_string_equal(fake.claim->machine, MACHINE);
	assert_int_equal(fake.claim->lease_ms, 60000);
	assert_false(fake.claim->is_silent);
	answer_claim(NULL, 0);
	pull_expect(p, &a, 204, "");
	pull_ask(p, &a, CLAIM, CLAIM_BODY("a", ALL, "0"));
	until(p, &fake.n_claims, 2);
	assert_string_equal(fake.chosen, "big:3 small:1 ");
	answer_claim("lease1", 0);
	pull_expect(p, &a, 200, "\"change_url\":\"https://outpost.example.org/pulls/7\"");
	assert_int_equal(runners_counters(p->runners)->n_leases_granted, 1);
}

/* A thousand machines: one query for each when it comes, one for all when something is queued. */
static void test_idle_machines_share_one_query(void **state)
{
	enum { N = 12 };
	struct pull *p = *state;
	struct ask a[N];
	char *bodies[N];

	for (int i = 0; i < N; i++) {
		bodies[i] = xasprintf("{\"name\":\"" MACHINE "\",\"claim_id\":\"c%d\","
				      "\"labels\":[\"gpu\"],\"wait\":30}",
		    i);
		pull_ask(p, &a[i], CLAIM, bodies[i]);
		until(p, &fake.n_claims, i + 1);
		answer_claim(NULL, 0);
	}
	until_held(p, N);
	ring(p);
	assert_int_equal(fake.n_claims, N + 1);
	assert_string_equal(fake.claimed_by, "c0");
	answer_claim(NULL, 0);
	assert_null(fake.claim);
	assert_int_equal(fake.n_claims, N + 1);
	/* A ring during a query is remembered: the query may have missed the new work. */
	ring(p);
	ring(p);
	answer_claim(NULL, 0);
	assert_non_null(fake.claim);
	answer_claim(NULL, 0);
	assert_null(fake.claim);
	assert_int_equal(fake.n_claims, N + 3);
	/* The machines that waited longest get work, one after the other, until there is no more. */
	ring(p);
	answer_claim("lease1", 0);
	pull_expect(p, &a[0], 200, "lease1");
	assert_string_equal(fake.claimed_by, "c1");
	answer_claim("lease2", 0);
	pull_expect(p, &a[1], 200, "lease2");
	assert_string_equal(fake.claimed_by, "c2");
	answer_claim(NULL, 0);
	assert_null(fake.claim);
	runners_stop(p->runners);
	for (int i = 2; i < N; i++)
		pull_expect(p, &a[i], 503, "stops");
	for (int i = 0; i < N; i++)
		free(bodies[i]);
}

/* No work for a machine with few labels does not mean no work for one with more. */
static void test_each_set_of_labels_has_its_own_query(void **state)
{
	struct pull *p = *state;
	struct ask few, many, none;

	pull_ask(p, &few, CLAIM, CLAIM_BODY("few", GPU, "30"));
	until(p, &fake.n_claims, 1);
	answer_claim(NULL, 0);
	pull_ask(p, &many, CLAIM, CLAIM_BODY("many", ALL, "30"));
	until(p, &fake.n_claims, 2);
	answer_claim(NULL, 0);
	pull_ask(p, &none, CLAIM, CLAIM_BODY("none", "[]", "30"));
	until_held(p, 3);
	ring(p);
	assert_string_equal(fake.claimed_by, "few");
	answer_claim(NULL, 0);
	assert_string_equal(fake.claimed_by, "many");
	answer_claim(NULL, 0);
	assert_null(fake.claim); /* no runner would have the third */
	/* After its runner's labels change, there is a query for it. */
	pull_write("npu", "  - {name: any, pull: {labels: []}}\n");
	pull_reload(p);
	assert_string_equal(fake.claimed_by, "few");
	assert_string_equal(fake.chosen, "any:1 ");
	answer_claim("lease1", 0);
	pull_expect(p, &few, 200, "lease1");
	assert_string_equal(fake.claimed_by, "many");
	answer_claim("lease2", 0);
	pull_expect(p, &many, 200, "lease2");
	assert_string_equal(fake.claimed_by, "none");
	answer_claim("lease3", 0);
	pull_expect(p, &none, 200, "lease3");
}

static void test_a_machine_that_left_returns_its_lease(void **state)
{
	struct pull *p = *state;
	int idle, looked_for;

	idle = pull_ask_raw(p, CLAIM, CLAIM_BODY("idle", GPU, "30"));
	until(p, &fake.n_claims, 1);
	answer_claim(NULL, 0);
	pull_vanish(idle);
	until_held(p, 0);
	ring(p);
	assert_int_equal(fake.n_claims, 1);
	/* It leaves during the query: the lease is returned. */
	looked_for = pull_ask_raw(p, CLAIM, CLAIM_BODY("gone", GPU, "30"));
	until(p, &fake.n_claims, 2);
	pull_vanish(looked_for);
	until_gone(p);
	answer_claim("lease1", 0);
	assert_int_equal(fake.n_returns, 1);
	assert_string_equal(fake.returned, "lease1");
	assert_true(fake.giving_back->granted_until_ms > fake.giving_back->now_ms);
	answer_return(0);
	/* A lease that it had before stays: it may have it from another daemon. */
	fake.was_known = true;
	looked_for = pull_ask_raw(p, CLAIM, CLAIM_BODY("known", GPU, "30"));
	until(p, &fake.n_claims, 3);
	pull_vanish(looked_for);
	until_gone(p);
	answer_claim("lease1", 0);
	assert_int_equal(fake.n_returns, 1);
	assert_int_equal(claims_n_waiting(p->runners->claims), 0);
}

/* The machine came back before the answer, with the same claim_id. */
static void test_a_machine_that_came_back_gets_the_lease(void **state)
{
	struct pull *p = *state;
	struct ask again;
	int left = pull_ask_raw(p, CLAIM, CLAIM_BODY("same", GPU, "30"));

	until(p, &fake.n_claims, 1);
	pull_vanish(left);
	until_gone(p);
	pull_ask(p, &again, CLAIM, CLAIM_BODY("same", GPU, "30"));
	until_held(p, 2);
	answer_claim("lease1", 0);
	pull_expect(p, &again, 200, "lease1");
	assert_int_equal(fake.n_returns, 0);
	assert_int_equal(claims_n_waiting(p->runners->claims), 0);
}

/* The same without leaving: the first claim gets 204, and the second gets the lease. */
static void test_a_second_claim_replaces_the_first(void **state)
{
	struct pull *p = *state;
	struct ask first, second;

	pull_ask(p, &first, CLAIM, CLAIM_BODY("same", GPU, "30"));
	until(p, &fake.n_claims, 1);
	pull_ask(p, &second, CLAIM, CLAIM_BODY("same", GPU, "30"));
	pull_expect(p, &first, 204, "");
	answer_claim("lease1", 0);
	pull_expect(p, &second, 200, "lease1");
}

static void test_a_busy_store_is_retried(void **state)
{
	struct pull *p = *state;
	struct ask a;

	fake.submit_err = ERR_BUSY;
	pull_ask(p, &a, CLAIM, CLAIM_BODY("a", GPU, "30"));
	until(p, &fake.n_claims, 1);
	fake.submit_err = 0;
	until(p, &fake.n_claims, 2); /* tried again by itself */
	answer_claim(NULL, ERR_FULL);
	until(p, &fake.n_claims, 3);
	answer_claim("lease1", 0);
	pull_expect(p, &a, 200, "lease1");
}

/* A push that waits for its interval: no event announces the end of the interval. */
static void test_a_push_that_waits_for_its_interval_is_queried_again(void **state)
{
	struct pull *p = *state;
	struct ask a;

	pull_ask(p, &a, CLAIM, CLAIM_BODY("a", GPU, "30"));
	until(p, &fake.n_claims, 1);
	fake.claim->next_ms = clock_wall_ms() + 60000;
	answer_claim(NULL, 0);
	ring(p);
	assert_int_equal(fake.n_claims, 2);
	fake.claim->next_ms = clock_wall_ms() + 30; /* sooner than the known time */
	answer_claim(NULL, 0);
	until(p, &fake.n_claims, 3);
	fake.claim->next_ms = clock_wall_ms() - 30; /* it passed during the query */
	answer_claim(NULL, 0);
	until(p, &fake.n_claims, 4);
	answer_claim("lease1", 0);
	pull_expect(p, &a, 200, "lease1");
}

static void test_claims_that_are_not_allowed(void **state)
{
	struct pull *p = *state;
	struct ask held, a;

	pull_ask(p, &a, CLAIM, "{\"name\":\"other\",\"claim_id\":\"a\",\"labels\":[]}");
	pull_expect(p, &a, 403, "name");
	/* a token of another accelerator is refused even before there is work */
	pull_ask(p, &a, CLAIM, "{\"name\":\"" MACHINE "\",\"accelerator\":\"gpu\",\"claim_id\":\"a\",\"labels\":[]}");
	pull_expect(p, &a, 403, "the token is for accelerator npu");
	pull_ask(p, &a, CLAIM, "{\"name\":\"" MACHINE "\",\"labels\":[]}");
	pull_expect(p, &a, 400, "claim_id");
	pull_ask(p, &held, CLAIM, CLAIM_BODY("a", GPU, "30"));
	until(p, &fake.n_claims, 1);
	answer_claim(NULL, 0);
	/* The accelerator leaves the registry. */
	pull_write("other", "  - {name: ci, github: {repository: a/b}}\n");
	assert_int_equal(remove("accelerators.d/npu.yml"), 0);
	pull_reload(p);
	pull_expect(p, &held, 403, "left the registry");
	pull_ask(p, &a, CLAIM, CLAIM_BODY("a", GPU, "30"));
	pull_expect(p, &a, 403, "accelerator npu has left the registry");
	pull_add_token(p, TOKEN_API, "other", "");
	pull_ask(p, &a, CLAIM, CLAIM_BODY("a", GPU, "30"));
	pull_expect(p, &a, 403, "cannot claim work");
	p->headers[0] = "Authorization: Bearer ort_x";
	pull_ask(p, &a, CLAIM, CLAIM_BODY("a", GPU, "30"));
	pull_expect(p, &a, 401, "not valid");
	p->headers[0] = NULL;
	pull_ask(p, &a, CLAIM, CLAIM_BODY("a", GPU, "30"));
	pull_expect(p, &a, 401, "missing");
}

static void test_closing_during_a_query_returns_the_lease(void **state)
{
	struct pull *p = *state;
	struct ask looked_for, held, late;

	pull_ask(p, &looked_for, CLAIM, CLAIM_BODY("a", GPU, "30"));
	until(p, &fake.n_claims, 1);
	pull_ask(p, &held, CLAIM, CLAIM_BODY("b", GPU, "30"));
	until_held(p, 2);
	runners_close(p->runners, parts_on_closed, &p->is_closed);
	p->is_closing = true;
	pull_expect(p, &held, 503, "stops");
	pull_ask(p, &late, CLAIM, CLAIM_BODY("c", GPU, "30"));
	pull_expect(p, &late, 503, "busy");
	assert_false(p->is_closed);
	answer_claim("lease1", 0);
	pull_expect(p, &looked_for, 200, "lease1");
}

static void test_closing_during_a_query_without_work(void **state)
{
	struct pull *p = *state;
	struct ask a;

	pull_ask(p, &a, CLAIM, CLAIM_BODY("a", GPU, "30"));
	until(p, &fake.n_claims, 1);
	runners_close(p->runners, parts_on_closed, &p->is_closed);
	p->is_closing = true;
	answer_claim(NULL, 0);
	pull_expect(p, &a, 503, "stops");
}

static void test_a_revoked_token_gets_nothing(void **state)
{
	struct pull *p = *state;
	struct ask held, looked_for;

	pull_ask(p, &held, CLAIM, CLAIM_BODY("held", GPU, "30"));
	until(p, &fake.n_claims, 1);
	answer_claim(NULL, 0);
	pull_ask(p, &looked_for, CLAIM, CLAIM_BODY("asked", GPU, "30"));
	until(p, &fake.n_claims, 2);
	pull_revoke(p);
	pull_expect(p, &held, 401, "revoked");
	pull_expect(p, &looked_for, 401, "revoked");
	answer_claim("lease1", 0); /* found after the close: requeued */
	assert_string_equal(fake.returned, "lease1");
	answer_return(0);
	assert_int_equal(claims_n_waiting(p->runners->claims), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, pull_set_up, pull_tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(test_answers),
	    TEST(test_idle_machines_share_one_query),
	    TEST(test_each_set_of_labels_has_its_own_query),
	    TEST(test_a_machine_that_left_returns_its_lease),
	    TEST(test_a_machine_that_came_back_gets_the_lease),
	    TEST(test_a_second_claim_replaces_the_first),
	    TEST(test_a_busy_store_is_retried),
	    TEST(test_a_push_that_waits_for_its_interval_is_queried_again),
	    TEST(test_claims_that_are_not_allowed),
	    TEST(test_a_revoked_token_gets_nothing),
	    TEST(test_closing_during_a_query_returns_the_lease),
	    TEST(test_closing_during_a_query_without_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
