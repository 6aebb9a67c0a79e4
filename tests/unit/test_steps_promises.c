/* Tries each promise of the tables in docs/sandbox.md from inside a step, as root and as an ordinary user. Fails if
 * a promise has no trial or a trial has no promise. */
#include "git_rig.h"

#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "config/network.h"

enum { NOBODY = 65534 };

#define PYTHON                                                                                                         \
	"/usr/bin/python3 - <<'END'\n"                                                                                 \
	"import ctypes, os, platform, socket, fcntl, pty, sys\n"                                                       \
	"libc = ctypes.CDLL(None, use_errno=True)\n"                                                                   \
	"X64 = platform.machine() == 'x86_64'\n"                                                                       \
	"def call(number, *a):\n"                                                                                      \
	"    ctypes.set_errno(0)\n"                                                                                    \
	"    r = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(x) if isinstance(x, int) "                        \
	"else x for x in a])\n"                                                                                        \
	"    return r if r >= 0 else -ctypes.get_errno()\n"                                                            \
	"KEYCTL, ADD_KEY = (250, 248) if X64 else (219, 217)\n"

#define HELD "\nheld\n"

static const char *row;

static void must_hold(void)
{
	const char *log = rig_read("log");

	if (!str_eq(rig_result.conclusion, "success") || !strstr(log, HELD))
		fail_msg(
		    "%s, as user %d: %s\n%s", row, (int)rig_user, rig_result.message ? rig_result.message : "", log);
}

/* A script under `set -e` reaches its end only if the promise holds. */
static void try_script(const char *script)
{
	char *whole = xasprintf("set -eu\n%s\necho held", script);

	rig_step("try", whole, MINUTE_MS);
	rig_run();
	must_hold();
	free(whole);
}

/* ---- in both modes ---- */

static void try_input(void)
{
	char *script = xasprintf("[ \"$(readlink /proc/$$/fd/0)\" = /dev/null ]\n"
				 "session=$(cut -d ' ' -f 6 /proc/$$/stat)\n"
				 "[ $session != 0 ] && [ $session != %d ]\n"
				 "[ \"$(pwd)\" = \"$HOME\" ]; [ \"$(ls)\" = results ]",
	    (int)getsid(0));

	try_script(script);
	free(script);
}

static void try_environment(void)
{
	setenv("OUTPOST_OF_THE_RUNNER", "x", 1);
	setenv("SECRET_OF_THE_SERVICE", "x", 1);
	try_script("for v in $(env | sed -n 's/^\\([A-Za-z_0-9]*\\)=.*/\\1/p'); do case $v in\n"
		   "PATH|LANG|TZ|HOME|USER|TMPDIR|CI|FIFO|PWD|OLDPWD|SHLVL|_) ;;\n"
		   "OUTPOST_DISPATCH_ID|OUTPOST_HEAD_SHA|OUTPOST_PR|OUTPOST_CHANGE_JSON|OUTPOST_RESULTS) "
		   ";;\n"
		   "OUTPOST_SOURCE_SHA|OUTPOST_REPOSITORY|OUTPOST_KIND|OUTPOST_ACCELERATOR) ;;\n"
		   "OUTPOST_ATTEMPT) ;;\n"
		   "*) echo \"$v is there\"; exit 1;; esac; done\n[ \"$CI\" = true ]");
	unsetenv("OUTPOST_OF_THE_RUNNER");
	unsetenv("SECRET_OF_THE_SERVICE");
}

static void try_masks(void)
{
	rig_secrets[0] = (struct runner_secret){(char *)"KEY", secret_of("first-line\nsecond-line")};
	rig_config.n_secrets = 1;
	try_script("echo a first-line b second-line c runner-token-0123456789 d");
	rig_assert_log_has("a *** b *** c *** d");
}

static void try_session_keyring(void)
{
	static const char probe[] = PYTHON "for name in (b'service', b'left'):\n"
					   "    assert call(KEYCTL, 10, -3, b'user', name, 0) < 0, name\n"
					   "call(ADD_KEY, b'user', b'left', b'x', 1, -3)\n"
					   "END";

	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) < 0)
		return;
	assert_true(syscall(SYS_add_key, "user", "service", "x", 1, KEY_SPEC_SESSION_KEYRING) > 0);
	try_script(probe);
	rig_next_job();
	rig_config.n_steps = 0;
	try_script(probe);
}

/* The step holds the FIFO open, so the test sees when the last process has ended. */
static void allow_fifo(void)
{
	static char *paths[2];

	paths[0] = rig_fifo;
	rig_config.allow_write = paths;
}

static bool run_until_asked(int64_t ms)
{
	const char *log;

	rig_pace.kill_after_ms = ms / 2;
	rig_step("deaf",
	    "exec 9>$FIFO; trap 'echo asked' TERM; (trap 'echo the group was asked' TERM; while :; "
	    "do sleep 1000 & wait $!; done) & while :; do sleep 1000 & wait $!; done",
	    ms);
	rig_run();
	log = rig_read("log");
	return strstr(log, "\nasked\n") && strstr(log, "\nthe group was asked\n");
}

static void try_timeout(void)
{
	allow_fifo();
	assert_int_equal(STEPS_KILL_AFTER_MS, 10 * 1000);
	rig_run_longer(500, run_until_asked);
	rig_assert_conclusion("timed_out", "step deaf");
	rig_assert_log_has("\nasked\n");
	rig_assert_log_has("\nthe group was asked\n");
	assert_true(rig_are_all_gone());
}

static void try_processes_end(void)
{
	allow_fifo();
	try_script("exec 9>$FIFO; (trap '' TERM HUP; setsid sh -c 'trap \"\" TERM HUP; sleep 1000 & "
		   "sleep 1000' > /dev/null 2>&1 &)");
	assert_true(rig_are_all_gone());
}

static void try_report_links(void)
{
	rig_globs[0] = (char *)"*/*.xml";
	rig_step("link",
	    "echo '<testsuite name=\"a\"><testcase name=\"b\"/></testsuite>' > /tmp/a.xml; "
	    "ln -s /tmp/a.xml results/a.xml; mkdir real; cp /tmp/a.xml real/kept; "
	    "ln -s real away; ln -s kept real/b.xml",
	    MINUTE_MS);
	rig_run();
	rig_assert_conclusion("action_required", "no report: nothing matches */*.xml");
}

/* ---- bubblewrap ---- */

static void try_system(void)
{
	try_script("for d in /usr/bin /bin/sh /etc/passwd /etc/ssl/certs; do [ -e $d ]; done\n"
		   "for f in /usr/x /usr/bin/x /bin/x /sbin/x /lib/x /etc/x /etc/passwd /x; do\n"
		   "if (echo > $f) 2>/dev/null; then echo wrote $f; exit 1; fi; done");
}

static void try_not_there(void)
{
	try_script("for d in /root /home /opt /srv /mnt /boot /sys /etc/shadow /etc/ssl/private; do\n"
		   "[ ! -e $d ] || { echo there: $d; exit 1; }; done\n"
		   "[ -z \"$(ls -A /run)\" ]; [ \"$(ls -A /var)\" = tmp ]");
}

static void try_own_files(void)
{
	char *outside = xasprintf("%s-allowed", rig_dir), *token = xasprintf("%s/token", outside);
	char *settings = xasprintf("%s/settings", outside), *file = xasprintf("%s/file", outside);
	/* a link to the folder that has the runner's files and the work folder */
	char *links = xasprintf("%s-links", rig_dir), *link = path_join(links, "all"), *parent = path_folder(rig_dir);
	char *allowed[] = {outside, (char *)"/tmp", NULL}, *behind_link[] = {link, NULL};
	char *script = xasprintf("[ \"$(ls '%s')\" = job ]\n[ \"$(ls '%s')\" = \"$(printf "
				 "'change.json\\nwork')\" ]\nfor f in token settings file; do\n"
				 "[ ! -s '%s'/$f ] || { echo there: $f; exit 1; }; done\n"
				 "[ -e '%s' ]",
	    rig_dir, rig_folder, outside, outside);
	char *other_script = xasprintf("for f in token settings file; do\n"
				       "[ ! -s '%s%s'/$f ] || { echo behind the link: $f; exit 1; }; done\n"
				       "[ -d '%s%s' ] && [ -z \"$(ls -A '%s%s')\" ]",
	    link, outside + strlen(parent), link, rig_dir + strlen(parent), link, rig_dir + strlen(parent));
	char *clean = xasprintf("rm -rf '%s' '%s'", outside, links);

	assert_int_equal(mkdir(outside, 0755), 0);
	assert_int_equal(mkdir(links, 0755), 0);
	assert_int_equal(symlink(parent, link), 0);
	rig_write(token, "the-token");
	rig_write(settings, "the-settings");
	rig_write(file, "the-file");
	rig_config.token_file = token;
	rig_config.git_config = settings;
	rig_config.path = file;
	rig_config.allow_read = allowed;
	try_script(script);
	rig_next_job();
	rig_config.n_steps = 0;
	rig_config.allow_read = behind_link;
	try_script(other_script);
	assert_int_equal(system(clean), 0);
	free(clean);
	free(other_script);
	free(script);
	free(parent);
	free(link);
	free(links);
	free(file);
	free(settings);
	free(token);
	free(outside);
}

static void try_work_folder(void)
{
	static const char *const tests[] = {"unit/a", NULL};

	try_script("echo x > made; echo x > \"$OUTPOST_RESULTS/made\"\n"
		   "cat $OUTPOST_CHANGE_JSON > /dev/null\n"
		   "if (echo > $OUTPOST_CHANGE_JSON) 2>/dev/null; then exit 1; fi\n"
		   "[ \"$(ls ..)\" = \"$(printf 'change.json\\nwork')\" ]\n"
		   "if (echo > ../x) 2>/dev/null; then exit 1; fi");
	assert_string_equal(rig_read("work/made"), "x\n");
	rig_become_experiment(EXPERIMENT_HEAD, tests);
	try_script("[ \"$(cat $OUTPOST_TESTS)\" = unit/a ]\n"
		   "if (echo > $OUTPOST_TESTS) 2>/dev/null; then exit 1; fi\n"
		   "[ \"$(ls ..)\" = \"$(printf 'change.json\\ntests\\nwork')\" ]");
}

static void try_tmp(void)
{
	try_script("[ \"$TMPDIR\" = /tmp ]; echo x > /tmp/mine; [ \"$(cat /var/tmp/mine)\" = x ]\n"
		   "[ \"$(stat -f -c %T /tmp)\" != tmpfs ] || grep -q ' / .* - tmpfs' /proc/1/mountinfo "
		   "|| true");
	assert_string_equal(rig_read("tmp/mine"), "x\n");
}

static void try_processes(void)
{
	try_script("[ \"$(ls -d /proc/[0-9]* | wc -l)\" -le 6 ]\n"
		   "[ -z \"$(cat /proc/keys /proc/key-users 2>/dev/null)\" ]\n"
		   "for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname "
		   "/proc/sys/vm/drop_caches; do if (echo x > $f) 2>/dev/null; then exit 1; fi; done");
}

static void try_command_line(void)
{
	try_script("tr '\\0' ' ' < /proc/1/cmdline > line; grep -q '^bwrap' line\n"
		   "if grep -q \"$PWD\" line; then cat line; exit 1; fi\n"
		   "grep -q \"$PWD\" /proc/self/mountinfo");
}

static void try_devices(void)
{
	try_script("for d in $(ls /dev); do case $d in\n"
		   "null|zero|full|random|urandom|tty|ptmx|pts|shm|core|fd|stdin|stdout|stderr) ;;\n"
		   "*) echo \"/dev/$d is there\"; exit 1;; esac; done\n"
		   "head -c 4 /dev/urandom > /dev/shm/x; [ -c /dev/full ]");
}

static void try_network(void)
{
	char *script = xasprintf(PYTHON "assert open('/proc/net/dev').read().count(':') == 1\n"
					"for to in ('127.0.0.1', %d), ('1.1.1.1', 53):\n"
					"    s = socket.socket(); s.settimeout(2)\n"
					"    assert s.connect_ex(to), to\n"
					"s = socket.socket(socket.AF_UNIX)\n"
					"assert s.connect_ex('\\0outpost-promise-%d')\n"
					"for family in range(64):\n"
					"    r = call(41 if X64 else 198, family, 3, 0)\n"
					"    kept = family in (1, 2, 10, 16)\n"
					"    assert kept == (r != -97), (family, r)\n"
					"    r = call(53 if X64 else 199, family, 1, 0, 0)\n"
					"    assert kept == (r != -97), ('socketpair', family, r)\n"
					"assert call(41 if X64 else 198, 40 | 1 << 32, 1, 0) == -97\n"
					"END",
	    web_port(), (int)getpid());
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "outpost-promise-%d", (int)getpid());

	assert_int_equal(bind(fd, (struct sockaddr *)&a, (socklen_t)(sizeof(a.sun_family) + 1 + (size_t)n)), 0);
	assert_int_equal(listen(fd, 1), 0);
	try_script(script);
	close(fd);
	free(script);
}

static void try_allow_network(void)
{
	char *script = xasprintf(PYTHON "socket.create_connection(('127.0.0.1', %d))\nEND", web_port());

	rig_config.allow_network = true;
	try_script(script);
	free(script);
}

static void try_capabilities(void)
{
	try_script("for c in CapInh CapPrm CapEff CapAmb; do\n"
		   "grep -q \"^$c:.0000000000000000$\" /proc/self/status; done\n"
		   "grep -q '^NoNewPrivs:.1$' /proc/self/status\n"
		   "if mount -t tmpfs x /tmp 2>/dev/null; then exit 1; fi");
}

static void try_user_namespaces(void)
{
	try_script("if unshare -Ur true 2>/dev/null; then exit 1; fi\n" PYTHON
		   "assert call(272 if X64 else 97, 0x10000000) == -1\n"
		   "r = call(56 if X64 else 220, 0x10000000 | 17, 0, 0, 0, 0)\n"
		   "assert r == -1, r\n"
		   "assert call(435, 0, 88) == -38\n"
		   "END");
}

static void try_terminal(void)
{
	try_script("if (exec 3</dev/tty) 2>/dev/null; then exit 1; fi\n" PYTHON
		   "libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p]\n"
		   "_, tty = pty.openpty()\n"
		   "for request in 0x5412, 0x541c, 0x5412 | 1 << 32:\n"
		   "    ctypes.set_errno(0)\n"
		   "    assert libc.ioctl(tty, request, b'x') == -1\n"
		   "    assert ctypes.get_errno() == 1, request\n"
		   "END");
}

static void try_host_name(void)
{
	char *script;
	char ours[64];
	ssize_t n = readlink("/proc/self/ns/ipc", ours, sizeof(ours) - 1);

	assert_true(n > 0);
	ours[n] = '\0';
	script = xasprintf("[ \"$(hostname)\" = outpost-runner ]\n"
			   "[ \"$(readlink /proc/self/ns/ipc)\" != '%s' ]",
	    ours);
	try_script(script);
	free(script);
}

/* x86-64's numbers, and those of the generic table that other architectures have. */
#define CALLS                                                                                                          \
	PYTHON                                                                                                         \
	"old = {'keyctl': (250, 219), 'add_key': (248, 217), 'request_key': (249, 218),\n"                             \
	"  'bpf': (321, 280), 'perf_event_open': (298, 241), 'kexec_load': (246, 104),\n"                              \
	"  'kexec_file_load': (320, 294), 'init_module': (175, 105),\n"                                                \
	"  'finit_module': (313, 273), 'delete_module': (176, 106), 'mount': (165, 40),\n"                             \
	"  'umount2': (166, 39), 'pivot_root': (155, 41), 'userfaultfd': (323, 282)}\n"                                \
	"calls = {name: n[0 if X64 else 1] for name, n in old.items()}\n"                                              \
	"if X64: calls['create_module'] = 174\n"                                                                       \
	"calls.update(open_tree=428, open_tree_attr=467, move_mount=429, fsopen=430, "                                 \
	"fsconfig=431, fsmount=432,\n"                                                                                 \
	"  fspick=433, mount_setattr=442, io_uring_setup=425, io_uring_enter=426, "                                    \
	"io_uring_register=427, clone3=435)\n"                                                                         \
	"soft = {'userfaultfd', 'io_uring_setup', 'io_uring_enter', 'io_uring_register', "                             \
	"'clone3'}\n"

/* The names in the page's row, with blanks between. free(). */
static char *promised_calls(void)
{
	struct buf page = BUF_INIT(1 << 20), names = BUF_INIT(1 << 16);
	const char *p, *end;

	assert_int_equal(file_read("docs/sandbox.md", &page, NULL), 0);
	p = strstr(buf_str(&page), "| `system-calls` |");
	assert_non_null(p);
	end = strchr(p, '\n');
	for (p += strlen("| `system-calls` |"); (p = strchr(p, '`')) && p < end;) {
		size_t n = strcspn(++p, "`");

		buf_appendf(&names, "%.*s ", (int)n, p);
		p += n + 1;
	}
	buf_release(&page);
	return buf_detach(&names);
}

/* The filter answers before the kernel looks at the arguments: with wrong ones each call would fail
 * in another way without it. */
static void try_system_calls(void)
{
	char *promised = promised_calls();
	char *script = xasprintf("grep -q '^Seccomp:.2$' /proc/self/status\n" CALLS
				 "promised = set('%s'.split()) - (set() if X64 else {'create_module'})\n"
				 "assert promised == set(calls), promised ^ set(calls)\n"
				 "for name, number in calls.items():\n"
				 "    r = call(number, -1, -1, -1, -1, -1)\n"
				 "    assert r == (-38 if name in soft else -1), (name, r)\n"
				 "END",
	    promised);

	try_script(script);
	free(script);
	free(promised);
}

/* int 0x80 takes i386's numbers in a 64-bit program too. A kernel without them answers -38, or kills the process. */
static void try_system_calls_32_bit(void)
{
	try_script(
	    PYTHON "import mmap, os, signal\n"
		   "if X64:\n"
		   "    code = mmap.mmap(-1, 4096, prot=7)\n"
		   "    code.write(bytes.fromhex('5389f889f389d131d231f631ffcd805bc3'))\n"
		   "    at = ctypes.addressof(ctypes.c_char.from_buffer(code))\n"
		   "    f = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int)(at)\n"
		   "    pid = os.fork()\n"
		   "    if pid == 0: os._exit(f(20, 0, 0) == -38)\n"
		   "    status = os.waitpid(pid, 0)[1]\n"
		   "    if status in (256, signal.SIGSEGV, 128 + signal.SIGSEGV): print('no 32-bit calls here')\n"
		   "    else:\n"
		   "        assert status == 0, status\n"
		   "        for n in 288, 286, 287, 357, 336, 283, 128, 350, 129, 21, 52, 217, 428, 429, "
		   "430, 431, 432, 433, 442, 467, 127:\n"
		   "            assert f(n, -1, -1) == -1, (n, f(n, -1, -1))\n"
		   "        for n in 374, 425, 426, 427, 435:\n"
		   "            assert f(n, -1, -1) == -38, (n, f(n, -1, -1))\n"
		   "        assert f(310, 0x10000000, 0) == -1\n"
		   "        assert f(359, 40, 1) == -97 and f(102, 1, 0) == -97\n"
		   "        assert f(359, 1, 1) > 0\n"
		   "    for n in 250, 248, 165, 321, 298, 467:\n"
		   "        assert call(n | 0x40000000, -1, -1, -1) in (-1, -38), n\n"
		   "END");
}

static void try_allow_syscalls(void)
{
	rig_config.allow_calls[CALL_KEYCTL] = true;
	rig_config.allow_calls[CALL_IO_URING] = true;
	try_script(CALLS "for name, number in calls.items():\n"
			 "    r = call(number, -1, -1, -1, -1, -1)\n"
			 "    opened = name == 'keyctl' or name.startswith('io_uring')\n"
			 "    assert opened == (r not in (-1, -38)), (name, r)\n"
			 "END");
	rig_assert_log_has("== sandbox: allow.syscalls: keyctl\n");
	rig_assert_log_has("== sandbox: allow.syscalls: io_uring\n");
}

/* ---- checkout ---- */

static struct network loopback;

static void check_out_from(const char *script, const char *submodule)
{
	char *command = xasprintf("rm -rf .gitmodules third; git rm -rqf --cached third 2>/dev/null; "
				  "git config -f .gitmodules submodule.third.path third && "
				  "git config -f .gitmodules submodule.third.url '%s' && git "
				  "update-index --add --cacheinfo 160000,$(git -C ../sub rev-parse "
				  "HEAD),third && git add .gitmodules && git commit -qm modules",
	    submodule);

	assert_int_equal(network_parse("127.0.0.0/8", &loopback, NULL), 0);
	shell(origin, command, NULL);
	free(command);
	shell(origin, "git rev-parse HEAD", sha);
	shell(rig_dir, ": > web.log", NULL);
	rig_config.has_checkout = true;
	rig_config.git_submodules = true;
	rig_config.n_steps = 0;
	rig_step("try", script, MINUTE_MS);
	rig_run();
}

static char *web(const char *path)
{
	static char text[128];

	snprintf(text, sizeof(text), "http://127.0.0.1:%d/%s", web_port(), path);
	return text;
}

static void list_loopback(void) { rig_config.git_networks = (struct network_list){.items = &loopback, .n = 1}; }

static void try_git_configuration(void)
{
	char *file = xasprintf("%s/.gitconfig", rig_dir), *netrc = xasprintf("%s/.netrc", rig_dir);
	char *hook = xasprintf("%s/post-checkout", rig_dir), *kept = xstrdup(web("origin"));
	char *text = xasprintf("[user]\nname = T\nemail = t@example.org\n[filter \"lfs\"]\n"
			       "\tsmudge = touch %s/ran\n\tprocess = touch %s/ran\n"
			       "\trequired = true\n[core]\n\thooksPath = %s\n\tfsmonitor = touch "
			       "%s/ran\n[credential]\n\thelper = !touch %s/ran\n",
	    rig_dir, rig_dir, rig_dir, rig_dir, rig_dir);

	shell(origin, "printf '* filter=lfs\\n' > .gitattributes", NULL);
	commit(origin, "picks a filter");
	list_loopback();
	rig_write(file, text);
	rig_write(netrc, "default login u password p\n");
	rig_write(hook, "#!/bin/sh\ntouch \"$HOME/ran\"\n");
	assert_int_equal(chmod(hook, 0755), 0);
	setenv("GIT_CONFIG_COUNT", "1", 1);
	setenv("GIT_CONFIG_KEY_0", "filter.lfs.smudge", 1);
	setenv("GIT_CONFIG_VALUE_0", "false", 1);
	shell(origin, "git rev-parse HEAD", sha);
	rig_config.has_checkout = true;
	rig_config.git_url = kept;
	try_script("[ \"$(cat file)\" = 'picks a filter' ]");
	unsetenv("GIT_CONFIG_COUNT");
	unsetenv("GIT_CONFIG_KEY_0");
	unsetenv("GIT_CONFIG_VALUE_0");
	shell(rig_dir, "[ ! -e ran ] && ! grep 'with a login' web.log", NULL);
	rig_write(file, "[user]\nname = T\nemail = t@example.org\n");
	free(text);
	free(kept);
	free(hook);
	free(netrc);
	free(file);
}

static void try_git_redirects(void)
{
	char *redirect = xasprintf("to/127.0.0.1:%d/sub", web_port()), *kept = rig_config.git_url;
	char *main_redirect = xasprintf("%sx", web("to/127.0.0.1:1/"));

	list_loopback();
	check_out_from("true", web(redirect));
	rig_assert_conclusion("startup_failure", "redirect, and none is followed");
	shell(rig_dir, "! grep '^GET /sub' web.log", NULL);
	rig_next_job();
	rig_config.git_url = main_redirect;
	rig_run();
	rig_assert_conclusion("startup_failure", "write checkout.git_url as it is after");
	rig_config.git_url = kept;
	free(main_redirect);
	free(redirect);
}

static void try_submodule_urls(void)
{
	static const char *const urls[] = {"/etc", "file:///etc", "ssh://git@127.0.0.1/x", "git@127.0.0.1:x",
	    "git://127.0.0.1/x", "ext::sh -c id", "https://u:p@h.invalid/x"};

	list_loopback();
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		check_out_from("true", urls[i]);
		rig_assert_conclusion("startup_failure", "is not fetched: a submodule's URL is");
		rig_next_job();
	}
}

static void try_submodule_addresses(void)
{
	char *name = xasprintf("http://localhost:%d/sub", web_port());
	char *tls = xasprintf("https://127.0.0.1:%d/sub", web_port()), *kept = rig_config.git_url;
	char *same = xstrdup(web("origin"));
	struct network other;

	assert_int_equal(network_parse("10.0.0.0/8", &other, NULL), 0);
	rig_config.git_networks = (struct network_list){.items = &other, .n = 1};
	rig_config.git_url = same; /* is no exception */
	check_out_from("true", web("sub"));
	rig_assert_conclusion("startup_failure", "may not reach");
	rig_next_job();
	check_out_from("true", name);
	rig_assert_conclusion("startup_failure", "may not reach");
	rig_next_job();
	check_out_from("true", tls);
	rig_assert_conclusion("startup_failure", "may not reach");
	rig_next_job();
	shell(rig_dir, "! grep '/sub' web.log", NULL);
	list_loopback();
	check_out_from("cat third/file && echo held", web("sub"));
	must_hold();
	rig_config.git_url = kept;
	free(same);
	free(tls);
	free(name);
}

static void try_submodule_logins(void)
{
	char *settings = xasprintf("%s/settings", rig_dir), *kept = rig_config.git_url;
	char *with = xasprintf("http://user:pass-word@127.0.0.1:%d/origin", web_port());

	rig_write(settings, "[http]\n\textraHeader = Authorization: Basic eDp5\n");
	rig_config.git_config = settings;
	rig_config.git_url = with;
	list_loopback();
	check_out_from("cat third/file && echo held", "../sub");
	must_hold();
	shell(rig_dir,
	    "grep -q '/origin/.* with a login' web.log && grep -q '^GET /sub/' web.log && "
	    "! grep '/sub/.* with a login' web.log",
	    NULL);
	rig_config.git_url = kept;
	free(with);
	free(settings);
}

static void try_submodule_proxies(void)
{
	static const char *const names[] = {"http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"};

	list_loopback();
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		setenv(names[i], "http://127.0.0.1:1", 1);
	check_out_from("cat third/file && echo held", web("sub"));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		unsetenv(names[i]);
	must_hold();
}

/* ---- the table ---- */

enum where { BOTH_MODES, IN_SANDBOX, CHECKOUT };
static const struct trial {
	const char *promise;
	enum where where;
	void (*run)(void);
} trials[] = {{"input", BOTH_MODES, try_input}, {"environment", BOTH_MODES, try_environment},
    {"masks", BOTH_MODES, try_masks}, {"session-keyring", BOTH_MODES, try_session_keyring},
    {"timeout", BOTH_MODES, try_timeout}, {"processes-end", BOTH_MODES, try_processes_end},
    {"report-links", BOTH_MODES, try_report_links}, {"system", IN_SANDBOX, try_system},
    {"not-there", IN_SANDBOX, try_not_there}, {"own-files", IN_SANDBOX, try_own_files},
    {"work-folder", IN_SANDBOX, try_work_folder}, {"tmp", IN_SANDBOX, try_tmp},
    {"processes", IN_SANDBOX, try_processes}, {"command-line", IN_SANDBOX, try_command_line},
    {"devices", IN_SANDBOX, try_devices}, {"network", IN_SANDBOX, try_network},
    {"allow-network", IN_SANDBOX, try_allow_network}, {"capabilities", IN_SANDBOX, try_capabilities},
    {"user-namespaces", IN_SANDBOX, try_user_namespaces}, {"terminal", IN_SANDBOX, try_terminal},
    {"host-name", IN_SANDBOX, try_host_name}, {"system-calls", IN_SANDBOX, try_system_calls},
    {"system-calls-32-bit", IN_SANDBOX, try_system_calls_32_bit}, {"allow-syscalls", IN_SANDBOX, try_allow_syscalls},
    {"git-configuration", CHECKOUT, try_git_configuration}, {"git-redirects", CHECKOUT, try_git_redirects},
    {"submodule-urls", CHECKOUT, try_submodule_urls}, {"submodule-addresses", CHECKOUT, try_submodule_addresses},
    {"submodule-logins", CHECKOUT, try_submodule_logins}, {"submodule-proxies", CHECKOUT, try_submodule_proxies}};

/* The rows of the page, "| `NAME` | …": each has one trial, and each trial one row. */
static void test_each_row_has_a_trial(void **state)
{
	struct buf page = BUF_INIT(1 << 20);
	size_t n = 0;

	(void)state;
	assert_int_equal(file_read("docs/sandbox.md", &page, NULL), 0);
	for (const char *line = buf_str(&page); line; line = strchr(line, '\n')) {
		char name[64];
		bool is_tried = false;

		line += *line == '\n';
		if (sscanf(line, "| `%63[a-z0-9-]` |", name) != 1)
			continue;
		n++;
		for (size_t i = 0; i < ARRAY_LEN(trials); i++)
			is_tried = is_tried || str_eq(trials[i].promise, name);
		if (!is_tried)
			fail_msg("docs/sandbox.md promises %s, which has no trial", name);
	}
	assert_int_equal(n, ARRAY_LEN(trials));
	for (size_t i = 0; i < ARRAY_LEN(trials); i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(trials[i].promise, trials[k].promise);
	buf_release(&page);
}

static void try_row(const struct trial *t, uid_t user, enum sandbox_kind sandbox)
{
	bool has_servers = t->where == CHECKOUT || t->run == try_network || t->run == try_allow_network;

	row = t->promise;
	if (getenv("ROW") && !str_eq(getenv("ROW"), row))
		return; /* one row by itself */
	assert_int_equal(has_servers ? setup(NULL) : rig_setup(NULL), 0);
	rig_user = user;
	rig_config.has_checkout = false;
	rig_config.sandbox = sandbox;
	t->run();
	rig_user = 0;
	assert_int_equal(has_servers ? teardown(NULL) : rig_teardown(NULL), 0);
}

static bool can_use_bubblewrap(uid_t user)
{
	int status = user ? system("setpriv --reuid 65534 --regid 65534 --clear-groups bwrap "
				   "--ro-bind / / --unshare-all true")
			  : system("bwrap --ro-bind / / --unshare-all true");

	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void try_all_as(uid_t user)
{
	bool has_bubblewrap = can_use_bubblewrap(user);

	if (!has_bubblewrap)
		print_message("bubblewrap cannot run here as user %d\n", (int)user);
	for (size_t i = 0; i < ARRAY_LEN(trials); i++) {
		if (has_bubblewrap && trials[i].where != CHECKOUT)
			try_row(&trials[i], user, SANDBOX_BUBBLEWRAP);
		if (trials[i].where == BOTH_MODES)
			try_row(&trials[i], user, SANDBOX_NONE);
		else if (trials[i].where == CHECKOUT)
			try_row(&trials[i], user, SANDBOX_NONE);
	}
}

static void test_rows_as_this_user(void **state)
{
	(void)state;
	try_all_as(0);
}

static void test_rows_as_nobody(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	try_all_as(NOBODY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_row_has_a_trial),
	    cmocka_unit_test(test_rows_as_this_user), cmocka_unit_test(test_rows_as_nobody)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
