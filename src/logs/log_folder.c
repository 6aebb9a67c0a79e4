/* The folder of all logs: making it, and looking through it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "logs/file_io.h"
#include "logs/log_file.h"

static int fail(const char *path, struct error *e)
{
	int err = errno;

	return error_set(e, file_io_code(err), "%s: %s", path, strerror(err));
}

static int make_folder(const char *state_dir, struct log_folder *f, struct error *e)
{
	int parent = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (parent < 0)
		return fail(state_dir, e);
	if (mkdirat(parent, "logs", 0700) && errno != EEXIST)
		rc = fail(f->path, e);
	if (!rc) {
		/* This one may be a link: an operator's, to another disk. */
		f->fd = openat(parent, "logs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* Also what an earlier process may have made and not synced. */
		if (f->fd < 0 || fsync(parent) || fsync(f->fd))
			rc = fail(f->path, e);
	}
	close(parent);
	return rc;
}

int log_folder_open(const char *state_dir, struct log_folder *ret, struct error *e)
{
	int rc;

	*ret = (struct log_folder){.fd = -1, .path = path_join(state_dir, "logs")};
	rc = make_folder(state_dir, ret, e);
	return rc ? ERR_IO : 0;
}

void log_folder_close(struct log_folder *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	*f = (struct log_folder){.fd = -1};
}

/* ---- looking ---- */

/* "42.log" and what may follow: *ret_rest is that. False: it is no log's name. */
static bool read_name(const char *name, int64_t *ret_id, const char **ret_rest)
{
	size_t n = strspn(name, "0123456789");
	char digits[24];

	if (n == 0 || n >= sizeof(digits) || !str_has_prefix(name + n, ".log"))
		return false;
	memcpy(digits, name, n);
	digits[n] = '\0';
	*ret_rest = name + n + strlen(".log");
	return parse_int64(digits, ret_id) == 0;
}

static bool is_older(int dir, const char *name, int64_t before_ms)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000 < before_ms;
}

static void add(struct log_ids *to, int64_t id)
{
	if ((to->n & (to->n - 1)) == 0)
		to->list = xrealloc(to->list, (to->n ? 2 * to->n : 1) * sizeof(*to->list));
	to->list[to->n++] = id;
}

enum { ANY_AGE = -1 };

/* ANY_AGE: those that wait to be compressed. */
static int list(const struct log_folder *f, int subfolder, int64_t before_ms, struct log_ids *to,
    struct error *e)
{
	char path[8];
	struct dirent *entry;
	const char *rest;
	int64_t id;
	DIR *dir;
	int fd;

	snprintf(path, sizeof(path), "%02x", (unsigned)subfolder);
	fd = openat(f->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : fail(f->path, e);
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return fail(f->path, e);
	}
	while ((entry = readdir(dir)) != NULL)
		if (read_name(entry->d_name, &id, &rest) && id % LOG_SUBFOLDERS == subfolder &&
		    (before_ms == ANY_AGE ? str_eq(rest, ".done")
					  : is_older(fd, entry->d_name, before_ms)))
			add(to, id);
	closedir(dir);
	return 0;
}

int log_folder_list_done(
    const struct log_folder *f, int subfolder, struct log_ids *to, struct error *e)
{
	return list(f, subfolder, ANY_AGE, to, e);
}

int log_folder_list_older(const struct log_folder *f, int subfolder, int64_t before_ms,
    struct log_ids *to, struct error *e)
{
	return list(f, subfolder, before_ms < 0 ? 0 : before_ms, to, e);
}
