#include "logs/log_file.h"

#include <dirent.h>

#include "logs/seekable.h"

static const char COMPRESSING[] = "compressing", MOVING[] = "moving", COPYING[] = "copying";
enum { NAME_BYTES = 40 };

/* O_NONBLOCK has no effect on a file, and keeps a FIFO of the same name from blocking. */
#define SAFELY (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

/* ---- names ---- */

struct log_name {
	const struct log_folder *folder;
	int64_t job_id;
	int dir; /* its subfolder */
	char open[NAME_BYTES], done[NAME_BYTES], packed[NAME_BYTES], moved[NAME_BYTES];
};

/* Sets *e from errno. */
static int fail_log(const struct log_name *n, const char *file, struct error *e)
{
	return error_set(
	    e, file_io_code(errno), "%s/%02x/%s: %m", n->folder->path, (unsigned)(n->job_id % LOG_SUBFOLDERS), file);
}

/* SUBFOLDER_MADE: makes a missing subfolder. SUBFOLDER_AS_IT_IS: that is ERR_NOT_FOUND, and *e stays empty. */
enum subfolder { SUBFOLDER_AS_IT_IS, SUBFOLDER_MADE };

static int log_name_open(
    const struct log_folder *f, int64_t job_id, enum subfolder how, struct log_name *ret, struct error *e)
{
	char subfolder[8];

	ret->folder = f;
	ret->job_id = job_id;
	snprintf(subfolder, sizeof(subfolder), "%02x", (unsigned)(job_id % LOG_SUBFOLDERS));
	snprintf(ret->open, sizeof(ret->open), "%lld.log", (long long)job_id);
	snprintf(ret->done, sizeof(ret->done), "%lld.log.done", (long long)job_id);
	snprintf(ret->packed, sizeof(ret->packed), "%lld.log.zst", (long long)job_id);
	snprintf(ret->moved, sizeof(ret->moved), "%lld.log.moved", (long long)job_id);
	ret->dir = openat(f->fd, subfolder, O_RDONLY | O_DIRECTORY | SAFELY);
	if (ret->dir < 0 && errno == ENOENT) {
		if (how == SUBFOLDER_AS_IT_IS)
			return ERR_NOT_FOUND;
		/* Synced, because the logs in it are promised to stay. */
		if ((mkdirat(f->fd, subfolder, 0700) == 0 || errno == EEXIST) && fsync(f->fd) == 0)
			ret->dir = openat(f->fd, subfolder, O_RDONLY | O_DIRECTORY | SAFELY);
	}
	if (ret->dir >= 0)
		return 0;
	return error_set(e, file_io_code(errno), "%s/%s: %m", f->path, subfolder);
}

static void log_name_close(struct log_name *n)
{
	if (n->dir >= 0)
		close(n->dir);
}

/* Opens a regular file. ERR_NOT_FOUND: there is none, and *e stays empty. */
static int open_file(const struct log_name *n, const char *file, int flags, int *ret_fd, struct error *e)
{
	struct stat st;
	int fd = openat(n->dir, file, flags | SAFELY, 0600);

	if (fd < 0 && errno == ENOENT)
		return ERR_NOT_FOUND;
	if (fd < 0 || fstat(fd, &st)) {
		fail_log(n, file, e);
	} else if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		fail_log(n, file, e);
	} else {
		*ret_fd = fd;
		return 0;
	}
	if (fd >= 0)
		close(fd);
	return ERR_IO;
}

static int fail_packed(const struct log_name *n, int rc, struct error *e)
{
	return error_set(e, rc, "%s/%02x/%s: %s", n->folder->path, (unsigned)(n->job_id % LOG_SUBFOLDERS), n->packed,
	    rc == ERR_CORRUPT ? "damaged: Outpost did not write it like this" : err_text(rc));
}

/* ---- the text of a log ---- */

/* The file that holds the text now; fd -1: there is none. */
struct log_text {
	int fd;
	bool is_packed;
	struct seekable_index index; /* if is_packed */
	struct log_state state;
};

static void log_text_close(struct log_text *t)
{
	if (t->fd >= 0)
		close(t->fd);
	seekable_index_release(&t->index);
}

/* The state of a log that was moved; ERR_NOT_FOUND: it was not. */
static int read_moved(const struct log_name *n, struct log_state *ret)
{
	char digits[24];
	ssize_t len = readlinkat(n->dir, n->moved, digits, sizeof(digits) - 1);

	if (len < 0)
		return ERR_NOT_FOUND;
	digits[len] = '\0';
	ret->is_complete = true;
	return parse_int64(digits, &ret->end) ? ERR_NOT_FOUND : 0;
}

/* ERR_NOT_FOUND: there is none here; if it was moved, its state is set all the same. Close also after a failure. A log that is
 * not complete is opened for writing. */
static int log_text_open(const struct log_name *n, struct log_text *ret, struct error *e)
{
	const char *files[] = {n->open, n->done, n->packed};
	struct stat st;
	int rc = ERR_NOT_FOUND;
	size_t i;

	*ret = (struct log_text){.fd = -1};
	for (i = 0; i < ARRAY_LEN(files) && rc == ERR_NOT_FOUND; i++)
		rc = open_file(n, files[i], i ? O_RDONLY : O_RDWR, &ret->fd, e);
	if (rc == ERR_NOT_FOUND && read_moved(n, &ret->state))
		ret->state = (struct log_state){0};
	if (rc)
		return rc;
	ret->is_packed = i == ARRAY_LEN(files);
	if (ret->is_packed) {
		rc = seekable_index_read(ret->fd, &ret->index);
		if (rc)
			return fail_packed(n, rc, e);
	} else if (fstat(ret->fd, &st)) {
		return fail_log(n, files[i - 1], e);
	}
	ret->state = (struct log_state){ret->is_packed ? ret->index.text_bytes : st.st_size, i > 1};
	return 0;
}

/* ---- appending ---- */

int log_piece_check(const struct log_append *p, const struct log_state *s, struct error *e)
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

/* Appends the bytes of the piece that the file does not have. If they cannot all be made durable, the file is cut
 * back. */
static int write_rest(const struct log_name *n, int fd, const struct log_append *p, int64_t *end, struct error *e)
{
	int64_t skip = *end - p->offset;
	size_t rest = skip < (int64_t)p->n ? p->n - (size_t)skip : 0;

	/* Syncs also without a new byte, because a process that crashed may have written the others. */
	if (file_io_write_at(fd, p->bytes + (rest ? skip : 0), rest, *end) || fdatasync(fd)) {
		int rc = fail_log(n, n->open, e);

		if (ftruncate(fd, *end))
			return ERR_IO; /* the next call sees where it ends */
		return rc;
	}
	*end += (int64_t)rest;
	return 0;
}

int log_file_append(const struct log_folder *f, const struct log_append *p, struct log_state *ret_before,
    struct log_state *ret_after, struct error *e)
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
		rc = log_piece_check(p, ret_after, e);
	/* A piece without bytes asks for the log's length. */
	if (!rc && !t.state.is_complete && (t.fd >= 0 || p->n > 0 || p->is_last)) {
		bool is_new = t.state.end == 0;

		if (t.fd < 0)
			rc = open_file(&n, n.open, O_RDWR | O_CREAT | O_EXCL, &t.fd, e);
		if (!rc)
			rc = write_rest(&n, t.fd, p, &ret_after->end, e);
		/* The file's bytes are on disk: now its name, if that is new. */
		if (!rc && p->is_last && renameat(n.dir, n.open, n.dir, n.done))
			rc = fail_log(&n, n.open, e);
		if (!rc && (is_new || p->is_last) && fsync(n.dir))
			rc = fail_log(&n, n.open, e);
		if (!rc)
			ret_after->is_complete = p->is_last;
	}
	log_text_close(&t);
	log_name_close(&n);
	return rc;
}

/* ---- reading ---- */

int log_file_read(const struct log_folder *f, int64_t job_id, int64_t offset, char *out, size_t n, size_t *ret_n,
    struct log_state *ret, struct error *e)
{
	struct log_name name;
	struct log_text t;
	int rc = log_name_open(f, job_id, SUBFOLDER_AS_IT_IS, &name, e);

	*ret = (struct log_state){0};
	*ret_n = 0;
	if (rc)
		return rc;
	rc = log_text_open(&name, &t, e);
	if (!rc)
		*ret = t.state;
	if (rc == ERR_NOT_FOUND) {
		error_set(e, rc, "there is no log");
	} else if (!rc && (offset < 0 || offset > t.state.end)) {
		rc = error_set(e, ERR_RANGE, "offset: past the end of the log");
	} else if (!rc && t.is_packed) {
		rc = seekable_read(&(struct seekable_source){.fd = t.fd}, &t.index, offset, out, n, ret_n);
		if (rc)
			rc = fail_packed(&name, rc, e);
	} else if (!rc) {
		rc = file_io_read(t.fd, out, n, offset, ret_n);
		if (rc)
			rc = fail_log(&name, name.open, e);
	}
	log_text_close(&t);
	log_name_close(&name);
	return rc;
}

/* ---- dropping ---- */

/* Whether the file exists and was last written before that time. */
static bool is_log_older(int dir, const char *name, int64_t before_ms)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000 < before_ms;
}

int log_file_drop(const struct log_folder *f, int64_t job_id, int64_t before_ms, bool *ret_dropped, struct error *e)
{
	struct log_name n;
	int rc = log_name_open(f, job_id, SUBFOLDER_AS_IT_IS, &n, e);

	*ret_dropped = false;
	if (rc)
		return rc;
	for (size_t i = 0; i < 4 && !rc; i++) {
		const char *file = (const char *[]){n.open, n.done, n.packed, n.moved}[i];

		if (!is_log_older(n.dir, file, before_ms))
			continue;
		if (unlinkat(n.dir, file, 0))
			rc = fail_log(&n, file, e);
		else if (file != n.moved) /* that log is dropped where it lies */
			*ret_dropped = true;
	}
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
	return error_set(e, file_io_code(errno), "%s/%s: %m", f->path, COMPRESSING);
}

int log_file_open_unnamed(const struct log_folder *f, int *ret_fd, struct error *e)
{
	*ret_fd = openat(f->fd, MOVING, O_RDWR | O_CREAT | O_TRUNC | SAFELY, 0600);
	if (*ret_fd >= 0 && unlinkat(f->fd, MOVING, 0) == 0)
		return 0;
	return error_set(e, file_io_code(errno), "%s/%s: %m", f->path, MOVING);
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
			rc = fail_log(&n, COMPRESSING, e);
	} else if (renameat(f->fd, COMPRESSING, n.dir, n.packed) || fsync(n.dir) || unlinkat(n.dir, n.done, 0)) {
		rc = fail_log(&n, n.packed, e);
	}
	log_name_close(&n);
	return rc;
}

/* ---- moving ---- */

int log_file_open_packed(const struct log_folder *f, int64_t job_id, int *ret_fd, struct error *e)
{
	struct log_name n;
	int rc = log_name_open(f, job_id, SUBFOLDER_AS_IT_IS, &n, e);

	if (!rc)
		rc = open_file(&n, n.packed, O_RDONLY, ret_fd, e);
	log_name_close(&n);
	return rc;
}

int log_file_forget(const struct log_folder *f, int64_t job_id, struct error *e)
{
	struct log_name n;
	struct log_text t = {.fd = -1};
	char end[24];
	int rc = log_name_open(f, job_id, SUBFOLDER_AS_IT_IS, &n, e);

	if (rc)
		return rc;
	rc = log_text_open(&n, &t, e);
	if (!rc && t.is_packed) {
		snprintf(end, sizeof(end), "%lld", (long long)t.state.end);
		if ((symlinkat(end, n.dir, n.moved) && errno != EEXIST) || unlinkat(n.dir, n.packed, 0) || fsync(n.dir))
			rc = fail_log(&n, n.moved, e);
	}
	log_text_close(&t);
	log_name_close(&n);
	return rc;
}

/* ---- copying ---- */

int log_file_open_form(const struct log_folder *f, int64_t job_id, struct log_file *ret, struct error *e)
{
	struct log_name n;
	struct log_text t = {.fd = -1};
	struct stat st;
	int rc = log_name_open(f, job_id, SUBFOLDER_AS_IT_IS, &n, e);

	*ret = (struct log_file){.fd = -1};
	if (rc)
		return rc;
	rc = log_text_open(&n, &t, e);
	ret->state = t.state;
	ret->form = t.is_packed ? LOG_FILE_PACKED : t.state.is_complete ? LOG_FILE_DONE : LOG_FILE_OPEN;
	if (rc == ERR_NOT_FOUND && t.state.is_complete) {
		ret->form = LOG_FILE_MOVED;
		rc = 0;
	}
	if (!rc && (t.fd >= 0 ? fstat(t.fd, &st) : fstatat(n.dir, n.moved, &st, AT_SYMLINK_NOFOLLOW))) {
		rc = fail_log(&n, n.open, e);
	} else if (!rc) {
		ret->file_bytes = st.st_size;
		ret->written_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
		ret->fd = t.fd;
		t.fd = -1;
	}
	log_text_close(&t);
	log_name_close(&n);
	return rc;
}

int log_file_open_copying(const struct log_folder *f, int *ret_fd, struct error *e)
{
	*ret_fd = openat(f->fd, COPYING, O_RDWR | O_CREAT | O_TRUNC | SAFELY, 0600);
	return *ret_fd >= 0 ? 0 : error_set(e, file_io_code(errno), "%s/%s: %m", f->path, COPYING);
}

int log_file_put_form(const struct log_folder *f, int64_t job_id, const struct log_file *file, struct error *e)
{
	const struct timespec written = {
	    .tv_sec = file->written_ms / 1000, .tv_nsec = file->written_ms % 1000 * 1000000};
	const struct timespec times[] = {written, written};
	struct log_name n;
	char end[24];
	int rc = log_name_open(f, job_id, SUBFOLDER_MADE, &n, e);

	if (rc)
		return rc;
	const char *const names[] = {[LOG_FILE_OPEN] = n.open,
	    [LOG_FILE_DONE] = n.done,
	    [LOG_FILE_PACKED] = n.packed,
	    [LOG_FILE_MOVED] = n.moved};
	for (size_t i = 0; i < ARRAY_LEN(names) && !rc; i++)
		if (unlinkat(n.dir, names[i], 0) && errno != ENOENT)
			rc = fail_log(&n, names[i], e);
	snprintf(end, sizeof(end), "%lld", (long long)file->state.end);
	if (!rc && (file->form == LOG_FILE_MOVED
			   ? symlinkat(end, n.dir, n.moved) || utimensat(n.dir, n.moved, times, AT_SYMLINK_NOFOLLOW)
			   : futimens(file->fd, times) || fsync(file->fd) ||
				 renameat(f->fd, COPYING, n.dir, names[file->form])))
		rc = fail_log(&n, names[file->form], e);
	if (!rc && fsync(n.dir))
		rc = fail_log(&n, names[file->form], e);
	log_name_close(&n);
	return rc;
}

/* ---- the folder of all logs ---- */

static int fail_folder(const char *path, struct error *e) { return error_set(e, file_io_code(errno), "%s: %m", path); }

int log_folder_open(const char *state_dir, struct log_folder *ret, struct error *e)
{
	int parent = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	*ret = (struct log_folder){.fd = -1, .path = path_join(state_dir, "logs")};
	if (parent < 0)
		rc = fail_folder(state_dir, e);
	else if (mkdirat(parent, "logs", 0700) && errno != EEXIST)
		rc = fail_folder(ret->path, e);
	if (!rc) {
		/* The folder may be a link that an operator made, to another disk. */
		ret->fd = openat(parent, "logs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* Syncs also a folder that an earlier process made and did not sync. */
		if (ret->fd < 0 || fsync(parent) || fsync(ret->fd))
			rc = fail_folder(ret->path, e);
	}
	if (parent >= 0)
		close(parent);
	return rc ? ERR_IO : 0;
}

void log_folder_close(struct log_folder *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	*f = (struct log_folder){.fd = -1};
}

int log_folder_next(const struct log_folder *f, int subfolder)
{
	char path[8];

	for (; subfolder < LOG_SUBFOLDERS; subfolder++) {
		snprintf(path, sizeof(path), "%02x", (unsigned)subfolder);
		if (faccessat(f->fd, path, F_OK, 0) == 0 || errno != ENOENT)
			break;
	}
	return subfolder;
}

int log_folder_list(const struct log_folder *f, int subfolder, int64_t before_ms, struct log_ids *to, struct error *e)
{
	char path[8], digits[24];
	struct dirent *entry;
	int64_t id;
	DIR *dir;
	int fd;

	snprintf(path, sizeof(path), "%02x", (unsigned)subfolder);
	fd = openat(f->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : fail_folder(f->path, e);
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return fail_folder(f->path, e);
	}
	while ((entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name; /* "42.log", and what may follow */
		size_t n = strspn(name, "0123456789");

		if (n == 0 || n >= sizeof(digits) || !str_has_prefix(name + n, ".log"))
			continue;
		snprintf(digits, sizeof(digits), "%.*s", (int)n, name);
		if (parse_int64(digits, &id) == 0 && id % LOG_SUBFOLDERS == subfolder &&
		    (before_ms == LOGS_TO_COMPRESS  ? str_eq(name + n, ".log.done")
			: before_ms == LOGS_TO_MOVE ? str_eq(name + n, ".log.zst")
						    : is_log_older(fd, name, before_ms)))
			*ARRAY_PUSH(to->list, to->n) = id;
	}
	closedir(dir);
	return 0;
}
