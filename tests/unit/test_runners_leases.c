/* Heartbeats that the server holds, and returned leases. */
#include "pull_rig.h"

static void test_a_heartbeat(void **state)
{
	struct pull *p = *state;
	struct ask a;

	pull_ask(p, &a, RENEW, "{\"wait\":0}");
	until(p, &fake.n_renews, 1);
	assert_string_equal(fake.renew->lease_id, "lease1");
	assert_string_equal(fake.renew->accelerator, "npu");
	assert_string_equal(fake.renew->machine, MACHINE);
	assert_int_equal(fake.renew->lease_ms, 60000);
	answer_renew(LEASE_ACTIVE, "", 0);
	pull_expect(p, &a, 200, "\"lease\":\"active\"");
	pull_ask(p, &a, RENEW, "");
	until(p, &fake.n_renews, 2);
	answer_renew(LEASE_LOST, "it ran out", 0);
	pull_expect(p, &a, 200, "\"lost\",\"reason\":\"it ran out\"");
	pull_ask(p, &a, RENEW, "{\"wait\":20}");
	until(p, &fake.n_renews, 3);
	answer_renew(LEASE_CANCELLED, "superseded", 0); /* known at once: not held */
	pull_expect(p, &a, 200, "\"cancelled\"");
	pull_ask(p, &a, RENEW, "{}");
	until(p, &fake.n_renews, 4);
	answer_renew(LEASE_ACTIVE, "", ERR_NOT_FOUND);
	pull_expect(p, &a, 404, "no such lease");
	pull_ask(p, &a, RENEW, "{}");
	until(p, &fake.n_renews, 5);
	answer_renew(LEASE_ACTIVE, "", ERR_FULL);
	pull_expect(p, &a, 503, "busy");
	fake.submit_err = ERR_BUSY;
	pull_ask(p, &a, RENEW, "{}");
	pull_expect(p, &a, 503, "busy");
}

/* Holds one heartbeat; the store has answered that the lease is active. */
static void hold(struct pull *p, struct ask *a)
{
	int n = fake.n_renews;

	pull_ask(p, a, RENEW, "{\"wait\":20}");
	until(p, &fake.n_renews, n + 1);
	answer_renew(LEASE_ACTIVE, "", 0);
	until_held(p, 1);
}

static void test_a_cancel_answers_a_held_heartbeat(void **state)
{
	struct pull *p = *state;
	struct ask a;

	hold(p, &a);
	/* The lease of another machine ended. */
	leases_on_ended(p->runners->leases);
	answer_list("lease1", 0);
	assert_int_equal(leases_n_waiting(p->runners->leases), 1);
	/* Another lease ends during the query, so the list is read again. */
	leases_on_ended(p->runners->leases);
	leases_on_ended(p->runners->leases);
	answer_list("lease1", 0);
	until(p, &fake.n_lists, 3);
	answer_list(NULL, 0);
	answer_renew(LEASE_CANCELLED, "superseded by a newer push", 0);
	pull_expect(p, &a, 200, "newer push");
	/* No heartbeat waits, so there is no query. */
	leases_on_ended(p->runners->leases);
	assert_int_equal(fake.n_lists, 3);
}

static void test_a_failed_query_is_retried(void **state)
{
	struct pull *p = *state;
	struct ask a;

	hold(p, &a);
	leases_on_ended(p->runners->leases);
	answer_list(NULL, ERR_IO);
	assert_int_equal(leases_n_waiting(p->runners->leases), 1); /* it does not count as an end */
	until(p, &fake.n_lists, 2);                                /* a cancel must not wait for the next heartbeat */
	answer_list("lease1", 0);
	fake.submit_err = ERR_BUSY;
	leases_on_ended(p->runners->leases);
	fake.submit_err = 0;
	until(p, &fake.n_lists, 4);
	fake.submit_err = ERR_BUSY;
	answer_list(NULL, 0); /* it ended, but the query for the reason failed: the next heartbeat gets the reason */
	pull_expect(p, &a, 200, "\"active\"");
}

static void test_a_newer_heartbeat_replaces_a_held_one(void **state)
{
	struct pull *p = *state;
	struct ask first, second;

	hold(p, &first);
	pull_ask(p, &second, RENEW, "{\"wait\":20}");
	pull_expect(p, &first, 200, "\"active\"");
	until(p, &fake.n_renews, 2);
	answer_renew(LEASE_ACTIVE, "", 0);
	until_held(p, 1);
	runners_stop(p->runners);
	pull_expect(p, &second, 200, "\"active\"");
}

static void test_a_held_heartbeat_ends_after_its_wait(void **state)
{
	struct pull *p = *state;
	struct ask a;

	pull_ask(p, &a, RENEW, "{\"wait\":1}");
	until(p, &fake.n_renews, 1);
	answer_renew(LEASE_ACTIVE, "", 0);
	pull_expect(p, &a, 200, "\"active\"");
	assert_int_equal(fake.n_renews, 1);
}

static void test_a_heartbeat_of_a_machine_that_left_is_dropped(void **state)
{
	struct pull *p = *state;
	int fd = pull_ask_raw(p, RENEW, "{\"wait\":20}");

	until(p, &fake.n_renews, 1);
	answer_renew(LEASE_ACTIVE, "", 0);
	until_held(p, 1);
	pull_vanish(fd);
	until_held(p, 0);
	fd = pull_ask_raw(p, RENEW, "{\"wait\":20}");
	until(p, &fake.n_renews, 2);
	pull_vanish(fd);
	until_gone(p);
	answer_renew(LEASE_ACTIVE, "", 0);
	assert_int_equal(leases_n_waiting(p->runners->leases), 0);
}

static void test_a_revoked_token_ends_a_heartbeat(void **state)
{
	struct pull *p = *state;
	struct ask held, asked;

	hold(p, &held);
	pull_ask(p, &asked, "/api/v1/runner/leases/lease2/renew", "{\"wait\":20}");
	until(p, &fake.n_renews, 2);
	pull_revoke(p);
	pull_expect(p, &held, 401, "revoked");
	answer_renew(LEASE_ACTIVE, "", 0); /* returned too late */
	pull_expect(p, &asked, 401, "revoked");
	assert_int_equal(leases_n_waiting(p->runners->leases), 0);
}

static void test_return(void **state)
{
	struct pull *p = *state;
	struct ask a;

	pull_ask(p, &a, GIVEBACK, "{\"reason\":\"dra\\nined\"}");
	until(p, &fake.n_returns, 1);
	assert_string_equal(fake.returned, "lease1");
	assert_string_equal(fake.reason, "dra ined");
	answer_return(0);
	pull_expect(p, &a, 200, "{\"ok\":true}");
	assert_int_equal(runners_counters(p->runners)->n_leases_returned, 1);
	pull_ask(p, &a, GIVEBACK, "");
	until(p, &fake.n_returns, 2);
	assert_string_equal(fake.reason, "");
	answer_return(ERR_NOT_FOUND);
	pull_expect(p, &a, 404, "no such lease");
	pull_ask(p, &a, GIVEBACK, "{\"reason\":1}");
	pull_expect(p, &a, 400, "reason");
	pull_ask(p, &a, GIVEBACK, "[]");
	pull_expect(p, &a, 400, "object");
	fake.submit_err = ERR_BUSY;
	pull_ask(p, &a, GIVEBACK, "{}");
	pull_expect(p, &a, 503, "busy");
}

static void test_bad_requests(void **state)
{
	static const char *const waits[] = {
	    "{\"wait\":21}", "{\"wait\":-1}", "{\"wait\":\"1\"}", "{\"wait\":1.5}", "{\"wait\":1", "1"};
	static const char *const ids[] = {
	    "a%2fb", "a.b", "%c3%a9", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
	struct pull *p = *state;
	struct ask a;

	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		pull_ask(p, &a, RENEW, waits[i]);
		pull_expect(p, &a, 400, "detail");
	}
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		char *path = xasprintf("/api/v1/runner/leases/%s/renew", ids[i]);

		pull_ask(p, &a, path, "{}");
		pull_expect(p, &a, 404, "no such lease");
		free(path);
	}
	assert_int_equal(fake.n_renews, 0);
}

static void test_closing(void **state)
{
	struct pull *p = *state;
	struct ask held, asked;

	hold(p, &held);
	pull_ask(p, &asked, "/api/v1/runner/leases/lease2/renew", "{\"wait\":20}");
	until(p, &fake.n_renews, 2);
	runners_close(p->runners, parts_on_closed, &p->is_closed);
	p->is_closing = true;
	pull_expect(p, &held, 200, "\"active\"");
	assert_false(p->is_closed);
	answer_renew(LEASE_ACTIVE, "", 0);
	pull_expect(p, &asked, 200, "\"active\""); /* not held any more */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, pull_set_up, pull_tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(test_a_heartbeat),
	    TEST(test_a_cancel_answers_a_held_heartbeat),
	    TEST(test_a_failed_query_is_retried),
	    TEST(test_a_newer_heartbeat_replaces_a_held_one),
	    TEST(test_a_held_heartbeat_ends_after_its_wait),
	    TEST(test_a_heartbeat_of_a_machine_that_left_is_dropped),
	    TEST(test_a_revoked_token_ends_a_heartbeat),
	    TEST(test_return),
	    TEST(test_bad_requests),
	    TEST(test_closing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
