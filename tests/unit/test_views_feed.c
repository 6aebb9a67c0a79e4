/* The data of the feed and of the gauges of /metrics: regressions and their ends, newest first, and the state of each
 * accelerator. Accelerators at L1 are in neither. */
#include "store_rig.h"

#include "db/db.h"
#include "views/feed_events.h"
#include "views/gauges.h"

struct write_rows {
	struct store_op op;
	void (*write)(struct txn *d);
};

static int write_run(struct store_op *op, struct txn *d)
{
	CONTAINER_OF(op, struct write_rows, op)->write(d);
	return db_status(d);
}

static int submit(struct store *s, struct write_rows *w)
{
	w->op.run = write_run;
	return store_submit(s, &w->op);
}

static void rows(void (*write)(struct txn *d))
{
	struct write_rows w = {.write = write};

	DO_OK(submit, &w);
}

static struct list_feed_events events(void)
{
	struct list_feed_events l = {0};

	ASK_OK(store_list_feed_events, &l);
	return l;
}

static void add_accelerators(struct txn *d)
{
	static const char *const names[] = {"npu", "quiet"};

	for (int i = 0; i < 2; i++)
		db_exec(d,
		    "INSERT INTO accelerator (name, title, level, oncall, is_gone, first_ms,"
		    " last_report_ms) VALUES (?1, upper(?1), ?2, '[]', 0, 1, ?3)",
		    V_TEXT(names[i]), V_INT(i ? 1 : 2), V_INT(T0));
}

static void add_episode(struct txn *d, const char *name, int64_t from_ms, int64_t to_ms, int64_t n)
{
	db_exec(d,
	    "INSERT INTO red_episode (accelerator, repository_key, ref, first_bad_change,"
	    " first_bad_ms, ended_ms, issue_repository, issue_number)"
	    " VALUES (?1, 'pytorch/pytorch', 'b' || ?4, 1, ?2, ?3, 'a/b', 9)",
	    V_TEXT(name), V_INT(from_ms), V_INT_OR_NULL(to_ms), V_INT(n));
}

static void add_test(struct txn *d, const char *name, const char *state, int64_t id, int64_t day)
{
	db_exec(d,
	    "INSERT INTO test (id, suite, name, dtype) VALUES (?1, 'unit', 't' || ?1, '')"
	    " ON CONFLICT DO NOTHING",
	    V_INT(id));
	db_exec(d,
	    "INSERT INTO history (accelerator, test_id, suite, state, since_day, first_bad_day)"
	    " VALUES (?1, ?2, 'unit', ?3, ?4, ?4)",
	    V_TEXT(name), V_INT(id), V_TEXT(state), V_INT(day));
}

static void add_nightly(struct txn *d, const char *name, int64_t day)
{
	db_exec(d,
	    "INSERT INTO history_run (accelerator, day, run_id, at_ms, repository, upstream_sha,"
	    " is_self_report, is_judged, job_keys, cells)"
	    " VALUES (?1, ?2, 1, ?3, 'pytorch/pytorch', ?4, 0, 1, '', x'')",
	    V_TEXT(name), V_INT(day), V_INT(day * DAY + HOUR), V_TEXT(HEAD_B));
}

static void a_few(struct txn *d)
{
	int64_t today = T0 / DAY;

	add_accelerators(d);
	db_exec(d,
	    "INSERT INTO change (id, kind, repository, repository_key, head_sha, state, created_ms,"
	    " active_ms) VALUES (1, 'push', 'p/p', 'p/p', ?1, 'open', 1, 1)",
	    V_TEXT(HEAD_A));
	add_episode(d, "npu", T0 - 5 * DAY, T0 - 4 * DAY, 1);
	add_episode(d, "npu", T0, 0, 2);
	add_episode(d, "quiet", T0, 0, 3);
	add_nightly(d, "npu", today - 1);
	add_nightly(d, "npu", today - 2);
	add_nightly(d, "quiet", today - 1);
	for (int64_t i = 1; i <= 12; i++)
		add_test(d, "npu", "regression", i, today - 1);
	add_test(d, "npu", "fixed", 20, today - 1);
	add_test(d, "npu", "still_failing", 21, today - 2);
	add_test(d, "npu", "passing", 22, today - 2);
	add_test(d, "quiet", "regression", 1, today - 1);
}

static void events_are_listed_newest_first(void **state)
{
	static const struct {
		enum feed_event_kind kind;
		size_t n_tests, n_named;
	} expected[] = {{FEED_RED, 0, 0}, {FEED_NIGHTLY_GREEN, 1, 1}, {FEED_NIGHTLY_RED, 12, 10},
	    {FEED_NIGHTLY_RED, 1, 1}, {FEED_NOT_RED, 0, 0}, {FEED_RED, 0, 0}};
	struct list_feed_events l;

	(void)state;
	rows(a_few);
	l = events();
	assert_int_equal(l.n, ARRAY_LEN(expected));
	for (size_t i = 0; i < l.n; i++) {
		const struct feed_event *e = &l.list[i];

		assert_int_equal(e->kind, expected[i].kind);
		assert_int_equal(e->n_tests, expected[i].n_tests);
		if (e->tests)
			assert_int_equal(strv_len((const char *const *)e->tests), expected[i].n_named);
		assert_string_equal(e->accelerator, "npu");
		assert_string_equal(e->title, "NPU");
	}
	assert_string_equal(l.list[0].sha, HEAD_A);
	assert_int_equal(l.list[0].issue_number, 9);
	assert_string_equal(l.list[1].sha, HEAD_B);
	assert_string_equal(l.list[1].tests[0], "unit/t20");
	list_feed_events_release(&l);
}

static void a_lot(struct txn *d)
{
	add_accelerators(d);
	for (int64_t i = 0; i < 80; i++) {
		add_episode(d, "npu", T0 + i * MINUTE, T0 + i * MINUTE + 1, i);
		add_nightly(d, "npu", i);
		add_test(d, "npu", "regression", i + 1, i);
	}
}

static void the_feed_has_at_most_fifty_events(void **state)
{
	struct list_feed_events l;

	(void)state;
	rows(a_lot);
	l = events();
	assert_int_equal(l.n, FEED_EVENTS_MAX);
	for (size_t i = 0; i < l.n; i++)
		assert_int_equal(l.list[i].at_ms, T0 + (79 - (int64_t)i / 2) * MINUTE + !(i % 2));
	list_feed_events_release(&l);
}

static void add_work(struct txn *d)
{
	a_few(d);
	for (int i = 0; i < 4; i++)
		db_exec(d,
		    "INSERT INTO job (change_id, dispatch_id, accelerator, runner, workflow, name,"
		    " run_id, run_attempt, status, verdict, is_current, is_late, is_push, n_tests,"
		    " n_red, reported_ms) VALUES (1, 'x', 'npu', 'ci', 'w', 'n', ?1, 1, "
		    "'completed',"
		    " ?2, 1, 0, 1, 0, 0, ?3)",
		    V_INT(i), V_TEXT(i ? "PASS" : "MISS"), V_INT(T0));
	db_exec(d,
	    "INSERT INTO outbox (kind, key, lane, target, target_key, number, dispatch_id, runner,"
	    " delivery_guid, event_type, sent_action, original_action, state, n_attempts, first_ms,"
	    " next_ms, generation, is_uncertain, is_dropped) VALUES ('comment', 'k', 'l', '', '', "
	    "1,"
	    " '', '', '', '', '', '', 'waiting', 0, ?1, ?1, 1, 0, 0)",
	    V_INT(T0 - HOUR));
}

static void gauges_show_the_state_of_each_accelerator(void **state)
{
	struct get_gauges g = {.now_ms = T0 + MINUTE};

	(void)state;
	rows(add_work);
	ASK_OK(store_get_gauges, &g);
	assert_int_equal(g.n, 1);
	assert_string_equal(g.list[0].name, "npu");
	assert_int_equal(g.list[0].at.facts.red_since_ms, T0);
	assert_int_equal(g.list[0].at.facts.last_report_ms, T0);
	assert_int_equal(g.list[0].at.state.status, ACCELERATOR_RED);
	/* jobs outside runs of a push do not count in the figures of the branch */
	assert_int_equal(g.list[0].at.facts.n_runs, 0);
	assert_int_equal(g.outbox[OUTBOX_COMMENT].n_unsent, 1);
	assert_int_equal(g.outbox[OUTBOX_COMMENT].oldest_ms, T0 - HOUR);
	assert_int_equal(g.outbox[OUTBOX_CHECKS].n_unsent, 0);
	get_gauges_release(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(events_are_listed_newest_first, rig_setup, rig_teardown),
	    cmocka_unit_test_setup_teardown(the_feed_has_at_most_fifty_events, rig_setup, rig_teardown),
	    cmocka_unit_test_setup_teardown(gauges_show_the_state_of_each_accelerator, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
