/* Finished logs in a folder that several machines may mount (NFS, CephFS). An object is written under a hidden name and renamed
 * when it is on disk, so readers never see a part of it, and no lock is needed. Below the folder no symbolic link is followed.
 *
 * A server that hangs blocks the thread that waits for it. So all reads share one place in the pool's order and all writes
 * another: two threads of the pool remain for the logs that grow. */
#include <dirent.h>

#include "logs/logs_internal.h"
#include "logs/seekable.h"

enum {
	COPY_BYTES = 1 << 20,
	HIDDEN_KEPT_MS = 24 * 3600 * 1000, /* files of a writer that died */
	SUBFOLDER_BYTES = 24,
};
#define LANE_OF_READS  INT64_MAX
#define LANE_OF_WRITES (INT64_MAX - 1)
/* O_NONBLOCK has no effect on a file, and keeps a FIFO of the same name from blocking. */
#define SAFELY         (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

struct place_folder {
	struct log_place base;
	struct logs *logs;
	int fd;
	char *path;
};

static struct place_folder *folder_of(struct log_request *r)
{
	return CONTAINER_OF(r->place, struct place_folder, base);
}

static void fail_object(struct log_request *r, const char *name)
{
	int code = errno == ENOENT ? ERR_NOT_FOUND : file_io_code(errno);

	r->err = error_set(&r->why, code, "%s/%s: %m", folder_of(r)->path, name);
}

/* ---- one object ---- */

/* The object's subfolder, made if necessary (is_made), or -1; *ret_file is the rest of its name. */
static int open_subfolder(struct log_request *r, const char *name, bool is_made, const char **ret_file)
{
	char subfolder[SUBFOLDER_BYTES];
	int root = folder_of(r)->fd, fd;

	*ret_file = strchr(name, '/') + 1;
	snprintf(subfolder, sizeof(subfolder), "%.*s", (int)(*ret_file - name - 1), name);
	if (is_made && mkdirat(root, subfolder, 0770) == 0)
		fsync(root); /* a failure shows at the next step */
	fd = openat(root, subfolder, O_RDONLY | O_DIRECTORY | SAFELY);
	if (fd < 0)
		fail_object(r, subfolder);
	return fd;
}

static int copy_file(int from, int to)
{
	char *bytes = xmalloc(COPY_BYTES);
	int64_t at = 0;
	size_t n;
	int rc;

	do {
		rc = file_io_read(from, bytes, COPY_BYTES, at, &n);
		if (!rc)
			rc = file_io_write_at(to, bytes, n, at);
		at += (int64_t)n;
	} while (!rc && n == COPY_BYTES);
	free(bytes);
	return rc;
}

static void put_object(struct log_request *r, const char *name)
{
	char hidden[48];
	const char *file;
	unsigned random;
	struct stat st;
	int dir = open_subfolder(r, name, true, &file), fd = -1;

	if (dir < 0)
		return;
	random_bytes(&random, sizeof(random));
	snprintf(hidden, sizeof(hidden), ".%lld.%08x", (long long)r->job_id, random);
	fd = openat(dir, hidden, O_WRONLY | O_CREAT | O_EXCL | SAFELY, 0660);
	/* The object is as old as the log, so that moving it does not prolong its life. */
	if (fd < 0 || copy_file(r->fd, fd) || fstat(r->fd, &st) ||
	    futimens(fd, (struct timespec[]){st.st_mtim, st.st_mtim}) || fsync(fd) ||
	    renameat(dir, hidden, dir, file) || fsync(dir)) {
		fail_object(r, name);
		unlinkat(dir, hidden, 0);
	}
	if (fd >= 0)
		close(fd);
	close(dir);
}

static void read_object(struct log_request *r, const char *name)
{
	const char *file;
	struct stat st;
	size_t got = 0;
	int dir = open_subfolder(r, name, false, &file), fd;

	if (dir < 0)
		return;
	fd = openat(dir, file, O_RDONLY | SAFELY);
	if (fd < 0 || fstat(fd, &st)) {
		fail_object(r, name);
	} else if (!S_ISREG(st.st_mode)) {
		r->err = error_set(&r->why, ERR_CORRUPT, "%s/%s: not a file", folder_of(r)->path, name);
	} else {
		r->object_bytes = st.st_size;
		if (r->at < 0) {
			r->n = st.st_size < (int64_t)r->n ? (size_t)st.st_size : r->n;
			r->at = st.st_size - (int64_t)r->n;
		}
		r->bytes = xmalloc(r->n + 1);
		if (file_io_read(fd, r->bytes, r->n, r->at, &got))
			fail_object(r, name);
		else if (got < r->n)
			r->err = error_set(&r->why, ERR_CORRUPT, "%s/%s: too short", folder_of(r)->path, name);
	}
	if (fd >= 0)
		close(fd);
	close(dir);
}

static void remove_object(struct log_request *r, const char *name)
{
	const char *file;
	int dir = open_subfolder(r, name, false, &file);
	char subfolder[SUBFOLDER_BYTES];

	if (dir < 0)
		return;
	if (unlinkat(dir, file, 0))
		fail_object(r, name);
	close(dir);
	snprintf(subfolder, sizeof(subfolder), "%.*s", (int)(file - name - 1), name);
	unlinkat(folder_of(r)->fd, subfolder, AT_REMOVEDIR); /* fails unless it is empty */
}

/* ---- the list ---- */

static int64_t written_ms(int dir, const char *file)
{
	struct stat st;

	if (fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW))
		return INT64_MAX; /* it has just been removed */
	return (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
}

static int compare_numbers(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Adds the numbers of the subfolders to *ret, or, with `subfolder`, the jobs whose logs it has; sorted. Removes the files that a writer
 * that died has left in the subfolder. */
static void list_folder(struct log_request *r, const char *subfolder, struct log_ids *ret)
{
	int fd = openat(folder_of(r)->fd, subfolder ? subfolder : ".", O_RDONLY | O_DIRECTORY | SAFELY);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	char name[LOG_OBJECT_NAME_BYTES];
	struct dirent *entry;
	int64_t id;

	if (!dir) {
		fail_object(r, subfolder ? subfolder : "");
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir)) != NULL) {
		const char *file = entry->d_name;

		if (!subfolder) {
			id = parse_int64(file, &id) ? -1 : id;
			snprintf(name, sizeof(name), "%09lld", (long long)id);
			if (id >= 0 && str_eq(name, file))
				*ARRAY_PUSH(ret->list, ret->n) = id;
			continue;
		}
		snprintf(name, sizeof(name), "%s/%.40s", subfolder, file);
		id = log_object_job(name);
		if (id)
			*ARRAY_PUSH(ret->list, ret->n) = id;
		else if (file[0] == '.' && isdigit((unsigned char)file[1]) &&
			 written_ms(fd, file) < clock_wall_ms() - HIDDEN_KEPT_MS)
			unlinkat(fd, file, 0);
	}
	closedir(dir);
	if (ret->n)
		qsort(ret->list, ret->n, sizeof(*ret->list), compare_numbers);
}

static void list_objects(struct log_request *r)
{
	struct log_ids folders = {0};

	list_folder(r, NULL, &folders);
	for (size_t i = 0; i < folders.n && !r->err && r->n_objects < LOG_LIST_MAX; i++) {
		struct log_ids jobs = {0};
		char name[LOG_OBJECT_NAME_BYTES], subfolder[SUBFOLDER_BYTES];

		if (folders.list[i] < r->job_id / JOBS_OF_A_FOLDER)
			continue;
		snprintf(subfolder, sizeof(subfolder), "%09lld", (long long)folders.list[i]);
		list_folder(r, subfolder, &jobs);
		if (r->err == ERR_NOT_FOUND) /* it has just been removed */
			r->err = 0;
		for (size_t k = 0; k < jobs.n && r->n_objects < LOG_LIST_MAX; k++)
			if (jobs.list[k] > r->job_id)
				*ARRAY_PUSH(r->objects, r->n_objects) = (struct log_object){
				    jobs.list[k], written_ms(folder_of(r)->fd, log_object_name(jobs.list[k], name))};
		free(jobs.list);
	}
	free(folders.list);
}

/* ---- requests ---- */

static void folder_work(struct log_task *t)
{
	struct log_request *r = CONTAINER_OF(t, struct log_request, task);
	char name[LOG_OBJECT_NAME_BYTES];

	log_object_name(r->job_id, name);
	if (r->op == LOG_PUT) {
		put_object(r, name);
		if (r->err ==
		    ERR_NOT_FOUND) /* the folder, or the subfolder that another daemon removed when it was empty */
			r->err = ERR_IO;
	} else if (r->op == LOG_READ)
		read_object(r, name);
	else if (r->op == LOG_REMOVE)
		remove_object(r, name);
	else
		list_objects(r);
}

static void after_folder(struct log_task *t)
{
	struct log_request *r = CONTAINER_OF(t, struct log_request, task);

	if (t->is_refused)
		r->err = ERR_CLOSING;
	r->done(r);
}

static void folder_start(struct log_place *p, struct log_request *r)
{
	r->place = p;
	r->task = (struct log_task){
	    .job_id = r->op == LOG_PUT ? LANE_OF_WRITES : LANE_OF_READS, .work = folder_work, .after = after_folder};
	logs_submit(folder_of(r)->logs, &r->task);
}

static void folder_free(struct log_place *p)
{
	struct place_folder *f = CONTAINER_OF(p, struct place_folder, base);

	close(f->fd);
	FREE_ALL(f->path, f);
}

static int open_place(const char *path, int *ret_fd, struct error *e)
{
	/* The folder itself may be a link. */
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd >= 0 && faccessat(*ret_fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) == 0)
		return 0;
	return error_set(e, ERR_IO, "%s%s: %m", path, *ret_fd >= 0 ? ": not writable" : "");
}

int place_folder_check(const char *path, struct error *e)
{
	int fd, rc = open_place(path, &fd, e);

	if (fd >= 0)
		close(fd);
	return rc;
}

int place_folder_new(struct logs *s, const char *path, struct log_place **ret, struct error *e)
{
	struct place_folder *f;
	int fd, rc = open_place(path, &fd, e);

	if (rc) {
		if (fd >= 0)
			close(fd);
		return rc;
	}
	f = xcalloc(1, sizeof(*f));
	*f = (struct place_folder){
	    .base = {.start = folder_start, .free = folder_free}, .logs = s, .fd = fd, .path = xstrdup(path)};
	*ret = &f->base;
	return 0;
}
