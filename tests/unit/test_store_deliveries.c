/* Deliveries: stored once, planned once, found again, and their queue. */
#include "db/key.h"
#include "db/settings.h"
#include "store_rig.h"

#define UUID "72d3162e-cc78-11e3-81ab-4c9367dc0958"

static void a_delivery_is_stored_once(void **state)
{
	struct get_delivery g = {.guid = UUID};

	(void)state;
	assert_true(rig_put(UUID, "{\"a\":1}"));
	assert_true(rig_topics & STORE_DELIVERIES);
	assert_false(rig_put(UUID, "{\"other\":2}"));
	ASK_OK(store_get_delivery, &g);
	assert_string_equal(g.delivery.guid, UUID);
	assert_string_equal(g.delivery.body, "{\"a\":1}");
	assert_string_equal(g.delivery.state, "accepted");
	assert_int_equal(g.delivery.body_bytes, 7);
	delivery_release(&g.delivery);
}

static const char *const GUIDS[] = {
    "72d3162e-cc78-11e3-81ab-4c9367dc0958", "72D3162E-CC78-11E3-81AB-4C9367DC0958", "72d3162ecc7811e381ab4c9367dc0958",
    "11e3cc78-72d3-162e-81ab-4c9367dc0958", /* the first one, its time in order */
    "11e3cc78-72d3-162e-81ab-4c9367dc095", "61616161-6161-6161-6161-616161616161", "aaaaaaaaaaaaaaaa",
    "aaaaaaaaaaaaaaaaa", "1", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "72d3162e-cc78-21e3-81ab-4c9367dc0958", "72d3162e-cc78-31e3-81ab-4c9367dc0958",
    "72d3162e-cc78-41e3-81ab-4c9367dc0958", "72d3162e-cc78-51e3-81ab-4c9367dc0958",
    "72d3162e-cc78-61e3-81ab-4c9367dc0958", "72d3162e-cc78-71e3-81ab-4c9367dc0958",
    "72d3162e-cc78-81e3-81ab-4c9367dc0958", "72d3162e-cc78-11e3-01ab-4c9367dc0958", /* of another variant */
};

static void every_kind_of_guid_is_its_own(void **state)
{
	const char *const *guids = GUIDS;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(GUIDS); i++)
		assert_true(rig_put(guids[i], "{}"));
	rig_close();
	rig_open();
	for (size_t i = 0; i < ARRAY_LEN(GUIDS); i++) {
		struct get_delivery g = {.guid = guids[i]};

		assert_false(rig_put(guids[i], "{}"));
		ASK_OK(store_get_delivery, &g);
		assert_string_equal(g.delivery.guid, guids[i]);
		delivery_release(&g.delivery);
		assert_true(rig_is_stored(guids[i]));
	}
	assert_false(rig_is_stored("none"));
}

/* SQLite compares the keys byte by byte, and a key that is longer comes later. */
static void guids_with_a_time_are_in_its_order(void **state)
{
	static const char *const guids[] = {
	    "feffffff-ffff-4fff-bfff-ffffffffffff",
	    "ffffffff-ffff-1000-80ff-4c9367dc0958",
	    "72d3162e-cc78-11e3-81ab-4c9367dc0958",
	    "72d3162f-cc78-11e3-81ab-000000000000",
	    "00000000-cc79-11e3-81ab-000000000000",
	    "00000000-0000-11e4-81ab-000000000000",
	};
	struct guid_key before = guid_key(guids[0]);

	(void)state;
	for (size_t i = 1; i < ARRAY_LEN(guids); i++) {
		struct guid_key k = guid_key(guids[i]);
		int order = memcmp(before.bytes, k.bytes, before.n);

		assert_int_equal(k.n, 17);
		assert_true(order < 0 || (order == 0 && before.n < k.n));
		before = k;
	}
}

static void large_and_odd_bodies_are_read_back(void **state)
{
	size_t n = 3 << 20;
	char *large = xmalloc(n + 1);
	struct get_delivery g = {.guid = "large"}, h = {.guid = "nul"};
	struct put_delivery p = {.guid = "nul",
	    .event = "push",
	    .action = "",
	    .repository = "a/b",
	    .body = "{\"a\":\0}",
	    .body_bytes = 7,
	    .now_ms = T0};

	(void)state;
	for (size_t i = 0; i < n; i++)
		large[i] = (char)('a' + i * i % 23);
	large[n] = '\0';
	assert_true(rig_put("large", large));
	ASK_OK(store_get_delivery, &g);
	assert_int_equal(g.delivery.body_len, n);
	assert_memory_equal(g.delivery.body, large, n);
	delivery_release(&g.delivery);
	free(large);
	DO_OK(store_put_delivery, &p);
	ASK_OK(store_get_delivery, &h);
	assert_int_equal(h.delivery.body_len, 7);
	assert_memory_equal(h.delivery.body, "{\"a\":\0}", 7);
	delivery_release(&h.delivery);
}

static void mark(int64_t id, int how, const char *error)
{
	struct mark_delivery m = {.delivery_id = id, .error = error};

	m.mark = how;
	DO_OK(store_mark_delivery, &m);
}

static void the_planner_gets_each_delivery_until_it_is_marked(void **state)
{
	struct next_deliveries n = {.limit = 10};
	struct list_deliveries failed = {.only_failed = true, .limit = 10};
	struct replay_delivery replay = {.guid = "b"}, none = {.guid = "nobody"};
	struct get_totals t = {.now_ms = T0};

	(void)state;
	rig_put("a", "1");
	rig_put("b", "2");
	rig_put("c", "3");
	ASK_OK(store_next_deliveries, &n);
	assert_int_equal(n.n, 3);
	assert_string_equal(n.list[1].body, "2");
	mark(n.list[0].id, DELIVERY_MARK_IGNORED, "not ours");
	mark(n.list[1].id, DELIVERY_MARK_FAILED, "no such field");
	mark(n.list[2].id, DELIVERY_MARK_RETRY, "GitHub is away");
	next_deliveries_release(&n);

	ASK_OK(store_next_deliveries, &n);
	assert_int_equal(n.n, 1);
	assert_string_equal(n.list[0].guid, "c");
	assert_int_equal(n.list[0].n_attempts, 1);
	assert_string_equal(n.list[0].error, "GitHub is away");
	n.after_id = n.list[0].id;
	next_deliveries_release(&n);
	ASK_OK(store_next_deliveries, &n);
	assert_int_equal(n.n, 0);
	next_deliveries_release(&n);

	ASK_OK(store_list_deliveries, &failed);
	assert_int_equal(failed.n, 1);
	assert_string_equal(failed.list[0].guid, "b");
	assert_string_equal(failed.list[0].error, "no such field");
	list_deliveries_release(&failed);
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.n_deliveries_accepted, 1);
	assert_int_equal(t.n_deliveries_ignored, 1);
	assert_int_equal(t.n_deliveries_failed, 1);
	assert_int_equal(t.oldest_accepted_ms, T0);

	DO_OK(store_replay_delivery, &replay);
	assert_int_equal(DO(store_replay_delivery, &none), ERR_NOT_FOUND);
	n.after_id = 0;
	ASK_OK(store_next_deliveries, &n);
	assert_int_equal(n.n, 2);
	assert_int_equal(n.list[0].n_attempts, 0);
	next_deliveries_release(&n);
}

static void lists_are_bounded(void **state)
{
	struct next_deliveries n = {.limit = 2};
	struct list_deliveries l = {.limit = 2};

	(void)state;
	for (int i = 0; i < 5; i++) {
		char guid[16];

		snprintf(guid, sizeof(guid), "g%d", i);
		rig_put(guid, "{}");
	}
	ASK_OK(store_next_deliveries, &n);
	assert_int_equal(n.n, 2);
	next_deliveries_release(&n);
	ASK_OK(store_list_deliveries, &l);
	assert_int_equal(l.n, 2);
	assert_string_equal(l.list[0].guid, "g4");
	assert_null(l.list[0].body);
	list_deliveries_release(&l);
}

static void settings_and_redelivery_counts_are_durable(void **state)
{
	struct put_setting put = {.key = "cursor", .value = "v1"}, drop = {.key = "cursor"};
	struct get_setting get = {.key = "cursor"};
	struct count_redelivery count = {.guid = UUID, .now_ms = T0};

	(void)state;
	ASK_OK(store_get_setting, &get);
	assert_null(get.value);
	DO_OK(store_put_setting, &put);
	put.value = "v2";
	DO_OK(store_put_setting, &put);
	for (int i = 0; i < 3; i++) {
		DO_OK(store_count_redelivery, &count);
		assert_int_equal(count.n_before, i);
	}
	rig_reopen();
	ASK_OK(store_get_setting, &get);
	assert_string_equal(get.value, "v2");
	free(get.value);
	DO_OK(store_put_setting, &drop);
	ASK_OK(store_get_setting, &get);
	assert_null(get.value);
	DO_OK(store_count_redelivery, &count);
	assert_int_equal(count.n_before, 3);
}

/* The GUIDs that are due, in order: "a b"; free(). */
static char *due_redeliveries(int64_t now_ms, int64_t since_ms)
{
	struct list_redeliveries l = {.now_ms = now_ms, .since_ms = since_ms, .pause_ms = MINUTE, .limit = 10};
	struct buf text = BUF_INIT(256);

	ASK_OK(store_list_redeliveries, &l);
	for (size_t i = 0; i < l.n; i++)
		buf_appendf(&text, "%s%s", i ? " " : "", l.list[i].guid);
	list_redeliveries_release(&l);
	return buf_detach(&text);
}

#define EXPECT_DUE(now_ms, since_ms, expected)                                                                         \
	do {                                                                                                           \
		char *due = due_redeliveries(now_ms, since_ms);                                                        \
		assert_string_equal(due, expected);                                                                    \
		free(due);                                                                                             \
	} while (0)

/* The n-th request is n * n minutes before the next one, and the time of the failure ends them. */
static void failed_deliveries_are_due_less_and_less_often(void **state)
{
	struct failed_delivery failed[] = {
	    {9, T0 - MINUTE, UUID}, {8, T0 - HOUR, "old"}, {7, T0 - MINUTE, "here"}, {6, T0, "refused"}};
	const char *arrived[] = {"old"};
	struct note_deliveries note = {.failed = failed, .n_failed = ARRAY_LEN(failed), .now_ms = T0};
	struct note_deliveries later = {.arrived = arrived, .n_arrived = 1, .now_ms = T0};
	struct count_redelivery count = {.guid = UUID}, refused = {.guid = "refused", .is_over = true};
	struct count_redelivery unknown = {.guid = "unknown", .now_ms = T0};
	struct failed_delivery found = {10, T0 + 2 * DAY, "unknown"};
	struct note_deliveries learned = {.failed = &found, .n_failed = 1, .now_ms = T0 + DAY};
	struct shift_clock shift = {.delta_ms = DAY, .now_ms = T0 + DAY};
	int64_t at_ms = T0;

	(void)state;
	rig_put("here", "{}");
	DO_OK(store_note_deliveries, &note);
	EXPECT_DUE(T0, 0, "refused old " UUID);
	EXPECT_DUE(T0, T0 - HOUR, "refused " UUID);
	DO_OK(store_count_redelivery, &refused);
	for (int n = 1; n <= 5; n++) {
		count.now_ms = at_ms;
		DO_OK(store_count_redelivery, &count);
		DO_OK(store_note_deliveries,
		    &note); /* each failure again: it changes nothing, but the refused one is new */
		DO_OK(store_count_redelivery, &refused);
		at_ms += n * n * MINUTE;
		EXPECT_DUE(at_ms - 1, 0, "old");
		EXPECT_DUE(at_ms, 0, "old " UUID);
	}
	DO_OK(store_note_deliveries, &later);
	rig_reopen();
	EXPECT_DUE(at_ms, 0, UUID);
	DO_OK(store_shift_clock, &shift);
	EXPECT_DUE(at_ms + DAY - 1, T0 + DAY - HOUR, "");
	EXPECT_DUE(at_ms + DAY, T0 + DAY - HOUR, UUID);
	assert_true(rig_put(UUID, "{}"));
	EXPECT_DUE(at_ms + DAY, 0, "");
	DO_OK(store_count_redelivery, &unknown);
	DO_OK(store_shift_clock, &shift);
	DO_OK(store_note_deliveries, &learned); /* the time of a failure that was unknown before the jump */
	EXPECT_DUE(at_ms + 2 * DAY, T0 + 2 * DAY - HOUR, "unknown");
}

/* ---- the queue ---- */

enum { CROWD = 300 };
struct member {
	struct put_delivery p;
	char guid[16];
	int *n_done;
	int expected;
	bool *is_all_done;
};

static void member_done(struct store_op *op)
{
	struct member *m = CONTAINER_OF(op, struct member, p.op);

	assert_int_equal(op->err, 0);
	assert_int_equal(*m->n_done, m->expected); /* in the order of submission */
	*m->is_all_done = ++*m->n_done == CROWD;
}

static void many_deliveries_share_few_commits(void **state)
{
	struct member *all = xcalloc(CROWD, sizeof(*all));
	struct store_stats stats;
	bool is_all_done = false;
	int n_done = 0;

	(void)state;
	for (int i = 0; i < CROWD; i++) {
		struct member *m = &all[i];

		*m = (struct member){.n_done = &n_done, .expected = i, .is_all_done = &is_all_done};
		snprintf(m->guid, sizeof(m->guid), "g%d", i / 2); /* every other a duplicate */
		m->p = (struct put_delivery){.op.done = member_done,
		    .guid = m->guid,
		    .event = "push",
		    .action = "",
		    .repository = UPSTREAM,
		    .body = "{}",
		    .body_bytes = 2,
		    .now_ms = T0};
		assert_int_equal(store_put_delivery(rig_store, &m->p), 0);
	}
	loop_run_until(rig_loop, &is_all_done);
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(all[i].p.delivery_id == 0, i % 2);
	store_stats(rig_store, &stats);
	assert_int_equal(stats.n_queued_intake, 0);
	if (!server_database()) /* where a beat or a round of seats may be queued */
		assert_int_equal(stats.n_queued_bytes, 0);
	assert_true(stats.n_commits < CROWD / 2);
	free(all);
}

static void count_done(struct store_op *op)
{
	(void)op;
	rig_is_done = true;
}

static void a_full_queue_refuses_at_once(void **state)
{
	struct put_delivery p[8];
	struct mark_delivery m = {.op.done = count_done, .delivery_id = 99};
	struct error e = {0};
	int n_taken = 0;

	(void)state;
	rig_close();
	assert_int_equal(rig_open_with(&(struct store_options){.max_queue_ops = 4}, &e), 0);
	for (int i = 0; i < 8; i++) {
		p[i] = (struct put_delivery){.op.done = count_done,
		    .guid = "g",
		    .event = "push",
		    .action = "",
		    .repository = UPSTREAM,
		    .body = "{}",
		    .body_bytes = 2,
		    .now_ms = T0};
		/* The queue does not shrink before the loop turns. */
		n_taken += store_put_delivery(rig_store, &p[i]) == 0;
	}
	assert_int_equal(n_taken, 4); /* a queue of 4 has no quarter to keep */
	assert_int_equal(store_mark_delivery(rig_store, &m), ERR_BUSY);
	rig_close(); /* accepted operations finish before the close */
	rig_open();
}

static void intake_leaves_room_for_other_operations(void **state)
{
	struct put_delivery p[100];
	struct mark_delivery m = {.op.done = count_done, .delivery_id = 99};
	struct error e = {0};
	int n_taken = 0;

	(void)state;
	rig_close();
	assert_int_equal(rig_open_with(&(struct store_options){.max_queue_ops = 100}, &e), 0);
	for (int i = 0; i < 100; i++) {
		p[i] = (struct put_delivery){.op.done = count_done,
		    .guid = "g",
		    .event = "push",
		    .action = "",
		    .repository = UPSTREAM,
		    .body = "{}",
		    .body_bytes = 2,
		    .now_ms = T0};
		n_taken += store_put_delivery(rig_store, &p[i]) == 0;
	}
	assert_in_range(n_taken, 75, 77);
	assert_int_equal(store_mark_delivery(rig_store, &m), 0);
	rig_close();
	rig_open();
}

static void large_bodies_are_bounded_together(void **state)
{
	char *body = xcalloc(1, 1 << 20);
	struct put_delivery p[4];
	struct mark_delivery m = {.op.done = count_done, .delivery_id = 99, .mark = DELIVERY_MARK_IGNORED};
	struct error e = {0};
	int n_taken = 0;

	(void)state;
	rig_close();
	assert_int_equal(rig_open_with(&(struct store_options){.max_queue_bytes = 1 << 19}, &e), 0);
	for (int i = 0; i < 4; i++) {
		p[i] = (struct put_delivery){.op.done = count_done,
		    .guid = "g",
		    .event = "push",
		    .action = "",
		    .repository = UPSTREAM,
		    .body = body,
		    .body_bytes = 1 << 20,
		    .now_ms = T0};
		/* small operations always run: they are no reason to refuse a large body */
		if (i == 0)
			assert_int_equal(store_mark_delivery(rig_store, &m), 0);
		n_taken += store_put_delivery(rig_store, &p[i]) == 0;
	}
	assert_int_equal(n_taken, 1); /* the last body may have any size */
	rig_close();
	rig_open();
	free(body);
}

static int do_nothing(struct store_op *op, struct txn *d)
{
	(void)op;
	(void)d;
	return 0;
}

static void long_operations_leave_room_for_others(void **state)
{
	enum { LONG = 600 << 10 };
	struct store_op ops[] = {
	    {.bytes = LONG}, {.bytes = LONG}, {.bytes = 2}, {.bytes = 2}, {.bytes = LONG, .is_intake = true}};
	static const bool expected[] = {true, false, true, true, true};
	bool is_taken[ARRAY_LEN(ops)];
	struct error e = {0};

	(void)state;
	rig_close();
	assert_int_equal(rig_open_with(&(struct store_options){.max_queue_bytes = 1 << 20}, &e), 0);
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		ops[i].run = do_nothing;
		ops[i].done = count_done;
		is_taken[i] = store_submit(rig_store, &ops[i]) == 0;
	}
	rig_close();
	rig_open();
	assert_memory_equal(is_taken, expected, sizeof(expected));
}

static void count_closed(struct store_op *op)
{
	int *n = (int *)(void *)CONTAINER_OF(op, struct mark_delivery, op)->error;

	++*n;
}

static void closing_finishes_queued_operations(void **state)
{
	struct mark_delivery m[20];
	int n_done = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		m[i] =
		    (struct mark_delivery){.op.done = count_closed, .delivery_id = 99, .error = (const char *)&n_done};
		m[i].mark = DELIVERY_MARK_IGNORED;
		assert_int_equal(store_mark_delivery(rig_store, &m[i]), 0);
	}
	rig_close();
	assert_int_equal(n_done, 20);
	rig_open();
}

static void a_failed_operation_does_not_undo_others(void **state)
{
	struct mark_delivery m = {.delivery_id = 4711, .error = "?"};
	struct get_totals t = {.now_ms = T0};

	(void)state;
	rig_put("a", "{}");
	assert_int_equal(DO(store_mark_delivery, &m), ERR_NOT_FOUND);
	assert_true(strlen(m.op.why.text) > 0);
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.n_deliveries_accepted, 1);
	assert_int_equal(t.n_deliveries_ignored, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(a_delivery_is_stored_once),
	    TEST(every_kind_of_guid_is_its_own),
	    TEST(guids_with_a_time_are_in_its_order),
	    TEST(large_and_odd_bodies_are_read_back),
	    TEST(the_planner_gets_each_delivery_until_it_is_marked),
	    TEST(lists_are_bounded),
	    TEST(settings_and_redelivery_counts_are_durable),
	    TEST(failed_deliveries_are_due_less_and_less_often),
	    TEST(many_deliveries_share_few_commits),
	    TEST(a_full_queue_refuses_at_once),
	    TEST(intake_leaves_room_for_other_operations),
	    TEST(large_bodies_are_bounded_together),
	    TEST(long_operations_leave_room_for_others),
	    TEST(closing_finishes_queued_operations),
	    TEST(a_failed_operation_does_not_undo_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
