/* What the agent's files share. agent.c owns the whole and decides what comes next; claim.c asks
 * for work; job.c is one job from its grant to the end; heartbeat.c keeps its lease; upload.c
 * sends what came of it; stop.c ends everything in order.
 *
 * Rule: whoever changed something calls agent_next() as its last act; it alone starts claims,
 * sends finished jobs and notices that the agent may end. */
#ifndef AGENT_AGENT_INTERNAL_H
#define AGENT_AGENT_INTERNAL_H

#include <sys/types.h>

#include "agent/agent.h"
#include "agent/journal.h"
#include "agent/server.h"
#include "base/log.h"
#include "steps/job_folder.h"

struct agent;

enum job_stage {
	JOB_WAITING, /* granted, not started: only if its lease is good still */
	JOB_RUNNING, /* its process lives */
	JOB_ENDED,   /* what is left is to tell the server */
	JOB_OVER,    /* nothing is left; goes when its calls have come back */
};

struct heartbeat {
	struct server_call call;
	struct timer *timer;
	bool is_on;
	bool is_doubtful; /* told: the lease may have run out */
	int64_t sent_mono_ms, good_until_mono_ms;
	int n_failures;
};

struct upload {
	struct server_call call;
	/* which request is under way */
	enum { UPLOAD_LOG, UPLOAD_REPORT, UPLOAD_END, UPLOAD_RETURN } part;
	bool is_offset_known; /* how far the server's log is: after a restart it is asked */
	bool is_log_done, is_report_done;
	int64_t offset;
	size_t piece_bytes;
	bool is_last_piece;
	char report_refused[256]; /* why; "": it was not */
	int n_failures;
	int64_t due_mono_ms; /* not before; 0: at once */
};

struct job {
	struct job *next; /* in the agent's list, oldest first */
	struct agent *agent;
	char *folder;
	struct lease_offer offer;
	enum job_stage stage;
	pid_t pid;   /* of our child; 0: it was started by an agent before us, or is gone */
	int lock_fd; /* -1; else we keep a process out that may come late */
	bool has_result;
	struct job_result result;
	bool is_stop_wanted; /* of its steps, and */
	bool is_stop_told;   /* the process was told */
	bool is_returning;   /* handed back: not to be reported */
	bool is_lost;        /* the lease is another's: not to be reported unless it has finished */
	struct heartbeat heartbeat;
	struct upload upload;
};

struct claim {
	struct server_call call;
	struct timer *timer; /* runs: not before it ends */
	char *id;
	int64_t sent_mono_ms;
	int n_failures;
	bool is_returning;     /* the call hands back what cannot be taken */
	bool is_checking_last; /* stopping: was it granted meanwhile? */
	bool is_over;          /* no more claims */
	bool is_waiting_told;  /* that there is no work */
	bool is_room_told;     /* that there is none; what could go has gone, or is going */
};

enum stopping { NOT_STOPPING, DRAINING, HANDING_BACK, ENDING };

struct agent {
	const struct runner_config *c;
	struct loop *loop;
	struct server server;
	struct journal journal;
	struct claim claim;
	struct job *jobs;
	struct timer *tick;       /* while a job runs: its end, its log */
	struct timer *send_timer; /* a finished job's next try is due */
	struct timer *stop_timer;
	struct timer *next_timer; /* agent_next() is wanted */
	enum stopping stopping;
	enum agent_end end;
	int n_taken; /* jobs that were started or found since the start */
	int exit_code;
	struct pool_work prune;
	bool is_pruning, is_making_room, is_room_wanted;
};

/* ---- agent.c ---- */
/* Something changed: look at everything, later in this turn of the loop. */
void agent_next(struct agent *a);
/* A job that waits or runs: there is room for one. */
struct job *agent_busy(const struct agent *a);
/* Old folders go, in the pool. */
void agent_prune(struct agent *a);
/* The same with all that only saves time: nobody looks at a machine that takes no work. Then
 * claims go on. */
void agent_make_room(struct agent *a);

/* ---- claim.c ---- */
void claim_open(struct agent *a);
/* Asks for work unless that is under way or has to wait. */
void claim_go(struct agent *a);
/* No more claims; one that may have been granted is asked for once more and handed back. */
void claim_stop(struct agent *a);
bool claim_is_idle(const struct agent *a);
/* Tries at once: the token may be new. */
void claim_hurry(struct agent *a);
void claim_close(struct agent *a);

/* ---- job.c ---- */
/* Takes the folder's name and the offer's content over. */
struct job *job_new(struct agent *a, char *folder, struct lease_offer *offer);
/* All in the journal, each in the stage that its folder tells. */
int job_restore_all(struct agent *a, struct error *e) MUST_CHECK;
/* Starts its process; where that fails the job is handed back. */
void job_start(struct job *j);
/* Has its process ended? Tells it to stop where that is wanted. */
void job_look(struct job *j);
/* No machine shall report this attempt: stop, and give the lease back. */
void job_hand_back(struct job *j, const char *reason);
void job_on_lease(struct job *j, enum lease_word word, const char *reason);
/* The end: written down and told. The job may be freed by it. */
void job_over(struct job *j, enum progress p, const char *reason);
/* The same without a word in the journal: the agent ends, the next one goes on. */
void job_forget(struct job *j);
/* After a call of the job's came back; frees it when it is over and that was the last. */
void job_release_if_over(struct job *j);
void job_log(
    const struct job *j, enum log_level level, const char *ev, const char *key, const char *text);

/* ---- heartbeat.c ---- */
void heartbeat_start(struct job *j); /* nothing where it is on */
void heartbeat_stop(struct job *j);

/* ---- upload.c, upload_log.c ---- */
enum upload_state {
	UPLOAD_BUSY,    /* a request is under way */
	UPLOAD_IDLE,    /* nothing to send now, or not before due_mono_ms */
	UPLOAD_NOTHING, /* a job without a result: all that there was is sent */
};
/* Starts the next request. */
enum upload_state upload_go(struct job *j);
/* Starts a request for the log: false where there is nothing to say now. */
bool upload_log(struct job *j);
void upload_on_log(struct job *j);
void upload_start(struct job *j, int part, const char *method, const char *content_type, char *path,
    char *body, size_t n);
void upload_failed(struct job *j);

/* ---- stop.c ---- */
void stop_on_signal(struct agent *a);
/* True where the agent may end now. */
bool stop_is_ready(const struct agent *a);
void stop_on_timer(struct timer *t);

#endif
