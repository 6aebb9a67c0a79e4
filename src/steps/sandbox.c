#include "steps/sandbox.h"

#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "steps/child.h"

enum { TRY_TIMEOUT_MS = 30 * 1000 };

/* ---- the filter of system calls ---- */

/* Denied with every argument. EPERM, or ENOSYS if libraries then use an older call. */
static const struct {
	enum guarded_call guard;
	int answer;
	const char *name;
	int number; /* for a libseccomp that does not know the name; the same on all architectures */
} denied_calls[] = {
    {CALL_KEYCTL, EPERM, "keyctl", 0},
    {CALL_ADD_KEY, EPERM, "add_key", 0},
    {CALL_REQUEST_KEY, EPERM, "request_key", 0},
    {CALL_BPF, EPERM, "bpf", 0},
    {CALL_PERF_EVENT_OPEN, EPERM, "perf_event_open", 0},
    {CALL_USERFAULTFD, ENOSYS, "userfaultfd", 0},
    {CALL_IO_URING, ENOSYS, "io_uring_setup", 425},
    {CALL_IO_URING, ENOSYS, "io_uring_enter", 426},
    {CALL_IO_URING, ENOSYS, "io_uring_register", 427},
    {CALL_KEXEC, EPERM, "kexec_load", 0},
    {CALL_KEXEC, EPERM, "kexec_file_load", 0},
    {CALL_MODULES, EPERM, "create_module", 0},
    {CALL_MODULES, EPERM, "init_module", 0},
    {CALL_MODULES, EPERM, "finit_module", 0},
    {CALL_MODULES, EPERM, "delete_module", 0},
    {CALL_MOUNT, EPERM, "mount", 0},
    {CALL_MOUNT, EPERM, "umount", 0},
    {CALL_MOUNT, EPERM, "umount2", 0},
    {CALL_MOUNT, EPERM, "pivot_root", 0},
    {CALL_MOUNT, EPERM, "open_tree", 428},
    {CALL_MOUNT, EPERM, "move_mount", 429},
    {CALL_MOUNT, EPERM, "fsopen", 430},
    {CALL_MOUNT, EPERM, "fsconfig", 431},
    {CALL_MOUNT, EPERM, "fsmount", 432},
    {CALL_MOUNT, EPERM, "fspick", 433},
    {CALL_MOUNT, EPERM, "mount_setattr", 442},
    {CALL_MOUNT, EPERM, "open_tree_attr", 467},
    /* Its flags are in memory, which a filter cannot read. C libraries fall back on clone. */
    {CALL_USER_NAMESPACES, ENOSYS, "clone3", 435},
};

#ifdef __s390x__
enum { CLONE_FLAGS = 1 };
#else
enum { CLONE_FLAGS = 0 };
#endif

/* Denied for one value of an argument. The kernel reads only its low 32 bits. */
static const struct {
	enum guarded_call guard;
	const char *name;
	unsigned int argument;
	uint32_t mask, value;
} denied_values[] = {
    {CALL_TIOCSTI, "ioctl", 1, UINT32_MAX, TIOCSTI},
    {CALL_TIOCLINUX, "ioctl", 1, UINT32_MAX, TIOCLINUX},
    {CALL_USER_NAMESPACES, "clone", CLONE_FLAGS, CLONE_NEWUSER, CLONE_NEWUSER},
    {CALL_USER_NAMESPACES, "unshare", 0, CLONE_NEWUSER, CLONE_NEWUSER},
};

/* The socket families that a network namespace separates from the machine's network. It does not separate
 * others: AF_VSOCK, for example, reaches the host of a virtual machine, and services of the machine. */
static const unsigned int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

static int deny_family(scmp_filter_ctx filter, enum scmp_compare how, unsigned int family)
{
	const int calls[] = {SCMP_SYS(socket), SCMP_SYS(socketpair)};
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(calls) && !rc; i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), calls[i], 1, SCMP_CMP(0, how, family, 0));
	return rc;
}

/* Calls that are denied as a whole come first: the rules for unknown names are written straight to fd and
 * must stand before the program that libseccomp exports. */
static int add_filter_rules(scmp_filter_ctx filter, int fd, const struct runner_config *c)
{
	unsigned int next = 0;
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(denied_calls) && !rc; i++) {
		int number = seccomp_syscall_resolve_name(denied_calls[i].name);

		/* A call that this libseccomp does not know by name. libseccomp's program after it begins by loading
		 * the call's number itself; x32 marks its numbers with one bit. */
		struct sock_filter unnamed[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~UINT32_C(0x40000000)),
		    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)denied_calls[i].number, 0, 1),
		    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)denied_calls[i].answer)};

		if (c->allow_calls[denied_calls[i].guard])
			continue;
		if (number != __NR_SCMP_ERROR)
			rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint32_t)denied_calls[i].answer), number, 0);
		else if (write(fd, unnamed, sizeof(unnamed)) != (ssize_t)sizeof(unnamed))
			rc = -EIO;
	}
	for (size_t i = 0; i < ARRAY_LEN(denied_values) && !rc; i++)
		if (!c->allow_calls[denied_values[i].guard])
			rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM),
			    seccomp_syscall_resolve_name(denied_values[i].name), 1,
			    SCMP_CMP(denied_values[i].argument, SCMP_CMP_MASKED_EQ, (uint64_t)denied_values[i].mask,
				(uint64_t)denied_values[i].value));
	if (c->allow_network)
		return rc;
	/* For i386 libseccomp denies socketcall(SYS_SOCKET) with every family, because the family is in memory. */
	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		for (; next < families[i] && !rc; next++)
			rc = deny_family(filter, SCMP_CMP_EQ, next);
		next++;
	}
	return rc ? rc : deny_family(filter, SCMP_CMP_GE, next);
}

/* The filter as a seccomp program, in a file to be read from its beginning: close(). -1: *e. */
static int open_call_filter(const struct runner_config *c, struct error *e)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int fd = memfd_create("outpost-filter", MFD_CLOEXEC);
	int rc = !filter ? -ENOMEM : fd < 0 ? -errno : 0;

	/* A 64-bit kernel also runs programs of these architectures, whose calls have other numbers. The
	 * rules below hold for every architecture that is added before them. */
#if defined(__x86_64__)
	if (!rc)
		rc = seccomp_arch_add(filter, SCMP_ARCH_X86);
	if (!rc)
		rc = seccomp_arch_add(filter, SCMP_ARCH_X32);
#elif defined(__aarch64__)
	if (!rc)
		rc = seccomp_arch_add(filter, SCMP_ARCH_ARM);
#endif
	if (!rc)
		rc = add_filter_rules(filter, fd, c);
	if (!rc)
		rc = seccomp_export_bpf(filter, fd);
	if (!rc && lseek(fd, 0, SEEK_SET) < 0)
		rc = -errno;
	if (filter)
		seccomp_release(filter);
	if (rc && fd >= 0)
		close(fd);
	if (rc) {
		error_set(e, ERR_IO, "sandbox: no system call filter: %s", strerror(-rc));
		return -1;
	}
	return fd;
}

/* ---- bubblewrap ---- */

/* Not all of /etc: it holds password hashes and keys of other services, and a runner that is root could read them. */
static const char *const etc_files[] = {"/etc/alternatives", "/etc/bash.bashrc", "/etc/ca-certificates",
    "/etc/crypto-policies", "/etc/debian_version", "/etc/fonts", "/etc/gai.conf", "/etc/group", "/etc/host.conf",
    "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/locale.alias", "/etc/locale.conf",
    "/etc/localtime", "/etc/lsb-release", "/etc/magic", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/OpenCL",
    "/etc/openEuler-release", "/etc/os-release", "/etc/passwd", "/etc/pki/ca-trust/extracted", "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs", "/etc/pki/tls/openssl.cnf", "/etc/profile", "/etc/profile.d", "/etc/protocols",
    "/etc/python3", "/etc/redhat-release", "/etc/services", "/etc/shells", "/etc/ssl/cert.pem", "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf", "/etc/timezone", "/etc/vulkan", "/etc/xattr.conf", NULL};

static const char *const system_folders[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", NULL};

/* These files belong to root, and root without capabilities is still their owner. A runner that is root would
 * let steps set the machine's core_pattern and so become root outside. */
static const char *const proc_files[] = {
    "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi", NULL};

/* They list the keys of all processes of the runner's user, the service among them. */
static const char *const key_files[] = {"/proc/keys", "/proc/key-users", NULL};

/* Appends one option; b and c may be NULL. */
static void add_option(char ***argv, const char *a, const char *b, const char *c)
{
	strv_add(argv, a);
	if (b)
		strv_add(argv, b);
	if (c)
		strv_add(argv, c);
}

/* The system, read-only. Each line that covers a path comes after the line that shows what is around it. */
static void add_system_options(char ***argv, const struct runner_config *c)
{
	add_option(argv, "--ro-bind", "/usr", "/usr");
	for (const char *const *p = system_folders; *p; p++) {
		char target[64];
		struct stat st;
		ssize_t n = readlink(*p, target, sizeof(target) - 1);

		if (n > 0) {
			target[n] = '\0';
			add_option(argv, "--symlink", target, *p);
		} else if (!stat(*p, &st)) {
			add_option(argv, "--ro-bind", *p, *p);
		}
	}
	for (const char *const *p = etc_files; *p; p++)
		add_option(argv, "--ro-bind-try", *p, *p);
	if (c->allow_network)
		add_option(argv, "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf");
	add_option(argv, "--proc", "/proc", NULL);
	for (const char *const *p = proc_files; *p; p++)
		add_option(argv, "--ro-bind-try", *p, *p);
	for (const char *const *p = key_files; *p; p++)
		if (!access(*p, F_OK))
			add_option(argv, "--ro-bind", "/dev/null", *p);
	add_option(argv, "--dev", "/dev", NULL);
	for (char **p = c->allow_devices; p && *p; p++)
		add_option(argv, "--dev-bind", *p, *p);
	/* Drivers' libraries look up their devices there. */
	if (c->allow_devices && *c->allow_devices)
		add_option(argv, "--ro-bind", "/sys", "/sys");
}

static char *real_path(const char *path)
{
	char *real = path ? realpath(path, NULL) : NULL;

	return real ? real : xstrdup(path ? path : "");
}

/* True if the path is the folder or lies below it. */
static bool is_within(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	while (n > 0 && folder[n - 1] == '/')
		n--;
	return !strncmp(path, folder, n) && (path[n] == '/' || !path[n]);
}

enum side { OUTSIDE_WORK_DIR, INSIDE_WORK_DIR };

/* The paths of an `allow` list that lie on one side of the work folder. Whether a path is inside is judged by
 * its real path, so a link does not hide it. */
static void add_allowed_paths(char ***argv, const char *how, char *const *paths, const char *work_dir, enum side side)
{
	for (; paths && *paths; paths++) {
		char *real = real_path(*paths);

		if (is_within(real, work_dir) == (side == INSIDE_WORK_DIR))
			add_option(argv, how, *paths, *paths);
		free(real);
	}
}

static bool is_exposed_by(const char *real, char *const *paths)
{
	for (; paths && *paths; paths++) {
		char *folder = real_path(*paths);
		bool is_there = is_within(real, folder);

		free(folder);
		if (is_there)
			return true;
	}
	return false;
}

/* Mounts `from` (NULL: nothing) over `real` wherever an `allow` path that is a link, or lies behind one, shows it: the sandbox has
 * such a folder under the written path. */
static void cover_behind_links(
    char ***argv, const struct runner_config *c, const char *how, const char *from, const char *real)
{
	char *const *const lists[] = {c->allow_read, c->allow_write};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (char *const *path = lists[i]; path && *path; path++) {
			char *folder = real_path(*path), *alias = NULL;

			if (is_within(real, folder))
				alias = xasprintf("%s%s", *path, real + strlen(folder));
			if (alias && strcmp(alias, real) != 0)
				add_option(argv, how, from ? from : alias, from ? alias : NULL);
			free(folder);
			free(alias);
		}
}

/* Hides one of the runner's own files if something that the step sees would show it. */
static void hide_own_file(char ***argv, const struct runner_config *c, const char *file)
{
	char *real = real_path(file);
	bool is_exposed =
	    is_within(real, "/usr") || is_exposed_by(real, c->allow_read) || is_exposed_by(real, c->allow_write);

	for (const char *const *p = etc_files; *p && !is_exposed; p++)
		is_exposed = is_within(real, *p);
	for (const char *const *p = system_folders; *p && !is_exposed; p++)
		is_exposed = is_within(real, *p);
	if (*real && is_exposed)
		add_option(argv, "--ro-bind", "/dev/null", real);
	if (*real)
		cover_behind_links(argv, c, "--ro-bind", "/dev/null", real);
	free(real);
}

/* Bubblewrap 0.8 and later can also forbid user namespaces by limits of the kernel, besides the filter. The
 * answer is remembered: the program does not change while the process runs. */
static bool knows_disable_userns(void)
{
	static enum { UNKNOWN, NO, YES } known;
	const char *argv[] = {"bwrap", "--disable-userns", "--version", NULL};
	const struct child_spec spec = {.argv = argv, .folder = "/", .timeout_ms = TRY_TIMEOUT_MS};
	struct child_end end;

	if (!known)
		known = !child_run_check(&spec, &end, NULL) && end.exit_code == 0 ? YES : NO;
	return known == YES;
}

/* Bubblewrap carries mounts out in this order, and a later one covers an earlier one. So:
 * - the system comes before everything that lies in it;
 * - `allow` paths outside of the work folder come before the tmpfs on it, so that none of them can show the
 *   work folder again, where other jobs, the journal and the mirrors are;
 * - what the step may see of the work folder comes after the tmpfs;
 * - the runner's own files are hidden after all paths that could show them;
 * - the two remounts come last, because nothing can be mounted on a read-only tmpfs. */
static char **sandbox_options(const struct runner_config *c, const struct sandbox_places *places)
{
	char **argv = NULL, *work_dir = real_path(c->work_dir);
	char status[16], filter[16];

	snprintf(status, sizeof(status), "%d", CHILD_STATUS_FD);
	snprintf(filter, sizeof(filter), "%d", CHILD_FILTER_FD);
	add_option(&argv, "--json-status-fd", status, NULL);
	add_option(&argv, "--seccomp", filter, NULL);
	add_option(&argv, "--die-with-parent", "--new-session", NULL);
	if (geteuid() != 0 && !c->allow_calls[CALL_USER_NAMESPACES] && knows_disable_userns())
		add_option(&argv, "--unshare-user", "--disable-userns", NULL);
	else
		strv_add(&argv, "--unshare-user-try");
	add_option(&argv, "--unshare-pid", "--unshare-ipc", NULL);
	add_option(&argv, "--unshare-uts", "--unshare-cgroup-try", NULL);
	if (!c->allow_network)
		strv_add(&argv, "--unshare-net");
	add_option(&argv, "--hostname", "outpost-runner", NULL);
	add_option(&argv, "--cap-drop", "ALL", NULL); /* without this, root keeps them */
	add_system_options(&argv, c);
	add_option(&argv, "--bind", places->temporary, "/tmp");
	add_option(&argv, "--symlink", "../tmp", "/var/tmp");
	add_option(&argv, "--dir", "/run", NULL);
	add_allowed_paths(&argv, "--ro-bind", c->allow_read, work_dir, OUTSIDE_WORK_DIR);
	add_allowed_paths(&argv, "--bind", c->allow_write, work_dir, OUTSIDE_WORK_DIR);
	add_option(&argv, "--tmpfs", work_dir, NULL);
	cover_behind_links(&argv, c, "--tmpfs", NULL, work_dir);
	add_allowed_paths(&argv, "--ro-bind", c->allow_read, work_dir, INSIDE_WORK_DIR);
	add_allowed_paths(&argv, "--bind", c->allow_write, work_dir, INSIDE_WORK_DIR);
	add_option(&argv, "--bind", places->work, places->work);
	if (places->change_file)
		add_option(&argv, "--ro-bind", places->change_file, places->change_file);
	if (places->tests_file)
		add_option(&argv, "--ro-bind", places->tests_file, places->tests_file);
	for (char *const *p = places->mirrors; p && *p; p++)
		add_option(&argv, "--ro-bind", *p, *p);
	hide_own_file(&argv, c, c->path);
	hide_own_file(&argv, c, c->token_file);
	hide_own_file(&argv, c, c->git_config);
	add_option(&argv, "--remount-ro", work_dir, NULL);
	add_option(&argv, "--remount-ro", "/", NULL);
	add_option(&argv, "--chdir", places->work, NULL);
	free(work_dir);
	return argv;
}

int sandbox_open(const struct runner_config *c, const struct sandbox_places *places, const char *run,
    struct sandbox *ret, struct error *e)
{
	char **list = sandbox_options(c, places), number[16];
	struct buf text = BUF_INIT(SIZE_MAX / 2);

	/* The options in a file, as bubblewrap reads them from --args: each with its NUL. */
	for (char **p = list; *p; p++)
		buf_append(&text, *p, strlen(*p) + 1);
	strv_free(list);
	*ret = (struct sandbox){.args_fd = memfd_create("outpost-sandbox", MFD_CLOEXEC), .filter_fd = -1};
	bool is_written = ret->args_fd >= 0 && write(ret->args_fd, text.data, text.len) == (ssize_t)text.len &&
			  lseek(ret->args_fd, 0, SEEK_SET) == 0;
	buf_release(&text);
	if (!is_written)
		return error_set(e, ERR_IO, "sandbox: %s", strerror(errno));
	ret->filter_fd = open_call_filter(c, e);
	if (ret->filter_fd < 0)
		return ERR_IO;
	snprintf(number, sizeof(number), "%d", CHILD_ARGS_FD);
	add_option(&ret->argv, "bwrap", "--args", number);
	add_option(&ret->argv, "--", "/bin/sh", "-c");
	strv_add(&ret->argv, run);
	return 0;
}

void sandbox_close(struct sandbox *s)
{
	strv_free(s->argv);
	if (s->args_fd >= 0)
		close(s->args_fd);
	if (s->filter_fd >= 0)
		close(s->filter_fd);
}

/* ---- the keyring ---- */

/* glibc has no function for this system call. */
static long call_keyctl(int operation, long argument, long second)
{
	return syscall(SYS_keyctl, operation, argument, second, 0L, 0L);
}

int keyring_start_session(struct error *e)
{
	if (call_keyctl(KEYCTL_JOIN_SESSION_KEYRING, 0, 0) >= 0)
		return 0;
	int failed = errno;
	/* A kernel without keyrings, and a container or unit that forbids the call, refuse every operation
	 * in the same way, and will refuse the steps' calls too. */
	if ((failed == ENOSYS || failed == EPERM) &&
	    call_keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) < 0 && errno == failed)
		return 0;
	return error_set(e, ERR_DENIED, "the kernel gives no new session keyring: %s", strerror(failed));
}
