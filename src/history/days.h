/* Days: one row for each accelerator and UTC day, made from the runs that ended on it. The row stays when the details of
 * the runs are deleted, and pages read trends of a year only from these rows. Also the times of runs, and the numbers that
 * tests report (model/test_result.h), by day.
 *
 * Thread: functions with a struct txn run inside a writer's transaction; the times are a value of their caller. */
#pragma once

#include "db/db.h"
#include "model/record.h"
#include "model/test_result.h"

#define DAY_MS INT64_C(86400000)

/* Days since 1970, UTC. Any thread. */
int64_t day_of(int64_t wall_ms);

/* A run that ended then was written, changed or deleted. Writes the row of its day again, unless retention has deleted a
 * run of that day. */
void day_note(struct txn *d, const char *accelerator, int64_t ended_ms);
/* The change and its runs are about to be deleted: the rows of their days stay as they are from now on. */
void days_close(struct txn *d, int64_t change_id);
/* Deletes days that ended before before_ms, with their numbers, at most `limit` rows of each table. True: there may be
 * more. */
bool days_drop(struct txn *d, int64_t before_ms, int limit);

/* Writes, once, the days and numbers of runs that versions before the fourth recorded. It counts the cells of the newest
 * runs of pushes, as many as take a second or two. Call it at the start; it has its own transaction. */
int days_fill(struct db *d, struct error *e) MUST_CHECK;

/* ---- times of runs ---- */

struct times {
	int64_t *ms; /* owned; all at least 0 */
	size_t n, max;
};

struct times times_new(size_t max); /* keeps the first max; times_release() */
void times_release(struct times *t);
void times_add(struct times *t, int64_t ms); /* negative: not known, and left out */
/* Writes the bytes of a column, and reads them. times_pack() sorts t. */
void times_pack(struct times *t, struct buf *out);
void times_add_packed(struct times *t, const struct record_blob *packed);
/* The smallest time that `percent` of them do not exceed; -1: there are none. */
int64_t percentile(const struct times *t, size_t percent);

/* ---- the numbers that tests report: one a day for each test and unit, the newest of pushes and periodic runs ---- */

/* These tests have become results of the job. Stores their numbers if the job is current and of a push or periodic run. */
void number_days_note(struct txn *d, int64_t job_id, const struct test_result *tests, size_t n, int64_t now_ms);
/* The change is about to be deleted: its numbers stay, without a link to a job. At most `limit` at a time, because each may be on a page
 * of its own. Returns how many. */
int64_t number_days_forget_change(struct txn *d, int64_t change_id, int64_t limit);
