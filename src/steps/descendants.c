/* A process is killed only while it is an unreaped child of this one, so its id cannot belong to another
 * process. Killing it makes its children ours, so each pass takes down one layer of the tree. A chain that
 * forks and exits as fast as it can is caught, because listing our children costs less than a fork. */
#include "steps/child.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { PIDS_MAX = 4096, HURRIED_PASSES = 2000 };

void descendants_adopt(void) { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

bool descendants_reap(struct descendants *d)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid <= 0)
			return pid < 0;
		if (pid == d->watched) {
			d->is_ended = true;
			d->status = status;
		} else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
			d->n_killed++;
		}
	}
}

/* Reads a file of /proc, as much as fits. */
static bool read_proc_file(const char *path, char *text, size_t text_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, text_bytes - 1) : 0;

	if (fd < 0)
		return false;
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return true;
}

static int list_children(pid_t *pids)
{
	char path[64], text[32768], *end;
	struct dirent *entry;
	int n = 0, parent;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	if (read_proc_file(path, text, sizeof(text))) {
		for (char *p = text; n < PIDS_MAX; p = end) {
			long pid = strtol(p, &end, 10);

			/* A number at the very end of the text may be cut. */
			if (end == p || !*end)
				break;
			pids[n++] = (pid_t)pid;
		}
		return n;
	}
	/* The kernel was built without its own list of our children. */
	DIR *dir = opendir("/proc");
	while (dir && n < PIDS_MAX && (entry = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%.16s/stat", entry->d_name);
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !read_proc_file(path, text, sizeof(text)))
			continue;
		/* The program name before it may hold any character, also ")". */
		end = strrchr(text, ')');
		if (end && sscanf(end, ") %*c %d", &parent) == 1 && parent == getpid())
			pids[n++] = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	if (dir)
		closedir(dir);
	return n;
}

bool descendants_end(struct descendants *d, int64_t within_ms)
{
	int64_t until_ms = clock_mono_ms() + within_ms;

	for (int pass = 0; !descendants_reap(d); pass++) {
		static pid_t pids[PIDS_MAX];
		int n = list_children(pids);

		for (int i = 0; i < n; i++) {
			pid_t group = getpgid(pids[i]);

			/* Kill its whole group at once: a fork cannot escape that. A group of another session
			 * than ours holds only processes that we started. */
			if (group > 1 && getsid(pids[i]) != getsid(0))
				kill(-group, SIGKILL);
			kill(pids[i], SIGKILL);
		}
		if (clock_mono_ms() >= until_ms)
			return descendants_reap(d);
		/* A killed process takes a moment to be gone. */
		if (pass >= HURRIED_PASSES)
			poll(NULL, 0, 1);
	}
	return true;
}
