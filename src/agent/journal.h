/* What the agent has on disk, all below work_dir:
 *
 *   agent.lock       held as long as an agent lives: one a work folder
 *   claim            the id of a claim that may have been granted without our knowing
 *   jobs/NAME/       a folder a job (steps/job_folder.h); NAME sorts by when it was granted
 *   jobs/rejected/   those that the server would not take, with the reason in `progress`
 *
 * Beside the files that job_folder.h lists the agent keeps in a job's folder:
 *
 *   progress         how it stands with the server, one word of enum progress and a reason; absent
 *                    while the job runs or is being sent. Nothing else has to be remembered: how
 *                    much of the log is there the server knows, the rest can be sent twice
 *   shared-log       under `summary`: what is sent in place of the log
 *   job-process.err  what the job's process itself had to say
 *
 * Thread: any; journal_prune() is slow. */
#ifndef AGENT_JOURNAL_H
#define AGENT_JOURNAL_H

#include <stdbool.h>

#include "base/err.h"
#include "model/runner_protocol.h"

enum progress {
	PROGRESS_NONE,      /* running, or not all sent */
	PROGRESS_RETURNING, /* handed back, but the server may not know: never to be reported */
	PROGRESS_SENT,
	PROGRESS_RETURNED,
	PROGRESS_LOST,     /* somebody else has the work: nothing to report */
	PROGRESS_DIED,     /* its process ended without a result; what it logged was sent */
	PROGRESS_REJECTED, /* the server will not take it */
	N_PROGRESS
};
const char *progress_name(enum progress p);

struct journal {
	char *work_dir, *jobs_dir;
	int lock_fd;
};

/* Makes the folders and takes the lock. ERR_BUSY: another agent has it, and the error names it. */
int journal_open(struct journal *j, const char *work_dir, struct error *e) MUST_CHECK;
void journal_close(struct journal *j);

/* ---- the claim ---- */
/* The one that may be open, or a new one, written down. free(). */
int journal_claim_id(struct journal *j, char **ret, struct error *e) MUST_CHECK;
/* It was answered with a lease that is written down. */
void journal_claim_over(struct journal *j);

/* ---- jobs ---- */
/* A folder with offer.json. ERR_EXISTS: there is one for this lease. free() *ret_folder. */
int journal_add(
    struct journal *j, const struct lease_offer *o, char **ret_folder, struct error *e) MUST_CHECK;
/* Names of the jobs' folders, oldest first, NULL-terminated; strv_free(). */
int journal_list(const struct journal *j, char ***ret, struct error *e) MUST_CHECK;
int journal_read_offer(const char *folder, struct lease_offer *ret, struct error *e) MUST_CHECK;
enum progress journal_progress(const char *folder);
int journal_set_progress(
    const char *folder, enum progress p, const char *reason, struct error *e) MUST_CHECK;
/* Moves it to jobs/rejected. */
int journal_reject(
    const struct journal *j, const char *folder, const char *reason, struct error *e) MUST_CHECK;
/* Removes the oldest folders that are over, all but `keep`; and those of jobs/rejected, all but
 * KEEP_REJECTED, and of all but `keep` of these what their steps made: log and report stay, a
 * checkout does not. Blocking, and slow where a checkout is in them. */
enum { KEEP_REJECTED = 100 };
void journal_prune(const char *jobs_dir, int keep);

/* Bytes that this user may still write below work_dir; -1: unknown. */
int64_t journal_room_bytes(const struct journal *j);

#endif
