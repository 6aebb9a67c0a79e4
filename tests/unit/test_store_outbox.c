/* The outbox: claims, order in a lane, how tries end, deadlines, requests for comments. */
#include "store_rig.h"

static void a_claimed_row_is_not_claimed_twice(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), WEBHOOK_WANT("xpu")};
	struct claim_outbox a, b;
	struct get_totals t = {.now_ms = T0 + 2000};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 2);
	a = rig_claim(1u << OUTBOX_GITHUB_DISPATCH, T0 + 1000);
	b = rig_claim(REQUESTS, T0 + 1000);
	assert_int_equal(a.n, 1);
	assert_int_equal(b.n, 1);
	assert_int_equal(a.rows[0].n_attempts, 0);
	assert_false(a.rows[0].is_uncertain);
	assert_string_equal(a.rows[0].target, "Ascend/pytorch");
	assert_int_equal(a.rows[0].number, 1);
	assert_int_equal(a.rows[0].first_ms, T0 + 1000);
	assert_string_equal(b.rows[0].runner, "lab");
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.outbox.n_sending, 2);
	assert_int_equal(t.outbox.n_due, 0);
	assert_int_equal(t.outbox.oldest_unsent_ms, T0 + 1000);
	claim_outbox_release(&a);
	claim_outbox_release(&b);
	b = rig_claim(REQUESTS, T0 + 1000);
	assert_int_equal(b.n, 0);
	assert_int_equal(b.next_due_ms, 0);
	claim_outbox_release(&b);
}

static void assert_same_request(const struct outbox_row *a, const struct outbox_row *b)
{
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->kind, b->kind);
	assert_string_equal(a->target, b->target);
	assert_int_equal(a->number, b->number);
	assert_string_equal(a->dispatch_id, b->dispatch_id);
	assert_string_equal(a->delivery_guid, b->delivery_guid);
	assert_string_equal(a->event_type, b->event_type);
	assert_string_equal(a->sent_action, b->sent_action);
	assert_string_equal(a->original_action, b->original_action);
	assert_string_equal(a->runner, b->runner);
	assert_true(str_eq(a->accelerator, b->accelerator));
	assert_true(str_eq(a->text, b->text));
	assert_int_equal(a->first_ms, b->first_ms);
	assert_int_equal(a->generation, b->generation);
	assert_string_equal(a->accelerators[0], b->accelerators[0]);
	assert_null(a->accelerators[1]);
	assert_string_equal(a->head_sha, b->head_sha);
	assert_int_equal(a->finish_by_ms, b->finish_by_ms);
}

static void an_offer_claims_the_requests_of_a_plan(void **state)
{
	struct plan_want wants[] = {
	    GITHUB_WANT("npu", "Ascend/pytorch"), GITHUB_WANT("gaudi", "intel/ci"), WEBHOOK_WANT("xpu")};
	struct outbox_offer offer = {.places = {[OUTBOX_GITHUB_DISPATCH] = 1, [OUTBOX_WEBHOOK_DISPATCH] = 1}};
	struct get_totals t = {.now_ms = T0 + 2000};
	struct outbox_row *rows;
	struct claim_outbox c;

	(void)state;
	offer = rig_apply(&(struct rig_plan){.kind = PLAN_START,
			      .head = HEAD_A,
			      .event_ms = T0 + 1000,
			      .wants = wants,
			      .n_wants = 3,
			      .offer = offer})
		    .offer;
	rows = offer.rows;
	assert_int_equal(offer.n, 2);
	assert_string_equal(rows[0].target, "Ascend/pytorch");
	assert_string_equal(rows[0].accelerators[0], "npu");
	assert_string_equal(rows[0].head_sha, HEAD_A);
	assert_int_equal(rows[0].n_attempts, 0);
	assert_string_equal(rows[1].runner, "lab");
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.outbox.n_sending, 2);
	c = rig_claim(REQUESTS, T0 + 1000);
	assert_int_equal(c.n, 1);
	assert_string_equal(c.rows[0].target, "intel/ci");
	rig_done(&c.rows[0], OUTBOX_OK, 0);
	claim_outbox_release(&c);
	rig_done(&rows[0], OUTBOX_OK, 0);
	ASSERT_DISPATCHES(HEAD_A, "gaudi sent*, npu sent*, xpu queued*");
	rig_reopen();
	c = rig_claim(REQUESTS, T0 + 2000);
	assert_int_equal(c.n, 1);
	assert_true(c.rows[0].is_uncertain);
	assert_same_request(&c.rows[0], &rows[1]); /* also the members that the offer did not read from the row */
	claim_outbox_release(&c);
	outbox_offer_release(&offer);
	assert_int_equal(offer.places[OUTBOX_GITHUB_DISPATCH], 1);
}

static void an_offer_leaves_a_row_behind_another_of_its_lane(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct claim_outbox c;
	struct apply_plan op;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	c = rig_claim(REQUESTS, T0 + 1000);
	op = rig_apply(&(struct rig_plan){.kind = PLAN_START,
	    .head = HEAD_B,
	    .event_ms = T0 + 2000,
	    .action = "synchronize",
	    .wants = wants,
	    .n_wants = 1,
	    .offer.places = {[OUTBOX_GITHUB_DISPATCH] = 1}});
	assert_int_equal(op.offer.n, 0);
	assert_int_equal(op.offer.places[OUTBOX_GITHUB_DISPATCH], 1);
	rig_done(&c.rows[0], OUTBOX_OK, 0);
	claim_outbox_release(&c);
	ASSERT_SENT(T0 + 2000, "github_dispatch Ascend/pytorch[npu] synchronize");
}

static void a_lane_sends_its_rows_in_order_one_at_a_time(void **state)
{
	struct plan_want wants[] = {WEBHOOK_WANT("xpu")};
	struct claim_outbox c;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	c = rig_claim(REQUESTS, T0 + 1000);
	rig_done(&c.rows[0], OUTBOX_RETRY, T0 + MINUTE);
	claim_outbox_release(&c);
	rig_start("edited", HEAD_A, 2, wants, 1); /* cancel of the first, then the second */
	c = rig_claim(REQUESTS, T0 + 2000);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.rows[0].kind, OUTBOX_WEBHOOK_CANCEL);
	claim_outbox_release(&c);
	c = rig_claim(REQUESTS, T0 + 2000);
	assert_int_equal(c.n, 0);
	assert_int_equal(c.next_due_ms, 0); /* a row that waits behind another is returned later */
	claim_outbox_release(&c);
}

static void a_claim_returns_the_next_due_time(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct get_totals t = {.now_ms = T0 + 2000};
	struct claim_outbox c;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	c = rig_claim(REQUESTS, T0 + 1000);
	rig_done(&c.rows[0], OUTBOX_RETRY, T0 + 9000);
	claim_outbox_release(&c);
	c = rig_claim(REQUESTS, T0 + 2000);
	assert_int_equal(c.n, 0);
	assert_int_equal(c.next_due_ms, T0 + 9000);
	claim_outbox_release(&c);
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.outbox.n_waiting, 1);
	c = rig_claim(REQUESTS, T0 + 9000);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.rows[0].n_attempts, 1);
	rig_done(&c.rows[0], OUTBOX_NOT_YET, T0 + 10000);
	claim_outbox_release(&c);
	c = rig_claim(REQUESTS, T0 + 10000);
	assert_int_equal(c.rows[0].n_attempts, 1); /* nothing was tried */
	claim_outbox_release(&c);
}

static void a_limit_leaves_the_rest_due(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("a", "v/a"), GITHUB_WANT("b", "v/b"), GITHUB_WANT("c", "v/c")};
	struct claim_outbox c = {.kinds = REQUESTS, .limit = 2, .now_ms = T0 + 5000};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 3);
	DO_OK(store_claim_outbox, &c);
	assert_int_equal(c.n, 2);
	assert_int_equal(c.next_due_ms, T0 + 1000);
	claim_outbox_release(&c);
}

static void a_claim_may_leave_a_target_out(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), GITHUB_WANT("gaudi", "intel/ci")};
	struct claim_outbox c = {
	    .kinds = REQUESTS, .limit = 10, .now_ms = T0 + 1000, .past = xstrdup("Ascend/pytorch")};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 2);
	DO_OK(store_claim_outbox, &c);
	assert_int_equal(c.n, 1);
	assert_string_equal(c.rows[0].target, "intel/ci");
	claim_outbox_release(&c);
	c = rig_claim(REQUESTS, T0 + 1000);
	assert_int_equal(c.n, 1);
	assert_string_equal(c.rows[0].target, "Ascend/pytorch");
	claim_outbox_release(&c);
}

static void ending_an_unknown_row_is_an_error(void **state)
{
	struct outbox_done o = {.id = 4711, .result = OUTBOX_OK};

	(void)state;
	assert_int_equal(DO(store_outbox_done, &o), ERR_NOT_FOUND);
}

static void a_row_that_was_being_sent_is_uncertain_after_a_restart(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct claim_outbox c;
	char *id, *again;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	c = rig_claim(REQUESTS, T0 + 1000);
	id = xstrdup(c.rows[0].dispatch_id);
	claim_outbox_release(&c);
	rig_reopen();
	c = rig_claim(REQUESTS, T0 + 2000);
	assert_int_equal(c.n, 1);
	assert_true(c.rows[0].is_uncertain);
	assert_int_equal(c.rows[0].n_attempts, 1);
	again = c.rows[0].dispatch_id;
	assert_string_equal(id, again);
	rig_done(&c.rows[0], OUTBOX_OK, 0);
	claim_outbox_release(&c);
	ASSERT_DISPATCHES(HEAD_A, "npu sent*");
	free(id);
}

/* Otherwise a service that restarts often would wait a quarter of an hour after one failure. */
static void restarts_do_not_postpone_the_next_try(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct claim_outbox c;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	for (int i = 0; i < 10; i++) {
		c = rig_claim(REQUESTS, T0 + 1000 + i);
		assert_int_equal(c.n, 1);
		claim_outbox_release(&c);
		rig_reopen();
	}
	c = rig_claim(REQUESTS, T0 + 2000);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.rows[0].n_attempts, 1);
	claim_outbox_release(&c);
}

static void a_row_that_was_dropped_while_being_sent_is_not_sent_again(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct claim_outbox c;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	c = rig_claim(REQUESTS, T0 + 1000);
	claim_outbox_release(&c);
	rig_close_pull(1, HEAD_A, 2);
	rig_reopen();
	ASSERT_SENT(T0 + 3000, "github_closed Ascend/pytorch[npu] closed");
}

/* A vendor that was down all the time must not get the old head when it is back. */
static void an_expired_request_is_dropped_with_its_head(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct expire_dispatches e = {.now_ms = T0 + 2 * HOUR};
	struct claim_outbox c;

	(void)state;
	rig_start("opened", HEAD_A, 0, wants, 1);
	c = rig_claim(REQUESTS, T0);
	rig_done(&c.rows[0], OUTBOX_RETRY, T0 + 3 * HOUR);
	claim_outbox_release(&c);
	DO_OK(store_expire_dispatches, &e);
	c = rig_claim(REQUESTS, T0 + 2 * HOUR);
	assert_int_equal(c.next_due_ms, T0 + 3 * HOUR); /* a late result still counts */
	claim_outbox_release(&c);
	rig_start("synchronize", HEAD_B, 9000, wants, 1);
	ASSERT_DISPATCHES(HEAD_A, "npu expired*");
	ASSERT_SENT(T0 + 4 * HOUR, "github_dispatch Ascend/pytorch[npu] synchronize");
}

/* ---- deadlines ---- */

static struct expire_dispatches expire(int64_t now_ms)
{
	struct expire_dispatches e = {.now_ms = now_ms};

	DO_OK(store_expire_dispatches, &e);
	return e;
}

static char *last_error(const char *head)
{
	struct change_view *v = rig_view_of(0, head);
	char *text = xstrdup_or_null(v->accelerators[0].dispatches[0].last_error);

	change_view_free(v);
	return text;
}

static void assert_error(const char *head, const char *expected)
{
	char *text = last_error(head);

	assert_string_equal(text, expected);
	free(text);
}

static void a_silent_dispatch_expires(void **state)
{
	struct plan_want wants[] = {WEBHOOK_WANT("xpu")};
	struct expire_dispatches e;
	struct change_view *v;
	struct claim_outbox c;

	(void)state;
	rig_start("opened", HEAD_A, 0, wants, 1);
	e = expire(T0 + 10 * MINUTE - 1);
	assert_int_equal(e.n_expired, 0);
	assert_int_equal(e.next_due_ms, T0 + 10 * MINUTE);
	v = rig_view_of(1, NULL);
	assert_int_equal(v->accelerators[0].dispatches[0].due_ms, T0 + 10 * MINUTE);
	change_view_free(v);
	c = rig_claim(COMMENTS, T0 + DAY);
	assert_int_equal(c.n, 0); /* there is nothing to write yet */
	claim_outbox_release(&c);
	e = expire(T0 + 10 * MINUTE);
	assert_int_equal(e.n_expired, 1);
	assert_int_equal(e.next_due_ms, 0);
	assert_error(HEAD_A, "not acknowledged within 10m");
	ASSERT_DISPATCHES(HEAD_A, "xpu expired*");
	v = rig_view_of(1, NULL);
	assert_int_equal(v->n_verdicts, 1);
	assert_string_equal(v->verdicts[0].suite, "dispatch");
	assert_string_equal(v->verdicts[0].test, "lab");
	assert_int_equal(v->verdicts[0].status, TEST_MISS);
	assert_string_equal(v->verdicts[0].message, "not acknowledged within 10m");
	assert_int_equal(v->verdicts[0].attribution, ATTRIBUTION_UNCLASSIFIED);
	change_view_free(v);
	c = rig_claim(COMMENTS, T0 + DAY);
	assert_int_equal(c.n, 1);
	assert_string_equal(c.rows[0].target, UPSTREAM);
	assert_int_equal(c.rows[0].number, 1);
	claim_outbox_release(&c);
}

static void each_deadline_in_its_turn(void **state)
{
	struct plan_want wants[] = {WEBHOOK_WANT("xpu")}, github[] = {GITHUB_WANT("npu", "v/ci")};

	(void)state;
	rig_start("opened", HEAD_A, 0, wants, 1);
	free(rig_send(T0));
	assert_int_equal(expire(T0 + HOUR).n_expired, 0); /* it was acknowledged */
	assert_int_equal(expire(T0 + 2 * HOUR).n_expired, 1);
	assert_error(HEAD_A, "did not start within 2h");
	/* GitHub sends no acknowledgement, so there is nothing to wait for before the start. */
	rig_start("synchronize", HEAD_B, 1, github, 1);
	free(rig_send(T0 + 1000));
	assert_int_equal(expire(T0 + HOUR).n_expired, 0);
	assert_int_equal(expire(T0 + 3 * HOUR).n_expired, 1);
	assert_error(HEAD_B, "did not start within 2h");
}

static void a_jump_of_the_clock_expires_nothing(void **state)
{
	struct plan_want wants[] = {WEBHOOK_WANT("xpu")};
	struct shift_clock shift = {.delta_ms = 365 * DAY};
	struct claim_outbox c;

	(void)state;
	rig_start("opened", HEAD_A, 0, wants, 1);
	DO_OK(store_shift_clock, &shift);
	assert_int_equal(expire(T0 + 365 * DAY + 10 * MINUTE - 1).n_expired, 0);
	c = rig_claim(REQUESTS, T0 + 364 * DAY);
	assert_int_equal(c.n, 0);
	claim_outbox_release(&c);
	c = rig_claim(REQUESTS, T0 + 365 * DAY);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.rows[0].first_ms, T0 + 365 * DAY);
	claim_outbox_release(&c);
	shift.delta_ms = -365 * DAY;
	DO_OK(store_shift_clock, &shift);
	assert_int_equal(expire(T0 + 10 * MINUTE).n_expired, 1);
}

/* ---- comments ---- */

static struct outbox_row *claim_comment(struct claim_outbox *c, int64_t now_ms)
{
	*c = rig_claim(COMMENTS, now_ms);
	assert_int_equal(c->n, 1);
	return &c->rows[0];
}

/* A first request, caused by a held dispatch. */
static void request_comment(int64_t at)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "v/ci")};

	wants[0].held_reason = (char *)"new";
	rig_start("opened", HEAD_A, at, wants, 1);
}

/* A later one: the PR's labels changed. */
static void request_comment_again(int64_t at)
{
	rig_apply(
	    &(struct rig_plan){.kind = PLAN_UPDATE, .head = HEAD_A, .event_ms = T0 + at * 1000, .action = "labeled"});
}

static void a_request_during_the_write_is_not_lost(void **state)
{
	struct claim_outbox c, none;

	(void)state;
	request_comment(1);
	claim_comment(&c, T0 + 1000);
	request_comment_again(2);
	none = rig_claim(COMMENTS, T0 + 2000);
	assert_int_equal(none.n, 0); /* one writer a PR */
	claim_outbox_release(&none);
	rig_done(&c.rows[0], OUTBOX_OK, 0);
	claim_outbox_release(&c);
	claim_comment(&c, T0 + 2000);
	rig_done(&c.rows[0], OUTBOX_OK, 0);
	claim_outbox_release(&c);
	none = rig_claim(COMMENTS, T0 + DAY);
	assert_int_equal(none.n, 0);
	claim_outbox_release(&none);
	request_comment_again(3);
	claim_comment(&c, T0 + 3000);
	assert_int_equal(c.rows[0].first_ms, T0 + 3000);
	claim_outbox_release(&c);
}

static void a_request_wakes_a_delayed_comment_but_not_a_refused_one(void **state)
{
	struct claim_outbox c;

	(void)state;
	request_comment(1);
	claim_comment(&c, T0 + 1000);
	rig_done(&c.rows[0], OUTBOX_NOT_YET, T0 + HOUR);
	claim_outbox_release(&c);
	request_comment_again(2);
	claim_comment(&c, T0 + 2000);
	assert_int_equal(c.rows[0].n_attempts, 0);
	rig_done(&c.rows[0], OUTBOX_RETRY, T0 + HOUR);
	claim_outbox_release(&c);
	request_comment_again(3);
	c = rig_claim(COMMENTS, T0 + 3000);
	assert_int_equal(c.n, 0);
	assert_int_equal(c.next_due_ms, T0 + HOUR);
	claim_outbox_release(&c);
	claim_comment(&c, T0 + HOUR);
	assert_int_equal(c.rows[0].n_attempts, 1);
	rig_done(&c.rows[0], OUTBOX_DEAD, 0);
	claim_outbox_release(&c);
	request_comment_again(4);
	claim_comment(&c, T0 + HOUR);
	assert_int_equal(c.rows[0].n_attempts, 0);
	claim_outbox_release(&c);
}

static void a_debounce_ends_when_there_is_more_to_write(void **state)
{
	struct claim_outbox c;

	(void)state;
	request_comment(1);
	claim_comment(&c, T0 + 1000);
	request_comment_again(2);
	rig_done(&c.rows[0], OUTBOX_NOT_YET, T0 + HOUR);
	claim_outbox_release(&c);
	claim_comment(&c, T0 + 2000);
	claim_outbox_release(&c);
}

static void a_comment_follows_the_requests(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "v/ci"), GITHUB_WANT("gpu", "w/ci")};
	struct claim_outbox c, requests;

	(void)state;
	wants[0].held_reason = (char *)"new";
	rig_start("opened", HEAD_A, 1, wants, 2);
	claim_comment(&c, T0 + 1000);
	rig_done(&c.rows[0], OUTBOX_OK, 0); /* it shows "not asked yet" for gpu */
	claim_outbox_release(&c);
	requests = rig_claim(REQUESTS, T0 + 2000);
	assert_int_equal(requests.n, 1);
	rig_done(&requests.rows[0], OUTBOX_OK, 0);
	claim_outbox_release(&requests);
	claim_comment(&c, T0 + DAY);
	claim_outbox_release(&c);
}

static void the_shown_text_of_a_comment_may_be_unknown(void **state)
{
	struct claim_outbox c;
	struct outbox_done o = {.result = OUTBOX_RETRY, .is_uncertain = true, .now_ms = T0 + 2000};

	(void)state;
	request_comment(1);
	claim_comment(&c, T0 + 1000);
	assert_false(c.rows[0].is_uncertain);
	o.id = c.rows[0].id;
	o.epoch = c.rows[0].epoch;
	o.generation = c.rows[0].generation;
	claim_outbox_release(&c);
	DO_OK(store_outbox_done, &o);
	claim_comment(&c, T0 + 3000);
	assert_true(c.rows[0].is_uncertain);
	claim_outbox_release(&c);
	o.is_uncertain = false; /* written, with more to write in an hour */
	o.result = OUTBOX_AGAIN;
	o.next_ms = T0 + HOUR;
	DO_OK(store_outbox_done, &o);
	c = rig_claim(COMMENTS, T0 + 3000);
	assert_int_equal(c.n, 0);
	assert_int_equal(c.next_due_ms, T0 + HOUR);
	claim_outbox_release(&c);
	claim_comment(&c, T0 + HOUR);
	assert_false(c.rows[0].is_uncertain);
	assert_int_equal(c.rows[0].n_attempts, 0);       /* the earlier failure is over */
	assert_int_equal(c.rows[0].first_ms, T0 + HOUR); /* the next look has its own time for tries */
	claim_outbox_release(&c);
}

static void the_written_text_is_remembered(void **state)
{
	struct put_comment put = {.repository = "PyTorch/PyTorch",
	    .number = 1,
	    .comment_id = 99,
	    .written_ms = T0,
	    .body_hash = {1, 2, 3},
	    .has_red_written = true};
	struct get_comment get = {.repository = UPSTREAM, .number = 1}, none = {.repository = UPSTREAM, .number = 2};
	struct claim_outbox c;

	(void)state;
	request_comment(1);
	put.outbox_id = claim_comment(&c, T0 + 1000)->id;
	put.epoch = c.rows[0].epoch;
	claim_outbox_release(&c);
	DO_OK(store_put_comment, &put);
	ASK_OK(store_get_comment, &get);
	assert_true(get.is_known && get.has_red_written);
	assert_int_equal(get.comment_id, 99);
	assert_int_equal(get.body_hash[2], 3);
	assert_int_equal(get.written_ms, T0);
	ASK_OK(store_get_comment, &none);
	assert_false(none.is_known);

	rig_reopen(); /* the row's next sender writes another text, and this one's record comes late */
	claim_comment(&c, T0 + 2000);
	claim_outbox_release(&c);
	put.body_hash[2] = 4;
	DO_OK(store_put_comment, &put);
	ASK_OK(store_get_comment, &get);
	assert_int_equal(get.body_hash[2], 3);
}

/* For the next publisher: the writes of the last hour, and one for each row that is being written. */
static void content_writes_are_on_record_for_another_node(void **state)
{
	const int64_t ended_ms[] = {T0 - HOUR - 1, T0 - 2000, T0 - 1000};
	struct list_writes l = {.now_ms = T0};
	struct shift_clock back = {.delta_ms = -DAY, .now_ms = T0 - DAY};
	struct claim_outbox c;

	(void)state;
	for (int i = 0; i < 3; i++) {
		request_comment(1);
		claim_comment(&c, T0 + 1000 + i);
		struct outbox_done o = {.id = c.rows[0].id,
		    .epoch = c.rows[0].epoch,
		    .result = OUTBOX_NOT_YET,
		    .generation = c.rows[0].generation,
		    .n_writes = i + 1,
		    .next_ms = T0,
		    .now_ms = ended_ms[i]};
		DO_OK(store_outbox_done, &o);
		claim_outbox_release(&c);
	}
	claim_comment(&c, T0 + 2000);
	claim_outbox_release(&c);
	ASK_OK(store_list_writes, &l);
	assert_int_equal(l.n, server_database() ? 3 : 1); /* a single daemon needs no record */
	assert_int_equal(l.list[l.n - 1].at_ms, T0);
	assert_int_equal(l.list[l.n - 1].n, 1);
	if (server_database()) {
		assert_int_equal(l.list[0].at_ms, T0 - 2000);
		assert_int_equal(l.list[0].n, 2);
		assert_int_equal(l.list[1].n, 3);
	}
	list_writes_release(&l);
	DO_OK(store_shift_clock, &back);
	l.now_ms += back.delta_ms;
	ASK_OK(store_list_writes, &l);
	assert_int_equal(l.list[0].at_ms, l.now_ms - (server_database() ? 2000 : 0));
	list_writes_release(&l);
}

static void expect_limits(const struct github_limit *own, size_t n_own, int64_t now_ms, const char *expected)
{
	struct share_limits o = {.own = own, .n_own = n_own, .now_ms = now_ms};
	struct buf text = BUF_INIT(256);

	DO_OK(store_share_limits, &o);
	for (int64_t id = 1; id < 10; id++)
		for (size_t i = 0; i < o.n; i++)
			if (o.list[i].installation_id == id)
				buf_appendf(&text, "%lld:+%lld:%lld ", (long long)id,
				    (long long)(o.list[i].until_ms - now_ms) / 1000, (long long)o.list[i].remaining);
	assert_string_equal(buf_str(&text), expected);
	buf_release(&text);
	RECORDS_RELEASE(github_limit, o.list, o.n);
}

static void the_longer_limit_of_an_installation_counts(void **state)
{
	const struct github_limit longer[] = {{5, T0 + HOUR, 0, T0}, {6, T0 + MINUTE, 9, 0}};
	const struct github_limit others[] = {{5, T0 + MINUTE, 7, 0}, {6, T0 + MINUTE + 1000, 8, 0}};
	struct shift_clock shift = {.delta_ms = DAY, .now_ms = T0 + DAY};

	(void)state;
	expect_limits(longer, 2, T0, "5:+3600:0 6:+60:9 ");
	expect_limits(others, 2, T0, "5:+3600:0 6:+60:9 ");
	rig_reopen();
	DO_OK(store_shift_clock, &shift);
	expect_limits(NULL, 0, T0 + DAY, "5:+3600:0 6:+60:9 ");
	expect_limits(NULL, 0, T0 + DAY + MINUTE, "5:+3540:0 ");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(a_claimed_row_is_not_claimed_twice),
	    TEST(an_offer_claims_the_requests_of_a_plan),
	    TEST(an_offer_leaves_a_row_behind_another_of_its_lane),
	    TEST(a_lane_sends_its_rows_in_order_one_at_a_time),
	    TEST(a_claim_returns_the_next_due_time),
	    TEST(a_limit_leaves_the_rest_due),
	    TEST(a_claim_may_leave_a_target_out),
	    TEST(ending_an_unknown_row_is_an_error),
	    TEST(a_row_that_was_being_sent_is_uncertain_after_a_restart),
	    TEST(restarts_do_not_postpone_the_next_try),
	    TEST(a_row_that_was_dropped_while_being_sent_is_not_sent_again),
	    TEST(an_expired_request_is_dropped_with_its_head),
	    TEST(a_silent_dispatch_expires),
	    TEST(each_deadline_in_its_turn),
	    TEST(a_jump_of_the_clock_expires_nothing),
	    TEST(a_request_during_the_write_is_not_lost),
	    TEST(a_request_wakes_a_delayed_comment_but_not_a_refused_one),
	    TEST(a_debounce_ends_when_there_is_more_to_write),
	    TEST(a_comment_follows_the_requests),
	    TEST(the_shown_text_of_a_comment_may_be_unknown),
	    TEST(the_written_text_is_remembered),
	    TEST(content_writes_are_on_record_for_another_node),
	    TEST(the_longer_limit_of_an_installation_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
