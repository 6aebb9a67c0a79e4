#include "steps/sandbox.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"
#include "steps/child.h"

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

static void add(char ***argv, const char *a, const char *b, const char *c)
{
	strv_add(argv, a);
	if (b)
		strv_add(argv, b);
	if (c)
		strv_add(argv, c);
}

static void add_namespaces(char ***argv, const struct runner_config *c)
{
	char fd[8];

	snprintf(fd, sizeof(fd), "%d", CHILD_STATUS_FD);
	strv_add(argv, "bwrap");
	add(argv, "--json-status-fd", fd, NULL);
	add(argv, "--die-with-parent", "--new-session", NULL);
	add(argv, "--unshare-user-try", "--unshare-pid", "--unshare-ipc");
	add(argv, "--unshare-uts", "--unshare-cgroup-try", NULL);
	if (!c->allow_network)
		strv_add(argv, "--unshare-net");
	add(argv, "--hostname", "outpost-runner", NULL);
	add(argv, "--cap-drop", "ALL", NULL); /* root would keep them otherwise */
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

char **sandbox_argv(
    const struct runner_config *c, const struct sandbox_places *places, const char *run)
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
	for (char *const *p = places->mirrors; p && *p; p++)
		add(&argv, "--ro-bind", *p, *p);
	add_cover(&argv, c, c->path);
	add_cover(&argv, c, c->token_file);
	add(&argv, "--remount-ro", work_dir, NULL);
	add(&argv, "--remount-ro", "/", NULL);
	add(&argv, "--chdir", places->work, "--");
	add(&argv, "/bin/sh", "-c", run);
	free(work_dir);
	return argv;
}
