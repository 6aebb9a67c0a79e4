#include "logs/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "logs/file_io.h"
#include "logs/logs.h"
#include "logs/seekable.h"

static const char COMPRESSING[] = "compressing";
enum { NAME_BYTES = 40 };

/* A FIFO in the way must not block: O_NONBLOCK means nothing to a file. */
#define SAFELY (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

/* ---- names ---- */

struct log_name {
	const struct log_folder *folder;
	int64_t job_id;
	int dir; /* its subfolder */
	char open[NAME_BYTES], done[NAME_BYTES], packed[NAME_BYTES];
};

/* From errno. */
static int fail(const struct log_name *n, const char *file, struct error *e)
{
	int err = errno;

	return error_set(e, file_io_code(err), "%s/%02x/%s: %s", n->folder->path,
	    (unsigned)(n->job_id % LOG_SUBFOLDERS), file, strerror(err));
}

/* Only for a new log is a missing subfolder made; else it is ERR_NOT_FOUND without a word in e. */
enum subfolder { SUBFOLDER_AS_IT_IS, SUBFOLDER_MADE };

static int open_subfolder(
    const struct log_folder *f, const char *name, enum subfolder how, int *ret_fd, struct error *e)
{
	*ret_fd = openat(f->fd, name, O_RDONLY | O_DIRECTORY | SAFELY);
	if (*ret_fd < 0 && errno == ENOENT) {
		if (how == SUBFOLDER_AS_IT_IS)
			return ERR_NOT_FOUND;
		/* Synced: what will be in it is promised to stay. */
		if ((mkdirat(f->fd, name, 0700) == 0 || errno == EEXIST) && fsync(f->fd) == 0)
			*ret_fd = openat(f->fd, name, O_RDONLY | O_DIRECTORY | SAFELY);
	}
	if (*ret_fd >= 0)
		return 0;
	return error_set(e, file_io_code(errno), "%s/%s: %s", f->path, name, strerror(errno));
}

static int log_name_open(const struct log_folder *f, int64_t job_id, enum subfolder how,
    struct log_name *ret, struct error *e)
{
	char subfolder[8];

	ret->folder = f;
	ret->job_id = job_id;
	snprintf(subfolder, sizeof(subfolder), "%02x", (unsigned)(job_id % LOG_SUBFOLDERS));
	snprintf(ret->open, sizeof(ret->open), "%lld.log", (long long)job_id);
	snprintf(ret->done, sizeof(ret->done), "%lld.log.done", (long long)job_id);
	snprintf(ret->packed, sizeof(ret->packed), "%lld.log.zst", (long long)job_id);
	return open_subfolder(f, subfolder, how, &ret->dir, e);
}

static void log_name_close(struct log_name *n)
{
	if (n->dir >= 0)
		close(n->dir);
}

/* A regular file, or ERR_NOT_FOUND without a word in e. */
static int open_file(
    const struct log_name *n, const char *file, int flags, int *ret_fd, struct error *e)
{
	struct stat st;
	int fd = openat(n->dir, file, flags | SAFELY, 0600);

	if (fd < 0 && errno == ENOENT)
		return ERR_NOT_FOUND;
	if (fd < 0 || fstat(fd, &st)) {
		fail(n, file, e);
	} else if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		fail(n, file, e);
	} else {
		*ret_fd = fd;
		return 0;
	}
	if (fd >= 0)
		close(fd);
	return ERR_IO;
}

static int size_of(
    const struct log_name *n, const char *file, int fd, int64_t *ret, struct error *e)
{
	struct stat st;

	if (fstat(fd, &st))
		return fail(n, file, e);
	*ret = st.st_size;
	return 0;
}

static int corrupt(const struct log_name *n, int rc, struct error *e)
{
	return error_set(e, rc, "%s/%02x/%s: %s", n->folder->path,
	    (unsigned)(n->job_id % LOG_SUBFOLDERS), n->packed,
	    rc == ERR_CORRUPT ? "damaged: it is no log that was written here" : err_text(rc));
}

/* ---- what there is of a log ---- */

/* Where its text lies now; fd -1: there is none. */
struct log_text {
	int fd;
	bool is_packed;
	struct seekable_index index; /* packed */
	struct log_state state;
};

static void log_text_close(struct log_text *t)
{
	if (t->fd >= 0)
		close(t->fd);
	seekable_index_release(&t->index);
}

static int open_packed(const struct log_name *n, struct log_text *ret, struct error *e)
{
	int rc = open_file(n, n->packed, O_RDONLY, &ret->fd, e);

	if (rc)
		return rc;
	ret->is_packed = true;
	rc = seekable_index_read(ret->fd, &ret->index);
	if (rc)
		return corrupt(n, rc, e);
	ret->state = (struct log_state){ret->index.text_bytes, true};
	return 0;
}

/* ERR_NOT_FOUND: there is none. Close also after a failure. The open file comes writable. */
static int log_text_open(const struct log_name *n, struct log_text *ret, struct error *e)
{
	const char *file = n->open;
	int rc;

	*ret = (struct log_text){.fd = -1};
	rc = open_file(n, file, O_RDWR, &ret->fd, e);
	if (rc == ERR_NOT_FOUND) {
		file = n->done;
		ret->state.is_complete = true;
		rc = open_file(n, file, O_RDONLY, &ret->fd, e);
	}
	if (rc == ERR_NOT_FOUND) {
		ret->state.is_complete = false;
		return open_packed(n, ret, e);
	}
	return rc ? rc : size_of(n, file, ret->fd, &ret->state.end, e);
}

/* ---- appending ---- */

static int check_piece(const struct log_piece *p, const struct log_state *s, struct error *e)
{
	if (p->offset < 0)
		return error_set(e, ERR_RANGE, "offset: negative");
	if (p->offset > LOG_MAX_BYTES || p->n > (size_t)(LOG_MAX_BYTES - p->offset))
		return error_set(e, ERR_TOO_BIG, "a log has at most %d MiB", LOG_MAX_BYTES >> 20);
	if (s->is_complete && p->offset + (int64_t)p->n > s->end)
		return error_set(e, ERR_EXISTS, "the log is complete already");
	if (p->offset > s->end)
		return error_set(e, ERR_RANGE, "offset: beyond the end of the log");
	return 0;
}

/* The file is cut back when not all of it could be made to stay. */
static int write_rest(
    const struct log_name *n, int fd, const struct log_piece *p, int64_t *end, struct error *e)
{
	int64_t skip = *end - p->offset;
	size_t rest = skip < (int64_t)p->n ? p->n - (size_t)skip : 0;

	/* Synced also without a new byte: what is there may be from before a crash. */
	if (file_io_write_at(fd, p->bytes + (rest ? skip : 0), rest, *end) || fdatasync(fd)) {
		int rc = fail(n, n->open, e);

		if (ftruncate(fd, *end))
			return ERR_IO; /* the next call sees where it ends */
		return rc;
	}
	*end += (int64_t)rest;
	return 0;
}

/* With the file's bytes on disk: its name, where that is new. */
static int settle_name(
    const struct log_name *n, const struct log_piece *p, bool is_new, struct error *e)
{
	if (p->is_last && renameat(n->dir, n->open, n->dir, n->done))
		return fail(n, n->open, e);
	if ((is_new || p->is_last) && fsync(n->dir))
		return fail(n, n->open, e);
	return 0;
}

static int append_to(const struct log_name *n, struct log_text *t, const struct log_piece *p,
    struct log_state *ret, struct error *e)
{
	bool is_new = t->state.end == 0;
	int rc;

	rc = check_piece(p, ret, e);
	if (rc || t->state.is_complete)
		return rc;
	if (t->fd < 0 && p->n == 0 && !p->is_last)
		return 0; /* asks how far it has come */
	if (t->fd < 0)
		rc = open_file(n, n->open, O_RDWR | O_CREAT | O_EXCL, &t->fd, e);
	if (!rc)
		rc = write_rest(n, t->fd, p, &ret->end, e);
	if (!rc)
		rc = settle_name(n, p, is_new, e);
	if (!rc)
		ret->is_complete = p->is_last;
	return rc;
}

int log_file_append(const struct log_folder *f, const struct log_piece *p,
    struct log_state *ret_before, struct log_state *ret_after, struct error *e)
{
	struct log_name n;
	struct log_text t = {.fd = -1};
	int rc = log_name_open(f, p->job_id, SUBFOLDER_MADE, &n, e);

	*ret_before = *ret_after = (struct log_state){0};
	if (rc)
		return rc;
	rc = log_text_open(&n, &t, e);
	*ret_before = *ret_after = t.state;
	if (rc == ERR_NOT_FOUND || !rc)
		rc = append_to(&n, &t, p, ret_after, e);
	log_text_close(&t);
	log_name_close(&n);
	return rc;
}

/* ---- reading ---- */

static int read_text(const struct log_name *n, const struct log_text *t, int64_t offset, char *out,
    size_t max, size_t *ret_n, struct error *e)
{
	int rc;

	if (offset < 0 || offset > t->state.end)
		return error_set(e, ERR_RANGE, "offset: past the end of the log");
	if (t->is_packed) {
		rc = seekable_read(t->fd, &t->index, offset, out, max, ret_n);
		return rc ? corrupt(n, rc, e) : 0;
	}
	rc = file_io_read(t->fd, out, max, offset, ret_n);
	return rc ? fail(n, n->open, e) : 0;
}

int log_file_read(const struct log_folder *f, int64_t job_id, int64_t offset, char *out, size_t n,
    size_t *ret_n, struct log_state *ret, struct error *e)
{
	struct log_name name;
	struct log_text t;
	int rc = log_name_open(f, job_id, SUBFOLDER_AS_IT_IS, &name, e);

	*ret = (struct log_state){0};
	*ret_n = 0;
	if (rc)
		return rc;
	rc = log_text_open(&name, &t, e);
	if (!rc) {
		*ret = t.state;
		rc = read_text(&name, &t, offset, out, n, ret_n, e);
	} else if (rc == ERR_NOT_FOUND) {
		error_set(e, rc, "there is no log");
	}
	log_text_close(&t);
	log_name_close(&name);
	return rc;
}

/* ---- dropping ---- */

static int64_t mtime_ms(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

static int drop_one(const struct log_name *n, const char *file, int64_t before_ms, bool *is_dropped,
    struct error *e)
{
	struct stat st;

	if (fstatat(n->dir, file, &st, AT_SYMLINK_NOFOLLOW) || mtime_ms(&st) >= before_ms)
		return 0;
	if (unlinkat(n->dir, file, 0))
		return fail(n, file, e);
	*is_dropped = true;
	return 0;
}

int log_file_drop(const struct log_folder *f, int64_t job_id, int64_t before_ms, bool *ret_dropped,
    struct error *e)
{
	struct log_name n;
	int rc = log_name_open(f, job_id, SUBFOLDER_AS_IT_IS, &n, e);

	*ret_dropped = false;
	if (rc)
		return rc;
	rc = drop_one(&n, n.open, before_ms, ret_dropped, e);
	if (!rc)
		rc = drop_one(&n, n.done, before_ms, ret_dropped, e);
	if (!rc)
		rc = drop_one(&n, n.packed, before_ms, ret_dropped, e);
	log_name_close(&n);
	return rc;
}

/* ---- compressing ---- */

int log_file_open_done(const struct log_folder *f, int64_t job_id, int *ret_fd, struct error *e)
{
	struct log_name n;
	int rc = log_name_open(f, job_id, SUBFOLDER_AS_IT_IS, &n, e);

	if (!rc)
		rc = open_file(&n, n.done, O_RDONLY, ret_fd, e);
	log_name_close(&n);
	return rc;
}

int log_file_open_compressing(const struct log_folder *f, int *ret_fd, struct error *e)
{
	*ret_fd = openat(f->fd, COMPRESSING, O_WRONLY | O_CREAT | O_TRUNC | SAFELY, 0600);
	if (*ret_fd >= 0)
		return 0;
	return error_set(
	    e, file_io_code(errno), "%s/%s: %s", f->path, COMPRESSING, strerror(errno));
}

int log_file_publish(const struct log_folder *f, int64_t job_id, struct error *e)
{
	struct log_name n;
	struct stat st;
	int rc = log_name_open(f, job_id, SUBFOLDER_AS_IT_IS, &n, e);

	if (rc)
		return rc;
	if (fstatat(n.dir, n.done, &st, AT_SYMLINK_NOFOLLOW)) {
		if (unlinkat(f->fd, COMPRESSING, 0))
			rc = fail(&n, COMPRESSING, e);
	} else if (renameat(f->fd, COMPRESSING, n.dir, n.packed) || fsync(n.dir) ||
		   unlinkat(n.dir, n.done, 0)) {
		rc = fail(&n, n.packed, e);
	}
	log_name_close(&n);
	return rc;
}
