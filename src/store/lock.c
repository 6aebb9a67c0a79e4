/* One daemon a state directory: a second one would take the first one's outbox rows for a
 * dead process's. The lock goes with the process, however it ends. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "store/store_internal.h"

static int refuse(int fd, const char *path, struct error *e)
{
	char text[32];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return error_set(e, ERR_EXISTS, "%s: another outpostd uses this directory (process %s)",
	    path, text[0] ? text : "unknown");
}

static int write_pid(int fd)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

	if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)n, 0) != n)
		return -1;
	return 0;
}

int state_dir_lock(const char *state_dir, int *ret_fd, struct error *e)
{
	char *path = path_join(state_dir, "lock");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc = 0;

	if (fd < 0)
		rc = error_set(e, ERR_IO, "%s: %m", path);
	else if (flock(fd, LOCK_EX | LOCK_NB))
		rc = errno == EWOULDBLOCK ? refuse(fd, path, e)
					  : error_set(e, ERR_IO, "%s: %m", path);
	/* The text is for people; a full disk must not keep the daemon from starting. */
	else if (write_pid(fd) && errno != ENOSPC)
		rc = error_set(e, ERR_IO, "%s: %m", path);
	if (rc && fd >= 0)
		close(fd);
	else if (!rc)
		*ret_fd = fd;
	free(path);
	return rc;
}
