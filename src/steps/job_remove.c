/* Removes what strangers' programs left: folders deeper than there are descriptors, folders
 * without permissions, links to anywhere. Only names inside an opened folder are ever removed.
 *
 * A folder below DEPTH_MAX is moved up to the top under a name of its own and removed from there,
 * so recursion and open descriptors stay bounded however deep the tree is. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "steps/job_folder.h"

enum { DEPTH_MAX = 48 };

struct removal {
	int top_fd;
	unsigned n_moved;
	int err; /* the first errno; the rest is removed all the same */
	char where[256];
};

static void remove_all(struct removal *r, int fd, int depth);

static void note_failure(struct removal *r, const char *name)
{
	if (r->err)
		return;
	r->err = errno;
	snprintf(r->where, sizeof(r->where), "%s", name);
}

/* A folder that its owner made unreadable still belongs to its owner. */
static int open_folder(int parent_fd, const char *name)
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

static void move_up(struct removal *r, int fd, const char *name)
{
	char moved[32];

	do
		snprintf(moved, sizeof(moved), ".moved.%u", ++r->n_moved);
	while (!faccessat(r->top_fd, moved, F_OK, AT_SYMLINK_NOFOLLOW));
	if (renameat(fd, name, r->top_fd, moved))
		note_failure(r, name);
}

static void remove_folder(struct removal *r, int fd, const char *name, int depth)
{
	int below;

	if (depth >= DEPTH_MAX) {
		/* its ".." changes with the move, so it must be ours to write to */
		below = open_folder(fd, name);
		if (below >= 0)
			close(below);
		move_up(r, fd, name);
		return;
	}
	below = open_folder(fd, name);
	if (below < 0) {
		note_failure(r, name);
		return;
	}
	remove_all(r, below, depth + 1); /* closes it */
	if (unlinkat(fd, name, AT_REMOVEDIR))
		note_failure(r, name);
}

static void remove_all(struct removal *r, int fd, int depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		note_failure(r, ".");
		close(fd);
		return;
	}
	while ((entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name;

		if (!strcmp(name, ".") || !strcmp(name, ".."))
			continue;
		if (!unlinkat(fd, name, 0))
			continue;
		/* Linux says EISDIR, POSIX EPERM */
		if (errno == EISDIR || errno == EPERM)
			remove_folder(r, fd, name, depth);
		else if (errno != ENOENT)
			note_failure(r, name);
	}
	closedir(dir);
}

static void remove_below(struct removal *r)
{
	unsigned n_before;

	do {
		int fd = openat(r->top_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		n_before = r->n_moved;
		if (fd < 0)
			note_failure(r, ".");
		else
			remove_all(r, fd, 0);
	} while (r->n_moved != n_before && !r->err);
}

int job_folder_remove(const char *folder, struct error *e)
{
	struct removal r = {.top_fd = open_folder(AT_FDCWD, folder)};

	if (r.top_fd < 0 && errno == ENOENT)
		return 0;
	if (r.top_fd < 0)
		return error_set(e, ERR_IO, "%s: %s", folder, strerror(errno));
	remove_below(&r);
	close(r.top_fd);
	if (!r.err && rmdir(folder))
		note_failure(&r, "");
	if (r.err)
		return error_set(e, ERR_IO, "cannot remove %s: %s: %s", folder,
		    r.where[0] ? r.where : "itself", strerror(r.err));
	return 0;
}
