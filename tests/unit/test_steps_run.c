/* Steps run in order, and when a step is over all its processes have ended, also those that detached, ignored signals
 * or multiplied. */
#include "steps_rig.h"

#define MINUTE_MS (60 * 1000)

static void test_success(void **state)
{
	(void)state;
	rig_step("build", "echo building; pwd", MINUTE_MS);
	rig_step("test", "echo testing >&2", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	assert_int_equal(rig_result.n_steps, 2);
	assert_string_equal(rig_result.steps[1].name, "test");
	assert_int_equal(rig_result.steps[1].exit_code, 0);
	assert_true(rig_result.started_ms > 0);
	assert_true(rig_result.completed_ms >= rig_result.started_ms);
	assert_false(rig_result.has_report);
	rig_assert_log_has("== step build: echo building; pwd [20");
	rig_assert_log_has("\nbuilding\n/tmp/outpost-steps-");
	rig_assert_log_has("\ntesting\n== step test: exit 0 after ");
	assert_false(rig_has("excerpt"));
	assert_false(job_folder_is_locked(rig_folder));
}

static void test_failing_step_ends_the_job(void **state)
{
	const char *excerpt;

	(void)state;
	rig_step("build", "echo one; echo two; exit 7", MINUTE_MS);
	rig_step("test", "echo never", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("failure", "step build: exit 7");
	assert_int_equal(rig_result.n_steps, 1);
	assert_int_equal(rig_result.steps[0].exit_code, 7);
	rig_assert_log_has("== step test: not run\n");
	rig_assert_log_lacks("never");
	excerpt = rig_read("excerpt");
	assert_string_equal(excerpt, "one\ntwo\n");
}

static void test_signal(void **state)
{
	(void)state;
	rig_step("crash", "kill -SEGV $$", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("failure", "step crash: signal 11 (Segmentation fault)");
	assert_int_equal(rig_result.steps[0].exit_code, -1);
	assert_int_equal(rig_result.steps[0].signal, SIGSEGV);
}

/* A missing program is not the change's fault. */
static void test_missing_program_is_not_a_failure_of_the_change(void **state)
{
	(void)state;
	rig_step("build", "./build.sh", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("action_required", "step build: exit 127 (a command was not found)");
	assert_null(strstr(rig_result.message, "sandbox"));
	rig_teardown(NULL);
	rig_setup(NULL);
	rig_step("build", "echo echo hello > x; ./x", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("action_required", "step build: exit 126 (a command could not be executed)");
}

/* A step gets only the variables that are meant for it. */
static void test_environment(void **state)
{
	static const char *const expected[] = {"\nOUTPOST_DISPATCH_ID=dispatch1", "OUTPOST_HEAD_SHA=" RIG_SHA,
	    "OUTPOST_PR=7", "OUTPOST_REPOSITORY=pytorch/pytorch", "OUTPOST_KIND=pull_request",
	    "OUTPOST_ACCELERATOR=npu", "OUTPOST_ATTEMPT=2", "CI=true", "SHARED=secret", "\nHOME=/tmp/outpost-steps-",
	    "\nTMPDIR=/tmp/outpost-steps-", "\nUSER=", "\nLANG=", "\nPATH=/"};
	const char *out;

	(void)state;
	setenv("FROM_THE_AGENT", "no", 1);
	setenv("GIT_DIR", "/elsewhere", 1);
	rig_environment[1] = (struct runner_variable){(char *)"SHARED", (char *)"environment"};
	rig_environment[2] = (struct runner_variable){(char *)"OUTPOST_HEAD_SHA", (char *)"another"};
	rig_config.n_environment = 3;
	rig_secrets[0] = (struct runner_secret){(char *)"SHARED", secret_of("secret")};
	rig_config.n_secrets = 1;
	rig_step("env",
	    "{ echo; env; } > out; test -d \"$OUTPOST_RESULTS\" && test -d \"$TMPDIR\" && cat "
	    "\"$OUTPOST_CHANGE_JSON\" && test \"$HOME\" = \"$PWD\" && "
	    "ls -l /proc/self/fd | grep -c -v -e pipe: -e /dev/null -e /proc -e total",
	    MINUTE_MS);
	rig_run();
	unsetenv("FROM_THE_AGENT");
	unsetenv("GIT_DIR");
	rig_assert_conclusion("failure", "exit 1"); /* grep: no other descriptor is open */
	rig_assert_log_has("\"head_sha\":\"" RIG_SHA "\"");
	rig_assert_log_lacks("lease1");
	out = rig_read("work/out");
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		if (!strstr(out, expected[i]))
			fail_msg("missing: %s in\n%s", expected[i], out);
	assert_null(strstr(out, "FROM_THE_AGENT"));
	assert_null(strstr(out, "GIT_DIR"));
	assert_null(strstr(out, "runner-token"));
}

static void test_experiment(void **state)
{
	static const char *const tests[] = {"unit/tests.test_ops.TestOps.test_add[npu]",
	    "-k/$(touch ran) `touch ran`; touch ran", "unit/it's \"quoted\" \\n %s", "модель/тест", NULL};

	(void)state;
	rig_become_experiment(EXPERIMENT_HEAD, tests);
	rig_step("env",
	    "cp \"$OUTPOST_TESTS\" out; echo \"side=$OUTPOST_EXPERIMENT_SIDE pr=$OUTPOST_PR "
	    "sha=$OUTPOST_HEAD_SHA kind=$OUTPOST_KIND\"; cat \"$OUTPOST_CHANGE_JSON\"",
	    MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	assert_string_equal(rig_read("work/out"),
	    "unit/tests.test_ops.TestOps.test_add[npu]\n-k/$(touch ran) `touch ran`; touch ran\n"
	    "unit/it's \"quoted\" \\n %s\nмодель/тест\n");
	rig_assert_log_has("\nside=head pr=7 sha=" RIG_SHA " kind=experiment\n");
	rig_assert_log_has("== experiment: tests to run again: 4, at " RIG_SHA ", the pull request's head\n");
	rig_assert_log_has("\"experiment\":{\"id\":9,\"of\":\"dispatch0\",\"side\":\"head\"");
	rig_assert_log_has("\"environment\":{\"device\":\"910B\"}");
	assert_false(rig_has("work/ran"));
}

/* A test name that any program would read as several lines is left out. */
static void test_experiment_with_names_that_break_lines(void **state)
{
	static const char *const tests[] = {
	    "unit/a\nunit/b", "unit/c", "unit/\033[2Jd", "unit/e\r", "unit/f\u2028unit/g", "unit/\tx", NULL};

	(void)state;
	rig_become_experiment(EXPERIMENT_BASE, tests);
	rig_step("look",
	    "cp \"$OUTPOST_TESTS\" out; echo \"side=$OUTPOST_EXPERIMENT_SIDE pr=<$OUTPOST_PR>\"; "
	    "python3 -c 'import os; "
	    "print(open(os.environ[\"OUTPOST_TESTS\"]).read().splitlines())'",
	    MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	assert_string_equal(rig_read("work/out"), "unit/c\n");
	rig_assert_log_has("\n['unit/c']\n");
	rig_assert_log_has("\nside=base pr=<>\n"); /* nothing of the pull request is tested */
	rig_assert_log_has("== experiment: tests to run again: 1, at " RIG_SHA ", the merge base\n");
	rig_assert_log_has("== experiment: tests left out, because their names hold control characters: 5\n");
}

/* An empty list never means all tests. */
static void test_experiment_without_a_test(void **state)
{
	static const char *const tests[] = {"unit/a\nunit/b", NULL};

	(void)state;
	rig_become_experiment(EXPERIMENT_HEAD, tests);
	rig_step("never", "touch ran", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("startup_failure", "no test of the experiment has a name that fits");
	assert_false(rig_has("work/ran"));
}

static void test_ordinary_jobs_list_no_tests(void **state)
{
	(void)state;
	rig_step("env", "test -z \"${OUTPOST_TESTS+set}${OUTPOST_EXPERIMENT_SIDE+set}\"", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	assert_false(rig_has("tests"));
}

static void test_push_has_no_number(void **state)
{
	(void)state;
	rig_offer.kind = CHANGE_PUSH;
	rig_offer.number = 0;
	rig_offer.ref = (char *)"refs/heads/main";
	rig_step("env", "test \"${OUTPOST_PR-unset}\" = \"\"", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
}

static int64_t given_ms; /* to the last job of rig_run_longer() */

static void assert_timed_out(const char *before, const char *after)
{
	char *message = xasprintf("%s %.1f s%s", before, (double)given_ms / 1000, after);

	rig_assert_conclusion("timed_out", message);
	free(message);
}

static bool run_until_waiting(int64_t ms)
{
	given_ms = ms;
	rig_step("slow", "trap 'echo terminated; exit 9' TERM; echo waiting; : > up; sleep 1000 & wait", ms);
	rig_run();
	return rig_has("work/up");
}

static void test_timeout_terminates_the_group(void **state)
{
	(void)state;
	rig_run_longer(1000, run_until_waiting);
	assert_timed_out("step slow: timed out after", "");
	assert_true(rig_result.steps[0].is_timeout);
	assert_int_equal(rig_result.steps[0].exit_code, 9);
	rig_assert_log_has("waiting\nterminated\n");
	rig_assert_log_has("== step slow: timed out, exit 9");
}

static void test_ignored_sigterm_is_followed_by_sigkill(void **state)
{
	(void)state;
	rig_pace.kill_after_ms = 100;
	rig_step("deaf", "exec 9>$FIFO; trap '' TERM; echo up >&9; while :; do sleep 1000; done", MINUTE_MS);
	pid_t pid = rig_start();
	rig_expect("up");
	assert_int_equal(kill(pid, SIGTERM), 0);
	rig_finish(pid);
	rig_assert_conclusion("cancelled", "step deaf");
	assert_int_equal(rig_result.steps[0].signal, SIGKILL);
	assert_true(rig_are_all_gone());
}

/* The shell ends at once; the program that it started needs a moment to clean up. */
static void test_the_group_has_time_after_its_leader(void **state)
{
	(void)state;
	/* a child of the shell that has not replaced itself yet ignores SIGTERM, so the program behind exec is "up" */
	rig_step("two", "(trap 'echo tidy; exit 0' TERM; sh -c 'echo up > $FIFO; exec sleep 1000' & wait) & wait",
	    MINUTE_MS);
	pid_t pid = rig_start();
	rig_expect("up");
	assert_int_equal(kill(pid, SIGTERM), 0);
	rig_finish(pid);
	rig_assert_conclusion("cancelled", "step two");
	rig_assert_log_has("\ntidy\n");
}

static bool run_until_second_step(int64_t ms)
{
	rig_config.timeout_ms = given_ms = ms;
	rig_step("one", "true", MINUTE_MS);
	rig_step("two", ": > up; sleep 1000", 10 * MINUTE_MS);
	rig_run();
	return rig_has("work/up");
}

static void test_the_whole_job_has_a_time(void **state)
{
	(void)state;
	rig_run_longer(1000, run_until_second_step);
	assert_timed_out("step two: the job's time of", " was over");
	assert_int_equal(rig_result.n_steps, 2);
}

static void test_detached_processes_end_with_the_step(void **state)
{
	(void)state;
	rig_pace.kill_after_ms = 100;
	rig_step("daemon",
	    "setsid sh -c '(setsid sh -c \"trap \\\"\\\" TERM HUP; exec 9>$FIFO; echo up >&9; "
	    "exec sleep 1000\" >/dev/null 2>&1 &)'; exec sleep 1000",
	    MINUTE_MS);
	pid_t pid = rig_start();
	rig_expect("up");
	assert_int_equal(kill(pid, SIGTERM), 0);
	rig_finish(pid);
	rig_assert_conclusion("cancelled", "step daemon");
	assert_true(rig_are_all_gone());
}

static void test_a_daemon_that_holds_the_pipe(void **state)
{
	(void)state;
	rig_step("holder",
	    "setsid sh -c 'exec 9>$FIFO; echo up >&9; exec sleep 1000' & "
	    "until [ -e up ]; do [ -e /proc/$!/fd/9 ] && : > up; done; echo done",
	    MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\ndone\n");
	rig_assert_log_has("processes that it left behind");
	assert_true(rig_are_all_gone());
}

/* Each process only starts the next one, in a session of its own, so a list of processes is always out of date. */
static void test_a_chain_of_detached_processes_ends(void **state)
{
	(void)state;
	rig_config.environment[1] = (struct runner_variable){(char *)"CHAIN", (char *)"import os\n"
										      "if os.fork(): os._exit(0)\n"
										      "while True:\n"
										      "    if os.fork(): os._exit(0)\n"
										      "    os.setsid()\n"};
	rig_config.n_environment = 2;
	rig_step("chain", "exec 9>$FIFO; python3 -c \"$CHAIN\"; echo off", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_lacks("could not be ended");
	assert_true(rig_are_all_gone());
}

static void test_a_fork_bomb_ends(void **state)
{
	(void)state;
	rig_pace.kill_after_ms = 50;
	rig_config.environment[1] =
	    (struct runner_variable){(char *)"STORM", (char *)"import os, signal, time\n"
							      "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
							      "for i in range(7):\n"
							      "    os.fork()\n"
							      "    os.setsid() if os.getpid() != os.getsid(0) else 0\n"
							      "while True:\n"
							      "    if os.fork() == 0:\n"
							      "        time.sleep(0.01); os._exit(0)\n"
							      "    try: os.waitpid(-1, 0)\n"
							      "    except OSError: pass\n"};
	rig_config.n_environment = 2;
	rig_step("storm", "exec 9>$FIFO; exec python3 -c \"$STORM\"", 300);
	rig_run();
	rig_assert_conclusion("timed_out", "step storm");
	rig_assert_log_lacks("could not be ended");
	assert_true(rig_are_all_gone());
}

static void test_cancel(void **state)
{
	struct error e = {0};

	(void)state;
	rig_step("long", "exec 9>$FIFO; echo up >&9; sleep 1000", MINUTE_MS);
	rig_step("next", "true", MINUTE_MS);
	pid_t pid = rig_start();
	rig_expect("up");
	assert_true(job_folder_is_locked(rig_folder));
	assert_int_equal(job_folder_cancel(rig_folder, &e), 0);
	rig_finish(pid);
	rig_assert_conclusion("cancelled", "cancelled during step long");
	assert_int_equal(rig_result.n_steps, 1);
	assert_true(rig_are_all_gone());
	rig_assert_log_has("== step next: not run");
	assert_int_equal(job_folder_cancel(rig_folder, &e), ERR_NOT_FOUND);
}

/* A signal to the whole session of the job cancels it too. */
static void test_signal_to_the_whole_session_cancels_the_job(void **state)
{
	(void)state;
	rig_step("long", "exec 9>$FIFO; echo up >&9; sleep 1000", MINUTE_MS);
	pid_t pid = rig_start();
	rig_expect("up");
	assert_int_equal(kill(-pid, SIGTERM), 0);
	rig_finish(pid);
	rig_assert_conclusion("cancelled", "step long");
}

static void test_killed_job_leaves_nothing(void **state)
{
	(void)state;
	rig_step("long",
	    "exec 9>$FIFO; (setsid sleep 1000 &); trap '' TERM HUP; echo up >&9; "
	    "while :; do sleep 1000; done",
	    MINUTE_MS);
	pid_t pid = rig_start();
	rig_expect("up");
	kill(pid, SIGKILL);
	rig_expect_all_gone();
	assert_int_equal(rig_wait(pid), SIGKILL);
	assert_false(rig_has("result.json"));
	/* the agent may start it once more by mistake; the steps are not run again */
	rig_run();
	rig_assert_conclusion("startup_failure", "ended before the job did");
	assert_int_equal(rig_result.n_steps, 0);
}

/* A step that kills its supervisor cannot leave processes behind. */
static void test_killed_supervisor(void **state)
{
	(void)state;
	rig_step("traitor", "exec 9>$FIFO; (setsid sleep 1000 &); kill -9 $PPID; sleep 1000", MINUTE_MS);
	rig_step("next", "true", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("failure", "step traitor: signal 9");
	assert_true(rig_are_all_gone());
}

static void test_one_process_for_one_job(void **state)
{
	struct error e = {0};

	(void)state;
	rig_step("long", "echo up > $FIFO; sleep 1000", MINUTE_MS);
	pid_t pid = rig_start(), second;
	rig_expect("up");
	second = rig_start();
	assert_int_equal(WEXITSTATUS(rig_wait(second)), 3);
	assert_int_equal(job_folder_cancel(rig_folder, &e), 0);
	rig_finish(pid);
	/* the job has already ended */
	assert_int_equal(rig_wait(rig_start()), 0);
	rig_read_result();
	rig_assert_conclusion("cancelled", "step long");
}

static void test_secrets_are_masked(void **state)
{
	const char *excerpt, *result;

	(void)state;
	rig_secrets[0] = (struct runner_secret){(char *)"KEY", secret_of("first-line\nsecond-line\n")};
	rig_config.n_secrets = 1;
	rig_step("leak",
	    "echo \"$KEY\"; printf first-; printf 'line runner-token-'; "
	    "printf '0123456789\\n'; exit 1",
	    MINUTE_MS);
	rig_run();
	rig_assert_log_lacks("first-line");
	rig_assert_log_lacks("second-line");
	rig_assert_log_lacks("runner-tok\n");
	rig_assert_log_has("\n*** ***\n");
	excerpt = rig_read("excerpt");
	result = rig_read("result.json");
	assert_null(strstr(excerpt, "-line"));
	assert_null(strstr(result, "-line"));
}

static void test_bad_offer(void **state)
{
	(void)state;
	rig_step("one", "true", MINUTE_MS);
	rig_offer.head_sha = (char *)"main; rm -rf /";
	rig_run();
	rig_assert_conclusion("startup_failure", "offer.json");
}

static void test_flood(void **state)
{
	const char *log;

	(void)state;
	rig_config.log_max_bytes = 300 * 1000;
	rig_step("flood", "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end; exit 1", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("failure", "step flood: exit 1");
	log = rig_read("log");
	assert_true(strlen(log) <= 300 * 1000);
	assert_non_null(strstr(log, "from here on only its end is kept"));
	assert_non_null(strstr(log, "bytes were left out here"));
	assert_non_null(strstr(log, "\nthe end\n== step flood: exit 1"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_success), TEST(test_failing_step_ends_the_job), TEST(test_signal),
	    TEST(test_missing_program_is_not_a_failure_of_the_change), TEST(test_environment), TEST(test_experiment),
	    TEST(test_experiment_with_names_that_break_lines), TEST(test_experiment_without_a_test),
	    TEST(test_ordinary_jobs_list_no_tests), TEST(test_push_has_no_number),
	    TEST(test_timeout_terminates_the_group), TEST(test_ignored_sigterm_is_followed_by_sigkill),
	    TEST(test_the_group_has_time_after_its_leader), TEST(test_the_whole_job_has_a_time),
	    TEST(test_detached_processes_end_with_the_step), TEST(test_a_daemon_that_holds_the_pipe),
	    TEST(test_a_chain_of_detached_processes_ends), TEST(test_a_fork_bomb_ends), TEST(test_cancel),
	    TEST(test_signal_to_the_whole_session_cancels_the_job), TEST(test_killed_job_leaves_nothing),
	    TEST(test_killed_supervisor), TEST(test_one_process_for_one_job), TEST(test_secrets_are_masked),
	    TEST(test_bad_offer), TEST(test_flood)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
