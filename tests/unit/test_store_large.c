/* Large reports, which the store writes in several transactions: whatever comes between them, nobody sees a part of a report,
 * and nothing of one that does not go on remains. */
#include <semaphore.h>

#include "packed_rig.h"

#include "store/job_results.h"
#include "verdict/verdicts.h"

enum { MANY = 9000, FEW = 3 }; /* a third of them is red: three parts of rows */

struct large {
	struct report_job op;
	struct job_report report;
	struct packed_tests packed;
	struct test_result *tests;
	char (*names)[32];
	bool is_done;
};

static void on_large_done(struct store_op *op) { CONTAINER_OF(op, struct large, op.op)->is_done = true; }

/* A report of MANY tests. Equal versions have the same tests. */
static void large_init(struct large *l, const char *dispatch, const char *job, int version)
{
	*l = (struct large){.tests = xcalloc(MANY, sizeof(*l->tests)), .names = xcalloc(MANY, sizeof(*l->names))};
	for (int i = 0; i < MANY; i++) {
		snprintf(l->names[i], sizeof(l->names[i]), "version %d case %d", version, i);
		l->tests[i] = (struct test_result){.suite = (char *)"unit",
		    .name = l->names[i],
		    .status = i % 3 ? TEST_PASS : TEST_FAIL,
		    .duration_ms = i,
		    .message = i % 3 ? NULL : (char *)"it differs"};
	}
	packed_tests_make(&l->packed, l->tests, MANY);
	l->report = (struct job_report){.status = JOB_COMPLETED,
	    .conclusion = (char *)"failure",
	    .workflow = (char *)"CI",
	    .name = (char *)job,
	    .run_id = (char *)"1",
	    .run_attempt = 1,
	    .digest = {(uint8_t)version},
	    .tests = l->tests,
	    .n_tests = MANY,
	    .packed = &l->packed};
	l->op =
	    (struct report_job){.op.done = on_large_done, .dispatch_id = dispatch, .report = &l->report, .now_ms = T0};
}

static void large_submit(struct large *l) { assert_int_equal(store_report_job(rig_store, &l->op), 0); }

static void large_wait(struct large *l)
{
	loop_run_until(rig_loop, &l->is_done);
	if (l->op.op.err)
		fail_msg("%s", l->op.op.why.text);
}

static void large_release(struct large *l)
{
	packed_tests_release(&l->packed);
	free(l->tests);
	free(l->names);
}

/* PR 1 with one accelerator, whose request was sent. Returns the dispatch's id. */
static char *begin(void)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};

	rig_start("opened", HEAD_A, 0, wants, 1);
	free(rig_send(T0));
	return rig_dispatch_id(HEAD_A, "npu");
}

/* A small job, or the start of one. */
struct small {
	struct report_job op;
	struct job_report report;
};

static void small_init(struct small *r, const char *dispatch, const char *job, enum job_status status)
{
	*r = (struct small){.report = {.status = status,
				.conclusion = (char *)(status == JOB_COMPLETED ? "success" : NULL),
				.workflow = (char *)"CI",
				.name = (char *)job,
				.run_id = (char *)"1",
				.run_attempt = 1}};
	r->op = (struct report_job){.dispatch_id = dispatch, .report = &r->report, .now_ms = T0};
}

static int64_t small_report(const char *dispatch, const char *job, enum job_status status)
{
	struct small r;

	small_init(&r, dispatch, job, status);
	DO_OK(store_report_job, &r.op);
	assert_int_equal(r.op.outcome, REPORT_RECORDED);
	return r.op.job_id;
}

static int64_t n_red_rows(void) { return count_in_file("SELECT COUNT(*) FROM result"); }

/* ---- an operation that looks between the parts, until so many jobs are complete ---- */

struct watcher {
	struct store_op op;
	sem_t go; /* for the first look */
	int64_t n_wanted;
	int n_looks, n_half_written;
	bool has_seen_part, is_done;
};

static int watcher_run(struct store_op *op, struct txn *d)
{
	struct watcher *w = CONTAINER_OF(op, struct watcher, op);
	int64_t n_jobs, n_results, n_cells;

	if (w->n_looks++ == 0)
		sem_wait(&w->go);
	n_jobs = db_int(d, 0, "SELECT COUNT(*) FROM job WHERE status = 'completed'");
	n_results = db_int(d, -1, "SELECT COUNT(*) FROM job j CROSS JOIN job_test t ON t.job_id = j.id WHERE j.id > 0");
	n_cells = db_int(d, -1, "SELECT COUNT(*) FROM change c CROSS JOIN cell v ON v.change_id = c.id");
	w->n_half_written += db_has(d, "SELECT 1 FROM staged WHERE owner <> 0");
	w->has_seen_part |= n_results != n_jobs * MANY || n_cells != (n_jobs ? MANY : 0);
	op->is_unfinished = n_jobs < w->n_wanted;
	return 0;
}

static void on_watched(struct store_op *op) { CONTAINER_OF(op, struct watcher, op)->is_done = true; }

static void watch(struct watcher *w, int64_t n_wanted)
{
	*w = (struct watcher){.op = {.run = watcher_run, .done = on_watched}, .n_wanted = n_wanted};
	sem_init(&w->go, 0, 0);
	assert_int_equal(store_submit(rig_store, &w->op), 0);
}

/* All operations that it shall watch are submitted. */
static void watched(struct watcher *w)
{
	sem_post(&w->go);
	loop_run_until(rig_loop, &w->is_done);
	assert_int_equal(w->op.err, 0);
	assert_true(w->n_half_written >= 2); /* the report was in parts */
	assert_false(w->has_seen_part);
}

/* ---- an operation between the parts ---- */

struct interrupt {
	struct store_op op;
	sem_t seen, go;
	bool is_done;
};

static void on_interrupted(struct store_op *op) { (void)op; }

static int interrupt_run(struct store_op *op, struct txn *d)
{
	struct interrupt *o = CONTAINER_OF(op, struct interrupt, op);

	op->is_unfinished = !db_has(d, "SELECT 1 FROM staged");
	if (!op->is_unfinished) {
		sem_post(&o->seen);
		sem_wait(&o->go);
	}
	return 0;
}

static void on_interrupt_done(struct store_op *op) { CONTAINER_OF(op, struct interrupt, op)->is_done = true; }

static void on_turn_ended(void *owner) { *(bool *)owner = true; }

/* The writer gets the operations of a turn of the loop at its end. */
static void end_turn(void)
{
	bool is_over = false;

	loop_reap(rig_loop, on_turn_ended, &is_over);
	loop_run_until(rig_loop, &is_over);
}

/* Submits the report. Returns when its first rows are written, and the writer waits. */
static void interrupt_begin(struct interrupt *o, struct large *l)
{
	*o = (struct interrupt){.op = {.run = interrupt_run, .done = on_interrupt_done}};
	sem_init(&o->seen, 0, 0);
	sem_init(&o->go, 0, 0);
	assert_int_equal(store_submit(rig_store, &o->op), 0);
	large_submit(l);
	end_turn();
	sem_wait(&o->seen);
}

static void interrupt_end(struct interrupt *o, struct large *l)
{
	end_turn();
	sem_post(&o->go);
	large_wait(l);
	assert_int_equal(l->op.outcome, REPORT_RECORDED);
	loop_run_until(rig_loop, &o->is_done);
}

static void assert_nothing_is_left(void)
{
	struct apply_retention r = {.has_more = true};

	while (r.has_more)
		DO_OK(store_apply_retention, &r);
	assert_int_equal(count_in_file("SELECT COUNT(*) FROM staged"), 0);
	assert_packed_rules();
}

/* ---- the tests ---- */

/* A new job with a new list; a job that has begun, with a list that is known. */
static void nobody_sees_a_part_of_a_report(void **state)
{
	char *id = begin();
	struct large first, second;
	struct watcher w;
	int64_t begun;

	(void)state;
	large_init(&first, id, "first", 1);
	large_init(&second, id, "second", 1);
	begun = small_report(id, "second", JOB_IN_PROGRESS);
	watch(&w, 1);
	large_submit(&first);
	watched(&w);
	large_wait(&first);
	watch(&w, 2);
	large_submit(&second);
	watched(&w);
	large_wait(&second);
	assert_int_equal(second.op.job_id, begun);
	assert_job(first.op.job_id, first.tests, MANY);
	assert_job(begun, second.tests, MANY);
	assert_nothing_is_left();
	large_release(&first);
	large_release(&second);
	free(id);
}

/* A vendor repeats a report before it has the answer; another job begins meanwhile. */
static void of_equal_reports_one_is_recorded(void **state)
{
	char *id = begin();
	struct large first, again;
	struct watcher w;
	struct small other;

	(void)state;
	large_init(&first, id, "job", 1);
	large_init(&again, id, "job", 1);
	small_init(&other, id, "other", JOB_IN_PROGRESS);
	other.op.op.done = on_interrupted;
	watch(&w, 1);
	large_submit(&first);
	large_submit(&again);
	assert_int_equal(store_report_job(rig_store, &other.op), 0);
	watched(&w);
	large_wait(&first);
	large_wait(&again);
	assert_int_equal(first.op.outcome, REPORT_RECORDED);
	assert_int_equal(again.op.outcome, REPORT_UNCHANGED);
	assert_int_equal(again.op.job_id, first.op.job_id);
	assert_int_equal(other.op.outcome, REPORT_RECORDED);
	assert_true(other.op.job_id != first.op.job_id);
	assert_job(first.op.job_id, first.tests, MANY);
	assert_nothing_is_left();
	large_release(&first);
	large_release(&again);
	free(id);
}

/* The job begins between the parts of its report. */
static void a_report_whose_job_begins_meanwhile_is_recorded_whole(void **state)
{
	char *id = begin();
	struct interrupt between;
	struct small begins;
	struct large l;

	(void)state;
	large_init(&l, id, "job", 1);
	small_init(&begins, id, "job", JOB_IN_PROGRESS);
	begins.op.op.done = on_interrupted;
	interrupt_begin(&between, &l);
	assert_int_equal(store_report_job(rig_store, &begins.op), 0);
	interrupt_end(&between, &l);
	assert_int_equal(begins.op.outcome, REPORT_RECORDED);
	assert_int_equal(l.op.job_id, begins.op.job_id);
	assert_job(l.op.job_id, l.tests, MANY);
	assert_nothing_is_left();
	large_release(&l);
	free(id);
}

/* The job gets a report document between the parts of its report. */
static void a_report_behind_a_document_is_recorded_whole(void **state)
{
	static struct test_result few[FEW] = {{.suite = (char *)"s", .name = (char *)"a", .status = TEST_FAIL},
	    {.suite = (char *)"s", .name = (char *)"b", .status = TEST_PASS},
	    {.suite = (char *)"s", .name = (char *)"c", .status = TEST_FAIL}};
	struct test_result *all = xcalloc(FEW + MANY, sizeof(*all));
	char *id = begin();
	struct put_report document = {
	    .op.done = on_interrupted, .tests = few, .n_tests = FEW, .digest = {9}, .now_ms = T0};
	struct interrupt between;
	struct large l;

	(void)state;
	large_init(&l, id, "job", 1);
	document.job_id = small_report(id, "job", JOB_IN_PROGRESS);
	interrupt_begin(&between, &l);
	assert_int_equal(store_put_report(rig_store, &document), 0);
	interrupt_end(&between, &l);
	assert_int_equal(document.outcome, REPORT_RECORDED);
	assert_int_equal(l.op.job_id, document.job_id);
	memcpy(all, few, sizeof(few));
	memcpy(all + FEW, l.tests, MANY * sizeof(*all));
	assert_job(l.op.job_id, all, FEW + MANY);
	assert_nothing_is_left();
	large_release(&l);
	free(all);
	free(id);
}

struct part {
	struct large *of;
	int64_t job_id;
};

static int put_one_part(struct txn *d, void *with)
{
	struct part *p = with;

	while (p->of->packed.n_staged == 0)
		if (!job_results_put_part(d, p->job_id, 0, &p->of->packed, T0))
			return ERR_INVALID;
	return 0;
}

/* The process dies, or the operation fails, after some parts. Retention deletes them, unless the job is reported before. */
static void a_report_that_does_not_go_on_leaves_nothing(void **state)
{
	char *id = begin();
	struct large lost[3];
	struct part parts[3];
	struct apply_retention r = {.staged_before_ms = T0};
	int64_t small;

	(void)state;
	for (int i = 0; i < 3; i++) {
		large_init(&lost[i], id, "lost", 1);
		parts[i] = (struct part){.of = &lost[i],
		    .job_id = i == 1   ? small_report(id, "silent", JOB_IN_PROGRESS)
			      : i == 2 ? small_report(id, "reported", JOB_IN_PROGRESS)
				       : 0};
		assert_int_equal(in_writer(put_one_part, &parts[i]), 0);
	}
	assert_true(n_red_rows() > 0);
	assert_int_equal(small_report(id, "reported", JOB_COMPLETED), parts[2].job_id);
	small = small_report(id, "another", JOB_COMPLETED);
	assert_true(small != lost[0].packed.staged_job);
	DO_OK(store_apply_retention, &r); /* they may go on */
	assert_int_equal(count_in_file("SELECT COUNT(*) FROM staged"), 3);
	rig_reopen();
	assert_nothing_is_left();
	assert_int_equal(n_red_rows(), 0);

	for (int i = 0; i < 2; i++) {
		lost[i].packed.n_staged = 0;
		lost[i].packed.staged_job = 0;
		assert_int_equal(in_writer(put_one_part, &parts[i]), 0);
	}
	r.staged_before_ms = T0 + 1;
	do
		DO_OK(store_apply_retention, &r);
	while (r.has_more);
	assert_int_equal(count_in_file("SELECT COUNT(*) FROM staged"), 0);
	assert_int_equal(n_red_rows(), 0);
	large_submit(&lost[0]); /* the vendor repeats it */
	large_wait(&lost[0]);
	assert_job(lost[0].op.job_id, lost[0].tests, MANY);
	assert_nothing_is_left();
	for (int i = 0; i < 3; i++)
		large_release(&lost[i]);
	free(id);
}

/* The report begins from its start, because it has moved on in memory. */
static void a_part_that_the_server_rolls_back_is_written_again(void **state)
{
	struct large l;
	char *id;

	(void)state;
	if (!server_database())
		skip();
	server_script(server_database(),
	    "CREATE SEQUENCE fails; CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
	    " IF NEW.ordinal = 8100 AND nextval('fails') = 1 THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF;"
	    " RETURN NEW; END $$;"
	    "CREATE TRIGGER fail BEFORE INSERT ON result FOR EACH ROW EXECUTE FUNCTION fail()");
	id = begin();
	large_init(&l, id, "job", 1);
	large_submit(&l);
	large_wait(&l);
	server_script(server_database(), "DROP TRIGGER fail ON result; DROP FUNCTION fail; DROP SEQUENCE fails");
	assert_int_equal(l.op.outcome, REPORT_RECORDED);
	assert_job(l.op.job_id, l.tests, MANY);
	assert_int_equal(count_in_file("SELECT COUNT(*) FROM result WHERE job_id IN (SELECT id FROM job)"), MANY / FEW);
	large_release(&l);
	free(id);
}

/* The server plans a statement when the tables are still empty, and keeps the plan while they grow. */
static void new_names_are_found_by_the_index(void **state)
{
	char suite[] = "unit";
	struct test_result tests[200] = {0};
	int64_t ids[ARRAY_LEN(tests)] = {0}, again[ARRAY_LEN(tests)] = {0};
	struct error e = {0};
	struct db *d;

	(void)state;
	if (!server_database())
		skip();
	assert_int_equal(db_open(server_database(), DB_WRITER, &d, &e), 0);
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tests[i] = (struct test_result){.suite = suite, .name = xasprintf("new %zu", i)};
	test_ids_of(db_txn(d), tests, ARRAY_LEN(tests), ids);
	test_ids_of(db_txn(d), tests, ARRAY_LEN(tests), again);
	assert_memory_equal(ids, again, sizeof(ids));
	assert_int_equal(db_int(d, -1, "SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'test'"), 0);
	assert_true(db_int(d, -1, "SELECT idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'test'") > 0);
	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		free(tests[i].name);
	db_rollback(d);
	db_close(d);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(nobody_sees_a_part_of_a_report),
	    TEST(of_equal_reports_one_is_recorded),
	    TEST(a_report_whose_job_begins_meanwhile_is_recorded_whole),
	    TEST(a_report_behind_a_document_is_recorded_whole),
	    TEST(a_report_that_does_not_go_on_leaves_nothing),
	    TEST(a_part_that_the_server_rolls_back_is_written_again),
	    TEST(new_names_are_found_by_the_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
