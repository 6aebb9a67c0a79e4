/* The agent's files, all below work_dir:
 *
 *   agent.lock       held while an agent lives: only one agent may use a work folder
 *   claim            the id of a claim that may have been granted although its answer was lost
 *   jobs/NAME/       one folder for each job (steps/job_folder.h); NAME sorts by the time of the grant
 *   jobs/rejected/   jobs that the server refused, with the reason in `progress`
 *
 * Besides the files that job_folder.h lists, the agent keeps in a job's folder:
 *
 *   progress         what the server knows of the job: one word of enum progress and a reason. Absent
 *                    while the job runs or is being sent. Nothing else has to be remembered: the server
 *                    knows how much of the log it has, and everything else can be sent twice
 *   shared-log       under `summary`: sent instead of the log
 *   job-process.err  the error output of the job's process
 *
 * Thread: any, one at a time for one folder. Every call reads or writes the disk; journal_prune() is slow. */
#pragma once

#include "model/runner_protocol.h"

enum progress {
	PROGRESS_NONE,      /* it runs, or not everything is sent */
	PROGRESS_RETURNING, /* handed back, but the server may not know yet: must not be reported */
	PROGRESS_SENT,
	PROGRESS_RETURNED,
	PROGRESS_LOST,     /* another machine has the work: nothing to report */
	PROGRESS_DIED,     /* its process ended without a result; its log was sent */
	PROGRESS_REJECTED, /* the server refuses it */
	N_PROGRESS
};
/* A static string. */
const char *progress_name(enum progress p);

struct journal {
	char *work_dir, *jobs_dir;
	int lock_fd;
};

/* Makes the folders and takes the lock. ERR_BUSY: another agent has the lock; *e names its process. */
int journal_open(struct journal *j, const char *work_dir, struct error *e) MUST_CHECK;
void journal_close(struct journal *j);

/* ---- the claim ---- */
/* The id of the claim that may be open, or a new id that is on disk when this returns. free(). */
int journal_claim_id(struct journal *j, char **ret, struct error *e) MUST_CHECK;
/* Forgets the id: the claim was answered and its lease is on disk or handed back. */
void journal_claim_over(struct journal *j);

/* ---- jobs ---- */
/* Makes a folder with offer.json, durable. ERR_EXISTS: this lease has one. free() *ret_folder. */
int journal_add(struct journal *j, const struct lease_offer *o, char **ret_folder, struct error *e) MUST_CHECK;
/* Names of the jobs' folders in jobs_dir or jobs/rejected, which begin with a digit: oldest first, NULL-terminated;
 * strv_free(). */
int journal_list(const char *folder, char ***ret, struct error *e) MUST_CHECK;
int journal_read_offer(const char *folder, struct lease_offer *ret, struct error *e) MUST_CHECK;
enum progress journal_progress(const char *folder);
int journal_set_progress(const char *folder, enum progress p, const char *reason, struct error *e) MUST_CHECK;
/* Writes PROGRESS_REJECTED and moves the folder to jobs/rejected. */
int journal_reject(const struct journal *j, const char *folder, const char *reason, struct error *e) MUST_CHECK;
/* Keeps the newest `keep` jobs that are over and removes older ones. Of jobs/rejected it keeps
 * KEEP_REJECTED, and of all but the newest `keep` of these only log and report: their checkout and
 * temporary files go. Blocks, and is slow if folders hold a checkout. */
enum { KEEP_REJECTED = 100 };
void journal_prune(const char *jobs_dir, int keep);

/* How many bytes this user may still write below work_dir; -1: unknown. */
int64_t journal_room_bytes(const struct journal *j);
