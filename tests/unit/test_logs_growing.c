/* Logs that grow in the database: appends of several daemons, reading while a log runs and after its end, moving, retention. It runs on SQLite,
 * and on PostgreSQL where OUTPOST_TEST_DATABASE names one. */
#include "logs_rig.h"

#include "db/db.h"
#include "empty_store.h"
#include "store/log_rows.h"

static char *shared;         /* the folder of finished logs */
static struct logs *another; /* of another daemon on the same database */

static void open_store(void)
{
	struct error e = {0};

	empty_store_put(rig_dir);
	if (store_open(
		rig_loop, &(struct store_options){.state_dir = rig_dir, .database = server_database()}, &rig_store, &e))
		fail_msg("%s", e.text);
}

static int setup_database(void **state)
{
	rig_setup_folder(state);
	shared = xasprintf("%s/shared", rig_dir);
	assert_int_equal(mkdir(shared, 0700), 0);
	open_store();
	rig_place.is_database = true;
	rig_open();
	return 0;
}

static int setup_shared(void **state)
{
	setup_database(state);
	rig_close();
	rig_place.is_database = false;
	rig_place.folder = shared;
	rig_open();
	return 0;
}

static void closed(void *is_closed) { *(bool *)is_closed = true; }

static int teardown(void **state)
{
	bool is_closed = false;

	if (rig_logs)
		rig_close();
	store_close(rig_store, closed, &is_closed);
	loop_run_until(rig_loop, &is_closed);
	rig_store = NULL;
	FREE_AND_NULL(shared);
	return rig_teardown(state);
}

/* What the database has. */
static struct db *open_rows(void)
{
	char *path = server_database() ? xstrdup(server_database()) : path_join(rig_dir, "outpost.db");
	struct error e = {0};
	struct db *d;

	if (db_open(path, DB_READER, &d, &e))
		fail_msg("%s", e.text);
	free(path);
	return d;
}

#define ASSERT_COUNT(sql, n)                                                                                           \
	do {                                                                                                           \
		struct db *d_ = open_rows();                                                                           \
		assert_int_equal(db_int(d_, 0, sql), n);                                                               \
		db_close(d_);                                                                                          \
	} while (0)

/* Calls with the logs of another daemon. */
static void switch_daemon(void)
{
	struct logs *mine = rig_logs;
	struct error e = {0};

	if (!another) {
		char *dir = path_join(rig_dir, "another");

		mkdir(dir, 0700);
		if (logs_open(rig_loop, dir, &another, &e))
			fail_msg("%s", e.text);
		logs_grow_in(another, rig_store);
		if (logs_keep_in(another, &rig_place, rig_client, &e))
			fail_msg("%s", e.text);
		free(dir);
	}
	rig_logs = another;
	another = mine;
}

static void close_another(void)
{
	switch_daemon();
	rig_close();
	rig_logs = another;
	another = NULL;
}

static void assert_ranges(int64_t job, const char *text, size_t n, bool is_complete)
{
	for (int i = 0; i < 40; i++) {
		int64_t offset = (int64_t)(random_fraction() * (double)(n + 1));
		size_t max = (size_t)(random_fraction() * 300000), left = n - (size_t)offset;

		assert_int_equal(rig_read(job, offset, max), 0);
		assert_int_equal(read_end, n);
		assert_int_equal(read_is_complete, is_complete);
		assert_true(read_n <= max && read_n <= left);
		assert_true(read_n > 0 || max == 0 || left == 0);
		assert_memory_equal(read_bytes, text + offset, read_n);
	}
	assert_int_equal(rig_read(job, (int64_t)n + 1, 10), ERR_RANGE);
	assert_int_equal(rig_read(job, -1, 10), ERR_RANGE);
}

/* ---- appending ---- */

static void pieces_make_one_text(void **state)
{
	(void)state;
	ASSERT_PUT(1, 0, "", 0, 0); /* asks for the length */
	assert_int_equal(rig_read(1, 0, 10), ERR_NOT_FOUND);
	ASSERT_PUT(1, 0, "hello ", 0, 6);
	ASSERT_PUT(1, 6, "world", 0, 11);
	ASSERT_TEXT(1, "hello world");
	assert_false(read_is_complete);
	ASSERT_PUT(1, 6, "world", 0, 11);  /* once more */
	ASSERT_PUT(1, 6, "world!", 0, 12); /* a part of it is new */
	ASSERT_PUT(1, 20, "gap", ERR_RANGE, 12);
	ASSERT_PUT(1, -1, "x", ERR_RANGE, 12);
	ASSERT_PUT(1, LOG_MAX_BYTES, "x", ERR_TOO_BIG, 12);
	ASSERT_TEXT(1, "hello world!");
	ASSERT_LAST(1, 12, "\n", 0, 13);
	assert_true(put_is_complete);
	ASSERT_LAST(1, 12, "\n", 0, 13);
	ASSERT_PUT(1, 13, "more", ERR_EXISTS, 13);
	ASSERT_TEXT(1, "hello world!\n");
	assert_true(read_is_complete);
	ASSERT_LAST(2, 0, "", 0, 0); /* an empty log */
	assert_int_equal(rig_read(2, 0, 10), 0);
	assert_int_equal(read_n, 0);
	assert_true(read_is_complete);
	assert_int_equal(logs_stats(rig_logs)->n_bytes_in, 13);
}

/* A log of single bytes has no row for each. */
static void small_pieces_share_rows(void **state)
{
	char *text = rig_random_text(20000);

	(void)state;
	for (int i = 0; i < 200; i++)
		assert_int_equal(rig_put(1, i * 100, text + i * 100, 100, false), 0);
	assert_ranges(1, text, 20000, false);
	ASSERT_COUNT("SELECT COUNT(*) FROM log_piece", 3); /* a row grows to 8 KiB */
	free(text);
}

static void daemons_append_in_turn(void **state)
{
	char *text = rig_random_text(100000);

	(void)state;
	for (int i = 0; i < 100; i++) {
		/* each sends the other's last piece again */
		int64_t from = i ? (i - 1) * 1000 : 0, to = (i + 1) * 1000;

		switch_daemon();
		assert_int_equal(rig_put(1, from, text + from, (size_t)(to - from), false), 0);
		assert_int_equal(put_end, to);
	}
	assert_ranges(1, text, 100000, false);
	ASSERT_LAST(1, 100000, "", 0, 100000);
	rig_wait_moved(1);
	assert_ranges(1, text, 100000, true);
	switch_daemon();
	assert_ranges(1, text, 100000, true);
	switch_daemon();
	close_another();
	free(text);
}

/* The same piece comes over two daemons at the same time: the second one's statement waits for the first one's commit, and sees its end. */
static void a_race_for_a_piece_adds_it_once(void **state)
{
	struct error e = {0};
	struct db *d;
	struct put p;

	(void)state;
	if (!server_database())
		skip();
	ASSERT_PUT(1, 0, "one ", 0, 4);
	assert_int_equal(db_open(server_database(), DB_WRITER, &d, &e), 0);
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	assert_int_equal(db_exec_count(db_txn(d), "UPDATE log SET bytes = 8 WHERE job_id = 1 AND bytes = 4"), 1);
	db_exec(db_txn(d), "UPDATE log_piece SET bytes = ?1 WHERE job_id = 1", V_BLOB("one two ", 8));
	rig_put_start(&p, 1, 4, "two three ", 10, false);
	/* until the other's connection waits for ours */
	while (
	    !db_has(d, "SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))")) {
		static bool is_read;

		is_read = false;
		loop_run_until(rig_loop, (rig_read(2, 0, 0), is_read = true, &is_read));
	}
	assert_int_equal(db_commit(d), 0);
	loop_run_until(rig_loop, &p.is_done);
	assert_int_equal(p.a.err, 0);
	assert_int_equal(p.a.end, 14);
	ASSERT_TEXT(1, "one two three ");
	db_close(d);
}

/* ---- moving ---- */

static void a_finished_log_is_compressed_in_the_database(void **state)
{
	const size_t n = 3 << 20;
	char *text = rig_random_text(n);

	(void)state;
	for (size_t at = 0; at < n; at += 1 << 18)
		assert_int_equal(rig_put(7, (int64_t)at, text + at, 1 << 18, false), 0);
	assert_ranges(7, text, n, false);
	ASSERT_COUNT("SELECT COUNT(*) FROM log_piece", 12);
	ASSERT_LAST(7, (int64_t)n, "", 0, (int64_t)n);
	rig_wait_moved(1);
	ASSERT_COUNT("SELECT COUNT(*) FROM log_piece", 0);
	ASSERT_COUNT("SELECT COUNT(*) FROM log_object WHERE length(bytes) > 262144", 0);
	ASSERT_COUNT("SELECT COUNT(*) FROM log WHERE place = 'database' AND has_pieces = 0"
		     " AND object_bytes = (SELECT SUM(length(bytes)) FROM log_object)",
	    1);
	assert_ranges(7, text, n, true);
	rig_reopen(); /* without the table that was read */
	assert_ranges(7, text, n, true);
	ASSERT_PUT(7, 0, "x", 0, (int64_t)n);
	ASSERT_PUT(7, (int64_t)n, "x", ERR_EXISTS, (int64_t)n);
	assert_int_equal(logs_stats(rig_logs)->n_to_move, 0);
	free(text);
}

static void a_finished_log_moves_to_the_folder(void **state)
{
	const size_t n = 600000;
	char *text = rig_random_text(n), *path = path_join(shared, "000000001/1234.log.zst");

	(void)state;
	rig_put_whole(1234, text);
	rig_put_whole(1, "short");
	rig_wait_moved(2);
	assert_int_equal(access(path, F_OK), 0);
	ASSERT_COUNT("SELECT COUNT(*) FROM log_piece", 0);
	ASSERT_COUNT("SELECT COUNT(*) FROM log_object", 0);
	ASSERT_COUNT("SELECT COUNT(*) FROM log WHERE place = 'elsewhere'", 2);
	assert_ranges(1234, text, n, true);
	ASSERT_TEXT(1, "short");
	ASSERT_PUT(1, 0, "short", 0, 5);
	FREE_ALL(text, path);
}

/* The folder fails, another daemon finishes it after the restart, and a log that was stored in the database stays readable. */
static void a_log_waits_while_its_place_fails(void **state)
{
	char *path = path_join(shared, "000000000");

	(void)state;
	fclose(fopen(path, "w"));
	rig_put_whole(5, "waits");
	READ_UNTIL_FAILURE(0, 5, "waits");
	assert_int_equal(logs_stats(rig_logs)->n_to_move, 1);
	ASSERT_COUNT("SELECT COUNT(*) FROM log_piece", 1);
	assert_int_equal(remove(path), 0);
	rig_wait_moved(1);
	assert_int_equal(logs_stats(rig_logs)->n_to_move, 0);
	ASSERT_TEXT(5, "waits");
	rig_close();
	rig_place = (struct log_place_options){.is_database = true};
	rig_open();
	rig_put_whole(6, "in the database");
	rig_wait_moved(1);
	rig_close();
	rig_place = (struct log_place_options){.folder = shared};
	rig_open();
	ASSERT_TEXT(6, "in the database");
	free(path);
}

/* What a daemon leaves that dies at any step is finished by the next one. */
static void a_log_that_a_dead_daemon_left_is_moved(void **state)
{
	static const char *const left[] = {
	    /* it was moving */
	    "UPDATE log SET moving_until_ms = 1, mover = 5",
	    /* a part of the object is written */
	    "UPDATE log SET moving_until_ms = 1, mover = 5; INSERT INTO log_object VALUES (9, 0, '12'), (9, 262144, "
	    "'34')",
	};
	struct error e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(left); i++) {
		char *path = server_database() ? xstrdup(server_database()) : path_join(rig_dir, "outpost.db");
		struct put_log_piece p = {
		    .job_id = 9, .bytes = "of a dead one", .n = 13, .is_last = true, .now_ms = clock_wall_ms()};
		struct db *d;

		rig_close();
		assert_int_equal(db_open(path, DB_WRITER, &d, &e), 0);
		assert_int_equal(db_script(d, "DELETE FROM log; DELETE FROM log_object; DELETE FROM log_piece", &e), 0);
		db_exec(db_txn(d),
		    "INSERT INTO log (job_id, bytes, tail_at, is_complete, has_pieces, written_ms) VALUES (9, 13, 0, "
		    "1, 1, ?1)",
		    V_INT(p.now_ms));
		db_exec(db_txn(d), "INSERT INTO log_piece (job_id, at, bytes) VALUES (9, 0, ?1)", V_BLOB(p.bytes, p.n));
		if (db_script(d, left[i], &e))
			fail_msg("%s", e.text);
		db_close(d);
		free(path);
		rig_open();
		rig_wait_moved(1);
		ASSERT_TEXT(9, "of a dead one");
		ASSERT_COUNT("SELECT COUNT(*) FROM log_piece", 0);
		ASSERT_COUNT("SELECT COUNT(*) FROM log_object", 1);
	}
}

/* The logs of the time before the database. */
static void logs_of_the_folder_are_moved(void **state)
{
	struct store *store = rig_store;

	(void)state;
	rig_close();
	rig_store = NULL;
	rig_place = (struct log_place_options){0};
	rig_open();
	rig_put_whole(3, "from the folder");
	rig_wait_packed(1);
	rig_close();
	rig_store = store;
	rig_place.is_database = true;
	rig_open();
	rig_wait_moved(1);
	ASSERT_TEXT(3, "from the folder");
	ASSERT_COUNT("SELECT COUNT(*) FROM log WHERE place = 'database' AND bytes = 15 AND is_complete = 1", 1);
	ASSERT_PUT(3, 0, "from the folder", 0, 15);
}

/* ---- watching ---- */

struct watch {
	struct log_watch w;
	bool has_changed;
};

static void on_change(struct log_watch *w) { CONTAINER_OF(w, struct watch, w)->has_changed = true; }

static void the_other_daemon_s_readers_are_notified(void **state)
{
	struct watch x = {.w = {.job_id = 4, .on_change = on_change}};

	(void)state;
	switch_daemon();
	logs_watch(rig_logs, &x.w);
	switch_daemon();
	ASSERT_PUT(4, 0, "one", 0, 3);
	loop_run_until(rig_loop, &x.has_changed);
	x.has_changed = false;
	ASSERT_LAST(4, 3, "", 0, 3); /* its end is a change, too */
	loop_run_until(rig_loop, &x.has_changed);
	logs_unwatch(&x.w);
	close_another();
}

/* ---- retention ---- */

static void old_logs_are_dropped(void **state)
{
	int64_t now = clock_wall_ms();
	char *text = rig_random_text(300000);

	(void)state;
	rig_put_whole(1, text);
	rig_put_whole(2, "short");
	rig_wait_moved(2);
	ASSERT_PUT(3, 0, "open", 0, 4);
	assert_int_equal(rig_drop(now - 1000), 0);
	ASSERT_TEXT(2, "short");
	assert_int_equal(rig_drop(clock_wall_ms() + 1000), 3);
	for (int64_t job = 1; job <= 3; job++)
		assert_int_equal(rig_read(job, 0, 10), ERR_NOT_FOUND);
	ASSERT_COUNT(
	    "SELECT (SELECT COUNT(*) FROM log) + (SELECT COUNT(*) FROM log_piece) + (SELECT COUNT(*) FROM log_object)",
	    0);
	free(text);
}

static void old_logs_of_the_folder_are_dropped_with_their_rows(void **state)
{
	(void)state;
	rig_put_whole(1, "one");
	rig_wait_moved(1);
	assert_int_equal(rig_drop(clock_wall_ms() + 1000), 1);
	assert_int_equal(rig_read(1, 0, 10), ERR_NOT_FOUND);
	ASSERT_COUNT("SELECT COUNT(*) FROM log", 0);
}

/* ---- closing ---- */

static void calls_end_when_logs_close(void **state)
{
	struct put p;
	char *text = rig_random_text(1 << 20);

	(void)state;
	assert_int_equal(rig_put(1, 0, text, 1 << 18, false), 0);
	assert_int_equal(rig_put(1, 1 << 18, text, 1 << 18, true), 0); /* it is being moved */
	rig_put_start(&p, 2, 0, "text", 4, false);
	rig_close();
	assert_true(p.is_done);
	rig_open();
	rig_read(1, 0, 10);
	assert_int_equal(read_end, 1 << 19);
	free(text);
}

#define TEST(f)   cmocka_unit_test_setup_teardown(f, setup_database, teardown)
#define SHARED(f) cmocka_unit_test_setup_teardown(f, setup_shared, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(pieces_make_one_text),
	    TEST(small_pieces_share_rows),
	    TEST(daemons_append_in_turn),
	    TEST(a_race_for_a_piece_adds_it_once),
	    TEST(a_finished_log_is_compressed_in_the_database),
	    SHARED(a_finished_log_moves_to_the_folder),
	    SHARED(a_log_waits_while_its_place_fails),
	    TEST(a_log_that_a_dead_daemon_left_is_moved),
	    TEST(logs_of_the_folder_are_moved),
	    TEST(the_other_daemon_s_readers_are_notified),
	    TEST(old_logs_are_dropped),
	    SHARED(old_logs_of_the_folder_are_dropped_with_their_rows),
	    TEST(calls_end_when_logs_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
