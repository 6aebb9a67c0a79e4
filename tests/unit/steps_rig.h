/* A job in a folder and a process of its own, as the agent runs it. Tests wait on a FIFO: steps write to it, and a
 * read ends when no process has it open for writing any more. */
#pragma once

#include <setjmp.h>

#include <cmocka.h>

#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "secret_of.h"
#include "steps/job.h"
#include "steps/steps.h"

#define RIG_SHA     "0123456789abcdef0123456789abcdef01234567"
#define RIG_STEPS   8
#define RIG_WAIT_MS (60 * 1000) /* ends only a test that hangs */

static char rig_dir[64]; /* work_dir */
static char *rig_folder; /* the job's */
static char *rig_fifo;   /* for the steps: $FIFO */
static int rig_fifo_fd = -1;
static struct runner_config rig_config;
static struct runner_step rig_steps[RIG_STEPS];
static struct runner_variable rig_environment[4];
static struct runner_secret rig_secrets[2];
static char *rig_globs[3];
static struct steps_pace rig_pace;
static uid_t rig_user; /* runs the job if the test is root; 0: root itself */
static struct lease_offer rig_offer;
static struct job_result rig_result;
static char *rig_texts[64];
static size_t rig_n_texts;

static inline void rig_step(const char *name, const char *run, int64_t timeout_ms)
{
	struct runner_step *s = &rig_steps[rig_config.n_steps++];

	assert_true(rig_config.n_steps <= RIG_STEPS);
	*s = (struct runner_step){.name = (char *)name, .run = (char *)run, .timeout_ms = timeout_ms};
}

static inline void rig_defaults(void)
{
	rig_offer = (struct lease_offer){.lease_id = (char *)"lease1",
	    .lease_ms = 60000,
	    .attempt = 2,
	    .job_id = 42,
	    .dispatch_id = (char *)"dispatch1",
	    .accelerator = (char *)"npu",
	    .runner = (char *)"farm",
	    .run_id = (char *)"run1",
	    .kind = CHANGE_PULL_REQUEST,
	    .repository = (char *)"pytorch/pytorch",
	    .head_sha = (char *)RIG_SHA,
	    .number = 7,
	    .title = (char *)"A title",
	    .author = (char *)"alice",
	    .event_type = (char *)"pull_request",
	    .action = (char *)"synchronize",
	    .delivery_id = (char *)"delivery1",
	    .change_url = (char *)"https://outpost.example/pulls/7"};
	rig_config = (struct runner_config){.path = (char *)"/nowhere/runner.yml",
	    .name = (char *)"npu-17",
	    .authorization = secret_of("Authorization: Bearer runner-token-0123456789"),
	    .token_file = (char *)"/nowhere/token",
	    .work_dir = rig_dir,
	    .steps = rig_steps,
	    .timeout_ms = RIG_WAIT_MS,
	    .report_globs = rig_globs,
	    .report_format = (char *)"junit",
	    .environment = rig_environment,
	    .n_environment = 1,
	    .secrets = rig_secrets,
	    .log_max_bytes = 1 << 20};
	memset(rig_globs, 0, sizeof(rig_globs));
	rig_environment[0] = (struct runner_variable){(char *)"FIFO", rig_fifo};
	rig_pace = (struct steps_pace){.kill_after_ms = RIG_WAIT_MS, .retry_ms = 1};
}

/* Makes the job an experiment on the commit that it tests; `tests` ends with NULL. */
static struct experiment_request rig_experiment;
static inline void rig_become_experiment(enum experiment_side side, const char *const *tests)
{
	static char *jobs[] = {(char *)"tests", NULL};

	rig_experiment = (struct experiment_request){.id = 9,
	    .of = (char *)"dispatch0",
	    .side = side,
	    .sha = rig_offer.head_sha,
	    .tests = (char **)(void *)tests,
	    .jobs = jobs,
	    .environment = (char *)"{\"device\":\"910B\"}"};
	rig_offer.kind = CHANGE_EXPERIMENT;
	rig_offer.event_type = rig_offer.action = (char *)"experiment";
	rig_offer.experiment = &rig_experiment;
}

static inline void rig_write(const char *path, const char *text)
{
	struct error e = {0};

	if (file_write_atomic(path, text, strlen(text), 0644, &e))
		fail_msg("%s", e.text);
}

/* A file of the job's folder. Borrowed until teardown, so that a failing test leaks nothing. */
static inline const char *rig_read(const char *name)
{
	struct error e = {0};
	size_t n;

	assert_true(rig_n_texts < ARRAY_LEN(rig_texts));
	if (job_folder_read(rig_folder, name, 64 << 20, &rig_texts[rig_n_texts], &n, &e))
		fail_msg("%s", e.text);
	return rig_texts[rig_n_texts++];
}

static inline bool rig_has(const char *name)
{
	char *path = path_join(rig_folder, name);
	bool has = !access(path, F_OK);

	free(path);
	return has;
}

static inline void rig_write_offer(void)
{
	char *path = path_join(rig_folder, "offer.json"), *text = lease_offer_text(&rig_offer);

	rig_write(path, text);
	free(text);
	free(path);
}

static inline int rig_setup(void **state)
{
	(void)state;
	snprintf(rig_dir, sizeof(rig_dir), "/tmp/outpost-steps-XXXXXX");
	if (!mkdtemp(rig_dir))
		return -1;
	rig_folder = xasprintf("%s/job", rig_dir);
	rig_fifo = xasprintf("%s/fifo", rig_dir);
	if (mkdir(rig_folder, 0700) || mkfifo(rig_fifo, 0600))
		return -1;
	rig_fifo_fd = open(rig_fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	rig_defaults();
	return rig_fifo_fd < 0 ? -1 : 0;
}

static inline int rig_teardown(void **state)
{
	struct error e = {0};

	(void)state;
	close(rig_fifo_fd);
	job_result_release(&rig_result);
	while (rig_n_texts > 0)
		free(rig_texts[--rig_n_texts]);
	free(rig_folder);
	free(rig_fifo);
	if (job_folder_remove(rig_dir, &e))
		print_error("%s\n", e.text);
	return e.code;
}

static inline void rig_become_user(void)
{
	if (!rig_user || geteuid() != 0)
		return;
	if (setgroups(0, NULL) || setgid(rig_user) || setuid(rig_user))
		_exit(4);
	/* so that the process owns /proc/self, and the sanitizer may inspect it */
	prctl(PR_SET_DUMPABLE, 1);
}

/* A job's files belong to its user; the repositories that the test serves belong to the test. */
static inline void rig_give_to_user(void)
{
	char *command = xasprintf("find '%s' -path '%s/served' -prune -o -exec chown -h %d:%d {} +", rig_dir, rig_dir,
	    (int)rig_user, (int)rig_user);

	if (rig_user && geteuid() == 0)
		assert_int_equal(system(command), 0);
	free(command);
}

/* The job's process; steps_run() as the agent's child has it. */
static inline pid_t rig_start(void)
{
	pid_t pid;

	rig_write_offer();
	rig_give_to_user();
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct error e = {0};
		int rc;

		setsid();
		rig_become_user();
		rc = job_run(&rig_config, rig_folder, &rig_pace, &e);
		if (rc)
			fprintf(stderr, "%s\n", e.text);
		exit(rc ? 3 : 0); /* with the sanitizer's leak check */
	}
	return pid;
}

static inline int rig_wait(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static inline void rig_read_result(void)
{
	struct error e = {0};

	job_result_release(&rig_result);
	if (job_result_read(rig_folder, &rig_result, &e))
		fail_msg("%s", e.text);
}

static inline void rig_finish(pid_t pid)
{
	assert_int_equal(rig_wait(pid), 0);
	rig_read_result();
}

static inline void rig_run(void) { rig_finish(rig_start()); }

/* Starts the same job again as a new one. */
static inline void rig_next_job(void)
{
	struct error e = {0};

	assert_int_equal(job_folder_remove(rig_folder, &e), 0);
	assert_int_equal(mkdir(rig_folder, 0700), 0);
}

/* For a step that must reach a point before its time ends, which a busy machine may need long for. Runs a job with that
 * time, and then new ones with four times as long each, until `run` returns true or had about a minute. */
static inline void rig_run_longer(int64_t ms, bool (*run)(int64_t ms))
{
	rig_config.timeout_ms = 10 * RIG_WAIT_MS;
	while (!run(ms) && ms < RIG_WAIT_MS / 2) {
		rig_next_job();
		rig_config.n_steps = 0;
		ms *= 4;
	}
}

/* Waits for a line that a step writes to $FIFO. */
static inline void rig_expect(const char *line)
{
	struct buf got = BUF_INIT(65536);
	struct pollfd fd = {.fd = rig_fifo_fd, .events = POLLIN};

	while (!got.data || !strstr(got.data, line)) {
		char c[256];
		ssize_t n;

		assert_int_equal(poll(&fd, 1, RIG_WAIT_MS), 1);
		n = read(rig_fifo_fd, c, sizeof(c));
		if (n <= 0)
			fail_msg("the FIFO ended before \"%s\"", line);
		buf_append(&got, c, (size_t)n);
	}
	buf_release(&got);
}

/* Waits until no process has $FIFO open for writing: all that opened it have ended. */
static inline void rig_expect_all_gone(void)
{
	struct pollfd fd = {.fd = rig_fifo_fd, .events = POLLIN};
	char c[256];

	do
		assert_int_equal(poll(&fd, 1, RIG_WAIT_MS), 1);
	while (read(rig_fifo_fd, c, sizeof(c)) > 0);
}

/* True if no process has it open now. */
static inline bool rig_are_all_gone(void)
{
	struct pollfd fd = {.fd = rig_fifo_fd, .events = POLLIN};
	char c[4096];

	for (;;) {
		ssize_t n;

		poll(&fd, 1, 0);
		n = read(rig_fifo_fd, c, sizeof(c));
		if (n <= 0)
			return n == 0;
	}
}

static inline void rig_assert_log_has(const char *part)
{
	const char *log = rig_read("log");

	if (!strstr(log, part))
		fail_msg("not in the log: %s\n---\n%s---", part, log);
}

static inline void rig_assert_log_lacks(const char *part)
{
	const char *log = rig_read("log");

	if (strstr(log, part))
		fail_msg("in the log: %s\n---\n%s---", part, log);
}

/* `message`: a part of the expected message; NULL: no message. */
static inline void rig_assert_conclusion(const char *conclusion, const char *message)
{
	const char *m = rig_result.message;

	if (!str_eq(rig_result.conclusion, conclusion) || (message ? !m || !strstr(m, message) : !!m))
		fail_msg("%s: %s\n---\n%s---", rig_result.conclusion, m ? m : "no message", rig_read("log"));
}
