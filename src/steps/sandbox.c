#include "steps/sandbox.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/strv.h"
#include "steps/call_filter.h"
#include "steps/child.h"
#include "steps/environment.h"

enum { TRY_TIMEOUT_MS = 30 * 1000 };

/* Not /etc as a whole: passwords' hashes and other services' keys are there, and a runner that is
 * root could read them. */
static const char *const etc_files[] = {"/etc/alternatives", "/etc/bash.bashrc",
    "/etc/ca-certificates", "/etc/crypto-policies", "/etc/debian_version", "/etc/fonts",
    "/etc/gai.conf", "/etc/group", "/etc/host.conf", "/etc/hosts", "/etc/ld.so.cache",
    "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/locale.alias", "/etc/locale.conf",
    "/etc/localtime", "/etc/lsb-release", "/etc/magic", "/etc/mime.types", "/etc/nsswitch.conf",
    "/etc/OpenCL", "/etc/openEuler-release", "/etc/os-release", "/etc/passwd",
    "/etc/pki/ca-trust/extracted", "/etc/pki/tls/cert.pem", "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf", "/etc/profile", "/etc/profile.d", "/etc/protocols", "/etc/python3",
    "/etc/redhat-release", "/etc/services", "/etc/shells", "/etc/ssl/cert.pem", "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf", "/etc/timezone", "/etc/vulkan", "/etc/xattr.conf", NULL};

static const char *const system_folders[] = {
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", NULL};

/* Root's files, and root without a capability is their owner still: a runner that is root would
 * let steps set the machine's core_pattern, which is to say become root outside. */
static const char *const proc_files[] = {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq",
    "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi", NULL};

/* They name the keys of all processes of the runner's user, those of the service as well. */
static const char *const key_files[] = {"/proc/keys", "/proc/key-users", NULL};

static void add(char ***argv, const char *a, const char *b, const char *c)
{
	strv_add(argv, a);
	if (b)
		strv_add(argv, b);
	if (c)
		strv_add(argv, c);
}

static void add_system(char ***argv, const struct runner_config *c)
{
	add(argv, "--ro-bind", "/usr", "/usr");
	for (const char *const *p = system_folders; *p; p++) {
		char target[64];
		struct stat st;
		ssize_t n = readlink(*p, target, sizeof(target) - 1);

		if (n > 0) {
			target[n] = '\0';
			add(argv, "--symlink", target, *p);
		} else if (!stat(*p, &st)) {
			add(argv, "--ro-bind", *p, *p);
		}
	}
	for (const char *const *p = etc_files; *p; p++)
		add(argv, "--ro-bind-try", *p, *p);
	if (c->allow_network)
		add(argv, "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf");
	add(argv, "--proc", "/proc", NULL);
	for (const char *const *p = proc_files; *p; p++)
		add(argv, "--ro-bind-try", *p, *p);
	for (const char *const *p = key_files; *p; p++)
		if (!access(*p, F_OK))
			add(argv, "--ro-bind", "/dev/null", *p);
	add(argv, "--dev", "/dev", NULL);
	for (char **p = c->allow_devices; p && *p; p++)
		add(argv, "--dev-bind", *p, *p);
	/* drivers' libraries look their devices up there */
	if (c->allow_devices && *c->allow_devices)
		add(argv, "--ro-bind", "/sys", "/sys");
}

static char *real_path(const char *path)
{
	char *real = path ? realpath(path, NULL) : NULL;

	return real ? real : xstrdup(path ? path : "");
}

static bool is_within(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	while (n > 0 && folder[n - 1] == '/')
		n--;
	return !strncmp(path, folder, n) && (path[n] == '/' || !path[n]);
}

enum side { OUTSIDE_WORK_DIR, INSIDE_WORK_DIR };

static void add_allowed(
    char ***argv, const char *how, char *const *paths, const char *work_dir, enum side side)
{
	for (; paths && *paths; paths++) {
		char *real = real_path(*paths);

		if (is_within(real, work_dir) == (side == INSIDE_WORK_DIR))
			add(argv, how, *paths, *paths);
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

/* The runner's own files stay its own also where they lie in what may be read. */
static void add_cover(char ***argv, const struct runner_config *c, const char *file)
{
	char *real = real_path(file);
	bool is_exposed = is_within(real, "/usr") || is_exposed_by(real, c->allow_read) ||
			  is_exposed_by(real, c->allow_write);

	for (const char *const *p = etc_files; *p && !is_exposed; p++)
		is_exposed = is_within(real, *p);
	for (const char *const *p = system_folders; *p && !is_exposed; p++)
		is_exposed = is_within(real, *p);
	if (*real && is_exposed)
		add(argv, "--ro-bind", "/dev/null", real);
	free(real);
}

/* Bubblewrap 0.8 and later can keep user namespaces from being made by limits of the kernel, as
 * well as by the filter. */
static bool knows_disable_userns(void)
{
	static enum { UNKNOWN, NO, YES } known;
	const char *argv[] = {"bwrap", "--disable-userns", "--version", NULL};
	struct environment env = {.n = 0};
	struct child_spec spec = {.argv = argv, .folder = "/", .timeout_ms = TRY_TIMEOUT_MS};
	struct child_end end;

	if (known)
		return known == YES;
	environment_of_check(&env);
	spec.env = (const char *const *)env.list;
	known = !child_run(&spec, &end, NULL) && end.exit_code == 0 ? YES : NO;
	environment_release(&env);
	return known == YES;
}

static void add_namespaces(char ***argv, const struct runner_config *c)
{
	char status[16], filter[16];

	snprintf(status, sizeof(status), "%d", CHILD_STATUS_FD);
	snprintf(filter, sizeof(filter), "%d", CHILD_FILTER_FD);
	add(argv, "--json-status-fd", status, NULL);
	add(argv, "--seccomp", filter, NULL);
	add(argv, "--die-with-parent", "--new-session", NULL);
	if (geteuid() != 0 && !c->allow_calls[CALL_USER_NAMESPACES] && knows_disable_userns())
		add(argv, "--unshare-user", "--disable-userns", NULL);
	else
		strv_add(argv, "--unshare-user-try");
	add(argv, "--unshare-pid", "--unshare-ipc", NULL);
	add(argv, "--unshare-uts", "--unshare-cgroup-try", NULL);
	if (!c->allow_network)
		strv_add(argv, "--unshare-net");
	add(argv, "--hostname", "outpost-runner", NULL);
	add(argv, "--cap-drop", "ALL", NULL); /* root would keep them otherwise */
}

static char **options(const struct runner_config *c, const struct sandbox_places *places)
{
	char **argv = NULL, *work_dir = real_path(c->work_dir);

	add_namespaces(&argv, c);
	add_system(&argv, c);
	add(&argv, "--bind", places->temporary, "/tmp");
	add(&argv, "--symlink", "../tmp", "/var/tmp");
	add(&argv, "--dir", "/run", NULL);
	add_allowed(&argv, "--ro-bind", c->allow_read, work_dir, OUTSIDE_WORK_DIR);
	add_allowed(&argv, "--bind", c->allow_write, work_dir, OUTSIDE_WORK_DIR);
	/* other jobs, and everything else that the runner keeps */
	add(&argv, "--tmpfs", work_dir, NULL);
	add_allowed(&argv, "--ro-bind", c->allow_read, work_dir, INSIDE_WORK_DIR);
	add_allowed(&argv, "--bind", c->allow_write, work_dir, INSIDE_WORK_DIR);
	add(&argv, "--bind", places->work, places->work);
	if (places->change_file)
		add(&argv, "--ro-bind", places->change_file, places->change_file);
	if (places->tests_file)
		add(&argv, "--ro-bind", places->tests_file, places->tests_file);
	for (char *const *p = places->mirrors; p && *p; p++)
		add(&argv, "--ro-bind", *p, *p);
	add_cover(&argv, c, c->path);
	add_cover(&argv, c, c->token_file);
	add_cover(&argv, c, c->git_config);
	add(&argv, "--remount-ro", work_dir, NULL);
	add(&argv, "--remount-ro", "/", NULL);
	add(&argv, "--chdir", places->work, NULL);
	free(work_dir);
	return argv;
}

/* The options as bubblewrap reads them from --args: each with its NUL. */
static int open_args(char **list, struct error *e)
{
	struct buf text = BUF_INIT(SIZE_MAX / 2);
	int fd = memfd_create("outpost-sandbox", MFD_CLOEXEC);
	bool is_written;

	for (char **p = list; *p; p++)
		buf_append(&text, *p, strlen(*p) + 1);
	is_written = fd >= 0 && write(fd, text.data, text.len) == (ssize_t)text.len &&
		     lseek(fd, 0, SEEK_SET) == 0;
	buf_release(&text);
	if (is_written)
		return fd;
	error_set(e, ERR_IO, "sandbox: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

int sandbox_open(const struct runner_config *c, const struct sandbox_places *places,
    const char *run, struct sandbox *ret, struct error *e)
{
	char **list = options(c, places), fd[16];

	*ret = (struct sandbox){.args_fd = open_args(list, e), .filter_fd = -1};
	strv_free(list);
	if (ret->args_fd < 0)
		return ERR_IO;
	ret->filter_fd = call_filter_open(c, e);
	if (ret->filter_fd < 0)
		return ERR_IO;
	snprintf(fd, sizeof(fd), "%d", CHILD_ARGS_FD);
	add(&ret->argv, "bwrap", "--args", fd);
	add(&ret->argv, "--", "/bin/sh", "-c");
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
