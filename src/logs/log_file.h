/* One job's log on disk, and the folder of all logs:
 *
 *   logs/NN/JOB.log        open: grows at its end (NN: the job's id modulo 256, two hex digits; the
 *                          subfolder is made when it is first needed)
 *   logs/NN/JOB.log.done   complete, not compressed yet; the rename makes it complete
 *   logs/NN/JOB.log.zst    complete and compressed (seekable.h)
 *   logs/NN/JOB.log.moved  complete and moved to another place (logs_keep_in()): a symbolic link whose target is the length
 *                          of the text, so that a piece which is sent again gets the same answer as before
 *   logs/compressing       the log that is being compressed; useless after a crash
 *
 * Below logs/, which may be a link itself, no symbolic link is followed. Thread: pool, one call at a time for each
 * job; blocking. Errors name the path. */
#pragma once

#include "logs/logs.h"

enum { LOG_SUBFOLDERS = 256 };

struct log_folder {
	int fd;
	char *path; /* for messages */
};

/* Makes state_dir/logs. Close also after a failure. */
int log_folder_open(const char *state_dir, struct log_folder *ret, struct error *e) MUST_CHECK;
void log_folder_close(struct log_folder *f);

/* The state of a log; set also by calls that fail. */
struct log_state {
	int64_t end;
	bool is_complete;
};

/* Whether the piece can be appended to a log in this state, or was already. The errors of logs_append(). */
int log_piece_check(const struct log_append *p, const struct log_state *s, struct error *e) MUST_CHECK;
/* Follows the rules of logs_append(). *ret_after describes the log as it is on disk. */
int log_file_append(const struct log_folder *f, const struct log_append *p, struct log_state *ret_before,
    struct log_state *ret_after, struct error *e) MUST_CHECK;

/* At most n bytes from offset into out. ERR_NOT_FOUND, ERR_RANGE, ERR_CORRUPT. */
int log_file_read(const struct log_folder *f, int64_t job_id, int64_t offset, char *out, size_t n, size_t *ret_n,
    struct log_state *ret, struct error *e) MUST_CHECK;

/* Removes the log if it was last written before that time (wall clock). */
int log_file_drop(
    const struct log_folder *f, int64_t job_id, int64_t before_ms, bool *ret_dropped, struct error *e) MUST_CHECK;

/* ---- compressing ---- */

/* The complete, uncompressed text of a job, for reading; ERR_NOT_FOUND: there is none. */
int log_file_open_done(const struct log_folder *f, int64_t job_id, int *ret_fd, struct error *e) MUST_CHECK;
/* An empty logs/compressing, for writing. */
int log_file_open_compressing(const struct log_folder *f, int *ret_fd, struct error *e) MUST_CHECK;
/* Replaces the job's text by logs/compressing, which is synced; removes logs/compressing if there is no text. */
int log_file_publish(const struct log_folder *f, int64_t job_id, struct error *e) MUST_CHECK;

/* An empty file without a name, for writing and reading. */
int log_file_open_unnamed(const struct log_folder *f, int *ret_fd, struct error *e) MUST_CHECK;

/* ---- moving ---- */

/* The complete, compressed text of a job, for reading; ERR_NOT_FOUND: there is none. */
int log_file_open_packed(const struct log_folder *f, int64_t job_id, int *ret_fd, struct error *e) MUST_CHECK;
/* Removes the compressed text, of which another place has a copy, and remembers its length. ERR_NOT_FOUND: there is none. */
int log_file_forget(const struct log_folder *f, int64_t job_id, struct error *e) MUST_CHECK;

/* ---- copying ---- */

enum log_file_form { LOG_FILE_OPEN, LOG_FILE_DONE, LOG_FILE_PACKED, LOG_FILE_MOVED };
struct log_file {
	enum log_file_form form;
	int fd; /* -1: moved */
	int64_t file_bytes, written_ms;
	struct log_state state;
};
/* The log in its present form, for reading. Close fd also after a failure. ERR_NOT_FOUND: there is none. */
int log_file_open_form(const struct log_folder *f, int64_t job_id, struct log_file *ret, struct error *e) MUST_CHECK;
/* An empty logs/copying, for writing and reading. */
int log_file_open_copying(const struct log_folder *f, int *ret_fd, struct error *e) MUST_CHECK;
/* Makes logs/copying, which is open as file->fd, the log; one that is moved has no file. Replaces another log of the job. */
int log_file_put_form(
    const struct log_folder *f, int64_t job_id, const struct log_file *file, struct error *e) MUST_CHECK;

/* ---- lists ---- */

struct log_ids {
	int64_t *list; /* free() */
	size_t n;
};
/* The first subfolder that exists, from this one on; LOG_SUBFOLDERS: none. */
int log_folder_next(const struct log_folder *f, int subfolder);
enum { LOGS_TO_COMPRESS = -1, LOGS_TO_MOVE = -2 };
/* Adds to *to the jobs of one subfolder whose log was last written before that time. LOGS_TO_COMPRESS: those whose text
 * waits to be compressed; LOGS_TO_MOVE: those whose text is compressed. */
int log_folder_list(
    const struct log_folder *f, int subfolder, int64_t before_ms, struct log_ids *to, struct error *e) MUST_CHECK;
