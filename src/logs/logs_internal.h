/* Shared by the files of logs/; no other folder includes it. Thread: loop, unless a comment says otherwise. */
#pragma once

#include "logs/log_file.h"
#include "logs/logs.h"

enum { LOG_BUCKETS = 256 };

/* Blocking work for one job. It runs in the pool after the earlier tasks of the same job; tasks of different jobs
 * run at the same time. */
struct log_task {
	int64_t job_id;
	struct logs *logs;                 /* set by logs_submit() */
	void (*work)(struct log_task *t);  /* in the pool; not run once logs are closing */
	void (*after)(struct log_task *t); /* on the loop, once, never inside logs_submit() */
	bool is_refused;                   /* logs are closing: work did not run */
	/* ---- logs_submit()'s own ---- */
	struct pool_work pool;
	struct log_lane *lane;
	STAILQ_ENTRY(log_task) link;
};
void logs_submit(struct logs *s, struct log_task *t);

/* The tasks of one job, in order. Freed when the last one is over. */
struct log_lane {
	int64_t job_id;
	STAILQ_HEAD(, log_task) tasks; /* the first one runs */
	LIST_ENTRY(log_lane) link;     /* of the bucket */
};

struct logs {
	struct loop *loop;
	struct log_folder folder;
	LIST_HEAD(, log_lane) lanes[LOG_BUCKETS];
	LIST_HEAD(log_watches, log_watch) watches[LOG_BUCKETS];
	struct packer *packer;
	int n_held; /* tasks and drops that are not over, and the packer's work */
	bool is_closing;
	bool is_freed_soon; /* at the end of this turn */
	void (*on_closed)(void *owner);
	void *closed_owner;
	struct log_limit failed_lines;
	struct logs_stats stats;
};

/* Unfinished work keeps the struct alive. The calls come in pairs. */
void logs_hold(struct logs *s);
void logs_release(struct logs *s);
/* Counts a failure and logs it for the operator. */
void logs_failed(struct logs *s, const char *ev, int64_t job_id, const struct error *why);

/* ---- packer.c: compresses complete logs in the pool, one at a time and a few frames in each step, so that a long log
 * neither keeps a thread of the pool for seconds nor makes its readers wait ---- */

/* Looks in the background for logs that an earlier process left uncompressed. */
struct packer *packer_new(struct logs *s);
/* This job's log is complete. */
void packer_add(struct packer *p, int64_t job_id);
/* Tries failed logs again. */
void packer_retry(struct packer *p);
/* The logs are closing: unfinished work is done again after the next start. */
void packer_stop(struct packer *p);
void packer_free(struct packer *p); /* after packer_stop() and its last work; NULL is fine */
