/* One job from its grant to its end. Nothing runs twice: `started` is on disk before its process
 * is, and a folder that has it but no process and no result is never run again. */
#include "agent/agent_internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/job_process.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

void job_log(
    const struct job *j, enum log_level level, const char *ev, const char *key, const char *text)
{
	struct log_field fields[7] = {
	    LOG_S("dispatch", j->offer.dispatch_id),
	    LOG_I("attempt", j->offer.attempt),
	};
	int n = 2;

	if (j->offer.job_id)
		fields[n++] = LOG_I("job", j->offer.job_id);
	if (j->offer.number)
		fields[n++] = LOG_I("pr", j->offer.number);
	if (j->offer.experiment)
		fields[n++] = LOG_S("experiment", experiment_side_name(j->offer.experiment->side));
	if (key)
		fields[n++] = LOG_S(key, text);
	fields[n].key = NULL;
	log_write(level, ev, fields);
}

struct job *job_new(struct agent *a, char *folder, struct lease_offer *offer)
{
	struct job *j = xcalloc(1, sizeof(*j)), **last = &a->jobs;

	j->agent = a;
	j->folder = folder;
	j->offer = *offer;
	*offer = (struct lease_offer){0};
	j->lock_fd = -1;
	while (*last)
		last = &(*last)->next;
	*last = j;
	return j;
}

/* ---- start ---- */

static void note_progress(struct job *j, enum progress p, const char *reason)
{
	struct error e = {0};

	if (journal_set_progress(j->folder, p, reason, &e))
		job_log(j, LOG_ERROR, "journal_not_written", "why", e.text);
}

void job_start(struct job *j)
{
	struct error e = {0};
	int rc;

	rc = job_folder_write(j->folder, "started", "", 0, &e);
	if (!rc)
		rc = job_process_start(j->agent->c->path, j->folder, &j->pid, &e);
	if (rc) {
		job_log(j, LOG_ERROR, "job_not_started", "why", e.text);
		j->stage = JOB_ENDED;
		j->is_returning = true;
		note_progress(j, PROGRESS_RETURNING, e.text);
	} else {
		j->stage = JOB_RUNNING;
		j->upload.is_offset_known = true;
		job_log(j, LOG_INFO, "job_started", "head_sha", j->offer.head_sha);
	}
	heartbeat_start(j);
}

/* ---- the process's end ---- */

static bool is_process_there(struct job *j)
{
	pid_t rc = j->pid > 0 ? waitpid(j->pid, NULL, WNOHANG) : -1;

	if (j->pid > 0 && rc == 0)
		return true;
	j->pid = 0;
	if (j->lock_fd >= 0)
		return false;
	/* what it started may outlive it for a moment, and cleans up with the lock in hand */
	return job_folder_is_locked(j->folder);
}

static void log_end(const struct job *j)
{
	const struct job_result *r = &j->result;

	log_event(strcmp(r->conclusion, "success") == 0 ? LOG_INFO : LOG_WARN, "job_ended",
	    LOG_S("dispatch", j->offer.dispatch_id), LOG_I("job", j->offer.job_id),
	    LOG_I("pr", j->offer.number), LOG_S("conclusion", r->conclusion),
	    LOG_I("seconds", (r->completed_ms - r->started_ms) / 1000),
	    LOG_S("step", r->n_steps ? r->steps[r->n_steps - 1].name : ""),
	    LOG_S("message", r->message));
}

/* The steps were to stop, and so they did, but nobody could write it down. */
static void make_cancelled(struct job *j, const char *message)
{
	int64_t now = clock_wall_ms();

	job_result_release(&j->result);
	j->result = (struct job_result){.conclusion = xstrdup("cancelled"),
	    .message = xstrdup(message),
	    .started_ms = now,
	    .completed_ms = now};
	j->has_result = true;
}

/* The lease is left to run out: that counts, so a change that takes its machines down with it
 * does not go round for ever. */
static void on_died(struct job *j)
{
	char *said = NULL;
	size_t n;

	if (j->is_stop_wanted) {
		make_cancelled(j, "stopped before it had written a result");
		return;
	}
	(void)!job_folder_read(j->folder, "job-process.err", 4096, &said, &n, NULL);
	job_log(j, LOG_ERROR, "job_died", "why",
	    "its process ended without a result; it is not run again here, and its lease runs out");
	if (said && *said)
		job_log(j, LOG_ERROR, "job_died", "said", said);
	free(said);
	heartbeat_stop(j);
}

static void on_ended(struct job *j)
{
	struct error e = {0};
	int rc = job_result_read(j->folder, &j->result, &e);

	j->stage = JOB_ENDED;
	if (!j->upload.n_failures)
		j->upload.due_mono_ms = 0;
	j->has_result = rc == 0;
	if (rc) {
		job_result_release(&j->result);
		if (rc != ERR_NOT_FOUND)
			job_log(j, LOG_ERROR, "result_unreadable", "why", e.text);
		on_died(j);
	} else {
		log_end(j);
	}
	/* what has finished is reported, whoever has the lease by now */
	if (j->is_lost && (!j->has_result || str_eq(j->result.conclusion, "cancelled")))
		job_over(j, PROGRESS_LOST, "the lease was lost");
}

void job_look(struct job *j)
{
	if (j->stage != JOB_RUNNING)
		return;
	if (!is_process_there(j)) {
		on_ended(j);
		return;
	}
	/* a process that has just begun is not to be found yet: then at the next look */
	if (j->is_stop_wanted && !j->is_stop_told)
		j->is_stop_told = job_folder_cancel(j->folder, NULL) == 0;
}

/* ---- stop ---- */

static void stop_steps(struct job *j)
{
	j->is_stop_wanted = true;
	job_look(j);
}

void job_hand_back(struct job *j, const char *reason)
{
	if (j->is_returning || j->stage > JOB_RUNNING)
		return;
	job_log(j, LOG_INFO, "job_handed_back", "why", reason);
	j->is_returning = true;
	note_progress(j, PROGRESS_RETURNING, reason);
	if (j->stage == JOB_RUNNING)
		stop_steps(j);
	else
		j->stage = JOB_ENDED;
}

static void on_cancelled(struct job *j, const char *reason)
{
	job_log(j, LOG_INFO, "job_cancelled", "why", log_text(reason));
	if (j->stage == JOB_RUNNING) {
		stop_steps(j);
	} else if (j->stage == JOB_WAITING) {
		make_cancelled(j, reason ? reason : "cancelled before it was started");
		j->stage = JOB_ENDED;
	}
}

static void on_lost(struct job *j, const char *reason)
{
	j->is_lost = true;
	if (j->stage == JOB_ENDED)
		return; /* as it should be where the end was told a moment ago */
	job_log(j, LOG_WARN, "lease_lost", "why", log_text(reason));
	if (j->stage == JOB_WAITING) {
		job_over(j, PROGRESS_LOST, reason);
		return;
	}
	note_progress(j, PROGRESS_LOST, reason);
	stop_steps(j);
}

void job_on_lease(struct job *j, enum lease_word word, const char *reason)
{
	struct agent *a = j->agent;

	if (word == LEASE_CANCELLED)
		on_cancelled(j, reason);
	else if (word == LEASE_LOST)
		on_lost(j, reason);
	else if (j->stage == JOB_WAITING)
		job_start(j);
	agent_next(a);
}

/* ---- over ---- */

static void release(void *p)
{
	struct job *j = p;

	server_call_release(&j->heartbeat.call);
	server_call_release(&j->upload.call);
	lease_offer_release(&j->offer);
	job_result_release(&j->result);
	if (j->lock_fd >= 0)
		close(j->lock_fd);
	free(j->folder);
	free(j);
}

void job_release_if_over(struct job *j)
{
	if (j->stage == JOB_OVER && !j->heartbeat.call.is_active && !j->upload.call.is_active)
		loop_reap(j->agent->loop, release, j);
}

void job_forget(struct job *j)
{
	struct job **link = &j->agent->jobs;

	while (*link != j)
		link = &(*link)->next;
	*link = j->next;
	j->stage = JOB_OVER;
	heartbeat_stop(j);
	timer_close(j->heartbeat.timer);
	j->heartbeat.timer = NULL;
	server_call_cancel(&j->upload.call);
	job_release_if_over(j);
}

void job_over(struct job *j, enum progress p, const char *reason)
{
	struct agent *a = j->agent;
	struct error e = {0};

	if (p == PROGRESS_REJECTED) {
		job_log(j, LOG_ERROR, "job_rejected", "why", log_text(reason));
		if (journal_reject(&a->journal, j->folder, reason, &e))
			job_log(j, LOG_ERROR, "journal_not_written", "why", e.text);
	} else {
		note_progress(j, p, reason);
		log_event(LOG_INFO, "job_over", LOG_S("dispatch", j->offer.dispatch_id),
		    LOG_I("job", j->offer.job_id), LOG_S("as", progress_name(p)));
	}
	a->exit_code = p == PROGRESS_SENT ? 0 : 1;
	job_forget(j);
	agent_prune(a);
	agent_next(a);
}
