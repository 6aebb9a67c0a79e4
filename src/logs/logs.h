/* The logs of jobs, as files under state_dir/logs, or in the database that several daemons share. A log grows while its job runs and is
 * compressed afterwards. It may then be moved to a place that several daemons share. Any byte range of it can be read at any time. A log is
 * untrusted text, so nothing here interprets it.
 *
 * An acknowledged append is on disk (fdatasync, or a commit). All file work runs in the pool, in order for each job. A finished log stays
 * where it grew, and is read there, until the other place has all of it.
 *
 * Thread: loop, every function. */
#pragma once

#include "http/client.h"

struct logs;
struct store;

enum { LOG_MAX_BYTES = 256 << 20 }; /* of one job */

/* Makes the folder; blocks, so call it before the loop runs. Logs that a crash left uncompressed are compressed in
 * the background from then on. ERR_IO names the path. */
int logs_open(struct loop *l, const char *state_dir, struct logs **ret, struct error *e) MUST_CHECK;
/* Logs grow in this database from now on, and each daemon on it reads them. Call it right after logs_open(). The store outlives the logs. */
void logs_grow_in(struct logs *s, struct store *store);
/* Where finished logs lie: in the database of logs_grow_in(), in a folder, or as objects of S3 or a service like it. None of them: in
 * state_dir. */
struct log_place_options {
	bool is_database;
	const char *folder;
	const char *s3;                                         /* BUCKET or BUCKET/PREFIX */
	const char *s3_endpoint, *s3_region;                    /* the bucket is a part of the path, not of the host */
	struct secret *access_key, *secret_key, *session_token; /* borrowed; the token may be NULL */
};
/* Whether the place can be used: an existing folder that this process may write, or a bucket that these keys may list.
 * Blocks, for at most 10 s. ERR_NETWORK: the server does not answer, or has a failure; another error is a mistake of the
 * operator. Thread: any. */
int logs_check_place(const struct log_place_options *o, struct error *e) MUST_CHECK;
/* Moves finished logs there from now on, those of an earlier time included. Call it once, right after logs_open() and
 * logs_grow_in(). The client outlives the logs. ERR_IO names the path. */
int logs_keep_in(
    struct logs *s, const struct log_place_options *o, struct http_client *client, struct error *e) MUST_CHECK;
/* Uses these keys from now on; the place stays the same. */
void logs_use_keys(struct logs *s, const struct log_place_options *o);
/* Calls that are under way end first; compressing goes on after the next start. Then on_closed runs once, not inside
 * this call. Later calls end with ERR_CLOSING. The callers remove every watch before on_closed. */
void logs_close(struct logs *s, void (*on_closed)(void *owner), void *owner);

/* Writes bytes at `offset`. Bytes before the present end are there already and are skipped, so a piece may be sent
 * twice. is_last: the log is complete after this piece and is compressed later.
 * Errors: ERR_RANGE (the offset is beyond the end); ERR_EXISTS (a complete log would become longer);
 * ERR_TOO_BIG (more than LOG_MAX_BYTES); ERR_FULL (the disk is full; the file is unchanged). */
struct log_append {
	int64_t job_id, offset;
	const char *bytes; /* borrowed until done */
	size_t n;
	bool is_last;
	void (*done)(struct log_append *a); /* once, on the loop, never inside the call */
	int err;                            /* out */
	struct error why;
	int64_t end;      /* out: the log's length now, also after an error */
	bool is_complete; /* out */
};
void logs_append(struct logs *s, struct log_append *a);

struct log_read {
	int64_t job_id, offset;
	size_t max_bytes; /* at most 1 MiB is read at once */
	void (*done)(struct log_read *r);
	int err;     /* out: ERR_NOT_FOUND: no log; ERR_RANGE: offset past the end; ERR_CORRUPT; others: try again */
	char *bytes; /* out: free() */
	size_t n;    /* fewer than max_bytes also before the end */
	int64_t end; /* out: of the log as it is now */
	bool is_complete;
};
void logs_read(struct logs *s, struct log_read *r);

/* on_change runs on the loop each time that the log grew or was completed, within about a second if another daemon wrote it. A log may have
 * any number of watches. */
struct log_watch {
	int64_t job_id;
	void (*on_change)(struct log_watch *w);
	/* private */
	LIST_ENTRY(log_watch) link;
	int64_t seen_end;
};
void logs_watch(struct logs *s, struct log_watch *w);
void logs_unwatch(struct log_watch *w); /* does nothing for a zeroed struct */

/* Removes the logs that were last written before that time; done gets their number. */
void logs_drop_older(struct logs *s, int64_t before_wall_ms, void (*done)(int64_t n, void *owner), void *owner);

struct logs_stats {
	int64_t n_appends, n_bytes_in, n_reads;
	int64_t n_packed;           /* logs compressed */
	int64_t n_moved, n_to_move; /* to the other place; n_to_move: now */
	int64_t n_failures;
};
const struct logs_stats *logs_stats(const struct logs *s);
