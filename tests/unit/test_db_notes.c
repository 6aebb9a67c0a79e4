/* Notes: their text, and on PostgreSQL how one node learns of the commits of another. */
#include "cluster_rig.h"

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

/* ---- between nodes ---- */

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
	wait_for(second_is_rung); /* by its connection, with all topics */
	cluster.at[1].topics = 0;
	cluster.at[1].touched = (struct store_touched){0};
	touch_change(0, 4711);
	wait_for(second_is_rung);
	assert_int_equal(cluster.at[1].topics & (STORE_REGISTRY | STORE_SEATS | STORE_LIMITS), 0);
	store_announce(cluster.at[0].store, STORE_REGISTRY);
	wait_for(second_is_asked_to_fetch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_note_comes_back),
	    cmocka_unit_test(a_note_that_is_not_understood_means_everything),
	    CLUSTER_TEST(a_commit_rings_the_subscribers_of_another_node),
	    CLUSTER_TEST(an_announcement_rings_every_node),
	    CLUSTER_TEST(a_lost_connection_rings_everything),
	    CLUSTER_TEST(without_notes_a_node_notices_the_batches_of_others),
	};

	return cmocka_run_group_tests_name("db_notes", tests, NULL, NULL);
}
