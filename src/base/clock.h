/* Time: the two clocks, in milliseconds, times as text (RFC 3339, UTC), and histograms of durations. A function
 * that decides something takes now_ms as an argument; only its callers at the edge read a clock.
 *
 * Thread: any; a histogram belongs to one thread at a time. Owns: nothing; the caller has all memory. */
#pragma once

int64_t clock_wall_ms(void); /* since 1970; it may jump, so use it only for records */
/* From now on clock_wall_ms() is clock_mono_ms() plus this: several daemons on one database use the database's time, whatever the clocks
 * of their machines say. 0: the machine's own clock again. */
void clock_follow(int64_t ahead_of_mono_ms);
/* Since an arbitrary moment; it never jumps: for timeouts. It goes on while the machine sleeps, because other machines do not wait for it. */
int64_t clock_mono_ms(void);

#define RFC3339_BYTES 32

/* "2026-11-20T12:00:00Z" into out (RFC3339_BYTES). Returns out. Fractions are dropped. */
const char *rfc3339_format(int64_t wall_ms, char *out);
/* Parses RFC 3339 section 5.6 (any offset, fraction allowed). ERR_INVALID otherwise. */
int rfc3339_parse(const char *s, int64_t *ret_wall_ms) MUST_CHECK;

/* ---- durations ---- */
enum { HISTOGRAM_BUCKETS = 14 };

/* Durations, counted in buckets from half a millisecond to a minute. Zero-initialise. */
struct histogram {
	int64_t counts[HISTOGRAM_BUCKETS + 1]; /* the last: longer than every bound */
	int64_t sum_us;
};
/* A negative duration, after a jump of the wall clock, counts as 0. */
void histogram_add(struct histogram *h, int64_t us);
/* Adds the counts of `more`. */
void histogram_merge(struct histogram *h, const struct histogram *more);
/* Appends a metric in Prometheus's format: its HELP and TYPE lines (type: "gauge", "counter", "histogram"), or these
 * and its only line. */
void metric_head(struct buf *out, const char *name, const char *type, const char *help);
void metric_gauge(struct buf *out, const char *name, const char *help, int64_t value);
void metric_counter(struct buf *out, const char *name, const char *help, int64_t value);
/* Appends its lines in Prometheus's format, without the HELP and TYPE lines. labels: "kind=\"page\"" or "". */
void histogram_write(struct buf *out, const struct histogram *h, const char *name, const char *labels);
