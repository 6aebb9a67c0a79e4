/* Sends a job's log, report and end, in the order that the server wants. Each request may be sent again
 * until it was answered.
 *
 * The log goes in pieces while it grows. The server answers how many bytes it has, and the next piece
 * begins there, so nothing is missing and nothing is there twice. */
#include "agent/agent.h"

enum {
	REPORT_MAX_BYTES = 32 << 20,
	EXCERPT_MAX_BYTES = 1 << 20,
	LOG_EVERY_MS = 300,
	WITHIN_MS = 30 * 1000,
	BIG_WITHIN_MS = 10 * 60 * 1000,
	LONGEST_WAIT_MS = 60 * 1000,
};

static const char ONLY_EXCERPT[] = "[only a summary of this log leaves the vendor's machine]\n";

/* Takes over path and body. */
static void start_upload(
    struct job *j, int part, const char *method, const char *content_type, char *path, char *body, size_t n)
{
	struct upload *u = &j->upload;

	u->part = part;
	u->call.owner = j;
	server_call_start(
	    &j->agent->server, &u->call, method, content_type, path, body, n, n > 65536 ? BIG_WITHIN_MS : WITHIN_MS);
}

static void retry_upload_later(struct job *j)
{
	struct upload *u = &j->upload;

	u->n_failures++;
	u->due_mono_ms = clock_mono_ms() + server_delay_ms(&u->call, u->n_failures, LONGEST_WAIT_MS);
}

/* True if only an excerpt of the log may leave this machine. */
static bool is_summary(const struct job *j)
{
	return j->agent->c->visibility == VISIBILITY_SUMMARY || j->offer.visibility == VISIBILITY_SUMMARY;
}

/* The file to send: the log, or under `summary` a file with its excerpt. That file is made once, when the
 * job has ended, so that a piece of it can be sent twice. NULL: there is none yet, or *e. free(). */
static char *log_source(const struct job *j, struct error *e)
{
	struct buf text = BUF_INIT(EXCERPT_MAX_BYTES + sizeof(ONLY_EXCERPT));
	char *excerpt = NULL;
	size_t n = 0;

	if (!is_summary(j))
		return path_join(j->folder, "log");
	if (j->stage != JOB_ENDED)
		return NULL;
	char *path = path_join(j->folder, "shared-log");
	if (access(path, F_OK) == 0)
		return path;
	buf_append_str(&text, ONLY_EXCERPT);
	if (job_folder_read(j->folder, "excerpt", EXCERPT_MAX_BYTES, &excerpt, &n, NULL) == 0)
		buf_append(&text, excerpt, n);
	if (job_folder_write(j->folder, "shared-log", text.data, text.len, e))
		FREE_AND_NULL(path);
	buf_release(&text);
	free(excerpt);
	return path;
}

/* Reads at most one piece from the offset on. *ret_is_end: the file ends there. free() *ret. */
static int read_log_piece(
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

static void give_log_up(struct job *j, const char *why)
{
	job_log(j, LOG_ERROR, "log_not_sent", "why", why);
	j->upload.is_log_done = true;
}

/* Starts a request for the log. False: there is nothing to send now. */
static bool send_log(struct job *j)
{
	struct upload *u = &j->upload;
	char *path = NULL, *piece = NULL;
	struct error e = {0};
	size_t n = 0;
	bool is_end = true;

	if (u->is_log_done)
		return false;
	if (u->is_offset_known) {
		path = log_source(j, &e);
		if (path && read_log_piece(path, u->offset, &piece, &n, &is_end, &e))
			FREE_AND_NULL(path);
		free(path);
		if (e.code) {
			give_log_up(j, e.text);
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
	start_upload(j, UPLOAD_LOG, "PUT", "text/plain; charset=utf-8",
	    xasprintf("/api/v1/jobs/%lld/log?offset=%lld%s", (long long)j->offer.job_id, (long long)u->offset,
		u->is_last_piece ? "&last=1" : ""),
	    piece, n);
	return true;
}

static void on_log_answered(struct job *j)
{
	struct upload *u = &j->upload;
	json_t *v = u->call.status ? server_call_json(&u->call) : NULL;
	int64_t bytes = json_get_int(v, "bytes", -1);

	json_decref(v);
	if (u->call.word == SERVER_OK && bytes >= 0) {
		/* The server has taken the piece and has so many bytes now. */
		bool is_stuck = u->piece_bytes > 0 && bytes <= u->offset;

		if (u->is_last_piece && bytes >= u->offset + (int64_t)u->piece_bytes)
			u->is_log_done = true;
		u->is_offset_known = true;
		u->offset = bytes;
		if (is_stuck) {
			snprintf(u->call.detail, sizeof(u->call.detail), "the log does not grow");
			retry_upload_later(j);
			return;
		}
		u->n_failures = 0;
		if (j->stage == JOB_RUNNING && u->piece_bytes < LOG_PIECE_MAX_BYTES)
			u->due_mono_ms = clock_mono_ms() + LOG_EVERY_MS;
	} else if (u->call.status == 409 && bytes >= 0 && bytes != u->offset) {
		job_log(j, LOG_INFO, "log_resumed", NULL, NULL);
		u->is_offset_known = true;
		u->offset = bytes;
		if (++u->n_failures > 1)
			u->due_mono_ms = clock_mono_ms() + 1000;
	} else if (u->call.status == 409) {
		u->is_log_done = true; /* it was complete before a restart */
	} else if (u->call.word == SERVER_REFUSED) {
		give_log_up(j, u->call.detail);
	} else {
		retry_upload_later(j);
	}
}

static void set_report_refused(struct job *j, const char *why)
{
	snprintf(j->upload.report_refused, sizeof(j->upload.report_refused), "%.*s",
	    (int)sizeof(j->upload.report_refused) - 1, why);
	j->upload.is_report_done = true;
	job_log(j, LOG_ERROR, "report_refused", "why", why);
}

/* A job whose promised report was refused never ends as a success. */
static const char *final_conclusion(const struct job *j)
{
	bool is_refused = *j->upload.report_refused != '\0';

	return is_refused && str_eq(j->result.conclusion, "success") ? "action_required" : j->result.conclusion;
}

static bool send_end(struct job *j)
{
	const char *message = j->result.message, *refused = j->upload.report_refused;
	char *text;

	if (!j->has_result)
		return false;
	json_t *v = json_object();
	json_set_str(v, "status", "completed");
	json_set_str(v, "conclusion", final_conclusion(j));
	json_set_str(v, "name", j->offer.runner);
	json_set_str(v, "job_name", "tests");
	json_set_str(v, "run_id", j->offer.run_id);
	json_set_int(v, "run_attempt", j->offer.attempt);
	json_set_str(v, "accelerator", j->offer.accelerator);
	json_set_time(v, "started_at", j->result.started_ms);
	json_set_time(v, "completed_at", j->result.completed_ms);
	if (*refused) {
		text = xasprintf("%s%sthe report was refused: %s", log_text(message), message ? "; " : "", refused);
		json_set_str(v, "message", text);
		free(text);
	} else if (message) {
		json_set_str(v, "message", message);
	}
	text = json_text(v);
	json_decref(v);
	start_upload(j, UPLOAD_END, "POST", "application/json",
	    xasprintf("/api/v1/dispatches/%s/jobs", j->offer.dispatch_id), text, strlen(text));
	return true;
}

static void on_upload_done(struct server_call *c)
{
	struct job *j = c->owner;
	struct upload *u = &j->upload;
	struct agent *a = j->agent;
	bool is_ok = c->word == SERVER_OK;

	if (j->stage == JOB_OVER) {
		job_release_if_over(j);
		return;
	}
	if (is_ok && u->part == UPLOAD_END) {
		json_t *v = server_call_json(c);

		is_ok = json_get_bool(v, "ok", false);
		json_decref(v);
	}
	if (u->part == UPLOAD_LOG) {
		on_log_answered(j);
	} else if (!is_ok && c->word != SERVER_REFUSED) {
		retry_upload_later(j);
	} else if (u->part == UPLOAD_RETURN) {
		job_finish(j, PROGRESS_RETURNED, is_ok ? "handed back" : c->detail);
	} else if (u->part == UPLOAD_END) {
		job_finish(j, is_ok ? PROGRESS_SENT : PROGRESS_REJECTED, is_ok ? final_conclusion(j) : c->detail);
	} else if (is_ok) {
		u->n_failures = 0;
		u->is_report_done = true;
	} else if (c->status == 409) {
		job_log(j, LOG_WARN, "report_known", "why", c->detail);
		u->is_report_done = true;
	} else {
		set_report_refused(j, c->detail);
	}
	agent_next(a);
}

enum upload_state upload_next(struct job *j)
{
	struct upload *u = &j->upload;
	/* The server keeps no log and no report of a silent accelerator, only the end. */
	bool is_kept = j->offer.job_id != 0;
	struct error e = {0};
	char *text = NULL;
	size_t n = 0;

	if (u->call.is_active)
		return UPLOAD_BUSY;
	if (clock_mono_ms() < u->due_mono_ms)
		return UPLOAD_IDLE;
	u->call.done = on_upload_done;
	if (j->is_returning) {
		static const char body[] = "{\"reason\":\"drained\"}";

		if (j->stage != JOB_ENDED)
			return UPLOAD_IDLE;
		start_upload(j, UPLOAD_RETURN, "POST", "application/json",
		    xasprintf("/api/v1/runner/leases/%s/return", j->offer.lease_id), xstrdup(body), strlen(body));
		return UPLOAD_BUSY;
	}
	if (j->is_lost && j->stage != JOB_ENDED)
		return UPLOAD_IDLE;
	if (is_kept && send_log(j))
		return UPLOAD_BUSY;
	if (j->stage != JOB_ENDED)
		return UPLOAD_IDLE;
	if (is_kept && !u->is_report_done && j->has_result && j->result.has_report) {
		if (!job_folder_read(j->folder, "report.json", REPORT_MAX_BYTES, &text, &n, &e)) {
			start_upload(j, UPLOAD_REPORT, "PUT", "application/json",
			    xasprintf("/api/v1/jobs/%lld/report", (long long)j->offer.job_id), text, n);
			return UPLOAD_BUSY;
		}
		set_report_refused(j, e.text);
	}
	if (send_end(j))
		return UPLOAD_BUSY;
	return UPLOAD_NOTHING;
}
