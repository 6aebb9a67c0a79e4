/* The checkout gives exactly the requested commit. The repositories are real, and git serves them on loopback. */
#include "git_rig.h"

static void test_commit(void **state)
{
	(void)state;
	rig_step("look", "cat file; git rev-parse HEAD; git log --format=%s | wc -l; git status -s", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nsecond\n");
	rig_assert_log_has(sha);
	rig_assert_log_has("\n1\n== step look: exit 0"); /* depth, and nothing untracked */
}

static void test_second_job_needs_no_network(void **state)
{
	(void)state;
	rig_step("look", "cat file", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_next_job();
	kill(-server, SIGKILL);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("is here already");
}

static void test_all_of_history_after_a_part_of_it(void **state)
{
	(void)state;
	rig_step("count", "echo commits $(git log --format=%s | wc -l)", MINUTE_MS);
	rig_run();
	rig_assert_log_has("\ncommits 1\n");
	rig_next_job();
	rig_config.git_depth = 0;
	rig_run();
	rig_assert_log_has("\ncommits 2\n");
	rig_next_job();
	commit(origin, "third");
	commit(origin, "fourth");
	shell(origin, "git rev-parse HEAD", sha);
	rig_config.git_depth = 2;
	rig_run();
	rig_assert_conclusion("success", NULL);
}

static void make_pull(const char *name)
{
	shell(origin, "git checkout -q -b pull", NULL);
	commit(origin, name);
	shell(origin, "git rev-parse HEAD", sha);
	shell(origin,
	    "git update-ref refs/pull/7/head HEAD && git checkout -q main && "
	    "git branch -q -D pull",
	    NULL);
}

static void test_pull_request_is_fetched_by_its_commit(void **state)
{
	(void)state;
	make_pull("pulled");
	rig_step("look", "cat file", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\npulled\n");
}

static void speak_the_old_protocol(void)
{
	static char file[96];

	snprintf(file, sizeof(file), "%s/git-settings", rig_dir);
	rig_write(file, "[protocol]\nversion = 0\n");
	rig_config.git_config = file;
}

/* A server with the old protocol hands out only the commits that it advertises, so not the one before the newest. */
static void test_pull_request_by_its_ref(void **state)
{
	char newer[64];

	(void)state;
	speak_the_old_protocol();
	make_pull("asked for");
	shell(origin, "git checkout -q refs/pull/7/head", NULL);
	commit(origin, "newer");
	shell(origin,
	    "git update-ref refs/pull/7/head HEAD && git rev-parse HEAD && "
	    "git checkout -q main",
	    newer);
	rig_config.git_depth = 5;
	rig_step("look", "cat file", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("fetching refs/pull/7/head");
	rig_assert_log_has("\nasked for\n");
	/* if the fetched commits do not contain it, no other commit is tested in its place */
	rig_next_job();
	shell(origin, "git update-ref refs/pull/7/head main", NULL);
	memset(sha, 'a', 40);
	rig_run();
	rig_assert_conclusion("startup_failure", "refs/pull/7/head is at ");
	rig_assert_conclusion("startup_failure", "pushed to again");
	rig_assert_log_lacks("== step look");
}

/* The merge base of pull request 7 is an older commit of its branch. */
static void become_experiment_on_base(void)
{
	static const char *const tests[] = {"unit/a", NULL};

	make_pull("of the pull request");
	shell(origin, "git rev-parse main", sha);
	commit(origin, "newer on main");
	rig_offer.ref = (char *)"refs/heads/main";
	rig_become_experiment(EXPERIMENT_BASE, tests);
	rig_step("look", "cat file; git rev-parse HEAD", MINUTE_MS);
}

static void test_experiment_on_the_base_is_fetched_by_its_commit(void **state)
{
	(void)state;
	become_experiment_on_base();
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nsecond\n");
	rig_assert_log_has(sha);
}

/* If the server does not hand out commits by name, the merge base is searched on the branch and not among the
 * pull request's own commits. */
static void test_experiment_on_the_base_by_its_branch(void **state)
{
	(void)state;
	speak_the_old_protocol();
	become_experiment_on_base();
	rig_config.git_depth = 5;
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("fetching refs/heads/main");
	rig_assert_log_lacks("refs/pull/7");
	rig_assert_log_has("\nsecond\n");
}

static void test_experiment_on_the_head_by_its_ref(void **state)
{
	static const char *const tests[] = {"unit/a", NULL};

	(void)state;
	speak_the_old_protocol();
	make_pull("pulled");
	shell(origin, "git checkout -q refs/pull/7/head", NULL);
	commit(origin, "newer");
	shell(origin, "git update-ref refs/pull/7/head HEAD && git checkout -q main", NULL);
	rig_become_experiment(EXPERIMENT_HEAD, tests);
	rig_config.git_depth = 5;
	rig_step("look", "cat file", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("fetching refs/pull/7/head");
	rig_assert_log_has("\npulled\n");
}

static void test_deleted_pull_request(void **state)
{
	(void)state;
	memset(sha, 'b', 40);
	rig_step("look", "cat file", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("startup_failure", "checkout: fatal: couldn't find remote ref");
	assert_true(rig_has("excerpt"));
}

static void test_missing_commit_of_a_push(void **state)
{
	(void)state;
	memset(sha, 'b', 40);
	rig_offer.kind = CHANGE_PUSH;
	rig_offer.number = 0;
	rig_offer.ref = (char *)"refs/heads/main";
	rig_step("look", "cat file", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("startup_failure", "cannot be fetched by its name");
}

static void test_network_failure_is_retried(void **state)
{
	(void)state;
	kill(-server, SIGKILL);
	rig_step("look", "cat file", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("startup_failure", "checkout: fatal: unable to connect");
	rig_assert_log_has("trying again");
}

/* The checkout runs nothing of the repository under test. */
static void test_hostile_repository(void **state)
{
	(void)state;
	shell(origin,
	    "mkdir -p .git-hooks hooks .githooks && "
	    "printf '#!/bin/sh\\ntouch ran' > hooks/post-checkout && chmod +x hooks/* && "
	    "printf '* filter=evil\\n' > .gitattributes && "
	    "ln -s /etc results && ln -s ../../.. up",
	    NULL);
	commit(origin, "hostile");
	shell(origin, "git rev-parse HEAD", sha);
	rig_step("look", "true", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("startup_failure", "results: not a folder");
	assert_false(rig_has("work/ran"));
}

/* The checkout runs no filter, hook or alias of the configuration of the runner's user, with any attributes that
 * the change gives its files. */
static void test_the_configuration_of_the_user_is_not_run(void **state)
{
	char *gitconfig = xasprintf("%s/.gitconfig", rig_dir), *hooks, *text;

	(void)state;
	shell(origin, "printf '*.bin filter=lfs\\n' > .gitattributes && echo plain > a.bin", NULL);
	commit(origin, "picks a filter");
	shell(origin, "git rev-parse HEAD", sha);
	hooks = xasprintf("%s/hooks", rig_dir);
	assert_int_equal(mkdir(hooks, 0700), 0);
	text = xasprintf("%s/post-checkout", hooks);
	rig_write(text, "#!/bin/sh\ntouch \"$HOOK_RAN\"\n");
	chmod(text, 0755);
	free(text);
	text = xasprintf("[filter \"lfs\"]\n\tsmudge = \"touch %s/ran; cat\"\n\trequired = true\n"
			 "[core]\n\thooksPath = %s\n\tfsmonitor = touch %s/ran\n"
			 "\tsshCommand = touch %s/ran\n[credential]\n\thelper = !touch %s/ran\n",
	    rig_dir, hooks, rig_dir, rig_dir, rig_dir);
	rig_write(gitconfig, text);
	free(text);
	text = xasprintf("%s/ran", rig_dir);
	setenv("HOOK_RAN", text, 1);
	rig_step("look", "cat a.bin", MINUTE_MS);
	rig_run();
	unsetenv("HOOK_RAN");
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nplain\n");
	if (!access(text, F_OK))
		fail_msg("the user's configuration was run");
	free(text);
	free(hooks);
	free(gitconfig);
}

static void test_report_of_the_repository(void **state)
{
	(void)state;
	shell(origin,
	    "mkdir results && echo '<testsuite name=\"a\"><testcase name=\"b\"/></testsuite>' "
	    "> results/old.xml",
	    NULL);
	commit(origin, "with an old report");
	shell(origin, "git rev-parse HEAD", sha);
	rig_globs[0] = (char *)"results/*.xml";
	rig_step("look", "ls results", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("action_required", "came with the checkout");
	rig_assert_log_has("\nold.xml\n");
	assert_false(rig_has("report.json"));
}

/* A job that is killed during a fetch leaves lock files, which must not stop later jobs. */
static void test_stale_locks(void **state)
{
	(void)state;
	rig_step("look", "cat file", MINUTE_MS);
	rig_run();
	rig_next_job();
	shell(rig_dir,
	    "for m in mirror/*.git; do touch $m/shallow.lock $m/config.lock "
	    "$m/refs/outpost/tip.lock $m/objects/pack/tmp_pack_1; done",
	    NULL);
	commit(origin, "third");
	shell(origin, "git rev-parse HEAD", sha);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nthird\n");
	shell(rig_dir, "! ls mirror/*.git/objects/pack/tmp_*", NULL);
}

static void test_in_the_sandbox(void **state)
{
	(void)state;
	if (system("bwrap --ro-bind / / --unshare-all true") != 0)
		skip();
	rig_config.sandbox = SANDBOX_BUBBLEWRAP;
	rig_step("look",
	    "git log -1 --format=%s; echo x > file; git diff --stat | cat; "
	    "touch \"$(cat .git/objects/info/alternates)/x\" || echo kept out",
	    MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nsecond\n");
	rig_assert_log_has("1 file changed");
	rig_assert_log_has("\nkept out\n");
}

static void test_cancel(void **state)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	char *silent;
	pid_t pid;

	(void)state;
	/* a server that takes the connection and says nothing */
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	silent = xasprintf("git://127.0.0.1:%d/x", ntohs(a.sin_port));
	rig_config.git_url = silent;
	rig_step("look", "true", MINUTE_MS);
	pid = rig_start();
	int peer = accept(fd, NULL, NULL);
	assert_true(peer >= 0);
	kill(pid, SIGTERM);
	rig_finish(pid);
	rig_assert_conclusion("cancelled", "during the checkout");
	assert_int_equal(rig_result.n_steps, 0);
	rig_next_job();
	rig_config.timeout_ms = 200;
	rig_run();
	rig_assert_conclusion("timed_out", "during the checkout");
	close(peer);
	close(fd);
	free(silent);
}

static void test_password_in_the_url(void **state)
{
	(void)state;
	rig_config.git_url = (char *)"http://me:pass-word-1@127.0.0.1:1/x";
	rig_step("look", "true", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("startup_failure", "checkout: ");
	rig_assert_conclusion("startup_failure", "Failed to connect"); /* git's own complete reason */
	assert_null(strstr(rig_result.message, "pass-word-1"));
	rig_assert_log_lacks("pass-word-1");
}

/* The branch has moved on since, by more than the depth. */
static void test_push_by_its_branch(void **state)
{
	(void)state;
	speak_the_old_protocol();
	commit(origin, "third");
	commit(origin, "fourth");
	rig_offer.kind = CHANGE_PUSH;
	rig_offer.number = 0;
	rig_offer.ref = (char *)"refs/heads/main";
	rig_step("look", "cat file; git rev-parse HEAD", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("fetching refs/heads/main");
	rig_assert_log_has("looking for it in 50 commits");
	rig_assert_log_has("\nsecond\n");
	rig_assert_log_has(sha);
	/* a missing commit is not replaced by one that it has */
	rig_next_job();
	memset(sha, 'a', 40);
	rig_run();
	rig_assert_conclusion("startup_failure", "refs/heads/main is at ");
	rig_assert_conclusion("startup_failure", "without it among the newest commits");
	rig_assert_log_lacks("== step look");
	/* a name that git could read as something else is refused */
	rig_next_job();
	rig_offer.ref = (char *)"refs/heads/*";
	rig_run();
	rig_assert_conclusion("startup_failure", "");
	rig_assert_log_lacks("fetching refs/heads");
}

/* Power loss leaves files without their content. */
static void test_damaged_mirror(void **state)
{
	(void)state;
	rig_step("look", "cat file", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_next_job();
	shell(rig_dir, "for f in $(find mirror/*.git/objects -type f); do chmod u+w $f; : > $f; done", NULL);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("the local mirror is damaged");
	rig_assert_log_has("\nsecond\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_commit), TEST(test_second_job_needs_no_network),
	    TEST(test_all_of_history_after_a_part_of_it), TEST(test_pull_request_is_fetched_by_its_commit),
	    TEST(test_pull_request_by_its_ref), TEST(test_experiment_on_the_base_is_fetched_by_its_commit),
	    TEST(test_experiment_on_the_base_by_its_branch), TEST(test_experiment_on_the_head_by_its_ref),
	    TEST(test_deleted_pull_request), TEST(test_missing_commit_of_a_push), TEST(test_network_failure_is_retried),
	    TEST(test_hostile_repository), TEST(test_the_configuration_of_the_user_is_not_run),
	    TEST(test_report_of_the_repository), TEST(test_stale_locks), TEST(test_in_the_sandbox), TEST(test_cancel),
	    TEST(test_password_in_the_url), TEST(test_push_by_its_branch), TEST(test_damaged_mirror)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
