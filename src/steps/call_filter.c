#include "steps/call_filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

/* Denied as a whole. EPERM, but ENOSYS where libraries take that for "use the older way". */
static const struct {
	enum guarded_call guard;
	int answer;
	const char *name;
	int number; /* where libseccomp is older than the call: the same on all architectures */
} denied[] = {
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
    /* its flags lie in memory, where no filter sees them; C libraries fall back on clone */
    {CALL_USER_NAMESPACES, ENOSYS, "clone3", 435},
};

#ifdef __s390x__
enum { CLONE_FLAGS = 1 };
#else
enum { CLONE_FLAGS = 0 };
#endif

/* Denied for one value of an argument, of which the kernel looks at the low 32 bits only. */
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

/* A network namespace keeps these families apart from the machine's own network. Others it does not:
 * AF_VSOCK, for one, reaches the host of a virtual machine, and services of the machine. */
static const unsigned int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

/* A 64-bit kernel runs programs of these too, which have call numbers of their own. */
static int add_architectures(scmp_filter_ctx filter)
{
	int rc = 0;

#if defined(__x86_64__)
	rc = seccomp_arch_add(filter, SCMP_ARCH_X86);
	if (!rc)
		rc = seccomp_arch_add(filter, SCMP_ARCH_X32);
#elif defined(__aarch64__)
	rc = seccomp_arch_add(filter, SCMP_ARCH_ARM);
#endif
	return rc;
}

/* Denies a call that this libseccomp has no name for. Goes before its program, which begins by
 * loading what it looks at; x32 marks its numbers with one bit. */
static int write_unnamed(int fd, int number, int answer)
{
	struct sock_filter program[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~UINT32_C(0x40000000)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)answer)};

	return write(fd, program, sizeof(program)) == (ssize_t)sizeof(program) ? 0 : -EIO;
}

static int deny(scmp_filter_ctx filter, int fd, size_t i)
{
	int number = seccomp_syscall_resolve_name(denied[i].name);

	if (number == __NR_SCMP_ERROR)
		return write_unnamed(fd, denied[i].number, denied[i].answer);
	return seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint32_t)denied[i].answer), number, 0);
}

static int deny_family(scmp_filter_ctx filter, enum scmp_compare how, unsigned int family)
{
	return seccomp_rule_add(
	    filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1, SCMP_CMP(0, how, family, 0));
}

/* For i386 libseccomp denies socketcall(SYS_SOCKET) as a whole: its family lies in memory. */
static int deny_other_families(scmp_filter_ctx filter)
{
	unsigned int next = 0;
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		for (; next < families[i] && !rc; next++)
			rc = deny_family(filter, SCMP_CMP_EQ, next);
		next++;
	}
	return rc ? rc : deny_family(filter, SCMP_CMP_GE, next);
}

static int add_rules(scmp_filter_ctx filter, int fd, const struct runner_config *c)
{
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(denied) && !rc; i++)
		if (!c->allow_calls[denied[i].guard])
			rc = deny(filter, fd, i);
	for (size_t i = 0; i < ARRAY_LEN(denied_values) && !rc; i++)
		if (!c->allow_calls[denied_values[i].guard])
			rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM),
			    seccomp_syscall_resolve_name(denied_values[i].name), 1,
			    SCMP_CMP(denied_values[i].argument, SCMP_CMP_MASKED_EQ,
				(uint64_t)denied_values[i].mask, (uint64_t)denied_values[i].value));
	if (!rc && !c->allow_network)
		rc = deny_other_families(filter);
	return rc;
}

int call_filter_open(const struct runner_config *c, struct error *e)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int fd = memfd_create("outpost-filter", MFD_CLOEXEC);
	int rc = !filter ? -ENOMEM : fd < 0 ? -errno : add_architectures(filter);

	if (!rc)
		rc = add_rules(filter, fd, c);
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
