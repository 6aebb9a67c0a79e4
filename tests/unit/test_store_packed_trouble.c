/* Packed results in trouble: lists that look alike, hostile names, lists that retention drops while they are used, a
 * transaction that fails, a full disk. */
#include <signal.h>
#include <sys/resource.h>

#include "model/packed_tests.h"
#include "packed_rig.h"
#include "replaces.h"

#define T(s, x)                                                                                                        \
	{                                                                                                              \
		.suite = (char *)(s), .name = (char *)(x), .status = TEST_PASS, .duration_ms = 1                       \
	}
#define T_OF(s, x, type)                                                                                               \
	{                                                                                                              \
		.suite = (char *)(s), .name = (char *)(x), .dtype = (char *)(type), .status = TEST_PASS,               \
		.duration_ms = 1                                                                                       \
	}

static void lists_that_look_alike_are_different_lists(void **state)
{
	struct {
		struct test_result tests[4];
		size_t n;
	} lists[] = {
	    {{T("s", "a"), T("s", "b"), T("s", "c")}, 3},
	    {{T("s", "a"), T("s", "b"), T("s", "d")}, 3}, /* a name */
	    {{T("s", "b"), T("s", "a"), T("s", "c")}, 3}, /* the order */
	    {{T("s", "a"), T("s", "b"), T("s", "c"), T("s", "c")}, 4},
	    {{T("s", "a"), T("s", "a"), T("s", "b"), T("s", "c")}, 4},
	    {{T("s", "a"), T("s", "b")}, 2},
	    {{T_OF("s", "a", "f16"), T("s", "b"), T("s", "c")}, 3},
	    {{T("s", "a"), T_OF("s", "b", "f16"), T("s", "c")}, 3},
	    {{T("sa", "a"), T("s", "b"), T("s", "c")}, 3}, /* the same letters in other places */
	    {{T("s", "as"), T("", "b"), T("s", "c")}, 3},
	    {{T_OF("s", "", "a"), T("s", "b"), T("s", "c")}, 3},
	    {{T("s", "a b"), T("s", "c")}, 2},
	    {{T("S", "a"), T("s", "b"), T("s", "c")}, 3},
	};
	int64_t change = new_push(T0), jobs[ARRAY_LEN(lists)];

	(void)state;
	for (int again = 0; again < 2; again++) {
		for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
			char *name = xasprintf("job %zu %d", i, again);

			jobs[i] = report_push(change, name, lists[i].tests, lists[i].n);
			free(name);
		}
		for (size_t i = 0; i < ARRAY_LEN(lists); i++)
			assert_job(jobs[i], lists[i].tests, lists[i].n);
		assert_int_equal(count_in_file("SELECT COUNT(*) FROM test_list"), ARRAY_LEN(lists));
	}
	lists[0].tests[0].dtype = (char *)""; /* a report without a dtype names the same test */
	assert_job(report_push(change, "no dtype", lists[0].tests, 3), lists[0].tests, 3);
	assert_int_equal(count_in_file("SELECT COUNT(*) FROM test_list"), ARRAY_LEN(lists));
	assert_packed_rules();
}

/* ---- many tests ---- */

enum { MANY = 800, NAME_BYTES = REPORT_NAME_MAX_BYTES + 1 };

struct many {
	struct test_result tests[MANY];
	char names[MANY][NAME_BYTES], suite[REPORT_SUITE_MAX_BYTES + 1], dtype[REPORT_UNIT_MAX_BYTES + 1];
};

/* Names of the full length that differ only in the last letters; `version` makes them new. */
static struct many *many_tests(int version)
{
	struct many *m = xcalloc(1, sizeof(*m));

	memset(m->suite, 's', REPORT_SUITE_MAX_BYTES);
	memset(m->dtype, 'd', REPORT_UNIT_MAX_BYTES);
	for (int i = 0; i < MANY; i++) {
		memset(m->names[i], 'n', NAME_BYTES - 1);
		memcpy(m->names[i], "\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82", 9); /* é, €, a face */
		snprintf(m->names[i] + NAME_BYTES - 13, 13, "%06d%06d", version, i * 7919 % MANY);
		m->tests[i] = (struct test_result){.suite = m->suite,
		    .name = m->names[i],
		    .dtype = i % 2 ? m->dtype : NULL,
		    .status = i % 5 ? TEST_PASS : TEST_SKIP,
		    .duration_ms = i % 3 ? i : -1};
	}
	return m;
}

static void names_at_their_limits_come_back(void **state)
{
	struct many *m = many_tests(1);
	int64_t change = new_push(T0);

	(void)state;
	assert_job(report_push(change, "first", m->tests, MANY), m->tests, MANY);
	m->tests[MANY / 2].dtype = (char *)"x"; /* one test is another one: stored as a difference */
	assert_job(report_push(change, "first again", m->tests, MANY), m->tests, MANY);
	assert_packed_rules();
	free(m);
}

/* ---- retention drops lists ---- */

static struct test_result usual[] = {T("s", "a"), T("s", "b"), T("s", "c")};

enum { REPORT_SAME, REPORT_SIMILAR, DROP, N_STEPS, STEPS = 3, FEW = 40 };

static void on_step_done(struct store_op *op) { (void)op; }

/* One history of reports of a list and of a similar one, between which retention drops old jobs with the same lists. All
 * operations are in the queue before the first one runs, so that the writer may take them as one transaction. */
static void play_steps(const int *steps, struct many *lists[2])
{
	struct push_report reports[STEPS];
	struct apply_retention drops[STEPS];
	int64_t live = new_push(T0);
	char *names[STEPS];

	for (int i = 0; i < 2; i++)
		report_push(new_push(1 + i), "job", lists[i]->tests, FEW);
	for (int i = 0; i < STEPS; i++) {
		names[i] = xasprintf("job %d", i);
		drops[i] = (struct apply_retention){.results_before_ms = 10, .op.done = on_step_done};
		reports[i] = (struct push_report){.change_id = live,
		    .job = names[i],
		    .tests = lists[steps[i] == REPORT_SIMILAR]->tests,
		    .n = FEW,
		    .work = {.work = put_push_report, .with = &reports[i], .op.done = on_step_done}};
		if (steps[i] == DROP)
			assert_int_equal(store_apply_retention(rig_store, &drops[i]), 0);
		else
			assert_int_equal(submit_work(rig_store, &reports[i].work), 0);
	}
	assert_int_equal(in_writer(add_push, &(int64_t){T0}), 0); /* it is done after all of them */
	for (int i = 0; i < STEPS; i++) {
		assert_int_equal(steps[i] == DROP ? drops[i].op.err : reports[i].work.op.err, 0);
		if (steps[i] != DROP)
			assert_job(reports[i].job_id, reports[i].tests, reports[i].n);
		free(names[i]);
	}
	assert_packed_rules();
	for (struct apply_retention r = {.results_before_ms = T0 + 1, .has_more = true}; r.has_more;)
		DO_OK(store_apply_retention, &r);
	assert_int_equal(count_in_file("SELECT COUNT(*) FROM test_list"), 0);
}

static void a_list_may_be_dropped_before_and_after_each_use(void **state)
{
	struct many *lists[2] = {many_tests(1), many_tests(1)};
	int steps[STEPS], n = 1;

	(void)state;
	lists[1]->tests[7].name = (char *)"another";
	for (int i = 0; i < STEPS; i++)
		n *= N_STEPS;
	for (int code = 0; code < n; code++) {
		for (int i = 0, left = code; i < STEPS; i++, left /= N_STEPS)
			steps[i] = left % N_STEPS;
		play_steps(steps, lists);
	}
	free(lists[0]);
	free(lists[1]);
}

/* ---- a transaction that fails ---- */

static int report_and_fail(struct txn *d, void *with)
{
	struct push_report *p = with;

	put_push_report(d, p);
	/* the writer's connection has read the list */
	assert_int_equal(db_int(d, 0, "SELECT COUNT(*) FROM cell WHERE change_id = ?1", V_INT(p->change_id)), p->n);
	return ERR_INVALID;
}

static void the_id_of_a_list_that_failed_means_another_one(void **state)
{
	struct test_result others[] = {T("s", "x"), T("s", "y"), T("s", "z")};
	int64_t change = new_push(T0), job;
	struct push_report p = {.change_id = change, .job = "fails", .tests = usual, .n = 3};

	(void)state;
	assert_int_equal(in_writer(report_and_fail, &p), ERR_INVALID);
	assert_int_equal(count_in_file("SELECT COUNT(*) FROM test_list"), 0);
	job = report_push(change, "works", others, 3);
	assert_job(job, others, 3);
	p = (struct push_report){.change_id = new_push(T0), .job = "fails", .tests = others, .n = 3};
	assert_int_equal(in_writer(report_and_fail, &p), ERR_INVALID); /* reads the cells in the writer */
	assert_packed_rules();
}

static int count_named(struct txn *d, void *with)
{
	const struct push_report *p = with;

	assert_int_equal(db_int(d, 0,
			     "SELECT COUNT(*) FROM cell c CROSS JOIN test t ON t.id = c.test_id WHERE c.change_id = ?1"
			     " AND t.name IN ('a', 'b', 'c')",
			     V_INT(p->change_id)),
	    p->n);
	return 0;
}

/* The same list gets the same id again, but its tests get other ids. */
static void a_list_that_failed_has_the_tests_of_its_next_report(void **state)
{
	struct push_report p = {.change_id = new_push(T0), .job = "fails", .tests = usual, .n = 3};
	struct push_report without_tests = {.change_id = new_push(T0), .job = "takes the first id of a test"};

	(void)state;
	assert_int_equal(in_writer(report_and_fail, &p), ERR_INVALID);
	assert_int_equal(in_writer(put_push_report, &without_tests), 0);
	assert_job(report_push(p.change_id, "works", usual, 3), usual, 3);
	assert_int_equal(in_writer(count_named, &p), 0); /* reads the cells in the writer */
	assert_packed_rules();
}

/* ---- many lists in one change ---- */

REPLACES(test_list_get);
extern __typeof__(test_list_get) real_test_list_get __asm__("__real_test_list_get");
static _Atomic int n_lists_read;
bool test_list_get(const void *p, size_t bytes, int64_t *ids, size_t n)
{
	n_lists_read++;
	return real_test_list_get(p, bytes, ids, n);
}

/* More than a connection keeps. Cells of jobs without tests, and tests that the accelerator does not support, need no look at
 * the jobs before this one. */
static void a_report_does_not_read_the_lists_of_other_jobs(void **state)
{
	enum { N_JOBS = 40 };
	static char *none[] = {NULL}, *skip[] = {(char *)"s/later", (char *)"s/elsewhere", NULL};
	struct accelerator npu = {.name = (char *)"npu",
	    .title = (char *)"NPU",
	    .level = LEVEL_2,
	    .oncall = none,
	    .must_pass = none,
	    .skip = skip};
	struct mirror_registry m = {.list = &npu, .n = 1, .now_ms = T0};
	struct test_result elsewhere = T("s", "elsewhere"), tests[] = {T("s", "later"), T("s", "")};
	int64_t change = new_push(T0);
	char name[32];

	(void)state;
	DO_OK(store_mirror_registry, &m);
	report_push(new_push(T0), "job", &elsewhere, 1);
	report_push(change, "without tests", NULL, 0);
	for (int i = 0; i < N_JOBS; i++) {
		snprintf(name, sizeof(name), "job %d", i);
		tests[1].name = name;
		n_lists_read = 0;
		report_push(change, name, i ? tests + 1 : tests, i ? 1 : 2);
	}
	assert_true(n_lists_read < N_JOBS / 2);
	assert_int_equal(count_in_file("SELECT COUNT(*) FROM verdict WHERE status = 'SKIP'"), 2);
	assert_packed_rules();
}

/* ---- a full disk, as a limit on a file's size ---- */

static struct rlimit no_limit;

static void limit_files(rlim_t bytes)
{
	struct rlimit small = no_limit;

	small.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
}

/* Has the store work on a disk that is full, and then on disks with ever more room, until it succeeds. */
static int fill_disk(int (*try)(void *with), void *with, int64_t (*count)(void))
{
	enum { STEP_BYTES = 96 << 10 };
	int64_t before = count();
	int n_failed = 0, err = ERR_FULL;

	for (rlim_t bytes = 4096; err; bytes += STEP_BYTES) {
		limit_files(bytes);
		err = try(with);
		setrlimit(RLIMIT_FSIZE, &no_limit);
		store_probe(rig_store);
		if (!err)
			break;
		assert_int_equal(err, ERR_FULL);
		assert_true(store_is_passing(err)); /* a vendor is asked to send again */
		n_failed++;
		assert_int_equal(count(), before);
		assert_packed_rules();
	}
	return n_failed;
}

static int try_report(void *with) { return in_writer(put_push_report, with); }

static int64_t count_stored(void)
{
	return count_in_file("SELECT (SELECT COUNT(*) FROM job) + (SELECT COUNT(*) FROM test_list) + (SELECT COUNT(*) "
			     "FROM packed_job) + (SELECT COUNT(*) FROM result) + (SELECT COUNT(*) FROM test)"
			     " + (SELECT COUNT(*) FROM verdict)");
}

static void a_full_disk_stores_nothing_of_a_report(void **state)
{
	int64_t change = new_push(T0);

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct many *m = many_tests(i);
		struct push_report p = {.change_id = change, .job = i ? "one" : "other", .tests = m->tests, .n = MANY};
		char *name = xasprintf("job %d", i);

		p.job = name;
		for (int k = 0; k < MANY; k += 7) { /* these have rows */
			m->tests[k].status = TEST_FAIL;
			m->tests[k].message = (char *)"it differs";
		}
		assert_true(fill_disk(try_report, &p, count_stored) > 1);
		assert_job(p.job_id, m->tests, MANY);
		assert_packed_rules();
		free(name);
		free(m);
	}
}

static int try_retention(void *with)
{
	struct apply_retention *r = with;

	return DO(store_apply_retention, r);
}

static void a_full_disk_stops_retention_for_a_while(void **state)
{
	struct many *m = many_tests(1);
	struct apply_retention r = {.results_before_ms = 10};
	struct get_totals t = {.now_ms = T0};
	int64_t live = new_push(T0), job;

	(void)state;
	for (int i = 0; i < 3; i++) {
		m->tests[i].name = (char *)"changes";
		report_push(new_push(1 + i), "job", m->tests, MANY);
	}
	job = report_push(live, "job", m->tests, MANY);
	assert_true(fill_disk(try_retention, &r, count_stored) > 0);
	do
		DO_OK(store_apply_retention, &r);
	while (r.has_more);
	assert_int_equal(count_in_file("SELECT COUNT(*) FROM job"), 1);
	assert_job(job, m->tests, MANY);
	assert_packed_rules();
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.n_jobs, 1);
	assert_int_equal(t.n_results, MANY);
	get_totals_release(&t);
	free(m);
}

static int setup(void **state)
{
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &no_limit);
	return rig_setup(state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(lists_that_look_alike_are_different_lists),
	    TEST(names_at_their_limits_come_back),
	    TEST(a_list_may_be_dropped_before_and_after_each_use),
	    TEST(the_id_of_a_list_that_failed_means_another_one),
	    TEST(a_list_that_failed_has_the_tests_of_its_next_report),
	    TEST(a_report_does_not_read_the_lists_of_other_jobs),
	    TEST(a_full_disk_stores_nothing_of_a_report),
	    TEST(a_full_disk_stops_retention_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
