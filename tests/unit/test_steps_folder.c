/* A job's folder survives the death of all processes: each file is complete or absent, the lock is held while a
 * process lives, and the folder can be removed with any content. */
#include "steps_rig.h"

#include "steps/job_folder.h"

static void test_write_and_read(void **state)
{
	struct error e = {0};
	char *text = NULL;
	size_t n;

	(void)state;
	assert_int_equal(job_folder_read(rig_folder, "x", 10, &text, &n, &e), ERR_NOT_FOUND);
	assert_int_equal(job_folder_write(rig_folder, "x", "12345", 5, &e), 0);
	assert_string_equal(rig_read("x"), "12345");
	e = (struct error){0};
	assert_int_equal(job_folder_read(rig_folder, "x", 4, &text, &n, &e), ERR_TOO_BIG);
	assert_int_equal(job_folder_write(rig_folder, "x", "", 0, &e), 0);
	assert_string_equal(rig_read("x"), "");
}

static void test_result(void **state)
{
	struct step_outcome steps[] = {{.name = (char *)"build", .duration_ms = 1500},
	    {.name = (char *)"test", .exit_code = -1, .signal = 9, .is_timeout = true}};
	struct job_result r = {.conclusion = (char *)"timed_out",
	    .message = (char *)"step test: timed out \"after\" 3h",
	    .steps = steps,
	    .n_steps = 2,
	    .started_ms = 1795176000000,
	    .completed_ms = 1795176009000,
	    .has_report = true};
	struct error e = {0};

	(void)state;
	assert_int_equal(job_result_read(rig_folder, &rig_result, &e), ERR_NOT_FOUND);
	e = (struct error){0};
	assert_int_equal(job_result_write(rig_folder, &r, &e), 0);
	rig_read_result();
	rig_assert_conclusion("timed_out", "step test: timed out \"after\" 3h");
	assert_int_equal(rig_result.n_steps, 2);
	assert_string_equal(rig_result.steps[0].name, "build");
	assert_int_equal(rig_result.steps[0].duration_ms, 1500);
	assert_int_equal(rig_result.steps[1].exit_code, -1);
	assert_int_equal(rig_result.steps[1].signal, 9);
	assert_true(rig_result.steps[1].is_timeout);
	assert_true(rig_result.completed_ms == 1795176009000);
	assert_true(rig_result.has_report);
}

static void test_damaged_result(void **state)
{
	static const char *const texts[] = {
	    "", "{", "[]", "{}", "{\"conclusion\":\"great\"}", "{\"conclusion\":7}", "\xff"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct error e = {0};

		assert_int_equal(job_folder_write(rig_folder, "result.json", texts[i], strlen(texts[i]), &e), 0);
		assert_int_equal(job_result_read(rig_folder, &rig_result, &e), ERR_CORRUPT);
		job_result_release(&rig_result);
	}
}

/* A writer that is killed at any moment leaves one of the two texts, never a part of one. */
static void test_killed_while_writing(void **state)
{
	static char large[2][100000];

	(void)state;
	for (int i = 0; i < 2; i++)
		memset(large[i], 'a' + i, sizeof(large[i]));
	assert_int_equal(job_folder_write(rig_folder, "x", large[0], sizeof(large[0]), NULL), 0);
	for (int round = 0; round < 8; round++) {
		int fds[2];
		pid_t pid;
		char c;
		const char *text;

		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			for (int i = 1;; i++) {
				if (write(fds[1], "x", 1) < 0 ||
				    job_folder_write(rig_folder, "x", large[i % 2], sizeof(large[0]), NULL))
					_exit(1);
			}
		}
		close(fds[1]);
		for (int i = 0; i <= round % 4; i++)
			assert_int_equal(read(fds[0], &c, 1), 1);
		kill(pid, SIGKILL);
		assert_int_equal(rig_wait(pid), SIGKILL);
		close(fds[0]);
		text = rig_read("x");
		assert_int_equal(strlen(text), sizeof(large[0]));
		assert_int_equal(text[0], text[sizeof(large[0]) - 1]);
	}
}

static void test_lock(void **state)
{
	struct error e = {0};
	int fd, fds[2];
	pid_t pid;
	char c;

	(void)state;
	assert_false(job_folder_is_locked(rig_folder));
	assert_int_equal(job_folder_cancel(rig_folder, &e), ERR_NOT_FOUND);
	assert_int_equal(job_lock_acquire(rig_folder, &fd, &e), 0);
	assert_true(job_folder_is_locked(rig_folder));
	/* a child that the process starts inherits it too */
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(fds[1]);
		_exit(read(fds[0], &c, 1) == 0 ? 0 : 1);
	}
	close(fds[0]);
	close(fd);
	assert_true(job_folder_is_locked(rig_folder));
	close(fds[1]);
	assert_int_equal(rig_wait(pid), 0);
	assert_false(job_folder_is_locked(rig_folder));
}

static void test_lock_without_a_process(void **state)
{
	struct error e = {0};
	char *path = path_join(rig_folder, "lock");
	int fd;

	(void)state;
	assert_int_equal(job_lock_acquire(rig_folder, &fd, &e), 0);
	for (size_t i = 0; i < 3; i++) {
		static const char *const texts[] = {"", "1\n", "-5\n"};
		int out = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

		assert_int_equal(write(out, texts[i], strlen(texts[i])), strlen(texts[i]));
		close(out);
		e = (struct error){0};
		assert_int_equal(job_folder_cancel(rig_folder, &e), ERR_CORRUPT);
	}
	close(fd);
	free(path);
}

/* The tree is deeper than the number of descriptors and than the longest path. */
static void make_deep(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < 3000; i++) {
		int below;

		assert_int_equal(mkdirat(fd, "deep-folder", 0700), 0);
		below = openat(fd, "deep-folder", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(below >= 0);
		close(fd);
		fd = below;
	}
	close(fd);
}

static void test_remove(void **state)
{
	char *folder = xasprintf("%s/gone", rig_dir), *kept = xasprintf("%s/kept", rig_dir);
	char *in = xasprintf("%s/closed", folder), *link = xasprintf("%s/link", folder);
	char *file = xasprintf("%s/closed/file", folder), *fifo = xasprintf("%s/fifo", folder);
	struct error e = {0};

	(void)state;
	assert_int_equal(mkdir(folder, 0700), 0);
	rig_write(kept, "x");
	assert_int_equal(mkdir(in, 0700), 0);
	rig_write(file, "x");
	assert_int_equal(chmod(file, 0), 0);
	assert_int_equal(chmod(in, 0), 0);
	assert_int_equal(symlink(rig_dir, link), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	make_deep(folder);
	if (job_folder_remove(folder, &e))
		fail_msg("%s", e.text);
	assert_int_equal(access(folder, F_OK), -1);
	assert_int_equal(access(kept, F_OK), 0);
	assert_int_equal(job_folder_remove(folder, &e), 0); /* a second removal succeeds */
	/* a link in the folder's own place is not followed either */
	assert_int_equal(symlink(rig_folder, folder), 0);
	assert_int_equal(job_folder_remove(folder, &e), ERR_IO);
	assert_int_equal(access(rig_folder, F_OK), 0);
	unlink(folder);
	free(fifo);
	free(file);
	free(link);
	free(in);
	free(kept);
	free(folder);
}

/* Root may do anything, so the test runs as another user too. */
static void test_remove_as_a_user(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(rig_dir, 0711), 0);
	assert_int_equal(chown(rig_folder, 65534, 65534), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char *in = xasprintf("%s/a/b", rig_folder), *a = xasprintf("%s/a", rig_folder);
		struct error e = {0};

		if (setgid(65534) || setuid(65534) || mkdir(a, 0700) || mkdir(in, 0700) || chmod(in, 0) ||
		    chmod(a, 0500))
			_exit(2);
		make_deep(rig_folder);
		/* its own last rmdir needs the parent, which is not this user's */
		job_folder_remove(rig_folder, &e) ? _exit(access(a, F_OK) ? 0 : 3) : _exit(4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_write_and_read), TEST(test_result), TEST(test_damaged_result),
	    TEST(test_killed_while_writing), TEST(test_lock), TEST(test_lock_without_a_process), TEST(test_remove),
	    TEST(test_remove_as_a_user)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
