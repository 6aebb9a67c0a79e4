/* Queries: one change complete and truncated, lists, figures, totals, the mirror of the registry; and retention. */
#include "db/db.h"
#include "store_rig.h"
#include "views/change.h"
#include "views/job.h"

static char *no_names[] = {NULL};

static void mirror(const char *const *names, size_t n)
{
	static char *oncall[] = {(char *)"alice", (char *)"bob", NULL};
	struct accelerator list[4];
	struct runner runner = {.name = (char *)"ci", .kind = RUNNER_GITHUB, .repository = (char *)"Ascend/pytorch"};
	struct mirror_registry m = {.list = list, .n = n, .now_ms = T0};

	for (size_t i = 0; i < n; i++)
		list[i] = (struct accelerator){.name = (char *)names[i],
		    .title = (char *)"Title of it",
		    .vendor = (char *)"Vendor",
		    .level = LEVEL_3,
		    .docs_url = (char *)"https://docs.example.org/",
		    .oncall = oncall,
		    .runners = &runner,
		    .n_runners = 1,
		    .must_pass = no_names,
		    .skip = no_names};
	DO_OK(store_mirror_registry, &m);
}

/* A completed job of npu on `head` with these tests. */
static void complete(const char *dispatch_id, const char *name, const char *conclusion, struct test_result *tests,
    size_t n_tests, int64_t now_ms)
{
	struct job_report j = {.status = JOB_COMPLETED,
	    .conclusion = (char *)conclusion,
	    .workflow = (char *)"CI",
	    .name = (char *)name,
	    .run_id = (char *)"1",
	    .run_attempt = 1,
	    .has_counts = true,
	    .n_passed = 3,
	    .n_total = 4,
	    .tests = tests,
	    .n_tests = n_tests};
	struct report_job op = {.dispatch_id = dispatch_id, .report = &j, .now_ms = now_ms};

	DO_OK(store_report_job, &op);
	assert_int_equal(op.outcome, REPORT_RECORDED);
}

static void names_come_from_the_registry_and_survive_removal(void **state)
{
	static const char *const names[] = {"npu"};
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), GITHUB_WANT("old", "v/o")};
	struct change_view *v;

	(void)state;
	mirror(names, 1);
	rig_start("opened", HEAD_A, 0, wants, 2);
	mirror(names, 0); /* it left */
	v = rig_view_of(1, NULL);
	assert_int_equal(v->n_accelerators, 2);
	assert_string_equal(v->accelerators[0].name, "npu");
	assert_string_equal(v->accelerators[0].title, "Title of it");
	assert_int_equal(v->accelerators[0].level, LEVEL_3);
	assert_string_equal(v->accelerators[0].docs_url, "https://docs.example.org/");
	assert_null(v->accelerators[0].help_url);
	assert_string_equal(v->accelerators[0].oncall[1], "bob");
	assert_null(v->accelerators[0].oncall[2]);
	assert_string_equal(v->accelerators[1].title, "old"); /* never mirrored */
	assert_string_equal(v->title, "A change");
	assert_string_equal(v->author, "alice");
	assert_string_equal(v->base_ref, "main");
	assert_string_equal(v->base_sha, HEAD_C);
	assert_string_equal(v->repository, UPSTREAM);
	assert_int_equal(v->created_ms, T0);
	change_view_free(v);
}

static void a_truncated_view_has_the_red_cells_first(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct get_change g = {
	    .now_ms = clock_wall_ms(), .repository = UPSTREAM, .head_sha = HEAD_A, .max_verdicts = 3};
	struct test_result tests[20];
	char names[20][16], *id;

	(void)state;
	for (int i = 0; i < 20; i++) {
		snprintf(names[i], sizeof(names[i]), "t%02d", i);
		tests[i] = (struct test_result){.suite = (char *)"unit",
		    .name = names[i],
		    .status = i == 7 || i == 15 ? TEST_FAIL : TEST_PASS,
		    .duration_ms = -1,
		    .message = i == 7 ? (char *)"it broke" : NULL};
	}
	rig_start("opened", HEAD_A, 0, wants, 1);
	id = rig_dispatch_id(HEAD_A, "npu");
	complete(id, "test", "failure", tests, 20, T0);
	ASK_OK(store_get_change, &g);
	assert_int_equal(g.view->n_verdicts, 3);
	assert_int_equal(g.view->n_verdicts_total, 20);
	assert_true(g.view->is_cut);
	assert_int_equal(g.view->accelerators[0].n_verdicts[TEST_PASS], 18);
	assert_int_equal(g.view->accelerators[0].n_verdicts[TEST_FAIL], 2);
	assert_string_equal(g.view->verdicts[1].test, "t07"); /* by name, in any order of reading */
	assert_string_equal(g.view->verdicts[1].message, "it broke");
	assert_int_equal(g.view->verdicts[1].attribution, ATTRIBUTION_UNCLASSIFIED);
	assert_string_equal(g.view->verdicts[2].test, "t15");
	assert_int_equal(g.view->verdicts[0].status, TEST_PASS);
	assert_true(g.view->accelerators[0].jobs[0].has_counts);
	assert_int_equal(g.view->accelerators[0].jobs[0].n_total, 4);
	change_view_free(g.view);
	g.max_verdicts = 0;
	ASK_OK(store_get_change, &g);
	assert_int_equal(g.view->n_verdicts, 20);
	assert_false(g.view->is_cut);
	change_view_free(g.view);
	free(id);
}

static void an_unknown_change_is_not_found(void **state)
{
	struct get_change number = {.now_ms = clock_wall_ms(), .repository = UPSTREAM, .number = 4711};
	struct get_change sha = {.now_ms = clock_wall_ms(), .repository = UPSTREAM, .head_sha = HEAD_A};
	struct get_change id = {.now_ms = clock_wall_ms(), .change_id = 4711};

	(void)state;
	assert_int_equal(ASK(store_get_change, &number), ERR_NOT_FOUND);
	assert_int_equal(ASK(store_get_change, &sha), ERR_NOT_FOUND);
	assert_int_equal(ASK(store_get_change, &id), ERR_NOT_FOUND);
	assert_null(id.view);
}

static void a_merge_base_belongs_to_one_base_branch(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct apply_plan first = rig_start("opened", HEAD_A, 0, wants, 1);
	struct put_merge_base put = {.change_id = first.change_id, .sha = HEAD_B, .commit_ms = T0 - DAY};
	struct put_merge_base none = {.change_id = 4711, .sha = HEAD_B};
	struct get_change g = {.now_ms = clock_wall_ms(), .change_id = first.change_id};

	(void)state;
	DO_OK(store_put_merge_base, &put);
	assert_int_equal(DO(store_put_merge_base, &none), ERR_NOT_FOUND);
	rig_start("synchronize", HEAD_A, 1, wants, 1);
	ASK_OK(store_get_change, &g);
	assert_string_equal(g.view->merge_base_sha, HEAD_B);
	assert_int_equal(g.view->merge_base_ms, T0 - DAY);
	change_view_free(g.view);
}

static void files_are_remembered(void **state)
{
	static const char *const files[] = {"aten/a.cpp", "\"odd\\ name\"", NULL};
	struct put_files put = {.repository = UPSTREAM, .head_sha = HEAD_A, .files = files, .now_ms = T0};
	struct get_files get = {.repository = "PyTorch/PYTORCH", .head_sha = HEAD_A};
	struct get_files none = {.repository = UPSTREAM, .head_sha = HEAD_B};

	(void)state;
	DO_OK(store_put_files, &put);
	ASK_OK(store_get_files, &get);
	assert_string_equal(get.files[0], files[0]);
	assert_string_equal(get.files[1], files[1]);
	assert_null(get.files[2]);
	for (char **f = get.files; *f; f++)
		free(*f);
	free(get.files);
	ASK_OK(store_get_files, &none);
	assert_null(none.files);
}

static void dispatches_are_listed_newest_first(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), WEBHOOK_WANT("xpu")};
	struct list_dispatches all = {.limit = 10}, of_pull = {.repository = UPSTREAM, .number = 1, .limit = 10},
			       of_one = {.accelerator = "xpu", .limit = 10},
			       both = {.repository = UPSTREAM, .number = 2, .accelerator = "xpu", .limit = 10};

	(void)state;
	rig_start("opened", HEAD_A, 0, wants, 2);
	free(rig_send(T0));
	rig_start("synchronize", HEAD_B, 60, wants, 2);
	ASK_OK(store_list_dispatches, &all);
	assert_int_equal(all.n, 4);
	assert_string_equal(all.list[0].head_sha, HEAD_B);
	assert_string_equal(all.list[3].head_sha, HEAD_A);
	assert_string_equal(all.list[3].state, "superseded");
	assert_int_equal(all.list[3].n_attempts, 1);
	assert_int_equal(all.list[3].sent_ms, T0);
	list_dispatches_release(&all);
	all.limit = 1;
	ASK_OK(store_list_dispatches, &all);
	assert_int_equal(all.n, 1);
	list_dispatches_release(&all);
	ASK_OK(store_list_dispatches, &of_pull);
	assert_int_equal(of_pull.n, 4);
	list_dispatches_release(&of_pull);
	ASK_OK(store_list_dispatches, &of_one);
	assert_int_equal(of_one.n, 2);
	assert_string_equal(of_one.list[0].kind, "webhook");
	list_dispatches_release(&of_one);
	ASK_OK(store_list_dispatches, &both);
	assert_int_equal(both.n, 0);
	list_dispatches_release(&both);
}

/* ---- figures ---- */

static void push(const char *head, int64_t now_ms, const char *conclusion)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct plan p = {.kind = PLAN_START,
	    .change_kind = CHANGE_PUSH,
	    .repository = (char *)UPSTREAM,
	    .head_sha = (char *)head,
	    .ref = (char *)"refs/heads/main",
	    .event_type = "push",
	    .wants = wants,
	    .n_wants = 1};
	char guid[64], *id;
	struct apply_plan op = {.guid = guid, .body = "{}", .body_bytes = 2, .plan = &p, .now_ms = now_ms};

	snprintf(guid, sizeof(guid), "push-%s", head);
	DO_OK(store_apply_plan, &op);
	id = rig_dispatch_id(head, "npu");
	complete(id, "test", conclusion, NULL, 0, now_ms);
	free(id);
}

static void figures_count_a_month_and_the_red_since(void **state)
{
	static const char *const names[] = {"npu", "idle"};
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct get_figures g = {.now_ms = T0 + 40 * DAY};
	struct expire_dispatches e = {.now_ms = T0 + 41 * DAY};

	(void)state;
	mirror(names, 2);
	push("1111111111111111111111111111111111111111", T0, "failure"); /* too long ago */
	push("2222222222222222222222222222222222222222", T0 + 20 * DAY, "success");
	push("3333333333333333333333333333333333333333", T0 + 30 * DAY, "failure");
	push("4444444444444444444444444444444444444444", T0 + 35 * DAY, "timed_out");
	rig_start("opened", HEAD_A, 36 * 86400, wants, 1); /* a PR's are not pushes */
	DO_OK(store_expire_dispatches, &e);
	ASK_OK(store_get_figures, &g);
	assert_int_equal(g.n, 2);
	assert_string_equal(g.list[0].name, "idle");
	assert_int_equal(g.list[0].at.facts.n_runs + g.list[0].at.facts.last_report_ms, 0);
	assert_int_equal(g.list[1].at.facts.n_green, 1);
	assert_int_equal(g.list[1].at.facts.n_runs, 3);
	assert_int_equal(g.list[1].quality.red_since_ms, T0 + 30 * DAY);
	assert_int_equal(g.list[1].n_dispatches, 4);
	assert_int_equal(g.list[1].n_expired, 1);
	assert_int_equal(g.list[1].at.facts.last_report_ms, T0 + 35 * DAY);
	get_figures_release(&g);
	push("5555555555555555555555555555555555555555", T0 + 36 * DAY, "success");
	ASK_OK(store_get_figures, &g);
	assert_int_equal(g.list[1].quality.red_since_ms, 0);
	get_figures_release(&g);
}

/* Stored counts must equal a fresh count. */
static void totals_are_correct(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch"), WEBHOOK_WANT("xpu")};
	struct test_result tests[] = {
	    {.suite = (char *)"u", .name = (char *)"a"}, {.suite = (char *)"u", .name = (char *)"b"}};
	struct get_totals t = {.now_ms = T0};
	char *id;

	(void)state;
	rig_start("opened", HEAD_A, 0, wants, 2);
	free(rig_send(T0));
	rig_start("synchronize", HEAD_B, 1, wants, 2);
	id = rig_dispatch_id(HEAD_B, "npu");
	complete(id, "test", "failure", tests, 2, T0);
	free(id);
	rig_put("waiting", "{}");
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.n_deliveries_accepted, 1);
	assert_int_equal(t.n_deliveries_planned, 2);
	assert_int_equal(t.n_dispatches[DISPATCH_SUPERSEDED], 2);
	assert_int_equal(t.n_dispatches[DISPATCH_DONE], 1);
	assert_int_equal(t.n_dispatches[DISPATCH_QUEUED], 1);
	assert_int_equal(t.n_dispatches[DISPATCH_SENT], 0);
	assert_int_equal(t.n_jobs, 1);
	assert_int_equal(t.n_results, 2);
	assert_int_equal(t.n_open_changes, 1);
	assert_int_equal(t.oldest_accepted_ms, T0);
	assert_true(t.db_bytes > 0);
}

/* ---- experiments ---- */

static void write_rows(const char *script)
{
	char *path = rig_path();
	struct db *d;

	rig_close();
	assert_int_equal(db_open(path, DB_WRITER, &d, NULL), 0);
	assert_int_equal(db_begin(d, DB_WRITER), 0);
	assert_int_equal(db_script(d, script, NULL), 0);
	assert_int_equal(db_commit(d), 0);
	db_close(d);
	free(path);
	rig_open();
}

#define EXPERIMENT(id, cause, side, state, run)                                                                        \
	"INSERT INTO experiment (id, change_id, accelerator, runner, dispatch_id, cause, round,"                       \
	" side, sha, state, run_change_id, created_ms, expires_ms) SELECT " #id ", c.id, 'npu', 'ci', '', '" cause     \
	"', 1, '" side "', c.head_sha, '" state "', " run ", 1000, 2000 FROM change c WHERE c.kind = 'pull_request'"
#define EXPERIMENT_TEST(id, name)                                                                                      \
	"INSERT INTO experiment_test (experiment_id, test_id) SELECT " #id ", id FROM test WHERE name = '" name "'"

/* Only a planned one waits: the others show no time. */
#define WAIT_UNTIL_7000 "UPDATE experiment SET not_before_ms = 7000"
#define RUN_OF_EXPERIMENT                                                                                              \
	"INSERT INTO change (id, kind, experiment_id, repository, repository_key, head_sha,"                           \
	" state, created_ms, active_ms) SELECT 900, 'experiment', 1, repository, repository_key,"                      \
	" head_sha, 'open', 1000, 1000 FROM change WHERE kind = 'pull_request'"
#define JOB_OF_RUN                                                                                                     \
	"INSERT INTO job (id, change_id, dispatch_id, accelerator, runner, workflow, name,"                            \
	" run_id, run_attempt, status, is_current, is_late, is_push, n_tests, n_red,"                                  \
	" reported_ms) SELECT 55, 900, 'd', accelerator, runner, workflow, name, run_id,"                              \
	" run_attempt, status, 1, 0, 0, 1, 0, 1000 FROM job"

static const struct verdict_view *cell(const struct change_view *v, const char *test)
{
	for (size_t i = 0; i < v->n_verdicts; i++)
		if (strcmp(v->verdicts[i].test, test) == 0)
			return &v->verdicts[i];
	fail_msg("no cell %s", test);
	return NULL;
}

static void a_change_shows_its_experiments(void **state)
{
	static const char rows[] =
	    EXPERIMENT(1, "auto", "head", "done", "900") ";" EXPERIMENT_TEST(1, "a") ";" EXPERIMENT_TEST(
		1, "b") ";" RUN_OF_EXPERIMENT ";" JOB_OF_RUN ";"
			"INSERT INTO verdict (change_id, accelerator, test_id, status, job_id, is_late)"
			" SELECT 900, 'npu', id, 'PASS', 55, 0 FROM test WHERE name = 'a';"
			"INSERT INTO verdict (change_id, accelerator, test_id, status, attribution,"
			" job_id, is_late)"
			" SELECT 900, 'npu', id, 'FAIL', 'UNCLASSIFIED', 55, 0 FROM test WHERE name = 'd';"
			"INSERT INTO result (job_id, ordinal, test_id, status)"
			" SELECT 55, 0, id, 'FAIL' FROM test WHERE name = 'd';" EXPERIMENT(
			    2, "auto", "base", "planned", "NULL") ";" EXPERIMENT_TEST(2, "b") ";" EXPERIMENT_TEST(2,
			    "c") ";" /* it has passed, so it is not red */ WAIT_UNTIL_7000
				 ";" EXPERIMENT(3, "stress", "head", "started", "NULL") ";" EXPERIMENT_TEST(3, "d");
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct test_result tests[] = {{.suite = (char *)"u", .name = (char *)"a", .status = TEST_FAIL},
	    {.suite = (char *)"u", .name = (char *)"b", .status = TEST_FAIL},
	    {.suite = (char *)"u", .name = (char *)"c", .status = TEST_PASS},
	    {.suite = (char *)"u", .name = (char *)"d", .status = TEST_FAIL}};
	struct get_job job = {.id = 55}, first = {.id = 1};
	struct experiment_view *e;
	struct change_view *v;
	char *id;

	(void)state;
	rig_start("opened", HEAD_A, 0, wants, 1);
	id = rig_dispatch_id(HEAD_A, "npu");
	complete(id, "test", "failure", tests, ARRAY_LEN(tests), T0);
	free(id);
	write_rows(rows);
	v = rig_view_of(1, NULL);
	assert_int_equal(v->accelerators[0].n_experiments, 3);
	e = v->accelerators[0].experiments;
	assert_int_equal(e[0].id, 3); /* the newest first */
	assert_string_equal(e[0].cause, "stress");
	assert_true(e[0].is_pending);
	assert_int_equal(e[1].side, EXPERIMENT_BASE);
	assert_string_equal(e[1].state, "planned");
	assert_int_equal(e[1].n_tests, 2);
	assert_int_equal(e[1].not_before_ms, 7000);
	assert_int_equal(e[2].not_before_ms, 0); /* it waits no longer */
	assert_int_equal(e[1].results[0].status, N_TEST_STATUSES);
	assert_int_equal(e[1].job, 0);
	assert_false(e[2].is_pending);
	assert_int_equal(e[2].n_results, 2);
	assert_string_equal(e[2].results[0].test, "a");
	assert_int_equal(e[2].results[0].status, TEST_PASS);
	assert_int_equal(e[2].results[0].job, 55);
	assert_int_equal(e[2].results[1].status, N_TEST_STATUSES);
	assert_string_equal(e[2].sha, HEAD_A);
	assert_int_equal(cell(v, "a")->rerun, RERUN_NONE); /* it has ended */
	assert_int_equal(cell(v, "b")->rerun, RERUN_LATER);
	assert_int_equal(cell(v, "c")->rerun, RERUN_NONE);
	assert_int_equal(cell(v, "d")->rerun, RERUN_NONE); /* a member requested it: it decides nothing */
	change_view_free(v);
	ASK_OK(store_get_job, &job);
	assert_int_equal(job.job->kind, CHANGE_EXPERIMENT);
	assert_int_equal(job.job->experiment.id, 1);
	assert_int_equal(job.job->experiment.side, EXPERIMENT_HEAD);
	assert_string_equal(job.job->experiment.explained_sha, HEAD_A);
	assert_int_equal(job.job->number, 1); /* of the pull request that it explains */
	/* its red tests are evidence: none of them has an attribution */
	assert_int_equal(job.job->n_tests, 1);
	assert_int_equal(job.job->tests[0].status, TEST_FAIL);
	assert_int_equal(job.job->attributions[0], N_ATTRIBUTIONS);
	job_detail_free(job.job);
	ASK_OK(store_get_job, &first);
	assert_int_equal(first.job->experiment.id, 0);
	job_detail_free(first.job);
}

/* ---- retention ---- */

static int retain(int64_t deliveries_before_ms, int64_t results_before_ms)
{
	struct apply_retention r = {
	    .deliveries_before_ms = deliveries_before_ms, .results_before_ms = results_before_ms};
	int n = 0;

	do {
		DO_OK(store_apply_retention, &r);
		n++;
		assert_true(n < 100);
	} while (r.has_more);
	return n;
}

static int known(const char *guid, bool *ret_has_body)
{
	struct get_delivery g = {.guid = guid};

	*ret_has_body = ASK(store_get_delivery, &g) == 0;
	delivery_release(&g.delivery);
	return rig_is_stored(guid);
}

static void old_bodies_are_deleted_before_their_guids(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	char guid[32];
	bool has_body;
	struct replay_delivery replay = {.guid = guid};

	(void)state;
	rig_start("opened", HEAD_A, 0, wants, 1);
	snprintf(guid, sizeof(guid), "guid-%d", rig_n_guids);
	rig_put("waiting", "{}");
	retain(T0 + DAY, 0);
	assert_true(known(guid, &has_body) && has_body); /* its request is still to be sent */
	free(rig_send(T0));
	rig_reopen();
	assert_true(known("waiting", &has_body) && has_body);
	rig_close_pull(1, HEAD_A, 1); /* received at T0, too */
	snprintf(guid, sizeof(guid), "guid-%d", rig_n_guids);
	free(rig_send(T0 + 1000));
	retain(T0 + DAY, 0);
	assert_true(known(guid, &has_body) && !has_body);
	assert_int_equal(DO(store_replay_delivery, &replay), ERR_CONFLICT);
	retain(T0 + DAY, T0 + DAY);
	assert_false(known(guid, &has_body));
	assert_true(known("waiting", &has_body) && has_body); /* never an unplanned delivery */
}

static void old_results_are_deleted_with_dependent_rows(void **state)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct test_result tests[] = {{.suite = (char *)"u", .name = (char *)"a"}};
	struct get_change g = {.now_ms = clock_wall_ms(), .repository = UPSTREAM, .head_sha = HEAD_A};
	struct get_totals t = {.now_ms = T0};
	char *id;

	(void)state;
	rig_start("opened", HEAD_A, 0, wants, 1);
	free(rig_send(T0));
	id = rig_dispatch_id(HEAD_A, "npu");
	complete(id, "test", "failure", tests, 1, T0);
	free(id);
	retain(T0 + DAY, T0 + DAY);
	ASSERT_CELLS(HEAD_A, "npu u/a FAIL"); /* an open PR keeps its head */
	rig_close_pull(1, HEAD_A, 1);
	free(rig_send(T0 + 1000));
	retain(T0 + 3 * DAY, T0 + 3 * DAY);
	assert_int_equal(ASK(store_get_change, &g), ERR_NOT_FOUND);
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.n_jobs, 0);
	assert_int_equal(t.n_results, 0);
	assert_int_equal(t.n_deliveries_planned, 0);
	for (int i = 0; i < N_DISPATCH_STATES; i++)
		assert_int_equal(t.n_dispatches[i], 0);
	assert_int_equal(t.n_open_changes, 0);
	assert_int_equal(rig_start("opened", HEAD_A, 3 * 86400, wants, 1).n_new_dispatches, 1);
}

static void retention_deletes_bounded_pieces(void **state)
{
	(void)state;
	for (int i = 0; i < 450; i++) {
		char guid[32];
		struct mark_delivery m = {.error = "not used"};

		m.mark = DELIVERY_MARK_IGNORED;
		snprintf(guid, sizeof(guid), "old-%d", i);
		rig_put(guid, "{}");
		m.delivery_id = rig_newest_delivery();
		DO_OK(store_mark_delivery, &m);
	}
	assert_true(retain(T0 + DAY, T0 + DAY) >= 3);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(names_come_from_the_registry_and_survive_removal),
	    TEST(a_truncated_view_has_the_red_cells_first),
	    TEST(an_unknown_change_is_not_found),
	    TEST(a_merge_base_belongs_to_one_base_branch),
	    TEST(files_are_remembered),
	    TEST(dispatches_are_listed_newest_first),
	    TEST(figures_count_a_month_and_the_red_since),
	    TEST(totals_are_correct),
	    TEST(a_change_shows_its_experiments),
	    TEST(old_bodies_are_deleted_before_their_guids),
	    TEST(old_results_are_deleted_with_dependent_rows),
	    TEST(retention_deletes_bounded_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
