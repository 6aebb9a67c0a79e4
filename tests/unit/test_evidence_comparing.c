/* Requests for the commits between two runs, against a store and a GitHub in this file. */
#include "stand_ins.h"

#include "evidence/evidence.h"
#include "history/commits_between.h"
#include "replaces.h"

REPLACES(store_claim_comparison);
REPLACES(claim_comparison_release);
REPLACES(store_put_comparison);
REPLACES(github_commits_between);
REPLACES(github_call_release);
REPLACES(github_cancel);

#define SECOND INT64_C(1000)
#define HOUR   (3600 * SECOND)
#define SHA_1  "1111111111111111111111111111111111111111"

static struct world {
	struct loop *loop;
	struct comparing *comparing;
	struct timer *close_later;

	int n_due, n_tries; /* comparisons that the store has, each with the number of its requests */
	int n_claims, n_asked, n_cancelled, n_closed;
	int n_busy_claims;
	bool rings_while_busy, is_mute, closes_at_ask, closes_at_claim;

	const char *answer; /* JSON */
	bool is_complete;
	struct github_result result;

	int n_puts;
	int64_t n, again_in_ms; /* of the last put; again 0: it was the final answer */
	char *commits;
} w;

/* ---- the store ---- */

static void on_closed(void *owner)
{
	(void)owner;
	w.n_closed++;
	timer_close(w.close_later);
	loop_stop(w.loop);
}

static void close_now(struct timer *t)
{
	(void)t;
	comparing_close(w.comparing, on_closed, NULL);
}

int store_claim_comparison(struct store *s, struct claim_comparison *q)
{
	(void)s;
	w.n_claims++;
	if (w.n_busy_claims > 0) {
		w.n_busy_claims--;
		return ERR_BUSY;
	}
	q->q.err = w.n_due ? 0 : ERR_NOT_FOUND;
	q->repository = q->good_sha = q->bad_sha = NULL;
	if (w.n_due) {
		q->repository = xstrdup("pytorch/pytorch");
		q->good_sha = xstrdup("good");
		q->bad_sha = xstrdup("bad");
		q->n_tries = w.n_tries;
	}
	end_query(w.loop, &q->q);
	if (w.closes_at_claim)
		timer_start(w.close_later, 0);
	return 0;
}

void claim_comparison_release(struct claim_comparison *q)
{
	FREE_AND_NULL(q->repository);
	FREE_AND_NULL(q->good_sha);
	FREE_AND_NULL(q->bad_sha);
}

int store_put_comparison(struct store *s, struct put_comparison *op)
{
	(void)s;
	assert_non_null(op->op.retry.event); /* the store retries it, so GitHub's answer is not lost */
	assert_string_equal(op->bad_sha, "bad");
	w.n_puts++;
	w.n = op->n;
	w.again_in_ms = op->again_ms ? op->again_ms - clock_wall_ms() : 0;
	free(w.commits);
	w.commits = xstrdup_or_null(op->commits);
	if (--w.n_due == 0)
		timer_start(w.close_later, 0);
	end_op(w.loop, &op->op);
	return 0;
}

/* ---- GitHub ---- */

void github_commits_between(
    struct github *g, struct github_commits *c, const char *repository, const char *base, const char *head)
{
	(void)g;
	assert_string_equal(repository, "pytorch/pytorch");
	assert_string_equal(base, "good");
	assert_string_equal(head, "bad");
	w.n_asked++;
	c->is_complete = w.is_complete;
	c->call.result = w.result;
	if (!w.result.err)
		assert_int_equal(json_parse(w.answer, strlen(w.answer), &c->call.answer, NULL), 0);
	if (w.rings_while_busy)
		ring();
	if (w.closes_at_ask)
		timer_start(w.close_later, 0);
	if (!w.is_mute)
		end_call(w.loop, &c->call);
}

void github_call_release(struct github_call *call)
{
	json_decref(call->answer);
	call->answer = NULL;
}

void github_cancel(struct github *g, struct github_call *call)
{
	(void)g;
	w.n_cancelled++;
	call->result.err = ERR_CANCELLED;
	end_call(w.loop, call);
}

/* ---- the tests ---- */

static int set_up(void **state)
{
	(void)state;
	log_setup(LOG_ERROR, LOG_TEXT);
	memset(&w, 0, sizeof(w));
	stand_ins_reset();
	w.loop = loop_new();
	w.close_later = timer_new(w.loop, close_now, NULL);
	w.n_due = 1;
	w.is_complete = true;
	w.answer = "{\"total_commits\":0,\"commits\":[]}";
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(w.commits);
	return 0;
}

static void run(void)
{
	const struct evidence_deps deps = {.loop = w.loop};

	w.comparing = comparing_new(&deps);
	assert_int_equal(subscriber.topics, STORE_ATTRIBUTION);
	loop_run(w.loop);
	ring(); /* the store may still be open */
	comparing_free(w.comparing);
	loop_free(w.loop);
	assert_int_equal(w.n_closed, 1);
}

static void refuse(int err, bool is_final, int64_t retry_after_ms)
{
	w.result = (struct github_result){.err = err, .is_final = is_final, .retry_after_ms = retry_after_ms};
}

static void an_answer_is_stored(void **state)
{
	(void)state;
	w.answer = "{\"total_commits\":3,\"commits\":["
		   "{\"sha\":\"no sha\",\"commit\":{\"author\":{\"name\":\"Ann\"}}},"
		   "{\"sha\":\"" SHA_1 "\",\"author\":{\"login\":\"bob\"},"
		   "\"commit\":{\"message\":\"Title\\r\\n\\nBody\",\"author\":{\"name\":\"B\"}}}]}";
	run();
	assert_int_equal(w.n, 3);
	assert_int_equal(w.again_in_ms, 0);
	assert_string_equal(w.commits, "[{\"sha\":\"" SHA_1 "\",\"title\":\"Title\",\"author\":\"bob\"},"
				       "{\"sha\":null,\"title\":null,\"author\":\"Ann\"}]");
}

/* GitHub lists only the oldest of many commits, but the newest are needed, so the list is not used. */
static void a_truncated_list_is_not_used(void **state)
{
	(void)state;
	w.is_complete = false;
	w.answer = "{\"total_commits\":900,\"commits\":[{\"sha\":\"" SHA_1 "\"}]}";
	run();
	assert_int_equal(w.n, 900);
	assert_string_equal(w.commits, "[]");
}

static void a_refused_comparison_is_not_requested_again(void **state)
{
	(void)state;
	refuse(ERR_NOT_FOUND, true, 0);
	run();
	assert_int_equal(w.n_puts, 1);
	assert_int_equal(w.n, -1);
	assert_int_equal(w.again_in_ms, 0);
	assert_null(w.commits);
}

/* the next try comes after this time, as far as the elapsed time shows it */
static void check_pause(int n_tries, int64_t retry_after_ms, int64_t expected_ms)
{
	void *state = NULL;

	set_up(&state);
	w.n_tries = n_tries;
	refuse(ERR_IO, false, retry_after_ms);
	run();
	assert_int_equal(w.n, -1);
	if (expected_ms)
		assert_in_range(w.again_in_ms, expected_ms - 5 * SECOND, expected_ms);
	else
		assert_int_equal(w.again_in_ms, 0);
	tear_down(&state);
}

static void the_back_off_grows_up_to_a_limit(void **state)
{
	(void)state;
	check_pause(0, 0, 10 * SECOND);
	check_pause(1, 0, 20 * SECOND);
	check_pause(0, 90 * SECOND, 90 * SECOND);
	check_pause(10, 0, 10 * 1024 * SECOND);
	check_pause(10, 9 * HOUR, 6 * HOUR);
	check_pause(11, 0, 0);
}

static void one_comparison_at_a_time(void **state)
{
	(void)state;
	w.n_due = 3;
	w.rings_while_busy = true;
	run();
	assert_int_equal(w.n_asked, 3);
	assert_int_equal(w.n_puts, 3);
}

static void a_busy_store_is_retried(void **state)
{
	(void)state;
	w.n_busy_claims = 1;
	run();
	assert_int_equal(w.n_puts, 1);
	assert_in_range(w.n_claims, 2, 3); /* the last operation may be a query for more work */
	assert_int_equal(w.n_asked, 1);
}

static void closing_cancels_the_request(void **state)
{
	(void)state;
	w.is_mute = w.closes_at_ask = true;
	run();
	assert_int_equal(w.n_asked, 1);
	assert_int_equal(w.n_cancelled, 1);
	assert_int_equal(w.n_puts, 0);
}

static void closing_waits_for_the_store(void **state)
{
	(void)state;
	w.closes_at_claim = true;
	w.n_due = 0;
	run();
	assert_int_equal(w.n_claims, 1);
	assert_int_equal(w.n_asked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	    TEST(an_answer_is_stored),
	    TEST(a_truncated_list_is_not_used),
	    TEST(a_refused_comparison_is_not_requested_again),
	    cmocka_unit_test(the_back_off_grows_up_to_a_limit),
	    TEST(one_comparison_at_a_time),
	    TEST(a_busy_store_is_retried),
	    TEST(closing_cancels_the_request),
	    TEST(closing_waits_for_the_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
