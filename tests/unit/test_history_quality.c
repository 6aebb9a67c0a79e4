/* The numbers that decide a level. */
#include "db/db.h"
#include "history/days.h"
#include "history/red_episodes.h"
#include "history/run_note.h"
#include "history/standings.h"
#include "store_rig.h"

static struct db *db;
static struct txn *txn;
static bool is_noted; /* do the days agree with the runs? */

static int setup(void **state)
{
	struct error e = {0};
	char *path;

	rig_setup(state);
	rig_close(); /* the tables are there */
	path = rig_path();
	assert_int_equal(db_open(path, DB_WRITER, &db, &e), 0);
	free(path);
	assert_int_equal(db_begin(db, DB_WRITER), 0);
	txn = db_txn(db);
	return 0;
}

static int teardown(void **state)
{
	db_close(db);
	return rig_teardown(state);
}

struct one_run {
	const char *accelerator; /* NULL: npu */
	int64_t ended_ms;
	bool is_push;
	const char *outcome;
	int n_dispatches, n_met;
	int64_t queue_ms, run_ms; /* -1: not known */
};

static void put(const struct one_run *r)
{
	static int64_t change_id;

	db_exec(txn,
	    "INSERT INTO run (accelerator, ended_ms, change_id, is_push, outcome, n_dispatches,"
	    " n_met, queue_ms, run_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
	    V_TEXT(r->accelerator ? r->accelerator : "npu"), V_INT(r->ended_ms), V_INT(++change_id), V_INT(r->is_push),
	    V_TEXT(r->outcome), V_INT(r->n_dispatches), V_INT(r->n_met), r->queue_ms < 0 ? V_NULL : V_INT(r->queue_ms),
	    r->run_ms < 0 ? V_NULL : V_INT(r->run_ms));
	assert_int_equal(db_status(db), 0);
	is_noted = false;
}

/* Calls the same functions as the writer of a run. */
static void note_days(void)
{
	struct rows *r = db_rows(db, "SELECT accelerator, MIN(ended_ms) FROM run"
				     " GROUP BY accelerator, ended_ms / 86400000");

	while (rows_next(r))
		day_note(txn, rows_text(r, 0), rows_int(r, 1));
	is_noted = true;
}

static void put_episode(int64_t first_bad_ms, int64_t notified_ms, int64_t ended_ms)
{
	static int n;
	char ref[32];

	snprintf(ref, sizeof(ref), "branch-%d", ++n);
	db_exec(txn,
	    "INSERT INTO red_episode (accelerator, repository_key, ref, first_bad_change,"
	    " first_bad_ms, told_ms, ended_ms) VALUES ('npu', 'o/r', ?4, 1, ?1, ?2, ?3)",
	    V_INT(first_bad_ms), V_INT_OR_NULL(notified_ms), V_INT_OR_NULL(ended_ms), V_TEXT(ref));
	assert_int_equal(db_status(db), 0);
}

static struct quality quality(int64_t now_ms)
{
	struct quality q;

	if (!is_noted)
		note_days();
	quality_read(db_view(db), "npu", now_ms, &q);
	assert_int_equal(db_status(db), 0);
	return q;
}

static void no_runs_give_no_figures(void **state)
{
	struct quality q = quality(T0);

	(void)state;
	assert_int_equal(q.n_push_runs + q.level.n_dispatches + q.n_episodes, 0);
	assert_int_equal(q.queue_p90_ms, -1);
	assert_int_equal(q.run_p90_ms, -1);
	assert_int_equal(q.queue_p50_ms, -1);
	assert_int_equal(q.run_p50_ms, -1);
	assert_int_equal(q.level.reaction_ms, -1);
	assert_int_equal(q.red_since_ms + q.unhealthy_since_ms, 0);
	assert_false(q.is_overdue);
}

static void a_month_is_counted(void **state)
{
	const struct one_run runs[] = {
	    {NULL, T0 - 31 * DAY, true, RUN_RED, 9, 0, 9, 9}, /* too long ago */
	    {"tpu", T0, true, RUN_RED, 9, 0, 9, 9},           /* another's */
	    {NULL, T0 - 29 * DAY, true, RUN_RED, 1, 1, 100, 1000},
	    {NULL, T0 - 2 * DAY, true, RUN_GREEN, 2, 1, 200, 2000},
	    {NULL, T0 - DAY, true, RUN_GREEN, 1, 1, -1, 3000},
	    {NULL, T0 - DAY, true, RUN_NOTHING, 1, 0, -1, -1},
	    {NULL, T0, false, RUN_OWN, 1, 1, 50, 500}, /* no push, but a wait and a run */
	    {NULL, T0, false, RUN_RED, 1, 1, 60, 600},
	};
	struct quality q;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		put(&runs[i]);
	q = quality(T0);
	assert_int_equal(q.n_push_runs, 3);
	assert_int_equal(q.n_push_green, 2);
	assert_int_equal(q.level.n_dispatches, 7);
	assert_int_equal(q.level.n_deadlines_met, 5);
	assert_int_equal(q.queue_p50_ms, 60);
	assert_int_equal(q.queue_p90_ms, 200);
	assert_int_equal(q.run_p50_ms, 1000);
	assert_int_equal(q.run_p90_ms, 3000);
}

static void nine_of_ten_are_within_the_p90(void **state)
{
	struct quality q;

	(void)state;
	for (int i = 1; i <= 10; i++)
		put(&(struct one_run){NULL, T0 - i, false, RUN_GREEN, 1, 1, i * 10, i * 100});
	q = quality(T0);
	assert_int_equal(q.queue_p90_ms, 90);
	assert_int_equal(q.run_p90_ms, 900);
	assert_int_equal(q.queue_p50_ms, 50);
}

static void the_reaction_time_is_from_notification_to_green(void **state)
{
	struct quality q;

	(void)state;
	put_episode(T0 - 60 * DAY, T0 - 60 * DAY, T0 - 50 * DAY); /* over long ago */
	put_episode(T0 - 40 * DAY, T0 - 40 * DAY, T0 - 20 * DAY); /* ended within the time */
	put_episode(T0 - 10 * DAY, T0 - 9 * DAY, T0 - 7 * DAY);
	put_episode(T0 - 5 * DAY, 0, T0 - 3 * DAY); /* the notification was not possible */
	q = quality(T0);
	assert_int_equal(q.n_episodes, 3);
	assert_int_equal(q.level.reaction_ms, 8 * DAY);
	assert_int_equal(q.red_since_ms, 0);
	put_episode(T0 - 71 * HOUR, T0 - 71 * HOUR, 0);
	q = quality(T0);
	assert_int_equal(q.n_episodes, 4);
	assert_int_equal(q.level.reaction_ms, 8 * DAY); /* it is not over */
	assert_int_equal(q.red_since_ms, T0 - 71 * HOUR);
	assert_false(q.is_overdue);
	q = quality(T0 + HOUR);
	assert_true(q.is_overdue);
	put_episode(T0 - 100 * HOUR, 0, 0); /* on another branch, for longer */
	assert_int_equal(quality(T0).red_since_ms, T0 - 100 * HOUR);
}

static void a_busy_month_is_read(void **state)
{
	(void)state;
	for (int i = 0; i < 30000; i++)
		put(&(struct one_run){i % 2 ? "tpu" : NULL, T0 - INT64_C(80000) * i, i % 10 == 0, RUN_GREEN, 1, 1,
		    INT64_C(7919) * i % 100000, INT64_C(104729) * i % 1000000});
	note_days();
	assert_int_equal(quality(T0).level.n_dispatches, 15000);
}

static int by_size(const void *x, const void *y)
{
	const int64_t *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

static int64_t ranked(int64_t *ms, size_t n, size_t percent)
{
	qsort(ms, n, sizeof(*ms), by_size);
	return n ? ms[(n * percent + 99) / 100 - 1] : -1;
}

/* Compares with a walk over all runs, which the stored days replace. */
static struct quality walked(int64_t after_ms)
{
	struct quality q = {0};
	int64_t queue[2000], run[2000];
	size_t n_queue = 0, n_run = 0;
	struct rows *r = db_rows(db,
	    "SELECT is_push <> 0 AND outcome <> 'nothing', is_push <> 0 AND outcome = 'green', n_dispatches,"
	    " n_met, queue_ms, run_ms FROM run WHERE accelerator = 'npu' AND ended_ms >= ?1",
	    V_INT(after_ms));

	while (rows_next(r)) {
		q.n_push_runs += rows_int(r, 0);
		q.n_push_green += rows_int(r, 1);
		q.level.n_dispatches += rows_int(r, 2);
		q.level.n_deadlines_met += rows_int(r, 3);
		if (!rows_is_null(r, 4))
			queue[n_queue++] = rows_int(r, 4);
		if (!rows_is_null(r, 5))
			run[n_run++] = rows_int(r, 5);
	}
	q.queue_p50_ms = ranked(queue, n_queue, 50);
	q.queue_p90_ms = ranked(queue, n_queue, 90);
	q.run_p50_ms = ranked(run, n_run, 50);
	q.run_p90_ms = ranked(run, n_run, 90);
	return q;
}

/* The window may begin at any time of a day. */
static void a_month_of_days_equals_a_month_of_runs(void **state)
{
	static const char *const OUTCOMES[] = {RUN_GREEN, RUN_RED, RUN_OWN, RUN_NOTHING};

	(void)state;
	for (int64_t i = 0; i < 1200; i++)
		put(&(struct one_run){i % 7 ? NULL : "tpu", T0 - i * 3456789, i % 3 == 0, OUTCOMES[i * 31 % 4],
		    (int)(i % 3), (int)(i % 2), i % 11 ? i * i * 7919 % 100000000 : -1,
		    i % 13 ? i * 104729 % 5000000 : -1});
	for (int64_t k = 0; k < 9; k++) {
		int64_t now_ms = T0 - k * 11 * HOUR;
		struct quality is = quality(now_ms), want = walked(now_ms - QUALITY_DAYS_MS);

		assert_int_equal(is.n_push_runs, want.n_push_runs);
		assert_int_equal(is.n_push_green, want.n_push_green);
		assert_int_equal(is.level.n_dispatches, want.level.n_dispatches);
		assert_int_equal(is.level.n_deadlines_met, want.level.n_deadlines_met);
		assert_int_equal(is.queue_p50_ms, want.queue_p50_ms);
		assert_int_equal(is.queue_p90_ms, want.queue_p90_ms);
		assert_int_equal(is.run_p50_ms, want.run_p50_ms);
		assert_int_equal(is.run_p90_ms, want.run_p90_ms);
	}
}

static void runs_that_retention_deleted_still_count(void **state)
{
	(void)state;
	put(&(struct one_run){NULL, T0 - 20 * DAY, true, RUN_RED, 2, 1, 500, 7000});
	put(&(struct one_run){NULL, T0, true, RUN_GREEN, 1, 1, 100, 1000});
	assert_int_equal(quality(T0).level.n_dispatches, 3);
	runs_drop(txn, db_int(db, 0, "SELECT MIN(change_id) FROM run"));
	assert_int_equal(quality(T0).level.n_dispatches, 3);
	assert_int_equal(quality(T0).queue_p90_ms, 500);
}

static void packed_times_are_read_back(void **state)
{
	static const int64_t MS[] = {0, 70000, 127, 0, 128, INT64_C(1) << 40, 5};
	struct times t = times_new(10), back = times_new(10);
	struct buf packed = BUF_INIT(100);
	struct record_blob whole, cut;

	(void)state;
	t.ms = xcalloc(ARRAY_LEN(MS), sizeof(*MS));
	memcpy(t.ms, MS, sizeof(MS));
	t.n = ARRAY_LEN(MS);
	assert_int_equal(percentile(&t, 1), 0);
	assert_int_equal(percentile(&t, 50), 127);
	assert_int_equal(percentile(&t, 100), INT64_C(1) << 40);
	times_pack(&t, &packed);
	whole = (struct record_blob){packed.data, packed.len};
	cut = (struct record_blob){packed.data, packed.len - 1};
	times_add_packed(&back, &(struct record_blob){0});
	assert_int_equal(back.n, 0);
	times_add_packed(&back, &whole);
	assert_int_equal(back.n, t.n);
	assert_memory_equal(back.ms, t.ms, t.n * sizeof(*t.ms));
	times_add_packed(&back, &cut); /* truncated, and more than fits */
	assert_int_equal(back.n, 10);
	buf_release(&packed);
	times_release(&t);
	times_release(&back);
}

static int by_time(const void *x, const void *y)
{
	const int64_t *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

/* Of few and many times, of close and distant ones, and of equal ones. */
static void a_percentile_is_that_of_the_sorted_times(void **state)
{
	static const int64_t ranges[] = {1, 2, 255, 256, 257, 70000, INT64_C(1) << 40, INT64_MAX};
	uint64_t seed = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		for (size_t n = 1; n < 400; n = n * 3 + 1) {
			struct times t = times_new(n);
			int64_t sorted[400];

			for (size_t k = 0; k < n; k++) {
				seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
				times_add(&t, (int64_t)(seed >> 1) % ranges[i]);
			}
			memcpy(sorted, t.ms, n * sizeof(*sorted));
			qsort(sorted, n, sizeof(*sorted), by_time);
			for (size_t percent = 1; percent <= 100; percent++)
				assert_int_equal(percentile(&t, percent), sorted[(n * percent + 99) / 100 - 1]);
			times_release(&t);
		}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(no_runs_give_no_figures),
	    TEST(a_month_is_counted),
	    TEST(nine_of_ten_are_within_the_p90),
	    TEST(the_reaction_time_is_from_notification_to_green),
	    TEST(a_month_of_days_equals_a_month_of_runs),
	    TEST(runs_that_retention_deleted_still_count),
	    TEST(packed_times_are_read_back),
	    TEST(a_percentile_is_that_of_the_sorted_times),
	    TEST(a_busy_month_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
