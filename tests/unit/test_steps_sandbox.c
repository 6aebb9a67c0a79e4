/* A step's view of the machine inside bubblewrap. test_steps_promises.c tries the rows of docs/sandbox.md. */
#include "steps_rig.h"

#include "steps/sandbox.h"

#define MINUTE_MS (60 * 1000)

static bool is_possible;

static int setup(void **state)
{
	int rc = rig_setup(state);

	rig_config.sandbox = SANDBOX_BUBBLEWRAP;
	return rc;
}

/* Runs one step inside, with the FIFO allowed, and returns its output. */
static void run(const char *script)
{
	static char *allowed[2];

	allowed[0] = rig_fifo;
	if (!rig_config.allow_write)
		rig_config.allow_write = allowed;
	rig_step("try", script, MINUTE_MS);
	rig_run();
}

static void needs_sandbox(void)
{
	if (!is_possible)
		skip();
}

static void test_steps_can_work(void **state)
{
	(void)state;
	needs_sandbox();
	run("set -e; echo hello; echo x > made; test \"$PWD\" = \"$HOME\"; echo y > /tmp/z; "
	    "echo y > $OUTPOST_RESULTS/r; test \"$TMPDIR\" = /tmp; cat $OUTPOST_CHANGE_JSON; "
	    "python3 -c 'import json, tempfile; tempfile.NamedTemporaryFile()'; echo z > "
	    "/dev/null; "
	    "head -c 4 /dev/urandom > /dev/shm/x; getent passwd root");
	rig_assert_conclusion("success", NULL);
	assert_string_equal(rig_read("work/made"), "x\n");
	rig_assert_log_has("\"head_sha\":\"" RIG_SHA "\"");
	rig_assert_log_lacks("sandbox: none");
	rig_assert_log_has("== sandbox: bubblewrap: no network, no devices;");
}

static void test_tests_of_an_experiment_can_be_read(void **state)
{
	static const char *const tests[] = {"unit/a", "--/$(reboot) b", NULL};

	(void)state;
	needs_sandbox();
	rig_become_experiment(EXPERIMENT_BASE, tests);
	run("cp \"$OUTPOST_TESTS\" out; (echo x >\"$OUTPOST_TESTS\") 2>/dev/null && echo wrote; "
	    "(rm -f \"$OUTPOST_TESTS\") 2>/dev/null && echo removed; "
	    "(mv out2 \"$OUTPOST_TESTS\") 2>/dev/null && echo moved; true");
	rig_assert_conclusion("success", NULL);
	assert_string_equal(rig_read("work/out"), "unit/a\n--/$(reboot) b\n");
	assert_string_equal(rig_read("tests"), "unit/a\n--/$(reboot) b\n");
	rig_assert_log_lacks("\nwrote");
	rig_assert_log_lacks("\nremoved");
	rig_assert_log_lacks("\nmoved");
}

static void test_system_is_read_only(void **state)
{
	(void)state;
	needs_sandbox();
	run("for f in /usr/x /etc/x /bin/x /x /var/x /run/x /proc/sys/kernel/hostname; do "
	    "(echo > $f) 2>/dev/null && [ $f != /run/x ] && echo wrote $f; done; "
	    "for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/sys/vm/drop_caches; "
	    "do "
	    "[ -w $f ] && echo wrote $f; done; "
	    "find / -xdev -path '/tmp/*' -prune -o -newer $OUTPOST_CHANGE_JSON -writable -type f "
	    "-print; "
	    "echo > $OUTPOST_CHANGE_JSON && echo wrote the change; true");
	rig_assert_conclusion("success", NULL);
	rig_assert_log_lacks("\nwrote");
}

/* The runner's own files and those of other users and jobs do not exist inside, with any permissions. */
static void test_private_files_are_hidden(void **state)
{
	char *token = xasprintf("%s/token", rig_dir), *other = xasprintf("%s/other", rig_dir);
	char *script = xasprintf("for f in /root /home /etc/shadow /etc/ssl/private /boot /mnt /opt "
				 "/sys %s %s %s/lock %s/offer.json %s/log; do "
				 "[ -e $f ] && echo there: $f; done; cat %s; true",
	    token, other, rig_folder, rig_folder, rig_folder, token);

	(void)state;
	needs_sandbox();
	rig_write(token, "the-token");
	rig_write(other, "x");
	rig_config.token_file = token;
	run(script);
	rig_assert_conclusion("success", NULL);
	rig_assert_log_lacks("\nthere:");
	rig_assert_log_lacks("the-token");
	free(script);
	free(other);
	free(token);
}

/* The same if the operator allows a folder that contains them. */
static void test_private_files_inside_allowed_folders_are_hidden(void **state)
{
	char *outside = xasprintf("%s-allowed", rig_dir), *token = xasprintf("%s/token", outside);
	char *open = xasprintf("%s/open", outside), *inside = xasprintf("%s/cache", rig_dir);
	char *allowed[] = {outside, (char *)"/tmp", NULL}, *writable[] = {inside, NULL};
	char *script = xasprintf("cat %s; cat %s; echo > %s/x && echo wrote; ls %s; echo > %s/kept; "
				 "ls %s",
	    open, token, outside, rig_dir, inside, rig_dir);

	(void)state;
	needs_sandbox();
	assert_int_equal(mkdir(outside, 0700), 0);
	assert_int_equal(mkdir(inside, 0700), 0);
	rig_write(token, "the-token");
	rig_write(open, "for all");
	rig_config.token_file = token;
	rig_config.allow_read = allowed;
	rig_config.allow_write = writable;
	run(script);
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nfor all");
	rig_assert_log_lacks("the-token");
	rig_assert_log_lacks("\nwrote");
	rig_assert_log_lacks("\nfifo");
	free(script);
	script = xasprintf("%s/kept", inside);
	assert_int_equal(access(script, F_OK), 0);
	unlink(token);
	unlink(open);
	rmdir(outside);
	free(script);
	free(inside);
	free(open);
	free(token);
	free(outside);
}

static void test_no_network(void **state)
{
	(void)state;
	needs_sandbox();
	run("grep -c : /proc/net/dev; test $(grep -c : /proc/net/dev) = 1 && echo lonely; "
	    "hostname");
	rig_assert_log_has("\nlonely\noutpost-runner\n");
}

static void test_allowed_network(void **state)
{
	(void)state;
	needs_sandbox();
	rig_config.allow_network = true;
	run("readlink /proc/self/ns/net > ns");
	char ours[64];
	ssize_t n = readlink("/proc/self/ns/net", ours, sizeof(ours) - 1);
	assert_true(n > 0);
	ours[n] = '\0';
	assert_int_equal(strncmp(rig_read("work/ns"), ours, (size_t)n), 0);
	rig_assert_log_has("== sandbox: bubblewrap: the machine's network, no devices;");
}

static void test_devices(void **state)
{
	char *devices[] = {(char *)"/dev/loop-control", NULL};

	(void)state;
	needs_sandbox();
	if (access(devices[0], F_OK))
		devices[0] = (char *)"/dev/mem";
	if (access(devices[0], F_OK))
		devices[0] = (char *)"/dev/kmsg";
	run("ls /dev");
	rig_assert_log_lacks(devices[0] + strlen("/dev"));
	rig_assert_log_lacks(devices[0] + strlen("/dev/"));
	rig_assert_log_has("urandom");
}

static void test_listed_device(void **state)
{
	char *devices[] = {(char *)"/dev/kmsg", NULL};

	(void)state;
	needs_sandbox();
	if (access(devices[0], F_OK))
		skip();
	rig_config.allow_devices = devices;
	run("test -c /dev/kmsg && test -d /sys/class && echo there");
	rig_assert_log_has("\nthere\n");
}

static void test_processes_are_its_own(void **state)
{
	(void)state;
	needs_sandbox();
	run("ls -d /proc/[0-9]* | wc -l > n; kill -9 -1; true");
	const char *n = rig_read("work/n");
	assert_true(strtol(n, NULL, 10) <= 6);
	assert_false(job_folder_is_locked(rig_folder));
}

static void test_no_privileges(void **state)
{
	(void)state;
	needs_sandbox();
	run("grep -E 'CapEff|NoNewPrivs' /proc/self/status; mount -t tmpfs x /tmp 2>/dev/null && "
	    "echo mounted; (exec 3</dev/tty) 2>/dev/null && echo terminal; true");
	rig_assert_log_has("CapEff:\t0000000000000000");
	rig_assert_log_has("NoNewPrivs:\t1");
	rig_assert_log_lacks("\nmounted");
	rig_assert_log_lacks("\nterminal");
}

static void test_sigterm_arrives_inside(void **state)
{
	(void)state;
	needs_sandbox();
	run("true");
	rig_assert_conclusion("success", NULL);
	rig_teardown(NULL);
	setup(NULL);
	static char *allowed[2];
	allowed[0] = rig_fifo;
	rig_config.allow_write = allowed;
	rig_step("long", "trap 'echo tidy; exit 4' TERM; echo up > $FIFO; sleep 1000 & wait", MINUTE_MS);
	pid_t pid = rig_start();
	rig_expect("up");
	kill(pid, SIGTERM);
	rig_finish(pid);
	rig_assert_conclusion("cancelled", "step long");
	assert_int_equal(rig_result.steps[0].exit_code, 4);
	rig_assert_log_has("\ntidy\n");
}

static void test_detached_process_that_ignores_signals_ends(void **state)
{
	static char *allowed[2];

	(void)state;
	needs_sandbox();
	allowed[0] = rig_fifo;
	rig_config.allow_write = allowed;
	rig_pace.kill_after_ms = 100;
	rig_step("deaf", "exec 9>$FIFO; (setsid sleep 1000 &); trap '' TERM; while :; do sleep 1000; done", 200);
	rig_run();
	rig_assert_conclusion("timed_out", "step deaf");
	assert_true(rig_are_all_gone());
}

static void test_killed_job_leaves_nothing(void **state)
{
	static char *allowed[2];

	(void)state;
	needs_sandbox();
	allowed[0] = rig_fifo;
	rig_config.allow_write = allowed;
	rig_step("long", "exec 9>$FIFO; (setsid sleep 1000 &); echo up >&9; sleep 1000", MINUTE_MS);
	pid_t pid = rig_start();
	rig_expect("up");
	kill(pid, SIGKILL);
	rig_expect_all_gone();
	assert_int_equal(rig_wait(pid), SIGKILL);
}

static void test_exit_codes(void **state)
{
	(void)state;
	needs_sandbox();
	run("echo last words; exit 1");
	rig_assert_conclusion("failure", "step try: exit 1");
	assert_int_equal(rig_result.steps[0].exit_code, 1);
}

/* If a step fails because the sandbox hides a file, the job has no result, and the message names the setting that
 * shows the file. */
static void test_hidden_program(void **state)
{
	char *tools = xasprintf("%s-tools", rig_dir), *tool = xasprintf("%s/hidden-tool", tools);
	char *path = xasprintf("/usr/bin:%s", tools), *script = xasprintf("%s --all", tool);
	char *message = xasprintf("the sandbox hides %s; in the runner's file allow: {read: [%s]} "
				  "shows it",
	    tool, tools);
	char *cd = xasprintf("cd %s && echo ran", tools), *allowed[] = {tools, NULL};

	(void)state;
	needs_sandbox();
	assert_int_equal(mkdir(tools, 0755), 0);
	rig_write(tool, "#!/bin/sh\necho the tool ran\n");
	assert_int_equal(chmod(tool, 0755), 0);
	run(script);
	rig_assert_conclusion("action_required", "step try: exit 127 (a command was not found): ");
	rig_assert_conclusion("action_required", message);
	/* by its name in PATH */
	rig_teardown(NULL);
	setup(NULL);
	rig_environment[1] = (struct runner_variable){(char *)"PATH", path};
	rig_config.n_environment = 2;
	run("hidden-tool");
	rig_assert_conclusion("action_required", message);
	/* a folder, and another exit code */
	rig_teardown(NULL);
	setup(NULL);
	run(cd);
	rig_assert_conclusion("action_required", ": the sandbox hides ");
	/* a reference to the machine in the change is not looked up */
	rig_teardown(NULL);
	setup(NULL);
	rig_environment[1] = (struct runner_variable){(char *)"NAME", tool};
	rig_config.n_environment = 2;
	run("echo \"/bin/sh: $NAME: not found\"; exit 127");
	rig_assert_conclusion("action_required", "(a command was not found): the sandbox shows the");
	rig_teardown(NULL);
	setup(NULL);
	rig_config.n_environment = 1;
	rig_config.allow_read = allowed;
	run(script);
	rig_assert_conclusion("success", NULL);
	unlink(tool);
	rmdir(tools);
	free(cd);
	free(message);
	free(script);
	free(path);
	free(tool);
	free(tools);
}

/* A path of `allow` that disappeared after the start is the vendor's fault, not the change's. */
static void test_sandbox_that_cannot_be_set_up(void **state)
{
	char *gone[] = {(char *)"/dev/not-there", NULL};

	(void)state;
	needs_sandbox();
	rig_config.allow_devices = gone;
	run("echo ran");
	rig_assert_conclusion("startup_failure", "sandbox: bwrap: ");
	rig_assert_log_lacks("\nran");
}

static void test_check(void **state)
{
	char *gone[] = {(char *)"/dev/not-there", NULL};
	struct error e = {0};

	(void)state;
	needs_sandbox();
	if (steps_check(&rig_config, &e))
		fail_msg("%s", e.text);
	rig_config.allow_devices = gone;
	assert_int_equal(steps_check(&rig_config, &e), ERR_NOT_FOUND);
	assert_non_null(strstr(e.text, "allow.devices: /dev/not-there"));
}

static void test_check_without_bubblewrap(void **state)
{
	char *path = xstrdup(getenv("PATH"));
	struct error e = {0};

	(void)state;
	setenv("PATH", rig_dir, 1);
	assert_int_equal(steps_check(&rig_config, &e), ERR_NOT_FOUND);
	assert_non_null(strstr(e.text, "apt-get install bubblewrap"));
	assert_non_null(strstr(e.text, "dnf install bubblewrap"));
	rig_config.sandbox = SANDBOX_NONE;
	rig_config.has_checkout = true;
	e = (struct error){0};
	assert_int_equal(steps_check(&rig_config, &e), ERR_NOT_FOUND);
	assert_non_null(strstr(e.text, "install git"));
	setenv("PATH", path, 1);
	free(path);
}

/* If bubblewrap is installed but may do nothing, the error repeats its message. */
static void test_check_with_a_bubblewrap_that_fails(void **state)
{
	char *path = xstrdup(getenv("PATH")), *fake = xasprintf("%s/bwrap", rig_dir);
	char *both = xasprintf("%s:%s", rig_dir, path);
	struct error e = {0};

	(void)state;
	rig_write(fake, "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n");
	assert_int_equal(chmod(fake, 0755), 0);
	setenv("PATH", both, 1);
	assert_int_equal(steps_check(&rig_config, &e), ERR_DENIED);
	assert_non_null(strstr(e.text, "bwrap: No permissions to create new namespace; "));
	setenv("PATH", path, 1);
	free(both);
	free(fake);
	free(path);
}

static void test_check_of_the_work_folder(void **state)
{
	struct error e = {0};

	(void)state;
	rig_config.work_dir = (char *)"/proc/outpost";
	assert_int_equal(steps_check(&rig_config, &e), ERR_DENIED);
	assert_non_null(strstr(e.text, "work_dir: /proc/outpost"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_steps_can_work), TEST(test_tests_of_an_experiment_can_be_read),
	    TEST(test_system_is_read_only), TEST(test_private_files_are_hidden),
	    TEST(test_private_files_inside_allowed_folders_are_hidden), TEST(test_no_network),
	    TEST(test_allowed_network), TEST(test_devices), TEST(test_listed_device), TEST(test_processes_are_its_own),
	    TEST(test_no_privileges), TEST(test_sigterm_arrives_inside),
	    TEST(test_detached_process_that_ignores_signals_ends), TEST(test_killed_job_leaves_nothing),
	    TEST(test_exit_codes), TEST(test_hidden_program), TEST(test_sandbox_that_cannot_be_set_up),
	    TEST(test_check), TEST(test_check_without_bubblewrap), TEST(test_check_with_a_bubblewrap_that_fails),
	    TEST(test_check_of_the_work_folder)};
	int status = system("bwrap --ro-bind / / --unshare-all true");

	is_possible = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (!is_possible)
		print_message("bubblewrap cannot run here: what needs it is skipped\n");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
