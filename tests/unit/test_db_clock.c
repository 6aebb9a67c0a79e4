/* The database's clock, which all nodes follow, and its jumps. */
#include "cluster_rig.h"

static bool clock_is_an_hour_ahead(void) { return clock_wall_ms() - (int64_t)time(NULL) * 1000 > 3590 * 1000; }

/* After each turn a round of the first node has ended, which may have begun before, and a beat. */
static void look_and_beat(int n)
{
	for (int i = 0; i < n; i++) {
		seats_ring(cluster.at[0].store->seats);
		assert_int_equal(do_nothing(OP_INDEPENDENT) + do_nothing(OP_DECIDES), 0);
	}
}

static bool second_sees_both(void) { return store_n_nodes(cluster.at[1].store) == 2; }

static void the_clock_follows_the_servers(void **state)
{
	(void)state;
	ONLY_ON_SERVER();
	server_ahead_ms = 3600 * 1000;
	open_node(0, "north");
	assert_true(clock_is_an_hour_ahead());
	wait_for(first_has_all);
	server_ahead_ms = 2 * 3600 * 1000;
	look_and_beat(2); /* else a node that begins does not see that this one lives */
	assert_true(clock_wall_ms() - (int64_t)time(NULL) * 1000 > 7190 * 1000);
	open_node(1, "south");
	wait_for(second_sees_both);
	assert_true(clock_wall_ms() - (int64_t)time(NULL) * 1000 > 7190 * 1000);
	assert_true(first_has_all());
}

/* Both nodes notice it, and both may have the seat when they do. */
static void a_jump_of_the_servers_clock_is_applied_once(void **state)
{
	struct shift_clock first = {.delta_ms = HOUR}, second;
	struct error e = {0};
	struct db *d;

	(void)state;
	ONLY_ON_SERVER();
	open_node(0, "north");
	wait_for(first_has_all);
	assert_int_equal(db_open(server_database(), DB_WRITER, &d, &e), 0);
	db_exec(db_txn(d), "INSERT INTO attribution_due (change_id, next_ms, since_ms, n_tries, generation) VALUES (1, "
			   "1000, 1000, 0, 1)");
	assert_int_equal(db_status(d), 0);
	first.generation = store_clock_generation(cluster.at[0].store);
	assert_int_equal(first.generation, 1);
	first.epoch = store_clock_epoch(cluster.at[0].store);
	second = first;
	rig_store = cluster.at[0].store;
	DO_OK(store_shift_clock, &first);
	DO_OK(store_shift_clock, &second);
	assert_int_equal(first.next_generation, 2);
	assert_int_equal(second.next_generation, 2);
	rig_store = NULL;
	assert_int_equal(db_int(d, 0, "SELECT next_ms FROM attribution_due"), 1000 + HOUR);
	db_close(d);
	open_node(1, "south");
	wait_for(all_are_in_place);
	assert_int_equal(store_clock_generation(cluster.at[1].store), 2); /* it would not apply the same jump again */
}

static struct {
	struct db *d; /* of the test itself */
	char *holders;
	int n_jumps, n_moves, n_looks[2];
	int64_t ahead_ms;
} jump;

static char *holders(struct db *d)
{
	return db_text(d, "SELECT string_agg(name || ' ' || epoch, ', ' ORDER BY name) FROM seat");
}

static void follow_jump(struct txn *d) { nodes_follow_clock(d, HOUR); }

/* Each round calls it, with the time that it has measured, and so does each submit. */
static void on_time_known(void *owner)
{
	int64_t ahead_ms = clock_wall_ms() - clock_mono_ms();
	struct error e = {0};
	char *now;

	jump.n_looks[(struct node_store *)owner - cluster.at]++;
	if (ahead_ms - jump.ahead_ms > HOUR / 2) { /* the others did not beat since then */
		now = holders(jump.d);
		assert_string_equal(now, jump.holders);
		free(now);
		assert_int_equal(db_transaction(jump.d, follow_jump, &e), 0);
		jump.n_jumps++;
		jump.ahead_ms = ahead_ms; /* a node that asked before the jump may hear the old time later */
	}
	look_again();
}

static bool both_look_often(void) { return jump.n_looks[0] > 8 && jump.n_looks[1] > 8; }

static void a_jump_takes_no_seat_from_a_node_that_lives(void **state)
{
	struct error e = {0};
	char *now;

	(void)state;
	ONLY_ON_SERVER();
	memset(&jump, 0, sizeof(jump));
	assert_int_equal(db_open(server_database(), DB_WRITER, &jump.d, &e), 0);
	open_two_nodes();
	jump.holders = holders(jump.d);
	jump.ahead_ms = clock_wall_ms() - clock_mono_ms();
	for (int i = 0; i < 2; i++)
		store_before_submit(cluster.at[i].store, on_time_known, &cluster.at[i]);
	jump.n_moves = n_seat_moves;
	server_ahead_ms = HOUR;
	/* one has beaten since then */
	db_exec(db_txn(jump.d), "UPDATE node SET seen_ms = seen_ms + ?1 WHERE name = 'north'", V_INT(HOUR));
	assert_int_equal(db_status(jump.d), 0);
	wait_for(both_look_often);
	now = holders(jump.d);
	assert_string_equal(now, jump.holders);
	free(now);
	free(jump.holders);
	assert_int_equal(jump.n_jumps, 1);
	assert_int_equal(jump.n_moves, n_seat_moves);
	wait_for(all_are_in_place);
	wait_for(two_nodes_live); /* the first may have looked before the second beat again */
	for (int i = 0; i < 2; i++)
		store_before_submit(cluster.at[i].store, NULL, NULL);
	db_close(jump.d);
}

/* After a failover the listener connects again and rings, so further rounds follow before the stored times have moved. */
static void no_seat_moves_soon_after_a_jump(void **state)
{
	struct error e = {0};
	struct db *d;
	int64_t now_ms;

	(void)state;
	ONLY_ON_SERVER();
	assert_int_equal(db_open(server_database(), DB_WRITER, &d, &e), 0);
	now_ms = real_now_ms(db_view(d));
	put_other_node(d, now_ms, now_ms + SEAT_LEASE_MS);
	open_node(0, "north");
	wait_for(two_nodes_live);
	server_ahead_ms = HOUR;
	look_and_beat(3);
	assert_true(clock_is_an_hour_ahead());
	assert_int_equal(db_int(d, 0, "SELECT COUNT(*) FROM seat WHERE epoch = 1"), N_SEATS);
	assert_int_equal(store_n_nodes(cluster.at[0].store), 2);
	db_close(d);
}

/* The others' rows look as if they had ended an hour ago. */
static void a_node_that_starts_after_a_jump_takes_no_seat_from_those_that_live(void **state)
{
	struct error e = {0};
	struct db *d;
	int64_t now_ms;

	(void)state;
	ONLY_ON_SERVER();
	assert_int_equal(db_open(server_database(), DB_WRITER, &d, &e), 0);
	now_ms = real_now_ms(db_view(d));
	put_other_node(d, now_ms, now_ms + SEAT_LEASE_MS);
	server_ahead_ms = HOUR; /* and the other node has not noticed it yet */
	open_node(0, "north");
	look_and_beat(3);
	assert_true(clock_is_an_hour_ahead());
	assert_int_equal(db_int(d, 0, "SELECT COUNT(*) FROM seat WHERE epoch = 1"), N_SEATS);
	db_close(d);
}

static int n_looks_after_jump;
static struct shift_clock fenced_shift;

static int64_t generation_in(struct db *d) { return setting_int(db_view(d), CLOCK_GENERATION, 1); }

static void on_look_of_fenced(void *owner)
{
	(void)owner;
	if (clock_is_an_hour_ahead() && n_looks_after_jump++ == 0) {
		for (int s = 0; s < N_SEATS; s++)
			assert_false(store_has_seat(fenced, (enum seat)s));
		fenced_shift.generation = store_clock_generation(fenced);
		fenced_shift.epoch = store_clock_epoch(fenced);
	}
	look_again();
}

static bool fenced_knows_of_the_jump(void) { return n_looks_after_jump > 0; }

/* A machine that stood still: the node was given up, registers again, and then finds that the database is ahead. */
static void a_fenced_node_believes_in_nothing_of_its_old_epoch(void **state)
{
	struct error e = {0};
	struct db *d;

	(void)state;
	ONLY_ON_SERVER();
	assert_int_equal(db_open(server_database(), DB_WRITER, &d, &e), 0);
	open_node(0, "north");
	wait_for(first_has_all);
	n_looks_after_jump = 0;
	fenced_epoch = store_epoch(cluster.at[0].store);
	fenced = cluster.at[0].store;
	server_ahead_ms = HOUR;
	store_before_submit(fenced, on_look_of_fenced, NULL);
	server_script(server_database(), "UPDATE node SET gone_ms = seen_ms");
	assert_int_equal(do_nothing(OP_DECIDES), 0);
	assert_true(store_epoch(fenced) > fenced_epoch);
	wait_for(fenced_knows_of_the_jump);
	store_before_submit(fenced, NULL, NULL);
	assert_int_equal(fenced_shift.epoch, fenced_epoch);
	fenced_shift.delta_ms = HOUR;
	rig_store = fenced;
	DO_OK(store_shift_clock, &fenced_shift);
	rig_store = NULL;
	assert_int_equal(generation_in(d), fenced_shift.generation);
	assert_int_equal(fenced_shift.next_generation, fenced_shift.generation);
	db_close(d);
}

static struct shift_clock shift_by_an_hour(int i)
{
	struct shift_clock shift = {.delta_ms = HOUR,
	    .now_ms = clock_wall_ms(),
	    .generation = store_clock_generation(cluster.at[i].store),
	    .epoch = store_clock_epoch(cluster.at[i].store)};

	rig_store = cluster.at[i].store;
	DO_OK(store_shift_clock, &shift);
	rig_store = NULL;
	return shift;
}

/* A node whose machine stood still for a moment was not given up. */
static void a_jump_is_of_the_node_with_the_seat_if_there_is_one(void **state)
{
	struct error e = {0};
	struct db *d;
	int holder;

	(void)state;
	ONLY_ON_SERVER();
	assert_int_equal(db_open(server_database(), DB_WRITER, &d, &e), 0);
	open_two_nodes();
	holder = cluster.at[1].has[SEAT_DEADLINES];
	assert_int_equal(shift_by_an_hour(!holder).next_generation, 1);
	assert_int_equal(generation_in(d), 1);
	assert_int_equal(shift_by_an_hour(holder).next_generation, 2);
	assert_int_equal(generation_in(d), 2);
	db_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CLUSTER_TEST(the_clock_follows_the_servers),
	    CLUSTER_TEST(a_jump_of_the_servers_clock_is_applied_once),
	    CLUSTER_TEST(a_jump_takes_no_seat_from_a_node_that_lives),
	    CLUSTER_TEST(no_seat_moves_soon_after_a_jump),
	    CLUSTER_TEST(a_node_that_starts_after_a_jump_takes_no_seat_from_those_that_live),
	    CLUSTER_TEST(a_fenced_node_believes_in_nothing_of_its_old_epoch),
	    CLUSTER_TEST(a_jump_is_of_the_node_with_the_seat_if_there_is_one),
	};

	return cmocka_run_group_tests_name("db_clock", tests, NULL, NULL);
}
