/* The list of rows that commits touched: collected, bounded, and only for committed transactions. */
#include "commands_rig.h"

#include "db/touched.h"
#include "verdict/attribution.h"
#include "verdict/known_issues.h"
#include "views/change.h"

static struct store_touched notified;

static void on_changes(unsigned topics, void *owner)
{
	(void)topics;
	(void)owner;
	touched_merge(&notified, store_touched(rig_store));
}

static int64_t change_of(const char *sha)
{
	struct get_change g = {.now_ms = clock_wall_ms(), .repository = UPSTREAM, .head_sha = sha};
	int64_t id;

	ASK_OK(store_get_change, &g);
	id = g.view->change_id;
	change_view_free(g.view);
	return id;
}

static void duplicates_count_once_and_overflow_means_all(void **state)
{
	struct store_touched t = {0}, more = {0};

	(void)state;
	assert_true(touched_is_empty(&t));
	for (int i = 0; i < 3; i++)
		touched_add_change(&t, 7);
	touched_add_accelerator(&t, "npu");
	touched_add_accelerator(&t, "npu");
	assert_int_equal(t.n_changes, 1);
	assert_int_equal(t.n_accelerators, 1);
	assert_false(t.is_all || touched_is_empty(&t));
	for (int64_t id = 1; id <= TOUCHED_MAX; id++)
		touched_add_job(&more, id);
	assert_false(more.is_all);
	touched_merge(&t, &more);
	assert_false(t.is_all);
	touched_add_job(&t, 1);
	assert_false(t.is_all);
	touched_add_job(&t, TOUCHED_MAX + 1);
	assert_true(t.is_all);
	more = (struct store_touched){0};
	touched_merge(&more, &t);
	assert_true(more.is_all);
	more = (struct store_touched){0};
	for (char name[] = "a"; name[0] <= 'a' + TOUCHED_NAMES_MAX; name[0]++)
		touched_add_accelerator(&more, name);
	assert_int_equal(more.n_accelerators, TOUCHED_NAMES_MAX);
	assert_true(more.is_all);
}

static void report(const char *id, int attempt, const char *conclusion, int64_t *ret_job)
{
	struct job_report j = {
	    .status = conclusion ? JOB_COMPLETED : JOB_IN_PROGRESS,
	    .conclusion = (char *)conclusion,
	    .workflow = (char *)"CI",
	    .name = (char *)"test",
	    .run_id = (char *)"1",
	    .run_attempt = attempt,
	    .digest = {conclusion != NULL},
	};
	struct report_job op = {.dispatch_id = id, .report = &j, .now_ms = T0};

	DO_OK(store_report_job, &op);
	*ret_job = op.job_id;
}

static void a_report_touches_its_job_change_and_accelerator(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), GITHUB_WANT("tpu", "Google/pytorch")};
	struct name_touched n = {0};
	struct note_log log = {0};
	int64_t job, change;
	char *id;

	(void)state;
	store_subscribe(rig_store, STORE_CHANGES, on_changes, NULL);
	rig_start("opened", HEAD_A, 0, wants, 2);
	free(rig_send(T0));
	id = rig_dispatch_id(HEAD_A, "npu");
	change = change_of(HEAD_A);
	assert_int_equal(notified.changes[0], change);
	notified = (struct store_touched){0};
	report(id, 1, NULL, &job);
	assert_int_equal(notified.n_changes, 1);
	assert_int_equal(notified.changes[0], change);
	assert_int_equal(notified.n_jobs, 1);
	assert_int_equal(notified.jobs[0], job);
	assert_int_equal(notified.n_accelerators, 1);
	assert_string_equal(notified.accelerators[0], "npu");
	assert_false(notified.is_all);

	n.touched = notified;
	ASK_OK(store_name_touched, &n);
	assert_string_equal(n.shas[0], HEAD_A);
	assert_int_equal(n.n_numbers, 1);
	assert_int_equal(n.numbers[0], 1);
	assert_string_equal(n.accelerators[0], "npu");
	name_touched_release(&n);

	/* A repeated report writes nothing new. */
	notified = (struct store_touched){0};
	report(id, 1, NULL, &job);
	assert_true(touched_is_empty(&notified));
	report(id, 1, "success", &job);
	assert_int_equal(notified.jobs[0], job);

	notified = (struct store_touched){0};
	log.job_id = job;
	log.bytes = 5;
	DO_OK(store_note_log, &log);
	assert_int_equal(notified.n_jobs, 1);
	assert_int_equal(notified.n_changes, 0);
	/* A rolled back operation touched nothing. */
	notified = (struct store_touched){0};
	log.job_id = 999;
	assert_int_equal(DO(store_note_log, &log), ERR_NOT_FOUND);
	assert_true(touched_is_empty(&notified));
	free(id);
}

static void assert_jobs_notified(int64_t one, int64_t other)
{
	assert_int_equal(notified.n_jobs, 1 + (other != 0));
	assert_true(notified.jobs[0] == one || notified.jobs[0] == other);
	if (other)
		assert_int_equal(notified.jobs[0] + notified.jobs[1], one + other);
	notified = (struct store_touched){0};
}

/* The page of a job names its replacement and the attribution of its failure. */
static void changed_attributions_and_replacements_touch_their_job(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct add_known known = {.pattern = "CI/test", .url = "https://example.org/1", .now_ms = T0 + 1000};
	struct attribute_change attribute = {.now_ms = T0 + 2000};
	int64_t first, second;
	char *id;

	(void)state;
	store_subscribe(rig_store, STORE_CHANGES, on_changes, NULL);
	rig_start("opened", HEAD_A, 0, wants, 1);
	free(rig_send(T0));
	id = rig_dispatch_id(HEAD_A, "npu");
	notified = (struct store_touched){0};
	report(id, 1, "failure", &first);
	assert_jobs_notified(first, 0);
	DO_OK(store_add_known, &known);
	attribute.change_id = change_of(HEAD_A);
	DO_OK(store_attribute_change, &attribute);
	assert_true(attribute.has_moved);
	assert_jobs_notified(first, 0);
	report(id, 2, NULL, &second);
	assert_jobs_notified(first, second);
	free(id);
}

static void expect_notified(struct mirror_registry *m, const char *expected)
{
	struct buf names = BUF_INIT(1000);

	notified = (struct store_touched){0};
	DO_OK(store_mirror_registry, m);
	for (int i = 0; i < notified.n_accelerators; i++)
		buf_appendf(&names, "%s ", notified.accelerators[i]);
	assert_string_equal(buf_str(&names), expected);
	assert_false(notified.is_all || notified.n_changes || notified.n_jobs);
	buf_release(&names);
}

static void a_registry_touches_only_changed_accelerators(void **state)
{
	static char *no_names[] = {NULL}, *must_pass[] = {(char *)"model/llama3", NULL};
	struct runner runners[] = {
	    {.name = (char *)"ci", .kind = RUNNER_GITHUB, .repository = (char *)"Ascend/pytorch"},
	    {.name = (char *)"lab", .kind = RUNNER_PULL}};
	struct accelerator list[] = {
	    {.name = (char *)"npu", .level = LEVEL_2, .must_pass = no_names, .skip = no_names},
	    {.name = (char *)"tpu", .level = LEVEL_2, .must_pass = no_names, .skip = no_names},
	};
	struct mirror_registry m = {.list = list, .n = 2, .now_ms = T0};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		list[i].oncall = no_names;
		list[i].runners = runners;
		list[i].n_runners = 1;
	}
	store_subscribe(rig_store, STORE_CHANGES, on_changes, NULL);
	expect_notified(&m, "npu tpu ");
	m.now_ms++;
	expect_notified(&m, "");
	list[1].title = (char *)"TPU";
	expect_notified(&m, "tpu ");
	list[0].level = LEVEL_3;
	expect_notified(&m, "npu ");
	list[0].must_pass = must_pass;
	expect_notified(&m, "npu ");
	runners[0].reruns = RERUNS_TESTS; /* of both */
	expect_notified(&m, "npu tpu ");
	list[1].n_runners = 2;
	expect_notified(&m, "tpu ");
	list[1].n_runners = 1; /* a runner that left, and then the whole accelerator */
	expect_notified(&m, "tpu ");
	m.n = 1;
	expect_notified(&m, "tpu ");
	expect_notified(&m, "");
	m.n = 2;
	expect_notified(&m, "tpu ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(duplicates_count_once_and_overflow_means_all),
	    cmocka_unit_test_setup_teardown(a_report_touches_its_job_change_and_accelerator, rig_setup, rig_teardown),
	    cmocka_unit_test_setup_teardown(
		changed_attributions_and_replacements_touch_their_job, rig_setup, rig_teardown),
	    cmocka_unit_test_setup_teardown(a_registry_touches_only_changed_accelerators, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
