/* The space that results take: by table and accelerator, what retention gives back, and a file that becomes shorter. No page waits
 * while the whole file is read. */
#include "store_rig.h"

#include <semaphore.h>
#include <stdatomic.h>

#include "db/schema.h"
#include "store/space.h"

static char *no_names[] = {NULL};
static struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), GITHUB_WANT("tpu", "google/pytorch")};
enum { TESTS = 4000 };

struct writing {
	struct store_op op;
	void (*work)(struct txn *d);
};

static int writing_run(struct store_op *op, struct txn *d)
{
	CONTAINER_OF(op, struct writing, op)->work(d);
	return 0;
}

static int submit_writing(struct store *s, struct writing *o)
{
	o->op.run = writing_run;
	return store_submit(s, &o->op);
}

static void in_writer(void (*work)(struct txn *d))
{
	struct writing o = {.work = work};

	DO_OK(submit_writing, &o);
}

static int64_t asked;
static const char *question;

static void ask(struct txn *d) { asked = db_int_values(d->view, -1, question, VALUES()); }

static int64_t answer_to(const char *sql)
{
	question = sql;
	in_writer(ask);
	return asked;
}

static void begin(void)
{
	struct accelerator list[] = {{.name = (char *)"npu",
					 .title = (char *)"NPU",
					 .level = LEVEL_2,
					 .oncall = no_names,
					 .must_pass = no_names,
					 .skip = no_names},
	    {.name = (char *)"tpu",
		.title = (char *)"TPU",
		.level = LEVEL_2,
		.oncall = no_names,
		.must_pass = no_names,
		.skip = no_names}};
	struct mirror_registry m = {.list = list, .n = 2, .now_ms = T0};

	DO_OK(store_mirror_registry, &m);
	rig_apply(&(struct rig_plan){.kind = PLAN_START, .head = HEAD_A, .event_ms = T0, .wants = wants, .n_wants = 2});
	free(rig_send(T0));
}

/* Reports a job of TESTS tests, each of which is red or none. */
static void report(const char *accelerator, const char *name, bool is_red)
{
	static struct test_result tests[TESTS];
	static char names[TESTS][24];
	char *id = rig_dispatch_id(HEAD_A, accelerator);
	struct job_report j = {.status = JOB_COMPLETED,
	    .conclusion = (char *)(is_red ? "failure" : "success"),
	    .workflow = (char *)"CI",
	    .name = (char *)name,
	    .run_id = (char *)"1",
	    .run_attempt = 1,
	    .tests = tests,
	    .n_tests = TESTS};
	struct report_job op = {.dispatch_id = id, .report = &j, .accelerator = accelerator, .now_ms = T0};

	for (int i = 0; i < TESTS; i++) {
		snprintf(names[i], sizeof(names[i]), "t%d", i);
		tests[i] = (struct test_result){.suite = (char *)"unit",
		    .name = names[i],
		    .status = is_red ? TEST_FAIL : TEST_PASS,
		    .duration_ms = i * 7919 % 1000,
		    .message = is_red ? (char *)"AssertionError: the tensors are not close" : NULL};
	}
	DO_OK(store_report_job, &op);
	assert_int_equal(op.outcome, REPORT_RECORDED);
	free(id);
}

/* Applies retention until nothing is left to drop. Returns the number of pieces. */
static int drop_all(void)
{
	int n = 0;
	struct apply_retention r = {.results_before_ms = T0 + 900 * DAY, .has_more = true};

	for (; r.has_more; n++)
		DO_OK(store_apply_retention, &r);
	return n;
}

static void forget_requests(struct txn *d)
{
	db_exec(d, "DELETE FROM outbox");
	db_exec(d, "UPDATE pull SET state = 'closed'");
}

static void retention_leaves_no_list_and_no_row(void **state)
{
	int64_t rows_before, rows_after;
	struct apply_retention r = {.results_before_ms = T0 + 900 * DAY};

	(void)state;
	begin();
	report("npu", "red", true);
	report("tpu", "green", false);
	assert_int_equal(answer_to("SELECT n FROM counter WHERE name = 'result'"), 2 * TESTS);
	assert_int_equal(answer_to("SELECT COUNT(*) FROM test_list"), 1);
	in_writer(forget_requests);
	rows_before = answer_to("SELECT COUNT(*) FROM result");
	DO_OK(store_apply_retention, &r);
	assert_true(r.has_more);
	rows_after = answer_to("SELECT COUNT(*) FROM result");
	/* a piece is bounded, and the counter knows what it dropped */
	assert_true(rows_after < rows_before && rows_after > 0);
	assert_int_equal(answer_to("SELECT n FROM counter WHERE name = 'result'"),
	    answer_to("SELECT COUNT(*) + (SELECT COALESCE(SUM(n - n_rows), 0) FROM packed_job) FROM result"));
	assert_true(drop_all() > 2);
	assert_int_equal(answer_to("SELECT n FROM counter WHERE name = 'result'"), 0);
	assert_int_equal(answer_to("SELECT n FROM counter WHERE name = 'job'"), 0);
	assert_int_equal(answer_to("SELECT COUNT(*) FROM change"), 0);
	assert_int_equal(answer_to("SELECT COUNT(*) FROM packed_job"), 0);
	assert_int_equal(answer_to("SELECT COUNT(*) FROM test_list"), 0);
	assert_int_equal(answer_to("SELECT COUNT(*) FROM verdict"), 0);
}

enum { NUMBERS = 900 };

/* One for each test, so that each is on a page of its own in a database of years. */
static void put_numbers(struct txn *d)
{
	db_exec(d,
	    "INSERT INTO number_day (accelerator, test_id, unit, day, at_ms, value, change_id, head_sha, job_id)"
	    " SELECT 'npu', t.id, 's', 1, 1, 1, j.change_id, 'a', j.id FROM job j CROSS JOIN test t WHERE t.id <= "
	    "(SELECT MIN(id) FROM test) + 899");
	assert_int_equal(db_status(d), 0);
}

/* A commit costs as much as the pages that it changes. */
static void a_piece_forgets_few_numbers(void **state)
{
	struct apply_retention r = {.results_before_ms = T0 + 900 * DAY, .has_more = true};
	int64_t n_before = NUMBERS, n_now, n_most = 0;

	(void)state;
	begin();
	report("npu", "green", false);
	in_writer(put_numbers);
	in_writer(forget_requests);
	assert_int_equal(answer_to("SELECT COUNT(*) FROM number_day WHERE job_id > 0"), NUMBERS);
	while (r.has_more) {
		DO_OK(store_apply_retention, &r);
		n_now = answer_to("SELECT COUNT(*) FROM number_day WHERE job_id > 0");
		n_most = n_before - n_now > n_most ? n_before - n_now : n_most;
		n_before = n_now;
	}
	assert_int_equal(n_now, 0);
	assert_true(n_most > 0 && n_most < NUMBERS / 4);
	assert_int_equal(answer_to("SELECT COUNT(*) FROM number_day"), NUMBERS);
	assert_int_equal(answer_to("SELECT COUNT(*) FROM change"), 0);
}

static int64_t bytes_of(const struct get_space *g, const char *table)
{
	for (size_t i = 0; i < g->n_tables; i++)
		if (strcmp(g->tables[i].name, table) == 0)
			return g->tables[i].bytes;
	return 0;
}

static void space_is_measured_by_table_and_accelerator(void **state)
{
	struct get_space g = {.file_bytes = 0};
	int64_t sum = 0;

	(void)state;
	begin();
	report("npu", "red", true);
	report("tpu", "green", false);
	report("tpu", "green again", false);
	ASK_OK(store_get_space, &g);
	for (size_t i = 0; i < g.n_tables; i++) {
		sum += g.tables[i].bytes;
		assert_true(i == 0 || g.tables[i - 1].bytes >= g.tables[i].bytes);
	}
	assert_true(g.can_shrink);
	/* the rest are pages that say where others are */
	assert_true(sum + g.free_bytes <= g.file_bytes && sum + g.free_bytes > g.file_bytes - 4 * 8192);
	assert_int_equal(g.n_accelerators, 2);
	assert_string_equal(g.accelerators[0].name, "npu");
	assert_int_equal(g.accelerators[0].n_jobs, 1);
	assert_int_equal(g.accelerators[0].n_results, TESTS);
	assert_int_equal(g.accelerators[0].n_rows, TESTS);
	assert_int_equal(g.accelerators[1].n_jobs, 2);
	assert_int_equal(g.accelerators[1].n_rows, 0);
	assert_true(g.accelerators[0].bytes > 10 * g.accelerators[1].bytes);
	assert_true(g.accelerators[1].bytes > 0);
	assert_in_range(g.accelerators[0].bytes + g.accelerators[1].bytes,
	    bytes_of(&g, "result") + bytes_of(&g, "packed_job") - 2,
	    bytes_of(&g, "result") + bytes_of(&g, "packed_job"));
	get_space_release(&g);
}

/* ---- queries that read the whole file ---- */

struct held {
	struct store_query q;
	bool is_done;
};

static sem_t may_end;
static atomic_int n_held, n_held_at_once;

static int held_run(struct store_query *q, const struct view *d)
{
	(void)q;
	if (atomic_fetch_add(&n_held, 1) > 0)
		n_held_at_once++;
	while (sem_wait(&may_end))
		assert_int_equal(errno, EINTR);
	n_held--;
	return db_has(d, "SELECT 1 FROM sqlite_schema") ? 0 : ERR_NOT_FOUND;
}

static void held_done(struct store_query *q) { CONTAINER_OF(q, struct held, q)->is_done = true; }

static void other_queries_do_not_wait_for_long_ones(void **state)
{
	struct held long_ones[3] = {0};
	struct get_totals page = {.now_ms = T0}, urgent = {.now_ms = T0, .q.kind = QUERY_URGENT};

	(void)state;
	sem_init(&may_end, 0, 0);
	for (size_t i = 0; i < ARRAY_LEN(long_ones); i++) {
		long_ones[i].q = (struct store_query){.run = held_run, .done = held_done, .kind = QUERY_LONG};
		assert_int_equal(store_query(rig_store, &long_ones[i].q), 0);
	}
	ASK_OK(store_get_totals, &page);
	ASK_OK(store_get_totals, &urgent);
	for (size_t i = 0; i < ARRAY_LEN(long_ones); i++) {
		assert_false(long_ones[i].is_done);
		sem_post(&may_end);
		loop_run_until(rig_loop, &long_ones[i].is_done);
		assert_int_equal(long_ones[i].q.err, 0);
	}
	assert_int_equal(n_held_at_once, 0);
	sem_destroy(&may_end);
	get_totals_release(&page);
	get_totals_release(&urgent);
}

/* ---- a file that becomes shorter ---- */

static void fill_file(struct txn *d)
{
	db_exec(d, "CREATE TABLE big (id INTEGER PRIMARY KEY, v BLOB)");
	db_exec(d, "INSERT INTO big (v) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)"
		   " SELECT randomblob(6000) FROM n");
	db_exec(d, "CREATE TABLE last (v BLOB)");
	db_exec(d, "INSERT INTO last (v) SELECT v FROM big WHERE id > 5900");
}

static void empty_file(struct txn *d) { db_exec(d, "DELETE FROM big WHERE id % 50 <> 0"); }

static int64_t file_bytes(void)
{
	char *path = rig_path();
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	free(path);
	return st.st_size;
}

static void the_file_becomes_shorter_in_pieces(void **state)
{
	int64_t full;

	(void)state;
	in_writer(fill_file);
	rig_reopen(); /* moves the log into the file */
	full = file_bytes();
	assert_true(full > 6000 * 6000);
	in_writer(empty_file);
	assert_true(drop_all() > 20);
	rig_reopen();
	assert_true(file_bytes() < full / 2);
	/* the other rows are all there */
	assert_int_equal(answer_to("SELECT COUNT(*) FROM big WHERE length(v) = 6000"), 120);
	assert_int_equal(answer_to("SELECT COUNT(*) FROM last WHERE length(v) = 6000"), 100);
	assert_int_equal(answer_to("SELECT COUNT(*) FROM pragma_quick_check WHERE quick_check <> 'ok'"), 0);
}

/* An older version created the file. */
static int setup_old(void **state)
{
	char *path;
	struct db *d;
	struct error e = {0};

	rig_setup_folder(state);
	path = rig_path();
	assert_int_equal(db_open(path, DB_WRITER, &d, &e), 0);
	assert_int_equal(db_script(d, "PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM", &e), 0);
	assert_int_equal(schema_apply(d, path, &e), 0);
	db_close(d);
	free(path);
	rig_open();
	return 0;
}

static void an_old_file_keeps_its_size(void **state)
{
	struct get_space g = {.file_bytes = 0};
	int64_t full;

	(void)state;
	in_writer(fill_file);
	rig_reopen();
	full = file_bytes();
	in_writer(empty_file);
	assert_int_equal(drop_all(), 1);
	rig_reopen();
	assert_int_equal(file_bytes(), full);
	ASK_OK(store_get_space, &g);
	assert_false(g.can_shrink);
	assert_true(g.free_bytes > full / 2);
	get_space_release(&g);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(retention_leaves_no_list_and_no_row),
	    TEST(a_piece_forgets_few_numbers),
	    TEST(space_is_measured_by_table_and_accelerator),
	    TEST(other_queries_do_not_wait_for_long_ones),
	    TEST(the_file_becomes_shorter_in_pieces),
	    cmocka_unit_test_setup_teardown(an_old_file_keeps_its_size, setup_old, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
