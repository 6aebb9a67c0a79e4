#include "steps/job_folder.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>

enum {
	LOCK_TRIES = 50,
	BETWEEN_TRIES_MS = 20,
	RESULT_MAX_BYTES = 4 << 20,
	DEPTH_MAX = 48, /* of folders that are removed in place */
};

int job_folder_write(const char *folder, const char *name, const void *p, size_t n, struct error *e)
{
	char *path = path_join(folder, name);
	int rc = file_write_atomic(path, p, n, 0600, e);

	free(path);
	return rc;
}

int job_folder_make(const char *path, struct error *e)
{
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return 0;
	return error_set(e, errno == ENOSPC ? ERR_FULL : ERR_IO, "%s: cannot be made: %s", path, strerror(errno));
}

int job_folder_read(const char *folder, const char *name, size_t max, char **ret, size_t *ret_n, struct error *e)
{
	char *path = path_join(folder, name);
	struct buf out = BUF_INIT(max);
	int rc = file_read(path, &out, e);

	if (!rc) {
		*ret_n = out.len;
		*ret = out.data ? buf_detach(&out) : xstrdup("");
	}
	buf_release(&out);
	free(path);
	return rc;
}

int job_lock_acquire(const char *folder, int *ret_fd, struct error *e)
{
	char *path = path_join(folder, "lock");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), rc = ERR_BUSY;

	if (fd < 0) {
		rc = error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
		goto out;
	}
	/* job_folder_is_locked() of another process holds the lock for a moment, so one refusal means little. */
	for (int i = 0; i < LOCK_TRIES && rc == ERR_BUSY; i++) {
		rc = !flock(fd, LOCK_EX | LOCK_NB) ? 0 : errno == EWOULDBLOCK ? ERR_BUSY : ERR_IO;
		if (rc == ERR_BUSY)
			poll(NULL, 0, BETWEEN_TRIES_MS);
	}
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
	char *path = path_join(folder, "lock");
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	/* Without a free descriptor it is unknown: then the job counts as alive. */
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

	if (!job_folder_is_locked(folder))
		return error_set(e, ERR_NOT_FOUND, "%s: no process runs this job", folder);
	int rc = job_folder_read(folder, "lock", 32, &text, &n, e);
	if (!rc) {
		text[strcspn(text, "\n")] = '\0';
		if (parse_int64(text, &pid) || pid <= 1)
			rc = error_set(e, ERR_CORRUPT, "%s/lock: no process id in it", folder);
		else if (kill((pid_t)pid, SIGTERM))
			rc = error_set(e, errno == ESRCH ? ERR_NOT_FOUND : ERR_DENIED, "%s: process %d: %s", folder,
			    (int)pid, strerror(errno));
	}
	free(text);
	return rc;
}

static const char *const conclusions[] = {
    "success", "failure", "timed_out", "cancelled", "startup_failure", "action_required", NULL};

int job_result_write(const char *folder, const struct job_result *r, struct error *e)
{
	json_t *steps = json_array();

	for (size_t i = 0; i < r->n_steps; i++) {
		const struct step_outcome *o = &r->steps[i];
		json_t *step = json_pack("{s:n, s:i, s:i, s:b, s:I}", "name", "exit_code", o->exit_code, "signal",
		    o->signal, "timeout", (int)o->is_timeout, "duration_ms", (json_int_t)o->duration_ms);

		json_set_str(step, "name", o->name);
		json_array_append_new(steps, step);
	}
	json_t *v = json_pack("{s:s, s:n, s:o, s:I, s:I, s:b}", "conclusion", r->conclusion, "message", "steps", steps,
	    "started_ms", (json_int_t)r->started_ms, "completed_ms", (json_int_t)r->completed_ms, "report",
	    (int)r->has_report);
	json_set_str(v, "message", r->message);
	char *text = json_text(v);
	int rc = job_folder_write(folder, "result.json", text, strlen(text), e);
	free(text);
	json_decref(v);
	return rc;
}

int job_result_read(const char *folder, struct job_result *ret, struct error *e)
{
	json_t *v = NULL;
	char *text = NULL;
	size_t n = 0;

	memset(ret, 0, sizeof(*ret));
	int rc = job_folder_read(folder, "result.json", RESULT_MAX_BYTES, &text, &n, e);
	if (rc)
		return rc;
	(void)!json_parse(text, n, &v, NULL);
	free(text);
	const char *conclusion = json_get_str(v, "conclusion");
	if (!conclusion || !strv_contains(conclusions, conclusion)) {
		json_decref(v);
		return error_set(e, ERR_CORRUPT, "%s/result.json: not a job's result", folder);
	}
	const json_t *steps = json_object_get(v, "steps");
	ret->conclusion = xstrdup(conclusion);
	ret->message = xstrdup_or_null(json_get_str(v, "message"));
	ret->n_steps = json_array_size(steps);
	ret->steps = xcalloc(ret->n_steps, sizeof(*ret->steps));
	for (size_t i = 0; i < ret->n_steps; i++) {
		const json_t *step = json_array_get(steps, i);
		const char *name = json_get_str(step, "name");

		ret->steps[i] = (struct step_outcome){.name = xstrdup(name ? name : ""),
		    .exit_code = (int)json_get_int(step, "exit_code", -1),
		    .signal = (int)json_get_int(step, "signal", 0),
		    .is_timeout = json_get_bool(step, "timeout", false),
		    .duration_ms = json_get_int(step, "duration_ms", 0)};
	}
	ret->started_ms = json_get_int(v, "started_ms", 0);
	ret->completed_ms = json_get_int(v, "completed_ms", 0);
	ret->has_report = json_get_bool(v, "report", false);
	json_decref(v);
	return 0;
}

void job_result_release(struct job_result *r)
{
	for (size_t i = 0; i < r->n_steps; i++)
		free(r->steps[i].name);
	FREE_ALL(r->steps, r->conclusion, r->message);
	memset(r, 0, sizeof(*r));
}

/* ---- removing ----
 * Untrusted programs make these trees, so they may be deeper than the number of descriptors, without permissions, and
 * full of links. So names are removed only inside a folder that is open and that was opened without following a link. A
 * folder below DEPTH_MAX is first moved to the top, so recursion and open descriptors stay bounded. */

struct removal {
	int top_fd;
	unsigned n_moved;
	int err; /* the first errno; the removal goes on after it */
	char where[256];
};

static void remove_content(struct removal *r, int fd, int depth);

static void note_removal_failure(struct removal *r, const char *name)
{
	if (r->err)
		return;
	r->err = errno;
	snprintf(r->where, sizeof(r->where), "%s", name);
}

/* Opens a folder and gives its owner, who is this user, all permissions if steps took them away. */
static int open_for_removal(int parent_fd, const char *name)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(parent_fd, name, flags);
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && (st.st_mode & S_IRWXU) != S_IRWXU)
		fchmod(fd, S_IRWXU);
	if (fd >= 0 || errno != EACCES)
		return fd;
	if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode) ||
	    fchmodat(parent_fd, name, S_IRWXU, 0))
		return -1;
	return openat(parent_fd, name, flags);
}

static void remove_folder(struct removal *r, int fd, const char *name, int depth)
{
	int below = open_for_removal(fd, name);
	char moved[32];

	if (depth >= DEPTH_MAX) {
		/* Moves a folder that lies too deep up to the top, under a name that is free there. A move writes the
		 * folder's "..", so the open above had to make it writable. */
		if (below >= 0)
			close(below);
		do
			snprintf(moved, sizeof(moved), ".moved.%u", ++r->n_moved);
		while (!faccessat(r->top_fd, moved, F_OK, AT_SYMLINK_NOFOLLOW));
		if (renameat(fd, name, r->top_fd, moved))
			note_removal_failure(r, name);
		return;
	}
	if (below < 0) {
		note_removal_failure(r, name);
		return;
	}
	remove_content(r, below, depth + 1);
	if (unlinkat(fd, name, AT_REMOVEDIR))
		note_removal_failure(r, name);
}

/* Removes everything in the folder and closes fd. */
static void remove_content(struct removal *r, int fd, int depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		note_removal_failure(r, ".");
		close(fd);
		return;
	}
	while ((entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name;

		if (!strcmp(name, ".") || !strcmp(name, ".."))
			continue;
		if (!unlinkat(fd, name, 0))
			continue;
		/* a folder: Linux answers EISDIR, POSIX EPERM */
		if (errno == EISDIR || errno == EPERM)
			remove_folder(r, fd, name, depth);
		else if (errno != ENOENT)
			note_removal_failure(r, name);
	}
	closedir(dir);
}

int job_folder_remove(const char *folder, struct error *e)
{
	struct removal r = {.top_fd = open_for_removal(AT_FDCWD, folder)};
	unsigned n_before;

	if (r.top_fd < 0 && errno == ENOENT)
		return 0;
	if (r.top_fd < 0)
		return error_set(e, ERR_IO, "%s: %s", folder, strerror(errno));
	do {
		int fd = openat(r.top_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		n_before = r.n_moved;
		if (fd < 0)
			note_removal_failure(&r, ".");
		else
			remove_content(&r, fd, 0);
	} while (r.n_moved != n_before && !r.err); /* folders that were moved up are left */
	close(r.top_fd);
	if (!r.err && rmdir(folder))
		note_removal_failure(&r, "");
	if (r.err)
		return error_set(
		    e, ERR_IO, "cannot remove %s: %s: %s", folder, r.where[0] ? r.where : "itself", strerror(r.err));
	return 0;
}
