/* Which node has which seat: the decision, and on PostgreSQL several stores of one process that share a database. */
#include "db/nodes.h"
#include "db/notes.h"
#include "db/seats.h"
#include "db/settings.h"
#include "db/store_internal.h"
#include "replaces.h"
#include "store_rig.h"

enum { NOW = 1000000000 };

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

/* ---- the text of a note ---- */

static void a_note_comes_back(void **state)
{
	struct store_touched sent = {0}, got;
	char text[NOTE_MAX_BYTES], name[TOUCHED_NAME_BYTES];
	unsigned topics;

	(void)state;
	for (int i = 0; i < TOUCHED_MAX; i++) {
		touched_add_change(&sent, INT64_MAX - i);
		touched_add_job(&sent, INT64_MAX - 100 - i);
	}
	for (int i = 0; i < TOUCHED_NAMES_MAX; i++) {
		memset(name, 'a' + i, sizeof(name) - 1);
		name[sizeof(name) - 1] = '\0';
		touched_add_accelerator(&sent, name);
	}
	note_text("0123456789abcdef", STORE_CHANGES | STORE_TOKENS, &sent, text);
	assert_false(note_parse(text, "0123456789abcdef", &topics, &got));
	assert_true(note_parse(text, "another", &topics, &got));
	assert_int_equal(topics, STORE_CHANGES | STORE_TOKENS);
	assert_memory_equal(&got, &sent, sizeof(got));
	sent = (struct store_touched){.is_all = true};
	note_text("x", 0, &sent, text);
	assert_true(note_parse(text, "y", &topics, &got));
	assert_true(got.is_all && topics == 0);
}

static void a_note_that_is_not_understood_means_everything(void **state)
{
	static const char *const texts[] = {"", " ", "x", "x ", "x z", "x -1", "x 1ffffffff", "x 8 c", "x 8 c0",
	    "x 8 c-1", "x 8 jx", "x 8 a", "x 8 z1", "x 8  c1", "x 8 c99999999999999999999"};
	char *text = xmalloc(NOTE_MAX_BYTES * 2);
	struct store_touched got;
	unsigned topics;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_true(note_parse(texts[i], "y", &topics, &got));
		if (!got.is_all)
			fail_msg("'%s'", texts[i]);
	}
	memset(text, 'c', NOTE_MAX_BYTES * 2 - 1);
	text[NOTE_MAX_BYTES * 2 - 1] = '\0';
	assert_true(note_parse(text, "y", &topics, &got));
	assert_true(got.is_all && topics == ~0u);
	free(text);
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

/* ---- several stores on one server ---- */

enum { STORES_MAX = 3 };

struct node_store {
	const char *name;
	struct store *store;
	char dir[96];
	bool has[N_SEATS], is_busy; /* is_busy: its parts do not become idle */
	unsigned topics;
	int n_touched;
	struct store_touched touched;
};

static struct cluster {
	struct node_store at[STORES_MAX];
	bool (*is_reached)(void); /* wait_for() */
	bool is_enough;
} cluster;

REPLACES(view_now_ms);
REPLACES(db_turn);
REPLACES(db_listen);
extern __typeof__(view_now_ms) real_now_ms __asm__("__real_view_now_ms");
extern __typeof__(db_turn) real_turn __asm__("__real_db_turn");
extern __typeof__(db_listen) real_listen __asm__("__real_db_listen");

static _Atomic int64_t server_ahead_ms;
static _Atomic bool is_deaf; /* as behind a pooler: LISTEN succeeds, and nothing arrives */

static struct store *_Atomic fenced; /* the server's clock jumps when this one has a later epoch than that */
static _Atomic int64_t fenced_epoch;

static int64_t ahead_ms(void)
{
	struct store *s = fenced;

	return s && store_epoch(s) == fenced_epoch ? 0 : server_ahead_ms;
}

int64_t view_now_ms(const struct view *v) { return real_now_ms(v) + ahead_ms(); }

int64_t db_turn(struct db *d) { return real_turn(d) + ahead_ms(); }

int db_listen(struct db *d) { return is_deaf ? 0 : real_listen(d); }

static void look_again(void)
{
	if (cluster.is_reached && cluster.is_reached())
		cluster.is_enough = true;
}

static void wait_for(bool (*is_reached)(void))
{
	cluster.is_reached = is_reached;
	cluster.is_enough = is_reached();
	if (!cluster.is_enough)
		loop_run_until(rig_loop, &cluster.is_enough);
	cluster.is_reached = NULL;
}

static int n_seat_moves; /* of all nodes */

static void on_node_seat(enum seat seat, bool has_seat, void *owner)
{
	struct node_store *n = owner;

	assert_int_equal(store_has_seat(n->store, seat), has_seat);
	n->has[seat] = has_seat;
	n_seat_moves++;
	for (int i = 0; i < STORES_MAX && has_seat; i++) /* never two */
		assert_false(&cluster.at[i] != n && cluster.at[i].store && store_has_seat(cluster.at[i].store, seat));
	look_again();
}

static bool is_node_idle(enum seat seat, void *owner)
{
	struct node_store *n = owner;

	assert_false(store_has_seat(n->store, seat));
	return !n->is_busy;
}

static void on_node_topic(unsigned topics, void *owner)
{
	struct node_store *n = owner;

	n->topics |= topics;
	n->n_touched += !touched_is_empty(store_touched(n->store));
	touched_merge(&n->touched, store_touched(n->store));
	look_again();
}

static struct node_store *open_node(int i, const char *name)
{
	struct node_store *n = &cluster.at[i];
	struct error e = {0};

	*n = (struct node_store){.name = name};
	snprintf(n->dir, sizeof(n->dir), "%s/node%d", rig_dir, i);
	const struct store_options o = {
	    .state_dir = n->dir, .database = server_database(), .node = name, .has_others = true};
	if (store_open(rig_loop, &o, &n->store, &e))
		fail_msg("%s: %s", name, e.text);
	for (int s = 0; s < N_SEATS; s++) {
		assert_false(store_has_seat(n->store, (enum seat)s));
		store_add_part(n->store, &(struct seat_part){(enum seat)s, on_node_seat, is_node_idle, n});
	}
	store_subscribe(n->store, ~0u, on_node_topic, n);
	return n;
}

static void close_node(int i)
{
	struct node_store *n = &cluster.at[i];
	bool is_closed = false;

	store_close(n->store, rig_closed, &is_closed);
	loop_run_until(rig_loop, &is_closed);
	n->store = NULL;
	memset(n->has, 0, sizeof(n->has));
}

static int set_up_cluster(void **state)
{
	struct store_options o = {.state_dir = rig_dir, .database = server_database(), .has_others = true};
	struct error e = {0};
	bool is_closed = false;

	rig_setup_folder(state);
	cluster = (struct cluster){.at[0].name = NULL};
	server_ahead_ms = 0;
	fenced = NULL;
	is_deaf = false;
	if (!server_database())
		return 0;
	if (store_open(rig_loop, &o, &rig_store, &e)) /* creates the tables */
		fail_msg("%s", e.text);
	store_close(rig_store, rig_closed, &is_closed);
	loop_run_until(rig_loop, &is_closed);
	rig_store = NULL;
	server_empty();
	return 0;
}

static int tear_down_cluster(void **state)
{
	for (int i = 0; i < STORES_MAX; i++)
		if (cluster.at[i].store)
			close_node(i);
	return rig_teardown(state);
}

static int n_seats_of(int i)
{
	int n = 0;

	for (int s = 0; s < N_SEATS; s++)
		n += cluster.at[i].has[s];
	return n;
}

static bool first_has_all(void) { return n_seats_of(0) == N_SEATS; }

/* Each seat is where it belongs. */
static bool all_are_in_place(void)
{
	struct seat_node at[STORES_MAX];
	size_t n = 0;

	for (int i = 0; i < STORES_MAX; i++)
		if (cluster.at[i].store)
			at[n++] = (struct seat_node){.epoch = i, .name = (char *)cluster.at[i].name, .seen_ms = NOW};
	for (int s = 0; s < N_SEATS; s++)
		for (int i = 0; i < STORES_MAX; i++)
			if (cluster.at[i].store &&
			    cluster.at[i].has[s] !=
				(seat_target(seat_name((enum seat)s), &(struct seat_nodes){at, n}, NOW)->epoch == i))
				return false;
	return true;
}

#define ONLY_ON_SERVER()                                                                                               \
	do {                                                                                                           \
		if (!server_database())                                                                                \
			skip();                                                                                        \
	} while (0)

static bool two_nodes_live(void) { return store_n_nodes(cluster.at[0].store) == 2; }

static bool three_nodes_live(void) { return store_n_nodes(cluster.at[0].store) == 3; }

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

/* Of a node that was killed, whose rows stay, or is elsewhere: it has every seat. */
static void put_other_node(struct db *d, int64_t seen_ms, int64_t until_ms)
{
	db_exec(db_txn(d),
	    "INSERT INTO node (epoch, name, version, schema_version, started_ms, seen_ms) VALUES (1, 'other', '1', 1, "
	    "?1, ?1)",
	    V_INT(seen_ms));
	for (int s = 0; s < N_SEATS; s++)
		db_exec(db_txn(d), "INSERT INTO seat (name, epoch, until_ms) VALUES (?1, 1, ?2)",
		    V_TEXT(seat_name((enum seat)s)), V_INT(until_ms));
	assert_int_equal(db_status(d), 0);
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

/* ---- another release ---- */

static struct nothing {
	struct store_op op;
} nothing;

static int nothing_run(struct store_op *op, struct txn *d)
{
	(void)op;
	(void)d;
	return 0;
}

static int do_nothing(enum op_class class)
{
	nothing = (struct nothing){.op = {.run = nothing_run, .done = rig_op_done, .class = class}};
	rig_is_done = false;
	assert_int_equal(store_submit(cluster.at[0].store, &nothing.op), 0);
	loop_run_until(rig_loop, &rig_is_done);
	return nothing.op.err;
}

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

/* ---- notes ---- */

static struct put_change_note {
	struct store_op op;
	int64_t change_id;
} change_note;

static int put_change_note_run(struct store_op *op, struct txn *d)
{
	db_notify_change(d, CONTAINER_OF(op, struct put_change_note, op)->change_id);
	db_notify(d, STORE_TOKENS);
	return 0;
}
static STORE_OPERATION(put_change_note)

    static void touch_change(int i, int64_t change_id)
{
	change_note = (struct put_change_note){.op.done = rig_op_done, .change_id = change_id};
	rig_is_done = false;
	assert_int_equal(store_put_change_note(cluster.at[i].store, &change_note), 0);
	loop_run_until(rig_loop, &rig_is_done);
	assert_int_equal(change_note.op.err, 0);
}

static bool second_knows_change(void)
{
	const struct store_touched *t = &cluster.at[1].touched;

	return t->is_all || (t->n_changes && t->changes[t->n_changes - 1] == change_note.change_id);
}

static bool second_is_rung(void) { return cluster.at[1].touched.is_all; }

/* The listeners are connected. */
static void open_two_nodes(void)
{
	open_node(0, "north");
	open_node(1, "south");
	wait_for(all_are_in_place);
	wait_for(two_nodes_live);
	wait_for(second_is_rung);
	for (int i = 0; i < 2; i++) {
		cluster.at[i].touched = (struct store_touched){0};
		cluster.at[i].topics = 0;
		cluster.at[i].n_touched = 0;
	}
}

static void a_commit_rings_the_subscribers_of_another_node(void **state)
{
	(void)state;
	ONLY_ON_SERVER();
	open_two_nodes();
	touch_change(0, 4711);
	wait_for(second_knows_change);
	assert_false(cluster.at[1].touched.is_all);
	assert_int_equal(cluster.at[1].topics & (STORE_CHANGES | STORE_TOKENS), STORE_CHANGES | STORE_TOKENS);
	touch_change(1, 4712); /* and a node ignores its own note */
	touch_change(0, 4713);
	wait_for(second_knows_change);
	assert_int_equal(cluster.at[1].n_touched, 3);
}

static bool second_is_asked_to_fetch(void) { return cluster.at[1].topics & STORE_REGISTRY; }

static bool first_is_asked_to_fetch(void) { return cluster.at[0].topics & STORE_REGISTRY; }

static void an_announcement_rings_every_node(void **state)
{
	(void)state;
	ONLY_ON_SERVER();
	open_two_nodes();
	store_announce(cluster.at[0].store, STORE_REGISTRY);
	store_announce(cluster.at[0].store, STORE_DELIVERIES);
	store_announce(cluster.at[0].store, STORE_TOKENS);
	wait_for(second_is_asked_to_fetch);
	wait_for(first_is_asked_to_fetch);
}

static void a_lost_connection_rings_everything(void **state)
{
	struct error e = {0};
	struct db *d;

	(void)state;
	ONLY_ON_SERVER();
	open_two_nodes();
	assert_int_equal(db_open(server_database(), DB_WRITER, &d, &e), 0);
	assert_true(
	    db_int(d, 0,
		"SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity"
		" WHERE datname = current_database() AND query LIKE '%pg_notify%' AND pid <> pg_backend_pid()") > 0);
	db_close(d);
	wait_for(second_is_rung);
	cluster.at[1].touched = (struct store_touched){0};
	touch_change(0, 1);
	wait_for(second_knows_change);
}

static void without_notes_a_node_notices_the_batches_of_others(void **state)
{
	(void)state;
	ONLY_ON_SERVER();
	is_deaf = true;
	open_two_nodes();
	touch_change(0, 4711);
	wait_for(second_is_rung);
}

/* ---- time ---- */

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
	}
	jump.ahead_ms = ahead_ms;
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
	assert_true(all_are_in_place());
	assert_int_equal(store_n_nodes(cluster.at[0].store), 2);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(seats_spread_and_only_those_of_a_lost_node_move),
	    cmocka_unit_test(a_silent_node_has_no_seat_and_the_later_of_two_with_one_name_has_all),
	    cmocka_unit_test(in_an_upgrade_the_nodes_of_the_newest_release_have_all_seats),
	    cmocka_unit_test(the_state_of_a_seat_decides_the_step),
	    cmocka_unit_test(a_note_comes_back),
	    cmocka_unit_test(a_note_that_is_not_understood_means_everything),
	    cmocka_unit_test_setup_teardown(a_single_daemon_has_every_seat, rig_setup, rig_teardown),
	    cmocka_unit_test_setup_teardown(the_first_value_of_a_shared_setting_counts, rig_setup, rig_teardown),
#define CLUSTER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_cluster, tear_down_cluster)
	    CLUSTER_TEST(seats_follow_the_nodes_that_come_and_go),
	    CLUSTER_TEST(a_seat_moves_when_its_work_has_ended),
	    CLUSTER_TEST(the_seats_of_a_silent_node_are_taken_after_their_time),
	    CLUSTER_TEST(a_program_that_is_too_old_for_the_tables_stops_writing),
	    CLUSTER_TEST(a_commit_rings_the_subscribers_of_another_node),
	    CLUSTER_TEST(an_announcement_rings_every_node),
	    CLUSTER_TEST(a_lost_connection_rings_everything),
	    CLUSTER_TEST(without_notes_a_node_notices_the_batches_of_others),
	    CLUSTER_TEST(the_clock_follows_the_servers),
	    CLUSTER_TEST(a_jump_of_the_servers_clock_is_applied_once),
	    CLUSTER_TEST(a_jump_takes_no_seat_from_a_node_that_lives),
	    CLUSTER_TEST(no_seat_moves_soon_after_a_jump),
	    CLUSTER_TEST(a_node_that_starts_after_a_jump_takes_no_seat_from_those_that_live),
	    CLUSTER_TEST(a_fenced_node_believes_in_nothing_of_its_old_epoch),
	    CLUSTER_TEST(a_jump_is_of_the_node_with_the_seat_if_there_is_one),
	    CLUSTER_TEST(a_seat_is_anothers_while_a_node_holds_it),
	};

	return cmocka_run_group_tests_name("db_seats", tests, NULL, NULL);
}
