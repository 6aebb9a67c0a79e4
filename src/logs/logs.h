/* Jobs' logs, as files under state_dir/logs: appended to while a job runs, compressed when it
 * is over, readable by byte range at any moment. A stranger's text, so nothing here looks into it.
 *
 * What is acknowledged is on disk (fdatasync). All file work runs in the pool, in order for each
 * job. Thread: loop, every function. */
#ifndef LOGS_LOGS_H
#define LOGS_LOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "loop/loop.h"

struct logs;

enum { LOG_MAX_BYTES = 256 << 20 }; /* of one job */

/* Blocking, before the loop runs: makes the folder. What a crash left uncompressed is compressed
 * in the background from then on. ERR_IO names the path. */
int logs_open(struct loop *l, const char *state_dir, struct logs **ret, struct error *e) MUST_CHECK;
/* What is in hand ends first, compressing is put off to the next start; then on_closed, once, not
 * inside this call. Calls from here on are done with ERR_CLOSING. Every watch is gone by then. */
void logs_close(struct logs *s, void (*on_closed)(void *owner), void *owner);

/* Puts bytes at `offset`. Those before the present end are there already and are skipped, so a
 * piece may be sent twice; beyond the end is ERR_RANGE. is_last: the log is complete after it
 * (and gets compressed in its own time); later pieces that would make it longer are ERR_EXISTS. Past LOG_MAX_BYTES:
 * ERR_TOO_BIG. A full disk: ERR_FULL, and the file is as it was. */
struct log_append {
	int64_t job_id, offset;
	const char *bytes; /* borrowed until done */
	size_t n;
	bool is_last;
	void (*done)(struct log_append *a); /* once, on the loop, never inside the call */
	int err;                            /* out */
	struct error why;
	int64_t end;      /* out: how long the log is now, whatever err says */
	bool is_complete; /* out */
	void *internal;
};
void logs_append(struct logs *s, struct log_append *a);

struct log_read {
	int64_t job_id, offset;
	size_t max_bytes; /* at most 1 MiB is read at once */
	void (*done)(struct log_read *r);
	int err;     /* out: ERR_NOT_FOUND: no log; ERR_RANGE: offset past the end; ERR_CORRUPT */
	char *bytes; /* out: free() */
	size_t n;
	int64_t end; /* out: of the log as it is now */
	bool is_complete;
	void *internal;
};
void logs_read(struct logs *s, struct log_read *r);

/* Told on the loop whenever a log grew or was completed. As many as like. */
struct log_watch {
	int64_t job_id;
	void (*on_change)(struct log_watch *w);
	struct log_watch *next, **slot; /* logs' own */
};
void logs_watch(struct logs *s, struct log_watch *w);
void logs_unwatch(struct log_watch *w); /* also one that never watched (zeroed) */

/* Removes the logs last written before that time; done runs with how many. */
void logs_drop_older(
    struct logs *s, int64_t before_wall_ms, void (*done)(int64_t n, void *owner), void *owner);

struct logs_stats {
	int64_t n_appends, n_bytes_in, n_reads;
	int64_t n_packed; /* logs compressed */
	int64_t n_failures;
};
const struct logs_stats *logs_stats(const struct logs *s);

#endif
