/* What the files of logs/ share. No other folder includes it. */
#ifndef LOGS_LOGS_INTERNAL_H
#define LOGS_LOGS_INTERNAL_H

#include "base/log.h"
#include "logs/log_file.h"
#include "logs/logs.h"
#include "logs/packer.h"

enum { LOG_BUCKETS = 256 };

/* Blocking work for one job: runs in the pool once what was submitted before it for the same
 * job is over. Different jobs' work runs side by side. */
struct log_task {
	int64_t job_id;
	struct logs *logs;                 /* set by logs_submit() */
	void (*work)(struct log_task *t);  /* in the pool; not run once logs are closing */
	void (*after)(struct log_task *t); /* on the loop, once, never inside logs_submit() */
	bool is_refused;                   /* logs are closing: work did not run */
	/* ---- logs_submit()'s own ---- */
	struct pool_work pool;
	struct log_lane *lane;
	struct log_task *next;
};
void logs_submit(struct logs *s, struct log_task *t);

/* The work in hand of one job, in its order; gone when there is none. */
struct log_lane {
	int64_t job_id;
	struct log_task *first, *last; /* the first one runs */
	struct log_lane *next;         /* of the bucket */
};

struct logs {
	struct loop *loop;
	struct log_folder folder;
	struct log_lane *lanes[LOG_BUCKETS];
	struct log_watch *watches[LOG_BUCKETS];
	struct packer *packer;
	int n_in_hand; /* tasks and drops that are not over, and the packer */
	bool is_closing;
	bool is_going; /* to be freed at the end of this turn */
	void (*on_closed)(void *owner);
	void *closed_owner;
	struct log_limit failed_lines;
	struct logs_stats stats;
};

/* What is in hand holds the struct: one call each, paired. */
void logs_hold(struct logs *s);
void logs_let_go(struct logs *s);
/* A failure that no caller hears of, or that the operator should. */
void logs_failed(struct logs *s, const char *ev, int64_t job_id, const struct error *why);

#endif
