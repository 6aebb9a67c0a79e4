/* Which node has which seat: the decision, and on PostgreSQL several stores. */
#include "cluster_rig.h"

static struct seat_nodes nodes_of(struct seat_node *at, size_t n) { return (struct seat_nodes){at, n}; }

static struct seat_node node_named(char *name, int64_t epoch)
{
	return (struct seat_node){.epoch = epoch, .name = name, .seen_ms = NOW - 3000};
}

/* ---- the decision ---- */

static void seats_spread_and_only_those_of_a_lost_node_move(void **state)
{
	static char names[4][8] = {"north", "east", "south", "west"};
	struct seat_node at[4];
	int n_of[4] = {0};

	(void)state;
	for (int i = 0; i < 4; i++)
		at[i] = node_named(names[i], 7 + i);
	/* more names than there are seats, so that the spread shows */
	for (int i = 0; i < 400; i++) {
		char *seat = xasprintf("seat %d", i);
		struct seat_nodes all = nodes_of(at, 4), fewer = nodes_of(at, 3);
		const struct seat_node *before = seat_target(seat, &all, NOW), *after = seat_target(seat, &fewer, NOW);

		n_of[before - at]++;
		if (before != &at[3])
			assert_ptr_equal(before, after);
		free(seat);
	}
	for (int i = 0; i < 4; i++)
		assert_in_range(n_of[i], 60, 140);
}

static void a_silent_node_has_no_seat_and_the_later_of_two_with_one_name_has_all(void **state)
{
	static char one[] = "one", two[] = "two";
	struct seat_node at[] = {node_named(one, 1), node_named(two, 2), node_named(two, 3)};
	struct seat_nodes all = nodes_of(at, 3);

	(void)state;
	for (int i = 0; i < N_SEATS; i++)
		assert_int_not_equal(seat_target(seat_name((enum seat)i), &all, NOW)->epoch, 2);
	at[0].seen_ms = NOW - SEAT_NODE_LIVES_MS;
	at[2].seen_ms = NOW + SEAT_NODE_LIVES_MS; /* by another clock */
	for (int i = 0; i < N_SEATS; i++)
		assert_int_equal(seat_target(seat_name((enum seat)i), &all, NOW)->epoch, 2);
	at[1].seen_ms = 0;
	assert_null(seat_target("planner", &all, NOW));
}

static void in_an_upgrade_the_nodes_of_the_newest_release_have_all_seats(void **state)
{
	static char names[3][8] = {"north", "east", "south"};
	struct seat_node at[3];
	struct seat_nodes all = nodes_of(at, 3), two = nodes_of(at, 2);
	int n_of[3] = {0};

	(void)state;
	for (int i = 0; i < 3; i++) {
		at[i] = node_named(names[i], 7 + i);
		at[i].schema_version = 11;
	}
	at[1].schema_version = 12;
	for (int i = 0; i < N_SEATS; i++)
		assert_ptr_equal(seat_target(seat_name((enum seat)i), &all, NOW), &at[1]);
	at[0].schema_version = 12; /* the second one is upgraded, and both share them as if the old one were gone */
	for (int i = 0; i < N_SEATS; i++) {
		const struct seat_node *target = seat_target(seat_name((enum seat)i), &all, NOW);

		assert_ptr_equal(target, seat_target(seat_name((enum seat)i), &two, NOW));
		n_of[target - at]++;
	}
	assert_true(n_of[0] > 0 && n_of[1] > 0);
	at[0].seen_ms = at[1].seen_ms = NOW - SEAT_NODE_LIVES_MS; /* both were killed */
	assert_ptr_equal(seat_target("planner", &all, NOW), &at[2]);
}

static void the_state_of_a_seat_decides_the_step(void **state)
{
	static char mine[] = "mine", other[] = "other";
	struct seat_node at[] = {node_named(mine, 5), node_named(other, 4)};
	struct seat_nodes both = nodes_of(at, 2), alone = nodes_of(at, 1);
	const char *here = NULL, *there = NULL;
	int64_t held = NOW + 5000;

	(void)state;
	for (int i = 0; i < N_SEATS; i++) {
		const char *name = seat_name((enum seat)i);

		*(seat_target(name, &both, NOW)->epoch == 5 ? &here : &there) = name;
	}
	assert_non_null(here);
	assert_non_null(there);
	const struct {
		const char *seat;
		const struct seat_nodes *nodes;
		int64_t holder, until_ms;
		bool is_idle;
		enum seat_step step;
		int64_t unchanged_ms;
	} cases[] = {
	    {here, &both, 0, 0, false, SEAT_TAKE, 0}, /* no row */
	    {there, &both, 0, 0, false, SEAT_LEAVE, 0},
	    {here, &both, 5, held, false, SEAT_RENEW, 0},
	    {here, &both, 5, NOW - 1, false, SEAT_RENEW, 0}, /* late, and nobody took it */
	    {there, &both, 5, held, false, SEAT_DRAIN, 0},
	    {there, &both, 5, held, true, SEAT_RELEASE, 0},
	    {there, &alone, 5, held, true, SEAT_RENEW, 0}, /* the other one has ended */
	    {here, &both, 4, held, true, SEAT_LEAVE, SEAT_LEASE_MS - 1},
	    {here, &both, 4, held, true, SEAT_TAKE, SEAT_LEASE_MS}, /* over, whatever the clock says */
	    {here, &both, 4, NOW - 1, true, SEAT_LEAVE, 0},         /* of a clock that was put forward */
	    {here, &both, 3, held, true, SEAT_LEAVE, 0},            /* a node that was given up may still run */
	    {here, &both, 5, 0, true, SEAT_TAKE, 0},                /* released, and it belongs here again */
	    {there, &both, 4, 0, true, SEAT_LEAVE, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct seat_question q = {.seat = cases[i].seat,
		    .me = 5,
		    .holder = cases[i].holder,
		    .until_ms = cases[i].until_ms,
		    .unchanged_ms = cases[i].unchanged_ms,
		    .is_idle = cases[i].is_idle,
		    .nodes = cases[i].nodes,
		    .now_ms = NOW};

		struct seat_question after_jump = q;

		if (seat_decide(&q) != cases[i].step)
			fail_msg("case %zu: %d", i, (int)seat_decide(&q));
		after_jump.has_jumped = true;
		assert_int_equal(
		    seat_decide(&after_jump), cases[i].holder == 5 && cases[i].until_ms ? SEAT_RENEW : SEAT_LEAVE);
	}
}

/* ---- one file: every seat from the beginning ---- */

static void a_single_daemon_has_every_seat(void **state)
{
	(void)state;
	if (server_database())
		skip();
	for (int i = 0; i < N_SEATS; i++)
		assert_true(store_has_seat(rig_store, (enum seat)i));
	assert_int_equal(store_n_nodes(rig_store), 1);
	assert_int_equal(store_clock_generation(rig_store), 0);
	rig_topics = 0;
	store_announce(rig_store, STORE_REGISTRY);
	assert_int_equal(rig_topics, STORE_REGISTRY);
}

static void the_first_value_of_a_shared_setting_counts(void **state)
{
	struct share_setting first = {.key = "k", .value = xstrdup("one")},
			     second = {.key = "k", .value = xstrdup("two")};

	(void)state;
	DO_OK(store_share_setting, &first);
	DO_OK(store_share_setting, &second);
	assert_string_equal(first.value, "one");
	assert_string_equal(second.value, "one");
	FREE_ALL(first.value, second.value);
}

/* ---- several stores ---- */

static void seats_follow_the_nodes_that_come_and_go(void **state)
{
	(void)state;
	ONLY_ON_SERVER();
	open_node(0, "north");
	wait_for(first_has_all);
	assert_int_equal(store_n_nodes(cluster.at[0].store), 1);
	open_node(1, "south");
	wait_for(all_are_in_place);
	assert_in_range(n_seats_of(0), 1, N_SEATS - 1);
	wait_for(two_nodes_live);
	open_node(2, "east");
	wait_for(all_are_in_place);
	wait_for(three_nodes_live);
	close_node(1);
	wait_for(all_are_in_place);
	close_node(2);
	wait_for(first_has_all);
}

static bool second_has_some(void) { return n_seats_of(1) > 0; }

static bool first_has_left_some(void) { return n_seats_of(0) < N_SEATS; }

static void a_seat_moves_when_its_work_has_ended(void **state)
{
	(void)state;
	ONLY_ON_SERVER();
	open_node(0, "north");
	wait_for(first_has_all);
	cluster.at[0].is_busy = true;
	open_node(1, "south");
	wait_for(first_has_left_some); /* it begins nothing more, */
	wait_for(two_nodes_live);
	assert_int_equal(n_seats_of(1), 0); /* and the other one waits */
	cluster.at[0].is_busy = false;
	wait_for(second_has_some);
	wait_for(all_are_in_place);
}

/* Of the only node. */
static int n_seats_shown(const struct view *d, int64_t now_ms)
{
	struct seat_nodes nodes;
	int n = 0;

	seat_nodes_read(d, now_ms, &nodes);
	assert_int_equal(nodes.n, 1);
	for (int s = 0; s < N_SEATS; s++)
		n += nodes.at[0].has_seat[s];
	seat_nodes_release(&nodes);
	return n;
}

/* A node cannot know when the others' seats were renewed before it looked. */
static void the_seats_of_a_silent_node_are_taken_after_their_time(void **state)
{
	struct error e = {0};
	struct db *d;
	int64_t begin_mono_ms = clock_mono_ms();

	(void)state;
	ONLY_ON_SERVER();
	assert_int_equal(db_open(server_database(), DB_WRITER, &d, &e), 0);
	int64_t now_ms = real_now_ms(db_view(d));
	put_other_node(d, now_ms - HOUR, now_ms + 2000);
	assert_int_equal(n_seats_shown(db_view(d), now_ms), N_SEATS);
	assert_int_equal(n_seats_shown(db_view(d), now_ms + 2000), 0);
	db_close(d);
	open_node(0, "north");
	wait_for(first_has_all);
	assert_true(clock_mono_ms() >= begin_mono_ms + SEAT_LEASE_MS);
}

static void a_seat_is_anothers_while_a_node_holds_it(void **state)
{
	struct error e = {0};
	struct db *d;

	(void)state;
	ONLY_ON_SERVER();
	assert_int_equal(db_open(server_database(), DB_WRITER, &d, &e), 0);
	assert_false(seat_is_anothers(db_view(d), SEAT_DEADLINES, 2, NOW));
	put_other_node(d, NOW, NOW + SEAT_LEASE_MS);
	assert_true(seat_is_anothers(db_view(d), SEAT_DEADLINES, 2, NOW));
	assert_false(seat_is_anothers(db_view(d), SEAT_DEADLINES, 1, NOW));
	assert_false(seat_is_anothers(db_view(d), SEAT_DEADLINES, 2, NOW + SEAT_LEASE_MS)); /* over, */
	assert_false(seat_is_anothers(db_view(d), SEAT_DEADLINES, 2, NOW - HOUR));          /* or of another clock */
	db_exec(db_txn(d), "UPDATE node SET gone_ms = seen_ms");
	assert_int_equal(db_status(d), 0);
	assert_false(seat_is_anothers(db_view(d), SEAT_DEADLINES, 2, NOW));
	db_close(d);
}

/* ---- another release ---- */

static bool no_seat_is_left(void) { return n_seats_of(0) == 0; }

/* As the migration of a newer release does it, whose tables this program cannot use. */
static void a_program_that_is_too_old_for_the_tables_stops_writing(void **state)
{
	struct error e = {0};
	struct store_stats stats;
	struct db *d;
	int64_t epoch;

	(void)state;
	ONLY_ON_SERVER();
	open_node(0, "north");
	wait_for(first_has_all);
	epoch = store_epoch(cluster.at[0].store);
	assert_int_equal(do_nothing(OP_DECIDES) + do_nothing(OP_INDEPENDENT), 0);
	server_script(server_database(), "UPDATE outpost_schema SET version = 99, readable_from = 99");
	assert_int_equal(db_open(server_database(), DB_WRITER, &d, &e), 0);
	nodes_give_up_older(db_txn(d), 11); /* this program's: it may stay */
	assert_int_equal(do_nothing(OP_DECIDES) + do_nothing(OP_INDEPENDENT), 0);
	nodes_give_up_older(db_txn(d), 99);
	assert_int_equal(db_status(d), 0);
	db_close(d);
	assert_int_equal(do_nothing(OP_INDEPENDENT), ERR_TOO_NEW);
	assert_int_equal(do_nothing(OP_DECIDES), ERR_TOO_NEW);
	store_stats(cluster.at[0].store, &stats);
	assert_false(stats.is_writable);
	assert_non_null(strstr(stats.why_not_writable, "run the newer outpostd"));
	wait_for(no_seat_is_left);
	/* its epoch is gone even if the tables can be used again */
	server_script(server_database(), "UPDATE outpost_schema SET version = 11, readable_from = 11");
	assert_int_equal(do_nothing(OP_INDEPENDENT), 0);
	assert_true(store_epoch(cluster.at[0].store) > epoch);
	wait_for(first_has_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(seats_spread_and_only_those_of_a_lost_node_move),
	    cmocka_unit_test(a_silent_node_has_no_seat_and_the_later_of_two_with_one_name_has_all),
	    cmocka_unit_test(in_an_upgrade_the_nodes_of_the_newest_release_have_all_seats),
	    cmocka_unit_test(the_state_of_a_seat_decides_the_step),
	    cmocka_unit_test_setup_teardown(a_single_daemon_has_every_seat, rig_setup, rig_teardown),
	    cmocka_unit_test_setup_teardown(the_first_value_of_a_shared_setting_counts, rig_setup, rig_teardown),
	    CLUSTER_TEST(seats_follow_the_nodes_that_come_and_go),
	    CLUSTER_TEST(a_seat_moves_when_its_work_has_ended),
	    CLUSTER_TEST(the_seats_of_a_silent_node_are_taken_after_their_time),
	    CLUSTER_TEST(a_seat_is_anothers_while_a_node_holds_it),
	    CLUSTER_TEST(a_program_that_is_too_old_for_the_tables_stops_writing),
	};

	return cmocka_run_group_tests_name("db_seats", tests, NULL, NULL);
}
