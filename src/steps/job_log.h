/* A job's log while the job runs: the output of its programs and our own lines between, as text, without
 * secrets, and with a limit.
 *
 * At its limit the log says so. From there on only the newest 64 KiB are kept, in memory, and written when
 * the job ends, because the reason of a failure is at the end of a log.
 *
 * Thread: the only one of the job's process. Calls of job_log write to the disk; those of clean_text and masks
 * do not block, and any thread may use them, one at a time for one struct, which belongs to the caller. */
#pragma once

/* ---- UTF-8: invalid bytes become U+FFFD, NUL bytes are dropped, and a character that is cut between two
 * pieces is put together again ---- */
struct clean_text {
	char held[4]; /* the beginning of a character */
	size_t n_held;
};

/* Appends every character that is complete. Zero-initialise; nothing to release. */
void clean_text_feed(struct clean_text *c, const char *p, size_t n, struct buf *out);
/* The output ends here: a held character is incomplete for good. */
void clean_text_end(struct clean_text *c, struct buf *out);

/* ---- secrets: each becomes `***`, also if it arrives in pieces, overlaps another or is cut off by the end.
 * This guards against accidents: a program that wants to show its secrets can encode them ---- */
enum { MASK_MIN_BYTES = 4 }; /* shorter secrets would mask half of any text */

struct masks;
struct masks *masks_new(void);
void masks_free(struct masks *m); /* wipes the secrets; NULL is fine */
/* Adds the value, and each line of it; leaves out those that are shorter than MASK_MIN_BYTES. */
void masks_add(struct masks *m, const char *value);
/* A copy of the text without secrets. free(). */
char *masks_text(const struct masks *m, const char *text);

/* The same as one line of at most max_chars characters, without control characters. free(). */
char *masks_line(const struct masks *m, const char *text, size_t max_chars);

/* The same for a stream. */
struct mask_stream {
	const struct masks *masks; /* borrowed; may grow meanwhile */
	struct buf held;           /* may be the beginning of a secret; at most as long as the longest one */
	size_t n_masked;           /* so many bytes at its front belong to a secret */
	bool is_inside;            /* the last output was a mask that may go on */
};
void mask_stream_init(struct mask_stream *s, const struct masks *m);
void mask_stream_release(struct mask_stream *s);
/* Appends every byte that cannot become a part of a secret any more. */
void mask_stream_feed(struct mask_stream *s, const char *p, size_t n, struct buf *out);
/* The stream ends here; the struct is ready for the next one. */
void mask_stream_end(struct mask_stream *s, struct buf *out);

/* ---- the log ---- */

enum { EXCERPT_MAX_BYTES = 4096, EXCERPT_MAX_LINES = 60 };

struct job_log;

/* Opens FOLDER/log to append at most max_bytes. `masks` is borrowed, must outlive the log and may grow. */
int job_log_open(
    const char *folder, int64_t max_bytes, const struct masks *masks, struct job_log **ret, struct error *e) MUST_CHECK;
/* A program's output, as it comes. */
void job_log_output(struct job_log *l, const char *p, size_t n);
/* Adds a line of our own, with "== " before it. Ends the program's last line if it is open. */
void job_log_say(struct job_log *l, const char *fmt, ...) PRINTF(2, 3);
/* The excerpt begins here: a new step. */
void job_log_begin_excerpt(struct job_log *l);
/* The last lines of output since then, without our own lines. free(). */
char *job_log_excerpt(struct job_log *l);
/* Writes the held text, syncs and frees. Returns the first write error; then the rest of the log is missing.
 * NULL is fine. */
int job_log_close(struct job_log *l, struct error *e) MUST_CHECK;
