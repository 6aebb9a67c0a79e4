/* The recorded content of check runs, the requests to update them, and their deletion with the change. */
#include "store/maintenance.h"
#include "store/outbox.h"
#include "store/published.h"
#include "store_rig.h"

static const unsigned CHECKS = 1u << OUTBOX_CHECKS;

static void put_for(const struct outbox_row *row, const char *head, const char *name, int64_t id, bool is_completed)
{
	struct put_check p = {.outbox_id = row->id,
	    .epoch = row->epoch,
	    .repository = "PyTorch/pytorch",
	    .head_sha = head,
	    .name = name,
	    .accelerator = "npu",
	    .check_id = id,
	    .job_id = 3,
	    .now_ms = T0,
	    .n_annotations = 4,
	    .is_completed = is_completed};

	memset(p.digest, (int)id, sizeof(p.digest));
	DO_OK(store_put_check, &p);
}

/* For a row that this node sends. */
static void put(const char *head, const char *name, int64_t id, bool is_completed)
{
	struct claim_outbox c = rig_claim(REQUESTS, T0 + DAY);

	assert_true(c.n > 0);
	put_for(&c.rows[0], head, name, id, is_completed);
	for (size_t i = 0; i < c.n; i++)
		rig_done(&c.rows[i], OUTBOX_NOT_YET, T0);
	claim_outbox_release(&c);
}

/* "name id[ completed][ older]; …" of a PR. */
static char *list_of(int64_t number)
{
	struct list_checks l = {.repository = UPSTREAM, .number = number};
	struct buf text = BUF_INIT(4096);

	ASK_OK(store_list_checks, &l);
	for (size_t i = 0; i < l.n; i++)
		buf_appendf(&text, "%s%s %lld%s%s", i ? "; " : "", l.list[i].name, (long long)l.list[i].check_id,
		    l.list[i].is_completed ? " completed" : "", l.list[i].is_of_head ? "" : " older");
	list_checks_release(&l);
	return text.data ? buf_detach(&text) : xstrdup("");
}

#define ASSERT_LIST(number, expected)                                                                                  \
	do {                                                                                                           \
		char *got_ = list_of(number);                                                                          \
		assert_string_equal(got_, expected);                                                                   \
		free(got_);                                                                                            \
	} while (0)

/* After a crash during the write, or without an answer, the content on GitHub is unknown. */
static void a_check_run_that_is_being_overwritten_is_uncertain(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct list_checks l = {.repository = UPSTREAM, .number = 1};
	struct doubt_check doubt = {.repository = "PyTorch/pytorch", .head_sha = HEAD_A, .name = "a"};
	static const uint8_t nothing[SHA256_BYTES];

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	put(HEAD_A, "a", 11, true);
	put(HEAD_A, "b", 12, true);
	DO_OK(store_doubt_check, &doubt);
	ASK_OK(store_list_checks, &l);
	assert_int_equal(l.n, 2);
	assert_memory_equal(l.list[0].digest, nothing, SHA256_BYTES);
	assert_int_equal(l.list[0].check_id, 11);
	assert_int_equal(l.list[0].n_annotations, 4);
	assert_true(l.list[0].is_completed);
	assert_int_equal(l.list[1].digest[31], 12);
	list_checks_release(&l);
	put(HEAD_A, "a", 11, true);
	ASK_OK(store_list_checks, &l);
	assert_int_equal(l.list[0].digest[31], 11);
	list_checks_release(&l);
}

/* Its old sender records late, as after a time in which it was cut off from the database. */
static void the_record_of_an_earlier_sender_changes_nothing(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct list_checks l = {.repository = UPSTREAM, .number = 1};
	struct claim_outbox old, new;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	old = rig_claim(REQUESTS, T0 + 1000);
	assert_int_equal(old.n, 1);
	rig_reopen();
	put_for(&old.rows[0], HEAD_A, "a", 10, true);
	ASSERT_LIST(1, "");
	new = rig_claim(REQUESTS, T0 + DAY);
	assert_int_equal(new.n, 1);
	put_for(&new.rows[0], HEAD_A, "a", 11, false);
	put_for(&old.rows[0], HEAD_A, "a", 10, true);
	ASK_OK(store_list_checks, &l);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.list[0].digest[31], 11);
	assert_false(l.list[0].is_completed);
	list_checks_release(&l);
	claim_outbox_release(&old);
	claim_outbox_release(&new);
}

static void the_list_has_this_head_and_open_ones_of_older_heads(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct list_checks l = {.repository = UPSTREAM, .number = 1};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	put(HEAD_A, "a", 11, false);
	put(HEAD_A, "b", 12, true);
	put(HEAD_C, "c", 13, false);
	ASSERT_LIST(1, "a 11; b 12 completed");
	ASK_OK(store_list_checks, &l);
	assert_int_equal(l.list[0].n_annotations, 4);
	assert_int_equal(l.list[0].job_id, 3);
	assert_int_equal(l.list[0].digest[31], 11);
	assert_string_equal(l.list[0].accelerator, "npu");
	assert_string_equal(l.list[0].head_sha, HEAD_A);
	assert_int_equal(l.named_number, 1);
	list_checks_release(&l);

	rig_apply(&(struct rig_plan){.kind = PLAN_START,
	    .head = HEAD_B,
	    .before = HEAD_A,
	    .event_ms = T0 + 2000,
	    .action = "synchronize",
	    .wants = wants,
	    .n_wants = 1});
	ASSERT_LIST(1, "a 11 older");
	put(HEAD_B, "a", 21, false);
	ASSERT_LIST(1, "a 11 older; a 21");
	put(HEAD_A, "a", 11, true);
	put(HEAD_B, "a", 22, true);
	ASSERT_LIST(1, "a 22 completed");
	ASSERT_LIST(2, "");
}

static void prs_with_one_head_share_them(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct list_checks l = {.repository = UPSTREAM, .number = 2};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	rig_apply(&(struct rig_plan){.kind = PLAN_START, .number = 2, .head = HEAD_A, .event_ms = T0 + 2000});
	put(HEAD_A, "a", 11, false);
	ASSERT_LIST(1, "a 11");
	ASSERT_LIST(2, "a 11");
	ASK_OK(store_list_checks, &l);
	assert_int_equal(l.named_number, 1);
	list_checks_release(&l);
	rig_close_pull(1, HEAD_A, 3);
	ASK_OK(store_list_checks, &l);
	assert_int_equal(l.named_number, 2);
	list_checks_release(&l);
}

/* A request that comes while the row is being written is not lost; a crash makes it uncertain. */
static void check_runs_are_requested_together_with_the_comment(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct outbox_done done = {.result = OUTBOX_DEAD, .now_ms = T0 + DAY, .error = "403"};
	struct claim_outbox c;

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	c = rig_claim(CHECKS, T0 + DAY);
	assert_int_equal(c.n, 0); /* no report yet: there is nothing to show */
	c = rig_claim(REQUESTS, T0 + DAY);
	assert_int_equal(c.n, 1);
	rig_done(&c.rows[0], OUTBOX_DEAD, 0);
	claim_outbox_release(&c);
	c = rig_claim(CHECKS, T0 + DAY);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.rows[0].number, 1);
	assert_string_equal(c.rows[0].target, UPSTREAM);
	done.id = c.rows[0].id;
	done.generation = c.rows[0].generation;
	claim_outbox_release(&c);

	rig_reopen();
	c = rig_claim(CHECKS, T0 + DAY);
	assert_int_equal(c.n, 1);
	assert_true(c.rows[0].is_uncertain);
	done.epoch = c.rows[0].epoch;
	claim_outbox_release(&c);
	DO_OK(store_outbox_done, &done);
	c = rig_claim(CHECKS, T0 + 2 * DAY);
	assert_int_equal(c.n, 0);
	claim_outbox_release(&c);
	rig_close_pull(1, HEAD_A, 6); /* the next request revives a dead row */
	c = rig_claim(CHECKS, T0 + 2 * DAY);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.rows[0].n_attempts, 0);
	claim_outbox_release(&c);
}

static void check_runs_are_deleted_with_their_change(void **state)
{
	struct apply_retention r = {.results_before_ms = T0 + 400 * DAY};
	struct list_checks l = {.repository = UPSTREAM, .number = 1};
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};

	(void)state;
	rig_start("opened", HEAD_A, 1, wants, 1);
	put(HEAD_A, "a", 11, true);
	free(rig_send(T0 + 1000));
	rig_close_pull(1, HEAD_A, 2);
	free(rig_send(T0 + DAY));
	do
		DO_OK(store_apply_retention, &r);
	while (r.has_more);
	rig_start("opened", HEAD_A, 3, wants, 1);
	ASK_OK(store_list_checks, &l);
	assert_int_equal(l.n, 0);
	list_checks_release(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		a_check_run_that_is_being_overwritten_is_uncertain, rig_setup, rig_teardown),
	    cmocka_unit_test_setup_teardown(the_record_of_an_earlier_sender_changes_nothing, rig_setup, rig_teardown),
	    cmocka_unit_test_setup_teardown(
		the_list_has_this_head_and_open_ones_of_older_heads, rig_setup, rig_teardown),
	    cmocka_unit_test_setup_teardown(prs_with_one_head_share_them, rig_setup, rig_teardown),
	    cmocka_unit_test_setup_teardown(
		check_runs_are_requested_together_with_the_comment, rig_setup, rig_teardown),
	    cmocka_unit_test_setup_teardown(check_runs_are_deleted_with_their_change, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
