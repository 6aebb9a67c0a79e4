/* Periodic runs as days and states: packed cells, nights in and out of order, corrections, retention, and the query
 * plans of a page. */
#include <sqlite3.h>

#include "db/db.h"
#include "history/commits_between.h"
#include "history/history.h"
#include "store_rig.h"
#include "views/nightly.h"

static int setup(void **state)
{
	int rc = rig_setup(state);

	rig_register_npu(LEVEL_2);
	return rc;
}

/* One letter for each test, t0 t1 …: P F E M S, or . for absent. */
static void report_as(int commit, const char *letters, int attempt, int64_t now_ms)
{
	static const char known[] = "FEMPDS";
	struct test_result tests[16] = {0};
	char names[16][8], sha[41];
	size_t n = 0;
	struct job_report j = {.status = JOB_COMPLETED,
	    .conclusion = (char *)"success",
	    .workflow = (char *)"nightly",
	    .name = (char *)"all",
	    .run_id = sha,
	    .run_attempt = attempt,
	    .tests = tests};
	struct report_nightly op = {.repository = UPSTREAM,
	    .target = "Ascend/pytorch",
	    .accelerator = "npu",
	    .head_sha = sha,
	    .report = &j,
	    .now_ms = now_ms};

	for (size_t i = 0; letters[i]; i++) {
		if (letters[i] == '.')
			continue;
		snprintf(names[i], sizeof(names[i]), "t%zu", i);
		tests[n++] = (struct test_result){.suite = (char *)"unit",
		    .name = names[i],
		    .status = (enum test_status)(strchr(known, letters[i]) - known),
		    .duration_ms = -1};
	}
	j.n_tests = n;
	snprintf(sha, sizeof(sha), "%040x", (unsigned)commit + 1);
	j.digest[0] = (uint8_t)(attempt + 1);
	DO_OK(store_report_nightly, &op);
	assert_int_equal(op.outcome, REPORT_RECORDED);
}

static void night(int n, const char *letters) { report_as(n, letters, 1, T0 + n * DAY); }

static struct nightly_view *view(int last, int n_days, int limit, const struct nightly_place *after)
{
	struct get_nightly g = {.last_day = T0 / DAY + last, .n_days = n_days, .limit = limit, .state = HISTORY_NONE};

	if (after)
		g.after = *after;
	ASK_OK(store_get_nightly, &g);
	return g.view;
}

/* "t0 regression 3<2, …": in the page's order, with the nights of first bad and last good. */
static char *states(int last)
{
	struct nightly_view *v = view(last, 14, 100, NULL);
	struct buf text = BUF_INIT(65536);

	for (size_t i = 0; i < v->n_tests; i++) {
		const struct nightly_cell *c = &v->tests[i].cells[0];

		buf_appendf(&text, "%s%s %s", i ? ", " : "", v->tests[i].name, history_state_name(c->state));
		if (c->first_bad.day >= 0)
			buf_appendf(&text, " %d<", (int)(c->first_bad.day - T0 / DAY));
		if (c->last_good.day >= 0)
			buf_appendf(&text, "%d", (int)(c->last_good.day - T0 / DAY));
	}
	nightly_view_free(v);
	return buf_detach(&text);
}

#define ASSERT_STATES(last, expected)                                                                                  \
	do {                                                                                                           \
		char *got_ = states(last);                                                                             \
		assert_string_equal(got_, expected);                                                                   \
		free(got_);                                                                                            \
	} while (0)

static void packed_cells_are_read_back(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct history_cell in[300], c;
		struct cell_packer p;
		struct cell_reader r;
		const struct buf *packed;
		int64_t id = 0;

		cell_packer_init(&p);
		for (int i = 0; i < 300; i++) {
			id += rand_r(&seed) % 4 ? 1 : 1 + rand_r(&seed) % 100000;
			in[i] = (struct history_cell){.test_id = id,
			    .status = (enum test_status)(rand_r(&seed) % 8 ? TEST_PASS : rand_r(&seed) % 6),
			    .job = rand_r(&seed) % 8 ? 1 : rand_r(&seed) % 1000};
			cell_packer_add(&p, &in[i]);
		}
		packed = cell_packer_end(&p);
		r = cell_reader_of(packed->data, packed->len);
		for (int i = 0; i < 300; i++) {
			assert_true(cell_reader_next(&r, &c));
			assert_memory_equal(&c, &in[i], sizeof(c));
		}
		assert_false(cell_reader_next(&r, &c));
		r = cell_reader_of(packed->data, packed->len);
		for (int i = 0; i < 300; i += 7) {
			assert_true(cell_reader_find(&r, in[i].test_id, &c));
			assert_memory_equal(&c, &in[i], sizeof(c));
		}
		r = cell_reader_of(packed->data, packed->len / 2); /* truncated: the reader only stops early */
		while (cell_reader_next(&r, &c))
			assert_true(c.test_id <= id);
		cell_packer_release(&p);
	}
}

static void nights_become_states(void **state)
{
	struct nightly_view *v;

	(void)state;
	night(0, "PPPP");
	night(1, "PFPP");
	night(2, "FPP.");
	ASSERT_STATES(2, "t0 regression 2<1, t3 disappeared, t1 fixed 1<0, t2 passing");
	v = view(2, 3, 10, NULL);
	assert_int_equal(v->counts[HISTORY_REGRESSION], 1);
	assert_int_equal(v->outcomes[v->tests[0].cells[0].days[1] - 1].status, TEST_PASS);
	assert_int_equal(v->outcomes[v->tests[0].cells[0].days[2] - 1].status, TEST_FAIL);
	assert_string_equal(v->accelerators[0].runs[2].outcome, "red");
	nightly_view_free(v);
	rig_reopen();
	ASSERT_STATES(2, "t0 regression 2<1, t3 disappeared, t1 fixed 1<0, t2 passing");
}

/* Its results arrive late: until then no report said anything. */
static void late(int n, const char *letters) { report_as(n, letters, 2, T0 + n * DAY + HOUR); }

/* The same nights in any order, with any of them reported twice, give the same states. */
static void order_and_corrections_change_nothing(void **state)
{
	(void)state;
	for (int n = 0; n < 4; n++)
		night(n, "MMM");
	ASSERT_STATES(3, "");
	late(0, "PPP");
	late(3, "FPP");
	ASSERT_STATES(3, "t0 regression 3<0, t1 passing, t2 passing");
	late(1, "PPF");
	ASSERT_STATES(3, "t0 regression 3<1, t2 fixed 1<0, t1 passing");
	late(2, "PPP");
	ASSERT_STATES(3, "t0 regression 3<2, t1 passing, t2 passing");
	report_as(3, "PFP", 3, T0 + 3 * DAY + 2 * HOUR);
	ASSERT_STATES(3, "t1 regression 3<2, t0 passing, t2 passing");
}

static void the_last_run_of_a_day_counts(void **state)
{
	struct nightly_view *v;

	(void)state;
	night(0, "PP");
	report_as(1, "FP", 1, T0 + DAY);
	report_as(2, "PF", 1, T0 + DAY + HOUR);
	ASSERT_STATES(1, "t1 regression 1<0, t0 passing");
	report_as(1, "FF", 2, T0 + DAY + 2 * HOUR); /* the earlier one, corrected */
	ASSERT_STATES(1, "t1 regression 1<0, t0 passing");
	v = view(1, 2, 10, NULL);
	assert_int_equal(v->accelerators[0].runs[1].due_ms, T0 + DAY + HOUR);
	nightly_view_free(v);
}

/* Random nights, half of them late or corrected, compared with the same nights in order. */
static void late_nights_give_the_same_states(void **state)
{
	static const char letters[] = "PPPPFEMS.";
	char rows[12][9] = {{0}}, *mixed, *straight;
	unsigned seed = 42;
	int order[12];

	for (int i = 0; i < 12; i++) {
		order[i] = i;
		for (int k = 0; k < 8; k++)
			rows[i][k] = letters[(size_t)rand_r(&seed) % (sizeof(letters) - 1)];
		rows[i][7] = 'P';
	}
	for (int i = 11; i > 0; i--) {
		int k = rand_r(&seed) % (i + 1), x = order[i];

		order[i] = order[k];
		order[k] = x;
	}
	for (int i = 0; i < 12; i++)
		night(i, "MMMMMMMM");
	for (int i = 0; i < 12; i++)
		late(order[i], rows[order[i]]);
	mixed = states(11);
	rig_teardown(state);
	setup(state);
	for (int i = 0; i < 12; i++)
		night(i, rows[i]);
	straight = states(11);
	/* Tests have another number: only the order within a state may differ. */
	assert_int_equal(strlen(mixed), strlen(straight));
	for (int k = 0; k < 8; k++) {
		char name[16], *m, *s;

		snprintf(name, sizeof(name), "t%d ", k);
		m = strstr(mixed, name);
		s = strstr(straight, name);
		assert_int_equal(m == NULL, s == NULL);
		if (m && strncmp(m, s, strcspn(m, ",")) != 0)
			fail_msg("%s\n%s", mixed, straight);
	}
	free(mixed);
	free(straight);
}

static void assert_states(int n)
{
	char *path = rig_path();
	struct error e = {0};
	struct db *d;

	assert_int_equal(db_open(path, DB_READER, &d, &e), 0);
	assert_int_equal(db_int(d, -1, "SELECT COUNT(*) FROM history"), n);
	assert_int_equal(db_int(d, -1, "SELECT COUNT(*) FROM history_count WHERE suite = ''"), n);
	db_close(d);
	free(path);
}

static void days_outlive_their_details(void **state)
{
	struct apply_retention r = {.results_before_ms = T0 + 10 * DAY};
	struct nightly_view *v;

	(void)state;
	night(0, "P");
	night(1, "F");
	for (r.has_more = true; r.has_more;)
		DO_OK(store_apply_retention, &r);
	ASSERT_STATES(1, "t0 regression 1<0");
	v = view(1, 2, 10, NULL);
	assert_int_equal(v->tests[0].cells[0].first_bad.job, 0);
	assert_int_equal(v->outcomes[v->tests[0].cells[0].days[1] - 1].status, TEST_FAIL);
	assert_int_equal(v->outcomes[v->tests[0].cells[0].days[1] - 1].job, 0);
	assert_string_equal(v->accelerators[0].runs[1].outcome, "red");
	nightly_view_free(v);
	r = (struct apply_retention){.days_before_ms = T0 + 10 * DAY, .has_more = true};
	while (r.has_more)
		DO_OK(store_apply_retention, &r);
	v = view(1, 2, 10, NULL);
	assert_int_equal(v->n_accelerators, 0);
	nightly_view_free(v);
	/* The record of a test is deleted with its last day. */
	night(20, "P");
	v = view(20, 2, 10, NULL);
	assert_int_equal(v->n_tests, 1);
	nightly_view_free(v);
	rig_close();
	assert_states(1);
	rig_open();
	r = (struct apply_retention){.days_before_ms = T0 + 30 * DAY, .has_more = true};
	while (r.has_more)
		DO_OK(store_apply_retention, &r);
	rig_close();
	assert_states(0);
	rig_open();
}

/* Recorded due times move with the clock. */
static void a_clock_that_is_set_back_delays_no_comparison(void **state)
{
	struct claim_comparison c = {.now_ms = T0 + DAY - HOUR};
	struct shift_clock shift = {.delta_ms = -HOUR, .now_ms = T0 + DAY - HOUR};

	(void)state;
	night(0, "P");
	night(1, "F");
	assert_int_equal(ASK(store_claim_comparison, &c), ERR_NOT_FOUND);
	DO_OK(store_shift_clock, &shift);
	assert_int_equal(ASK(store_claim_comparison, &c), 0);
	assert_string_equal(c.repository, UPSTREAM);
	claim_comparison_release(&c);
}

static void an_accelerator_that_becomes_silent_is_not_shown(void **state)
{
	struct nightly_view *v;

	(void)state;
	night(0, "F");
	rig_register_npu(LEVEL_1);
	v = view(0, 1, 10, NULL);
	assert_int_equal(v->n_accelerators, 0);
	assert_int_equal(v->n_tests, 0);
	assert_int_equal(v->counts[HISTORY_STILL_FAILING], 0);
	nightly_view_free(v);
}

static void pages_follow_each_other(void **state)
{
	struct nightly_place at = {.suite = NULL};
	struct buf seen = BUF_INIT(4096);

	(void)state;
	night(0, "PPPPPPP");
	night(1, "FPFPSPF");
	do {
		struct nightly_view *v = view(1, 2, 2, at.suite ? &at : NULL);

		for (size_t i = 0; i < v->n_tests; i++)
			buf_appendf(&seen, "%s ", v->tests[i].name);
		free(at.suite);
		at = v->next;
		v->next.suite = NULL;
		nightly_view_free(v);
	} while (at.suite);
	assert_string_equal(buf_str(&seen), "t0 t2 t6 t1 t3 t5 t4 ");
	buf_release(&seen);
}

static void assert_plan(const char *sql, const char *part)
{
	char *path = rig_path(), *plan;
	struct buf text = BUF_INIT(4096);
	sqlite3_stmt *s;
	sqlite3 *h;

	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(h, sql, -1, &s, NULL), SQLITE_OK);
	while (sqlite3_step(s) == SQLITE_ROW)
		buf_appendf(&text, "%s\n", (const char *)sqlite3_column_text(s, 3));
	plan = buf_detach(&text);
	if (!strstr(plan, part) || strstr(plan, "SCAN") || strstr(plan, "TEMP B-TREE"))
		fail_msg("%s: %s", sql, plan);
	free(plan);
	sqlite3_finalize(s);
	sqlite3_close(h);
	free(path);
}

static void pages_query_by_index(void **state)
{
	(void)state;
	ONLY_ON_SQLITE();
	/* A vendor's cron may have one run a minute. */
	assert_plan("EXPLAIN QUERY PLAN SELECT due_ms FROM schedule_run WHERE accelerator = ?1"
		    " AND change_id IS NOT NULL ORDER BY id DESC LIMIT 1",
	    "schedule_run_newest");
	assert_plan("EXPLAIN QUERY PLAN SELECT suite, test_id FROM history WHERE state = ?1 AND"
		    " (suite, test_id) > (?2, ?3) AND suite <= ?4 ORDER BY suite, test_id",
	    "COVERING INDEX history_worst");
	assert_plan("EXPLAIN QUERY PLAN SELECT suite, test_id FROM history WHERE accelerator = ?1"
		    " AND state = ?2 AND (suite, test_id) > (?3, ?4) AND suite <= ?5"
		    " ORDER BY suite, test_id",
	    "COVERING INDEX history_of");
	assert_plan("EXPLAIN QUERY PLAN SELECT day, jobs, cells FROM history_run"
		    " WHERE accelerator = ?1 AND day >= ?2 AND day < ?3",
	    "history_run_day");
	assert_plan("EXPLAIN QUERY PLAN SELECT id FROM schedule_run WHERE accelerator = ?1 AND"
		    " due_ms >= ?2 AND due_ms < ?3 ORDER BY due_ms DESC LIMIT 1",
	    "schedule_run_due");
	assert_plan("EXPLAIN QUERY PLAN SELECT id FROM schedule_run WHERE ended_ms < ?1"
		    " ORDER BY ended_ms LIMIT ?2",
	    "schedule_run_ended");
	assert_plan("EXPLAIN QUERY PLAN SELECT repository FROM commits_between WHERE next_ms IS NOT"
		    " NULL ORDER BY next_ms LIMIT 1",
	    "commits_between_due");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(packed_cells_are_read_back),
	    TEST(nights_become_states),
	    TEST(order_and_corrections_change_nothing),
	    TEST(the_last_run_of_a_day_counts),
	    TEST(late_nights_give_the_same_states),
	    TEST(days_outlive_their_details),
	    TEST(an_accelerator_that_becomes_silent_is_not_shown),
	    TEST(a_clock_that_is_set_back_delays_no_comparison),
	    TEST(pages_follow_each_other),
	    TEST(pages_query_by_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
