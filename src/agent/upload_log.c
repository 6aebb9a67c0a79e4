/* A job's log on its way to the server, in pieces as it grows. The server says how far it has
 * come; that is where the next piece begins, so nothing is missing and nothing is there twice. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

enum { EXCERPT_MAX_BYTES = 1 << 20, EVERY_MS = 300 };

static const char ONLY_EXCERPT[] = "[only a summary of this log leaves the vendor's machine]\n";

static bool is_summary(const struct job *j)
{
	return j->agent->c->visibility == VISIBILITY_SUMMARY ||
	       j->offer.visibility == VISIBILITY_SUMMARY;
}

/* What is sent in place of the log. Always the same, so that a piece can be sent twice. */
static int make_shared_log(struct job *j, struct error *e)
{
	struct buf text = BUF_INIT(EXCERPT_MAX_BYTES + sizeof(ONLY_EXCERPT));
	char *excerpt = NULL;
	size_t n = 0;
	int rc;

	buf_append_str(&text, ONLY_EXCERPT);
	if (job_folder_read(j->folder, "excerpt", EXCERPT_MAX_BYTES, &excerpt, &n, NULL) == 0)
		buf_append(&text, excerpt, n);
	rc = job_folder_write(j->folder, "shared-log", text.data, text.len, e);
	buf_release(&text);
	free(excerpt);
	return rc;
}

/* The file to send; NULL: none yet. free(). */
static char *source(struct job *j, struct error *e)
{
	char *path;

	if (!is_summary(j))
		return job_folder_file(j->folder, "log");
	if (j->stage != JOB_ENDED)
		return NULL;
	path = job_folder_file(j->folder, "shared-log");
	if (access(path, F_OK) != 0 && make_shared_log(j, e))
		FREE_AND_NULL(path);
	return path;
}

/* Up to a piece from the offset on; *ret_is_end: nothing is behind it. free() *ret. */
static int read_piece(
    const char *path, int64_t offset, char **ret, size_t *ret_n, bool *ret_is_end, struct error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), rc = 0;
	struct stat st = {0};
	ssize_t n = 0;

	*ret = NULL;
	*ret_n = 0;
	*ret_is_end = true;
	if (fd < 0)
		return errno == ENOENT ? 0 : error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	*ret = xmalloc(LOG_PIECE_MAX_BYTES);
	if (fstat(fd, &st) || (n = pread(fd, *ret, LOG_PIECE_MAX_BYTES, offset)) < 0) {
		rc = error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
		FREE_AND_NULL(*ret);
	} else {
		*ret_n = (size_t)n;
		*ret_is_end = offset + n >= st.st_size;
	}
	close(fd);
	return rc;
}

static void give_up(struct job *j, const char *why)
{
	job_log(j, LOG_ERROR, "log_not_sent", "why", why);
	j->upload.is_log_done = true;
}

bool upload_log(struct job *j)
{
	struct upload *u = &j->upload;
	char *path = NULL, *piece = NULL;
	struct error e = {0};
	size_t n = 0;
	bool is_end = true;

	if (u->is_log_done)
		return false;
	if (u->is_offset_known) {
		path = source(j, &e);
		if (path && read_piece(path, u->offset, &piece, &n, &is_end, &e))
			FREE_AND_NULL(path);
		free(path);
		if (e.code) {
			give_up(j, e.text);
			return false;
		}
		if (n == 0 && j->stage != JOB_ENDED) {
			free(piece);
			return false;
		}
	} else if (is_summary(j) && j->stage != JOB_ENDED) {
		return false;
	}
	u->piece_bytes = n;
	u->is_last_piece = u->is_offset_known && is_end && j->stage == JOB_ENDED;
	upload_start(j, UPLOAD_LOG, "PUT", "text/plain; charset=utf-8",
	    xasprintf("/api/v1/jobs/%lld/log?offset=%lld%s", (long long)j->offer.job_id,
		(long long)u->offset, u->is_last_piece ? "&last=1" : ""),
	    piece, n);
	return true;
}

static int64_t bytes_there(const struct server_call *c)
{
	json_t *v = server_call_json(c);
	int64_t bytes = json_get_int(v, "bytes", -1);

	json_decref(v);
	return bytes;
}

static void on_taken(struct job *j, int64_t bytes)
{
	struct upload *u = &j->upload;
	bool is_stuck = u->piece_bytes > 0 && bytes <= u->offset;

	if (u->is_last_piece && bytes >= u->offset + (int64_t)u->piece_bytes)
		u->is_log_done = true;
	u->is_offset_known = true;
	u->offset = bytes;
	if (is_stuck) {
		snprintf(u->call.detail, sizeof(u->call.detail), "the log does not grow");
		upload_failed(j);
		return;
	}
	u->n_failures = 0;
	if (j->stage == JOB_RUNNING && u->piece_bytes < LOG_PIECE_MAX_BYTES)
		u->due_mono_ms = clock_mono_ms() + EVERY_MS;
}

void upload_on_log(struct job *j)
{
	struct upload *u = &j->upload;
	int64_t bytes = u->call.status ? bytes_there(&u->call) : -1;

	if (u->call.word == SERVER_OK && bytes >= 0) {
		on_taken(j, bytes);
	} else if (u->call.status == 409 && bytes >= 0 && bytes != u->offset) {
		job_log(j, LOG_INFO, "log_resumed", NULL, NULL);
		u->is_offset_known = true;
		u->offset = bytes;
		if (++u->n_failures > 1)
			u->due_mono_ms = clock_mono_ms() + 1000;
	} else if (u->call.status == 409) {
		u->is_log_done = true; /* complete already: told before a restart */
	} else if (u->call.word == SERVER_REFUSED) {
		give_up(j, u->call.detail);
	} else {
		upload_failed(j);
	}
}
