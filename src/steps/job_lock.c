#include "steps/job_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "steps/job_folder.h"

enum { TRIES = 50, BETWEEN_TRIES_MS = 20 };

/* Somebody who only asks whether it is locked has it for a moment, so one refusal means little. */
static int lock_patiently(int fd)
{
	for (int i = 0; i < TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK)
			return ERR_IO;
		poll(NULL, 0, BETWEEN_TRIES_MS);
	}
	return ERR_BUSY;
}

int job_lock_take(const char *folder, int *ret_fd, struct error *e)
{
	char *path = job_folder_file(folder, "lock");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), rc = 0;

	if (fd < 0) {
		rc = error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
		goto out;
	}
	rc = lock_patiently(fd);
	if (rc == ERR_BUSY)
		error_set(e, rc, "%s: another process runs this job", folder);
	else if (rc)
		error_set(e, rc, "%s: %s", path, strerror(errno));
	else if (ftruncate(fd, 0) || dprintf(fd, "%d\n", (int)getpid()) < 0)
		rc = error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	if (rc)
		close(fd);
	else
		*ret_fd = fd;
out:
	free(path);
	return rc;
}

bool job_folder_is_locked(const char *folder)
{
	char *path = job_folder_file(folder, "lock");
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	/* Where it cannot be told (no descriptors) nobody may take the job for dead. */
	bool is_locked = fd < 0 ? errno != ENOENT : flock(fd, LOCK_SH | LOCK_NB) != 0;

	if (fd >= 0)
		close(fd);
	free(path);
	return is_locked;
}

int job_folder_cancel(const char *folder, struct error *e)
{
	char *text = NULL;
	int64_t pid = 0;
	size_t n;
	int rc;

	if (!job_folder_is_locked(folder))
		return error_set(e, ERR_NOT_FOUND, "%s: no process runs this job", folder);
	rc = job_folder_read(folder, "lock", 32, &text, &n, e);
	if (!rc) {
		text[strcspn(text, "\n")] = '\0';
		if (parse_int64(text, &pid) || pid <= 1)
			rc = error_set(e, ERR_CORRUPT, "%s/lock: no process id in it", folder);
		else if (kill((pid_t)pid, SIGTERM))
			rc = error_set(e, errno == ESRCH ? ERR_NOT_FOUND : ERR_DENIED,
			    "%s: process %d: %s", folder, (int)pid, strerror(errno));
	}
	free(text);
	return rc;
}
