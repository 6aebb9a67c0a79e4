/* Submodules are fetched once; everything in .gitmodules is treated as hostile; and a step's changes to its work tree
 * reach no other job. */
#include "git_rig.h"

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "config/config.h"
#include "config/network.h"
#include "loopback.h"
#include "steps/git.h"
#include "steps/relay.h"

/* Loopback is allowed, so submodules can be fetched from there over http. */
static const char *sub_url(void)
{
	static char text[64];
	static struct network loopback;

	assert_int_equal(network_parse("127.0.0.0/8", &loopback, NULL), 0);
	rig_config.git_networks = (struct network_list){.items = &loopback, .n = 1};
	snprintf(text, sizeof(text), "http://127.0.0.1:%d/sub", web_port());
	return text;
}

/* Adds a submodule to a served work tree; the job then tests the new commit. */
static void add_module(const char *folder, const char *from, const char *path)
{
	char *add = xasprintf("git -c protocol.file.allow=always submodule add -q '%s' '%s'", from, path);

	shell(folder, add, NULL);
	commit(folder, "with a submodule");
	shell(origin, "git rev-parse HEAD", sha);
	rig_config.git_submodules = true;
	free(add);
}

static void test_second_job_fetches_nothing(void **state)
{
	const char *from = sub_url();
	int asked;

	(void)state;
	add_module(origin, from, "third party/one");
	add_module(origin, from, "two");
	asked = git_asked("sub");
	rig_step("look", "cat 'third party/one/file' two/file; git submodule status; git status -s", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nfirst\nfirst\n ");
	rig_assert_log_has(" two (");
	rig_assert_log_lacks(" M ");
	assert_int_equal(git_asked("sub"), asked + 1);
	asked = git_asked("origin");
	rig_next_job();
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nfirst\nfirst\n ");
	assert_int_equal(git_asked("sub") + git_asked("origin"), 3 + asked);
	/* another commit of the main repository, the same of the submodule */
	rig_next_job();
	commit(origin, "newer");
	shell(origin, "git rev-parse HEAD", sha);
	rig_run();
	rig_assert_conclusion("success", NULL);
	assert_int_equal(git_asked("origin"), asked + 1);
}

static void test_nested_and_relative(void **state)
{
	const char *from = sub_url();

	(void)state;
	shell(rig_dir, "cp -a served/sub served/deep", NULL);
	shell(sub, "printf '[submodule \"a.b\"]\\n path = x/deep\\n url = ../deep\\n' > .gitmodules", NULL);
	shell(sub,
	    "git add -A && git update-index --add --cacheinfo "
	    "160000,$(git -C ../deep rev-parse HEAD),x/deep && git commit -qm nested",
	    NULL);
	add_module(origin, from, "third");
	rig_step("look", "cat third/x/deep/file; git submodule status --recursive", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nfirst\n ");
	rig_assert_log_has(" third/x/deep (");
}

/* A change's URL cannot read files of this machine, run a program, or have a host that git and our parser read
 * differently. */
static void test_hostile_urls(void **state)
{
	static const char *const urls[] = {"/etc", "file:///etc", "ext::sh -c id", "-u", "git@h:x",
	    "ssh://-oProxyCommand=id/x", "", "http://a b/", "https://h", "https:///x", "https://h?@x/", "https://h#@x/",
	    "https://u@h/x", "https://u:p@h/x", "https://h\\@x/", "https://127.1/x", "https://2130706433/x",
	    "https://0x7f000001/x", "https://0177.0.0.1/x", "https://127.0.0.1./x", "https://h./x", "https://.h/x",
	    "https://h..h/x", "https://%6c/x", "https://[::1/x", "https://::1/x", "https://[127.0.0.1]/x",
	    "https://[::1%25lo]/x", "https://[h]/x", "https://h:/x", "https://h:0/x", "https://h:65536/x",
	    "https://h:-1/x", "https://h:+1/x", "https://h: 1/x", "https://\xc5\x82/x", "HTTPS://h/x", "git://h/x",
	    "ftp://h/x", "ssh://git@h/x"};
	struct git_url parsed;

	(void)state;
	sub_url();
	add_module(origin, sub, "third");
	rig_step("look", "true", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("startup_failure", "is not fetched: a submodule's URL is https://");
	for (size_t i = 0; i < ARRAY_LEN(urls); i++)
		if (git_url_parse(urls[i], &parsed) == 0)
			fail_msg("%s: host %s, port %d", urls[i], parsed.host, parsed.port);
}

static void test_urls(void **state)
{
	static const struct {
		const char *text, *host;
		int port;
		bool is_plain, is_address;
	} cases[] = {{"https://GitHub.com/o/r", "github.com", 443, false, false},
	    {"http://h/x?y#z", "h", 80, true, false}, {"https://h:8443/", "h", 8443, false, false},
	    {"https://10.0.0.1/x", "10.0.0.1", 443, false, true}, {"http://[::1]:81/x", "::1", 81, true, true},
	    {"https://a_b.c-d.e9/x@y", "a_b.c-d.e9", 443, false, false}};
	static const char *const relative[][3] = {
	    /* parent, written, expected */
	    {"https://h/o/r.git", "../s.git", "https://h/o/s.git"},
	    {"https://h/o/r.git/", "./../../p/s", "https://h/p/s"},
	    {"https://h/o/r", "https://e/x", "https://e/x"},
	    {"git@h:o/r", "../s", "git@h:o/s"},
	    {"git@h:o/r", "../../s", "git@h:s"},
	    {"git@h:o/r", "../../../s", NULL},
	};
	struct git_url u;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (git_url_parse(cases[i].text, &u))
			fail_msg("%s is refused", cases[i].text);
		assert_string_equal(u.host, cases[i].host);
		assert_int_equal(u.port, cases[i].port);
		assert_int_equal(u.is_plain, cases[i].is_plain);
		assert_int_equal(u.is_address, cases[i].is_address);
	}
	for (size_t i = 0; i < ARRAY_LEN(relative); i++) {
		char *got = git_url_resolve(relative[i][0], relative[i][1]);

		if (!str_eq(got, relative[i][2]))
			fail_msg("%s from %s: %s", relative[i][1], relative[i][0], got ? got : "none");
		free(got);
	}
}

/* ---- the hosts that submodules may reach ---- */

static void test_reachable_addresses(void **state)
{
	static const struct {
		const char *address;
		bool https, http, https_listed, http_listed; /* listed: 10.0.0.0/8 */
	} cases[] = {{"140.82.112.3", true, false, true, false}, {"2606:50c0:8000::153", true, false, true, false},
	    {"10.1.2.3", false, false, true, true}, {"127.0.0.1", false, false, false, false},
	    {"169.254.169.254", false, false, false, false}, {"::1", false, false, false, false},
	    {"::ffff:10.1.2.3", false, false, true, true}, {"::ffff:127.0.0.1", false, false, false, false},
	    {"fe80::1", false, false, false, false}, {"fd00::1", false, false, false, false},
	    {"0.0.0.0", false, false, false, false}};
	const struct git_url https = {.port = 443}, http = {.is_plain = true, .port = 80};
	const struct network_list none = {.n = 0};
	struct network ten;
	struct network_list listed = {.items = &ten, .n = 1};

	(void)state;
	assert_int_equal(network_parse("10.0.0.0/8", &ten, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t a[16];

		assert_int_equal(address_parse(cases[i].address, a), 0);
		if (relay_may_reach(&https, &none, a) != cases[i].https ||
		    relay_may_reach(&http, &none, a) != cases[i].http ||
		    relay_may_reach(&https, &listed, a) != cases[i].https_listed ||
		    relay_may_reach(&http, &listed, a) != cases[i].http_listed)
			fail_msg("%s", cases[i].address);
	}
}

/* A private address that the runner's file does not list is never connected, under any name. */
static void test_private_addresses(void **state)
{
	static const char *const hosts[] = {"127.0.0.1", "localhost", "127.0.0.2", "[::1]"};
	struct network other;

	(void)state;
	rig_step("look", "true", MINUTE_MS);
	assert_int_equal(network_parse("10.0.0.0/8", &other, NULL), 0);
	add_module(origin, sub_url(), "third");
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		char *set =
		    xasprintf("git config -f .gitmodules submodule.third.url 'http://%s:%d/sub'", hosts[i], web_port());

		shell(origin, set, NULL);
		free(set);
		commit(origin, hosts[i]);
		shell(origin, "git rev-parse HEAD", sha);
		shell(rig_dir, ": > web.log", NULL);
		rig_config.git_networks = (struct network_list){.n = 0};
		rig_run();
		rig_assert_conclusion("startup_failure", "plain http goes to");
		rig_next_job();
		rig_config.git_networks = (struct network_list){.items = &other, .n = 1};
		rig_run();
		rig_assert_conclusion("startup_failure", "may not reach");
		rig_next_job();
		shell(rig_dir, "! grep . web.log", NULL);
	}
}

/* An allowed host cannot send git elsewhere, neither by a redirect nor by a dumb repository's alternates. */
static void test_no_redirect_to_another_host(void **state)
{
	char *text;

	(void)state;
	add_module(origin, sub_url(), "third");
	text = xasprintf("git config -f .gitmodules submodule.third.url "
			 "http://127.0.0.1:%d/to/127.0.0.1:%d/sub",
	    web_port(), web_port());
	shell(origin, text, NULL);
	free(text);
	commit(origin, "redirected");
	shell(origin, "git rev-parse HEAD", sha);
	shell(rig_dir, ": > web.log", NULL);
	rig_step("look", "true", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("startup_failure", "answers with a redirect, and none is followed");
	shell(rig_dir, "[ \"$(grep -c . web.log)\" = 1 ] || { cat web.log; false; }", NULL);
	/* objects that exist elsewhere only */
	rig_next_job();
	text = xasprintf("git clone -q --bare sub dumb.git && cd dumb.git && git update-server-info && "
			 "rm -rf objects/?? objects/pack && "
			 "echo http://127.0.0.1:%d/dumb/sub/.git/objects > objects/info/http-alternates && "
			 "git -C ../origin config -f .gitmodules submodule.third.url "
			 "http://127.0.0.1:%d/dumb/dumb.git",
	    web_port(), web_port());
	{
		char *served = xasprintf("%s/served", rig_dir);

		shell(served, text, NULL);
		free(served);
	}
	free(text);
	commit(origin, "dumb");
	shell(origin, "git rev-parse HEAD", sha);
	shell(rig_dir, ": > web.log", NULL);
	rig_run();
	rig_assert_conclusion("startup_failure", "submodule third: ");
	shell(rig_dir, "! grep dumb/sub web.log", NULL);
}

/* A redirect of git_url is not followed either, and the message says how to correct the setting. */
static void test_redirect_of_git_url(void **state)
{
	char *redirected = xasprintf("http://127.0.0.1:%d/to/127.0.0.1:%d/origin", web_port(), web_port());

	(void)state;
	rig_config.git_url = redirected;
	rig_step("look", "true", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("startup_failure", "write checkout.git_url as it is after");
	shell(rig_dir, "! grep '^GET /origin' web.log", NULL);
	free(redirected);
}

/* All submodules go through the operator's proxy for submodules, and none through the environment's proxy. */
static void test_proxies(void **state)
{
	char *proxy = xasprintf("http://127.0.0.1:%d", web_port());

	(void)state;
	add_module(origin, sub_url(), "third");
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("all_proxy", "http://127.0.0.1:1", 1);
	rig_step("look", "cat third/file", MINUTE_MS);
	rig_run();
	unsetenv("http_proxy");
	unsetenv("all_proxy");
	rig_assert_conclusion("success", NULL);
	rig_next_job();
	rig_config.submodule_proxy = proxy;
	rig_run();
	rig_assert_conclusion("startup_failure", "plain http goes to");
	rig_next_job();
	shell(origin, "git config -f .gitmodules submodule.third.url https://submodule.invalid/x", NULL);
	commit(origin, "https");
	shell(origin, "git rev-parse HEAD", sha);
	rig_run();
	rig_assert_conclusion("startup_failure", "submodule third: ");
	shell(rig_dir, "grep -q 'CONNECT submodule.invalid:443' web.log", NULL);
	rig_next_job();
	shell(origin, "git config -f .gitmodules submodule.third.url https://10.0.0.1/x", NULL);
	commit(origin, "private");
	shell(origin, "git rev-parse HEAD", sha);
	rig_run();
	rig_assert_conclusion("startup_failure", "its address is not public");
	free(proxy);
}

/* How often the process has slept since its start. */
static long times_slept(pid_t pid)
{
	char *path = xasprintf("/proc/%d/status", (int)pid), line[256];
	FILE *f = fopen(path, "re");
	long n = -1;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "voluntary_ctxt_switches: %ld", &n);
	fclose(f);
	free(path);
	return n;
}

/* Without a free descriptor the relay cannot accept a connection, which stays in its queue. The relay waits and accepts it
 * as soon as it can. */
static void test_relay_waits_for_a_descriptor(void **state)
{
	static const struct network_list none = {.n = 0};
	static const uint8_t hello[] = {5, 1, 0};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int64_t until_ms = clock_mono_ms() + RIG_WAIT_MS;
	struct rlimit all, few;
	struct relay relay;
	struct error e = {0};
	struct git_url to;
	uint8_t answer[2];
	int taken[64], n = 0, fd;
	long slept;

	(void)state;
	assert_int_equal(git_url_parse("https://submodule.invalid/x", &to), 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	few = (struct rlimit){.rlim_cur = (rlim_t)fd + 16, .rlim_max = all.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((taken[n] = dup(fd)) >= 0)
		n++;
	for (int i = 0; i < 3; i++) /* the relay's own: its server and a pipe */
		close(taken[--n]);
	assert_int_equal(relay_start(&to, &none, &relay, &e), 0);
	a.sin_port = htons((uint16_t)relay.port);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(write(fd, hello, sizeof(hello)), sizeof(hello));
	slept = times_slept(relay.pid);
	while (times_slept(relay.pid) < slept + 5)
		assert_true(clock_mono_ms() < until_ms);
	assert_int_equal(prlimit(relay.pid, RLIMIT_NOFILE, &all, NULL), 0);
	assert_int_equal(recv(fd, answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
	assert_memory_equal(answer, "\5\0", 2);
	while (n > 0)
		close(taken[--n]);
	close(fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	relay_stop(&relay);
}

/* True if the arguments of any visible process contain this text. */
static bool is_an_argument(const char *text)
{
	DIR *processes = opendir("/proc");
	bool is_there = false;
	struct dirent *one;

	while ((one = readdir(processes))) {
		char path[300], arguments[8192];
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%s/cmdline", one->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		is_there |= memmem(arguments, fread(arguments, 1, sizeof(arguments), f), text, strlen(text)) != NULL;
		fclose(f);
	}
	closedir(processes);
	return is_there;
}

/* A proxy that needs a login, in a process of its own. While git waits for the answer, it searches the arguments of all
 * processes. */
struct proxy_notes {
	bool is_login_right, is_password_an_argument, is_url_an_argument;
};

static void serve_proxy(struct loopback *lb, int fd)
{
	static const char login[] = "HTTP/1.1 407 x\r\nProxy-Authenticate: Basic "
				    "realm=\"x\"\r\nContent-Length: 0\r\n\r\n";
	static const char no[] = "HTTP/1.1 403 x\r\nContent-Length: 0\r\n\r\n";
	struct proxy_notes *notes = lb->owner;
	struct buf in = BUF_INIT(1 << 20);

	while (loopback_read_request(lb, fd, &in)) {
		bool is_logged_in = strcasestr(buf_str(&in), "Proxy-Authorization: ");

		/* base64 of operator:s3cr3t */
		notes->is_login_right |= strstr(buf_str(&in), "b3BlcmF0b3I6czNjcjN0") != NULL;
		notes->is_password_an_argument |= is_an_argument("s3cr3t");
		notes->is_url_an_argument |= is_an_argument("https://submodule.invalid/x");
		loopback_send(fd, is_logged_in ? no : login, strlen(is_logged_in ? no : login));
	}
	buf_release(&in);
}

static pid_t start_proxy(struct proxy_notes *notes, int *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct loopback lb = {.owner = notes};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), peer;
	pid_t pid;

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	*ret_port = ntohs(a.sin_port);
	pid = fork();
	assert_true(pid >= 0);
	if (pid) {
		close(fd);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	while ((peer = accept(fd, NULL, NULL)) >= 0) {
		serve_proxy(&lb, peer);
		close(peer);
	}
	_exit(0);
}

static void test_proxy_password_is_not_in_any_argument(void **state)
{
	struct proxy_notes *notes =
	    mmap(NULL, sizeof(*notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int port;
	pid_t pid = start_proxy(notes, &port);
	char *proxy = xasprintf("http://operator:s3cr3t@127.0.0.1:%d", port);

	(void)state;
	add_module(origin, sub_url(), "third");
	shell(origin, "git config -f .gitmodules submodule.third.url https://submodule.invalid/x", NULL);
	commit(origin, "https");
	shell(origin, "git rev-parse HEAD", sha);
	rig_config.submodule_proxy = proxy;
	rig_step("look", "true", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("startup_failure", "submodule third: ");
	rig_assert_log_lacks("s3cr3t");
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(notes->is_login_right);
	assert_true(notes->is_url_an_argument); /* so the arguments can be seen here */
	assert_false(notes->is_password_an_argument);
	munmap(notes, sizeof(*notes));
	free(proxy);
}

/* A login for git_url is never used for the change's URLs, also on the same host. */
static void test_logins(void **state)
{
	char *settings = xasprintf("%s/git-settings", rig_dir);
	char *netrc = xasprintf("%s/.netrc", rig_dir), *web = xasprintf("http://127.0.0.1:%d/origin", web_port());

	(void)state;
	rig_write(netrc, "default login u password p\n");
	rig_write(settings, "[http]\n\textraHeader = Authorization: Basic eDp5\n");
	add_module(origin, sub_url(), "third");
	rig_config.git_config = settings;
	rig_config.git_url = web;
	shell(rig_dir, ": > web.log", NULL);
	rig_step("look", "cat third/file", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	shell(rig_dir, "grep -q 'GET /origin/.* with a login' web.log", NULL);
	shell(rig_dir, "grep -q 'GET /sub/' web.log && ! grep '/sub/.* with a login' web.log", NULL);
	rig_next_job();
	rig_config.git_config = NULL;
	shell(rig_dir, "rm -rf mirror; : > web.log", NULL);
	rig_run();
	rig_assert_conclusion("success", NULL);
	shell(rig_dir, "! grep 'with a login' web.log", NULL);
	free(web);
	free(netrc);
	free(settings);
}

/* A commit that was fetched from a private network is not used after that network is no longer allowed. */
static void test_mirrors_follow_the_address_rules(void **state)
{
	(void)state;
	add_module(origin, sub_url(), "third");
	rig_step("look", "cat third/file", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_next_job();
	rig_config.git_networks = (struct network_list){.n = 0};
	rig_run();
	rig_assert_conclusion("startup_failure", "plain http goes to");
}

/* Paths that the tree does not have, commands instead of URLs, names that are paths. */
static void test_hostile_gitmodules(void **state)
{
	const char *from = sub_url();
	char *text;

	(void)state;
	add_module(origin, from, "third");
	text = xasprintf("printf '[submodule \"../../x\"]\\n path = ../../escaped\\n url = %s\\n"
			 "[submodule \"b\"]\\n path = .git/hooks\\n url = %s\\n"
			 "[submodule \"third\"]\\n path = third\\n url = %s\\n"
			 "[core]\\n fsmonitor = touch ran\\n' > .gitmodules",
	    from, from, from);
	shell(origin, text, NULL);
	free(text);
	commit(origin, "hostile");
	shell(origin, "git rev-parse HEAD", sha);
	rig_step("look", "cat third/file; find . -name ran; git config core.fsmonitor || echo no fsmonitor", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nfirst\nno fsmonitor\n");
	shell(rig_dir, "! find . -name escaped | grep .", NULL);
	/* a command to run: git refuses such a file as a whole */
	rig_next_job();
	shell(origin, "git config -f .gitmodules submodule.third.update '!touch ran'", NULL);
	commit(origin, "with a command");
	shell(origin, "git rev-parse HEAD", sha);
	rig_run();
	rig_assert_conclusion("startup_failure", "invalid value for 'submodule.third.update'");
	shell(rig_dir, "! find . -name ran | grep .", NULL);
}

static void test_submodules_that_are_left_out(void **state)
{
	const char *from = sub_url();

	(void)state;
	add_module(origin, from, "third");
	shell(origin, "git config -f .gitmodules submodule.third.update none", NULL);
	commit(origin, "left out");
	shell(origin, "git rev-parse HEAD", sha);
	rig_step("look", "ls third | wc -l", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\n0\n");
}

/* The commit no longer exists on the server: no other commit takes its place. */
static void test_deleted_commit(void **state)
{
	const char *from = sub_url();

	(void)state;
	add_module(origin, from, "third");
	shell(sub,
	    "git commit -q --amend -m other && git reflog expire --expire=now --all && git gc -q "
	    "--prune=now",
	    NULL);
	rig_step("look", "true", MINUTE_MS);
	rig_run();
	rig_assert_conclusion("startup_failure", "submodule third: commit ");
	rig_assert_conclusion("startup_failure", "HEAD is at ");
}

static void test_damaged_mirror(void **state)
{
	const char *from = sub_url();

	(void)state;
	add_module(origin, from, "third");
	rig_step("look", "cat third/file", MINUTE_MS);
	rig_run();
	rig_next_job();
	shell(rig_dir, "for f in $(find mirror/modules/*/objects -type f); do chmod u+w $f; : > $f; done", NULL);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("the local mirror is damaged");
	rig_assert_log_has("\nfirst\n");
}

/* A step may change its work tree in any way: the next job still gets what git fetched. */
static void test_step_cannot_poison_the_next(void **state)
{
	const char *from = sub_url();

	(void)state;
	if (system("bwrap --ro-bind / / --unshare-all true") != 0)
		skip();
	add_module(origin, from, "third");
	rig_config.sandbox = SANDBOX_BUBBLEWRAP;
	rig_step("poison",
	    "cat third/file; cd third; m=$(cat .git/objects/info/alternates); echo evil > file; "
	    "git -c user.name=x -c user.email=x commit -qam evil; "
	    "for f in $m/x $m/../config $m/../hooks/post-checkout $m/../../x.git; do "
	    "(mkdir -p $m/../hooks; echo evil > $f) 2>/dev/null && echo WROTE $f; done; "
	    "chmod -R u+w $m 2>/dev/null; rm -rf $m 2>/dev/null; git config core.hooksPath /x; "
	    "true",
	    MINUTE_MS);
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_lacks("\nWROTE");
	rig_next_job();
	rig_run();
	rig_assert_conclusion("success", NULL);
	rig_assert_log_has("\nfirst\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_second_job_fetches_nothing), TEST(test_nested_and_relative),
	    TEST(test_hostile_urls), cmocka_unit_test(test_urls), cmocka_unit_test(test_reachable_addresses),
	    TEST(test_private_addresses), TEST(test_no_redirect_to_another_host), TEST(test_redirect_of_git_url),
	    TEST(test_proxies), TEST(test_proxy_password_is_not_in_any_argument),
	    TEST(test_relay_waits_for_a_descriptor), TEST(test_logins), TEST(test_mirrors_follow_the_address_rules),
	    TEST(test_hostile_gitmodules), TEST(test_submodules_that_are_left_out), TEST(test_deleted_commit),
	    TEST(test_damaged_mirror), TEST(test_step_cannot_poison_the_next)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
