/* A dispatch without a report ends at its deadline. */
#include "db/db.h"
#include "dispatch_rig.h"

static void write_hasty(struct rig *r, const char *acknowledge)
{
	char *text = xasprintf("runners: [{name: ci, github: {repository: vendor/hasty}}]\n"
			       "deadlines: {acknowledge: %s, start: 3h, finish: 4h}\n",
	    acknowledge);

	rig_write_accelerator("hasty", text);
	free(text);
	rig_start_store(r);
}

static bool has_counted_expiry(struct rig *r) { return rig_counters(r).n_expired > 0; }

static void a_silent_dispatch_expires(void **state)
{
	struct rig *r = *state;
	int64_t began;

	write_hasty(r, "300ms");
	rig_start_dispatch(r);
	began = clock_mono_ms();
	rig_pull(r, "g-1", .action = "opened");
	rig_expect_states(r, "gh:sent hasty:expired hook:acknowledged picky:sent");
	assert_true(clock_mono_ms() - began >= 300);
	rig_wait_until(r, has_counted_expiry); /* the store is ahead of the count */
	assert_int_equal(rig_counters(r).n_expired, 1);
	assert_int_equal(rig_counters(r).n_clock_jumps, 0);
}

static int make_hasty_due(struct store_op *op, struct txn *d)
{
	(void)op;
	db_exec(d, "UPDATE dispatch SET next_due_ms = 1 WHERE accelerator = 'hasty'");
	return 0;
}

/* The deadline passes while only the store runs. */
static void a_deadline_that_passes_while_the_dispatcher_is_down_expires_the_dispatch(void **state)
{
	struct rig *r = *state;
	struct store_op op = {.run = make_hasty_due, .done = rig_op_on_done, .bytes = sizeof(op)};

	write_hasty(r, "2h");
	rig_start_dispatch(r);
	rig_pull(r, "g-1", .action = "opened");
	rig_expect_states(r, "gh:sent hasty:sent hook:acknowledged picky:sent");
	rig_stop(r);
	rig_start_store(r);
	rig_op_is_done = false;
	assert_int_equal(store_submit(r->store, &op), 0);
	loop_run_until(r->gh->loop, &rig_op_is_done);
	assert_int_equal(op.err, 0);
	rig_expect_states(r, "gh:sent hasty:sent hook:acknowledged picky:sent");
	rig_start_dispatch(r);
	rig_expect_states(r, "gh:sent hasty:expired hook:acknowledged picky:sent");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_set_up, rig_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_silent_dispatch_expires),
	    TEST(a_deadline_that_passes_while_the_dispatcher_is_down_expires_the_dispatch),
	};

	return cmocka_run_group_tests_name("dispatch_deadlines", tests, NULL, NULL);
}
