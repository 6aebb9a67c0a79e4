/* Several stores of one process that share a database of PostgreSQL, as daemons do. */
#pragma once

#include "db/nodes.h"
#include "db/notes.h"
#include "db/seats.h"
#include "db/settings.h"
#include "db/store_internal.h"
#include "replaces.h"
#include "store_rig.h"

enum { NOW = 1000000000 };

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

static inline int64_t ahead_ms(void)
{
	struct store *s = fenced;

	return s && store_epoch(s) == fenced_epoch ? 0 : server_ahead_ms;
}

int64_t view_now_ms(const struct view *v) { return real_now_ms(v) + ahead_ms(); }

int64_t db_turn(struct db *d) { return real_turn(d) + ahead_ms(); }

int db_listen(struct db *d) { return is_deaf ? 0 : real_listen(d); }

static inline void look_again(void)
{
	if (cluster.is_reached && cluster.is_reached())
		cluster.is_enough = true;
}

static inline void wait_for(bool (*is_reached)(void))
{
	cluster.is_reached = is_reached;
	cluster.is_enough = is_reached();
	if (!cluster.is_enough)
		loop_run_until(rig_loop, &cluster.is_enough);
	cluster.is_reached = NULL;
}

/* How often a seat came to another node than the one that had it. A node that stands still for seconds leaves its seats, and takes them again. */
static int n_seat_moves;
static struct node_store *last_holder[N_SEATS];

static inline void on_node_seat(enum seat seat, bool has_seat, void *owner)
{
	struct node_store *n = owner;

	assert_int_equal(store_has_seat(n->store, seat), has_seat);
	n->has[seat] = has_seat;
	if (has_seat) {
		n_seat_moves += last_holder[seat] != n;
		last_holder[seat] = n;
	}
	for (int i = 0; i < STORES_MAX && has_seat; i++) /* never two */
		assert_false(&cluster.at[i] != n && cluster.at[i].store && store_has_seat(cluster.at[i].store, seat));
	look_again();
}

static inline bool is_node_idle(enum seat seat, void *owner)
{
	struct node_store *n = owner;

	assert_false(store_has_seat(n->store, seat));
	return !n->is_busy;
}

static inline void on_node_topic(unsigned topics, void *owner)
{
	struct node_store *n = owner;

	n->topics |= topics;
	n->n_touched += !touched_is_empty(store_touched(n->store));
	touched_merge(&n->touched, store_touched(n->store));
	look_again();
}

static inline struct node_store *open_node(int i, const char *name)
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

static inline void close_node(int i)
{
	struct node_store *n = &cluster.at[i];
	bool is_closed = false;

	store_close(n->store, rig_closed, &is_closed);
	loop_run_until(rig_loop, &is_closed);
	n->store = NULL;
	memset(n->has, 0, sizeof(n->has));
}

static inline int set_up_cluster(void **state)
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

static inline int tear_down_cluster(void **state)
{
	for (int i = 0; i < STORES_MAX; i++)
		if (cluster.at[i].store)
			close_node(i);
	return rig_teardown(state);
}

static inline int n_seats_of(int i)
{
	int n = 0;

	for (int s = 0; s < N_SEATS; s++)
		n += cluster.at[i].has[s];
	return n;
}

static inline bool first_has_all(void) { return n_seats_of(0) == N_SEATS; }

/* Each seat is where it belongs. */
static inline bool all_are_in_place(void)
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

#define CLUSTER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_cluster, tear_down_cluster)
#define ONLY_ON_SERVER()                                                                                               \
	do {                                                                                                           \
		if (!server_database())                                                                                \
			skip();                                                                                        \
	} while (0)

static inline bool two_nodes_live(void) { return store_n_nodes(cluster.at[0].store) == 2; }

static inline bool three_nodes_live(void) { return store_n_nodes(cluster.at[0].store) == 3; }

/* ---- more nodes ---- */

/* Of a node that was killed, whose rows stay, or is elsewhere: it has every seat. */
static inline void put_other_node(struct db *d, int64_t seen_ms, int64_t until_ms)
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

static inline bool second_is_rung(void) { return cluster.at[1].touched.is_all; }

/* The listeners are connected. */
static inline void open_two_nodes(void)
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

/* ---- an operation that does nothing ---- */

static struct nothing {
	struct store_op op;
} nothing;

static inline int nothing_run(struct store_op *op, struct txn *d)
{
	(void)op;
	(void)d;
	return 0;
}

static inline int do_nothing(enum op_class class)
{
	nothing = (struct nothing){.op = {.run = nothing_run, .done = rig_op_done, .class = class}};
	rig_is_done = false;
	assert_int_equal(store_submit(cluster.at[0].store, &nothing.op), 0);
	loop_run_until(rig_loop, &rig_is_done);
	return nothing.op.err;
}
