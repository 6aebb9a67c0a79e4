/* Nodes: their epochs, who may end a request, whose work is taken over and when, leases after a silence; transactions that fail because
 * of others, or whose COMMIT has no answer. The tests with two stores, two nodes of one database, need a server. */
#include "db/store_internal.h"
#include "lease_rig.h"
#include "postgres_proxy.h"
#include "replaces.h"

static struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};

static void plan_one(void) { rig_start("opened", HEAD_A, 1, wants, 1); }

/* ---- the database, seen from outside ---- */

static struct db *outside(enum db_use use)
{
	char *path = rig_path();
	struct error e = {0};
	struct db *d;

	if (db_open(path, use, &d, &e))
		fail_msg("%s", e.text);
	free(path);
	return d;
}

#define OUTSIDE_INT(sql)                                                                                               \
	__extension__({                                                                                                \
		struct db *d_ = outside(DB_READER);                                                                    \
		int64_t n_ = db_int(d_, -1, sql);                                                                      \
		assert_int_equal(db_status(d_), 0);                                                                    \
		db_close(d_);                                                                                          \
		n_;                                                                                                    \
	})

static const char *outbox_state(void)
{
	static char state[20];
	struct db *d = outside(DB_READER);
	char *text = db_text(d, "SELECT state FROM outbox WHERE kind = 'github_dispatch'");

	snprintf(state, sizeof(state), "%s", text);
	free(text);
	db_close(d);
	return state;
}

/* ---- a second node ---- */

static struct store *other;
static char other_dir[64];

static void swap_nodes(void)
{
	struct store *s = rig_store;

	rig_store = other;
	other = s;
}

static void open_other(const char *name)
{
	const struct store_options o = {.state_dir = other_dir,
	    .database = server_database(),
	    .node = name,
	    .has_others = true,
	    .recover = store_recover,
	    .after_silence = store_after_silence};
	struct error e = {0};

	snprintf(other_dir, sizeof(other_dir), "/tmp/outpost-other-XXXXXX");
	assert_non_null(mkdtemp(other_dir));
	if (store_open(rig_loop, &o, &other, &e))
		fail_msg("%s", e.text);
}

static void close_other(void)
{
	swap_nodes();
	rig_close();
	swap_nodes();
	nftw(other_dir, rig_remove, 8, FTW_DEPTH | FTW_PHYS);
}

static int setup_first(void **state)
{
	struct error e = {0};

	rig_setup_folder(state);
	other = NULL;
	if (!server_database())
		empty_store_put(rig_dir);
	if (rig_open_with(&(struct store_options){.node = "first", .has_others = true}, &e))
		fail_msg("%s", e.text);
	return 0;
}

static int teardown_both(void **state)
{
	if (other)
		close_other();
	return rig_teardown(state);
}

static struct watch_nodes watch(void)
{
	struct watch_nodes o = {.now_ms = clock_wall_ms(), .n_gone = -1};

	DO_OK(store_watch_nodes, &o);
	return o;
}

/* The others did not hear of it for so long. */
static void silence(const char *name, int ms)
{
	char sql[200];

	snprintf(
	    sql, sizeof(sql), "UPDATE node SET seen_ms = seen_ms - %d WHERE name = '%s' AND gone_ms IS NULL", ms, name);
	server_script(server_database(), sql);
}

/* This node sends the request of a plan. */
static void begin_request(void)
{
	struct claim_outbox c;

	plan_one();
	c = rig_claim(REQUESTS, T0 + 1000);
	assert_int_equal(c.n, 1);
	claim_outbox_release(&c);
}

/* The same, and another process with the name of this node begins. It is rig_store then. */
static void begin_request_and_be_replaced(void)
{
	begin_request();
	open_other("first");
	swap_nodes();
}

static int64_t n_redelivered(const char *guid)
{
	struct count_redelivery c = {.guid = guid, .now_ms = T0};

	DO_OK(store_count_redelivery, &c);
	return c.n_before;
}

/* ---- epochs ---- */

static void each_start_has_a_higher_epoch(void **state)
{
	int64_t first = store_epoch(rig_store);

	(void)state;
	assert_true(first > 0 && store_is_acting(rig_store));
	rig_reopen();
	assert_true(store_epoch(rig_store) > first);
	assert_int_equal(OUTSIDE_INT("SELECT COUNT(*) FROM node WHERE gone_ms IS NULL"), 1);
}

static void an_earlier_node_does_not_end_a_request(void **state)
{
	struct claim_outbox c;
	struct outbox_row old;

	(void)state;
	plan_one();
	c = rig_claim(REQUESTS, T0 + 1000);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.rows[0].epoch, store_epoch(rig_store));
	old = (struct outbox_row){.id = c.rows[0].id, .epoch = c.rows[0].epoch, .generation = c.rows[0].generation};
	claim_outbox_release(&c);
	rig_reopen();
	c = rig_claim(REQUESTS, T0 + 2000);
	assert_int_equal(c.n, 1);
	assert_true(c.rows[0].is_uncertain);
	rig_done(&old, OUTBOX_DEAD, 0);
	assert_string_equal(outbox_state(), "sending");
	rig_done(&c.rows[0], OUTBOX_OK, 0);
	assert_string_equal(outbox_state(), "sent");
	claim_outbox_release(&c);
}

static void a_start_alone_gives_leases_their_time(void **state)
{
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("m1", "c1", 0);
	assert_int_equal(OUTSIDE_INT("SELECT until_ms FROM lease"), T0 + LEASE_MS);
	rig_reopen();
	assert_true(OUTSIDE_INT("SELECT until_ms FROM lease") > clock_wall_ms());
	lease_offer_release(&o);
}

static void a_repeated_claim_has_one_offer(void **state)
{
	struct claim_outbox c = {.kinds = REQUESTS, .limit = 100, .now_ms = T0 + 1000};

	(void)state;
	plan_one();
	DO_OK(store_claim_outbox, &c);
	assert_int_equal(c.n, 1);
	DO_OK(store_claim_outbox, &c); /* the operation clears its output itself */
	assert_int_equal(c.n, 0);
	claim_outbox_release(&c);
}

/* ---- two nodes ---- */

static void a_start_leaves_the_work_of_others(void **state)
{
	struct claim_outbox mine, theirs;
	struct outbox_row false_row;
	struct lease_offer o;

	(void)state;
	plan_one();
	mine = rig_claim(REQUESTS, T0 + 1000);
	assert_int_equal(mine.n, 1);
	queue_pull(2, HEAD_B, 0);
	o = take("m1", "c1", 0);
	open_other("second");
	assert_true(store_epoch(other) > store_epoch(rig_store));
	assert_int_equal(OUTSIDE_INT("SELECT COUNT(*) FROM node WHERE gone_ms IS NULL"), 2);
	assert_int_equal(OUTSIDE_INT("SELECT until_ms FROM lease"), T0 + LEASE_MS);
	swap_nodes();
	theirs = rig_claim(REQUESTS, T0 + 2000);
	assert_int_equal(theirs.n, 0);
	false_row = (struct outbox_row){
	    .id = mine.rows[0].id, .epoch = store_epoch(rig_store), .generation = mine.rows[0].generation};
	rig_done(&false_row, OUTBOX_DEAD, 0);
	assert_string_equal(outbox_state(), "sending");
	swap_nodes();
	rig_done(&mine.rows[0], OUTBOX_OK, 0);
	assert_string_equal(outbox_state(), "sent");
	claim_outbox_release(&mine);
	claim_outbox_release(&theirs);
	lease_offer_release(&o);
}

/* An asynchronous standby took over, and lacks the newest node. */
static void a_node_without_its_row_shares_no_epoch(void **state)
{
	int64_t lost = store_epoch(rig_store);

	(void)state;
	server_script(server_database(), "DELETE FROM node; DELETE FROM node_independent");
	open_other("second");
	assert_true(store_epoch(other) > lost);
	plan_one(); /* the lost node notices it, and has an epoch of its own again */
	assert_true(store_epoch(rig_store) > store_epoch(other));
	assert_int_equal(OUTSIDE_INT("SELECT COUNT(*) FROM node WHERE gone_ms IS NULL"), 2);
}

static void the_work_of_a_dead_node_waits_until_its_requests_have_ended(void **state)
{
	struct claim_outbox mine, theirs;
	struct watch_nodes taken;
	int64_t epoch = store_epoch(rig_store);

	(void)state;
	plan_one();
	mine = rig_claim(REQUESTS, T0 + 1000);
	assert_int_equal(mine.n, 1);
	open_other("second");
	swap_nodes();
	silence("first", NODE_DEAD_MS - 5000);
	taken = watch();
	assert_true(taken.n_gone == 0 && taken.n_taken_over == 0);
	assert_string_equal(outbox_state(), "sending");
	silence("first", 5000);
	taken = watch();
	assert_true(taken.n_gone == 1 && taken.n_taken_over == 1);
	theirs = rig_claim(REQUESTS, T0 + 2000);
	assert_int_equal(theirs.n, 1);
	assert_true(theirs.rows[0].is_uncertain);
	assert_string_equal(theirs.rows[0].dispatch_id, mine.rows[0].dispatch_id);

	/* the first one lives: it gets a new epoch, and its answer comes too late */
	swap_nodes();
	rig_topics = 0;
	rig_done(&mine.rows[0], OUTBOX_DEAD, 0);
	assert_string_equal(outbox_state(), "sending");
	assert_true(store_epoch(rig_store) > epoch);
	while (!(rig_topics & STORE_NODE))
		n_redelivered("a turn of the loop");
	assert_int_equal(OUTSIDE_INT("SELECT COUNT(*) FROM node WHERE gone_ms IS NULL"), 2);
	swap_nodes();
	rig_done(&theirs.rows[0], OUTBOX_OK, 0);
	assert_string_equal(outbox_state(), "sent");
	swap_nodes();
	claim_outbox_release(&mine);
	claim_outbox_release(&theirs);
}

static void the_younger_of_two_nodes_with_one_name_goes_on(void **state)
{
	struct count_redelivery c = {.guid = "a", .now_ms = T0};

	(void)state;
	open_other("first");
	assert_int_equal(DO(store_count_redelivery, &c), ERR_EXISTS);
	assert_non_null(strstr(c.op.why.text, "another outpostd has `node: first`, too"));
	swap_nodes();
	assert_int_equal(n_redelivered("a"), 0);
	swap_nodes();
	close_other();
	other = NULL;
	assert_int_equal(n_redelivered("a"), 1);
}

static _Atomic bool loses_registration;
static _Thread_local bool is_registering;
REPLACES(node_register);
REPLACES(db_commit);
extern __typeof__(node_register) real_register __asm__("__real_node_register");
extern __typeof__(db_commit) real_commit __asm__("__real_db_commit");

int node_register(struct node *n, struct db *d, struct error *e)
{
	int rc;

	is_registering = true;
	rc = real_register(n, d, e);
	is_registering = false;
	return rc;
}

int db_commit(struct db *d)
{
	int rc = real_commit(d);

	if (!rc && is_registering && atomic_exchange(&loses_registration, false))
		return db_fail(d, ERR_IO, "the answer was lost");
	return rc;
}

static void a_node_knows_its_registration_without_an_answer(void **state)
{
	int64_t epoch = store_epoch(rig_store);
	struct count_redelivery c = {.guid = "a", .now_ms = T0};

	(void)state;
	server_script(server_database(), "UPDATE node SET gone_ms = seen_ms");
	atomic_store(&loses_registration, true);
	while (atomic_load(&loses_registration)) /* a beat may come first */
		assert_true(DO(store_count_redelivery, &c) == ERR_IO || !loses_registration);
	assert_int_equal(n_redelivered("b"), 0);
	assert_true(store_epoch(rig_store) > epoch);
	assert_int_equal(OUTSIDE_INT("SELECT epoch FROM node WHERE gone_ms IS NULL"), store_epoch(rig_store));
	assert_int_equal(OUTSIDE_INT("SELECT COUNT(*) FROM node"), 2);
}

/* It does not know yet that another one has its name, and may be sending. */
static void the_work_of_a_replaced_node_waits_until_its_requests_have_ended(void **state)
{
	(void)state;
	begin_request_and_be_replaced();
	assert_int_equal(watch().n_taken_over, 0);
	server_script(server_database(), "UPDATE node SET seen_ms = seen_ms - 25000 WHERE gone_ms IS NOT NULL");
	assert_int_equal(watch().n_taken_over, 1);
	swap_nodes();
}

static void a_node_that_leaves_keeps_nobody_waiting(void **state)
{
	(void)state;
	open_other("second");
	swap_nodes();
	begin_request();
	swap_nodes();
	close_other();
	other = NULL;
	assert_int_equal(watch().n_taken_over, 1);
}

/* ---- a clock that jumps ---- */

static void shift_by(int64_t ms)
{
	struct shift_clock shift = {.delta_ms = ms, .now_ms = clock_wall_ms()};

	DO_OK(store_shift_clock, &shift);
}

static void a_clock_that_is_put_forward_ends_no_node(void **state)
{
	struct watch_nodes o = {.now_ms = clock_wall_ms() - HOUR}; /* submitted before it was */

	(void)state;
	open_other("second");
	silence("second", (int)HOUR);
	DO_OK(store_watch_nodes, &o);
	assert_int_equal(o.n_gone, 0);
	shift_by(HOUR);
	assert_int_equal(watch().n_gone, 0);
	silence("second", NODE_DEAD_MS);
	assert_int_equal(watch().n_gone, 1);
}

/* Of a node that another one replaced, and that may be sending. */
static void a_clock_that_is_put_forward_ends_no_request(void **state)
{
	struct watch_nodes o = {.now_ms = clock_wall_ms() - HOUR}; /* submitted before it was */

	(void)state;
	begin_request_and_be_replaced();
	server_script(server_database(), "UPDATE node SET seen_ms = seen_ms - 3600000 WHERE gone_ms IS NOT NULL");
	DO_OK(store_watch_nodes, &o);
	assert_int_equal(o.n_taken_over, 0);
	assert_string_equal(outbox_state(), "sending");
	shift_by(HOUR);
	assert_int_equal(watch().n_taken_over, 0);
	server_script(server_database(), "UPDATE node SET seen_ms = seen_ms - 25000 WHERE gone_ms IS NOT NULL");
	assert_int_equal(watch().n_taken_over, 1);
	swap_nodes();
}

/* A node that died while it moved a finished log. */
static void the_log_of_a_dead_node_does_not_wait_longer(void **state)
{
	(void)state;
	server_script(server_database(),
	    "INSERT INTO log (job_id, bytes, tail_at, is_complete, has_pieces, written_ms, moving_until_ms) VALUES"
	    " (1, 9, 0, 1, 1, 0, 7200000), (2, 9, 0, 1, 1, 0, 0)");
	shift_by(-HOUR);
	assert_int_equal(OUTSIDE_INT("SELECT moving_until_ms FROM log WHERE job_id = 1"), HOUR);
	assert_int_equal(OUTSIDE_INT("SELECT moving_until_ms FROM log WHERE job_id = 2"), 0);
}

/* It has its time to end its requests, and no more. */
static void a_dead_node_is_missed_whatever_the_clock_does(void **state)
{
	(void)state;
	open_other("second");
	begin_request();
	swap_nodes();
	silence("first", (int)-HOUR); /* the clock was put back after its last beat */
	shift_by(-HOUR);
	assert_int_equal(watch().n_gone, 0);
	/* given up, because a younger node has its name */
	server_script(server_database(), "UPDATE node SET gone_ms = seen_ms WHERE name = 'first'");
	server_script(server_database(), "UPDATE node SET seen_ms = seen_ms + 3600000 WHERE name = 'first'");
	shift_by(-HOUR);
	server_script(server_database(), "UPDATE node SET seen_ms = seen_ms - 3600000 WHERE name = 'first'");
	shift_by(HOUR);
	assert_int_equal(watch().n_taken_over, 0);
	server_script(server_database(), "UPDATE node SET seen_ms = seen_ms - 60000 WHERE name = 'first'");
	assert_int_equal(watch().n_taken_over, 1);
	swap_nodes();
}

/* A node whose own clock stood still, as that of a virtual machine, believes that the database's jumped. */
static void a_node_that_was_given_up_moves_no_times(void **state)
{
	struct shift_clock shift = {.delta_ms = HOUR, .now_ms = T0, .generation = 1, .epoch = store_epoch(rig_store)};
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("m1", "c1", 0);
	open_other("second");
	silence("first", NODE_DEAD_MS);
	swap_nodes();
	assert_int_equal(watch().n_gone, 1);
	swap_nodes();
	DO_OK(store_shift_clock, &shift);
	assert_true(store_epoch(rig_store) > shift.epoch);
	assert_int_equal(OUTSIDE_INT("SELECT COUNT(*) FROM setting WHERE key = 'clock.generation'"), 0);
	close_other(); /* it may have the seat */
	other = NULL;
	shift.epoch = store_epoch(rig_store);
	DO_OK(store_shift_clock, &shift);
	assert_int_equal(OUTSIDE_INT("SELECT COUNT(*) FROM setting WHERE key = 'clock.generation'"), 1);
	lease_offer_release(&o);
}

/* ---- silence ---- */

static void be_silent(int64_t ms)
{
	silence("first", (int)ms);
	atomic_store(&rig_store->node.seen_mono_ms, clock_mono_ms() - ms);
}

/* As if each node had been killed before it left. */
static const char KILLED[] =
    "UPDATE node SET gone_ms = NULL, seen_ms = (EXTRACT(epoch FROM clock_timestamp()) * 1000)::bigint";

/* The lock of the state directory proves that the process has ended. A process with the same name elsewhere proves nothing. */
static void the_work_of_a_killed_process_is_free_at_its_next_start(void **state)
{
	struct claim_outbox c;
	struct error e = {0};

	(void)state;
	begin_request();
	rig_close();
	server_script(server_database(), KILLED);
	open_other("first");
	swap_nodes();
	assert_int_equal(watch().n_taken_over, 0);
	swap_nodes();
	close_other();
	other = NULL;
	server_script(server_database(), KILLED);
	if (rig_open_with(&(struct store_options){.node = "first", .has_others = true}, &e))
		fail_msg("%s", e.text);
	c = rig_claim(REQUESTS, T0 + 2000);
	assert_int_equal(c.n, 1);
	assert_true(c.rows[0].is_uncertain);
	claim_outbox_release(&c);
}

static void a_silent_node_stops_acting(void **state)
{
	(void)state;
	assert_true(store_is_acting(rig_store));
	rig_topics = 0;
	be_silent(NODE_SILENT_MS);
	assert_false(store_is_acting(rig_store));
	/* its timer notices, and beats */
	while (!store_is_acting(rig_store) || !(rig_topics & STORE_NODE)) {
		struct get_totals t = {.now_ms = T0};

		ASK_OK(store_get_totals, &t);
	}
}

static void leases_have_their_time_after_a_silence_of_all(void **state)
{
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("m1", "c1", 0);
	be_silent(NODE_DEAD_MS - 5000);
	n_redelivered("a");
	assert_int_equal(OUTSIDE_INT("SELECT until_ms FROM lease"), T0 + LEASE_MS);
	/* a second one, which does not beat by itself */
	server_script(server_database(),
	    "INSERT INTO node (epoch, name, version, schema_version, started_ms, seen_ms)"
	    " SELECT 99, 'second', version, schema_version, started_ms, seen_ms FROM node");
	be_silent(NODE_DEAD_MS);
	n_redelivered("a"); /* the other one was there */
	assert_int_equal(OUTSIDE_INT("SELECT until_ms FROM lease"), T0 + LEASE_MS);
	silence("second", NODE_DEAD_MS);
	be_silent(NODE_DEAD_MS);
	n_redelivered("a");
	assert_true(OUTSIDE_INT("SELECT until_ms FROM lease") > clock_wall_ms());
	lease_offer_release(&o);
}

/* ---- operations that do not wait ---- */

static int n_done;
static void count_done(struct store_op *op)
{
	(void)op;
	n_done++;
	rig_is_done = true;
}

/* In a transaction, until whose end no node decides. */
static struct db *outside_with_turn(void)
{
	struct db *d = outside(DB_WRITER);

	assert_int_equal(db_begin(d, DB_WRITER), 0);
	assert_true(db_turn(d) > T0);
	return d;
}

static void independent_operations_do_not_wait_for_their_turn(void **state)
{
	struct count_redelivery c = {.op.done = count_done, .guid = "a", .now_ms = T0};
	struct db *d = outside_with_turn();

	(void)state;
	n_done = 0;
	assert_int_equal(store_count_redelivery(rig_store, &c), 0);
	assert_true(rig_put("b", "{}"));
	assert_int_equal(n_done, 0);
	assert_int_equal(db_commit(d), 0);
	db_close(d);
	rig_is_done = n_done > 0;
	loop_run_until(rig_loop, &rig_is_done);
	assert_int_equal(c.op.err, 0);
}

struct write_parts {
	struct store_op op;
	int n_left;
};

static int write_parts_run(struct store_op *op, struct txn *d)
{
	struct write_parts *w = CONTAINER_OF(op, struct write_parts, op);

	db_exec(d, "INSERT INTO redelivery (guid, n, last_ms) VALUES ('part', 1, 0)"
		   " ON CONFLICT (guid) DO UPDATE SET n = redelivery.n + 1");
	op->is_unfinished = --w->n_left > 0;
	return 0;
}

int store_write_parts(struct store *s, struct write_parts *op);
STORE_INDEPENDENT(write_parts)

static void parts_of_independent_operations_do_not_wait_either(void **state)
{
	struct write_parts w = {.n_left = 3};
	struct db *d = outside_with_turn();

	(void)state;
	DO_OK(store_write_parts, &w);
	assert_int_equal(db_commit(d), 0);
	db_close(d);
	assert_int_equal(OUTSIDE_INT("SELECT n FROM redelivery WHERE guid = 'part'"), 3);
}

/* A heartbeat for a lease that is not active depends on more than the lease. */
static void an_operation_may_become_one_that_decides(void **state)
{
	struct lease_offer o;
	struct expire_leases e = {.now_ms = T0 + 2 * LEASE_MS};

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("m1", "c1", 0);
	ASSERT_RENEWED(&o, "m1", 1000, LEASE_ACTIVE, "");
	DO_OK(store_expire_leases, &e);
	assert_int_equal(e.n_expired, 1);
	ASSERT_RENEWED(&o, "m1", 2 * LEASE_MS, LEASE_ACTIVE, "");
	ASSERT_RENEWED(&o, "m2", 2 * LEASE_MS, LEASE_LOST, "no such lease");
	lease_offer_release(&o);
}

struct break_rule {
	struct store_op op;
	bool is_refused; /* by the server; else it breaks a rule of the table */
};

static int break_rule_run(struct store_op *op, struct txn *d)
{
	if (CONTAINER_OF(op, struct break_rule, op)->is_refused)
		db_exec(d, "INSERT INTO setting (key, no_such_column) VALUES ('a', 'b')");
	else
		db_exec(d, "INSERT INTO setting (key, value) VALUES ('a', NULL)");
	return 0;
}

int store_break_rule(struct store *s, struct break_rule *op);
STORE_INDEPENDENT(break_rule)

struct decide_badly {
	struct store_op op;
};

static int decide_badly_run(struct store_op *op, struct txn *d)
{
	(void)op;
	db_exec(d, "UPDATE setting SET value = (1 / (SELECT COUNT(*) FROM no_such_table))::text");
	return 0;
}

int store_decide_badly(struct store *s, struct decide_badly *op);
STORE_OPERATION(decide_badly)

/* Its statement is refused for a reason that no repetition changes. */
static void a_refused_decision_fails_alone(void **state)
{
	struct decide_badly bad = {.op.done = count_done};
	struct count_redelivery good[2];

	(void)state;
	n_done = 0;
	for (int i = 0; i < 2; i++) {
		good[i] = (struct count_redelivery){.op.done = count_done, .guid = i ? "b" : "a", .now_ms = T0};
		assert_int_equal(store_count_redelivery(rig_store, &good[i]), 0);
		if (i == 0)
			assert_int_equal(store_decide_badly(rig_store, &bad), 0);
	}
	while (n_done < 3) {
		rig_is_done = false;
		loop_run_until(rig_loop, &rig_is_done);
	}
	assert_int_equal(good[0].op.err, 0);
	assert_int_equal(bad.op.err, ERR_REFUSED);
	assert_non_null(strstr(bad.op.why.text, "no_such_table"));
	assert_int_equal(good[1].op.err, 0);
	assert_int_equal(OUTSIDE_INT("SELECT COUNT(*) FROM redelivery"), 2);
}

static void one_bad_operation_fails_alone(void **state)
{
	struct put_delivery good[2];
	struct break_rule bad = {.op.done = count_done, .is_refused = *state};

	n_done = 0;
	for (int i = 0; i < 2; i++) {
		good[i] = (struct put_delivery){.op.done = count_done,
		    .guid = i ? "b" : "a",
		    .event = "push",
		    .action = "",
		    .repository = UPSTREAM,
		    .body = "{}",
		    .body_bytes = 2,
		    .now_ms = T0};
		assert_int_equal(store_put_delivery(rig_store, &good[i]), 0);
		if (i == 0)
			assert_int_equal(store_break_rule(rig_store, &bad), 0);
	}
	while (n_done < 3) {
		rig_is_done = false;
		loop_run_until(rig_loop, &rig_is_done);
	}
	assert_int_equal(good[0].op.err, 0);
	assert_int_equal(bad.op.err, bad.is_refused ? ERR_REFUSED : ERR_CONFLICT);
	assert_int_equal(good[1].op.err, 0);
	assert_int_equal(OUTSIDE_INT("SELECT COUNT(*) FROM delivery"), 2);
}

/* ---- transactions that are repeated ---- */

/* The first n changes of `redelivery` fail in this way. */
static void fail_first(int n, const char *how)
{
	char *sql =
	    xasprintf("DROP SEQUENCE IF EXISTS fails; CREATE SEQUENCE fails;"
		      "CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
		      " IF nextval('fails') <= %d THEN %s; END IF; RETURN NEW; END $$;"
		      "CREATE OR REPLACE TRIGGER fail BEFORE INSERT ON redelivery FOR EACH ROW EXECUTE FUNCTION fail()",
		n, how);

	server_script(server_database(), sql);
	free(sql);
}

static void remove_failures(void)
{
	server_script(server_database(), "DROP TRIGGER fail ON redelivery; DROP FUNCTION fail; DROP SEQUENCE fails");
}

static void victims_are_repeated(void **state)
{
	static const char *const states[] = {"40001", "40P01", "55P03"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		struct count_redelivery c = {.guid = "b", .now_ms = T0};
		char how[80];

		snprintf(how, sizeof(how), "RAISE EXCEPTION USING ERRCODE = '%s'", states[i]);
		fail_first(2, how);
		assert_int_equal(n_redelivered("a"), i);
		fail_first(99, how);
		assert_int_equal(DO(store_count_redelivery, &c), ERR_BUSY);
		assert_int_equal(OUTSIDE_INT("SELECT COUNT(*) FROM redelivery WHERE guid = 'b'"), 0);
		assert_int_equal(OUTSIDE_INT("SELECT last_value FROM fails"), 5);
	}
	remove_failures();
	assert_int_equal(n_redelivered("b"), 0);
}

static const char END_ALL[] = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
			      " WHERE datname = current_database() AND pid <> pg_backend_pid()";

static void a_lost_connection_is_repeated(void **state)
{
	(void)state;
	assert_int_equal(n_redelivered("a"), 0);
	server_script(server_database(), END_ALL);
	assert_int_equal(n_redelivered("a"), 1);
	assert_true(rig_put("b", "{}"));
	fail_first(1, "PERFORM pg_terminate_backend(pg_backend_pid())");
	assert_int_equal(n_redelivered("a"), 2);
	remove_failures();
}

/* Otherwise `store copy` would begin while this daemon writes. */
static void nothing_is_written_without_the_lock(void **state)
{
	struct count_redelivery c = {.guid = "a", .now_ms = T0};
	struct put_delivery put = {
	    .guid = "b", .event = "ping", .repository = UPSTREAM, .body = "{}", .body_bytes = 2, .now_ms = T0};
	struct error e = {0};
	struct db *d;

	(void)state;
	server_script(server_database(), END_ALL);
	d = outside(DB_WRITER);
	assert_int_equal(db_lock(d, false, &e), 0);
	assert_int_equal(DO(store_count_redelivery, &c), ERR_BUSY);
	assert_int_equal(DO(store_put_delivery, &put), ERR_BUSY);
	db_close(d);
	assert_int_equal(n_redelivered("a"), 0);
	assert_true(rig_put("b", "{}"));
}

static struct proxy proxy;

/* The proxy accepts n_to_accept connections and refuses the next n_to_refuse, as a server that restarts. */
static int try_behind_proxy(int n_to_accept, int n_to_refuse, int patience_ms, struct error *e)
{
	char *url = proxy_start(&proxy);
	const struct store_options o = {.state_dir = rig_dir,
	    .database = url,
	    .node = "first",
	    .has_others = true,
	    .patience_ms = patience_ms,
	    .recover = store_recover,
	    .after_silence = store_after_silence};
	int rc;

	rig_close();
	atomic_store(&proxy.n_to_refuse, n_to_refuse);
	atomic_store(&proxy.n_to_accept, n_to_accept);
	rc = store_open(rig_loop, &o, &rig_store, e);
	if (!rc)
		store_subscribe(rig_store, ~0u, rig_on_topic, NULL);
	free(url);
	return rc;
}

static void open_behind_proxy(void)
{
	struct error e = {0};

	if (try_behind_proxy(0, 0, 0, &e))
		fail_msg("%s", e.text);
}

static void assert_start_waits(int n_to_accept, int n_to_refuse)
{
	struct error e = {0};

	assert_int_equal(try_behind_proxy(n_to_accept, n_to_refuse, 3600 * 1000, &e), 0);
	assert_int_equal(atomic_load(&proxy.n_to_refuse), 0);
	assert_true(rig_put("a", "{}"));
	rig_close();
	proxy_stop(&proxy);
}

static void a_start_waits_for_a_server_that_is_away(void **state)
{
	(void)state;
	assert_start_waits(0, 4); /* two attempts, and after each the question whether it is away */
}

/* The server goes away after the first writer has connected and before the second one has. */
static void a_start_waits_for_a_server_that_goes_away_meanwhile(void **state)
{
	(void)state;
	assert_start_waits(1, 3);
}

static void a_start_gives_up_a_server_that_stays_away(void **state)
{
	struct error e = {0};

	(void)state;
	assert_int_equal(try_behind_proxy(1, 1000, 1, &e), ERR_AWAY);
	proxy_stop(&proxy);
}

static void a_start_without_patience_fails_at_once(void **state)
{
	struct error e = {0};

	(void)state;
	assert_int_equal(try_behind_proxy(0, 2, 0, &e), ERR_AWAY);
	assert_int_equal(atomic_load(&proxy.n_to_refuse), 1);
	proxy_stop(&proxy);
}

static _Atomic int answer_within_ms; /* 0: as the store says */
REPLACES(db_limit_silence);
extern __typeof__(db_limit_silence) real_limit_silence __asm__("__real_db_limit_silence");

void db_limit_silence(struct db *d, int max_ms) { real_limit_silence(d, answer_within_ms ? answer_within_ms : max_ms); }

/* Each operation changes something by one, so that neither a lost nor a repeated one goes unnoticed. n: of this kind, before. */
static void assert_each_happens_once(enum proxy_loss loss, int n_to_refuse, int n)
{
	char guid[20];

	snprintf(guid, sizeof(guid), "guid-%d", n);
	atomic_store(&proxy.loss, loss);
	atomic_store(&proxy.n_to_refuse, n_to_refuse); /* the server is away for a while */
	assert_int_equal(n_redelivered("a"), n);
	assert_int_equal(atomic_load(&proxy.loss), PROXY_LOSES_NOTHING);
	assert_int_equal(OUTSIDE_INT("SELECT n FROM redelivery WHERE guid = 'a'"), n + 1);
	rig_topics = 0;
	atomic_store(&proxy.loss, loss);
	atomic_store(&proxy.n_to_refuse, n_to_refuse);
	assert_true(rig_put(guid, "{}"));
	assert_int_equal(atomic_load(&proxy.loss), PROXY_LOSES_NOTHING);
	assert_true(rig_topics & STORE_DELIVERIES);
	assert_int_equal(OUTSIDE_INT("SELECT COUNT(*) FROM delivery"), n + 1);
}

static void a_commit_without_an_answer_happens_once(void **state)
{
	(void)state;
	open_behind_proxy();
	for (int i = 0; i < 4; i++)
		assert_each_happens_once(i % 2 ? PROXY_LOSES_COMMIT : PROXY_LOSES_ANSWER, i / 2 * 3, i);
	rig_close();
	proxy_stop(&proxy);
}

/* The connection stays open, but nothing comes: the server stands still, or its machine is gone. */
static void a_silent_server_is_given_up(void **state)
{
	(void)state;
	answer_within_ms = 2000;
	open_behind_proxy();
	for (int i = 0; i < 2; i++)
		assert_each_happens_once(i ? PROXY_HIDES_COMMIT : PROXY_HIDES_ANSWER, 0, i);
	rig_close();
	proxy_stop(&proxy);
	answer_within_ms = 0;
}

/* The server ends the session in each COMMIT of the operation. The writer repeats it for some seconds; then the operation fails, because
 * nothing of it is in the database. */
static void a_commit_that_never_happens_fails(void **state)
{
	struct count_redelivery c = {.guid = "a", .now_ms = T0};
	struct put_delivery put = {
	    .guid = "b", .event = "ping", .repository = UPSTREAM, .body = "{}", .body_bytes = 2, .now_ms = T0};

	(void)state;
	assert_int_equal(n_redelivered("a"), 0);
	server_script(server_database(),
	    "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS"
	    " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;"
	    "CREATE CONSTRAINT TRIGGER fail AFTER INSERT OR UPDATE ON redelivery DEFERRABLE INITIALLY DEFERRED"
	    " FOR EACH ROW EXECUTE FUNCTION fail();"
	    "CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON delivery DEFERRABLE INITIALLY DEFERRED"
	    " FOR EACH ROW EXECUTE FUNCTION fail()");
	assert_int_not_equal(DO(store_count_redelivery, &c), 0);
	assert_int_not_equal(DO(store_put_delivery, &put), 0);
	assert_int_equal(OUTSIDE_INT("SELECT n FROM redelivery WHERE guid = 'a'"), 1);
	assert_int_equal(OUTSIDE_INT("SELECT COUNT(*) FROM delivery"), 0);
	server_script(server_database(), "DROP FUNCTION fail CASCADE");
	assert_int_equal(n_redelivered("a"), 1);
	assert_true(rig_put("b", "{}"));
}

/* The server is away for a moment, as when it restarts. */
static void a_restart_of_the_server_fails_nothing(void **state)
{
	(void)state;
	open_behind_proxy();
	assert_int_equal(n_redelivered("a"), 0);
	atomic_store(&proxy.n_to_refuse, 4);
	server_script(server_database(), END_ALL);
	assert_int_equal(n_redelivered("a"), 1);
	assert_int_equal(atomic_load(&proxy.n_to_refuse), 0);
	rig_close();
	proxy_stop(&proxy);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_first, teardown_both)

int main(void)
{
	const struct CMUnitTest both[] = {
	    TEST(each_start_has_a_higher_epoch),
	    TEST(an_earlier_node_does_not_end_a_request),
	    TEST(a_start_alone_gives_leases_their_time),
	    TEST(a_repeated_claim_has_one_offer),
	    TEST(an_operation_may_become_one_that_decides),
	};
	const struct CMUnitTest on_server[] = {
	    TEST(a_start_leaves_the_work_of_others),
	    TEST(a_node_without_its_row_shares_no_epoch),
	    TEST(the_work_of_a_dead_node_waits_until_its_requests_have_ended),
	    TEST(the_younger_of_two_nodes_with_one_name_goes_on),
	    TEST(a_node_knows_its_registration_without_an_answer),
	    TEST(the_work_of_a_replaced_node_waits_until_its_requests_have_ended),
	    TEST(a_node_that_leaves_keeps_nobody_waiting),
	    TEST(a_clock_that_is_put_forward_ends_no_node),
	    TEST(a_clock_that_is_put_forward_ends_no_request),
	    TEST(a_dead_node_is_missed_whatever_the_clock_does),
	    TEST(the_log_of_a_dead_node_does_not_wait_longer),
	    TEST(a_node_that_was_given_up_moves_no_times),
	    TEST(the_work_of_a_killed_process_is_free_at_its_next_start),
	    TEST(a_silent_node_stops_acting),
	    TEST(leases_have_their_time_after_a_silence_of_all),
	    TEST(independent_operations_do_not_wait_for_their_turn),
	    TEST(parts_of_independent_operations_do_not_wait_either),
	    TEST(one_bad_operation_fails_alone),
	    {"one_refused_operation_fails_alone", one_bad_operation_fails_alone, setup_first, teardown_both, (void *)1},
	    TEST(a_refused_decision_fails_alone),
	    TEST(victims_are_repeated),
	    TEST(a_lost_connection_is_repeated),
	    TEST(nothing_is_written_without_the_lock),
	    TEST(a_restart_of_the_server_fails_nothing),
	    TEST(a_commit_without_an_answer_happens_once),
	    TEST(a_silent_server_is_given_up),
	    TEST(a_start_waits_for_a_server_that_is_away),
	    TEST(a_start_waits_for_a_server_that_goes_away_meanwhile),
	    TEST(a_start_gives_up_a_server_that_stays_away),
	    TEST(a_start_without_patience_fails_at_once),
	    TEST(a_commit_that_never_happens_fails),
	};
	int n_failed = cmocka_run_group_tests(both, NULL, NULL);

	return n_failed + (server_database() ? cmocka_run_group_tests(on_server, NULL, NULL) : 0);
}
