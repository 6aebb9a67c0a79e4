#include "steps/keyring.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc has no function for it */
static long keyctl(int operation, long argument, long second)
{
	return syscall(SYS_keyctl, operation, argument, second, 0L, 0L);
}

int keyring_start_session(struct error *e)
{
	int failed;

	if (keyctl(KEYCTL_JOIN_SESSION_KEYRING, 0, 0) >= 0)
		return 0;
	failed = errno;
	/* A kernel without keyrings, and a container or unit that forbids the call, answer every
	 * operation alike, and answer the steps alike too. */
	if ((failed == ENOSYS || failed == EPERM) &&
	    keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) < 0 && errno == failed)
		return 0;
	return error_set(
	    e, ERR_DENIED, "the kernel gives no new session keyring: %s", strerror(failed));
}
