/* Which repository a name stands for (finding 15): compared, recorded, refused, forgotten. */
#include "store_rig.h"

#include "store/credentials.h"

#define GITHUB "https://token.actions.githubusercontent.com"

static struct check_identity check_of(const char *repository, struct repository_ids token, struct repository_ids pinned)
{
	struct check_identity c = {
	    .issuer = GITHUB, .repository = repository, .token = token, .pinned = pinned, .now_ms = T0};

	DO_OK(store_check_identity, &c);
	return c;
}

#define IDS(...)                                ((struct repository_ids){__VA_ARGS__})
#define CHECK(repository, id, owner)            check_of(repository, IDS(id, owner), IDS(0, 0)).outcome
#define CHECK_PINNED(repository, token, pinned) check_of(repository, token, pinned).outcome

static struct list_identities listed(bool only_refused)
{
	struct list_identities l = {.only_refused = only_refused};

	ASK_OK(store_list_identities, &l);
	return l;
}

static void the_first_token_is_recorded_for_good(void **state)
{
	struct check_identity c;
	struct list_identities l;

	(void)state;
	assert_int_equal(CHECK("Ascend/pytorch", 74, 65), IDENTITY_RECORDED);
	rig_reopen();
	assert_int_equal(CHECK("ascend/PyTorch", 74, 65), IDENTITY_ACCEPTED);
	assert_int_equal(CHECK("Ascend/pytorch", 99, 65), IDENTITY_NOT_AS_RECORDED);
	assert_int_equal(CHECK("Ascend/pytorch", 74, 66), IDENTITY_NOT_AS_RECORDED);
	c = check_of("Ascend/pytorch", IDS(99, 66), IDS(0, 0));
	assert_int_equal(c.recorded.repository_id, 74);
	assert_int_equal(c.recorded.owner_id, 65);
	l = listed(true);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.list[0].repository, "Ascend/pytorch");
	assert_string_equal(l.list[0].issuer, GITHUB);
	assert_int_equal(l.list[0].recorded.repository_id, 74);
	assert_int_equal(l.list[0].recorded_ms, T0);
	assert_int_equal(l.list[0].refused.repository_id, 99);
	assert_int_equal(l.list[0].refused.owner_id, 66);
	assert_int_equal(l.list[0].refused_ms, T0);
	list_identities_release(&l);
	/* the right one again */
	assert_int_equal(CHECK("Ascend/pytorch", 74, 65), IDENTITY_ACCEPTED);
	l = listed(true);
	assert_int_equal(l.n, 0);
	list_identities_release(&l);
}

static void a_renamed_repository_is_another_name(void **state)
{
	(void)state;
	assert_int_equal(CHECK("Ascend/pytorch", 74, 65), IDENTITY_RECORDED);
	assert_int_equal(CHECK("Ascend/pytorch-npu", 74, 65), IDENTITY_RECORDED);
	assert_int_equal(CHECK("Ascend/pytorch", 74, 65), IDENTITY_ACCEPTED);
}

static void issuers_are_kept_apart(void **state)
{
	struct check_identity c = {
	    .issuer = "https://other.example", .repository = "a/b", .token = {1, 2}, .now_ms = T0};

	(void)state;
	assert_int_equal(CHECK("a/b", 74, 65), IDENTITY_RECORDED);
	DO_OK(store_check_identity, &c);
	assert_int_equal(c.outcome, IDENTITY_RECORDED);
	assert_int_equal(CHECK("a/b", 74, 65), IDENTITY_ACCEPTED);
}

static void a_token_without_ids_is_accepted_only_before_the_first_record(void **state)
{
	struct list_identities l;

	(void)state;
	assert_int_equal(CHECK("a/b", 0, 0), IDENTITY_ACCEPTED);
	assert_int_equal(CHECK("a/b", 74, 0), IDENTITY_ACCEPTED);
	l = listed(false);
	assert_int_equal(l.n, 0);
	list_identities_release(&l);
	assert_int_equal(CHECK_PINNED("a/b", IDS(0, 65), IDS(74, 0)), IDENTITY_NOT_AS_PINNED);
	assert_int_equal(CHECK("a/b", 74, 65), IDENTITY_RECORDED);
	assert_int_equal(CHECK("a/b", 0, 0), IDENTITY_NOT_AS_RECORDED);
	assert_int_equal(CHECK("a/b", 74, 0), IDENTITY_NOT_AS_RECORDED);
	assert_int_equal(CHECK("a/b", 0, 65), IDENTITY_NOT_AS_RECORDED);
}

static void a_pin_and_the_record_must_both_fit(void **state)
{
	struct list_identities l;

	(void)state;
	assert_int_equal(CHECK_PINNED("a/b", IDS(99, 65), IDS(74, 65)), IDENTITY_NOT_AS_PINNED);
	l = listed(false);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.list[0].recorded.repository_id, 0);
	assert_int_equal(l.list[0].recorded_ms, 0);
	assert_int_equal(l.list[0].refused.repository_id, 99);
	list_identities_release(&l);
	assert_int_equal(CHECK_PINNED("a/b", IDS(74, 65), IDS(74, 0)), IDENTITY_RECORDED);
	assert_int_equal(CHECK_PINNED("a/b", IDS(74, 65), IDS(0, 65)), IDENTITY_ACCEPTED);
	assert_int_equal(CHECK_PINNED("a/b", IDS(74, 65), IDS(0, 66)), IDENTITY_NOT_AS_PINNED);
	/* a changed pin does not change the record; only the operator does */
	assert_int_equal(CHECK_PINNED("a/b", IDS(99, 65), IDS(99, 65)), IDENTITY_NOT_AS_RECORDED);
}

static void a_forgotten_name_is_recorded_again(void **state)
{
	struct forget_identity f = {.repository = "A/B"};

	(void)state;
	assert_int_equal(DO(store_forget_identity, &f), ERR_NOT_FOUND);
	assert_int_equal(CHECK("a/b", 74, 65), IDENTITY_RECORDED);
	assert_int_equal(CHECK("a/b", 99, 65), IDENTITY_NOT_AS_RECORDED);
	DO_OK(store_forget_identity, &f);
	assert_int_equal(CHECK("a/b", 99, 65), IDENTITY_RECORDED);
	assert_int_equal(CHECK("a/b", 74, 65), IDENTITY_NOT_AS_RECORDED);
}

static struct race {
	struct check_identity check;
	bool is_done;
} racers[2];
static bool are_done;

static void on_raced(struct store_op *op)
{
	struct race *r = CONTAINER_OF(op, struct race, check.op);

	assert_int_equal(op->err, 0);
	r->is_done = true;
	are_done = racers[0].is_done && racers[1].is_done;
}

static void one_of_two_first_tokens_wins(void **state)
{
	int n_recorded = 0;

	(void)state;
	are_done = false;
	for (int i = 0; i < 2; i++) {
		racers[i] = (struct race){.check = {.op.done = on_raced,
					      .issuer = GITHUB,
					      .repository = "a/b",
					      .token = {74 + i, 65},
					      .now_ms = T0}};
		assert_int_equal(store_check_identity(rig_store, &racers[i].check), 0);
	}
	loop_run_until(rig_loop, &are_done);
	for (int i = 0; i < 2; i++)
		n_recorded += racers[i].check.outcome == IDENTITY_RECORDED;
	assert_int_equal(n_recorded, 1);
	assert_int_equal(
	    racers[0].check.outcome + racers[1].check.outcome, IDENTITY_RECORDED + IDENTITY_NOT_AS_RECORDED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(the_first_token_is_recorded_for_good),
	    TEST(a_renamed_repository_is_another_name),
	    TEST(issuers_are_kept_apart),
	    TEST(a_token_without_ids_is_accepted_only_before_the_first_record),
	    TEST(a_pin_and_the_record_must_both_fit),
	    TEST(a_forgotten_name_is_recorded_again),
	    TEST(one_of_two_first_tokens_wins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
