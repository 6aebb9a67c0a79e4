/* Repositories that git serves on loopback, and a job that checks one of them out. */
#pragma once

#include "steps_rig.h"

#include <arpa/inet.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define MINUTE_MS (60 * 1000)

static char *origin, *sub; /* work trees that are served, as `origin` and `sub` */
static char *url;
static pid_t server;
static char sha[64];

/* A shell command in a folder; its first line of output in `out` (64 bytes). */
static inline void shell(const char *folder, const char *command, char *out)
{
	char *full = xasprintf("cd '%s' && { %s; } 2>&1", folder, command);
	FILE *p = popen(full, "re");
	char line[64] = "", rest[4096];
	size_t n;

	assert_non_null(p);
	if (fgets(line, sizeof(line), p))
		line[strcspn(line, "\n")] = '\0';
	while ((n = fread(rest, 1, sizeof(rest), p)) > 0)
		;
	if (pclose(p) != 0)
		fail_msg("%s: %s", command, line);
	if (out)
		memcpy(out, line, sizeof(line));
	free(full);
}

static inline void commit(const char *folder, const char *text)
{
	char *command = xasprintf("echo '%s' > file && git add -A && git commit -qm '%s'", text, text);

	shell(folder, command, NULL);
	free(command);
}

/* For all tests of this process: served/ is copied for each test, and `current` is a link to the folder of the test that runs. */
static char shared_dir[64];
static pid_t shared_owner, web_server;

/* A job's process also runs this at its exit. */
static inline void shared_remove(void)
{
	char *command = xasprintf("rm -rf '%s'", shared_dir);

	if (getpid() == shared_owner) {
		if (web_server)
			kill(web_server, SIGKILL);
		if (system(command))
			print_error("%s has failed\n", command);
	}
	free(command);
}

/* `origin` with two commits and `sub` with one: made once in this process and copied for each test. */
static inline void copy_repositories(const char *to)
{
	static char head[64];
	char *copy;

	if (!shared_owner) {
		snprintf(shared_dir, sizeof(shared_dir), "/tmp/outpost-served-XXXXXX");
		assert_non_null(mkdtemp(shared_dir));
		shared_owner = getpid();
		atexit(shared_remove);
		shell(shared_dir,
		    "mkdir -m 700 -p served/sub && cd served/sub && git init -q -b main . && echo first > file && "
		    "git add -A && git commit -qm first && cp -a . ../origin && cd ../origin && "
		    "echo second > file && git commit -qam second && git rev-parse HEAD",
		    head);
	}
	copy = xasprintf("cp -a served '%s' && ln -sfn '%s' current", to, rig_dir);
	shell(shared_dir, copy, NULL);
	free(copy);
	memcpy(sha, head, sizeof(sha));
}

static inline int free_port(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	close(fd);
	return ntohs(a.sin_port);
}

static inline void start_server(void)
{
	char *base = xasprintf("--base-path=%s/served", rig_dir), port[32], ready[16];
	char *hook = xasprintf("--access-hook=%s/hook", rig_dir);
	int fds[2], number = free_port();

	snprintf(port, sizeof(port), "--port=%d", number);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	server = fork();
	assert_true(server >= 0);
	if (server == 0) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], 2);
		execlp("git", "git", "daemon", "--verbose", "--export-all", "--reuseaddr", "--listen=127.0.0.1", port,
		    base, hook, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	/* "[123] Ready to rumble" */
	assert_true(read(fds[0], ready, sizeof(ready)) > 0);
	fcntl(fds[0], F_SETFD, 0);
	url = xasprintf("git://127.0.0.1:%d/origin", number);
	free(hook);
	free(base);
}

/* The port of a server of the same repositories over http, which the first call starts; web.log lists a test's requests. */
static inline int web_port(void)
{
	static int number;
	char *served, *log, port[16] = "";
	int fds[2];

	if (web_server)
		return number;
	served = xasprintf("%s/current/served", shared_dir);
	log = xasprintf("%s/current/web.log", shared_dir);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	web_server = fork();
	assert_true(web_server >= 0);
	if (web_server == 0) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], 1);
		execlp("python3", "python3", "tests/data/git_http.py", served, log, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	assert_true(read(fds[0], port, sizeof(port) - 1) > 0);
	close(fds[0]);
	number = (int)strtol(port, NULL, 10);
	free(log);
	free(served);
	return number;
}

static inline int setup(void **state)
{
	char *served, *gitconfig, *hook, *script, *web_log;

	if (rig_setup(state))
		return -1;
	hook = xasprintf("%s/hook", rig_dir);
	script = xasprintf("#!/bin/sh\nbasename \"${2%%/.git}\" >> %s/asked\n", rig_dir);
	rig_write(hook, script);
	chmod(hook, 0755);
	free(script);
	free(hook);
	served = xasprintf("%s/served", rig_dir);
	gitconfig = xasprintf("%s/.gitconfig", rig_dir);
	setenv("HOME", rig_dir, 1);
	rig_write(gitconfig, "[user]\nname = T\nemail = t@example.org\n[gc]\nauto = 0\n");
	copy_repositories(served);
	web_log = path_join(rig_dir, "web.log");
	rig_write(web_log, "");
	free(web_log);
	origin = path_join(served, "origin");
	sub = path_join(served, "sub");
	free(gitconfig);
	free(served);
	start_server();
	rig_config.has_checkout = true;
	rig_config.git_url = url;
	rig_config.git_depth = 1;
	rig_offer.head_sha = sha;
	return 0;
}

static inline int teardown(void **state)
{
	kill(-server, SIGKILL);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	free(origin);
	free(sub);
	free(url);
	return rig_teardown(state);
}

/* The number of git's requests to a server for a repository. */
static inline int git_asked(const char *name)
{
	char *command = xasprintf("touch asked; cat asked web.log | "
				  "grep -cx -e '%s' -e 'GET /%s/info/refs?service=git-upload-pack' || true",
	    name, name);
	char count[64];

	shell(rig_dir, command, count);
	free(command);
	return (int)strtol(count, NULL, 10);
}
