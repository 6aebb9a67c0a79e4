/* outpost-runner: the functions and the state that its files share. agent_run() is the agent: it claims work, starts a
 * process for each job, streams the job's log, reports the result, and claims again. It talks to the server and keeps
 * the journal on disk. The steps run in a process of their own (steps/steps.h), which a restarted agent finds again.
 *
 * agent.c owns the agent's state and decides the next step; lease.c asks for work and keeps a job's lease; job.c takes
 * one job from its grant to its end; upload.c sends the job's log, report and end.
 *
 * Thread: the loop's, for everything here unless a comment says otherwise. The agent reads and writes small local files
 * on it, because no other client waits for this loop. Slow work (removing old folders) runs in the pool.
 * Rule: code that changes the agent's state calls agent_next() as its last act. Only agent.c then starts claims, sends
 * ended jobs and ends the agent. */
#pragma once

#include "agent/journal.h"
#include "agent/server.h"
#include "steps/job_folder.h"

/* ---- the modes of outpost-runner, for main.c ---- */

enum agent_end {
	AGENT_UNTIL_STOPPED, /* by SIGTERM or SIGINT */
	AGENT_ONCE,          /* after the first job that was taken and reported */
};

/* Blocks until the agent ends. Returns the exit code: 0 after a drain; 1 if the agent could not start, or with
 * AGENT_ONCE if the server refused the machine or the job was not reported. The log says why. */
int agent_run(const char *config_path, enum agent_end end);
/* `--check`, in check.c: checks the file, the work folder, git and the sandbox. With is_online it also asks
 * the server with the machine's token and prints a line for each thing that it checked: whether the server
 * answers, the token, the labels, waiting work, the clock, the version. Without, the server need not exist
 * yet. Blocks. Returns the exit code: 0, or 1 with every mistake on stderr or in the table. */
int agent_check(const char *config_path, bool is_online);
/* `--job`, in job.c: runs the job's steps and returns the exit code. Blocks; the only thread of its process,
 * which has a session of its own and shares nothing with the agent, so it lives on when the agent dies. */
int job_process_main(const char *config_path, const char *folder);

/* ---- the agent's state ---- */

struct agent;

enum job_stage {
	JOB_WAITING, /* granted but not started: starts only if its lease is still good */
	JOB_RUNNING, /* its process lives */
	JOB_ENDED,   /* its process is gone; the server does not know everything yet */
	JOB_OVER,    /* nothing is left to do; freed when its calls have come back */
};

struct heartbeat {
	struct server_call call;
	struct timer *timer;
	bool is_on;
	bool is_doubtful; /* the lease may have run out, and the log says so */
	int64_t sent_mono_ms, good_until_mono_ms;
	int n_failures;
};

struct upload {
	struct server_call call;
	/* the request that is under way */
	enum { UPLOAD_LOG, UPLOAD_REPORT, UPLOAD_END, UPLOAD_RETURN } part;
	bool is_offset_known; /* false after a restart: then the server is asked for the offset */
	bool is_log_done, is_report_done;
	int64_t offset; /* bytes of the log that the server has */
	size_t piece_bytes;
	bool is_last_piece;
	char report_refused[256]; /* why the report was refused; "" if it was not */
	int n_failures;
	int64_t due_mono_ms; /* not before; 0: at once */
};

struct job {
	TAILQ_ENTRY(job) link;
	struct agent *agent;
	char *folder;
	struct lease_offer offer;
	enum job_stage stage;
	pid_t pid;   /* of our child; 0: an earlier agent started it, or it is gone */
	int lock_fd; /* -1; else the agent holds the folder's lock, so that no late process starts */
	bool has_result;
	struct job_result result;
	bool is_stop_requested; /* its steps have to stop */
	bool is_stop_sent;      /* and its process got the signal */
	bool is_returning;      /* handed back: it must not be reported */
	bool is_lost;           /* another machine has the lease: reported only if it has finished */
	struct heartbeat heartbeat;
	struct upload upload;
};

struct claim {
	struct server_call call;
	struct timer *timer; /* while it runs, no claim is sent */
	char *id;
	int64_t sent_mono_ms;
	int n_failures;
	bool is_returning;      /* the call hands back work that cannot be done here */
	bool is_checking_last;  /* while stopping: asks if the last claim was granted */
	bool is_over;           /* no more claims */
	bool is_waiting_logged; /* the log says that there is no work */
	bool is_full_logged;    /* the log says that the disk is full; space is being freed */
};

enum stopping { NOT_STOPPING, DRAINING, HANDING_BACK, ENDING };

struct agent {
	const struct runner_config *c;
	struct loop *loop;
	struct server server;
	struct journal journal;
	struct claim claim;
	TAILQ_HEAD(, job) jobs;   /* oldest first */
	struct timer *tick;       /* while a job runs: looks for its end and for more of its log */
	struct timer *send_timer; /* an ended job's next try is due */
	struct timer *stop_timer;
	struct timer *next_timer; /* agent_next() was called */
	enum stopping stopping;
	enum agent_end end;
	int n_taken; /* jobs that were started or found since the start */
	int exit_code;
	struct pool_work prune;
	bool is_pruning, is_making_room, is_room_needed;
};

/* ---- agent.c ---- */
/* Something changed: looks at everything, later in this turn of the loop. */
void agent_next(struct agent *a);
/* The same for a timer of the agent. */
void agent_on_timer(struct timer *t);
/* Removes old folders, in the pool. With is_room_needed, because the disk is full: removes all old folders and all
 * caches. Then claims go on. */
void agent_prune(struct agent *a);

/* ---- check.c; every mode begins with these ---- */
/* Reads the configuration and the files that it names. NULL after the mistakes went to stderr. runner_config_free(). */
struct runner_config *agent_load_config(const char *config_path);

/* ---- lease.c ---- */
void claim_open(struct agent *a);
/* Asks for work, unless a claim is under way or has to wait. */
void claim_send(struct agent *a);
/* No more claims. A claim that may have been granted is sent once more, to hand its work back. */
void claim_stop(struct agent *a);
/* Ends the wait between two claims: the token or the free space may have changed. */
void claim_stop_waiting(struct agent *a);
void claim_close(struct agent *a);
/* Keeps the lease from now on. Does nothing if the heartbeat is on. */
void heartbeat_start(struct job *j);
void heartbeat_stop(struct job *j);

/* ---- job.c ---- */
/* Adds a job to the agent's list. Takes over `folder` and the content of `offer`. */
struct job *job_new(struct agent *a, char *folder, struct lease_offer *offer);
/* Adds every job of the journal that is not over, in the stage that its folder shows. */
int job_restore_all(struct agent *a, struct error *e) MUST_CHECK;
/* Starts the job's process. If that fails, the job is handed back. */
void job_start(struct job *j);
/* Looks if the job's process has ended, and stops the process if that is requested. */
void job_look(struct job *j);
/* Stops the steps and gives the lease back. The job must not be reported after this. */
void job_hand_back(struct job *j, const char *reason);
/* The server answered a heartbeat. */
void job_on_lease(struct job *j, enum lease_word word, const char *reason);
/* Ends the job: writes the end to the journal and to the log. May free the job. */
void job_finish(struct job *j, enum progress p, const char *reason);
/* Ends the job in this process only: the next agent goes on with it. May free the job. */
void job_forget(struct job *j);
/* Call after one of the job's calls came back. Frees the job if it is over and that was the last. */
void job_release_if_over(struct job *j);
/* Logs an event of the job with one more field; key NULL: none. */
void job_log(const struct job *j, enum log_level level, const char *ev, const char *key, const char *text);

/* ---- upload.c ---- */
enum upload_state {
	UPLOAD_BUSY,    /* a request is under way */
	UPLOAD_IDLE,    /* nothing to send now, or not before due_mono_ms */
	UPLOAD_NOTHING, /* the job has no result, and everything that it has was sent */
};
/* Starts the job's next request. */
enum upload_state upload_next(struct job *j);
