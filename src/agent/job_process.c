#include "agent/job_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "agent/check.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "steps/job_folder.h"
#include "steps/steps.h"

/* In the bundle the program is started through a loader of its own, which is what /proc/self/exe is
 * then; the script that does so says where it is. */
static const char *own_program(void)
{
	const char *script = getenv("OUTPOST_RUNNER_SELF");

	return script && script[0] == '/' ? script : "/proc/self/exe";
}

int job_process_start(const char *config_path, const char *folder, pid_t *ret_pid, struct error *e)
{
	char *err_path = job_folder_file(folder, "job-process.err");
	char *const argv[] = {(char *)(uintptr_t) "outpost-runner", (char *)(uintptr_t) "-c",
	    (char *)(uintptr_t)config_path, (char *)(uintptr_t) "--job", (char *)(uintptr_t)folder,
	    NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(
	    &files, STDOUT_FILENO, err_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
	posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	posix_spawnattr_init(&how);
	/* the loop ignores SIGPIPE, which steps must not inherit */
	posix_spawnattr_setsigdefault(&how, &all);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setflags(
	    &how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawn(ret_pid, own_program(), &files, &how, argv, environ);
	posix_spawnattr_destroy(&how);
	posix_spawn_file_actions_destroy(&files);
	free(err_path);
	return rc ? error_set(e, ERR_IO, "cannot start the job's process: %s", strerror(rc)) : 0;
}

/* The file was right when the agent read it, and is not any more. */
static int report_bad_config(const char *config_path, const char *folder)
{
	int64_t now = clock_wall_ms();
	struct job_result r = {
	    .conclusion = xstrdup("startup_failure"),
	    .message =
		xasprintf("%s has mistakes; `outpost-runner --check` tells them", config_path),
	    .started_ms = now,
	    .completed_ms = now,
	};
	struct error e = {0};
	int rc = job_result_write(folder, &r, &e);

	if (rc)
		fprintf(stderr, "%s\n", e.text);
	job_result_release(&r);
	return 1;
}

int job_process_main(const char *config_path, const char *folder)
{
	struct runner_config *c = agent_load_config(config_path);
	struct error e = {0};
	int rc;

	if (!c)
		return report_bad_config(config_path, folder);
	rc = steps_run(c, folder, &e);
	if (rc)
		fprintf(stderr, "%s\n", *e.text ? e.text : err_text(rc));
	runner_config_free(c);
	return rc ? 1 : 0;
}
